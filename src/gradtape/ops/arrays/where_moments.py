"""Means and variances of the elements for which a condition holds: `np.mean(t, where=…)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import functions, public
from gradtape.ops.arguments import as_array, normalize_axes, refuse
from gradtape.ops.cast import astype, conj_if_complex, real
from gradtape.ops.reduce import floats, sum as sum_of
from gradtape.ops.select import where as where_of
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
    correction: float | None = None,
    keepdims: bool = False,
    where: Any,
    **unsupported: Any,
) -> Array:
    """Variance of the elements for which a condition holds; `correction` is `ddof`."""
    refuse("var", unsupported)
    x, taken, axes = _prepared("var", x, axis, dtype, where)
    off = where_of(taken, x - _mean(x, taken, axes), 0)
    squares = real(off * conj_if_complex(off)) if x.dtype.kind == "c" else off * off
    count = sum_of(taken, axis=axes, keepdims=True)
    out = sum_of(squares, axis=axes, keepdims=True) / (
        count - (ddof if correction is None else correction)
    )
    out = astype(out, squares.dtype, copy=False)
    return out if keepdims else squeeze(out, axes)


@public()
def std_where(x: Array, /, *args: Any, **options: Any) -> Array:
    """Standard deviation of the elements for which a condition holds."""
    return functions["sqrt"](var_where(x, *args, **options))


def _prepared(name: str, x: Any, axis: Axis, dtype: Any, where: Any) -> tuple[Array, Array, Any]:
    x = as_array(x)
    x = floats(x) if dtype is None else astype(x, dtype, copy=False)
    taken = broadcast_to(as_array(where), x.shape)
    taken = taken if taken.dtype == np.bool_ else taken != 0
    return x, taken, normalize_axes(axis, len(x.shape), name)


def _mean(x: Array, taken: Array, axes: tuple[int, ...]) -> Array:
    total = sum_of(where_of(taken, x, 0), axis=axes, keepdims=True)
    return astype(total / sum_of(taken, axis=axes, keepdims=True), x.dtype, copy=False)
