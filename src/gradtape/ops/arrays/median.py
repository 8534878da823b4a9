"""Medians."""

from __future__ import annotations

import math

import numpy as np

from gradtape.ops.arguments import as_array, normalize_axes, refuse
from gradtape.ops.arrays.order_statistics import at_places, count_numbers, rows_of, unrows
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import mean_over
from gradtape.ops.select import maximum, where
from gradtape.typing import Array, ArrayLike, Axis


def _median(x: ArrayLike, name: str, axis: Axis, keepdims: bool, ignore_nan: bool) -> Array:
    x = as_array(x)
    axes = normalize_axes(axis, len(x.shape), name)
    rows = rows_of(x, axes)
    n = rows.shape[-1]
    if n == 0:
        return mean_over(x, axis=axes, keepdims=bool(keepdims))
    ignore_nan = ignore_nan and x.dtype.kind in "fcV"
    count = count_numbers(rows) if ignore_nan else np.array([n])
    middle = concatenate([maximum((count - 1) // 2, 0), count // 2], -1)
    if not ignore_nan and n % 2:
        middle = middle[:1]
    out = mean_over(at_places(rows, middle, ignore_nan), axis=(len(rows.shape) - 1,), keepdims=True)
    if ignore_nan:
        out = where(count == 0, math.nan, out)
    return unrows(out, x.shape, axes, (), keepdims)


def median(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median: the element in the middle of the sorted ones, or the mean of both.

    Args:
        x: Where to look.
        axis: One or several axes; None takes all of them.
        out: Only None: use the result.
        overwrite_input: Whether `x` may be overwritten, which it never is.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        AxisError: There is no such axis.

    >>> gt.median(np.array([3.0, 1.0, 7.0, 2.0]))
    np.float64(2.5)
    """
    refuse("median", {"out": out})
    return _median(x, "median", axis, keepdims, False)


def nanmedian(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median of the elements that are not NaN, options as of `median`.

    It is NaN where all of them are; NaN has a gradient of 0.

    Raises:
        AxisError: There is no such axis.

    >>> gt.nanmedian(np.array([3.0, 1.0, np.nan]))
    np.float64(2.0)
    """
    refuse("nanmedian", {"out": out})
    return _median(x, "nanmedian", axis, keepdims, True)
