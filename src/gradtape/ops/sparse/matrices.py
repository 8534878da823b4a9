"""Sparse matrices like those of SciPy's older classes, for which `*` multiplies matrices."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import UnsupportedError
from gradtape.ops.checks import check_least
from gradtape.ops.linalg.common import by_squaring, check_fit
from gradtape.ops.sparse.arrays import (
    SparseArray,
    as_sparse,
    is_scipy_sparse,
    is_sparse,
    rearranged,
)
from gradtape.ops.sparse.making import coo_array, csc_array, csr_array, eye_array

_USE_ARRAYS = "make it with csr_array, whose sums and rows are arrays"


def is_matrix(x: Any) -> bool:
    """Whether it is of one of SciPy's older classes, or of ours that behaves like them."""
    return isinstance(x, SparseMatrix) or (
        is_scipy_sparse(x) and type(x).__name__.endswith("_matrix")
    )


def as_matrix(x: Any) -> SparseMatrix:
    """A sparse matrix of any class as one for which `*` multiplies matrices."""
    s = as_sparse(x)
    return SparseMatrix(s.data, s.indices, s.indptr, s._shape, s.transposed)


def as_array_class(s: SparseArray) -> SparseArray:
    """A sparse matrix with the operators of arrays."""
    return SparseArray(s.data, s.indices, s.indptr, s._shape, s.transposed)


def like(result: SparseArray, *sources: Any) -> SparseArray:
    """A matrix made of others: of the older kind unless one of them is a sparse array."""
    arrays = (x for x in sources if is_sparse(x) and not is_matrix(x))
    return as_matrix(result) if next(arrays, None) is None else result


def _refused(what: str, instead: str) -> UnsupportedError:
    return UnsupportedError(
        f"csr_matrix: got {what}, which is a numpy.matrix in SciPy, and tensors are none; {instead}"
    )


class SparseMatrix(SparseArray):
    """A `SparseArray` with the operators of `csr_matrix`: `*` and `**` multiply matrices.

    Rows and columns stay matrices. What SciPy gives as a `numpy.matrix` is refused.

    Attributes:
        data: The stored numbers, row by row.
        indices: The column of each.
        indptr: Where each row begins and ends in them.
        transposed: Whether it is columns instead of rows that are stored one by one.
        shape: The numbers of rows and columns.

    >>> s = gt.scipy.sparse.csr_matrix((gt.tensor([2.0, 3.0]), ([0, 1], [1, 0])), shape=(2, 2))
    >>> s * np.array([1.0, 10.0])
    tensor([20.,  3.])
    """

    __slots__ = ()

    @property
    def scipy_names(self) -> tuple[str, ...]:
        """The classes of SciPy it counts as."""
        return f"{self.format}_matrix", "coo_matrix"

    def __mul__(self, other: Any) -> Any:
        """The product of matrices, or with a number."""
        return self.multiply(other) if np.ndim(other) == 0 else self @ other

    def __rmul__(self, other: Any) -> Any:
        return self.multiply(other) if np.ndim(other) == 0 else self.__rmatmul__(other)

    def dot(self, other: Any) -> Any:
        """The product of matrices, or with a number."""
        return self * other

    def __pow__(self, n: Any) -> Any:
        """The matrix multiplied by itself."""
        return power(self, n)

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """The sum of all numbers."""
        if axis is not None:
            raise _refused(f"sum(axis={axis})", _USE_ARRAYS)
        return super().sum(None, dtype, out)

    def mean(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """The mean of all elements."""
        if axis is not None:
            raise _refused(f"mean(axis={axis})", _USE_ARRAYS)
        return super().mean(None, dtype, out)

    def todense(self) -> Any:
        """Refused: `toarray()` gives an array."""
        raise _refused("todense()", "use toarray()")

    def __getitem__(self, index: Any) -> Any:
        """Rows, columns and parts, which are matrices, or a single element."""
        import scipy.sparse

        s = self.in_order()
        numbers = scipy.sparse.csr_matrix(s.numbered(1))[index]
        if is_scipy_sparse(numbers):
            return as_matrix(rearranged(lambda _: numbers, s))
        if np.ndim(numbers):
            raise _refused("several elements by their places", _USE_ARRAYS)
        return SparseArray.__getitem__(self, index)

    def getrow(self, i: int) -> Any:
        """A row as a matrix."""
        return self[[i]]

    def getcol(self, j: int) -> Any:
        """A column as a matrix."""
        return self[:, [j]]


def _kept(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of arrays whose result is a matrix if it is sparse."""

    @functools.wraps(method)
    def of_matrix(self: SparseMatrix, *args: Any, **kwargs: Any) -> Any:
        if method.__name__ in ("__add__", "__radd__", "__sub__", "__rsub__"):
            (other,) = args
            if np.ndim(other) and not (is_scipy_sparse(other) or isinstance(other, SparseArray)):
                raise _refused("+ or - with a dense array", "use toarray()")
        out = method(self, *args, **kwargs)
        return as_matrix(out) if type(out) is SparseArray else out

    return of_matrix


def _give_methods() -> None:
    names = "add radd sub rsub matmul rmatmul truediv neg abs"
    for name in (*(f"__{name}__" for name in names.split()), "multiply", "transpose", "conj"):
        setattr(SparseMatrix, name, _kept(getattr(SparseArray, name)))
    for name in ("with_data", "astype", "power", "tocsr", "tocsc", "tocoo"):
        setattr(SparseMatrix, name, _kept(getattr(SparseArray, name)))
    SparseMatrix.T = property(_kept(SparseArray.T.fget))  # type: ignore[assignment, attr-defined]


_give_methods()


def power(s: SparseArray, power: Any) -> SparseArray:
    """A square sparse matrix multiplied by itself; none of it is the identity."""
    power = operator.index(power)
    check_fit("matrix_power", s.shape[0] == s.shape[1], "a square matrix", s)
    check_least("matrix_power", 0, power=power)
    return by_squaring(s, power) if power else like(eye_array(s.shape[0], dtype=s.dtype), s)


# ---- making them, and asking for them -----------------------------------------------------------


def csr_matrix(arg1: Any, shape: Any = None, dtype: Any = None) -> SparseMatrix:
    """A sparse matrix as `csr_array` makes it, for which `*` multiplies matrices.

    Args:
        arg1: What `csr_array` takes.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    >>> s = gt.scipy.sparse.csr_matrix(gt.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> s * np.array([3.0, 4.0])
    tensor([3., 8.])
    """
    return as_matrix(csr_array(arg1, shape, dtype))


def csc_matrix(arg1: Any, shape: Any = None, dtype: Any = None) -> SparseMatrix:
    """A sparse matrix as `csc_array` makes it, for which `*` multiplies matrices.

    Args:
        arg1: What `csc_array` takes.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    >>> s = gt.scipy.sparse.csc_matrix(gt.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> s * np.array([3.0, 4.0])
    tensor([3., 8.])
    """
    return as_matrix(csc_array(arg1, shape, dtype))


def coo_matrix(arg1: Any, shape: Any = None, dtype: Any = None) -> SparseMatrix:
    """A sparse matrix as `coo_array` makes it, for which `*` multiplies matrices.

    Args:
        arg1: What `coo_array` takes.
        shape: The numbers of rows and columns; the smallest that have all places if it is None.
        dtype: The dtype of the numbers, if it is to be another than theirs.

    >>> s = gt.scipy.sparse.coo_matrix((gt.tensor([1.0, 2.0]), ([0, 1], [0, 1])))
    >>> s * np.array([3.0, 4.0])
    tensor([3., 8.])
    """
    return as_matrix(coo_array(arg1, shape, dtype))


def issparse(x: Any) -> bool:
    """Whether something is a sparse matrix, of SciPy or with tensors.

    Args:
        x: Anything.

    >>> gt.scipy.sparse.issparse(gt.scipy.sparse.csr_array(gt.tensor([[1.0]])))
    True
    """
    return is_sparse(x)


def isspmatrix(x: Any) -> bool:
    """Whether something is a sparse matrix with the operators of SciPy's older classes.

    Args:
        x: Anything.

    >>> gt.scipy.sparse.isspmatrix(gt.scipy.sparse.csr_array(gt.tensor([[1.0]])))
    False
    """
    return is_sparse(x) and is_matrix(x)


def isspmatrix_csr(x: Any) -> bool:
    """Whether something is a `csr_matrix`.

    Args:
        x: Anything.

    >>> gt.scipy.sparse.isspmatrix_csr(gt.scipy.sparse.csr_matrix(gt.tensor([[1.0]])))
    True
    """
    return "csr_matrix" in getattr(x, "scipy_names", ())


def isspmatrix_csc(x: Any) -> bool:
    """Whether something is a `csc_matrix`.

    Args:
        x: Anything.

    >>> gt.scipy.sparse.isspmatrix_csc(gt.scipy.sparse.csr_matrix(gt.tensor([[1.0]])))
    False
    """
    return "csc_matrix" in getattr(x, "scipy_names", ())


def isspmatrix_coo(x: Any) -> bool:
    """Whether something is a `coo_matrix`.

    Args:
        x: Anything.

    >>> gt.scipy.sparse.isspmatrix_coo(gt.scipy.sparse.csr_matrix(gt.tensor([[1.0]])))
    True
    """
    return "coo_matrix" in getattr(x, "scipy_names", ())
