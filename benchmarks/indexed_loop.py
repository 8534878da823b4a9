"""A loop over single elements: its backward pass must grow with n, not with n²."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Samples, Settings, time_once
from benchmarks.result import OURS, Row, row_of

SMALL, LARGE = 2_000, 20_000
BAR = 15.0
"""Linear growth is the ratio of the sizes, 10; caches and the collector add to it."""


def run(settings: Settings) -> Iterator[Row]:
    """Time the backward pass of `s = s + x[i]**2` at both sizes, the forward pass apart."""
    leaves: dict[str, Any] = {}
    for n in (SMALL, LARGE):
        array = np.random.default_rng(0).normal(size=n)
        leaves[_label(OURS, n)] = gt.tensor(array, requires_grad=True)
        leaves[_label("PyTorch", n)] = torch.tensor(array, requires_grad=True)

    samples: Samples = {label: [] for label in leaves}
    order = list(leaves)
    for i in range(1 + settings.rounds):
        for label in order:
            seconds = _backward_seconds(leaves[label])
            if i > 0:  # the first round is the warm-up
                samples[label].append(seconds)
        order.reverse()
    for n in (SMALL, LARGE):
        ours, theirs = leaves[_label(OURS, n)], leaves[_label("PyTorch", n)]
        assert_agree("indexed loop", ours.grad, theirs.grad)

    what = f"`s = s + x[i]**2`, n = {LARGE:,} against n = {SMALL:,}, backward: growth"
    ours_small, ours_large = _label(OURS, SMALL), _label(OURS, LARGE)
    yield row_of("indexed loop", what, samples, ours_large, ours_small, BAR)
    for n in (SMALL, LARGE):
        what = f"`s = s + x[i]**2`, n = {n:,}, backward"
        yield row_of("indexed loop", what, samples, _label(OURS, n), _label("PyTorch", n), None)


def _label(name: str, n: int) -> str:
    return f"{name}, n = {n:,}"


def _backward_seconds(x: Any) -> float:
    x.grad = None
    s = x[0] ** 2
    for i in range(1, len(x)):
        s = s + x[i] ** 2
    return time_once(s.backward)
