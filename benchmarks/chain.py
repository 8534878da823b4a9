"""A long chain of small operations: what recording and walking one operation costs."""

from collections.abc import Iterator
from typing import Any

import autograd
import numpy as np
import torch

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare

STEPS = 500
SIZE = 10


def _chain(y: Any, w: Any, x: Any) -> Any:
    for _ in range(STEPS):
        y = y * w + x
    return y


def run(settings: Settings) -> Iterator[Row]:
    """Time `y = y*w + x`, y, w and x all tracked, forward and backward, per operation."""
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=SIZE), rng.uniform(0.9, 1.0, SIZE), rng.normal(size=SIZE)
    seed = np.ones(SIZE)

    leaves = [gt.tensor(a, requires_grad=True) for a in arrays]

    def ours() -> None:
        for leaf in leaves:
            leaf.grad = None
        _chain(*leaves).backward()

    torch_leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    torch_seed = torch.tensor(seed)

    def pytorch() -> None:
        for leaf in torch_leaves:
            leaf.grad = None
        _chain(*torch_leaves).backward(torch_seed)

    def hips() -> Any:
        vjp, _ = autograd.make_vjp(_chain, argnum=(0, 1, 2))(*arrays)
        return vjp(seed)

    ours()
    pytorch()
    for leaf, theirs, hips_grad in zip(leaves, torch_leaves, hips(), strict=True):
        assert_agree("chain", leaf.grad, theirs.grad)
        assert_agree("chain", leaf.grad, hips_grad)

    yield from compare(
        "chain",
        f"`y = y*w + x`, {SIZE} elements, {STEPS} steps, all tracked, "
        "forward + backward, time per op",
        Contender(OURS, ours),
        [(Contender("PyTorch eager", pytorch), 0.5), (Contender("HIPS autograd", hips), 0.2)],
        settings,
        per=2 * STEPS,
    )
