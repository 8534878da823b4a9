"""Functions of sparse matrices: products, equations, norms, and matrices made of others."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_least
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import by_squaring, check_fit
from gradtape.ops.norm import norm as dense_norm
from gradtape.ops.reduce import max as max_of
from gradtape.ops.sparse.arrays import SparseArray, applied, as_sparse, is_sparse, rearranged
from gradtape.ops.sparse.making import eye_array
from gradtape.ops.sparse.solve import solution
from gradtape.typing import Array

# ---- products and equations ---------------------------------------------------------------------


def matmul(a: Any, b: Any, /) -> Any:
    """The product of a sparse matrix and a dense array, in either order, or of two sparse ones.

    Args:
        a: A sparse matrix, of SciPy or of `gt.scipy.sparse`, or a dense array.
        b: The other one of the two.

    Returns:
        A dense array, or a sparse matrix if both are sparse.

    Raises:
        ShapeError: The shapes do not fit.
        ArgumentError: None of them is sparse.

    >>> import scipy.sparse
    >>> gt.scipy.sparse.matmul(scipy.sparse.csr_array(np.eye(2)), gt.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if is_sparse(a):
        return as_sparse(a) @ b
    if not is_sparse(b):
        raise ArgumentError(
            f"matmul: got {aval_of(a)} and {aval_of(b)}, expected a sparse matrix; use gt.matmul"
        )
    return as_sparse(b).__rmatmul__(a)


def spsolve(A: Any, b: Any, /) -> Array:
    """The solution x of `A @ x = b` with a sparse matrix, differentiable in its stored numbers.

    Args:
        A: A square sparse matrix, of SciPy or of `gt.scipy.sparse`.
        b: A vector, a matrix of columns, or a stack of such; also a sparse matrix, which is made
            dense.

    Raises:
        ShapeError: The matrix is not square, or `b` does not fit.
        LinAlgError: The matrix is singular.
        ArgumentError: The matrix is not sparse.

    >>> s = gt.scipy.sparse.csr_array((np.array([2.0, 4.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> gt.scipy.sparse.spsolve(s, np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    if not is_sparse(A):
        raise ArgumentError("spsolve: got a dense matrix, expected a sparse one; use gt.solve")
    s = as_sparse(A)
    b = as_sparse(b).toarray() if is_sparse(b) else as_array(b)
    check_fit("spsolve", s.shape[0] == s.shape[1], "a square matrix", s)
    return in_columns("spsolve", functools.partial(applied, solution, s), s, b)


def spsolve_triangular(
    A: Any, b: Any, /, lower: bool = True, *, unit_diagonal: bool = False
) -> Array:
    """The solution of `A @ x = b` with one triangle of a sparse matrix; the other is not read.

    Args:
        A: A square sparse matrix.
        b: A vector, a matrix of columns, or a stack of such.
        lower: Whether it is the lower triangle.
        unit_diagonal: Whether to assume ones on the diagonal, whatever is stored there.

    >>> s = gt.scipy.sparse.csr_array(
    ...     (np.array([2.0, 1.0, 4.0]), [0, 0, 1], [0, 1, 3]), shape=(2, 2)
    ... )
    >>> gt.scipy.sparse.spsolve_triangular(s, np.array([2.0, 9.0]))
    array([1., 2.])
    """
    skip = int(unit_diagonal)
    triangle = tril(A, -skip) if lower else triu(A, skip)
    if unit_diagonal:
        triangle = triangle + eye_array(*triangle.shape, dtype=triangle.dtype)
    return spsolve(triangle, b)


def matrix_power(A: Any, power: int, /) -> SparseArray:
    """A square sparse matrix multiplied by itself.

    Args:
        A: The matrix.
        power: How often, not below 0.

    Raises:
        ShapeError: It is not square.
        ArgumentError: The power is negative.

    >>> gt.scipy.sparse.matrix_power(2.0 * gt.scipy.sparse.eye_array(2), 3).toarray()
    array([[8., 0.],
           [0., 8.]])
    """
    s, power = as_sparse(A), operator.index(power)
    check_fit("matrix_power", s.shape[0] == s.shape[1], "a square matrix", s)
    check_least("matrix_power", 0, power=power)
    return by_squaring(s, power) if power else eye_array(s.shape[0], dtype=s.dtype)


def norm(x: Any, /, ord: Any = None, axis: int | None = None) -> Array:
    """The norm of a sparse matrix, or of each of its rows or columns.

    Args:
        x: The matrix.
        ord: Of a matrix: None or "fro" for the root of the sum of squares, 1 for the largest sum of
            a column's sizes, `np.inf` for that of a row's. Of rows and columns: None or 2, 1.
        axis: 0 for the norms of columns, 1 for those of rows, None for that of the matrix.

    Raises:
        ArgumentError: `ord` is something else.

    >>> gt.scipy.sparse.norm(
    ...     gt.scipy.sparse.csr_array((np.array([3.0, 4.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    ... )
    np.float64(5.0)
    """
    s = as_sparse(x).in_order()
    if axis is not None and ord in (None, 2):
        return s.with_data((s.data * s.conj().data).real).sum(axis) ** 0.5
    if axis is not None and ord == 1:
        return abs(s).sum(axis)
    if axis is None and ord in (None, "fro", "f"):
        return dense_norm(s.data)
    if axis is None and ord in (1, math.inf):
        return max_of(abs(s).sum(0 if ord == 1 else 1))
    raise ArgumentError(
        f"norm: got ord={ord!r} with axis={axis}, expected None, 'fro', 1 or inf of a matrix, "
        "None, 1 or 2 of rows and columns; use gt.linalg.norm of toarray() for others"
    )


# ---- matrices made of others --------------------------------------------------------------------


def hstack(blocks: Sequence[Any], /) -> SparseArray:
    """Sparse matrices side by side.

    Args:
        blocks: Matrices of as many rows, of SciPy or of `gt.scipy.sparse`.

    >>> gt.scipy.sparse.hstack(
    ...     [gt.scipy.sparse.eye_array(1), gt.scipy.sparse.eye_array(1)]
    ... ).toarray()
    array([[1., 1.]])
    """
    import scipy.sparse

    return _joined("hstack", lambda *parts: scipy.sparse.hstack(parts), blocks)


def vstack(blocks: Sequence[Any], /) -> SparseArray:
    """Sparse matrices one below the other.

    Args:
        blocks: Matrices of as many columns, of SciPy or of `gt.scipy.sparse`.

    >>> gt.scipy.sparse.vstack(
    ...     [gt.scipy.sparse.eye_array(1), gt.scipy.sparse.eye_array(1)]
    ... ).toarray()
    array([[1.],
           [1.]])
    """
    import scipy.sparse

    return _joined("vstack", lambda *parts: scipy.sparse.vstack(parts), blocks)


def block_diag(mats: Sequence[Any], /) -> SparseArray:
    """Sparse matrices along the diagonal of a larger one.

    Args:
        mats: The matrices, of SciPy or of `gt.scipy.sparse`.

    >>> gt.scipy.sparse.block_diag(
    ...     [gt.scipy.sparse.eye_array(1), 2.0 * gt.scipy.sparse.eye_array(1)]
    ... ).toarray()
    array([[1., 0.],
           [0., 2.]])
    """
    import scipy.sparse

    return _joined("block_diag", lambda *parts: scipy.sparse.block_diag(parts), mats)


def block_array(blocks: Sequence[Sequence[Any]], /) -> SparseArray:
    """A sparse matrix from rows of blocks.

    Args:
        blocks: Rows of matrices; None is a block of zeros.

    >>> one = gt.scipy.sparse.eye_array(1)
    >>> gt.scipy.sparse.block_array([[one, None], [one, one]]).toarray()
    array([[1., 0.],
           [1., 1.]])
    """
    import scipy.sparse

    def arranged(*parts: Any) -> Any:
        left = iter(parts)
        rows = [[None if one is None else next(left) for one in row] for row in blocks]
        return scipy.sparse.block_array(rows)

    given = [one for row in blocks for one in row if one is not None]
    return _joined("block_array", arranged, given)


def _joined(name: str, arrange: Any, blocks: Sequence[Any]) -> SparseArray:
    if not blocks or not all(map(is_sparse, blocks)):
        raise ArgumentError(f"{name}: expected a sequence of sparse matrices")
    try:
        return rearranged(arrange, *map(as_sparse, blocks))
    except ValueError as error:
        shapes = ", ".join(str(block.shape) for block in blocks)
        raise ShapeError(f"{name}: got blocks of shapes {shapes}; {error}") from error


def tril(A: Any, /, k: int = 0) -> SparseArray:
    """The elements of a sparse matrix on and below a diagonal.

    Args:
        A: The matrix.
        k: Which diagonal; positive ones lie above the middle.

    >>> gt.scipy.sparse.tril(gt.scipy.sparse.eye_array(2), -1).nnz
    0
    """
    import scipy.sparse

    return rearranged(lambda places: scipy.sparse.tril(places, k), as_sparse(A))


def triu(A: Any, /, k: int = 0) -> SparseArray:
    """The elements of a sparse matrix on and above a diagonal.

    Args:
        A: The matrix.
        k: Which diagonal; positive ones lie above the middle.

    >>> gt.scipy.sparse.triu(gt.scipy.sparse.eye_array(2)).nnz
    2
    """
    import scipy.sparse

    return rearranged(lambda places: scipy.sparse.triu(places, k), as_sparse(A))


def kron(A: Any, B: Any, /) -> SparseArray:
    """The Kronecker product of two sparse matrices.

    Args:
        A: The matrix whose elements are multiplied
        B: by this one.

    >>> gt.scipy.sparse.kron(
    ...     gt.scipy.sparse.eye_array(2), 3.0 * gt.scipy.sparse.eye_array(1)
    ... ).toarray()
    array([[3., 0.],
           [0., 3.]])
    """
    import scipy.sparse

    a, b = as_sparse(A).in_order(), as_sparse(B).in_order()
    ones = [s.with_data(np.ones(s.nnz)).toscipy() for s in (a, b)]
    # The places of each factor's numbers in the product.
    left = rearranged(lambda places: scipy.sparse.kron(places, ones[1]), a)
    right = rearranged(lambda places: scipy.sparse.kron(ones[0], places), b)
    return left.with_data(left.data * right.data)
