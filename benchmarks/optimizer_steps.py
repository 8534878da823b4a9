"""Steps of optimizers after a backward pass: many small parameters, and a large one."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import gradtape as gt
from benchmarks import THREADS
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings, measure
from benchmarks.result import OURS, Row, row_of

RULES: dict[str, dict[str, Any]] = {"Adam": {}, "AdamW": {}, "SGD": {"momentum": 0.9}}
# The number of parameters, their size, and the bar.
CASES = ((1, 1_000, 0.7), (10, 1_000, 0.7), (100, 1_000, 0.7), (1, 1_000_000, 1.0))
# PyTorch's two ways to step many parameters at once; the faster one is the peer.
FORMS = ("fused", "foreach")
LR = 1e-3


def run(settings: Settings) -> Iterator[Row]:
    """Time `step()` on one thread."""
    before = gt.get_num_threads()
    gt.set_num_threads(THREADS)
    try:
        yield from _rows(settings)
    finally:
        gt.set_num_threads(before)


def _rows(settings: Settings) -> Iterator[Row]:
    for name, numbers in RULES.items():
        for count, size, bar in CASES:
            rng = np.random.default_rng(0)
            arrays = rng.normal(size=(2, count, size)).astype(np.float32)
            values, gradients = arrays[0], arrays[1]
            ours = _ours(name, numbers, values, gradients)
            theirs = {form: _torchs(name, numbers, form, values, gradients) for form in FORMS}
            contenders = [Contender(OURS, ours)]
            for form, optimizer in theirs.items():
                contenders.append(Contender(f"PyTorch, {form}", optimizer.step))
            samples = measure(contenders, settings)
            peer = min((c.name for c in contenders[1:]), key=lambda side: np.median(samples[side]))
            what = f"a step of {name}, {count} × {size:,} float32"
            yield row_of(f"{name}, {count} × {size:,}", what, samples, OURS, peer, bar)


def _ours(name: str, numbers: dict[str, Any], values: Any, gradients: Any) -> Any:
    params = [gt.tensor(x, requires_grad=True) for x in values]
    for param, gradient in zip(params, gradients, strict=True):
        gt.sum(param * gradient).backward()
    optimizer = getattr(gt.optim, name)(params, lr=LR, **numbers)
    reference = _torchs(name, numbers, FORMS[0], values, gradients)
    for _ in range(3):
        optimizer.step()
        reference.step()
    expected = torch.stack(list(reference.param_groups[0]["params"])).detach()
    assert_agree(f"steps of {name}", np.stack([x.detach() for x in params]), expected, rtol=1e-5)
    return optimizer.step


def _torchs(name: str, numbers: dict[str, Any], form: str, values: Any, gradients: Any) -> Any:
    params = [torch.tensor(x, requires_grad=True) for x in values]
    for param, gradient in zip(params, gradients, strict=True):
        (param * torch.tensor(gradient)).sum().backward()
    return getattr(torch.optim, name)(params, lr=LR, **numbers, **{form: True})
