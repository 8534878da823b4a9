"""The functions of `np.emath`, which give complex numbers where real ones have no result.

Which they give depends on values, so that these have to be known: `np.emath.sqrt(t)` raises inside
of `jit` and `vmap`. There a complex argument says the same: `np.sqrt(t + 0j)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import answers
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import power as power_of
from gradtape.ops.arrays.known import values_of
from gradtape.ops.cast import astype
from gradtape.ops.exponential import log as log_of, log2 as log2_of, log10 as log10_of, sqrt
from gradtape.ops.trigonometric import arccos, arcsin, arctanh
from gradtape.typing import Array, ArrayLike


def _complex_if(outside: Callable[[Any], Any], x: ArrayLike) -> Any:
    """`x`, as complex numbers if one of real ones is outside of where a function is real."""
    x = as_array(x)
    if x.dtype.kind == "c" or not np.any(outside(values_of(x))):
        return x
    small = x.dtype == np.float32 or (x.dtype.kind in "iu" and x.dtype.itemsize <= 2)
    return astype(x, np.complex64 if small else np.complex128)


def _negative(x: Any) -> Any:
    return x < 0


def _beyond_one(x: Any) -> Any:
    return np.absolute(x) > 1


def _extended(original: Any, function: Callable[..., Any], outside: Callable[[Any], Any]) -> None:
    """Answer for a function of one argument."""

    def extended(x: ArrayLike, /) -> Array:
        return function(_complex_if(outside, x))

    answers(original)(extended)


_extended(np.emath.sqrt, sqrt, _negative)
_extended(np.emath.log, log_of, _negative)
_extended(np.emath.log2, log2_of, _negative)
_extended(np.emath.log10, log10_of, _negative)
_extended(np.emath.arccos, arccos, _beyond_one)
_extended(np.emath.arcsin, arcsin, _beyond_one)
_extended(np.emath.arctanh, arctanh, _beyond_one)


@answers(np.emath.logn)
def _logn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The logarithm of `x` to the base `n`."""
    return log_of(_complex_if(_negative, x)) / log_of(_complex_if(_negative, n))


@answers(np.emath.power)
def _power(x: ArrayLike, p: ArrayLike, /) -> Array:
    """`x` to the power `p`; integers in `p` are taken as floating numbers if one is negative."""
    p = as_array(p)
    if p.dtype.kind in "iu" and np.any(values_of(p) < 0):
        p = p * 1.0
    return power_of(_complex_if(_negative, x), p)
