"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.optim.numbers import arguments, explained, number, share, switch, unless_zero
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.stepping import Factors, Slots, elementwise


@explained
class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    Args:
        dampening: How much of the gradient is left out of the direction, after the first step.
        nesterov: Whether the gradient is taken where the momentum will lead.

    Raises:
        ArgumentError: A number is out of its range, the learning rate is missing, or Nesterov's
            form has no momentum, or dampening.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> optimizer = gt.optim.SGD(lr=0.1)
    >>> gt.compute_gradients(gt.sum(w * w))
    >>> optimizer.step([w])
    >>> w
    tensor([0.8], requires_grad=True)
    """

    usual: ClassVar[dict[str, Any]] = {"lr": 0.01}
    checks: ClassVar = {"momentum": share, "dampening": number, "nesterov": switch}

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = None,
        momentum: Any = 0.0,
        dampening: Any = 0.0,
        weight_decay: Any = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def check(self, numbers: Mapping[str, Any]) -> None:
        """Raise if numbers do not fit together."""
        if numbers["nesterov"] and unless_zero(numbers["momentum"]) is None:
            raise ArgumentError("SGD: got nesterov=True without momentum; give it one > 0")
        if numbers["nesterov"] and unless_zero(numbers["dampening"]) is not None:
            raise ArgumentError("SGD: got nesterov=True with dampening; leave one of them out")

    def slot_names(self, numbers: Mapping[str, Any]) -> tuple[str, ...]:
        """The direction of the last step, if there is momentum."""
        return () if unless_zero(numbers["momentum"]) is None else ("momentum",)

    def clock(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The step, if the first one is another than the rest."""
        return {} if unless_zero(numbers["dampening"]) is None else {"step": 0}

    def factors(self, numbers: Mapping[str, Any], clock: Mapping[str, Any]) -> Factors:
        """Return the numbers that `update` needs."""
        momentum = unless_zero(numbers["momentum"])
        ahead = momentum if numbers["nesterov"] else None
        rest = None
        if clock:
            is_first, rest = clock["step"] == 1, 1.0 - numbers["dampening"]
            if isinstance(is_first, bool):
                rest = 1.0 if is_first else rest
            else:
                rest = np.where(is_first, 1.0, rest)
        return numbers["lr"], momentum, ahead, unless_zero(numbers["weight_decay"]), rest

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With v ← momentum·v + g: x ← x − lr·v, or Nesterov's x − lr·(g + momentum·v)."""
        lr, momentum, ahead, weight_decay, rest = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        if momentum is None:
            return value - lr * gradient, ()
        velocity = momentum * slots[0] + (gradient if rest is None else rest * gradient)
        direction = velocity if ahead is None else ahead * velocity + gradient
        return value - lr * direction, (velocity,)
