"""Training steps without any option, in every way to record them, to compare two states by.

A chain of cheap ops shows what recording and walking an op costs; a perceptron is a step as users
write it. Small arrays show what calls cost, large ones what is copied and kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.compiled_program import Program

Loss = Callable[..., Any]
STEPS = 200


def chain(x: Any, w: Any, y: Any) -> Any:
    """Apply `y = y*w + x` many times, and add up the last result."""
    for _ in range(STEPS):
        y = y * w + x
    return gt.sum(y)


def perceptron(w1: Any, b1: Any, w2: Any, b2: Any, *, data: Any, labels: Any) -> Any:
    """Compute the loss of a batch."""
    hidden = gt.tanh(data @ w1 + b1)
    return gt.nn.cross_entropy(hidden @ w2 + b2, labels)


def _chain_case(size: int) -> tuple[Loss, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return chain, [rng.normal(size=size), rng.uniform(0.9, 1.0, size), rng.normal(size=size)]


def _perceptron_case(batch: int, inputs: int, hidden: int) -> tuple[Loss, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(batch, inputs)), rng.integers(0, 10, batch)
    shapes = ((inputs, hidden), (hidden,), (hidden, 10), (10,))
    arrays = [0.1 * rng.normal(size=shape) for shape in shapes]
    return functools.partial(perceptron, data=data, labels=labels), arrays


CASES: dict[str, Callable[[], tuple[Loss, list[np.ndarray]]]] = {
    "chain of 10 numbers": functools.partial(_chain_case, 10),
    "chain of 50,000 numbers": functools.partial(_chain_case, 50_000),
    "MLP 64-100-10": functools.partial(_perceptron_case, 32, 64, 100),
    "MLP 784-1000-10": functools.partial(_perceptron_case, 256, 784, 1_000),
}


def _backward(loss: Loss, arrays: list[np.ndarray], **options: Any) -> Callable[[], Any]:
    leaves = [gt.tensor(array, requires_grad=True) for array in arrays]

    def step() -> list[Any]:
        loss(*leaves).backward(**options)
        found = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        return found

    return step


def _cleared(loss: Loss, arrays: list[np.ndarray]) -> Callable[[], Any]:
    step = _backward(loss, arrays)

    def cleared() -> Any:
        with gt.GradientContext():
            return step()

    return cleared


def _taped(loss: Loss, arrays: list[np.ndarray], **options: Any) -> Callable[[], Any]:
    def step() -> Any:
        with gt.GradientTape(**options) as tape:
            watched = [tape.watch(array) for array in arrays]
            value = loss(*watched)
        return tape.gradient(value, watched)

    return step


def _gradient(loss: Loss, arrays: list[np.ndarray]) -> Callable[[], Any]:
    gradient = gt.grad(loss, argnums=tuple(range(len(arrays))))
    return lambda: gradient(*arrays)


WAYS: dict[str, Callable[[Loss, list[np.ndarray]], Callable[[], Any]]] = {
    "backward": _backward,
    "backward(release=True)": functools.partial(_backward, release=True),
    "context": _cleared,
    "tape": _taped,
    "persistent tape": functools.partial(_taped, persistent=True),
    "gt.grad": _gradient,
}


def _program(case: str, way: str) -> Program:
    return Program("step()", {"step": WAYS[way](*CASES[case]())})


PROGRAMS: dict[str, Callable[[], Program]] = {
    f"step: {case}, {way}": functools.partial(_program, case, way) for case in CASES for way in WAYS
}
