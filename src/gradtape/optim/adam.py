"""Adam: steps scaled by running averages of the gradient and its square."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_number
from gradtape.optim.base import Optimizer, State, decayed


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

    def __init__(
        self,
        params: Any = None,
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr)
        pair = betas if isinstance(betas, tuple | list | np.ndarray) else ()
        shares = [as_number(beta, "Adam", "betas") for beta in pair]
        if not (len(shares) == 2 and all(0 <= share < 1 for share in shares)):
            raise ArgumentError(f"Adam: got betas={betas}, expected two numbers in [0, 1)")
        self.betas = (shares[0], shares[1])
        self.eps = as_number(eps, "Adam", "eps")
        self.weight_decay = as_number(weight_decay, "Adam", "weight_decay")
        if not self.eps >= 0:
            raise ArgumentError(f"Adam: got eps={eps}, expected a number >= 0")
        if not self.weight_decay >= 0:
            raise ArgumentError(f"Adam: got weight_decay={weight_decay}, expected a number >= 0")

    def update(self, value: Any, gradient: Any, state: State) -> Any:
        """With means m and v of g and |g|², without bias: x ← x − lr·m/(√v + eps)."""
        gradient = decayed(gradient, value, self.weight_decay)
        if not state:
            state["step"] = 0
            state["sum"] = np.zeros_like(gradient)
            state["square"] = np.zeros_like(gradient.real)
        state["step"] = count = state["step"] + 1
        (beta, beta2), total, square = self.betas, state["sum"], state["square"]
        # total = Σ βⁿ·g is m without its factor 1 − β, which goes into a number below; the same
        # for v would leave the range of float16.
        np.multiply(total, beta, out=total)
        np.add(total, gradient, out=total)
        scratch = np.empty_like(gradient)
        np.multiply(gradient, math.sqrt(1 - beta2), out=scratch)
        if scratch.dtype.kind == "c":
            np.multiply(scratch, scratch.conj(), out=scratch)
        else:
            np.multiply(scratch, scratch, out=scratch)
        np.multiply(square, beta2, out=square)
        np.add(square, scratch.real, out=square)
        mean, root = (1 - beta) / (1 - beta**count), math.sqrt(1 - beta2**count)
        np.sqrt(square, out=scratch)
        np.add(scratch, self.eps * root, out=scratch)
        np.divide(total, scratch, out=scratch)
        np.multiply(scratch, self.lr * mean * root, out=scratch)
        return np.subtract(value, scratch, out=scratch)
