"""Linear interpolation between samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, real_only, weak_or_array
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.arrays.sort import argsort
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes, check_same_shape
from gradtape.ops.gather import take
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.select import clip, where
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    /,
    left: ArrayLike = None,
    right: ArrayLike = None,
    period: float | None = None,
) -> Array:
    """Values between samples, on straight lines; differentiable in places, samples and ends.

    At a sample the slope is that of the line to its right, at the last one that of the line to it.

    Args:
        x: Where to interpolate.
        xp: Where samples were taken, in rising order.
        fp: The samples, real or complex.
        left: The value before the first sample; the first sample if not given.
        right: The value after the last one; the last sample if not given.
        period: The distance after which places repeat; `xp` may then have any order.

    Raises:
        ShapeError: `xp` and `fp` have not one axis of the same size, or no elements.
        ArgumentError: `period` is 0.
        DTypeError: `x` or `xp` is complex.

    >>> gt.interp(np.array([0.5, 1.5]), np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]))
    array([0.5, 2.5])
    """
    # As in NumPy, all of it is done in double precision.
    places = (real_only("interp", as_array(one)) for one in (x, xp))
    x, xp = (astype(one, np.float64, copy=False) for one in places)
    fp = as_array(fp)
    fp = astype(fp, np.complex128 if fp.dtype.kind == "c" else np.float64, copy=False)
    check_axes("interp", xp, 1, what="xp")
    check_same_shape("interp", xp=xp, fp=fp)
    if not xp.shape[0]:
        raise ShapeError("interp: got no samples, expected at least one")
    if period is not None:
        x, xp, fp = _unrolled(x, xp, fp, period)
        left = right = None
    first, last = getitem(fp, 0), getitem(fp, -1)
    left = first if left is None else _end("left", left, fp)
    right = last if right is None else _end("right", right, fp)
    before, beyond = x < getitem(xp, 0), x > getitem(xp, -1)
    if xp.shape[0] > 1:
        # Points outside, which may be infinite, must not enter the formula: 0·∞ has no gradient.
        inside = _between(where(before | beyond, stop_gradient(getitem(xp, 0)), x), xp, fp)
    else:
        inside = broadcast_to(first, x.shape)
    return where(before, left, where(beyond, right, inside))


def _end(side: str, value: ArrayLike, fp: Array) -> Any:
    """The value beyond one end, checked: one number, or one for each point."""
    value = weak_or_array(value)
    dtype = aval_of(value).dtype
    if dtype.kind not in ("biufc" if fp.dtype.kind == "c" else "biuf"):
        raise DTypeError(f"interp: got {side} of {dtype} for samples of {fp.dtype}")
    return value


def _between(x: Array, xp: Array, fp: Array) -> Array:
    # f(x) = f₀ + (x − x₀)·(f₁ − f₀)/(x₁ − x₀) on the line between two samples
    i = clip(searchsorted(xp, x, side="right"), 1, xp.shape[0] - 1)
    x0, x1, f0, f1 = take(xp, i - 1), take(xp, i), take(fp, i - 1), take(fp, i)
    width = x1 - x0
    same = width == 0
    slope = (f1 - f0) / where(same, 1, width)
    return where(same, f1, f0 + slope * (x - x0))


def _unrolled(x: Array, xp: Array, fp: Array, period: Any) -> tuple[Array, Array, Array]:
    """Places in one period, with samples in order and one more at each end."""
    if period == 0:
        raise ArgumentError("interp: got period=0, expected another number")
    period = abs(period)
    x, xp = x % period, xp % period
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    ends = [getitem(xp, slice(-1, None)) - period, xp, getitem(xp, slice(0, 1)) + period]
    around = [getitem(fp, slice(-1, None)), fp, getitem(fp, slice(0, 1))]
    return x, concatenate(ends), concatenate(around)
