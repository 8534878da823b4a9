"""How close a matrix is to a singular one: cond, matrix_rank."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, LinAlgError
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import isnan
from gradtape.ops.linalg.common import MATRIX, inverse, square
from gradtape.ops.linalg.eigh import eigvalsh
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.linalg.svd import svdvals
from gradtape.ops.norm import inexact, norm
from gradtape.ops.reduce import max as max_of, min as min_of, sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.which import any as any_of
from gradtape.typing import Array, ArrayLike

_NORMS = (None, 1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc")


def _inverse_forward(xp: Any, x: Any) -> Any:
    with contextlib.suppress(np.linalg.LinAlgError):
        return xp.linalg.inv(x)
    out = xp.full_like(x, np.inf)
    for index in np.ndindex(*x.shape[:-2]):
        with contextlib.suppress(np.linalg.LinAlgError):
            out[index] = xp.linalg.inv(x[index])
    return out


# As inv, but with infinities where a matrix is singular: its condition is not bounded
_inverse_or_inf = inverse("inverse_or_inf", _inverse_forward)


@in_float32
def cond(x: ArrayLike, /, p: Any = None) -> Array:
    """The condition number of a matrix, or of each in a stack; infinite if it is singular.

    Args:
        x: The matrices; any but 2 and -2 needs square ones.
        p: The norm it is the condition in: None or 2 for the ratio of the largest singular value
            to the smallest, -2 for its inverse; 1, -1, inf, -inf, "fro" and "nuc" as for `norm`.

    Raises:
        LinAlgError: There are less than two axes, or a matrix is not square but has to be.
        ArgumentError: There is no such norm.

    >>> float(gt.linalg.cond(np.array([[4.0, 0.0], [0.0, 2.0]])))
    2.0
    """
    x = matrix_stack("cond", x)
    if 0 in x.shape:
        raise LinAlgError(f"cond: got shape {x.shape}; an empty matrix has no condition")
    check_choice("cond", _NORMS, p=p)
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, smallest = max_of(values, -1), min_of(values, -1)
        ratio = smallest / largest if p == -2 else largest / smallest
    else:
        x = square("cond", x)
        inverse = _inverse_or_inf(x)
        finite = where(any_of(inverse == np.inf, MATRIX, keepdims=True), 1.0, inverse)
        ratio = norm(x, p, MATRIX) * norm(finite, p, MATRIX)
        ratio = where(any_of(inverse == np.inf, MATRIX), np.inf, ratio)
    # A matrix of zeros has an infinite condition number.
    return where(isnan(ratio) & (any_of(isnan(x), MATRIX) ^ True), np.inf, ratio)


@in_float32
def matrix_rank(
    x: ArrayLike,
    /,
    tol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike | None = None,
) -> Array:
    """The number of singular values of a matrix, or of each in a stack, that are not 0.

    It is piecewise constant, and its result is not recorded.

    Args:
        x: The matrices; a vector has rank 1 unless it is all zeros.
        tol: Singular values count as 0 if they are not larger than this.
        hermitian: Whether the matrices are Hermitian, so that eigenvalues can be used.
        rtol: The same relative to the largest one; if neither is given it is the spacing of
            numbers times the larger number of rows and columns.

    Raises:
        ArgumentError: Both `tol` and `rtol` were given.

    >>> gt.linalg.matrix_rank(np.array([[1.0, 2.0], [2.0, 4.0]]))
    np.int64(1)
    """
    x = stop_gradient(inexact(x))
    if tol is not None and rtol is not None:
        raise ArgumentError("matrix_rank: got both tol and rtol; give one of them")
    if len(x.shape) < 2:
        return astype(any_of(x != 0), np.int64)
    values = abs(eigvalsh(square("matrix_rank", x))) if hermitian else svdvals(x)
    if tol is None:
        if rtol is None:
            rtol = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
        tol = max_of(values, -1) * rtol if values.shape[-1] else np.zeros(values.shape[:-1])
    limit = inexact(tol)
    return sum_of(values > limit[..., None], -1)
