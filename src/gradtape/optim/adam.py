"""Adam and its relatives: steps scaled by running averages of the gradient and its square."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.optim.numbers import arguments, explained, not_negative, switch, unless_zero
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.stepping import Factors, Slots, elementwise, root

_Numbers = Mapping[str, Any]


class Moments(Optimizer):
    """What the relatives of Adam have in common: two averages, and the number of the step."""

    # Ten times the rate of `Adam()`: a run of a graph is mostly a step on all of the data. In 60 of
    # them the loss of a small classifier falls to a quarter with 0.001, to a thousandth with 0.01.
    usual: ClassVar[dict[str, Any]] = {"lr": 0.01}
    checks: ClassVar = {
        "amsgrad": switch,
        "decoupled_weight_decay": switch,
        "momentum_decay": not_negative,
    }

    def slot_names(self, numbers: _Numbers) -> tuple[str, ...]:
        """The averages of the gradient and of its square, and perhaps the largest of the latter."""
        return ("mean", "square", "largest") if numbers.get("amsgrad") else ("mean", "square")

    def clock(self, numbers: _Numbers) -> dict[str, Any]:
        """The number of steps."""
        return {"step": 0}


@explained
class Adam(Moments):
    """Adam (Kingma and Ba, 2015).

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> optimizer = gt.optim.Adam([w], lr=0.1)
    >>> gt.sum(w * w).backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9], requires_grad=True)

    As pure functions, in a compiled training step:

    >>> adam = gt.optim.Adam(lr=0.1)
    >>> @gt.jit
    ... def train_step(params, state):
    ...     grads = gt.grad(lambda params: np.sum((params["w"] - 3.0) ** 2))(params)
    ...     return adam.apply(params, grads, state)
    >>> params = {"w": np.zeros(2)}
    >>> state = adam.init(params)
    >>> for _ in range(300):
    ...     params, state = train_step(params, state)
    >>> params["w"].round(3)
    array([3., 3.])
    >>> state["step"]
    300
    """

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: Any = 1e-8,
        weight_decay: Any = 0.0,
        amsgrad: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        (beta, beta2), step = numbers["betas"], clock["step"]
        correction = (1 - beta2**step) ** 0.5
        # Both sides of the fraction are multiplied by the correction of the denominator.
        rate = numbers["lr"] / (1 - beta**step) * correction
        eps = numbers["eps"] * correction
        shares = beta, 1 - beta, beta2, (1 - beta2) ** 0.5
        return *shares, eps, rate, *self.decays(numbers)

    def decays(self, numbers: _Numbers) -> tuple[Any, Any]:
        """What is added to the gradient, and what is kept of the parameter, in terms of it."""
        return unless_zero(numbers["weight_decay"]), None

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means m and v of g and g², without bias: x ← x − lr·m/(√v + eps)."""
        *shares, eps, rate, weight_decay, kept = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        if kept is not None:
            value = kept * value
        mean, square = averages(gradient, slots, shares)
        if len(slots) == 2:
            return value - rate * (mean / (root(square) + eps)), (mean, square)
        largest = np.maximum(slots[2], square)
        return value - rate * (mean / (root(largest) + eps)), (mean, square, largest)


@explained
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Args:
        weight_decay: How much of the parameter is taken away at each step, times the learning rate.
        amsgrad: Whether to divide by the root of the largest average so far.

    >>> adamw = gt.optim.AdamW(lr=0.1, weight_decay=0.5)
    >>> w = np.array([2.0])
    >>> adamw.apply(w, np.zeros(1), adamw.init(w))[0]
    array([1.9])
    """

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: Any = 1e-8,
        weight_decay: Any = 1e-2,
        amsgrad: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def decays(self, numbers: _Numbers) -> tuple[Any, Any]:
        """What is added to the gradient, and what is kept of the parameter, in terms of it."""
        return None, _kept(numbers)


@explained
class NAdam(Moments):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
        momentum_decay: How quickly the momentum rises to its full size.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.NAdam([w], lr=0.1).step()
    >>> w.detach().numpy().round(4)
    array([0.8944])
    """

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: Any = 1e-8,
        weight_decay: Any = 0.0,
        momentum_decay: Any = 4e-3,
        decoupled_weight_decay: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def clock(self, numbers: _Numbers) -> dict[str, Any]:
        """The number of steps, and the product of the momenta so far."""
        return {"step": 0, "product": 1.0}

    def tick(self, numbers: _Numbers, clock: _Numbers) -> dict[str, Any]:
        """The clock one step later."""
        step = clock["step"] + 1
        return {"step": step, "product": clock["product"] * _momentum(numbers, step)}

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        (beta, beta2), step, product = numbers["betas"], clock["step"], clock["product"]
        now, following = _momentum(numbers, step), _momentum(numbers, step + 1)
        correction = (1 - beta2**step) ** 0.5
        rate, eps = numbers["lr"] * correction, numbers["eps"] * correction
        ahead = rate * following / (1 - product * following)
        shares = beta, 1 - beta, beta2, (1 - beta2) ** 0.5
        return *shares, eps, rate * (1 - now) / (1 - product), ahead, *_decays(numbers)

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means m and v, and momenta μ that rise: x ← x − (a·g + b·m)/(√v + eps)."""
        *shares, eps, rate, ahead, weight_decay, kept = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        if kept is not None:
            value = kept * value
        mean, square = averages(gradient, slots, shares)
        return value - (rate * gradient + ahead * mean) / (root(square) + eps), (mean, square)


def _momentum(numbers: _Numbers, step: Any) -> Any:
    """Dozat's momentum of a step, β·(1 − 0.96^(step·decay)/2)."""
    return numbers["betas"][0] * (1 - 0.5 * 0.96 ** (step * numbers["momentum_decay"]))


@explained
class RAdam(Moments):
    """Rectified Adam (Liu et al., 2020): it does not divide before the variance is known.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.RAdam([w], lr=0.1).step()
    >>> w
    tensor([0.8], requires_grad=True)
    """

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: Any = 1e-8,
        weight_decay: Any = 0.0,
        decoupled_weight_decay: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        (beta, beta2), step = numbers["betas"], clock["step"]
        kept = beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * kept / (1 - kept)  # of the average, in steps
        is_known = length > 5
        safe = _select(is_known, length, longest)
        rectified = (safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe)
        rate = numbers["lr"] / (1 - beta**step)
        adaptive = rate * (rectified * (1 - kept)) ** 0.5
        rates = _select(is_known, adaptive, 0.0), _select(is_known, 0.0, rate)
        shares = beta, 1 - beta, beta2, (1 - beta2) ** 0.5
        return *shares, numbers["eps"], *rates, *_decays(numbers)

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means m and v: x ← x − lr·r·m/(√v + eps), at first x ← x − lr·m."""
        *shares, eps, adaptive, rate, weight_decay, kept = factors
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        if kept is not None:
            value = kept * value
        mean, square = averages(gradient, slots, shares)
        return value - mean * (adaptive / (root(square) + eps) + rate), (mean, square)


@explained
class AdaBelief(Moments):
    """AdaBelief (Zhuang et al., 2020): Adam that divides by how far gradients are from their mean.

    Args:
        betas: How much of the averages of the gradient and of its deviation is kept, in [0, 1).
        eps: Added to the average of squared deviations at each step, and to the denominator.
        weight_decay: How much of the parameter is taken away at each step, times the learning rate.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.AdaBelief([w], lr=0.1).step()
    >>> w.detach().numpy().round(4)
    array([0.8889])
    """

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: Any = 1e-16,
        weight_decay: Any = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        (beta, beta2), step, eps = numbers["betas"], clock["step"], numbers["eps"]
        correction = (1 - beta2**step) ** 0.5
        rate = numbers["lr"] / (1 - beta**step) * correction
        shares = beta, 1 - beta, beta2, (1 - beta2) ** 0.5
        return *shares, eps, eps * correction, rate, _kept(numbers)

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means m of g and s of (g − m)² + eps: x ← x − lr·m/(√s + eps)."""
        beta, rest, beta2, scale, added, eps, rate, kept = factors
        if kept is not None:
            value = kept * value
        mean = beta * slots[0] + rest * gradient
        deviation = scale * (gradient - mean)
        square = beta2 * slots[1] + deviation * deviation + added
        return value - rate * (mean / (root(square) + eps)), (mean, square)


@explained
class LAMB(Moments):
    """LAMB (You et al., 2020): steps of Adam, of a length in proportion to each parameter.

    Args:
        weight_decay: How much of the parameter is added to the direction of the step.

    >>> w = gt.tensor([3.0, 4.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.optim.LAMB([w], lr=0.1).step()
    >>> w.detach().numpy().round(4)
    array([2.6464, 3.6464])
    """

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: Any = 1e-6,
        weight_decay: Any = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(**arguments(locals()))

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        (beta, beta2), step = numbers["betas"], clock["step"]
        correction = (1 - beta2**step) ** 0.5
        shares = beta, 1 - beta, beta2, (1 - beta2) ** 0.5
        scale = correction / (1 - beta**step)
        decay = unless_zero(numbers["weight_decay"])
        return *shares, numbers["eps"] * correction, scale, numbers["lr"], decay

    @staticmethod
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With a step r of Adam and the decay: x ← x − lr·(‖x‖/‖r‖)·r."""
        *shares, eps, scale, rate, weight_decay = factors
        mean, square = averages(gradient, slots, shares)
        direction = scale * (mean / (root(square) + eps))
        if weight_decay is not None:
            direction = direction + weight_decay * value
        length, size = root(np.sum(value * value)), root(np.sum(direction * direction))
        is_sized = (length > 0) & (size > 0)
        trust = np.where(is_sized, length / np.where(is_sized, size, 1.0), 1.0)
        return value - rate * trust.astype(value.dtype) * direction, (mean, square)


def averages(gradient: Any, slots: Slots, shares: Any) -> tuple[Any, Any]:
    """The averages m ← β·m + (1 − β)·g and v ← β₂·v + (1 − β₂)·g²."""
    beta, rest, beta2, scale = shares
    # √(1 − β₂) is multiplied before the square is taken, which may leave the range of float32.
    scaled = scale * gradient
    return beta * slots[0] + rest * gradient, beta2 * slots[1] + scaled * scaled


def _kept(numbers: _Numbers) -> Any:
    """The factor that decays the parameter itself: 1 − lr·decay."""
    decay = unless_zero(numbers["weight_decay"])
    return None if decay is None else 1 - numbers["lr"] * decay


def _decays(numbers: _Numbers) -> tuple[Any, Any]:
    """What is added to the gradient, and what is kept of the parameter."""
    if numbers["decoupled_weight_decay"]:
        return None, _kept(numbers)
    return unless_zero(numbers["weight_decay"]), None


def _select(condition: Any, yes: Any, no: Any) -> Any:
    """One of two numbers, also of a trace."""
    return (
        np.where(condition, yes, no) if isinstance(condition, Tensor) else yes if condition else no
    )
