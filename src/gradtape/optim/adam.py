"""Adam: steps scaled by running averages of the gradient and its square."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.optim.optimizer import Optimizer, of_rule
from gradtape.optim.rule import (
    Factors,
    Number,
    Rule,
    Slots,
    not_negative,
    number,
    unless_zero,
)


class AdamRule(Rule):
    """Adam (Kingma and Ba, 2015) as a pure rule: `init` and `apply`.

    Args:
        lr: The learning rate.
        betas: How much of the averages of the gradient and of its square is kept, in [0, 1).
        eps: Added to the denominator.
        weight_decay: How much of the parameter is added to its gradient.

    Raises:
        ArgumentError: A number is out of its range.

    >>> rule = gt.optim.AdamRule(lr=0.1)
    >>> @gt.jit
    ... def train_step(params, state):
    ...     grads = gt.grad(lambda params: np.sum((params["w"] - 3.0) ** 2))(params)
    ...     return rule.apply(params, grads, state)
    >>> params = {"w": np.zeros(2)}
    >>> state = rule.init(params)
    >>> for _ in range(300):
    ...     params, state = train_step(params, state)
    >>> params["w"].round(3)
    array([3., 3.])
    >>> state["step"]
    300
    """

    counts = True

    def __init__(
        self,
        *,
        lr: Number = 1e-3,
        betas: tuple[Number, Number] = (0.9, 0.999),
        eps: Number = 1e-8,
        weight_decay: Number = 0.0,
    ) -> None:
        super().__init__(lr=lr)
        pair = betas if isinstance(betas, tuple | list | np.ndarray) else ()
        shares = [number(beta, self.name, "betas") for beta in pair]
        if not (len(shares) == 2 and all(isinstance(x, Tensor) or 0 <= x < 1 for x in shares)):
            raise ArgumentError(f"{self.name}: got betas={betas}, expected two numbers in [0, 1)")
        self.betas = (shares[0], shares[1])
        self.eps = not_negative(eps, self.name, "eps")
        self.weight_decay = not_negative(weight_decay, self.name, "weight_decay")

    @property
    def slots(self) -> tuple[str, ...]:
        """The sum of all gradients with powers of beta, and the average of their squares."""
        return "sum", "square"

    def start(self, value: Any) -> Slots:
        """Return zeros; squares of complex numbers are real."""
        return np.zeros_like(value), np.zeros_like(value.real)

    def factors(self, step: Any) -> Factors:
        """Return the numbers that `update` needs, including corrections for the start at zero."""
        beta, beta2 = self.betas
        root = (1 - beta2**step) ** 0.5
        mean = (1 - beta) / (1 - beta**step)
        rate, eps = self.lr * mean * root, self.eps * root
        return unless_zero(self.weight_decay), beta, beta2, (1 - beta2) ** 0.5, eps, rate

    @staticmethod
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means m and v of g and |g|², without bias: x ← x − lr·m/(√v + eps)."""
        weight_decay, beta, beta2, scale, eps, rate = factors
        total, square = slots
        if weight_decay is not None:
            gradient = weight_decay * value + gradient
        # total = Σ βⁿ·g is m without its factor 1 − β, which is in the rate; the same for v would
        # leave the range of float16.
        total = beta * total + gradient
        scaled = scale * gradient
        square = beta2 * square + (scaled * scaled.conj()).real
        return value - total / (_root(square) + eps) * rate, (total, square)


def _root(square: Any) -> Any:
    """√v, whose slope at 0 is taken as 0.

    A parameter that got no gradient has v = 0; its step is 0 whatever the numbers of the rule are.
    The slope of the root is infinite there, which would make the derivative NaN.
    """
    if not isinstance(square, Tensor):
        return square**0.5
    zero = np.equal(square, 0.0)
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, square)))


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    Args:
        params: The parameters; they may also be given to each `step`.
        lr: The learning rate.
        betas: How much of the averages of the gradient and of its square is kept, in [0, 1).
        eps: Added to the denominator.
        weight_decay: How much of the parameter is added to its gradient.

    Raises:
        ArgumentError: A number is out of its range.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> optimizer = gt.optim.Adam([w], lr=0.1)
    >>> gt.sum(w * w).backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9], requires_grad=True)
    """

    kind = AdamRule
    # Ten times the rate of `Adam()`: a run of a graph is mostly a step on all of the data. In 60 of
    # them the loss of a small classifier falls to a quarter with 0.001, to a thousandth with 0.01.
    usual: ClassVar[dict[str, Any]] = {"lr": 0.01}
    betas = of_rule("betas")
    eps = of_rule("eps")
    weight_decay = of_rule("weight_decay")

    def __init__(
        self,
        params: Any = None,
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
