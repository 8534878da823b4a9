"""Sparse matrices whose stored numbers may be tensors, and functions of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.define import public
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.gather import gather_leading, scatter
from gradtape.ops.shape import reshape
from gradtape.ops.sparse.product import matrix_of, product, rows_of
from gradtape.ops.sparse.solve import solution
from gradtape.typing import Array, ArrayLike


class SparseArray:
    """A sparse matrix: stored numbers, which may be a tensor, at places that are constant.

    It is made by `gt.sparse.csr_array`, `csc_array` and `coo_array`, which take what SciPy's take.
    It multiplies dense arrays from either side, and has a transpose; its numbers are differentiable
    as any tensor is.

    Attributes:
        data: The stored numbers, row by row.
        indices: The column of each.
        indptr: From where to where in them each row goes.
        transposed: Whether it is columns instead of rows that are stored one by one.
        shape: The numbers of rows and columns.

    >>> def energy(data, x):
    ...     s = gt.sparse.csr_array((data, [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    ...     return x @ (s @ x)
    >>> gt.grad(energy)(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0]))
    array([1., 2., 4.])
    """

    # Arrays of NumPy leave their operators to ours.
    __array_ufunc__ = None
    __slots__ = ("_shape", "data", "indices", "indptr", "transposed")

    def __init__(
        self, data: Array, indices: Any, indptr: Any, shape: tuple[int, int], transposed: bool
    ) -> None:
        """Take arrays that were checked; `shape` is that before transposing."""
        self.data = data
        self.indices = indices
        self.indptr = indptr
        self._shape = shape
        self.transposed = transposed

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self._shape[::-1] if self.transposed else self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the stored numbers."""
        return self.data.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes, which is 2."""
        return 2

    @property
    def nnz(self) -> int:
        """How many numbers are stored."""
        return len(self.indices)

    @property
    def T(self) -> SparseArray:  # noqa: N802 (as arrays call it)
        """The transpose, with the same stored numbers."""
        return SparseArray(self.data, self.indices, self.indptr, self._shape, not self.transposed)

    def with_data(self, data: ArrayLike) -> SparseArray:
        """A matrix with other numbers at the same places.

        >>> s = gt.sparse.csr_array((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> s.with_data(np.array([3.0, 4.0])).toarray()
        array([[3., 0.],
               [0., 4.]])
        """
        data = as_array(data)
        if tuple(data.shape) != (self.nnz,):
            raise ShapeError(f"with_data: came shape {data.shape}; needed ({self.nnz},)")
        return SparseArray(data, self.indices, self.indptr, self._shape, self.transposed)

    def toarray(self) -> Array:
        """The matrix as a dense array; numbers stored for one place several times are added."""
        dense = scatter(self.data, rows_of(self.indptr), self.indices, shape=self._shape)
        return dense.mT if self.transposed else dense

    todense = toarray

    def diagonal(self) -> Array:
        """The elements whose row and column have the same number."""
        rows = rows_of(self.indptr)
        (found,) = np.nonzero(rows == self.indices)
        stored = gather_leading(self.data, found)
        return scatter(stored, rows[found], shape=(min(self._shape),))

    def toscipy(self) -> Any:
        """SciPy's matrix of the values; raises while they are being recorded."""
        data = np.array(self.data)
        return matrix_of(data, self.indices, self.indptr, self._shape, self.transposed)

    def __repr__(self) -> str:
        came = f"{self.dtype}{list(self.shape)}"
        return f"<sparse {came} with {self.nnz} stored numbers>"

    # ---- operators -------------------------------------------------------------------------

    def __matmul__(self, other: ArrayLike) -> Array:
        return _multiplied("matmul", self, other)

    def __rmatmul__(self, other: ArrayLike) -> Array:
        other = as_array(other)
        if len(other.shape) == 1:
            return _multiplied("matmul", self.T, other)
        return _multiplied("matmul", self.T, other.mT).mT

    def __mul__(self, number: Any) -> SparseArray:
        if np.ndim(number) != 0:
            raise UnsupportedError(
                f"sparse: came * with an array of shape {np.shape(number)}; needed a number; use @ "
                "for products, with_data for other numbers at the same places"
            )
        return self.with_data(self.data * number)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> SparseArray:
        return self.__mul__(1 / number)

    def __neg__(self) -> SparseArray:
        return self.with_data(-self.data)


# ---- making them --------------------------------------------------------------------------------


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
    if hasattr(arg, "tocsr"):
        return from_scipy(arg)
    if isinstance(arg, SparseArray):
        return arg
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
    if hasattr(arg, "tocsr"):
        return from_scipy(arg)
    if isinstance(arg, SparseArray):
        return arg
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


def from_scipy(matrix: Any, /) -> SparseArray:
    """A sparse matrix of SciPy, of any format, as one that multiplies tensors.

    Args:
        matrix: A matrix or array of `scipy.sparse` with two axes.

    >>> import scipy.sparse
    >>> gt.sparse.from_scipy(scipy.sparse.eye_array(2)) @ gt.tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if matrix.ndim != 2:
        raise ShapeError(f"from_scipy: came shape {matrix.shape}; needed two axes")
    rows = matrix.tocsr()
    indices, indptr = (array.astype(np.intp) for array in (rows.indices, rows.indptr))
    return SparseArray(rows.data, indices, indptr, tuple(rows.shape), False)


# ---- products and equations ---------------------------------------------------------------------


def _is_sparse(x: Any) -> bool:
    return isinstance(x, SparseArray) or hasattr(x, "tocsr")


def _multiplied(name: str, s: SparseArray, x: ArrayLike) -> Array:
    """The product with a vector, a matrix, or a stack of matrices."""
    if _is_sparse(x):
        raise UnsupportedError(
            f"{name}: came two sparse matrices; needed one dense; use toarray() of one, or SciPy's "
            "product where both are constant"
        )
    x = as_array(x)
    vector = len(x.shape) == 1
    if not x.shape or x.shape[0 if vector else -2] != s.shape[1]:
        raise ShapeError(
            f"{name}: came a sparse matrix of shape {s.shape} and shape {x.shape}; needed a vector "
            f"of {s.shape[1]} elements, or matrices of as many rows"
        )
    columns = reshape(x, (x.shape[0], 1)) if vector else x
    out = product(s.data, columns, s.indices, s.indptr, shape=s._shape, transpose=s.transposed)
    return reshape(out, out.shape[:-1]) if vector else out


@public(name="sparse_matmul")
def matmul(a: Any, b: Any, /) -> Array:
    """The product of a sparse matrix and a dense array, in either order.

    Args:
        a: A sparse matrix, of SciPy or of `gt.sparse`, or a dense array.
        b: The other one of the two.

    Raises:
        ShapeError: The shapes do not fit.
        UnsupportedError: Both are sparse.
        ArgumentError: None of them is sparse.

    >>> import scipy.sparse
    >>> gt.sparse.matmul(scipy.sparse.csr_array(np.eye(2)), gt.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if _is_sparse(a):
        return csr_array(a) @ b
    if not _is_sparse(b):
        raise ArgumentError(
            f"matmul: came {aval_of(a)} and {aval_of(b)}; needed a sparse matrix; use gt.matmul"
        )
    return csr_array(b).__rmatmul__(a)


def spsolve(A: Any, b: ArrayLike, /) -> Array:
    """The solution x of `A @ x = b` with a sparse matrix, differentiable in its stored numbers.

    Args:
        A: A square sparse matrix, of SciPy or of `gt.sparse`.
        b: A vector, a matrix of columns, or a stack of such.

    Raises:
        ShapeError: The matrix is not square, or `b` does not fit.
        LinAlgError: The matrix is singular.
        ArgumentError: The matrix is not sparse.

    >>> s = gt.sparse.csr_array((np.array([2.0, 4.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> gt.sparse.spsolve(s, np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    if not _is_sparse(A):
        raise ArgumentError("spsolve: came a dense matrix; needed a sparse one; use gt.solve")
    s, b = csr_array(A), as_array(b)
    size = s.shape[0]
    vector = len(b.shape) == 1
    if s.shape[1] != size or not b.shape or b.shape[0 if vector else -2] != size:
        raise ShapeError(
            f"spsolve: came shapes {s.shape} and {b.shape}; needed a square matrix, and a vector "
            "of as many elements or matrices of as many rows"
        )
    columns = reshape(b, (size, 1)) if vector else b
    out = solution(s.data, columns, s.indices, s.indptr, shape=s._shape, transpose=s.transposed)
    return reshape(out, out.shape[:-1]) if vector else out
