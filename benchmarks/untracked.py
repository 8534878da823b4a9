"""One operation that nothing differentiates: what a tensor costs over a bare array."""

from collections.abc import Iterator

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
