"""Rates of each element's own, from its squared gradients: Adagrad, Adadelta, RMSprop; and Lion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gradtape.optim.numbers import arguments, explained, not_negative, share, switch, unless_zero
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.stepping import Factors, Slots, elementwise, root

_Numbers = Mapping[str, Any]


@explained
class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): divides by the root of the sum of all squared gradients.

    Args:
        lr_decay: How quickly the learning rate falls: lr/(1 + (step − 1)·lr_decay).
        initial_accumulator_value: Where the sum starts.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.Adagrad([w], lr=0.1).step()
    >>> w
    tensor([0.9], requires_grad=True)
    """

    slots = ("sum",)
    checks: ClassVar = {"lr_decay": not_negative, "initial_accumulator_value": not_negative}

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-2,
        lr_decay: Any = 0.0,
        weight_decay: Any = 0.0,
        initial_accumulator_value: Any = 0.0,
        eps: Any = 1e-10,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def clock(self, numbers: _Numbers) -> dict[str, Any]:
        """The number of steps, if the learning rate falls."""
        return {} if unless_zero(numbers["lr_decay"]) is None else {"step": 0}

    def start(self, value: Any, numbers: _Numbers) -> Slots:
        """Return the sum before the first step; it is the same for both parts of complex ones."""
        start = numbers["initial_accumulator_value"]
        zeros = np.zeros_like(value)
        return (zeros + start * (1 + 1j) if value.dtype.kind == "c" else zeros + start,)

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs."""
        rate = numbers["lr"]
        if clock:
            rate = rate / (1 + (clock["step"] - 1) * numbers["lr_decay"])
        return rate, numbers["eps"], unless_zero(numbers["weight_decay"])

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With the sum s of all g²: x ← x − lr·g/(√s + eps)."""
        rate, eps, weight_decay = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        total = slots[0] + gradient * gradient
        return value - rate * (gradient / (root(total) + eps)), (total,)


@explained
class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps in proportion to those before.

    Args:
        lr: What steps are multiplied with.
        rho: How much of the averages is kept, in [0, 1).
        eps: Added to both averages.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.Adadelta([w]).step()
    >>> w.detach().numpy().round(4)
    array([0.9968])
    """

    # The averages of squared gradients and of squared steps.
    slots = ("square", "steps")
    checks: ClassVar = {"rho": share}

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1.0,
        rho: Any = 0.9,
        eps: Any = 1e-6,
        weight_decay: Any = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs."""
        rho, decay = numbers["rho"], unless_zero(numbers["weight_decay"])
        return numbers["lr"], rho, 1 - rho, numbers["eps"], decay

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means v of g² and u of d²: d = g·√(u + eps)/√(v + eps), x ← x − lr·d."""
        rate, rho, rest, eps, weight_decay = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        square = rho * slots[0] + rest * (gradient * gradient)
        step = root(slots[1] + eps) / root(square + eps) * gradient
        return value - rate * step, (square, rho * slots[1] + rest * (step * step))


@explained
class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012): divides by the root of an average of squared gradients.

    Args:
        alpha: How much of the average is kept, in [0, 1).
        centered: Whether to divide by the deviation of the gradient from its own average.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.RMSprop([w], lr=0.01).step()
    >>> w
    tensor([0.9], requires_grad=True)
    """

    checks: ClassVar = {"alpha": share, "momentum": share, "centered": switch}

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-2,
        alpha: Any = 0.99,
        eps: Any = 1e-8,
        weight_decay: Any = 0.0,
        momentum: Any = 0.0,
        centered: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def slot_names(self, numbers: _Numbers) -> tuple[str, ...]:
        """The average of squared gradients, that of gradients, the direction of the last step."""
        momentum = () if unless_zero(numbers["momentum"]) is None else ("momentum",)
        return ("square", *(("mean",) if numbers["centered"] else ()), *momentum)

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs."""
        alpha, momentum = numbers["alpha"], unless_zero(numbers["momentum"])
        decay = unless_zero(numbers["weight_decay"])
        return numbers["lr"], alpha, 1 - alpha, numbers["eps"], momentum, decay

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means v of g² and m of g: x ← x − lr·g/(√v + eps), or with √(v − m²)."""
        rate, alpha, rest, eps, momentum, weight_decay = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        square = alpha * slots[0] + rest * (gradient * gradient)
        after: Slots = (square,)
        variance = square
        if len(slots) - (momentum is not None) == 2:
            mean = alpha * slots[1] + rest * gradient
            # Rounding may make it negative where all gradients are the same.
            after, variance = (square, mean), np.maximum(square - mean * mean, 0.0)
        step = gradient / (root(variance) + eps)
        if momentum is not None:
            step = momentum * slots[-1] + step
            after = (*after, step)
        return value - rate * step, after


@explained
class Lion(Optimizer):
    """Lion (Chen et al., 2023): steps of the same size everywhere, by the sign of an average.

    Args:
        lr: The learning rate, the size of a step.
        betas: How much of the average goes into the step, and how much of it is kept, in [0, 1).
        weight_decay: How much of the parameter is taken away at each step, times the learning rate.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.Lion([w], lr=0.1).step()
    >>> w
    tensor([0.9], requires_grad=True)
    """

    # The average of the gradient.
    slots = ("mean",)

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-4,
        betas: Any = (0.9, 0.99),
        weight_decay: Any = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs."""
        beta, beta2 = numbers["betas"]
        rate, decay = numbers["lr"], unless_zero(numbers["weight_decay"])
        kept = None if decay is None else 1 - rate * decay
        return rate, beta, 1 - beta, beta2, 1 - beta2, kept

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With the mean m of g: x ← x − lr·sign(β·m + (1 − β)·g)."""
        rate, beta, rest, beta2, rest2, kept = factors
        (mean,) = slots
        if kept is not None:
            value = kept * value
        step = np.sign(beta * mean + rest * gradient)
        return value - rate * step, (beta2 * mean + rest2 * gradient,)
