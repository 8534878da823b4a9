"""Every lowering against the forward of its op: on the cases of `opcases`, and special values."""

from __future__ import annotations

import functools
import importlib
import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import gradtape as gt
from every_case import CASES, MODULES, cast, pulled
from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval, aval_of
from gradtape.core.lowering import (
    Composite,
    Elements,
    Matrices,
    Pointwise,
    Reduction,
    Scan,
    Scatter,
)
from gradtape.core.op import Op, registry
from gradtape.core.promotion import NATIVE
from gradtape.core.scalar import Scalar
from gradtape.errors import ShapeError, UnsupportedError
from gradtape.ops.assign import assign
from gradtape.ops.index import basic_index, getitem_basic, put
from lowering_interpreter import ELEMENTARY, Collect, Operand, Sample, evaluate, interpret
from opcall import Call, as_tensors, noting
from random_indices import indexed_arrays

TABLES = [importlib.import_module(f"opcases.{name}") for name in MODULES]
# What runs its eager forward inside compiled functions, and why.
WITHOUT = dict.fromkeys((op.name for op in registry if op.effect == "random"), "has a state")
# Floating functions that are made of others in their expression, and not NumPy's own, and by how
# many units of the last place they may differ from it.
ULPS: dict[str, int] = {}
for table in TABLES:
    WITHOUT |= getattr(table, "NOT_NATIVE", {})
    ULPS |= getattr(table, "ULPS", {})
# Sums that may be small: units are those of the operands.
CANCELS = {"logaddexp", "logaddexp2"}
# SciPy's own error grows with the square of the argument in double precision.
STEEP = {"ndtr", "gelu"}
# A zero may have either sign: NumPy's own depends on where in the array it stands.
EITHER_ZERO = {
    *("maximum", "minimum", "fmax", "fmin", "clip", "clip_below", "clip_above", "max", "min"),
    *("relu", "relu6"),
}

OPS = [op for op in registry if op.lower is not None]
FORMS = sorted({type(op.lower) for op in OPS}, key=str)


Calls = dict[str, list[Sample]]


def of_form(*forms: type) -> pytest.MarkDecorator:
    """Run a test once for each form of lowerings: it goes through the ops of that form itself.

    A test for each op would be a thousand tests, which take longer than what they check; and calls
    are collected by every process that runs some of them.
    """
    chosen = {form.__name__: [op for op in OPS if isinstance(op.lower, form)] for form in forms}
    assert all(chosen.values())
    return pytest.mark.parametrize("ops", chosen.values(), ids=chosen)


def test_ops_without_lowering_are_listed() -> None:
    assert {op.name for op in registry if op.lower is None} == set(WITHOUT)


# ---- the calls of all cases ---------------------------------------------------------------------


# Their derivatives take as long as those of all others, and lead to hardly a call of their own.
OF_KNOWN_OPS = {"special_gamma"}


@pytest.fixture(scope="module")
def calls(thorough: bool) -> Calls:
    """Every call the cases lead to: of the functions, and of their first two derivatives.

    If not thorough, a case is differentiated in one precision, and the next one in the other.
    """
    mode = Collect()
    known = {
        id(case)
        for name in OF_KNOWN_OPS
        for case in importlib.import_module(f"opcases.{name}").CASES
    }
    with gt.using_mode(mode), np.errstate(all="ignore"):
        for number, case in enumerate(CASES):
            precisions: tuple[Any, ...] = (np.float64, np.float32)
            if not thorough:
                skipped = case.composed or id(case) in known
                precisions = () if skipped else (precisions[number % 2],)
            for dtype in {*case.dtypes, np.float32}:
                call = Call(case.function, cast(case.args, dtype), case.params)
                with warnings.catch_warnings(action="ignore"):
                    call(*as_tensors(call.arrays))
                if dtype in precisions and case.differentiable:
                    function, floats = call.differentiable()
                    gt.jvp(lambda *xs, f=function: pulled(f, xs), floats, floats)
        for op in OPS:
            if isinstance(op.lower, Composite):
                for sample in list(mode.samples[op.name].values()):
                    if sample.native and all(np.size(x) for x in sample.operands):
                        op.lower.function(*map(gt.Tensor, sample.operands), **sample.params)
    return {name: list(found.values()) for name, found in mode.samples.items()}


# ---- comparison ---------------------------------------------------------------------------------


def assert_equal(op: Op, got: Any, expected: Any, operands: Any) -> None:
    """Bit for bit where an op only moves, compares or computes exactly; else within rounding."""
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    sums = isinstance(op.lower, Composite | Reduction) or op.name in ("matmul", "recurrence")
    if expected.dtype.kind not in ("fc" if sums else "f"):
        np.testing.assert_array_equal(got, expected)
    elif isinstance(op.lower, Matrices):
        far = beyond_matrices(got, expected, operands)
        assert not far.any(), f"{op.name}: got {got}, expected {expected}"
    elif sums:
        eps = 32 * np.finfo(expected.dtype).eps
        np.testing.assert_allclose(got, expected, rtol=eps, atol=eps)
    else:
        far = beyond(op, got, expected, operands)
        assert not far.any(), f"{op.name}: got {got[far]}, expected {expected[far]}"


def beyond_matrices(got: Any, expected: Any, operands: Any) -> Any:
    """Where two results of ops on matrices differ by more than the condition explains."""
    shapes = [x.shape for x in operands if x.ndim > 1 and x.shape[-1] == x.shape[-2]]
    squares = [x for x in operands if x.ndim > 1 and x.shape[-1] == x.shape[-2]]
    condition = max((np.linalg.cond(x).max() for x in squares), default=1.0)
    size = max(np.abs(expected[np.isfinite(expected)]).max(initial=0), 1e-300)
    if not condition < 1e8:  # as large as a product of its elements
        condition = 1.0
        size = max(size, *(np.abs(x).max() ** x.shape[-1] for x in squares))
    bound = 16 * max(shapes[0] if shapes else (1,)) * np.finfo(expected.dtype).eps * condition
    with np.errstate(all="ignore"):
        far = np.asarray(np.abs(got - expected) > bound * size)
    return far | (np.isfinite(got) != np.isfinite(expected))


def beyond(op: Op, got: Any, expected: Any, operands: Any) -> Any:
    """Where two results differ by more than the rounding that an op is allowed."""
    with np.errstate(all="ignore"):
        size = np.abs(expected)
        if op.name in CANCELS:
            size = functools.reduce(np.fmax, map(np.abs, operands), size).astype(size.dtype)
        if op.name in STEEP and expected.dtype == np.float64:
            size = size * (1 + np.clip(np.asarray(operands[0], np.float64), -40, 40) ** 2)
        far = np.abs(got - expected) > ULPS.get(op.name, 0) * np.spacing(size)
        far = np.asarray(far | (~np.isfinite(expected) & (got != expected)))
        far[np.isnan(expected) & np.isnan(got)] = False
        if op.name not in EITHER_ZERO:
            far |= (expected == 0) & (got == 0) & (np.signbit(got) != np.signbit(expected))
    return far


def forward(op: Op, operands: Any, params: dict[str, Any]) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return op.evaluate(np, *operands, **params)


def may_lack_code(op: Op, operands: Any, params: dict[str, Any]) -> bool:
    """Whether an op may have no native code for these operands, of dtypes that are native."""
    avals = [aval_of(x) for x in operands]
    if op.name in ("concatenate", "stack"):
        return len(operands) > 32
    if isinstance(op.lower, Matrices) and not op.lower.fits(*avals, **params):
        return True
    out = op.infer(*avals, **params)
    first = out if isinstance(out, Aval) else out[0]
    if first.dtype not in NATIVE or any(0 in aval.shape for aval in avals):
        return True
    if op.name == "where":  # a negative number beside unsigned ones
        return avals[1].weak or avals[2].weak
    if op.name == "clip":
        return abs(params["high"]) > np.iinfo(avals[0].dtype).max
    if op.name == "polygamma" and params["order"] > 2:
        return True
    if op.name in ("power", "reciprocal", "round"):
        return all(aval.dtype.kind in "biu" for aval in avals)
    # Functions take integers of 8 bits to half precision, and SciPy those of 16 bits to either one.
    small = any(aval.dtype.kind in "biu" and aval.dtype.itemsize < 4 for aval in avals)
    return small and op.name in {*ELEMENTARY, *ULPS}


# ---- all cases ----------------------------------------------------------------------------------


@of_form(*FORMS)
def test_lowering_equals_forward(ops: list[Op], calls: Calls) -> None:
    for op in ops:
        with noting(f"of {op.name}"):
            check_lowering(op, calls[op.name])


def check_lowering(op: Op, samples: list[Sample]) -> None:
    if isinstance(op.lower, Matrices) and op.lower.small is None:
        return  # nothing but calls of LAPACK: see test_library_calls.py
    checked = 0
    for sample in samples:
        try:
            got = interpret(op, *sample)
        except UnsupportedError:
            assert not sample.native or may_lack_code(op, *sample), f"{op.name} has no code"
        else:
            expected = forward(op, *sample)
            pairs = [(got, expected)] if op.outputs == 1 else zip(got, expected, strict=True)
            for one, other in pairs:
                assert_equal(op, one, other, sample.operands)
            checked += 1
    assert checked


@of_form(Pointwise, Elements, Reduction, Scan, Scatter, Composite, Matrices)
def test_dtypes_that_are_not_native_are_refused(ops: list[Op], calls: Calls) -> None:
    for op in ops:
        for sample in calls[op.name]:
            if not sample.native:
                with (
                    noting(f"of {op.name}"),
                    pytest.raises(UnsupportedError, match="no native code"),
                ):
                    interpret(op, *sample)


@of_form(Composite)
def test_compositions_are_made_of_ops_with_lowerings(ops: list[Op], calls: Calls) -> None:
    for op in ops:
        for sample in calls[op.name]:
            if sample.native and all(np.size(x) for x in sample.operands):
                mode = Collect()
                with gt.using_mode(mode), np.errstate(all="ignore"):
                    op.lower.function(*map(gt.Tensor, sample.operands), **sample.params)
                assert not {*WITHOUT, op.name} & set(mode.samples), op.name


# ---- special values -----------------------------------------------------------------------------

FLOATS = np.array(
    [
        *(np.nan, np.inf, 0.0, -0.0, 1.0, 0.5, 2.0, 2.5, 3.0, 7.25, 1e-3, 1e-310, 1e-40, 1e10),
        *(1e30, 3e38, 1e300, 6.0, 9.5, 13.0, 37.5, 88.5, 103.0, 710.0, 745.0),
    ]
)
WEAK_INTEGERS = (0, 1, -1, 2, 3, 4, 5, -3, 300)
WEAK_FLOATS = (0.0, -0.0, 0.5, 2.0, 3.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e300)
NUMBERS = {2, -3, 300, 0.5, -np.inf, 1e300}
DTYPES = sorted(NATIVE, key=str)
# One of each kind, the narrowest and the widest; which dtype a pair has is not up to the op. These
# ops are tried with every pair of dtypes all the same.
FEWER = [np.dtype(code) for code in "?BiqQfd"]
FEWER_WEAK = (0, 2, -3, 300, -0.0, 0.5, -np.inf, np.nan, 1e300)
WITH_EVERY_PAIR = {"add", "remainder", "power", "less", "maximum", "where"}


def special_values(dtype: Any) -> Any:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.concatenate([FLOATS, -FLOATS]).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([n for n in (low, high, -7, -1, 0, 1, 2, 3, 6, 100) if low <= n], dtype)


@functools.cache
def special_operands(count: int, every_pair: bool) -> list[tuple[Any, ...]]:
    """All pairs of special values, in all pairs of dtypes, and beside numbers of Python's."""
    dtypes = DTYPES if every_pair else FEWER
    weak = (*WEAK_INTEGERS, *WEAK_FLOATS) if every_pair else FEWER_WEAK
    kinds: list[Any] = [[*dtypes, *weak]] * count
    if count == 1:
        kinds = [DTYPES]
    elif count == 3:  # the first one is a condition
        kinds = [[np.dtype("?"), np.dtype("f")], [*dtypes, 2, -3, 0.5], [*dtypes, -1, 0.5]]
    found = []
    for chosen in itertools.product(*kinds):
        arrays = [special_values(kind) for kind in chosen if isinstance(kind, np.dtype)]
        grid = iter([np.ravel(x).copy() for x in np.meshgrid(*arrays)])
        if arrays:
            found.append(tuple(next(grid) if isinstance(k, np.dtype) else k for k in chosen))
    return found


@pytest.mark.parametrize("known", [True, False], ids=["constants", "arguments"])
@of_form(Pointwise)
def test_special_values(ops: list[Op], calls: Calls, known: bool, thorough: bool) -> None:
    for op in ops:
        with noting(f"of {op.name}"):
            every_pair = thorough or op.name in WITH_EVERY_PAIR
            check_special_values(op, calls[op.name], known, every_pair)


def check_special_values(op: Op, samples: list[Sample], known: bool, every_pair: bool) -> None:
    forms = {(len(x), str(params)): (len(x), params) for x, params in samples}
    for count, params in forms.values():
        for operands in special_operands(count, every_pair):
            # Older releases of NumPy give int8 for truth values to the power 2.0, as for 2.
            if params.get("exponent") == 2 and aval_of(operands[0]).dtype == np.bool_:
                continue
            # Only of a power that is known it is known that it is a square root.
            numbers = NUMBERS - {0.5} if op.name == "power" else NUMBERS
            if known or numbers & {x for x in operands if aval_of(x).weak}:
                check_special(op, operands, params, known)


def check_special(op: Op, operands: Any, params: dict[str, Any], known: bool) -> None:
    try:
        expected = forward(op, operands, params)
    except (TypeError, ValueError, OverflowError):
        # What raises eagerly is left to the forward: by the shape rule, or by the lowering.
        with pytest.raises((TypeError, ValueError, OverflowError)):
            interpret(op, operands, params, known=known)
        return
    try:
        got = interpret(op, operands, params, known=known)
    except UnsupportedError:
        unsure = not known and any(aval_of(x).dtype.kind in "iu" for x in operands)
        assert unsure or may_lack_code(op, operands, params), [aval_of(x) for x in operands]
    else:
        assert_equal(op, got, expected, operands)


ROWS = np.array(
    [
        [1.0, -2.0, 3.0, 3.0],
        [1.0, np.inf, 3.0, np.inf],
        [-np.inf, 2.0, -np.inf, 0.0],
        [-np.inf] * 4,
        [np.nan, 1.0, np.inf, 2.0],
        [1e4, 1e-30, -1e4, 9e3],
        [0.0, -0.0, 0.0, -0.0],
    ]
)


@of_form(Composite, Reduction)
def test_special_rows(ops: list[Op], calls: Calls) -> None:
    for op in ops:
        with noting(f"of {op.name}"):
            check_special_rows(op, calls[op.name])


def check_special_rows(op: Op, samples: list[Sample]) -> None:
    whole = np.array([[1, 0, 3, 3], [-5, 2, 2, 7], [2**62, 2**62, 2**62, 7]])
    for _, params in samples:
        if params.get("axis") not in ((0,), (1,)):
            continue
        for rows in (ROWS, ROWS.astype(np.float32), whole, whole.astype(np.int16), whole > 1):
            if op.name in ("vector_norm", "extreme_shares") and rows.dtype.kind != "f":
                continue  # never called with integers: infer has no dtype for them
            got = interpret(op, (rows,), params)
            assert_equal(op, got, forward(op, (rows,), params), (rows,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", [registry["floor_divide"], registry["remainder"]], ids=str)
def test_quotients_that_are_almost_whole(op: Op, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=2000) * 10.0 ** rng.integers(-5, 20, 2000)).astype(dtype)
    y = (rng.normal(size=2000) * 10.0 ** rng.integers(-5, 5, 2000)).astype(dtype)
    assert_equal(op, interpret(op, (x, y), {}), forward(op, (x, y), {}), (x, y))


# ---- indices ------------------------------------------------------------------------------------


@given(indexed_arrays())
def test_basic_indices(case: tuple[Any, Any]) -> None:
    x, index = case
    items = basic_index(index)
    if items is not None:
        check_index(x, items)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_slices(step: int) -> None:
    bounds = (None, -6, -4, -1, 0, 1, 3, 6)
    for start, stop in itertools.product(bounds, bounds):
        check_index(np.arange(1.0, 6.0), (slice(start, stop, step),))


def check_index(x: Any, index: tuple[Any, ...]) -> None:
    """What reads, puts and writes the part that a basic index takes."""
    part = np.asarray(x[index])
    whole = {"shape": x.shape, "index": index}
    for function, operands, params in (
        (getitem_basic, (x,), {"index": index}),
        (put, (part,), whole),
        (assign, (x, part + 1), {"index": index}),
        (assign, (x, 2), {"index": index}),
    ):
        got = interpret(function.op, operands, params)
        np.testing.assert_array_equal(got, forward(function.op, operands, params))


def test_a_number_is_spread_over_any_axes() -> None:
    op, operands = registry["spread"], (np.array(2.0),)
    for keepdims in (False, True):
        params = {"shape": (2, 3), "axis": (1,), "keepdims": keepdims}
        np.testing.assert_array_equal(interpret(op, operands, params), np.full((2, 3), 2.0))


@pytest.mark.parametrize("op", [registry["crop"], registry["getitem"], registry["flip"]], ids=str)
def test_views_are_read_at_affine_indices(op: Op, calls: Calls) -> None:
    operands, params = next(sample for sample in calls[op.name] if sample.operands[0].ndim == 2)
    names: set[str] = set()

    class Watched(Operand):
        def __call__(self, *index: Any, inside: Scalar | None = None) -> Scalar:
            names.update(k.name for k in index if isinstance(k, Scalar))
            assert inside is None
            return super().__call__(*index)

    out = op.infer(*map(aval_of, operands), **params)
    axes = tuple(Scalar("axis", (), promotion.INT64, extra=np.zeros(())) for _ in out.shape)
    assert isinstance(op.lower, Elements)
    op.lower.expression(axes, *map(Watched, operands), **params)
    assert names <= {"axis", "constant", "add", "subtract", "multiply"}


# ---- errors, and the interpreter itself ---------------------------------------------------------


@pytest.mark.parametrize("function", [gt.max, gt.min])
def test_shape_rules_refuse_extremes_of_nothing(function: Any) -> None:
    op = registry[function.__name__]
    with pytest.raises(ShapeError, match="expected at least one element"):
        op.infer(Aval((0, 3), np.dtype(float)), axis=(0,), keepdims=False)
    assert op.infer(Aval((0, 3), np.dtype(float)), axis=(1,), keepdims=False).shape == (0,)


def test_a_number_that_does_not_fit_is_refused() -> None:
    x = Scalar("argument", (), np.dtype(np.int8), extra=np.array([1], np.int8))
    with pytest.raises(UnsupportedError, match="300 may be out of bounds for int8"):
        x + 300
    assert evaluate(x < 300)
    assert not evaluate(x > 300)
    assert not evaluate(scalar.less(300, x))


def test_the_interpreter_refuses_to_read_outside() -> None:
    k = Scalar("axis", (), promotion.INT64, extra=np.arange(4))
    x = Operand(np.arange(3.0))
    with pytest.raises(AssertionError, match="outside"):
        evaluate(x(k))
    np.testing.assert_array_equal(evaluate(x(k, inside=k < 3)), [0.0, 1.0, 2.0, 0.0])


def test_the_interpreter_refuses_mixed_dtypes() -> None:
    x = Scalar("argument", (), np.dtype(np.float32), extra=np.ones(2, np.float32))
    with pytest.raises(AssertionError, match="add of"):
        evaluate(Scalar("add", (x, scalar.constant(1.0, np.dtype(float))), np.dtype(float)))
    with pytest.raises(AssertionError, match="argument is float32, not float64"):
        evaluate(Scalar("argument", (), np.dtype(float), extra=x.extra))
