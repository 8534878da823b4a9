"""Means and variances of the elements for which a condition holds: `np.mean(t, where=…)`.

`np.nanmean(t)` is of this kind, too: the condition is that an element is not NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import broadcast_sizes
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, weak_or_array
from gradtape.ops.cast import astype, real_product
from gradtape.ops.moments import root
from gradtape.ops.reduce import floats, sum as sum_of
from gradtape.ops.select import maximum, where as where_of
from gradtape.ops.shape import broadcast_to, squeeze
from gradtape.typing import Array, Axis


def mean_where(x: Any, axis: Axis, dtype: Any, keepdims: bool, where: Any) -> Array:
    """Arithmetic mean of the elements for which a condition holds; NaN if none, as in NumPy."""
    x, taken, axes = prepared_where("mean", x, axis, dtype, where)
    return without_axes(mean_of(x, taken, axes), axes, keepdims)


def variance_where(
    name: str, x: Any, axis: Axis, dtype: Any, ddof: float, keepdims: bool, where: Any, mean: Any
) -> Array:
    """Variance, or its root if `name` is "std", of the elements for which a condition holds."""
    x, taken, axes = prepared_where(name, x, axis, dtype, where)
    mean = mean_of(x, taken, axes) if mean is None else weak_or_array(mean)
    squares, count = squares_of(x, taken, axes, mean)
    variance = astype(squares / maximum(count - ddof, 0), squares.dtype, copy=False)
    return without_axes(variance if name == "var" else root(variance), axes, keepdims)


def truths(name: str, where: Any, shape: tuple[int, ...]) -> Array:
    """The argument `where`, checked: truth values that broadcast to the shape of the array."""
    taken = as_array(bool(where) if isinstance(where, bool | int) else where)
    if taken.dtype != np.bool_:
        raise DTypeError(
            f"{name}: got where= of {taken.dtype}, expected truth values; compare first"
        )
    if len(taken.shape) > len(shape) or broadcast_sizes(taken.shape, shape) != tuple(shape):
        raise ShapeError(
            f"{name}: got where= of shape {taken.shape} for shape {shape}, expected one that "
            "broadcasts to it"
        )
    return taken


def prepared_where(
    name: str, x: Any, axis: Axis, dtype: Any, where: Any
) -> tuple[Array, Array, tuple[int, ...]]:
    """The array as floats, which of its elements take part, and the axes as a tuple."""
    x = as_array(x)
    x = floats(x) if dtype is None else astype(x, dtype, copy=False)
    taken = broadcast_to(truths(name, where, x.shape), x.shape)
    return x, taken, normalize_axes(axis, len(x.shape), name)


def mean_of(x: Array, taken: Array, axes: tuple[int, ...]) -> Array:
    """The mean of the elements that take part, with the axes kept."""
    total = sum_of(where_of(taken, x, 0), axis=axes, keepdims=True)
    return astype(total / sum_of(taken, axis=axes, keepdims=True), x.dtype, copy=False)


def squares_of(x: Array, taken: Array, axes: tuple[int, ...], mean: Any) -> tuple[Array, Array]:
    """The sum of squares around a mean of those that take part, and their number; axes kept."""
    off = where_of(taken, x - mean, 0)
    squares = sum_of(real_product(off, off), axis=axes, keepdims=True)
    return squares, sum_of(taken, axis=axes, keepdims=True)


def without_axes(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """A result that was reduced with `keepdims=True`, without those axes unless they stay."""
    if keepdims:
        return x
    out = squeeze(x, axes)
    return out[()] if isinstance(out, np.ndarray) else out  # a number, as NumPy's reductions give
