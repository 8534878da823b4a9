"""Floats that NumPy does not know: bfloat16 and the float8s of ml_dtypes.

ml_dtypes gives NumPy most ufuncs for them, but not the rest that makes a dtype: a Python number
turns bfloat16 into float32 or float64, a sum stops growing at 256, LAPACK and einsum refuse. So ops
compute in float32, and their results are rounded once, to the dtype that float16 would have in
their place. Rules of derivatives compute in float32 likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape.core.aval import Aval, aval_of

if TYPE_CHECKING:
    from gradtape.core.op import Op

FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)
# Users' functions and compiled ones decide for themselves what to do with a dtype.
_OWN_DTYPES = ("custom", "host", "graph", "control")


def is_narrow(value: Any) -> bool:
    """Whether a value (an array, a number, anything with a dtype) holds narrow floats."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.kind == "V"


def computes_wide(op: Op, derivatives: Any) -> bool:
    """Whether the rules of an op have to compute in float32, given (co)tangents: one or several."""
    if op.kind in _OWN_DTYPES:
        return False
    return (
        any(map(is_narrow, derivatives)) if type(derivatives) is tuple else is_narrow(derivatives)
    )


def widened(value: Any) -> Any:
    """A value as rules take it: converted to float32 if it is narrow, at whatever level."""
    if isinstance(value, tuple | list):
        return tuple(map(widened, value))
    if not is_narrow(value):
        return value
    return Aval(value.shape, FLOAT32) if isinstance(value, Aval) else value.astype(FLOAT32)


def infer_narrow(
    kind: str, infer: Callable[..., Any], avals: Sequence[Aval], params: dict[str, Any]
) -> Any:
    """The abstract result for narrow operands: that for float16, with the dtype renamed."""
    if kind in _OWN_DTYPES or "dtype" in params:
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


def evaluate_narrow(op: Op, xp: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run the forward of an op on raw values, some of them narrow."""
    # A result that shares memory with its operand must not be made from a copy.
    if op.kind in _OWN_DTYPES or op.aliases:
        return op.evaluate(xp, *operands, **params)
    if isinstance(op.fast, np.ufunc):
        out = _own_loop(op.fast, operands)
        if out is not None:
            return out
    out = op.evaluate(xp, *map(widened, operands), **params)
    results = (out,) if op.outputs == 1 else out
    if all(result.dtype.kind not in "fc" for result in results):
        return out
    avals = op.infer(*map(aval_of, operands), **params)
    if op.outputs == 1:
        return _rounded(out, avals.dtype)
    return tuple(_rounded(result, aval.dtype) for result, aval in zip(results, avals, strict=True))


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


def _rounded(result: Any, dtype: np.dtype[Any]) -> Any:
    """A float result rounded to the dtype it should have."""
    return (
        result if result.dtype == dtype or result.dtype.kind not in "fc" else result.astype(dtype)
    )
