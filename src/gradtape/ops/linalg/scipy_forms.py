"""Functions of `gt.linalg` with the arguments and results that `scipy.linalg` gives them.

Only what differs is here: `gradtape.scipy.linalg` takes all other functions as they are. Without a
tensor among the arguments it calls SciPy's, so the examples are of tensors.
"""

from __future__ import annotations

import numpy as np

from gradtape.errors import UnsupportedError
from gradtape.ops.checks import check_choice
from gradtape.ops.linalg import (
    cholesky as cholesky_of,
    lstsq as least_squares,
    qr as qr_of,
)
from gradtape.ops.linalg.common import square
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.solve import inv as inverse, solve
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.norm import inexact
from gradtape.ops.pad_modes import pad
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike


def cholesky(a: ArrayLike, lower: bool = False) -> Array:
    """The triangular factor of a positive definite Hermitian matrix, the upper one by default.

    Args:
        a: The matrix, or a stack of them; only one triangle is read, and the derivative is that
            with respect to a matrix that stays Hermitian.
        lower: Whether to read the lower triangle and to give L with `a = L @ L.conj().T`, else U
            with `a = U.conj().T @ U`.

    Raises:
        LinAlgError: A matrix is not square, or not positive definite.

    >>> gt.scipy.linalg.cholesky(gt.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 1.],
            [0., 1.]])
    """
    return cholesky_of.cholesky(inexact(a), upper=not lower)


def qr(a: ArrayLike, *, mode: str = "full", pivoting: bool = False) -> tuple[Array, ...]:
    """QR decomposition `q @ r` of a matrix, or of each in a stack.

    Args:
        a: The matrix.
        mode: "full" gives a square `q`, "economic" as many columns of it as the matrix has rows or
            columns, "r" only the `r` of mode "full".
        pivoting: Whether to reorder columns so that the diagonal of `r` does not increase.

    Returns:
        A tuple of `q`, `r`, and the order of the columns with `pivoting`: `a[:, p] = q @ r`. In
        mode "r" it lacks `q`.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: There is no such mode.
        UnsupportedError: The mode is "raw": reflections as LAPACK stores them.
        NotDifferentiableError: A derivative was asked for that does not exist, as the first columns
            depend on each other.

    >>> (r,) = gt.scipy.linalg.qr(gt.tensor([[3.0, 1.0], [4.0, 2.0]]), mode="r")
    >>> abs(r)
    tensor([[5. , 2.2],
            [0. , 0.4]])
    """
    if mode == "raw":
        raise UnsupportedError("qr: got mode='raw', expected 'full', 'economic' or 'r' on a tensor")
    check_choice("qr", ("full", "economic", "r"), mode=mode)
    a = matrix_stack("qr", a)
    if mode != "r":
        return qr_of.qr(a, "reduced" if mode == "economic" else "complete", pivoting=pivoting)
    _, r, *order = qr_of.qr(a, "reduced", pivoting=pivoting)
    # SciPy's has as many rows as the matrix.
    below = (0, a.shape[-2] - r.shape[-2])
    return (pad(r, [*[(0, 0)] * (len(a.shape) - 2), below, (0, 0)]), *order)


@in_float32
def inv(a: ArrayLike, *, assume_a: str | None = None, lower: bool = False) -> Array:
    """The inverse of a square matrix, or of each in a stack; to solve equations use `solve`.

    Args:
        a: The matrix.
        assume_a: The known structure of the matrix, as in `solve`: no more of it is read, and the
            derivative is that with respect to a matrix that stays what it is.
        lower: Whether the lower triangle of a symmetric, Hermitian or positive definite matrix is
            read, else the upper one.

    Raises:
        LinAlgError: A matrix is not square, or singular; or not positive definite but said to be.
        ArgumentError: There is no such structure.
        UnsupportedError: The structure is "banded".

    >>> gt.scipy.linalg.inv(gt.tensor([[2.0, 1.0], [9.0, 4.0]]), assume_a="upper triangular")
    tensor([[ 0.5  , -0.125],
            [ 0.   ,  0.25 ]])
    """
    if assume_a is None:
        return inverse(inexact(a))
    a = square("inv", inexact(a))
    return solve(a, np.eye(a.shape[-1], dtype=a.dtype), assume_a=assume_a, lower=lower)


@in_float32
def pinv(
    a: ArrayLike,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
) -> Array | tuple[Array, Array]:
    """The pseudo-inverse of a matrix, or of each in a stack.

    Its derivative is that along changes that keep the number of singular values above the cutoff.

    Args:
        a: The matrix; it may have any shape and rank.
        atol: Singular values count as 0 if they are not larger than this and `rtol` times the
            largest one together; None is 0.
        rtol: None is the spacing of numbers times the larger number of rows and columns.
        return_rank: Whether to return the rank as well.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: `atol` or `rtol` is below 0.

    >>> inverse, rank = gt.scipy.linalg.pinv(gt.tensor([[2.0, 0.0], [0.0, 0.0]]), return_rank=True)
    >>> inverse
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    a = matrix_stack("pinv", a)
    return least_squares.inverse_and_rank("pinv", a, atol, rtol, return_rank=return_rank)


@in_float32
def lstsq(
    a: ArrayLike, b: ArrayLike, cond: float | None = None, *, lapack_driver: str | None = None
) -> tuple[Array, Array, Array, Array | None]:
    """The vector x of least size among those with the least `|a @ x - b|`.

    Args:
        a: A matrix of any shape and rank, or a stack of them. The derivative is that along changes
            that keep its rank.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        cond: Singular values count as 0 if they are not larger than the largest one times this;
            None is the spacing of numbers.
        lapack_driver: "gelsd", "gelss" or None; for "gelsy" there are no residues and singular
            values.

    Returns:
        A tuple of `x`; the residues, sums of squares of `a @ x - b` for each column, empty if there
        are no more rows than columns, and NaN (as SciPy's since 1.18, which were empty) if the rank
        is less than the number of columns; the rank; and the singular values of `a`.

    Raises:
        LinAlgError: `a` has less than two axes, or has no decomposition.
        ShapeError: `b` does not fit.
        ArgumentError: There is no such driver.

    >>> x, residues, rank, s = gt.scipy.linalg.lstsq(
    ...     gt.tensor([[1.0], [1.0]]), np.array([1.0, 3.0])
    ... )
    >>> x, residues
    (tensor([2.]), tensor(2.))
    """
    check_choice("lstsq", (None, "gelsd", "gelss", "gelsy"), lapack_driver=lapack_driver)
    a, b = matrix_stack("lstsq", a), inexact(b)
    spacing = float(np.finfo(np.result_type(a.dtype, b.dtype)).eps)
    cutoff = spacing if cond is None or cond < 0 else float(cond)  # as LAPACK reads it
    x, residues, rank = least_squares.solution("lstsq", a, b, cutoff)
    rows, columns = a.shape[-2:]
    if lapack_driver == "gelsy":
        return x, residues[..., :0], rank, None
    if rows <= columns:
        residues = residues[..., :0]
    elif len(b.shape) == 1:
        complete = least_squares.where_complete(residues, rank, columns)
        residues = reshape(complete, complete.shape[:-1])
    else:
        residues = least_squares.where_complete(residues, rank, columns)
    return x, residues, rank, least_squares.values(a)
