"""Code that nothing differentiates: what a tensor costs over an array, and a tape that is off."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare

SIZE = 10


def run(settings: Settings) -> Iterator[Row]:
    """Time the sum of two untracked tensors against that of two arrays."""
    a, b = np.random.default_rng(0).normal(size=(2, SIZE))
    s, t = gt.tensor(a), gt.tensor(b)
    assert_agree("add", s + t, a + b, rtol=0.0)
    yield from compare(
        "untracked add",
        f"`a + b`, {SIZE} elements, nothing tracked",
        Contender(OURS, "a + b", {"a": s, "b": t}),
        [(Contender("NumPy", "a + b", {"a": a, "b": b}), 3.0)],
        settings,
    )
    yield from _switched_off(settings)


def _switched_off(settings: Settings) -> Iterator[Row]:
    """Time a function under a tape that is off against the same without a tape."""
    x = np.random.default_rng(0).normal(size=SIZE)

    def predict(x: Any) -> Any:
        for _ in range(25):
            x = gt.tanh(x) * 1.1 + 0.1
        return gt.sum(x)

    def off() -> Any:
        tape = gt.GradientTape(enabled=False)
        return predict(tape.watch(x))

    def without() -> Any:
        return predict(gt.tensor(x))

    assert_agree("tape off", off(), without(), rtol=0.0)
    yield from compare(
        "tape switched off",
        f"76 ops of {SIZE} elements under `gt.GradientTape(enabled=False)`, the tape included",
        Contender(OURS, off),
        [(Contender("gradtape without a tape", without), 1.05)],
        settings,
    )
