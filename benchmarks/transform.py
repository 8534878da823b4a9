"""The whole of a `gt.grad` call on a small function: its fixed cost."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare

SIZE = 10


def _ours(x: Any) -> Any:
    return gt.sum(gt.tanh(x) * x)


def _pytorch(x: torch.Tensor) -> torch.Tensor:
    return torch.sum(torch.tanh(x) * x)


def run(settings: Settings) -> Iterator[Row]:
    """Time `gt.grad(f)(array)` against PyTorch's forward and `backward()` on a leaf it has."""
    array = np.random.default_rng(0).normal(size=SIZE)
    leaf = torch.tensor(array, requires_grad=True)

    def ours() -> Any:
        return gt.grad(_ours)(array)

    def pytorch() -> torch.Tensor | None:
        leaf.grad = None
        _pytorch(leaf).backward()
        return leaf.grad

    assert_agree("grad", ours(), pytorch())
    yield from compare(
        "grad(f)(x)",
        f"`gt.grad(f)(x)`, f = sum(tanh(x)*x), {SIZE} elements, whole call",
        Contender(OURS, ours),
        [(Contender("PyTorch eager", pytorch), 0.7)],
        settings,
    )
