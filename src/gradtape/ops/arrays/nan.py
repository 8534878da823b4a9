"""Reductions that leave NaN out. Its gradient is 0, whatever comes back from above.

Where all elements are NaN, sums and products are those of nothing, and all others are NaN.
"""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.arguments import as_array, refuse
from gradtape.ops.arrays.where_moments import mean_of, prepared_where, squares_of, without_axes
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isnan, logical_not
from gradtape.ops.cumulative import cumprod, cumsum
from gradtape.ops.moments import correction_of, root
from gradtape.ops.product import prod
from gradtape.ops.reduce import prepared, sum as sum_of
from gradtape.ops.select import mask, where as where_of
from gradtape.typing import Array, ArrayLike, Axis


def without_nan(x: ArrayLike, instead: float = 0) -> Any:
    """The array with a number in place of NaN, which has no gradient."""
    x = as_array(x)
    if x.dtype.kind not in "fcV":
        return x
    return where_of(isnan(x), instead, x) if instead else mask(x, logical_not(isnan(x)))


# ---- sums and products --------------------------------------------------------------------------


def nansum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    **unsupported: Any,
) -> Array:
    """Sum of the elements that are not NaN, options as of `sum`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nansum(np.array([1.0, np.nan, 3.0]))
    np.float64(4.0)
    """
    x, axes = prepared("nansum", x, axis, None, unsupported)
    options = {"keepdims": keepdims, "initial": initial, "where": where}
    return sum_of(without_nan(x), axes, dtype, **options)


def nanprod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    **unsupported: Any,
) -> Array:
    """Product of the elements that are not NaN, options as of `sum`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nanprod(np.array([2.0, np.nan, 3.0]))
    np.float64(6.0)
    """
    x, axes = prepared("nanprod", x, axis, None, unsupported)
    options = {"keepdims": keepdims, "initial": initial, "where": where}
    return prod(without_nan(x, 1), axes, dtype, **options)


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
    return cumsum(without_nan(x), axis, dtype)


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
    return cumprod(without_nan(x, 1), axis, dtype)


# ---- means and variances ------------------------------------------------------------------------


def _taking_part(
    name: str, x: ArrayLike, axis: Axis, dtype: Any, where: Any, unsupported: dict[str, Any]
) -> tuple[Array, Array, tuple[int, ...]]:
    """The array as floats, which of its elements take part, and the axes as a tuple."""
    refuse(name, unsupported)
    x, taken, axes = prepared_where(name, x, axis, dtype, where is None or where)
    return x, taken & logical_not(isnan(x)), axes


def nanmean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
    **unsupported: Any,
) -> Array:
    """Mean of the elements that are not NaN, options as of `mean`.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nanmean(np.array([1.0, np.nan, 3.0]))
    np.float64(2.0)
    """
    x, taken, axes = _taking_part("nanmean", x, axis, dtype, where, unsupported)
    return without_axes(mean_of(x, taken, axes), axes, keepdims)


def nanvar(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
    **unsupported: Any,
) -> Array:
    """Variance of the elements that are not NaN, options as of `var`.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: Both `ddof` and `correction` were given.

    >>> gt.nanvar(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    less = correction_of("nanvar", ddof, correction)
    x, taken, axes = _taking_part("nanvar", x, axis, dtype, where, unsupported)
    return without_axes(_variance(x, taken, axes, mean, less), axes, keepdims)


def nanstd(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
    **unsupported: Any,
) -> Array:
    """Standard deviation of the elements that are not NaN, options as of `std`.

    Where these are all equal it has a kink; the gradient is taken as 0 there, as that of `std`.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: Both `ddof` and `correction` were given.

    >>> gt.nanstd(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    less = correction_of("nanstd", ddof, correction)
    x, taken, axes = _taking_part("nanstd", x, axis, dtype, where, unsupported)
    return without_axes(root(_variance(x, taken, axes, mean, less)), axes, keepdims)


def _variance(x: Array, taken: Array, axes: tuple[int, ...], mean: Any, less: float) -> Any:
    """The variance around a mean, which is computed if it is not given; NaN of too few elements."""
    mean = mean_of(x, taken, axes) if mean is None else mean
    squares, count = squares_of(x, taken, axes, mean)
    left = count - less
    return astype(squares / where_of(left > 0, left, math.nan), squares.dtype, copy=False)
