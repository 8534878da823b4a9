"""Means and variances of the elements for which a condition holds: `np.mean(t, where=…)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import broadcast_sizes, public
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, refuse
from gradtape.ops.cast import astype, conj_if_complex, real
from gradtape.ops.exponential import sqrt
from gradtape.ops.reduce import floats, sum as sum_of
from gradtape.ops.select import maximum, where as where_of
from gradtape.ops.shape import broadcast_to, squeeze
from gradtape.typing import Array, Axis


@public()
def mean_where(
    x: Array,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: Any,
    **unsupported: Any,
) -> Array:
    """Arithmetic mean of the elements for which a condition holds; NaN of none, as in NumPy."""
    refuse("mean", unsupported)
    x, taken, axes = _prepared("mean", x, axis, dtype, where)
    mean = _mean(x, taken, axes)
    return mean if keepdims else squeeze(mean, axes)


@public()
def var_where(
    x: Array,
    /,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any,
    **unsupported: Any,
) -> Array:
    """Variance of the elements for which a condition holds; NaN of none."""
    refuse("var", unsupported)
    x, taken, axes = _prepared("var", x, axis, dtype, where)
    off = where_of(taken, x - _mean(x, taken, axes), 0)
    squares = real(off * conj_if_complex(off)) if x.dtype.kind == "c" else off * off
    count = sum_of(taken, axis=axes, keepdims=True)
    out = sum_of(squares, axis=axes, keepdims=True) / maximum(count - ddof, 0)
    out = astype(out, squares.dtype, copy=False)
    return out if keepdims else squeeze(out, axes)


@public()
def std_where(x: Array, /, *args: Any, **options: Any) -> Array:
    """Standard deviation of the elements for which a condition holds; its gradient as `std`'s."""
    var = var_where(x, *args, **options)
    kink = var == 0
    return where_of(kink, 0, sqrt(where_of(kink, 1, var)))


def truths(name: str, where: Any, shape: tuple[int, ...]) -> Array:
    """What came as `where`, checked: truth values that broadcast to the shape of the array."""
    taken = as_array(bool(where) if isinstance(where, bool | int) else where)
    if taken.dtype != np.bool_:
        raise DTypeError(
            f"{name}: came where= of {taken.dtype}; needed truth values; compare first"
        )
    if len(taken.shape) > len(shape) or broadcast_sizes(taken.shape, shape) != tuple(shape):
        raise ShapeError(
            f"{name}: came where= of shape {taken.shape} for shape {shape}; needed one that "
            "broadcasts to it"
        )
    return taken


def _prepared(name: str, x: Any, axis: Axis, dtype: Any, where: Any) -> tuple[Array, Array, Any]:
    x = as_array(x)
    x = floats(x) if dtype is None else astype(x, dtype, copy=False)
    taken = broadcast_to(truths(name, where, x.shape), x.shape)
    return x, taken, normalize_axes(axis, len(x.shape), name)


def _mean(x: Array, taken: Array, axes: tuple[int, ...]) -> Array:
    total = sum_of(where_of(taken, x, 0), axis=axes, keepdims=True)
    return astype(total / sum_of(taken, axis=axes, keepdims=True), x.dtype, copy=False)
