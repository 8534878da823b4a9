"""Exponentials of sparse matrices, and their products with vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, as_integer, as_number
from gradtape.ops.join import stack
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.linalg.matrix_functions import expm as dense_expm
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.known import known_values
from gradtape.ops.norm import inexact
from gradtape.ops.sparse.arrays import SparseArray, as_sparse, is_sparse
from gradtape.ops.sparse.making import csc_array
from gradtape.typing import Array

# The norm of the matrix that one Taylor series is for: the sum of its terms' sizes is at most e³
# times that of the result, so that no more than a digit is lost.
_NORM = 3.0
# The size of the first term that is left out, well below rounding for derivatives, too.
_SMALLEST = 1e-20


def expm(A: Any) -> Any:
    """The exponential of a matrix, as a sparse matrix of all places if it is sparse.

    Args:
        A: A square matrix.

    Raises:
        LinAlgError: The matrix is not square.

    >>> s = gt.scipy.sparse.csc_array(gt.tensor([[0.0, 1.0], [0.0, 0.0]]))
    >>> gt.scipy.sparse.linalg.expm(s).toarray()
    tensor([[1., 1.],
            [0., 1.]])
    """
    return csc_array(dense_expm(as_sparse(A).toarray())) if is_sparse(A) else dense_expm(A)


def expm_multiply(
    A: Any,
    B: Any,
    start: float | None = None,
    stop: float | None = None,
    num: int | None = None,
    endpoint: bool | None = None,
) -> Array:
    """The product of the exponential of a matrix with a vector or a matrix.

    With a sparse matrix whose numbers are known it takes products with the matrix only. Of a dense
    one, and of numbers that are not known while a function is traced, the exponential is computed.

    Args:
        A: A square matrix, sparse or dense.
        B: The vector, or a matrix of columns.
        start: The first of several factors t of the matrix in exp(t·A)·B.
        stop: The last of these factors.
        num: How many there are, 50 by default.
        endpoint: Whether `stop` is one of them; it is by default.

    Returns:
        exp(A)·B, or with `start` and `stop` these products along a new first axis.

    Raises:
        ShapeError: The matrix is not square, or `B` does not fit.
        ArgumentError: Only one of `start` and `stop` is given.

    >>> rotation = gt.scipy.sparse.csr_array(np.array([[0.0, -1.0], [1.0, 0.0]]))
    >>> turned = gt.scipy.sparse.linalg.expm_multiply(np.pi / 2 * rotation, gt.tensor([1.0, 0.0]))
    >>> turned.numpy().round(12) + 0.0
    array([0., 1.])
    """
    if hasattr(A, "matvec"):
        raise ArgumentError(
            "expm_multiply: got a LinearOperator and a tensor, expected a matrix, sparse or dense"
        )
    matrix = as_sparse(A) if is_sparse(A) else inexact(as_array(A))
    b = inexact(as_array(B))
    check_fit("expm_multiply", matrix.shape[0] == matrix.shape[1], "a square matrix", matrix)
    if len(b.shape) not in (1, 2) or b.shape[0] != matrix.shape[0]:
        raise ShapeError(
            f"expm_multiply: got a matrix of shape {matrix.shape} and B of shape {b.shape}, "
            "expected a vector or columns of as many elements"
        )
    if start is None and stop is None and num is None and endpoint is None:
        return _action(matrix, b, 1.0)
    if start is None or stop is None:
        raise ArgumentError("expm_multiply: got one of start and stop, expected both or none")
    first, last = (as_number(t, "expm_multiply", "start and stop") for t in (start, stop))
    count = 50 if num is None else as_integer(num, "expm_multiply", "num")
    times, step = np.linspace(first, last, count, endpoint is not False, retstep=True)
    found = [_action(matrix, b, first)] if len(times) else []
    for _ in times[1:]:
        found.append(_action(matrix, found[-1], float(step)))
    return stack(found)


def _action(matrix: Any, b: Any, t: float) -> Any:
    """The product of exp(t·A) with B."""
    known = known_values(matrix.data) if isinstance(matrix, SparseArray) else None
    if known is None or known.ndim != 1:
        dense = matrix.toarray() if isinstance(matrix, SparseArray) else matrix
        return matmul(dense_expm(t * dense), b)
    # exp(A) = exp(mean of the diagonal)·exp(A − that): the norm becomes smaller.
    plain = matrix.with_data(known)
    size = max(plain.shape[0], 1)
    shift = complex(plain.trace()) / size
    shift = shift if plain.dtype.kind == "c" else shift.real
    norm = abs(t) * (float(abs(plain).sum(0).max(initial=0)) + abs(shift))
    parts = max(1, math.ceil(norm / _NORM))
    terms = _terms(norm / parts)
    factor = np.exp(t * shift / parts)
    for _ in range(parts):
        term = total = b
        for k in range(1, terms + 1):
            term = (matrix @ term - shift * term) * (t / (parts * k))
            total = total + term
        b = total * factor
    return b


def _terms(norm: float) -> int:
    """How many terms of the series of an exponential matter."""
    size, count = 1.0, 0
    while size > _SMALLEST:
        count += 1
        size *= norm / count
    return count
