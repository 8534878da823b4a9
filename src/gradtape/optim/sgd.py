"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from gradtape.errors import ArgumentError
from gradtape.optim.optimizer import Optimizer, of_rule
from gradtape.optim.rule import (
    Factors,
    Number,
    Rule,
    Slots,
    checked,
    not_negative,
    unless_zero,
)


class SGDRule(Rule):
    """Stochastic gradient descent as a pure rule: `init` and `apply`.

    Args:
        lr: The learning rate.
        momentum: How much of the last step's direction is kept, in [0, 1).
        weight_decay: How much of the parameter is added to its gradient.
        nesterov: Whether the gradient is taken where the momentum will lead.

    Raises:
        ArgumentError: A number is out of its range, the learning rate is missing, or Nesterov's
            form has no momentum.

    >>> rule = gt.optim.SGDRule(lr=0.1, momentum=0.9)
    >>> w = np.array([1.0])
    >>> state = rule.init(w)
    >>> for _ in range(2):
    ...     w, state = rule.apply(w, 2 * w, state)
    >>> w
    array([0.46])
    """

    def __init__(
        self,
        *,
        lr: Number,
        momentum: Number = 0.0,
        weight_decay: Number = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(lr=lr)
        self.momentum = checked(
            momentum, self.name, "momentum", "a number in [0, 1)", lambda x: 0 <= x < 1
        )
        self.weight_decay = not_negative(weight_decay, self.name, "weight_decay")
        if nesterov and unless_zero(self.momentum) is None:
            raise ArgumentError("SGD: got nesterov=True without momentum; give it one > 0")
        self.nesterov = nesterov

    @property
    def slots(self) -> tuple[str, ...]:
        """The direction of the last step, if there is momentum."""
        return () if unless_zero(self.momentum) is None else ("momentum",)

    def factors(self, step: Any) -> Factors:
        """Return the numbers that `update` needs."""
        momentum = unless_zero(self.momentum)
        ahead = momentum if self.nesterov else None
        return self.lr, momentum, ahead, unless_zero(self.weight_decay)

    @staticmethod
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With v ← momentum·v + g: x ← x − lr·v, or Nesterov's x − lr·(g + momentum·v)."""
        lr, momentum, ahead, weight_decay = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        if momentum is None:
            return value - lr * gradient, ()
        velocity = momentum * slots[0] + gradient
        direction = velocity if ahead is None else ahead * velocity + gradient
        return value - lr * direction, (velocity,)


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    Args:
        params: The parameters; they may also be given to each `step`.
        lr: The learning rate.
        momentum: How much of the last step's direction is kept, in [0, 1).
        weight_decay: How much of the parameter is added to its gradient.
        nesterov: Whether the gradient is taken where the momentum will lead.

    Raises:
        ArgumentError: A number is out of its range, the learning rate is missing, or Nesterov's
            form has no momentum.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> optimizer = gt.optim.SGD(lr=0.1)
    >>> gt.compute_gradients(gt.sum(w * w))
    >>> optimizer.step([w])
    >>> w
    tensor([0.8], requires_grad=True)
    """

    kind = SGDRule
    usual: ClassVar[dict[str, Any]] = {"lr": 0.01}
    momentum = of_rule("momentum")
    weight_decay = of_rule("weight_decay")
    nesterov = of_rule("nesterov")

    def __init__(
        self,
        params: Any = None,
        *,
        lr: float | None = None,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        numbers = {"momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, lr=lr, **numbers)
