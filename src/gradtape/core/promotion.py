"""Promotion: the dtype NumPy computes in, as NumPy itself reports it.

Operands are described by their dtype and whether they are weak, as Python numbers are.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradtape.errors import UnsupportedError

DType = np.dtype[Any]
BOOL, INT64, UINT64 = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.uint64)
FLOAT16, FLOAT32, FLOAT64 = map(np.dtype, (np.float16, np.float32, np.float64))

# Dtypes with machine instructions; ops on others run their eager kernel.
NATIVE = frozenset(map(np.dtype, "?bhiqBHIQfd"))
Kinds = tuple[tuple[DType, bool], ...]


@functools.cache
def is_half(dtype: DType) -> bool:
    """Whether it is float16 or bfloat16: native code only loads, stores and converts these."""
    return dtype == FLOAT16 or (dtype.kind == "V" and dtype.name == "bfloat16")


def stored(dtype: DType) -> DType:
    """The dtype itself; raises for one that native code cannot even load and store."""
    return dtype if is_half(dtype) else native(dtype)


def native(dtype: DType) -> DType:
    """The dtype itself; raises for one without machine instructions."""
    if dtype not in NATIVE:
        raise UnsupportedError(f"no native code for {dtype}")
    return dtype


@functools.cache
def common_dtype(kinds: Kinds) -> DType:
    """The dtype that operands are promoted to."""
    operands = (dtype.type(1).item() if weak else dtype for dtype, weak in kinds)
    return native(np.result_type(*operands))


@functools.cache
def loop_dtype(name: str, kinds: Kinds) -> DType:
    """The dtype in which NumPy's function of this name, or else SciPy's, computes."""
    if all(weak for _, weak in kinds):
        kinds = tuple((dtype, False) for dtype, _ in kinds)
    ufunc = getattr(np, name, None)
    if ufunc is None:
        return _scipy_loop(name, {dtype for dtype, weak in kinds if not weak})
    operands = [type(dtype.type(1).item()) if weak else dtype for dtype, weak in kinds]
    try:
        return native(ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout))[0])
    except TypeError as error:
        raise UnsupportedError(f"no {name} of {', '.join(str(d) for d, _ in kinds)}") from error


def _scipy_loop(name: str, dtypes: set[DType]) -> DType:
    # Operands that fit both loops, float32 and float64, get the one that SciPy lists first.
    if len(dtypes) > 1 or not dtypes <= {FLOAT32, FLOAT64}:
        if all(np.can_cast(dtype, FLOAT32) for dtype in dtypes):
            raise UnsupportedError(f"no native code for {name} of {', '.join(map(str, dtypes))}")
        return FLOAT64
    return dtypes.pop()
