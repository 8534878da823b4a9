"""Sparse matrices made of others: side by side, in blocks, Kronecker products, triangles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.nn.known import known_values
from gradtape.ops.shape import atleast_2d
from gradtape.ops.shared_options import options
from gradtape.ops.sparse.arrays import SparseArray, as_sparse, is_sparse, rearranged
from gradtape.ops.sparse.making import csr_array, diags_array, eye_array
from gradtape.ops.sparse.matrices import as_array_class, as_matrix, like
from gradtape.typing import Array

RESULT = {
    "format": 'How the result is stored: by columns for "csc", else by rows.',
    "dtype": "The dtype of the result, if it is to be another.",
}


def _finished(made: SparseArray, format: str | None, dtype: Any, *sources: Any) -> SparseArray:
    made = made if dtype is None else made.astype(dtype)
    return like(made.asformat(format), *sources)


def _block(x: Any) -> SparseArray:
    """A sparse matrix, or a dense one or a number as a sparse one."""
    return as_sparse(x) if is_sparse(x) else csr_array(atleast_2d(x))


def _joined(
    name: str, arrange: Callable[..., Any], blocks: Sequence[Any], format: str | None, dtype: Any
) -> SparseArray:
    blocks = list(blocks)
    if not blocks:
        raise ArgumentError(f"{name}: expected a sequence of sparse matrices, got none")
    try:
        made = rearranged(arrange, *map(_block, blocks))
    except ValueError as error:
        shapes = ", ".join(str(np.shape(block)) for block in blocks)
        raise ShapeError(f"{name}: got blocks of shapes {shapes}; {error}") from error
    return _finished(made, format, dtype, *blocks)


@options(RESULT)
def hstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArray:
    """Matrices side by side, as a sparse one.

    Args:
        blocks: Matrices of as many rows, sparse or dense.

    >>> s = gt.scipy.sparse.coo_array((gt.tensor([2.0]), ([0], [1])), shape=(1, 2))
    >>> gt.scipy.sparse.hstack([s, s]).toarray()
    tensor([[0., 2., 0., 2.]])
    """
    import scipy.sparse

    return _joined("hstack", lambda *parts: scipy.sparse.hstack(parts), blocks, format, dtype)


@options(RESULT)
def vstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArray:
    """Matrices one below the other, as a sparse one.

    Args:
        blocks: Matrices of as many columns, sparse or dense.

    >>> s = gt.scipy.sparse.coo_array((gt.tensor([2.0]), ([0], [1])), shape=(1, 2))
    >>> gt.scipy.sparse.vstack([s, s]).toarray()
    tensor([[0., 2.],
            [0., 2.]])
    """
    import scipy.sparse

    return _joined("vstack", lambda *parts: scipy.sparse.vstack(parts), blocks, format, dtype)


@options(RESULT)
def block_diag(mats: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArray:
    """Matrices along the diagonal of a larger sparse one.

    Args:
        mats: The matrices, sparse or dense.

    >>> gt.scipy.sparse.block_diag([gt.tensor([[2.0]]), 3.0]).toarray()
    tensor([[2., 0.],
            [0., 3.]])
    """
    import scipy.sparse

    return _joined("block_diag", lambda *parts: scipy.sparse.block_diag(parts), mats, format, dtype)


def _in_rows(rows: Sequence[Sequence[Any]], parts: Iterator[Any]) -> list[list[Any]]:
    """The parts in the places of blocks that are not None."""
    return [[None if one is None else next(parts) for one in row] for row in rows]


@options(RESULT)
def block_array(
    blocks: Sequence[Sequence[Any]], *, format: str | None = None, dtype: Any = None
) -> SparseArray:
    """A sparse matrix from rows of blocks.

    Args:
        blocks: Rows of matrices; None is a block of zeros.

    >>> one = gt.scipy.sparse.coo_array((gt.tensor([2.0]), ([0], [0])))
    >>> gt.scipy.sparse.block_array([[one, None], [one, one]]).toarray()
    tensor([[2., 0.],
            [2., 2.]])
    """
    import scipy.sparse

    given = [one for row in blocks for one in row if one is not None]
    made = _joined(
        "block_array",
        lambda *parts: scipy.sparse.block_array(_in_rows(blocks, iter(parts))),
        given,
        format,
        dtype,
    )
    return as_array_class(made)


@options(RESULT)
def bmat(
    blocks: Sequence[Sequence[Any]], format: str | None = None, dtype: Any = None
) -> SparseArray:
    """A sparse matrix from rows of blocks, as `block_array`.

    Args:
        blocks: Rows of matrices; None is a block of zeros.

    >>> one = gt.scipy.sparse.coo_array((gt.tensor([2.0]), ([0], [0])))
    >>> gt.scipy.sparse.bmat([[one, None], [one, one]]).toarray()
    tensor([[2., 0.],
            [2., 2.]])
    """
    given = [one for row in blocks for one in row if one is not None]
    return like(block_array(blocks, format=format, dtype=dtype), *given)


@options(RESULT)
def diags(
    diagonals: Any,
    offsets: Any = 0,
    shape: Any = None,
    format: str | None = None,
    dtype: Any = None,
) -> SparseArray:
    """A matrix from its diagonals, for which `*` multiplies matrices; else as `diags_array`.

    Args:
        diagonals: One diagonal, or a sequence of them; a single number is repeated.
        offsets: Which one it is, or which ones: positive ones lie above.
        shape: The numbers of rows and columns; the smallest square matrix if it is None.

    >>> gt.scipy.sparse.diags([gt.tensor([2.0, 3.0])], [0]) * np.ones(2)
    tensor([2., 3.])
    """
    made = diags_array(diagonals, offsets=offsets, shape=shape, format=format, dtype=dtype)
    return as_matrix(made)


@options(RESULT)
def tril(A: Any, k: int = 0, format: str | None = None) -> SparseArray:
    """The elements of a matrix on and below a diagonal, as a sparse one.

    Args:
        A: The matrix.
        k: Which diagonal; positive ones lie above the middle.

    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> gt.scipy.sparse.tril(s).toarray()
    tensor([[1., 0.],
            [3., 4.]])
    """
    import scipy.sparse

    made = rearranged(lambda places: scipy.sparse.tril(places, k), _block(A))
    return _finished(made, format, None, A)


@options(RESULT)
def triu(A: Any, k: int = 0, format: str | None = None) -> SparseArray:
    """The elements of a matrix on and above a diagonal, as a sparse one.

    Args:
        A: The matrix.
        k: Which diagonal; positive ones lie above the middle.

    >>> s = gt.scipy.sparse.csr_array(gt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> gt.scipy.sparse.triu(s, 1).toarray()
    tensor([[0., 2.],
            [0., 0.]])
    """
    import scipy.sparse

    made = rearranged(lambda places: scipy.sparse.triu(places, k), _block(A))
    return _finished(made, format, None, A)


@options(RESULT)
def kron(A: Any, B: Any, format: str | None = None) -> SparseArray:
    """The Kronecker product of two matrices, as a sparse one.

    Args:
        A: The matrix whose elements are multiplied
        B: by this one.

    >>> gt.scipy.sparse.kron(np.eye(2), gt.tensor([[3.0]])).toarray()
    tensor([[3., 0.],
            [0., 3.]])
    """
    import scipy.sparse

    a, b = _block(A).in_order(), _block(B).in_order()
    ones = [s.with_data(np.ones(s.nnz)).toscipy() for s in (a, b)]
    # The places of each factor's numbers in the product.
    left = rearranged(lambda places: scipy.sparse.kron(places, ones[1]), a)
    right = rearranged(lambda places: scipy.sparse.kron(ones[0], places), b)
    return _finished(left.with_data(left.data * right.data), format, None, A, B)


@options(RESULT)
def kronsum(A: Any, B: Any, format: str | None = None) -> SparseArray:
    """The Kronecker sum of two square matrices, I ⊗ A + B ⊗ I.

    Args:
        A: One matrix.
        B: The other one.

    Raises:
        ShapeError: A matrix is not square.

    >>> gt.scipy.sparse.kronsum(gt.tensor([[3.0]]), np.eye(2)).toarray()
    tensor([[4., 0.],
            [0., 4.]])
    """
    a, b = _block(A), _block(B)
    for s in (a, b):
        check_fit("kronsum", s.shape[0] == s.shape[1], "square matrices", a, b)
    left = kron(eye_array(b.shape[0], dtype=a.dtype), a)
    made = as_array_class(left) + as_array_class(kron(b, eye_array(a.shape[0], dtype=b.dtype)))
    return _finished(made, format, None, A, B)


def find(A: Any) -> tuple[Any, Any, Array]:
    """The rows, the columns and the numbers of the elements of a matrix that are not 0.

    Of numbers that are not known yet, while a function is traced, all that are stored are returned.

    Args:
        A: The matrix.

    >>> gt.scipy.sparse.find(gt.scipy.sparse.csr_array(gt.tensor([[0.0, 2.0], [3.0, 0.0]])))
    (array([0, 1]), array([1, 0]), tensor([2., 3.]))
    """
    s = _block(A).in_order()
    known = known_values(s.data)
    if known is not None and known.ndim == 1 and not known.all():
        kept = np.flatnonzero(known)
        return s.row[kept], s.col[kept], s.data[kept]
    return s.row, s.col, s.data
