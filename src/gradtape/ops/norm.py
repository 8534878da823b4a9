"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.define import elementwise_op, general
from gradtape.core.lazy import Deferred
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops import array_functions, lowered
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.arithmetic import abs as abs_of, sign
from gradtape.ops.cast import real_product, stop_gradient
from gradtape.ops.checks import check_axes
from gradtape.ops.comparison import equal
from gradtape.ops.reduce import (
    Axes,
    floats,
    keep_axes,
    max as max_of,
    min as min_of,
    reduced_shape,
    spread,
    sum as sum_of,
)
from gradtape.ops.select import divide_or_zero, where
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike, Axis

# ---- powers of distances ------------------------------------------------------------------------


def _power_forward(xp: Any, x: Any, exponent: float, signed: bool) -> Any:
    size = xp.abs(x)
    if signed and exponent <= 0:
        # Where the slope is unbounded at 0 it is taken as 0 there: no direction is preferred.
        size = xp.where(x == 0, 1, size)
    power = lowered.power(size, exponent) if xp is scalar else size**exponent
    sign_of = lowered.sign if xp is scalar else xp.sign
    return sign_of(x) * power if signed else power


# |x|^q, or sign(x)·|x|^q, of real numbers: the slope is q·|x|^(q−1), with the factor sign(x) for
# the first and without it for the second
size_power: Callable[..., Any] = elementwise_op(
    "size_power",
    _power_forward,
    lambda ct, _out, x, exponent, signed: (
        ct * (exponent * size_power(x, exponent=exponent - 1, signed=not signed))
    ),
    lower=scalar,
)


def _steepness(x: Any, ord: float) -> Any:
    """x·|x|^(p−2), the direction of steepest ascent of a norm up to a factor; 0 where x is 0."""
    if x.dtype.kind != "c":
        return size_power(x, exponent=ord - 1, signed=True)
    if ord < 2:
        return divide_or_zero(x, abs_of(x) ** (2 - ord))
    zero = equal(x, 0)
    return where(zero, 0.0, x * abs_of(where(zero, 1.0, x)) ** (ord - 2))


# ---- the norm Σ(|x|^p)^(1/p) of all elements over some axes -------------------------------------


def _forward(xp: Any, x: Any, ord: float, axis: Axes, keepdims: bool) -> Any:
    if ord == 2:
        squares = x * x if x.dtype.kind != "c" else x.real**2 + x.imag**2
        return xp.sqrt(squares.sum(axis=axis, keepdims=keepdims, dtype=squares.dtype))
    powers = xp.abs(x) ** ord
    return powers.sum(axis=axis, keepdims=keepdims, dtype=powers.dtype) ** (1 / ord)


def _vjp(ct: Any, out: Any, x: Any, ord: float, axis: Axes, keepdims: bool) -> Any:
    whole = {"shape": x.shape, "axis": axis, "keepdims": keepdims}
    if ord == 2:
        return spread(divide_or_zero(ct, out), **whole) * x
    return spread(divide_or_zero(ct, out ** (ord - 1)), **whole) * _steepness(x, ord)


def _jvp(tangents: Sequence[Any], out: Any, x: Any, ord: float, axis: Axes, keepdims: bool) -> Any:
    dx = tangents[0]
    if ord == 2:
        return divide_or_zero(sum_of(real_product(x, dx), axis, keepdims=keepdims), out)
    change = sum_of(real_product(_steepness(x, ord), dx), axis, keepdims=keepdims)
    return divide_or_zero(change, out ** (ord - 1))


def _infer(x: Aval, ord: float, axis: Axes, keepdims: bool) -> Aval:
    dtype = np.empty(0, x.dtype).real.dtype
    return Aval(reduced_shape(x.shape, axis, keepdims), dtype)


# d norm = Re Σ x̄·|x|^(p−2)·dx / norm^(p−1), which is Re Σ x̄·dx / norm for p = 2; taken as 0 where
# the norm is 0, as there is no direction to go in
_vector_norm = general(
    "vector_norm",
    _forward,
    infer=_infer,
    vjps=(_vjp,),
    jvp=_jvp,
    kind="reduction",
    lower=array_functions,
)


# ---- which norm ---------------------------------------------------------------------------------


def _of_vectors(x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    if not isinstance(ord, int | float | np.number):
        raise ArgumentError(f"norm: got ord={ord!r} for vectors, expected a number, inf or -inf")
    ord = float(ord)
    empty = any(x.shape[a] == 0 for a in axes)
    if ord == 0:
        # The number of elements that are not 0; piecewise constant, as sign is.
        return sum_of(sign(abs_of(x)), axes, keepdims=keepdims)
    if ord == 1 or (ord == math.inf and empty):
        return sum_of(abs_of(x), axes, keepdims=keepdims)
    if math.isinf(ord):
        extreme = max_of if ord > 0 else min_of
        return extreme(abs_of(x), axes, keepdims=keepdims)
    return _vector_norm(x, ord=ord, axis=axes, keepdims=keepdims)


def _of_matrices(x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    rows, columns = axes
    if ord in (None, "fro"):
        return _vector_norm(x, ord=2.0, axis=axes, keepdims=keepdims)
    if ord in (1, 2, math.inf, "nuc") and 0 in (x.shape[rows], x.shape[columns]):
        return sum_of(abs_of(x), axes, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        return _of_singular_values(x, ord, axes, keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(
            f"norm: got ord={ord!r} for matrices, expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = sum_of(abs_of(x), summed, keepdims=keepdims)
    if not keepdims and compared > summed:
        compared -= 1
    return (max_of if ord > 0 else min_of)(sums, compared, keepdims=keepdims)


_svdvals = Deferred("gradtape.ops.linalg.svd:svdvals")


def _of_singular_values(x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    values = _svdvals(moveaxis(x, axes, (-2, -1)))
    if ord == "nuc":
        out = sum_of(_above_rounding(values, x.shape, axes), -1)
    else:
        out = (max_of if ord > 0 else min_of)(values, -1)
    return reshape(out, keep_axes(x.shape, axes)) if keepdims else out


def _above_rounding(values: Any, shape: tuple[int, ...], axes: Axes) -> Any:
    """Singular values without history where they are 0 up to rounding.

    Their sum has a kink there; the subgradient of least size does not see their directions.
    """
    fixed = stop_gradient(values)
    noise = max(shape[axis] for axis in axes) * float(np.finfo(values.dtype).eps)
    return where(fixed > noise * max_of(fixed, -1, keepdims=True), values, fixed)


def inexact(x: ArrayLike) -> Any:
    """`x` as an array of floating or complex numbers: integers become float64."""
    return floats(as_array(x))


def norm(x: ArrayLike, /, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """Norm of vectors or matrices; its gradient at 0 is 0.

    Args:
        x: The vectors or matrices.
        ord: Which norm: None is the square root of the sum of squares; for vectors a number p,
            inf or -inf; for matrices "fro", "nuc" (the sum of the singular values), 2 and -2
            (the largest and the smallest of them), 1, -1, inf or -inf.
        axis: One axis for vectors, two for matrices; None takes the whole array: all elements
            if `ord` is None, else a vector or a matrix by its number of axes.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        ShapeError: `ord` is given for an array of more than two axes, and no axis.
        ArgumentError: There is no such norm.
        AxisError: There is no such axis.

    >>> gt.norm(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    array([ 5., 10.])
    """
    x = inexact(x)
    axes = normalize_axes(axis, len(x.shape), "norm")
    if axis is None and ord is None:
        return _vector_norm(x, ord=2.0, axis=axes, keepdims=bool(keepdims))
    if len(axes) not in (1, 2):
        raise ShapeError(
            f"norm: got shape {x.shape} with ord={ord!r} and axis={axis!r}, expected one axis for "
            "vectors or two for matrices"
        )
    if len(axes) == 1:
        return _of_vectors(x, 2 if ord is None else ord, axes, bool(keepdims))
    return _of_matrices(x, ord, axes, bool(keepdims))


def vector_norm(
    x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Norm of vectors along any number of axes.

    Args:
        x: The vectors.
        axis: The axes whose elements make up a vector; None: all of them.
        keepdims: Whether these axes stay, with size 1.
        ord: Which norm: a number p, inf or -inf.

    Raises:
        ArgumentError: There is no such norm.
        AxisError: There is no such axis.

    >>> gt.linalg.vector_norm(np.array([3.0, -4.0]), ord=1)
    np.float64(7.0)
    """
    x = inexact(x)
    return _of_vectors(x, ord, normalize_axes(axis, len(x.shape), "vector_norm"), bool(keepdims))


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norm of the matrices in the last two axes.

    Args:
        x: The matrices.
        keepdims: Whether the last two axes stay, with size 1.
        ord: Which norm: "fro", "nuc", 1, -1, 2, -2, inf or -inf, as for `norm`.

    Raises:
        ArgumentError: There is no such norm.
        ShapeError: There are less than two axes.

    >>> gt.linalg.matrix_norm(np.array([[1.0, -2.0], [3.0, 4.0]]), ord=1)
    np.float64(6.0)
    """
    x = inexact(x)
    check_axes("matrix_norm", x, least=2)
    return _of_matrices(x, ord, (len(x.shape) - 2, len(x.shape) - 1), bool(keepdims))
