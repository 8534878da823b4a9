"""Values and gradients are those of PyTorch, in float64, wherever a case names its function.

Every op is compared with PyTorch, or `torch_without` says why not. PyTorch is not needed to work on
gradtape; `make test-torch` runs this file where it is installed.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import CASES, pulled, with_arrays
from gradtape import containers
from gradtape.core.op import registry
from opcall import Call, CheckInfer, is_floating
from opcases.case import At, OpCase
from torch_without import COMPARED_THROUGH, UNLIKE_AT, VALUE_ONLY, WITHOUT_PEER

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

COMPARED = [case for case in CASES if case.torch is not None]
POINTS = [(case, at) for case in COMPARED for at in case.at]


def ids(rows: Sequence[tuple[OpCase, Any]]) -> list[str]:
    return [f"{case.id}-{i}" for i, (case, _) in enumerate(rows)]


SAME = [(case, at) for case, at in POINTS if not at.unlike_torch]
UNLIKE = [(case, at) for case, at in POINTS if at.unlike_torch]
COMPLEX = [case for case in COMPARED if case.differentiable]
RTOL = 1e-10
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*degrees of freedom"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]
EPS = float(np.finfo(np.float64).eps)  # the rounding of results near 1, of which slopes are made


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


def compare(case: OpCase, args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Compare results, and gradients of a weighted sum of those that are floating.

    Returns whether PyTorch has gradients to compare with.
    """
    ours, theirs = Call(case.function, args, params), Torch(case, args, params)
    tensors = [torch.tensor(x, requires_grad=is_floating(x)) for x in theirs.arrays]
    outs = ours(*ours.arrays)
    expected = theirs(*tensors)
    assert len(outs) == len(expected)
    for out, other in zip(outs, expected, strict=True):
        assert_close(out, other, case.elementwise)
    function, floats = ours.differentiable()
    chosen = [other for other in expected if other.is_floating_point() or other.is_complex()]
    if not floats or not any(other.requires_grad for other in chosen):
        return False
    weights = [weights_for(other) for other in chosen]

    def total(*floats: Any) -> Any:
        terms = zip(function(*floats), weights, strict=True)
        return functools.reduce(gt.add, [gt.sum(gt.real(out * w)) for out, w in terms])

    loss = sum(
        torch.real(x * torch.tensor(w)).sum()
        for x, w in zip(chosen, weights, strict=True)
        if x.requires_grad
    )
    wanted = [x for x in tensors if x.requires_grad]
    theirs_grads = torch.autograd.grad(loss, wanted, allow_unused=True)
    grads = gt.grad(total, tuple(range(len(floats))))(*floats)
    for grad, other, x in zip(grads, theirs_grads, wanted, strict=True):
        assert_close(grad, torch.zeros_like(x) if other is None else other, case.elementwise)
    return True


def weights_for(out: Any) -> Any:
    """Numbers by which the elements of a result are told apart; complex ones if it is complex."""
    rng = np.random.default_rng(0)
    weights = np.asarray(rng.uniform(0.5, 1.5, tuple(out.shape)))
    return weights - 1j * rng.uniform(0.5, 1.5, out.shape) if out.is_complex() else weights


def assert_close(got: Any, expected: Any, elementwise: bool) -> None:
    """Each element by itself, or what comes of several numbers by the largest of its elements."""
    expected = expected.numpy(force=True)
    assert np.shape(got) == expected.shape
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    atol = EPS if elementwise else RTOL * min(size, 1e3)
    atol = atol if expected.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=atol)


@pytest.mark.parametrize("case", COMPARED, ids=[case.id for case in COMPARED])
def test_same_as_torch(case: OpCase) -> None:
    with np.errstate(all="ignore"):
        gradients = compare(case, case.args, case.params)
    assert gradients == (case.differentiable and case.id not in VALUE_ONLY)


@pytest.mark.parametrize(("case", "at"), SAME, ids=ids(SAME))
def test_same_as_torch_at_special_points(case: OpCase, at: At) -> None:
    with np.errstate(all="ignore"):
        compare(case, with_arrays(at.args), at.params)


@pytest.mark.parametrize(("case", "at"), UNLIKE, ids=ids(UNLIKE))
def test_unlike_torch_where_the_case_says_so(case: OpCase, at: At) -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        compare(case, with_arrays(at.args), at.params)


# ---- awkward numbers ----------------------------------------------------------------------------

EDGES = (0.0, -0.0, 5e-324, -1e-310, 1e-200, 0.5, 1.0, -1.0, 2.0, -2.0, 40.0, -40.0, 700.0, -700.0)
EDGES += (1e200, -1e200, 1e300, np.inf, -np.inf, np.nan)
FEW_EDGES = (0.0, -0.0, 1.0, -1.0, 3.0, 5e-324, 1e200, np.inf, -np.inf, np.nan)

# One case of each elementwise function of one or two arrays, with each of its parameters.
ELEMENTWISE = {
    (case.function, str(case.params)): case
    for case in COMPARED
    if case.elementwise and case.differentiable and len(case.args) < 3
    if all(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in case.args)
}.values()


def edges_for(case: OpCase) -> tuple[list[Any], list[Any]]:
    """Arguments at which a function is that of PyTorch, and those at which it means to differ."""
    count = len(case.args)
    grid = np.meshgrid(*[EDGES if count == 1 else FEW_EDGES] * count)
    args = [x.ravel() for x in grid]
    if case.function.__name__ not in UNLIKE_AT:
        return args, []
    unlike = UNLIKE_AT[case.function.__name__][0](*args)
    return [x[~unlike] for x in args], [x[unlike] for x in args]


@pytest.mark.parametrize("case", ELEMENTWISE, ids=[case.id for case in ELEMENTWISE])
def test_same_as_torch_at_the_edges(case: OpCase) -> None:
    with np.errstate(all="ignore"):
        same, unlike = edges_for(case)
        compare(case, same, case.params)
        if unlike:
            with pytest.raises(AssertionError):
                compare(case, [np.repeat(x, 16) for x in unlike], case.params)


# ---- complex numbers ----------------------------------------------------------------------------

REFUSED = re.compile("complex|not supported for the input types", re.IGNORECASE)


def with_imaginary_parts(args: Sequence[Any]) -> Any:
    """The arguments with complex arrays in place of those of floats."""
    rng = np.random.default_rng(1)

    def turned(x: Any) -> Any:
        chosen = isinstance(x, np.ndarray) and x.dtype == np.float64
        return np.asarray(x + 1j * rng.uniform(-1, 1, x.shape)) if chosen else x

    return containers.map_leaves(turned, tuple(args))


@pytest.mark.parametrize("case", COMPLEX, ids=[case.id for case in COMPLEX])
def test_same_as_torch_on_complex_numbers(case: OpCase) -> None:
    try:
        with np.errstate(all="ignore"):
            compare(case, with_imaginary_parts(case.args), case.params)
    except (TypeError, ValueError, RuntimeError, RuntimeWarning) as error:
        if not REFUSED.search(str(error)):
            raise
        pytest.skip("not both take complex numbers")


# ---- completeness -------------------------------------------------------------------------------


def test_every_op_is_compared_or_has_no_peer() -> None:
    compared = {name for case in COMPARED for name in case.names} | set(COMPARED_THROUGH)
    assert {op.name for op in registry} - compared == set(WITHOUT_PEER)


@pytest.mark.parametrize(("op", "function"), COMPARED_THROUGH.items())
def test_op_is_compared_through_the_function(op: str, function: str) -> None:
    mode = CheckInfer()
    for case in COMPARED:
        if case.function.__name__ == function and case.differentiable:
            differentiable, floats = Call(case.function, case.args, case.params).differentiable()
            with gt.using_mode(mode):  # gradients of gradients: modes see no ops on raw arrays
                gt.vjp(lambda *xs, f=differentiable: pulled(f, xs), *floats)
    assert op in mode.seen
