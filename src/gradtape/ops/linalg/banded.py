"""Equations with banded matrices, by their diagonals. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.define import added
from gradtape.errors import LinAlgError
from gradtape.ops.linalg.bands import (
    adjoint_bands,
    diagonals_of_product,
    hermitian_bands,
    times_columns,
)
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import DEFINITE, SINGULAR, check_fit, failed
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack
from gradtape.ops.linalg.stacks import matrixwise, summed
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike

# ---- the op -------------------------------------------------------------------------------------


def _solve_one(ab: Any, b: Any, lower: int, upper: int, definite: bool) -> Any:
    """By the routine of LAPACK for positive definite, triangular, tridiagonal or other matrices."""
    if definite:
        _, x, info = lapack("pbsv", b.dtype)(ab[: upper + 1], b)
        if info > 0:
            raise failed("solveh_banded", (ab, b), "Matrix is not positive definite", DEFINITE)
        return x
    if not lower or not upper:
        x, info = lapack("tbtrs", b.dtype)(ab, b, uplo="L" if lower else "U")
    elif lower == upper == 1 and ab.shape[-1] > 1:
        *_, x, info = lapack("gtsv", b.dtype)(ab[2, :-1], ab[1], ab[0, 1:], b)
    else:
        # Exchanges of rows need as many diagonals again above the others.
        room = np.zeros((2 * lower + upper + 1, ab.shape[-1]), b.dtype)
        room[lower:] = ab
        *_, x, info = lapack("gbsv", b.dtype)(lower, upper, room, b, overwrite_ab=True)
    if info > 0:
        raise failed("solve_banded", (ab, b), "Singular matrix", SINGULAR)
    return x


def _vjp(
    wanted: tuple[bool, bool], ct: Any, out: Any, ab: Any, _b: Any,
    lower: int, upper: int, definite: bool,
) -> Any:  # fmt: skip
    turned = adjoint_bands(ab, upper)
    back = banded(turned, ct, lower=upper, upper=lower, definite=definite)
    return -diagonals_of_product(back, out, lower, upper) if wanted[0] else None, back


def _jvp(
    tangents: Sequence[Any], out: Any, ab: Any, _b: Any, lower: int, upper: int, definite: bool
) -> Any:
    dab, db = tangents
    moved = None if dab is None else -times_columns(dab, upper, out)
    return banded(ab, added(db, moved), lower=lower, upper=upper, definite=definite)


# x = A⁻¹b: dx = A⁻¹(db − dA·x), on the diagonals of A; of a positive definite A the upper ones are
# read
banded = matrixwise("solve_banded", _solve_one, vjp_all=summed(_vjp), jvp=_jvp, divisors=(0,))

# ---- public functions ---------------------------------------------------------------------------


def bands_of(name: str, ab: ArrayLike) -> Any:
    """Diagonals as an inexact array, checked to have two axes or more."""
    ab = inexact(ab)
    if len(ab.shape) < 2 or not ab.shape[-2]:
        raise LinAlgError(
            f"{name}: got shape {ab.shape}, expected the diagonals of a matrix as the rows of "
            "another, or a stack of them along the first axes"
        )
    return ab


@in_float32
def solve_banded(l_and_u: tuple[int, int], ab: ArrayLike, b: ArrayLike, /) -> Array:
    """The solution x of `a @ x = b` for a banded matrix, given by its diagonals.

    Args:
        l_and_u: How many diagonals are below the main one, and how many above it.
        ab: The diagonals as rows, the uppermost first: `ab[u + i - j, j] = a[i, j]`, or a stack of
            such arrays; the corners outside of the matrix are not read.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        LinAlgError: A matrix is singular, or has less than two axes.
        ShapeError: `b` does not fit, or there are more or fewer diagonals than said.

    >>> diagonals = np.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    >>> gt.linalg.solve_banded((0, 1), diagonals, np.array([3.0, 3.0, 2.0]))
    array([1., 1., 1.])
    """
    lower, upper = (operator.index(count) for count in l_and_u)
    ab, b = bands_of("solve_banded", ab), inexact(b)
    rows = lower + upper + 1
    fits = min(lower, upper) >= 0 and ab.shape[-2] == rows
    check_fit("solve_banded", fits, f"{rows} rows, 1 + l + u", ab)
    solve = functools.partial(banded, ab, lower=lower, upper=upper, definite=False)
    return in_columns("solve_banded", solve, ab, b, rows=-1)


@in_float32
def solveh_banded(ab: ArrayLike, b: ArrayLike, /, *, lower: bool = False) -> Array:
    """The solution x of `a @ x = b` for a positive definite banded matrix.

    Args:
        ab: The main diagonal and those above it as rows, the uppermost first:
            `ab[u + i - j, j] = a[i, j]`, or a stack of such arrays.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        lower: Whether the main diagonal and those below it are given instead, the main one first:
            `ab[i - j, j] = a[i, j]`.

    Raises:
        LinAlgError: A matrix is not positive definite, or has less than two axes.
        ShapeError: `b` does not fit.

    >>> diagonals = np.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    >>> gt.linalg.solveh_banded(diagonals, np.array([3.0, 4.0, 3.0])).round(12)
    array([1., 1., 1.])
    """
    ab, b = bands_of("solveh_banded", ab), inexact(b)
    width = ab.shape[-2] - 1
    full = hermitian_bands(ab, bool(lower))
    solve = functools.partial(banded, full, lower=width, upper=width, definite=True)
    return in_columns("solveh_banded", solve, ab, b, rows=-1)


@in_float32
def cho_solve_banded(cb_and_lower: tuple[ArrayLike, bool], b: ArrayLike, /) -> Array:
    """The solution x of `a @ x = b`, given the banded Cholesky factor of `a`.

    Args:
        cb_and_lower: The diagonals of the factor, as `cholesky_banded` gives them, and whether it
            is the lower one.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        LinAlgError: The factor has a 0 on its diagonal, or less than two axes.
        ShapeError: `b` does not fit.
        ArgumentError: The factor and its side are not given as a pair.

    >>> factor = np.array([[2.0, 1.0], [1.0, 0.0]])
    >>> gt.linalg.cho_solve_banded((factor, True), np.array([2.0, 2.0]))
    array([0., 1.])
    """
    factor, in_lower = cb_and_lower
    factor = bands_of("cho_solve_banded", factor)
    width = factor.shape[-2] - 1
    turned = adjoint_bands(factor, 0 if in_lower else width)
    below, beyond = (factor, turned) if in_lower else (turned, factor)

    def solve(b: Any) -> Any:
        half = banded(below, b, lower=width, upper=0, definite=False)
        return banded(beyond, half, lower=0, upper=width, definite=False)

    return in_columns("cho_solve_banded", solve, factor, inexact(b), rows=-1)
