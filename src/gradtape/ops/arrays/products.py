"""Products of vectors and matrices in the last axes: cross, vecdot, matvec, vecmat."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import public
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.matmul import matmul
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import broadcast_arrays, expand_dims, moveaxis, squeeze
from gradtape.typing import Array, ArrayLike

# NumPy has them from 2.2 on.
_NEWER = {name: [getattr(np, name)] if hasattr(np, name) else [] for name in ("matvec", "vecmat")}


@public(np.cross)
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
    a, b = as_array(a), as_array(b)
    first, second = _components(a, axisa), _components(b, axisb)
    flat = first[0] * second[1] - first[1] * second[0]
    if len(first) == len(second) == 2:
        return flat
    # What a vector in the plane does not have is 0.
    one = first[1] * second[2] if len(second) == 3 else None
    two = first[0] * second[2] if len(second) == 3 else None
    if len(first) == 3:
        x, y = first[2] * second[1], first[2] * second[0]
        parts = (-x if one is None else one - x, y if two is None else y - two, flat)
    else:
        parts = (one, -two, flat)  # type: ignore[operator]
    out = stack(broadcast_arrays(*parts), -1)
    return moveaxis(out, -1, normalize_axis(axisc, len(out.shape), "cross"))


def _components(x: Array, axis: int) -> list[Array]:
    if not x.shape:
        raise ShapeError("cross: came a 0-d array; needed vectors")
    axis = normalize_axis(axis, len(x.shape), "cross")
    if x.shape[axis] not in (2, 3):
        raise ShapeError(f"cross: came vectors of {x.shape[axis]} components; needed 2 or 3")
    before = (slice(None),) * axis
    return [getitem(x, (*before, i)) for i in range(x.shape[axis])]


@public(np.vecdot)
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
    if not keepdims:
        return out
    return moveaxis(expand_dims(out, -1), -1, axis)


@public(*_NEWER["matvec"])
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
    _axes("matvec", (x, 2), (y, 1))
    _same_length("matvec", x, y, x.shape[-1], y.shape[-1])
    return squeeze(matmul(x, expand_dims(y, -1)), -1)


@public(*_NEWER["vecmat"])
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
    _axes("vecmat", (x, 1), (y, 2))
    _same_length("vecmat", x, y, x.shape[-1], y.shape[-2])
    return squeeze(matmul(expand_dims(conj_if_complex(x), -2), y), -2)


def _axes(name: str, *needed: tuple[Any, int]) -> None:
    for x, ndim in needed:
        if len(x.shape) < ndim:
            raise ShapeError(f"{name}: came shape {x.shape}; needed at least {ndim} axes")


def _same_length(name: str, x: Any, y: Any, n: int, m: int) -> None:
    if n != m:
        raise ShapeError(
            f"{name}: came shapes {x.shape} and {y.shape}; needed the same length where they "
            f"meet, not {n} and {m}"
        )
