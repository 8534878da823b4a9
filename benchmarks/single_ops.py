"""Single operations of each kind on small arrays, forward and backward."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare


class Case(NamedTuple):
    """One operation: as text, the shapes of its arguments, our form and PyTorch's."""

    text: str
    shapes: tuple[tuple[int, ...], ...]
    ours: Callable[..., Any]
    pytorch: Callable[..., Any]


SMALL_BAR = 0.7
SMALL = (
    Case("gt.sum(x)", ((10,),), gt.sum, torch.sum),
    Case("a @ b", ((4, 4), (4, 4)), lambda a, b: a @ b, lambda a, b: a @ b),
    Case("x[1:]", ((10,),), lambda x: x[1:], lambda x: x[1:]),
    Case("x.reshape(2, 5)", ((10,),), lambda x: x.reshape(2, 5), lambda x: x.reshape(2, 5)),
    Case("np.tanh(x)", ((10,),), np.tanh, torch.tanh),
)


def run_small(settings: Settings) -> Iterator[Row]:
    """Time small arrays, where the cost of recording counts."""
    return _run(SMALL, SMALL_BAR, settings)


def _run(cases: tuple[Case, ...], bar: float | None, settings: Settings) -> Iterator[Row]:
    """Time `op(*leaves).backward()` for each case, gradients dropped before each call.

    A result that is not a scalar is seeded with ones: gradtape's backward() does so by itself,
    PyTorch is given a seed made beforehand, which spares it the making.
    """
    rng = np.random.default_rng(0)
    for case in cases:
        arrays = [rng.normal(size=shape) for shape in case.shapes]
        yield from _run_case(case, arrays, bar, settings)


def _run_case(
    case: Case, arrays: list[np.ndarray], bar: float | None, settings: Settings
) -> list[Row]:
    leaves = [gt.tensor(a, requires_grad=True) for a in arrays]
    ours = _unary(case.ours, leaves[0]) if len(leaves) == 1 else _binary(case.ours, *leaves)

    torch_leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    result = case.pytorch(*torch_leaves)
    seed = (torch.ones_like(result),) if result.ndim else ()
    if len(leaves) == 1:
        pytorch = _unary(case.pytorch, torch_leaves[0], *seed)
    else:
        pytorch = _binary(case.pytorch, *torch_leaves, *seed)

    ours()
    pytorch()
    for leaf, theirs in zip(leaves, torch_leaves, strict=True):
        assert_agree(case.text, leaf.grad, theirs.grad)
    shape = "×".join(map(str, case.shapes[0]))
    return compare(
        case.text,
        f"`{case.text}`, {shape} elements, forward + backward",
        Contender(OURS, ours),
        [(Contender("PyTorch eager", pytorch), bar)],
        settings,
    )


def _unary(op: Callable[[Any], Any], x: Any, *seed: Any) -> Callable[[], None]:
    def call() -> None:
        x.grad = None
        op(x).backward(*seed)

    return call


def _binary(op: Callable[[Any, Any], Any], a: Any, b: Any, *seed: Any) -> Callable[[], None]:
    def call() -> None:
        a.grad = None
        b.grad = None
        op(a, b).backward(*seed)

    return call
