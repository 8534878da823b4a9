"""Every op case compiled: the value and the gradient are those of eager code, in both dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import CASES, cast
from opcall import Call, is_floating, resolution
from opcases.case import OpCase

# How many results there are depends on the values of the arguments: these cannot be traced.
NOT_TRACED = frozenset({"nonzero", "argwhere", "flatnonzero", "count_nonzero"})


def value_and_pullback(call: Call) -> Callable[..., Any]:
    """The results, and the cotangents of the floating arguments for cotangents that vary."""
    function, _ = call.differentiable()

    def run(*arrays: Any) -> Any:
        floats = [array for array in arrays if is_floating(array)]
        if not floats:
            return call(*arrays), ()
        out, pullback = gt.vjp(lambda *xs: function(*xs), *floats)
        cts = [weights(value.shape).astype(value.dtype) for value in out]
        return call(*arrays), pullback(cts)

    return run


def weights(shape: tuple[int, ...]) -> Any:
    """Cotangents that tell elements apart."""
    return np.cos(np.arange(np.prod(shape, dtype=int)).reshape(shape) + 0.5)


def assert_close(got: Sequence[Any], expected: Sequence[Any], ulps: float) -> None:
    """Equal shapes and dtypes; values equal up to rounding, relative to the largest of them."""
    got, expected = gt.tree.flatten(got)[0], gt.tree.flatten(expected)[0]
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = ulps * resolution(other.dtype)
        finite = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * float(finite))


def of_every_op() -> list[Any]:
    """All cases that can be traced; slow are those that name no op which others before do not."""
    seen: set[str] = set()
    cases = []
    for case in CASES:
        if case.function.__name__ not in NOT_TRACED:
            marks = [pytest.mark.slow] if seen.issuperset(case.names) else []
            cases.append(pytest.param(case, id=case.id, marks=marks))
            seen.update(case.names)
    return cases


@pytest.mark.parametrize("case", of_every_op())
@pytest.mark.parametrize(
    "dtype",
    [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)],
    ids=["float64", "float32"],
)
def test_compiled(case: OpCase, dtype: Any, thorough: bool) -> None:
    if np.dtype(dtype) not in [np.dtype(d) for d in case.dtypes]:
        pytest.skip("the case has no such dtype")
    call = Call(case.function, cast(case.args, dtype), case.params)
    run = value_and_pullback(call) if case.differentiable else lambda *xs: (call(*xs), ())
    with np.errstate(all="ignore"):
        expected = run(*call.arrays)
    # Debug mode compiles every kernel once more, by itself.
    assert_close(gt.jit(run, debug=thorough)(*call.arrays), expected, 64)
