"""Floats that NumPy does not know: bfloat16 and the float8s of ml_dtypes.

ml_dtypes gives NumPy most ufuncs for them, but not the rest that makes a dtype: a Python number
turns bfloat16 into float32 or float64, a sum stops growing at 256, LAPACK and einsum refuse. So ops
compute in float32, and their results are rounded once, to the dtype that float16 would have in
their place. Rules of derivatives compute in float32 likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.lowering import Composite

if TYPE_CHECKING:
    from gradtape.core.op import Op

FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)
# Elements of arrays that are computed at a time where samples are computed one after the other.
_PART = 1 << 20
# `convert(array, dtype)` as `astype`, without a copy of an array that has the dtype.
Convert = Callable[[Any, np.dtype[Any]], Any]
# Kinds of ops that are computed in float32 if they are not one function of NumPy.
_COMPOSED = ("elementwise", "axiswise", "reduction")
# Users' functions and compiled ones decide for themselves what to do with a dtype.
OWN_DTYPES = ("custom", "host", "graph", "control")


def is_narrow(value: Any) -> bool:
    """Whether a value (an array, a number, anything with a dtype) holds narrow floats."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind == "V"


def is_slow(op: Op, values: Sequence[Any]) -> bool:
    """Whether an op is a product of float16, which NumPy takes hundreds of times longer for.

    In float32 its sums are more precise, too.
    """
    return op.kind == "contraction" and any(getattr(x, "dtype", None) == FLOAT16 for x in values)


def evaluates_wide(op: Op, values: Sequence[Any]) -> bool:
    """Whether the forward of an op has to compute in float32: not only for narrow values.

    An op of float16 may be made of several functions of NumPy, each of which would round.
    """
    for x in values:
        dtype = getattr(x, "dtype", None)
        if dtype is not None and dtype.kind == "V":
            return True
        if dtype == FLOAT16:
            if op.kind == "contraction" or isinstance(op.lower, Composite):
                return True
            closed = isinstance(op.fast, np.ufunc | BuiltinFunctionType)
            return op.kind in _COMPOSED and not closed
    return False


def computes_wide(op: Op, derivatives: Any) -> bool:
    """Whether the rules of an op have to compute in float32, given (co)tangents: one or several."""
    if op.kind in OWN_DTYPES:
        return False
    several = derivatives if type(derivatives) is tuple else (derivatives,)
    return any(map(is_narrow, several)) or is_slow(op, several)


def widened(value: Any) -> Any:
    """A value as rules take it: converted to float32 if it has 16 bits or less, at any level."""
    if isinstance(value, tuple | list):
        return tuple(map(widened, value))
    if not is_narrow(value) and getattr(value, "dtype", None) != FLOAT16:
        return value
    return Aval(value.shape, FLOAT32) if isinstance(value, Aval) else value.astype(FLOAT32)


def infer_narrow(
    kind: str, infer: Callable[..., Any], avals: Sequence[Aval], params: dict[str, Any]
) -> Any:
    """The abstract result for narrow operands: that for float16, with the dtype renamed."""
    if kind in OWN_DTYPES or "dtype" in params:
        return infer(*avals, **params)
    floats = {aval.dtype for aval in avals if not aval.weak and aval.dtype.kind in "fV"}
    narrow = floats.pop() if len(floats) == 1 else None
    # With other floats, two kinds of 8 or 16 bits have float32 in common, as NumPy has it.
    stand_in = FLOAT32 if narrow is None else FLOAT16
    result = infer(
        *(Aval(aval.shape, stand_in) if is_narrow(aval) else aval for aval in avals), **params
    )
    if narrow is None:
        return result
    return (
        _renamed(result, narrow)
        if isinstance(result, Aval)
        else tuple(_renamed(aval, narrow) for aval in result)
    )


def _renamed(aval: Aval, narrow: np.dtype[Any]) -> Aval:
    return Aval(aval.shape, narrow) if aval.dtype == FLOAT16 else aval


def evaluate_narrow(
    op: Op, xp: Any, operands: Sequence[Any], params: dict[str, Any], convert: Convert
) -> Any:
    """Run the forward of an op on raw values, some of them narrow, or a product of float16."""
    # A result that shares memory with its operand must not be made from a copy.
    if op.kind in OWN_DTYPES or op.aliases:
        return op.evaluate(xp, *operands, **params)
    if isinstance(op.fast, np.ufunc) and op.kind != "contraction":
        out = _own_loop(op.fast, operands)
        if out is not None:
            return out
    if op.facts.samples:
        result = op.infer(*map(aval_of, operands), **params)
        if parts := _sample_parts(operands, result):
            return _by_samples(op, xp, operands, params, parts, result.dtype, convert)
    wide = [convert(x, FLOAT32) if _is_small(x) else x for x in operands]
    out = op.evaluate(xp, *wide, **params)
    results = (out,) if op.outputs == 1 else out
    if all(result.dtype.kind not in "fc" for result in results):
        return out
    avals = op.infer(*map(aval_of, operands), **params)
    if op.outputs == 1:
        return _rounded(out, avals.dtype, convert)
    pairs = zip(results, avals, strict=True)
    return tuple(_rounded(result, aval.dtype, convert) for result, aval in pairs)


def _own_loop(ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    """The result of ml_dtypes' own loop, None without one: `nextafter` needs the narrow dtype."""
    dtypes = {operand.dtype for operand in operands if hasattr(operand, "dtype")}
    if len(dtypes) > 1 or any(type(operand) is complex for operand in operands):
        return None
    number = dtypes.pop().type
    try:
        return ufunc(*(x if hasattr(x, "dtype") else number(x) for x in operands))
    except TypeError:
        return None  # there is no such loop


def _rounded(result: Any, dtype: np.dtype[Any], convert: Convert) -> Any:
    """A float result rounded to the dtype it should have."""
    if result.dtype == dtype or result.dtype.kind not in "fc":
        return result
    return convert(result, dtype)


def _is_small(value: Any) -> bool:
    return is_narrow(value) or getattr(value, "dtype", None) == FLOAT16


# ---- some samples at a time ---------------------------------------------------------------------


def _sample_parts(operands: Sequence[Any], result: Aval) -> list[slice]:
    """The parts of large arrays to compute one after the other; none if all of it is small."""
    samples = len(operands[0])
    size = max(math.prod(result.shape), *(operand.size for operand in operands))
    step = max(1, _PART * samples // max(size, 1))
    return [slice(n, n + step) for n in range(0, samples, step)] if step < samples else []


def _by_samples(
    op: Op,
    xp: Any,
    operands: Sequence[Any],
    params: dict[str, Any],
    parts: Sequence[slice],
    dtype: np.dtype[Any],
    convert: Convert,
) -> Any:
    """Convert some samples, compute with these, round the result: little memory is in float32."""
    shared = [convert(x, FLOAT32) if _is_small(x) else x for x in operands[op.facts.samples :]]
    out: Any = None
    for part in parts:
        own = [convert(x[part], FLOAT32) for x in operands[: op.facts.samples]]
        made = op.evaluate(xp, *own, *shared, **params)
        if op.facts.sums_samples:
            out = made if out is None else out + made
            continue
        if out is None:
            shape = (len(operands[0]), *made.shape[1:])
            out = xp.empty_like(made, dtype=dtype, shape=shape)  # in the same order of axes
        out[part] = convert(made, dtype)
    return convert(out, dtype)
