"""Functions of sparse matrices: products, equations, norms, and matrices made of others."""

from __future__ import annotations

import functools
import math
from typing import Any

from gradtape.core.aval import aval_of
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.moments import root
from gradtape.ops.norm import norm as dense_norm
from gradtape.ops.reduce import max as max_of
from gradtape.ops.sparse.arrays import SparseArray, applied, as_sparse, is_sparse
from gradtape.ops.sparse.assembly import tril, triu
from gradtape.ops.sparse.making import csc_array, eye_array
from gradtape.ops.sparse.matrices import as_matrix, is_matrix, power as power_of
from gradtape.ops.sparse.solve import solution
from gradtape.typing import Array, Axis

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


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """The solution x of `A @ x = b` with a sparse matrix, differentiable in its stored numbers.

    Args:
        A: A square sparse matrix, of SciPy or of `gt.scipy.sparse`.
        b: A vector, a matrix of columns, or a stack of such. Also a sparse matrix: one column has
            a vector as its solution, several have a sparse matrix.
        permc_spec: In which order columns are eliminated, which does not change the solution.
        use_umfpack: Without effect: SuperLU solves the equations.

    Raises:
        ShapeError: The matrix is not square, or `b` does not fit.
        LinAlgError: The matrix is singular.
        ArgumentError: The matrix is not sparse.

    >>> s = gt.scipy.sparse.csr_array((np.array([2.0, 4.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    >>> gt.scipy.sparse.linalg.spsolve(s, np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    if not is_sparse(A):
        raise ArgumentError("spsolve: got a dense matrix, expected a sparse one; use gt.solve")
    s = as_sparse(A)
    check_fit("spsolve", s.shape[0] == s.shape[1], "a square matrix", s)
    if is_sparse(b):
        columns = as_sparse(b).toarray()
        x = spsolve(s, columns[:, 0] if columns.shape[1] == 1 else columns)
        return x if len(x.shape) == 1 else csc_array(x)
    return in_columns("spsolve", functools.partial(applied, solution, s), s, as_array(b))


def spsolve_triangular(A: Any, b: Any, lower: bool = True, *, unit_diagonal: bool = False) -> Array:
    """The solution of `A @ x = b` with one triangle of a sparse matrix; the other is not read.

    Args:
        A: A square sparse matrix.
        b: A vector, a matrix of columns, or a stack of such.
        lower: Whether it is the lower triangle.
        unit_diagonal: Whether to assume ones on the diagonal, whatever is stored there.

    >>> s = gt.scipy.sparse.csr_array(
    ...     (np.array([2.0, 1.0, 4.0]), [0, 0, 1], [0, 1, 3]), shape=(2, 2)
    ... )
    >>> gt.scipy.sparse.linalg.spsolve_triangular(s, np.array([2.0, 9.0]))
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

    >>> gt.scipy.sparse.linalg.matrix_power(2.0 * gt.scipy.sparse.eye_array(2), 3).toarray()
    array([[8., 0.],
           [0., 8.]])
    """
    return power_of(as_matrix(A) if is_matrix(A) else as_sparse(A), power)


def norm(x: Any, ord: Any = None, axis: Axis = None) -> Array:
    """The norm of a sparse matrix, or of each of its rows or columns.

    Args:
        x: The matrix.
        ord: Of a matrix: None or "fro" for the root of the sum of squares, 1 for the largest sum of
            a column's sizes, `np.inf` for that of a row's. Of rows and columns: None or 2, 1. For
            any other norm that `gt.linalg.norm` knows the matrix is made dense.
        axis: 0 for the norms of columns, 1 for those of rows, None or both for that of the matrix.

    Raises:
        ArgumentError: There is no such norm, or the matrix is dense.

    >>> gt.scipy.sparse.linalg.norm(
    ...     gt.scipy.sparse.csr_array((np.array([3.0, 4.0]), [0, 1], [0, 1, 2]), shape=(2, 2))
    ... )
    np.float64(5.0)
    """
    if not is_sparse(x):
        raise ArgumentError("norm: got a dense array, expected a sparse matrix; use gt.linalg.norm")
    s = as_sparse(x).in_order()
    axes = normalize_axes(axis, 2, "norm")
    if len(axes) == 1 and ord in (None, 2):
        return root(s.with_data((s.data * s.conj().data).real).sum(axes[0]))
    if len(axes) == 1 and ord == 1:
        return abs(s).sum(axes[0])
    if len(axes) == 2 and ord in (None, "fro", "f"):
        return dense_norm(s.data)
    if len(axes) == 2 and ord in (1, math.inf):
        return max_of(abs(s).sum(axes[0] if ord == 1 else axes[1]))
    return dense_norm(s.toarray(), ord, axis)
