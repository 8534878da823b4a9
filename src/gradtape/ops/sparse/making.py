"""Sparse matrices from what SciPy's functions of the same names take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.gather import gather_leading
from gradtape.ops.join import concatenate
from gradtape.ops.shape import broadcast_to
from gradtape.ops.sparse.arrays import SparseArray, as_sparse, from_scipy, is_sparse
from gradtape.ops.sparse.places import along_diagonal


def _integers(name: str, what: str, values: Any) -> Any:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name}: came {what} of {array.dtype}{list(array.shape)}; needed integers along one "
            "axis"
        )
    return array.astype(np.intp)


def _check_inside(name: str, what: str, values: Any, size: int) -> None:
    """Raise for places outside of the matrix: SciPy would read beyond its memory."""
    bad = values[(values < 0) | (values >= size)]
    if bad.size:
        raise ArgumentError(f"{name}: came {what} {bad[0]}; needed numbers from 0 to {size - 1}")


def _compressed(name: str, arg: Any, shape: Any, transposed: bool) -> SparseArray:
    """A matrix by rows, or by columns if it is transposed."""
    if is_sparse(arg):
        return as_sparse(arg)
    if not isinstance(arg, tuple) or len(arg) != 3 or shape is None:
        raise ArgumentError(
            f"{name}: needed (data, indices, indptr) and shape=(rows, columns), or a matrix of "
            "SciPy"
        )
    data, sizes = as_array(arg[0]), as_shape(shape, name)
    indices, indptr = (
        _integers(name, what, values)
        for what, values in zip(("indices", "indptr"), arg[1:], strict=True)
    )
    rows, columns = sizes[::-1] if transposed else sizes
    steps = np.diff(indptr)
    fits = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if tuple(data.shape) != indices.shape or not fits or (steps < 0).any():
        raise ShapeError(
            f"{name}: came data {data.shape}, indices {indices.shape}, indptr {indptr.shape} for "
            f"shape {sizes}; needed as many indices as data, and indptr to rise from 0 to that"
        )
    _check_inside(name, "index", indices, columns)
    return SparseArray(data, indices, indptr, (rows, columns), transposed)


def csr_array(arg: Any, /, shape: Any = None) -> SparseArray:
    """A sparse matrix given row by row; its numbers may be a tensor.

    Args:
        arg: The stored numbers, their columns, and from where to where in them each row goes:
            `(data, indices, indptr)`. Or a sparse matrix of SciPy.
        shape: The numbers of rows and columns; not needed with a matrix of SciPy.

    Raises:
        ArgumentError: Something else came, or a column is not there.
        ShapeError: The arrays do not fit.

    >>> s = gt.sparse.csr_array((np.array([1.0, 2.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> s @ np.array([3.0, 4.0])
    array([3., 8.])
    """
    return _compressed("csr_array", arg, shape, transposed=False)


def csc_array(arg: Any, /, shape: Any = None) -> SparseArray:
    """A sparse matrix given column by column; its numbers may be a tensor.

    Args:
        arg: The stored numbers, their rows, and from where to where in them each column goes:
            `(data, indices, indptr)`. Or a sparse matrix of SciPy.
        shape: The numbers of rows and columns; not needed with a matrix of SciPy.

    Raises:
        ArgumentError: Something else came, or a row is not there.
        ShapeError: The arrays do not fit.

    >>> s = gt.sparse.csc_array((np.array([1.0, 2.0]), [1, 0], [0, 1, 2]), shape=(2, 2))
    >>> s.toarray()
    array([[0., 2.],
           [1., 0.]])
    """
    return _compressed("csc_array", arg, shape, transposed=True)


def coo_array(arg: Any, /, shape: Any = None) -> SparseArray:
    """A sparse matrix given by numbers and their places, in any order; they may be a tensor.

    Args:
        arg: The stored numbers, and the row and the column of each: `(data, (row, col))`. Numbers
            for the same place are added. Or a sparse matrix of SciPy.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.

    Raises:
        ArgumentError: Something else came, or a place is not there.
        ShapeError: The arrays do not fit.

    >>> s = gt.sparse.coo_array((np.array([1.0, 2.0]), ([1, 0], [0, 1])), shape=(2, 2))
    >>> s.toarray()
    array([[0., 2.],
           [1., 0.]])
    """
    if is_sparse(arg):
        return as_sparse(arg)
    if not isinstance(arg, tuple) or len(arg) != 2 or len(arg[1]) != 2:
        raise ArgumentError("coo_array: needed (data, (row, col)), or a matrix of SciPy")
    data = as_array(arg[0])
    row, col = (
        _integers("coo_array", what, one) for what, one in zip(("row", "col"), arg[1], strict=True)
    )
    if not tuple(data.shape) == row.shape == col.shape:
        raise ShapeError(
            f"coo_array: came data {data.shape}, row {row.shape}, col {col.shape}; needed as many "
            "of each"
        )
    if shape is None:
        shape = tuple(int(one.max(initial=-1)) + 1 for one in (row, col))
    rows, columns = as_shape(shape, "coo_array")
    _check_inside("coo_array", "row", row, rows)
    _check_inside("coo_array", "column", col, columns)
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(rows + 1))
    data = gather_leading(data, order) if len(order) else data
    return SparseArray(data, col[order], indptr, (rows, columns), False)


def eye_array(
    m: int, /, n: int | None = None, *, k: int = 0, dtype: Any = float, format: str | None = None
) -> SparseArray:
    """A matrix with ones on a diagonal, as `scipy.sparse.eye_array`.

    Args:
        m: The number of rows.
        n: The number of columns; that of rows if it is None.
        k: Which diagonal; positive ones lie above.
        dtype: The dtype of the ones.
        format: Not used: there is one way to store a matrix here.

    >>> gt.sparse.eye_array(2).toarray()
    array([[1., 0.],
           [0., 1.]])
    """
    import scipy.sparse

    return from_scipy(scipy.sparse.eye_array(m, n, k=k, dtype=dtype))


def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: Any = None,
) -> SparseArray:
    """A matrix from its diagonals, which may be tensors.

    Args:
        diagonals: One diagonal, or a sequence of them; one of a single number goes all along.
        offsets: Which one it is, or which ones: positive ones lie above.
        shape: The numbers of rows and columns; the smallest square matrix if it is None.
        format: Not used: there is one way to store a matrix here.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    Raises:
        ShapeError: A diagonal does not fit.

    >>> gt.sparse.diags_array([np.ones(2), np.array([5.0])], offsets=[0, 1]).toarray()
    array([[1., 5.],
           [0., 1.]])
    """
    if np.ndim(offsets) == 0:
        one = isinstance(diagonals, Sequence) and len(diagonals) and np.ndim(diagonals[0]) == 1
        diagonals, offsets = diagonals if one else [diagonals], [int(offsets)]
    rows = [as_array(one) for one in diagonals]
    offsets = [int(k) for k in offsets]
    if len(rows) != len(offsets) or len(set(offsets)) != len(offsets) or not rows:
        raise ShapeError(
            f"diags_array: came {len(rows)} diagonals and offsets {offsets}; needed as many, all "
            "different"
        )
    if shape is None:
        side = rows[0].shape[0] + abs(offsets[0])
        shape = (side, side)
    m, n = as_shape(shape, "diags_array")
    data, places = [], []
    for row, k in zip(rows, offsets, strict=True):
        length = along_diagonal((m, n), k)
        if len(row.shape) > 1 or row.shape not in ((), (1,), (length,)):
            raise ShapeError(
                f"diags_array: came a diagonal of shape {row.shape} for offset {k} of a matrix of "
                f"shape {(m, n)}; needed ({length},)"
            )
        data.append(broadcast_to(row, (length,)))
        places.append(np.arange(length)[:, None] + [max(-k, 0), max(k, 0)])
    row, col = np.concatenate(places).T
    matrix = coo_array((concatenate(data), (row, col)), shape=(m, n))
    return matrix if dtype is None else matrix.astype(dtype)
