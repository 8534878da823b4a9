"""Reductions that leave NaN out. Its gradient is 0, whatever comes back from above.

Where all elements are NaN, sums and products are those of nothing, and all others are NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import public
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, refuse
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isnan, logical_not
from gradtape.ops.cumulative import cumprod, cumsum
from gradtape.ops.exponential import sqrt
from gradtape.ops.product import prod
from gradtape.ops.reduce import (
    Axes,
    count_over,
    floats,
    prepared,
    sum_over,
)
from gradtape.ops.select import mask, where
from gradtape.typing import Array, ArrayLike, Axis

_INEXACT = "fcV"


def without_nan(x: Any, instead: float = 0) -> Any:
    """The array with a number in place of NaN, which has no gradient."""
    if x.dtype.kind not in _INEXACT:
        return x
    return where(isnan(x), instead, x) if instead else mask(x, isnan(x) ^ True)


def _count(x: Any, axes: Axes, keepdims: bool) -> Any:
    """How many elements are not NaN, in the dtype of a mean."""
    if x.dtype.kind not in _INEXACT:
        return count_over(x.shape, axes)
    real = np.empty(0, x.dtype).real.dtype
    return sum_over(astype(logical_not(isnan(x)), real), axis=axes, keepdims=keepdims)


# ---- sums and products --------------------------------------------------------------------------


@public(np.nansum)
def nansum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    **unsupported: Any,
) -> Array:
    """Sum of the elements that are not NaN, options as of `sum`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nansum(np.array([1.0, np.nan, 3.0]))
    np.float64(4.0)
    """
    x, axes = prepared("nansum", x, axis, dtype, unsupported)
    return sum_over(without_nan(x), axis=axes, keepdims=bool(keepdims))


@public(np.nanprod)
def nanprod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    **unsupported: Any,
) -> Array:
    """Product of the elements that are not NaN, options as of `sum`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nanprod(np.array([2.0, np.nan, 3.0]))
    np.float64(6.0)
    """
    x, axes = prepared("nanprod", x, axis, dtype, unsupported)
    return prod(without_nan(x, 1), axes, keepdims=bool(keepdims))


@public(np.nancumsum)
def nancumsum(
    x: ArrayLike, /, axis: int | None = None, dtype: Any = None, **unsupported: Any
) -> Array:
    """Sums of the elements up to each place, NaN counted as 0; options as of `cumsum`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nancumsum(np.array([1.0, np.nan, 3.0]))
    array([1., 1., 4.])
    """
    refuse("nancumsum", unsupported)
    return cumsum(without_nan(as_array(x)), axis, dtype)


@public(np.nancumprod)
def nancumprod(
    x: ArrayLike, /, axis: int | None = None, dtype: Any = None, **unsupported: Any
) -> Array:
    """Products of the elements up to each place, NaN counted as 1; options as of `cumprod`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nancumprod(np.array([2.0, np.nan, 3.0]))
    array([2., 2., 6.])
    """
    refuse("nancumprod", unsupported)
    return cumprod(without_nan(as_array(x), 1), axis, dtype)


# ---- means and variances ------------------------------------------------------------------------


@public(np.nanmean)
def nanmean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    **unsupported: Any,
) -> Array:
    """Mean of the elements that are not NaN, options as of `mean`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nanmean(np.array([1.0, np.nan, 3.0]))
    np.float64(2.0)
    """
    x, axes = prepared("nanmean", x, axis, dtype, unsupported)
    return _mean(floats(x), axes, bool(keepdims))


def _mean(x: Any, axes: Axes, keepdims: bool) -> Any:
    return sum_over(without_nan(x), axis=axes, keepdims=keepdims) / _count(x, axes, keepdims)


def _variance(
    name: str, x: Any, axis: Axis, dtype: Any, keepdims: bool, less: float, unsupported: Any
) -> Any:
    x, axes = prepared(name, x, axis, dtype, unsupported)
    x = floats(x)
    around = without_nan(x - _mean(x, axes, True))
    if x.dtype.kind == "c":
        squares = around.real * around.real + around.imag * around.imag
    else:
        squares = around * around
    count = _count(x, axes, keepdims) - less
    total = sum_over(squares, axis=axes, keepdims=keepdims)
    if isinstance(count, int | float):
        return total / (count if count > 0 else math.nan)
    return total / where(count > 0, count, math.nan)


def _correction(name: str, ddof: float, correction: float | None) -> float:
    if correction is not None and ddof != 0:
        raise ArgumentError(f"{name}: came ddof= and correction=; needed one of them")
    return ddof if correction is None else correction


@public(np.nanvar)
def nanvar(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    **unsupported: Any,
) -> Array:
    """Variance of the elements that are not NaN, options as of `var`.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: Both `ddof` and `correction` were given.

    >>> gt.nanvar(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    less = _correction("nanvar", ddof, correction)
    return _variance("nanvar", x, axis, dtype, bool(keepdims), less, unsupported)


@public(np.nanstd)
def nanstd(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    **unsupported: Any,
) -> Array:
    """Standard deviation of the elements that are not NaN, options as of `std`.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: Both `ddof` and `correction` were given.

    >>> gt.nanstd(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    less = _correction("nanstd", ddof, correction)
    variance = _variance("nanstd", x, axis, dtype, bool(keepdims), less, unsupported)
    # At its kink, where all elements are equal, the root has a slope of 0 as that of `std`.
    equal = variance == 0
    root = mask(sqrt(where(equal, 1, variance)), equal ^ True)
    return root[()] if isinstance(root, np.ndarray) else root
