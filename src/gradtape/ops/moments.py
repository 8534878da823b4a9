"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lazy import Deferred
from gradtape.core.lowering import Composite
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_number, weak_or_array
from gradtape.ops.arithmetic import subtract
from gradtape.ops.cast import over_count, real_product
from gradtape.ops.exponential import sqrt
from gradtape.ops.family import member
from gradtape.ops.reduce import (
    NO_AXIS,
    REDUCTIONS,
    Axes,
    beside,
    count_over,
    mean_over,
    prepared,
    reduced_shape,
    sum_forward,
    sum_over,
)
from gradtape.ops.select import divide_or_zero, where as where_of
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


def _divisor(shape: tuple[int, ...], axis: Axes, correction: float) -> float:
    """The divisor of the sum of squares; 0, which gives NaN, if there are too few elements."""
    n = count_over(shape, axis) - correction
    return n if n > 0 else 0


def _var_forward(xp: Any, x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    if xp is not np or x.dtype.char not in "fd":
        return xp.var(x, axis=axis, ddof=correction, keepdims=keepdims)
    # As np.var does, at less cost: around the mean, never by the difference of squares.
    around = x - sum_forward(np, x, axis, True) / count_over(x.shape, axis)
    squares = sum_forward(np, around * around, axis, keepdims)
    return squares / _divisor(x.shape, axis, correction)


# Elements of a part.
_PART = 4096


def _var_of_parts(x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    """The variance of all elements by that of parts, which needs no array in between."""
    if x.dtype.char not in "fd" or len(axis) < x.ndim or not x.flags.c_contiguous:
        return NotImplemented
    squares = np.asarray(_squares_by_parts(x.reshape(-1)), x.dtype)
    squares = squares.reshape(reduced_shape(x.shape, axis, keepdims))[()]
    return squares / _divisor(x.shape, axis, correction)


def _squares_by_parts(x: Any) -> Any:
    """Σ(x − mean)² of the elements of a vector.

    Σ(x − mean)² = Σ over parts of Σ(x − m)² + size·(m − mean)², with the mean m of each part.
    """
    size = x.size // _PART * _PART
    parts, rest = x[:size].reshape(-1, _PART), x[size:]
    means = mean_over(parts, axis=(1,), keepdims=False)
    squares = _PART * _var(parts, axis=(1,), keepdims=False, correction=0).sum()
    mean = x.dtype.type((means.sum() * _PART + rest.sum()) / x.size)
    return squares + _PART * np.square(means - mean).sum() + np.square(rest - mean).sum()


def _var_composition(x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    around = _around(x, axis)
    squares = sum_over(around * around, axis=axis, keepdims=keepdims)
    return squares / _divisor(x.shape, axis, correction)


def _infer(x: Aval, axis: Axes, keepdims: bool, correction: float) -> Aval:
    dtype = np.var(np.ones(1, x.dtype)).dtype
    return Aval(reduced_shape(x.shape, axis, keepdims), dtype)


def _around(x: Any, axis: Axes) -> Any:
    return x - mean_over(x, axis=axis, keepdims=True)


# ---- the ops ------------------------------------------------------------------------------------


def _pulled(ct: Any, x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    """ct·(x − mean)/(n − correction)."""
    scaled = over_count(ct, _divisor(x.shape, axis, correction))
    return _around(x, axis) * beside(scaled, x.shape, axis, keepdims)


def _pushed(tangent: Any, x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    """Σ Re(conj(x − mean)·dx)/(n − correction)."""
    change = sum_over(real_product(_around(x, axis), tangent), axis=axis, keepdims=keepdims)
    return over_count(change, _divisor(x.shape, axis, correction))


# d var(x) = 2/(n − correction) · Σ (x − mean)·dx
_var = general(
    "var",
    _var_forward,
    infer=_infer,
    vjps=(lambda ct, _out, x, **params: _pulled(ct * 2, x, **params),),
    jvp=lambda tangents, _out, x, **params: _pushed(tangents[0], x, **params) * 2,
    kind="reduction",
    lower=Composite(_var_composition),
    composed=_var_of_parts,
)
# d std(x) = 1/((n − correction)·std) · Σ (x − mean)·dx, and 0 where all elements are equal
_std = general(
    "std",
    lambda xp, x, **params: xp.sqrt(_var_forward(xp, x, **params)),
    infer=_infer,
    vjps=(lambda ct, out, x, **params: _pulled(divide_or_zero(ct, out), x, **params),),
    jvp=lambda tangents, out, x, **params: divide_or_zero(_pushed(tangents[0], x, **params), out),
    kind="reduction",
    lower=Composite(lambda x, **params: sqrt(_var_composition(x, **params))),
)
_OPS = {"var": _var, "std": _std}


def root(variance: Any) -> Any:
    """The root with the derivative 0 at 0, as `_std` has it."""
    spread = variance != 0
    return sqrt(where_of(spread, variance, 1)) * spread


# ---- public functions ---------------------------------------------------------------------------

_variance_where = Deferred("gradtape.ops.arrays.where_moments:variance_where")


def _around_given(x: Any, axis: Axes, keepdims: bool, correction: float, mean: Any) -> Any:
    """The variance around a mean that was computed elsewhere."""
    around = subtract(x, weak_or_array(mean))
    squares = sum_over(real_product(around, around), axis=axis, keepdims=keepdims)
    return squares / _divisor(x.shape, axis, correction)


def correction_of(name: str, ddof: float, correction: float | None) -> float:
    """The number to subtract from the number of elements, given by either name."""
    if type(ddof) is not int:
        ddof = as_number(ddof, name, "ddof")
    if correction is None:
        return ddof
    if ddof != 0:
        raise ArgumentError(f"{name}: got ddof= and correction=, expected one of them")
    return correction if type(correction) is int else as_number(correction, name, "correction")


@options(REDUCTIONS, raises=NO_AXIS)
def _moment(
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
    """{what}, over all or the given axes.

    Where all elements are equal, the standard deviation has a kink; its gradient is taken as 0
    there, as in PyTorch.

    Args:
        ddof: The squares are divided by their number less this; 1 is the unbiased estimate.
        correction: Another name of `ddof`.
        mean: The mean, if it is known already, with the reduced axes kept; it is differentiated
            by, too.

    Raises:
        ArgumentError: Both `ddof` and `correction` were given.

    var:
    >>> gt.var(np.array([1.0, 2.0, 3.0]), ddof=1)
    np.float64(1.0)

    std:
    >>> gt.std(np.array([1.0, 2.0, 3.0]), ddof=1)
    np.float64(1.0)
    """
    less = correction_of(name, ddof, correction)
    if where is not True and where is not None:
        return _variance_where(name, x, axis, dtype, less, keepdims, where, mean)
    x, axes = prepared(name, x, axis, dtype)
    if mean is None:
        return _OPS[name](x, axis=axes, keepdims=bool(keepdims), correction=less)
    variance = _around_given(x, axes, bool(keepdims), less, mean)
    return variance if name == "var" else root(variance)


var = member("var", _moment, what="Variance: the mean squared distance from the mean")
std = member("std", _moment, what="Standard deviation: the root of the variance")
