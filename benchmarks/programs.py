"""Ten programs written for NumPy, for counting the work of evaluation and gradient.

Each is `f(xp, *data, *args)`, differentiated with respect to all `args`; `xp` is NumPy or a module
with its names. Data is an argument too, not captured, so that work on it can be counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Program = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A program, the arguments it is differentiated at, and the data it takes before them."""

    name: str
    program: Program
    args: tuple[np.ndarray, ...]
    data: tuple[np.ndarray, ...] = ()

    @property
    def argnums(self) -> tuple[int, ...]:
        """Positions of the arguments that are differentiated."""
        return tuple(range(len(self.data), len(self.data) + len(self.args)))


def _elementwise(rng: np.random.Generator) -> Case:
    def f(xp: Any, x: Any) -> Any:
        for _ in range(10):
            x = xp.tanh(1.1 * x + 0.1) + xp.exp(-x * x)
        return xp.sum(x)

    return Case("elementwise chain", f, (rng.normal(size=1000),))


def _perceptron(rng: np.random.Generator) -> Case:
    def f(xp: Any, data: Any, target: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        hidden = xp.tanh(data @ w1 + b1)
        return xp.mean((hidden @ w2 + b2 - target) ** 2)

    shapes = ((64, 64), (64,), (64, 10), (10,))
    args = tuple(0.1 * rng.normal(size=s) for s in shapes)
    return Case("perceptron", f, args, (rng.normal(size=(32, 64)), rng.normal(size=(32, 10))))


def _cross_entropy(rng: np.random.Generator) -> Case:
    def f(xp: Any, data: Any, rows: Any, labels: Any, w: Any) -> Any:
        logits = data @ w
        shifted = logits - xp.max(logits, axis=1, keepdims=True)
        log_norm = xp.log(xp.sum(xp.exp(shifted), axis=1))
        return xp.mean(log_norm - shifted[rows, labels])

    data = rng.normal(size=(64, 20)), np.arange(64), rng.integers(0, 10, 64)
    return Case("softmax cross-entropy", f, (rng.normal(size=(20, 10)),), data)


def _reductions(rng: np.random.Generator) -> Case:
    def f(xp: Any, x: Any) -> Any:
        mean = xp.mean(x, axis=0)
        variance = xp.mean((x - mean) ** 2, axis=0)
        largest = xp.max(xp.sum(xp.abs(x), axis=1))
        return xp.sum(variance / (1.0 + mean**2)) + largest

    return Case("reductions", f, (rng.normal(size=(50, 20)),))


def _indexed_loop(rng: np.random.Generator) -> Case:
    def f(xp: Any, x: Any) -> Any:
        s = x[0] ** 2
        for i in range(1, 200):
            s = s + x[i] ** 2
        return s

    return Case("loop over elements", f, (rng.normal(size=200),))


def _rosenbrock(rng: np.random.Generator) -> Case:
    def f(xp: Any, x: Any) -> Any:
        head, tail = x[:-1], x[1:]
        return xp.sum(100.0 * (tail - head**2) ** 2 + (1.0 - head) ** 2)

    return Case("Rosenbrock", f, (rng.normal(size=1000),))


def _inverse(rng: np.random.Generator) -> Case:
    def f(xp: Any, a: Any, b: Any) -> Any:
        x = xp.linalg.inv(a) @ b
        return xp.sum(x * x)

    a = rng.normal(size=(40, 40)) + 12.0 * np.eye(40)
    return Case("inverse", f, (a, rng.normal(size=40)))


def _recurrent(rng: np.random.Generator) -> Case:
    def f(xp: Any, inputs: Any, state: Any, w: Any, u: Any, b: Any) -> Any:
        for step in inputs:
            state = xp.tanh(state @ w + step @ u + b)
        return xp.mean(state * state)

    args = tuple(0.2 * rng.normal(size=s) for s in ((32, 32), (16, 32), (32,)))
    return Case("recurrent network", f, args, (rng.normal(size=(20, 8, 16)), np.zeros((8, 32))))


def _cumulative(rng: np.random.Generator) -> Case:
    def f(xp: Any, x: Any) -> Any:
        walk = xp.cumsum(x)
        return xp.sum(walk**2) + xp.prod(1.0 + 0.01 * x)

    return Case("cumsum and prod", f, (rng.normal(size=500),))


def _mixture(rng: np.random.Generator) -> Case:
    def f(xp: Any, data: Any, weight: Any, mean: Any, log_scale: Any) -> Any:
        z = (data - mean) * xp.exp(-log_scale)
        terms = weight - log_scale - 0.5 * z * z
        peak = xp.max(terms, axis=1, keepdims=True)
        return -xp.sum(xp.log(xp.sum(xp.exp(terms - peak), axis=1)) + peak[:, 0])

    return Case("Gaussian mixture", f, tuple(rng.normal(size=(3, 4))), (rng.normal(size=(300, 1)),))


FACTORIES = (
    _elementwise,
    _perceptron,
    _cross_entropy,
    _reductions,
    _indexed_loop,
    _rosenbrock,
    _inverse,
    _recurrent,
    _cumulative,
    _mixture,
)


def cases() -> list[Case]:
    """Make the ten programs, each with its own fixed random numbers."""
    return [make(np.random.default_rng(i)) for i, make in enumerate(FACTORIES)]
