"""Diagonals and triangles of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_first
from gradtape.core.define import linear, sharing
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Facts
from gradtape.core.scalar import Scalar
from gradtape.errors import AxisError
from gradtape.ops import lowered
from gradtape.ops.arguments import as_array, as_integer, normalize_axis
from gradtape.ops.checks import check_axes
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike


def _length(rows: int, columns: int, offset: int) -> int:
    """How many elements a diagonal has."""
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def _infer_diagonal(x: Aval, offset: int, axis1: int, axis2: int) -> Aval:
    rest = tuple(n for a, n in enumerate(x.shape) if a not in (axis1, axis2))
    return Aval((*rest, _length(x.shape[axis1], x.shape[axis2], offset)), x.dtype)


def _batch_diagonal(size: int, axis1: int, axis2: int, **params: Any) -> dict[str, Any]:
    changed: dict[str, Any] = {"axis1": axis1 + 1, "axis2": axis2 + 1}
    return changed | ({"shape": (size, *params["shape"])} if "shape" in params else {})


def _diagonal_element(
    i: Sequence[Scalar], x: Reader, offset: int, axis1: int, axis2: int
) -> Scalar:
    *rest, step = i
    index: list[Any] = list(rest)
    for axis, at in sorted(((axis1, step - min(offset, 0)), (axis2, step + max(offset, 0)))):
        index.insert(axis, at)
    return x(*index)


# d diagonal(x) = diagonal(dx); transpose: a zero array with ct on the diagonal
_diagonal = sharing(
    linear(
        "diagonal",
        lambda xp, x, offset, axis1, axis2: x.diagonal(offset, axis1, axis2),
        lambda ct, _out, _x, offset, axis1, axis2: _embed(
            ct, shape=_x.shape, offset=offset, axis1=axis1, axis2=axis2
        ),
        infer=_infer_diagonal,
        batch=batch_first(_batch_diagonal),
        aliases=True,
        facts=Facts(rearranges=True),
        lower=Elements(_diagonal_element),
    )
)


def _embed_forward(
    xp: Any, x: Any, shape: tuple[int, ...], offset: int, axis1: int, axis2: int
) -> Any:
    out = xp.zeros(shape, x.dtype)
    steps = np.arange(x.shape[-1])
    matrices = xp.moveaxis(out, (axis1, axis2), (-2, -1))
    matrices[..., steps - min(offset, 0), steps + max(offset, 0)] = x
    return out


def _embed_element(
    i: Sequence[Scalar], x: Reader, shape: tuple[int, ...], offset: int, axis1: int, axis2: int
) -> Scalar:
    rest = [k for a, k in enumerate(i) if a not in (axis1, axis2)]
    step = i[axis1] if offset >= 0 else i[axis2]
    return lowered.read_or(0, x, [*rest, step], i[axis2] - i[axis1] == offset)


_embed: Callable[..., Any] = linear(
    "diagonal_embed",
    _embed_forward,
    lambda ct, _out, _x, shape, offset, axis1, axis2: _diagonal(
        ct, offset=offset, axis1=axis1, axis2=axis2
    ),
    infer=lambda x, shape, offset, axis1, axis2: Aval(shape, x.dtype),
    batch=batch_first(_batch_diagonal),
    lower=Elements(_embed_element),
)


def diagonal(x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements on a diagonal of two axes, along a new last axis.

    Args:
        x: An array of at least two axes.
        offset: Which diagonal: 0 is the main one, positive ones lie above it.
        axis1: The axis of the rows.
        axis2: The axis of the columns.

    Raises:
        AxisError: There is no such axis, or both are the same.

    >>> gt.diagonal(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """
    x = as_array(x)
    ndim = len(x.shape)
    if ndim < 2:
        raise AxisError(f"diagonal: got shape {x.shape}, expected at least two axes")
    rows = normalize_axis(axis1, ndim, "diagonal")
    columns = normalize_axis(axis2, ndim, "diagonal")
    if rows == columns:
        raise AxisError(f"diagonal: got axis {rows} twice, expected two different ones")
    return _diagonal(x, offset=as_integer(offset, "diagonal", "offset"), axis1=rows, axis2=columns)


def diag(x: ArrayLike, /, k: int = 0) -> Array:
    """A diagonal of a matrix, or the matrix with a vector on its diagonal.

    Args:
        x: A matrix or a vector.
        k: Which diagonal: 0 is the main one, positive ones lie above it.

    Raises:
        ShapeError: The array has neither one nor two axes.

    >>> gt.diag(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    x = as_array(x)
    check_axes("diag", x, least=1, most=2, instead="use diagonal")
    if len(x.shape) == 2:
        return diagonal(x, k)
    k = as_integer(k, "diag", "k")
    size = x.shape[0] + abs(k)
    return _embed(x, shape=(size, size), offset=k, axis1=0, axis2=1)


def trace(
    x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Array:
    """Sum of the elements on a diagonal of two axes.

    Args:
        x: An array of at least two axes.
        offset: Which diagonal: 0 is the main one, positive ones lie above it.
        axis1: The axis of the rows.
        axis2: The axis of the columns.
        dtype: The dtype to sum in.

    Raises:
        AxisError: There is no such axis, or both are the same.

    >>> gt.trace(np.eye(3))
    np.float64(3.0)
    """
    return sum_of(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _triangle_op(name: str, kept: Callable[[Any, int], Any]) -> Callable[..., Any]:
    """The op that keeps elements for which `kept(column - row, k)` holds, and sets others to 0."""
    return linear(
        name,
        lambda xp, x, k: getattr(xp, name)(x, k),
        self_adjoint=True,
        kind="planewise",
        facts=Facts(layout="kept"),
        lower=Elements(lambda i, x, k: lowered.read_or(0, x, i, kept(i[-1] - i[-2], k))),
    )


# d tril(x) = tril(dx); a projection along the axes is its own transpose
_tril, _triu = _triangle_op("tril", operator.le), _triangle_op("triu", operator.ge)


def tril(x: ArrayLike, /, k: int = 0) -> Array:
    """The lower triangles of matrices, with zeros above diagonal `k`.

    Args:
        x: The matrices, in the last two axes; a vector stands for rows that are all equal to it.
        k: Which diagonal: 0 is the main one, positive ones lie above it.

    Raises:
        ShapeError: The array has no axes.

    >>> gt.tril(np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return _triangle(_tril, "tril", x, k)


def triu(x: ArrayLike, /, k: int = 0) -> Array:
    """The upper triangles of matrices, with zeros below diagonal `k`.

    Args:
        x: The matrices, in the last two axes; a vector stands for rows that are all equal to it.
        k: Which diagonal: 0 is the main one, positive ones lie above it.

    Raises:
        ShapeError: The array has no axes.

    >>> gt.triu(np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return _triangle(_triu, "triu", x, k)


def _triangle(op: Callable[..., Any], name: str, x: ArrayLike, k: int) -> Array:
    x = as_array(x)
    if len(x.shape) < 2:
        check_axes(name, x, least=1)
        x = broadcast_to(x, (x.shape[0], x.shape[0]))
    return op(x, k=as_integer(k, name, "k"))
