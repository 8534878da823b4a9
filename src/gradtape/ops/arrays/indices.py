"""Arrays of indices: of triangles and diagonals, of all elements, flat and by axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_elementwise
from gradtape.core.define import broadcast_sizes, general
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.checks import check_axes
from gradtape.ops.creation import asarray
from gradtape.ops.family import member
from gradtape.ops.gather import as_indices
from gradtape.ops.nonzero import flatnonzero
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike, Shape

_INDEX = np.dtype(np.intp)


def _tensors(arrays: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(Tensor(array) for array in arrays)


# ---- by sizes -----------------------------------------------------------------------------------


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:
    """Make a matrix with ones on and below a diagonal, and zeros above it.

    Args:
        N: The number of rows.
        M: The number of columns; as many as rows if not given.
        k: Which diagonal; positive ones lie above the main diagonal.
        dtype: Its dtype.

    >>> gt.tri(2)
    tensor([[1., 0.],
            [1., 1.]])
    """
    return Tensor(np.tri(N, M, k, dtype))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Make the indices of the lower triangle of a matrix.

    Args:
        n: The number of rows.
        k: Up to which diagonal.
        m: The number of columns; as many as rows if not given.

    >>> gt.tril_indices(2)
    (tensor([0, 1, 1]), tensor([0, 0, 1]))
    """
    return _tensors(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Make the indices of the upper triangle of a matrix.

    Args:
        n: The number of rows.
        k: From which diagonal on.
        m: The number of columns; as many as rows if not given.

    >>> gt.triu_indices(2)
    (tensor([0, 0, 1]), tensor([0, 1, 1]))
    """
    return _tensors(np.triu_indices(n, k, m))


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Make the indices of the main diagonal of an array.

    Args:
        n: The size of its axes.
        ndim: How many axes it has.

    >>> gt.diag_indices(2)
    (tensor([0, 1]), tensor([0, 1]))
    """
    return _tensors(np.diag_indices(n, ndim))


def indices(dimensions: Sequence[int], dtype: Any = int, sparse: bool = False) -> Any:
    """Make the indices of all elements of an array, one array for each axis.

    Args:
        dimensions: The shape.
        dtype: Their dtype.
        sparse: Whether they come as arrays that broadcast, in a tuple.

    >>> gt.indices((2, 2))[0]
    tensor([[0, 0],
            [1, 1]])
    """
    if sparse:
        return _tensors(np.indices(dimensions, dtype, True))
    return Tensor(np.indices(dimensions, dtype))


# ---- of arrays ----------------------------------------------------------------------------------


def _like(x: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    return _tensors(arrays) if isinstance(x, Tensor) else tuple(arrays)


def _triangle_of(name: str, x: ArrayLike, /, k: int = 0) -> tuple[Array, ...]:
    """The indices of the {which} triangle of a matrix.

    Args:
        x: The matrix.
        k: Which diagonal is the last one of the triangle, counted from the main one.

    Raises:
        ShapeError: It is no matrix.

    tril_indices_from:
    >>> gt.tril_indices_from(np.ones((2, 2)))
    (array([0, 1, 1]), array([0, 0, 1]))

    triu_indices_from:
    >>> gt.triu_indices_from(np.ones((2, 2)))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    x = as_array(x)
    check_axes(name, x, 2)
    return _like(x, getattr(np, name)(np.broadcast_to(0, x.shape), k))


tril_indices_from = member("tril_indices_from", _triangle_of, which="lower")
triu_indices_from = member("triu_indices_from", _triangle_of, which="upper")


def diag_indices_from(x: ArrayLike, /) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array.

    Args:
        x: An array of at least two axes, all of one size.

    Raises:
        ShapeError: The sizes differ, or there are fewer axes.

    >>> gt.diag_indices_from(np.ones((2, 2)))
    (array([0, 1]), array([0, 1]))
    """
    x = as_array(x)
    if len(x.shape) < 2 or len(set(x.shape)) > 1:
        raise ShapeError(f"diag_indices_from: got shape {x.shape}, expected axes of one size")
    return _like(x, np.diag_indices(x.shape[0], len(x.shape)))


def ix_(*sequences: ArrayLike) -> tuple[Array, ...]:
    """Index arrays that select all combinations of the entries of sequences.

    Args:
        *sequences: Integers or masks, of one axis each.

    Raises:
        ShapeError: A sequence has several axes.

    >>> np.arange(9.0).reshape(3, 3)[gt.ix_([0, 2], [1])]
    array([[1.],
           [7.]])
    """
    results: list[Any] = []
    for place, sequence in enumerate(sequences):
        array = as_array(sequence)
        check_axes("ix_", array, 1)
        array = flatnonzero(array) if array.dtype == np.bool_ else as_indices(sequence, "ix_")
        shape = tuple(-1 if i == place else 1 for i in range(len(sequences)))
        results.append(reshape(array, shape))
    some = any(isinstance(one, Tensor) for one in results)
    return tuple(asarray(one) if some else one for one in results)


# ---- flat and by axis ---------------------------------------------------------------------------


def _checked(convert: Callable[..., Any], *args: Any) -> Any:
    try:
        return convert(*args)
    except ValueError as error:
        raise ArgumentError(f"{convert.__name__}: {error}") from None


_ravel = general(
    "ravel_multi_index",
    lambda xp, *arrays, dims, mode, order: _checked(
        xp.ravel_multi_index, arrays, dims, mode, order
    ),
    infer=lambda *arrays, dims, mode, order: Aval(
        broadcast_sizes(*(array.shape for array in arrays)), _INDEX
    ),
    batch=batch_elementwise,
)


def ravel_multi_index(
    multi_index: Sequence[ArrayLike], /, dims: Shape, mode: Any = "raise", order: str = "C"
) -> Array:
    """Positions in the flattened array from indices by axis.

    Args:
        multi_index: Integers, one array for each axis; they broadcast.
        dims: The shape of the array.
        mode: What to do out of bounds: "raise", "wrap" or "clip"; or one for each axis.
        order: Which axis runs fastest: "C" for the last one, "F" for the first one.

    Raises:
        ArgumentError: An index is out of bounds.
        ShapeError: The shapes do not broadcast.

    >>> gt.ravel_multi_index((np.array([0, 1]), np.array([2, 0])), (2, 3))
    array([2, 3])
    """
    arrays = [as_indices(array, "ravel_multi_index") for array in multi_index]
    shape = as_shape(dims, "ravel_multi_index")
    mode = tuple(mode) if isinstance(mode, list) else mode
    return _ravel(*arrays, dims=shape, mode=mode, order=order)


_unravel = general(
    "unravel_index",
    lambda xp, x, shape, order: _checked(xp.unravel_index, x, shape, order),
    infer=lambda x, shape, order: (Aval(x.shape, _INDEX),) * len(shape),
    outputs=None,
)


def unravel_index(x: ArrayLike, /, shape: Shape, order: str = "C") -> tuple[Array, ...]:
    """Indices by axis from positions in the flattened array.

    Args:
        x: The positions.
        shape: The shape of the array.
        order: Which axis runs fastest: "C" for the last one, "F" for the first one.

    Raises:
        ArgumentError: A position is out of bounds.

    >>> gt.unravel_index(np.array([2, 3]), (2, 3))
    (array([0, 1]), array([2, 0]))
    """
    x = as_indices(x, "unravel_index")
    return _unravel(x, shape=as_shape(shape, "unravel_index"), order=order)  # type: ignore[no-any-return]
