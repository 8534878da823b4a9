"""Checks that derivatives came out finite: made once at the end, so that rules need not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.aval import Abstract
from gradtape.core.kernels import LARGE, compute
from gradtape.core.needed_ops import needed
from gradtape.core.tensor import Tensor, innermost

_ALL = {"axis": (0,), "keepdims": False}
F64, F32 = np.dtype(np.float64), np.dtype(np.float32)


def is_finite(value: Any) -> bool:
    """Whether all elements are known to be finite; nothing is known about those of a trace."""
    raw = innermost(value, show=True) if isinstance(value, Tensor) else value
    if type(raw) is np.ndarray:
        dtype = raw.dtype
        if dtype is F64 or dtype is F32:
            # A fast check: finite only if all elements are; it may overflow by itself, of which
            # vdot does not warn.
            if raw.size >= LARGE:
                total = _sum(raw)
            else:
                row = raw if raw.ndim == 1 else _in_order(raw)
                total = np.vdot(row, row)
            if math.isfinite(total):
                return True
        elif dtype.kind == "V":
            raw = raw.astype(np.float32)
    elif isinstance(raw, Abstract):
        return False
    return bool(array_module(raw).isfinite(raw).all())


def _sum(array: Any) -> Any:
    """The sum of all elements, on our own threads: those of BLAS would keep spinning afterwards."""
    with np.errstate(all="ignore"):
        return compute(needed.sum_op, (_in_order(array),), _ALL)


def _in_order(array: Any) -> Any:
    """The elements of an array in memory order, repeated ones only once."""
    if not array.flags.c_contiguous:
        array = array[tuple(slice(None) if stride else slice(1) for stride in array.strides)]
    return array.ravel(order="K")


def is_plain_factor(x: Any) -> bool:
    """Whether a value that a rule reads is a number, as in `x * 2.0`, that cannot give 0·∞."""
    return type(x) in (int, float) and x != 0 and math.isfinite(x)


def is_traced(value: Any) -> bool:
    """Whether its elements are known only when a compiled function runs."""
    return isinstance(value, Tensor) and isinstance(innermost(value, show=True), Abstract)
