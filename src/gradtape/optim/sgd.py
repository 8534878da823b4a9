"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_number
from gradtape.optim.base import Optimizer, State, decayed


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

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

    def __init__(
        self,
        params: Any = None,
        *,
        lr: float | None = None,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr=lr)
        self.momentum = as_number(momentum, "SGD", "momentum")
        self.weight_decay = as_number(weight_decay, "SGD", "weight_decay")
        if not 0 <= self.momentum < 1:
            raise ArgumentError(f"SGD: got momentum={momentum}, expected a number in [0, 1)")
        if not self.weight_decay >= 0:
            raise ArgumentError(f"SGD: got weight_decay={weight_decay}, expected a number >= 0")
        if nesterov and self.momentum == 0:
            raise ArgumentError("SGD: got nesterov=True without momentum; give it one > 0")
        self.nesterov = nesterov

    def update(self, value: Any, gradient: Any, state: State) -> Any:
        """With v ← momentum·v + g: x ← x − lr·v, or Nesterov's x − lr·(g + momentum·v)."""
        gradient = decayed(gradient, value, self.weight_decay)
        step = np.empty_like(gradient)
        if self.momentum:
            velocity = state.get("momentum")
            if velocity is None:
                velocity = state["momentum"] = np.array(gradient)
            else:
                np.multiply(velocity, self.momentum, out=velocity)
                np.add(velocity, gradient, out=velocity)
            if self.nesterov:
                np.multiply(velocity, self.momentum, out=step)
                np.add(step, gradient, out=step)
                gradient = step
            else:
                gradient = velocity
        np.multiply(gradient, self.lr, out=step)
        return np.subtract(value, step, out=step)
