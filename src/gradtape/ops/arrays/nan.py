"""Reductions that leave NaN out. Its gradient is 0, whatever the cotangent.

Where all elements are NaN, sums are 0, products are 1, and all others are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.where_moments import mean_of, prepared_where, squares_of, without_axes
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isnan, logical_not
from gradtape.ops.cumulative import cumprod, cumsum
from gradtape.ops.family import member
from gradtape.ops.moments import correction_of, root
from gradtape.ops.product import prod
from gradtape.ops.reduce import NO_AXIS, REDUCTIONS, prepared, sum as sum_of
from gradtape.ops.select import mask, where as where_of
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


def without_nan(x: ArrayLike, instead: float = 0) -> Any:
    """The array with a number in place of NaN, which has no gradient."""
    x = as_array(x)
    if x.dtype.kind not in "fcV":
        return x
    return where_of(isnan(x), instead, x) if instead else mask(x, logical_not(isnan(x)))


# ---- sums and products --------------------------------------------------------------------------


# How to combine elements, and the number that replaces NaN.
_COMBINE: dict[str, tuple[Callable[..., Any], int]] = {
    "nansum": (sum_of, 0),
    "nanprod": (prod, 1),
    "nancumsum": (cumsum, 0),
    "nancumprod": (cumprod, 1),
}


@options(REDUCTIONS, raises=NO_AXIS)
def _total(
    name: str,
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Array:
    """{what} of the elements that are not NaN.

    nansum:
    >>> gt.nansum(np.array([1.0, np.nan, 3.0]))
    np.float64(4.0)

    nanprod:
    >>> gt.nanprod(np.array([2.0, np.nan, 3.0]))
    np.float64(6.0)
    """
    x, axes = prepared(name, x, axis)
    combine, instead = _COMBINE[name]
    options = {"keepdims": keepdims, "initial": initial, "where": where}
    return combine(without_nan(x, instead), axes, dtype, **options)


@options(REDUCTIONS, raises=NO_AXIS)
def _running(name: str, x: ArrayLike, /, axis: int | None = None, dtype: Any = None) -> Array:
    """{what} of the elements up to each place, without those that are NaN.

    Args:
        axis: Along which axis; None goes along the flattened array.

    nancumsum:
    >>> gt.nancumsum(np.array([1.0, np.nan, 3.0]))
    array([1., 1., 4.])

    nancumprod:
    >>> gt.nancumprod(np.array([2.0, np.nan, 3.0]))
    array([2., 2., 6.])
    """
    combine, instead = _COMBINE[name]
    return combine(without_nan(x, instead), axis, dtype)


nansum = member("nansum", _total, what="Sum")
nanprod = member("nanprod", _total, what="Product")
nancumsum = member("nancumsum", _running, what="Sums")
nancumprod = member("nancumprod", _running, what="Products")


# ---- means and variances ------------------------------------------------------------------------


def _taking_part(
    name: str, x: ArrayLike, axis: Axis, dtype: Any, where: Any
) -> tuple[Array, Array, tuple[int, ...]]:
    """The array as floats, which of its elements take part, and the axes as a tuple."""
    x, taken, axes = prepared_where(name, x, axis, dtype, where is None or where)
    return x, taken & logical_not(isnan(x)), axes


@options(REDUCTIONS, raises=NO_AXIS)
def nanmean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
) -> Array:
    """Mean of the elements that are not NaN.

    >>> gt.nanmean(np.array([1.0, np.nan, 3.0]))
    np.float64(2.0)
    """
    x, taken, axes = _taking_part("nanmean", x, axis, dtype, where)
    return without_axes(mean_of(x, taken, axes), axes, keepdims)


@options(REDUCTIONS, raises=NO_AXIS)
def _spread(
    name: str,
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
) -> Array:
    """{what} of the elements that are not NaN.

    Where these are all equal the standard deviation has a kink; its gradient is taken as 0 there.

    Raises:
        ArgumentError: Both `ddof` and `correction` were given.

    nanvar:
    >>> gt.nanvar(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)

    nanstd:
    >>> gt.nanstd(np.array([1.0, np.nan, 3.0]))
    np.float64(1.0)
    """
    less = correction_of(name, ddof, correction)
    x, taken, axes = _taking_part(name, x, axis, dtype, where)
    variance = _variance(x, taken, axes, mean, less)
    return without_axes(variance if name == "nanvar" else root(variance), axes, keepdims)


nanvar = member("nanvar", _spread, what="Variance")
nanstd = member("nanstd", _spread, what="Standard deviation")


def _variance(x: Array, taken: Array, axes: tuple[int, ...], mean: Any, less: float) -> Any:
    """The variance around a mean, which is computed if not given; NaN for too few elements."""
    mean = mean_of(x, taken, axes) if mean is None else mean
    squares, count = squares_of(x, taken, axes, mean)
    left = count - less
    return astype(squares / where_of(left > 0, left, math.nan), squares.dtype, copy=False)
