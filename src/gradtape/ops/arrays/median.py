"""Medians."""

from __future__ import annotations

import math

import numpy as np

from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.arrays.order_statistics import at_places, count_numbers, rows_of, unrows
from gradtape.ops.family import member
from gradtape.ops.join import concatenate
from gradtape.ops.reduce import NO_AXIS, REDUCTIONS, mean_over
from gradtape.ops.select import maximum, where
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


@options(REDUCTIONS, raises=NO_AXIS)
def _median(
    name: str,
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median{what}: the middle one, or the mean of the two.

    Args:
        overwrite_input: Whether `x` may be overwritten; it never is.

    median:
    >>> gt.median(np.array([3.0, 1.0, 7.0, 2.0]))
    np.float64(2.5)

    nanmedian:
    >>> gt.nanmedian(np.array([3.0, 1.0, np.nan]))
    np.float64(2.0)
    """
    x = as_array(x)
    axes = normalize_axes(axis, len(x.shape), name)
    rows = rows_of(x, axes)
    n = rows.shape[-1]
    if n == 0:
        return mean_over(x, axis=axes, keepdims=bool(keepdims))
    ignore_nan = name == "nanmedian" and x.dtype.kind in "fcV"
    count = count_numbers(rows) if ignore_nan else np.array([n])
    middle = concatenate([maximum((count - 1) // 2, 0), count // 2], -1)
    if not ignore_nan and n % 2:
        middle = middle[:1]
    out = mean_over(at_places(rows, middle, ignore_nan), axis=(len(rows.shape) - 1,), keepdims=True)
    if ignore_nan:
        out = where(count == 0, math.nan, out)
    return unrows(out, x.shape, axes, (), keepdims)


median = member("median", _median, what="")
nanmedian = member("nanmedian", _median, what=" of the elements that are not NaN")
