"""Sparse matrices whose stored numbers may be tensors, and functions of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arithmetic import absolute
from gradtape.ops.cast import astype, conj_if_complex
from gradtape.ops.checks import check_axes
from gradtape.ops.gather import gather_leading, scatter
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape
from gradtape.ops.sparse.places import along_diagonal, by_rows, keys_of, meetings, once
from gradtape.ops.sparse.product import matrix_of, product, rows_of
from gradtape.typing import Array, ArrayLike


class SparseArray:
    """A sparse matrix: stored numbers, which may be a tensor, at places that are constant.

    It is made by `gt.scipy.sparse.csr_array`, `csc_array` and `coo_array`, as SciPy's are.
    It multiplies dense arrays and sparse matrices from either side, is added to them, scaled and
    indexed; its numbers are differentiable as any tensor is. There is one way to store it, so that
    `tocsr` and its kin only put the numbers in order.

    Attributes:
        data: The stored numbers, row by row.
        indices: The column of each.
        indptr: Where each row begins and ends in them.
        transposed: Whether it is columns instead of rows that are stored one by one.
        shape: The numbers of rows and columns.
        coords: The row and the column of each stored number.

    >>> def energy(data, x):
    ...     s = gt.scipy.sparse.csr_array((data, [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    ...     return x @ (s @ x)
    >>> gt.grad(energy)(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0]))
    array([1., 2., 4.])
    """

    # NumPy arrays leave operators with a matrix to ours.
    __array_ufunc__ = None
    # Functions of gradtape.scipy take it for a tensor.
    holds_tensors = True
    __slots__ = ("_shape", "data", "indices", "indptr", "transposed")

    def __init__(
        self, data: Array, indices: Any, indptr: Any, shape: tuple[int, int], transposed: bool
    ) -> None:
        """Take checked arrays; `shape` is that before transposing."""
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
    def format(self) -> str:
        """How the numbers are stored: "csr" for row by row, "csc" for column by column."""
        return "csc" if self.transposed else "csr"

    @property
    def scipy_names(self) -> tuple[str, ...]:
        """The classes of SciPy it counts as: it has the places that `coo_array` has in any case."""
        return f"{self.format}_array", "coo_array"

    @property
    def row(self) -> Any:
        """The row of each stored number."""
        return self.coords[0]

    @property
    def col(self) -> Any:
        """The column of each stored number."""
        return self.coords[1]

    @property
    def T(self) -> SparseArray:  # noqa: N802 (as arrays call it)
        """The transpose, with the same stored numbers."""
        return SparseArray(self.data, self.indices, self.indptr, self._shape, not self.transposed)

    @property
    def coords(self) -> tuple[Any, Any]:
        """The row and the column of each stored number."""
        places = rows_of(self.indptr), self.indices
        return places[::-1] if self.transposed else places

    def with_data(self, data: ArrayLike) -> SparseArray:
        """A matrix with other numbers at the same places.

        >>> s = gt.scipy.sparse.csr_array((gt.ones(2), [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> s.with_data(np.array([3.0, 4.0])).toarray()
        array([[3., 0.],
               [0., 4.]])
        """
        data = as_array(data)
        if tuple(data.shape) != (self.nnz,):
            raise ShapeError(f"with_data: got shape {data.shape}, expected ({self.nnz},)")
        return SparseArray(data, self.indices, self.indptr, self._shape, self.transposed)

    def toarray(self) -> Array:
        """The matrix as a dense array; numbers stored for one place several times are added."""
        dense = scatter(self.data, rows_of(self.indptr), self.indices, shape=self._shape)
        return dense.mT if self.transposed else dense

    todense = toarray

    def diagonal(self, k: int = 0) -> Array:
        """The elements on a diagonal; positive ones lie above."""
        rows, columns = self.coords
        (found,) = np.nonzero(columns - rows == k)
        stored, length = gather_leading(self.data, found), along_diagonal(self.shape, k)
        return scatter(stored, rows[found] + min(k, 0), shape=(length,))

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        """The sum of all numbers, of each column (axis 0), or of each row (axis 1)."""
        if out is not None:  # np.sum passes it on
            raise UnsupportedError("sum: got out=, which gradtape does not take; leave it out")
        data = self.data if dtype is None else astype(self.data, dtype)
        if axis is None:
            return sum_of(data)
        axis = normalize_axis(axis, 2, "sum")
        return scatter(data, self.coords[1 - axis], shape=(self.shape[1 - axis],))

    def mean(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        """The mean of all elements, of each column (axis 0), or of each row (axis 1)."""
        count = math.prod(self.shape) if axis is None else self.shape[axis]
        return self.sum(axis, dtype, out) / count

    def trace(self, offset: int = 0) -> Array:
        """The sum of the elements on a diagonal."""
        return sum_of(self.diagonal(offset))

    def transpose(self) -> SparseArray:
        """The transpose, with the same stored numbers."""
        return self.T

    def conj(self) -> SparseArray:
        """The complex conjugate."""
        return self.with_data(conj_if_complex(self.data))

    def astype(self, dtype: Any) -> SparseArray:
        """The matrix in another dtype."""
        return self.with_data(astype(self.data, dtype))

    def power(self, n: Any) -> SparseArray:
        """Each element to a power, which must be above 0 so that zeros stay."""
        if not isinstance(n, int | float) or n <= 0:
            raise UnsupportedError(
                f"sparse: got a power of {n!r}, expected a number above 0, so that zeros stay; use "
                "toarray()"
            )
        s = self.in_order()
        return s.with_data(s.data**n)

    # ---- other places --------------------------------------------------------------------------

    def in_order(self) -> SparseArray:
        """The same matrix with each place stored once, in the order of rows and columns."""
        keys = keys_of((rows_of(self.indptr), self.indices), self._shape)
        if (np.diff(keys) > 0).all():
            return self
        kept, which = once(keys)
        stored = _at_keys(scatter(self.data, which, shape=kept.shape), kept, self._shape)
        return stored.T if self.transposed else stored

    def tocsr(self) -> SparseArray:
        """The matrix stored row by row, in order."""
        return rearranged(lambda places: places, self) if self.transposed else self.in_order()

    def tocsc(self) -> SparseArray:
        """The matrix stored column by column, in order."""
        return self.T.tocsr().T

    def tocoo(self) -> SparseArray:
        """The matrix itself: `coords` and `data` are what SciPy's format of this name has."""
        return self

    def asformat(self, format: str | None, copy: bool = False) -> SparseArray:
        """The matrix stored column by column for "csc", and row by row for all other formats."""
        if format is None:
            return self
        return self.tocsc() if format == "csc" else self.tocsr()

    def copy(self) -> SparseArray:
        """The matrix itself: it is never changed in place."""
        return self

    def count_nonzero(self, axis: None = None) -> int:
        """How many of the stored numbers are not 0; raises while they are being recorded."""
        return int(self.toscipy().count_nonzero(axis))

    def toscipy(self) -> Any:
        """SciPy's matrix of the values; raises while they are being recorded."""
        data = np.array(self.data)
        return matrix_of(data, self.indices, self.indptr, self._shape, self.transposed)

    def __getitem__(self, index: Any) -> Any:
        """Rows, columns, parts, as in SciPy; one row or column comes as a dense vector."""
        s = self.in_order()
        numbers = s.numbered(1)[index]
        if np.ndim(numbers) == 2 and hasattr(numbers, "tocsr"):
            return rearranged(lambda _: numbers, s)
        if hasattr(numbers, "tocoo"):
            found = numbers.tocoo()
            stored = gather_leading(s.data, found.data - 1)
            return scatter(stored, found.coords[0], shape=found.shape)
        # 0 means not stored.
        padded = concatenate([np.zeros(1, s.dtype), s.data])
        return gather_leading(padded, np.asarray(numbers))

    def numbered(self, start: int) -> Any:
        """SciPy's matrix of the numbers of the stored numbers."""
        numbers = np.arange(start, start + self.nnz)
        return matrix_of(numbers, self.indices, self.indptr, self._shape, self.transposed)

    def __repr__(self) -> str:
        aval = f"{self.dtype}{list(self.shape)}"
        return f"<sparse {aval} with {self.nnz} stored numbers>"

    # ---- operators -------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        """The product with a dense array, or with a sparse matrix, which is sparse."""
        return _between(self, as_sparse(other)) if is_sparse(other) else _multiplied(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _between(as_sparse(other), self)
        other = as_array(other)
        if len(other.shape) == 1:
            return _multiplied(self.T, other)
        return _multiplied(self.T, other.mT).mT

    dot = __matmul__

    def __add__(self, other: Any) -> Any:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return _sum(-self, other, 1)

    def __mul__(self, other: Any) -> SparseArray:
        """The product element by element, with a number, a dense array or a sparse matrix."""
        if is_sparse(other):
            return _product_of_elements(self, as_sparse(other))
        other = as_array(other) if isinstance(other, list) else other
        return self.with_data(self.data * (_seen(self, other) if np.ndim(other) else other))

    __rmul__ = __mul__
    multiply = __mul__

    def __truediv__(self, other: Any) -> Any:
        if is_sparse(other):
            return self.toarray() / as_sparse(other).toarray()
        return self.with_data(self.data / (_seen(self, other) if np.ndim(other) else other))

    def __pow__(self, n: Any) -> SparseArray:
        return self.power(n)

    def __abs__(self) -> SparseArray:
        s = self.in_order()
        return s.with_data(absolute(s.data))

    def __neg__(self) -> SparseArray:
        return self.with_data(-self.data)


# ---- of SciPy -----------------------------------------------------------------------------------


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix, of SciPy or of ours."""
    return isinstance(x, SparseArray) or hasattr(x, "tocsr")


def is_scipy_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix of SciPy."""
    return hasattr(x, "tocsr") and not isinstance(x, SparseArray)


def as_sparse(x: Any) -> SparseArray:
    """A sparse matrix, of SciPy or of ours, as one of ours."""
    return x if isinstance(x, SparseArray) else from_scipy(x)


def from_scipy(matrix: Any, /) -> SparseArray:
    """A sparse matrix of SciPy, of any format, as one that multiplies tensors.

    Args:
        matrix: A matrix or array of `scipy.sparse` with two axes.

    >>> import scipy.sparse
    >>> gt.scipy.sparse.from_scipy(scipy.sparse.eye_array(2)) @ gt.tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    check_axes("from_scipy", matrix, 2)
    by_columns = matrix.format == "csc"
    rows = matrix.T if by_columns else matrix.tocsr()
    indices, indptr = (array.astype(np.intp, copy=False) for array in (rows.indices, rows.indptr))
    return SparseArray(rows.data, indices, indptr, tuple(rows.shape), by_columns)


# ---- places, which are constant -----------------------------------------------------------------


def _at_keys(data: Array, keys: Any, shape: tuple[int, int]) -> SparseArray:
    """A matrix from its numbers and the keys of their places, which rise."""
    return SparseArray(data, *by_rows(keys, shape), shape, False)


def rearranged(arrange: Callable[..., Any], *matrices: SparseArray) -> SparseArray:
    """The matrix with the stored numbers of others where a function of SciPy puts them.

    Args:
        arrange: Takes matrices of SciPy that hold the numbers of their stored elements, counted
            from 1 through all of them, and returns such a matrix.
        *matrices: The matrices whose stored numbers are rearranged.
    """
    matrices = tuple(s.in_order() for s in matrices)
    starts = np.cumsum([1, *(s.nnz for s in matrices)])
    found = arrange(*(s.numbered(i) for s, i in zip(matrices, starts, strict=False))).tocsr()
    found.eliminate_zeros()  # SciPy may store blocks with places that have none
    found.sort_indices()
    data = concatenate([s.data for s in matrices])
    indices, indptr = (array.astype(np.intp) for array in (found.indices, found.indptr))
    stored = gather_leading(data, found.data.astype(np.intp) - 1) if found.nnz else data[:0]
    return SparseArray(stored, indices, indptr, tuple(found.shape), False)


# ---- products and sums --------------------------------------------------------------------------


def applied(op: Callable[..., Any], s: SparseArray, x: Any) -> Any:
    """The result of an op on a sparse matrix and a dense one, such as their product."""
    return op(s.data, x, s.indices, s.indptr, shape=s._shape, transpose=s.transposed)


def _multiplied(s: SparseArray, x: ArrayLike) -> Array:
    """The product with a vector, a matrix, or a stack of matrices."""
    times = functools.partial(applied, product, s)
    return in_columns("matmul", times, s, as_array(x), rows=-1)


def _between(a: SparseArray, b: SparseArray) -> SparseArray:
    """The product of two sparse matrices: the products of numbers that meet, added up by place."""
    expected = "as many rows of the second as columns of the first"
    check_fit("matmul", a.shape[1] == b.shape[0], expected, a, b)
    b, shape = b.tocsr(), (a.shape[0], b.shape[1])
    rows, columns = a.coords
    left, right = meetings(columns, b.indptr)
    kept, which = once(keys_of((rows[left], b.indices[right]), shape))
    terms = gather_leading(a.data, left) * gather_leading(b.data, right)
    return _at_keys(scatter(terms, which, shape=kept.shape), kept, shape)


def _sum(s: SparseArray, other: Any, sign: int) -> Any:
    if not is_sparse(other):
        if np.ndim(other) == 0 and not isinstance(other, Tensor) and other == 0:
            return s
        if np.ndim(other) == 0:
            raise UnsupportedError(
                "sparse: got + with a number, which would fill all places, expected a sparse "
                "matrix or a dense array; use toarray()"
            )
        return s.toarray() + sign * as_array(other)
    other = as_sparse(other)
    check_fit("sparse", s.shape == other.shape, "the same for +", s, other)
    keys = (keys_of(one.coords, s.shape) for one in (s, other))
    kept, which = once(np.concatenate([*keys]))
    data = concatenate([s.data, sign * other.data])
    return _at_keys(scatter(data, which, shape=kept.shape), kept, s.shape)


def _product_of_elements(a: SparseArray, b: SparseArray) -> SparseArray:
    check_fit("sparse", a.shape == b.shape, "the same for *", a, b)
    a, b = a.tocsr(), b.tocsr()
    first, second = (keys_of(one.coords, a.shape) for one in (a, b))
    kept, left, right = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    data = gather_leading(a.data, left) * gather_leading(b.data, right)
    return _at_keys(data, kept, a.shape)


def _seen(s: SparseArray, other: ArrayLike) -> Array:
    """The elements of a dense array, which broadcasts to the matrix, at its places."""
    other = as_array(other)
    sizes = (1,) * (2 - len(other.shape)) + tuple(other.shape)
    fits = len(sizes) == 2 and all(n in (1, m) for n, m in zip(sizes, s.shape, strict=True))
    check_fit("sparse", fits, "an array that broadcasts to the matrix", other, s)
    places = (at * (n > 1) for at, n in zip(s.coords, sizes, strict=True))
    return gather_leading(reshape(other, sizes), *places)
