"""Stochastic optimizers for functions of arrays, or of nested containers of arrays.

They are loops of NumPy, so that one can differentiate through them. `gt.optim` has others, which
update the parameters of modules in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.compat.autograd.misc.flatten import flatten
from gradtape.compat.autograd.wrap_util import wraps
from gradtape.ops.exponential import sqrt
from gradtape.ops.shared_options import options

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """Turn an optimizer of flat vectors into one of nested containers.

    Args:
        optimize: `optimize(grad, x, callback, ...)`, which works on vectors.
    """

    @wraps(optimize)
    def optimize_containers(
        grad: Function, x0: Any, callback: Function | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        flat, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(
            optimize(flat_grad, flat, flat_callback if callback else None, *args, **kwargs)
        )

    return optimize_containers


# What the arguments mean that all of them take.
_SHARED = {
    "grad": "`grad(x, i)`, the gradient at step `i`.",
    "x": "Where to begin: an array, or nested lists, tuples and dicts of them.",
    "callback": "Called before each step as `callback(x, i, gradient)`.",
    "num_iters": "The number of steps.",
    "step_size": "The rate.",
}


@unflatten_optimizer
@options(_SHARED)
def sgd(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Stochastic gradient descent with momentum.

    Args:
        mass: How much of the velocity a step keeps.

    >>> from gradtape.compat.autograd.misc.optimizers import sgd
    >>> sgd(lambda x, i: 2 * x, np.array([1.0]), num_iters=500).round(6) + 0.0
    array([0.])
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
@options(_SHARED)
def rmsprop(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """RMSprop: gradients divided by the root of their average square.

    Args:
        gamma: How much of the average a step keeps.
        eps: What is added to the root.
    """
    square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        square = square * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (sqrt(square) + eps)
    return x


@unflatten_optimizer
@options(_SHARED)
def adam(
    grad: Function,
    x: Any,
    callback: Function | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam, as described in https://arxiv.org/abs/1412.6980.

    Args:
        b1: How much of the average of gradients a step keeps.
        b2: How much of the average of their squares a step keeps.
        eps: What is added to the root of the latter.
    """
    first, second = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * g**2 + b2 * second
        x = x - step_size * (first / (1 - b1 ** (i + 1))) / (
            sqrt(second / (1 - b2 ** (i + 1))) + eps
        )
    return x
