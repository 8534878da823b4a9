"""The functions of `np.emath`, which give complex numbers where real ones have no result.

The dtype of the result depends on values, which have to be known: `np.emath.sqrt(t)` raises inside
of `jit` and `vmap`. Use a complex argument there: `np.sqrt(t + 0j)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops import arithmetic, exponential, trigonometric
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_of
from gradtape.ops.cast import astype
from gradtape.typing import Array, ArrayLike


def _complex_if(outside: Callable[[Any], Any], x: ArrayLike) -> Any:
    """`x`, as complex numbers if it has a real element where the function is not real."""
    x = as_array(x)
    if x.dtype.kind == "c" or not np.any(outside(values_of(x))):
        return x
    small = x.dtype == np.float32 or (x.dtype.kind in "iu" and x.dtype.itemsize <= 2)
    return astype(x, np.complex64 if small else np.complex128)


def _negative(x: Any) -> Any:
    return x < 0


def _beyond_one(x: Any) -> Any:
    return np.absolute(x) > 1


def _extended(
    function: Callable[..., Any], outside: Callable[[Any], Any]
) -> Callable[[ArrayLike], Array]:
    """A function of one argument, extended to complex results where it is not real."""

    def extended(x: ArrayLike, /) -> Array:
        return function(_complex_if(outside, x))

    return extended


sqrt = _extended(exponential.sqrt, _negative)
log = _extended(exponential.log, _negative)
log2 = _extended(exponential.log2, _negative)
log10 = _extended(exponential.log10, _negative)
arccos = _extended(trigonometric.arccos, _beyond_one)
arcsin = _extended(trigonometric.arcsin, _beyond_one)
arctanh = _extended(trigonometric.arctanh, _beyond_one)


def logn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The logarithm of `x` to the base `n`."""
    return log(x) / log(n)


def power(x: ArrayLike, p: ArrayLike, /) -> Array:
    """`x` to the power `p`; integers in `p` become floating numbers if one is negative."""
    p = as_array(p)
    if p.dtype.kind in "iu" and np.any(values_of(p) < 0):
        p = p * 1.0
    return arithmetic.power(_complex_if(_negative, x), p)
