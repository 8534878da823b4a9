"""Products of vectors and matrices in the last axes: cross, vecdot, matvec, vecmat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import multilinear
from gradtape.errors import ShapeError
from gradtape.ops import array_functions
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arrays.pieces import unstack
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.checks import check_axes
from gradtape.ops.join import stack
from gradtape.ops.matmul import matmul
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import broadcast_arrays, expand_dims, moveaxis, squeeze
from gradtape.typing import Array, ArrayLike

# ---- cross --------------------------------------------------------------------------------------


def _forward(xp: Any, a: Any, b: Any, axis: int) -> Any:
    before = (slice(None),) * axis
    (a0, a1, a2), (b0, b1, b2) = ([x[(*before, i)] for i in range(3)] for x in (a, b))
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis)


# of two arrays of one shape and dtype; d(a×b) = da×b + a×db, and ct·(da×b) = da·(b×ct)
_cross: Callable[..., Any] = multilinear(
    "cross",
    _forward,
    lambda ct, _out, _a, b, axis: _cross(conj_if_complex(b), ct, axis=axis),
    lambda ct, _out, a, _b, axis: _cross(ct, conj_if_complex(a), axis=axis),
    kind="axiswise",
    lower=array_functions,
)


def cross(
    a: ArrayLike,
    b: ArrayLike,
    /,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Cross products of vectors with 3 components; those with 2 lie in the plane of the first two.

    Args:
        a: The first vectors.
        b: The second ones.
        axisa: The axis of `a` that holds the components.
        axisb: That of `b`.
        axisc: That of the result; of vectors with 2 components it is one number each.
        axis: All three of them.

    Raises:
        ShapeError: Vectors have neither 2 nor 3 components, or the other axes do not broadcast.
        AxisError: There is no such axis.

    >>> gt.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _vectors(as_array(a), axisa), _vectors(as_array(b), axisb)
    if a.shape[-1] == b.shape[-1] == 3:
        if a.shape != b.shape:
            a, b = broadcast_arrays(a, b)
        if a.dtype != b.dtype:
            dtype = np.result_type(a.dtype, b.dtype)
            a, b = astype(a, dtype, copy=False), astype(b, dtype, copy=False)
        out = _cross(a, b, axis=len(a.shape) - 1)
    else:
        out = _in_plane(unstack(a, axis=-1), unstack(b, axis=-1))
        if a.shape[-1] == b.shape[-1] == 2:
            return out
    axisc = normalize_axis(axisc, len(out.shape), "cross")
    return out if axisc == len(out.shape) - 1 else moveaxis(out, -1, axisc)


def _in_plane(a: tuple[Array, ...], b: tuple[Array, ...]) -> Array:
    """Cross products if vectors of one side have 2 components; the missing third one is 0."""
    flat = a[0] * b[1] - a[1] * b[0]
    if len(a) == 3:
        return stack(broadcast_arrays(-(a[2] * b[1]), a[2] * b[0], flat), -1)
    if len(b) == 3:
        return stack(broadcast_arrays(a[1] * b[2], -(a[0] * b[2]), flat), -1)
    return flat


def _vectors(x: Array, axis: int) -> Array:
    """An array of vectors with their components in the last axis."""
    check_axes("cross", x, least=1)
    axis = normalize_axis(axis, len(x.shape), "cross")
    if x.shape[axis] not in (2, 3):
        raise ShapeError(f"cross: got vectors of {x.shape[axis]} components, expected 2 or 3")
    return x if axis == len(x.shape) - 1 else moveaxis(x, axis, -1)


# ---- products with vectors ----------------------------------------------------------------------


def vecdot(x: ArrayLike, y: ArrayLike, /, *, axis: int = -1, keepdims: bool = False) -> Array:
    """Dot products of vectors along an axis; complex ones of the first array are conjugated.

    Args:
        x: The first vectors.
        y: The second ones; the other axes broadcast.
        axis: The axis of both that holds the components.
        keepdims: Whether it stays, with size 1.

    Raises:
        ShapeError: Vectors are not of one length, or the other axes do not broadcast.
        AxisError: There is no such axis.

    >>> gt.vecdot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    x, y = as_array(x), as_array(y)
    x = moveaxis(x, normalize_axis(axis, len(x.shape), "vecdot"), -1)
    y = moveaxis(y, normalize_axis(axis, len(y.shape), "vecdot"), -1)
    _same_length("vecdot", x, y, x.shape[-1], y.shape[-1])
    product = conj_if_complex(x) * y
    out = astype(sum_of(product, axis=-1), product.dtype, copy=False)
    return expand_dims(out, axis) if keepdims else out


def matvec(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Products of matrices and vectors, in the last axes.

    Args:
        x: The matrices.
        y: The vectors; the other axes broadcast.

    Raises:
        ShapeError: Vectors are not as long as the rows, or the other axes do not broadcast.

    >>> gt.matvec(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    x, y = as_array(x), as_array(y)
    check_axes("matvec", x, least=2)
    check_axes("matvec", y, least=1)
    _same_length("matvec", x, y, x.shape[-1], y.shape[-1])
    return squeeze(matmul(x, expand_dims(y, -1)), -1)


def vecmat(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Products of vectors and matrices, in the last axes; complex vectors are conjugated.

    Args:
        x: The vectors.
        y: The matrices; the other axes broadcast.

    Raises:
        ShapeError: Vectors are not as long as the columns, or the other axes do not broadcast.

    >>> gt.vecmat(np.array([1.0, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    x, y = as_array(x), as_array(y)
    check_axes("vecmat", x, least=1)
    check_axes("vecmat", y, least=2)
    _same_length("vecmat", x, y, x.shape[-1], y.shape[-2])
    return squeeze(matmul(expand_dims(conj_if_complex(x), -2), y), -2)


def _same_length(name: str, x: Any, y: Any, n: int, m: int) -> None:
    if n != m:
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {y.shape}, expected the same length where they "
            f"meet, not {n} and {m}"
        )
