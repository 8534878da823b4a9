"""Sparse matrices from the arguments of SciPy's functions of the same names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.checks import check_axes, check_same_shape
from gradtape.ops.gather import gather_leading
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.ops.sparse.arrays import SparseArray, as_sparse, from_scipy, is_sparse
from gradtape.ops.sparse.places import along_diagonal


def _integers(name: str, what: str, values: Any) -> Any:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name}: got {what} of {array.dtype}{list(array.shape)}, expected integers along one "
            "axis"
        )
    return array.astype(np.intp)


def _check_inside(name: str, what: str, values: Any, size: int) -> None:
    """Raise for places outside of the matrix: SciPy would read beyond its memory."""
    bad = values[(values < 0) | (values >= size)]
    if bad.size:
        raise ArgumentError(f"{name}: got {what} {bad[0]}, expected numbers from 0 to {size - 1}")


def _made(name: str, arg: Any, shape: Any, dtype: Any) -> SparseArray:
    """A matrix of any of the forms that SciPy takes."""
    sizes = None if shape is None else _two_sizes(name, shape)
    if is_sparse(arg):
        made = as_sparse(arg)
    elif not isinstance(arg, tuple):
        made = _of_dense(name, as_array(arg))
    elif len(arg) == 2 and all(isinstance(size, int | np.integer) for size in arg):
        nothing = np.zeros(0, np.intp)
        made = _of_places(name, np.zeros(0), nothing, nothing, _two_sizes(name, arg))
    elif len(arg) == 2 and hasattr(arg[1], "__len__") and len(arg[1]) == 2:
        row, col = (_integers(name, *one) for one in zip(("row", "col"), arg[1], strict=True))
        made = _of_places(name, as_array(arg[0]), row, col, sizes)
    elif len(arg) == 3 and name != "coo_array":
        made = _compressed(name, arg, sizes)
    else:
        raise _not_a_matrix(name, arg)
    if sizes is not None and made.shape != sizes:
        raise ShapeError(f"{name}: got a matrix of shape {made.shape} and shape={sizes}")
    return made if dtype is None else made.astype(dtype)


def _not_a_matrix(name: str, arg: tuple[Any, ...]) -> ArgumentError:
    parts = ", ".join(type(part).__name__ for part in arg)
    by_rows = "" if name == "coo_array" else "(data, indices, indptr), "
    return ArgumentError(
        f"{name}: got a tuple ({parts}), expected {by_rows}(data, (row, col)), a dense array of "
        "two axes, a sparse matrix, or (rows, columns) for one without stored numbers"
    )


def _two_sizes(name: str, shape: Any) -> tuple[int, int]:
    sizes = as_shape(shape, name)
    if len(sizes) != 2:
        raise ShapeError(f"{name}: got shape {sizes}, expected the numbers of rows and columns")
    return sizes[0], sizes[1]


def _of_dense(name: str, dense: Any) -> SparseArray:
    """A matrix with the nonzero elements of a dense one, or with all of them."""
    instead = "numbers and their places come as (data, (row, col))"
    check_axes(name, dense, 2, instead=instead)
    # Elements of a recorded tensor that are zero now have derivatives, too.
    recorded = isinstance(dense, Tensor) and dense.requires_grad
    row, col = np.nonzero(np.ones(dense.shape) if recorded else np.asarray(dense))
    data = gather_leading(dense, row, col) if len(row) else reshape(dense[:0], (0,))
    return _of_places(name, data, row, col, (dense.shape[0], dense.shape[1]))


def _of_places(
    name: str, data: Any, row: Any, col: Any, sizes: tuple[int, int] | None
) -> SparseArray:
    """A matrix of numbers and their places, by rows; numbers that share a place stay separate."""
    check_same_shape(name, data=data, row=row, col=col)
    if sizes is None:
        sizes = int(row.max(initial=-1)) + 1, int(col.max(initial=-1)) + 1
    _check_inside(name, "row", row, sizes[0])
    _check_inside(name, "column", col, sizes[1])
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(sizes[0] + 1))
    data = gather_leading(data, order) if len(order) else data
    return SparseArray(data, col[order], indptr, sizes, False)


def _compressed(name: str, arg: tuple[Any, ...], sizes: tuple[int, int] | None) -> SparseArray:
    """A matrix given row by row, or column by column, which is its transpose."""
    data, transposed = as_array(arg[0]), name == "csc_array"
    indices, indptr = _integers(name, "indices", arg[1]), _integers(name, "indptr", arg[2])
    if sizes is None:
        rows, columns = max(len(indptr) - 1, 0), int(indices.max(initial=-1)) + 1
    else:
        rows, columns = sizes[::-1] if transposed else sizes
    fits = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if tuple(data.shape) != indices.shape or not fits or (np.diff(indptr) < 0).any():
        given = "" if sizes is None else f" for shape {sizes}"
        raise ShapeError(
            f"{name}: got data {tuple(data.shape)}, indices {indices.shape}, indptr "
            f"{indptr.shape}{given}, expected as many indices as data, and indptr to rise from 0 "
            "to that"
        )
    _check_inside(name, "index", indices, columns)
    return SparseArray(data, indices, indptr, (rows, columns), transposed)


def _is_given_otherwise(arg: Any) -> bool:
    """Whether it is neither a matrix nor given row by row, and has to be put in order."""
    return not is_sparse(arg) and not (isinstance(arg, tuple) and len(arg) == 3)


def csr_array(arg: Any, /, shape: Any = None, dtype: Any = None) -> SparseArray:
    """A sparse matrix stored row by row; its numbers may be a tensor.

    Args:
        arg: One of these: the stored numbers, their columns, and from where to where in them each
            row goes, `(data, indices, indptr)`; numbers and their places, `(data, (row, col))`, of
            which those for the same place are added; a sparse matrix; a dense one; or the shape
            of a matrix without stored numbers. Of a dense one what is not zero is stored, and of
            a recorded tensor everything, so that zeros get their gradients.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    Raises:
        ArgumentError: Something else got, or a place is not there.
        ShapeError: The arrays do not fit.

    >>> s = gt.scipy.sparse.csr_array((np.array([1.0, 2.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> s @ np.array([3.0, 4.0])
    array([3., 8.])
    >>> gt.scipy.sparse.csr_array((np.array([1.0, 2.0]), ([1, 0], [0, 1]))).toarray()
    array([[0., 2.],
           [1., 0.]])
    """
    made = _made("csr_array", arg, shape, dtype)
    return made.tocsr() if _is_given_otherwise(arg) else made


def csc_array(arg: Any, /, shape: Any = None, dtype: Any = None) -> SparseArray:
    """A sparse matrix stored column by column; its numbers may be a tensor.

    Args:
        arg: The stored numbers, their rows, and from where to where in them each column goes,
            `(data, indices, indptr)`; or any other form that `csr_array` takes.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    Raises:
        ArgumentError: Something else got, or a place is not there.
        ShapeError: The arrays do not fit.

    >>> s = gt.scipy.sparse.csc_array((np.array([1.0, 2.0]), [1, 0], [0, 1, 2]), shape=(2, 2))
    >>> s.toarray()
    array([[0., 2.],
           [1., 0.]])
    """
    made = _made("csc_array", arg, shape, dtype)
    return made.tocsc() if _is_given_otherwise(arg) else made


def coo_array(arg: Any, /, shape: Any = None, dtype: Any = None) -> SparseArray:
    """A sparse matrix given by numbers and their places, in any order; they may be a tensor.

    Args:
        arg: The stored numbers, and the row and the column of each: `(data, (row, col))`. Numbers
            for the same place are added. Or a sparse matrix, a dense one, or a shape, as
            `csr_array` takes them.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    Raises:
        ArgumentError: Something else got, or a place is not there.
        ShapeError: The arrays do not fit.

    >>> s = gt.scipy.sparse.coo_array((np.array([1.0, 2.0]), ([1, 0], [0, 1])), shape=(2, 2))
    >>> s.toarray()
    array([[0., 2.],
           [1., 0.]])
    """
    return _made("coo_array", arg, shape, dtype)


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

    >>> gt.scipy.sparse.eye_array(2).toarray()
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
        diagonals: One diagonal, or a sequence of them; a single number is repeated.
        offsets: Which one it is, or which ones: positive ones lie above.
        shape: The numbers of rows and columns; the smallest square matrix if it is None.
        format: How the result is stored: by columns for "csc", else by rows.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    Raises:
        ShapeError: A diagonal does not fit.

    >>> gt.scipy.sparse.diags_array([gt.ones(2), np.array([5.0])], offsets=[0, 1]).toarray()
    tensor([[1., 5.],
            [0., 1.]])
    """
    dtype = None if type(dtype) is object else dtype  # SciPy's default says that there is none
    if np.ndim(offsets) == 0:
        one = isinstance(diagonals, Sequence) and len(diagonals) and np.ndim(diagonals[0]) == 1
        diagonals, offsets = diagonals if one else [diagonals], [int(offsets)]
    rows = [as_array(one) for one in diagonals]
    offsets = [int(k) for k in offsets]
    if len(rows) != len(offsets) or len(set(offsets)) != len(offsets) or not rows:
        raise ShapeError(
            f"diags_array: got {len(rows)} diagonals and offsets {offsets}, expected as many, all "
            "different"
        )
    if shape is None:
        side = rows[0].shape[0] + abs(offsets[0])
        shape = (side, side)
    m, n = as_shape(shape, "diags_array")
    data, places = [], []
    for row, k in zip(rows, offsets, strict=True):
        length = along_diagonal((m, n), k)
        expected = f"({length},) for the diagonal {k} of a matrix of shape {(m, n)}"
        check_fit("diags_array", row.shape in ((), (1,), (length,)), expected, row)
        data.append(broadcast_to(row, (length,)))
        places.append(np.arange(length)[:, None] + [max(-k, 0), max(k, 0)])
    row, col = np.concatenate(places).T
    made = coo_array((concatenate(data), (row, col)), shape=(m, n), dtype=dtype)
    return made.asformat(format)
