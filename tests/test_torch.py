"""Values and gradients are those of PyTorch, in float64, wherever a case names its function.

PyTorch is not needed to work on gradtape; `make test-torch` runs this file where it is installed.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from opcall import Call, is_floating
from opcases.case import At, OpCase
from test_ops import CASES, ids, with_arrays

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

COMPARED = [case for case in CASES if case.torch is not None]
POINTS = [(case, at) for case in COMPARED for at in case.at]
RTOL = 1e-10


class Torch(Call):
    """The same call in PyTorch, as a function of the arrays among its arguments."""

    def __init__(self, case: OpCase, args: Sequence[Any], params: dict[str, Any]) -> None:
        named = isinstance(case.torch, str)
        function = (
            operator.attrgetter(case.torch)(torch)
            if named
            else functools.partial(case.torch, torch)
        )
        super().__init__(function, args, params)


def compare(case: OpCase, args: Sequence[Any], params: dict[str, Any]) -> None:
    """Compare results, and gradients of a weighted sum of those that are floating."""
    ours, theirs = Call(case.function, args, params), Torch(case, args, params)
    tensors = [torch.tensor(x, requires_grad=is_floating(x)) for x in theirs.arrays]
    outs = ours(*ours.arrays)
    expected = theirs(*tensors)
    assert len(outs) == len(expected)
    for out, other in zip(outs, expected, strict=True):
        assert_close(out, other)
    function, floats = ours.differentiable()
    chosen = [other for other in expected if other.is_floating_point() or other.is_complex()]
    if not floats or not any(other.requires_grad for other in chosen):
        return
    rng = np.random.default_rng(0)
    weights = [np.asarray(rng.uniform(0.5, 1.5, tuple(other.shape))) for other in chosen]

    def total(*floats: Any) -> Any:
        terms = zip(function(*floats), weights, strict=True)
        return functools.reduce(gt.add, [gt.sum(gt.real(out) * w) for out, w in terms])

    loss = sum(
        (torch.real(x) * torch.tensor(w)).sum()
        for x, w in zip(chosen, weights, strict=True)
        if x.requires_grad
    )
    wanted = [x for x in tensors if x.requires_grad]
    theirs_grads = torch.autograd.grad(loss, wanted, allow_unused=True)
    grads = gt.grad(total, tuple(range(len(floats))))(*floats)
    for grad, other, x in zip(grads, theirs_grads, wanted, strict=True):
        assert_close(grad, torch.zeros_like(x) if other is None else other)


def assert_close(got: Any, expected: Any) -> None:
    expected = expected.detach().resolve_conj().numpy()
    assert np.shape(got) == expected.shape
    finite = np.abs(expected[np.isfinite(expected)])
    scale = finite.max(initial=1.0) if expected.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=RTOL * scale)


@pytest.mark.parametrize("case", COMPARED, ids=[case.id for case in COMPARED])
def test_same_as_torch(case: OpCase) -> None:
    with np.errstate(all="ignore"):
        compare(case, case.args, case.params)


@pytest.mark.parametrize(("case", "at"), POINTS, ids=ids(POINTS))
def test_same_as_torch_at_special_points(case: OpCase, at: At) -> None:
    with np.errstate(all="ignore"):
        compare(case, with_arrays(at.args), at.params)
