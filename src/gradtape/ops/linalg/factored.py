"""Equations with a matrix that was factored before: cho_solve, lu_solve. Xᴴ is the adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice
from gradtape.ops.gather import take_along_axis
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import adjoint, check_fit, square
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lu import order_of_rows
from gradtape.ops.linalg.triangular import triangular
from gradtape.ops.norm import inexact
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.typing import Array, ArrayLike

# ---- Cholesky -----------------------------------------------------------------------------------


@in_float32
def cho_factor(a: ArrayLike, /, lower: bool = False) -> tuple[Array, bool]:
    """The Cholesky factor of a positive definite Hermitian matrix, as `cho_solve` takes it.

    Args:
        a: The matrix, or a stack of them; only one triangle is read, and the derivative is that
            with respect to a matrix that stays Hermitian.
        lower: Whether to read the lower triangle and to give the lower factor, else the upper ones.

    Returns:
        The factor, with zeros in the other triangle (where SciPy leaves what was there), and
        `lower`.

    Raises:
        LinAlgError: A matrix is not square, or not positive definite.

    >>> factor, lower = gt.linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 2.0]]))
    >>> gt.linalg.cho_solve((factor, lower), np.array([2.0, 2.0]))
    array([0., 1.])
    """
    return cholesky(inexact(a), upper=not lower), bool(lower)


@in_float32
def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, /) -> Array:
    """The solution x of `a @ x = b`, given the Cholesky factor of `a`.

    Args:
        c_and_lower: The factor and whether it is the lower one, as `cho_factor` gives them.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        LinAlgError: The factor is not square, or has a 0 on its diagonal.
        ShapeError: `b` does not fit.

    >>> gt.linalg.cho_solve((np.array([[2.0, 0.0], [1.0, 1.0]]), True), np.array([2.0, 2.0]))
    array([0., 1.])
    """
    factor, in_lower = c_and_lower
    factor = square("cho_solve", inexact(factor))
    lower, upper = (factor, adjoint(factor)) if in_lower else (adjoint(factor), factor)

    def solve(b: Any) -> Any:
        half = triangular(lower, b, lower=True, unit_diagonal=False)
        return triangular(upper, half, lower=False, unit_diagonal=False)

    return in_columns("cho_solve", solve, factor, inexact(b))


# ---- LU -----------------------------------------------------------------------------------------


@in_float32
def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, /, trans: int = 0) -> Array:
    """The solution x of `a @ x = b`, given the LU factors of `a`.

    Args:
        lu_and_piv: The factors and the pivots, as `lu_factor` gives them.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        trans: 0 to solve with `a` itself, 1 with its transpose, 2 with its conjugate transpose.

    Raises:
        LinAlgError: The factors are not square, or have a 0 on their diagonal.
        ShapeError: `b` or the pivots do not fit.
        ArgumentError: There is no such `trans`, or a pivot is out of bounds.

    >>> factors = np.array([[4.0, 2.0], [0.5, 1.0]]), np.array([0, 1])
    >>> gt.linalg.lu_solve(factors, np.array([8.0, 5.0]))
    array([1.5, 1. ])
    """
    lu, pivots = lu_and_piv
    lu, pivots = square("lu_solve", inexact(lu)), as_array(pivots)
    check_choice("lu_solve", (0, 1, 2), trans=trans)
    expected = f"pivots of shape {lu.shape[:-1]}"
    check_fit("lu_solve", pivots.shape == lu.shape[:-1], expected, lu, pivots)
    order = order_of_rows(pivots, rows=lu.shape[-1], inverse=bool(trans))

    def solve(b: Any) -> Any:
        if not trans:
            half = triangular(lu, _reordered(b, order), lower=True, unit_diagonal=True)
            return triangular(lu, half, lower=False, unit_diagonal=False)
        turned = adjoint(lu) if trans == 2 else lu.mT
        half = triangular(turned, b, lower=True, unit_diagonal=False)
        back = triangular(turned, half, lower=False, unit_diagonal=True)
        return _reordered(back, order)

    return in_columns("lu_solve", solve, lu, inexact(b))


def _reordered(b: Any, order: Any) -> Any:
    """The rows of matrices of columns in another order."""
    stack = np.broadcast_shapes(order.shape[:-1], b.shape[:-2])
    rows = broadcast_to(reshape(order, (*order.shape, 1)), (*stack, *b.shape[-2:]))
    return take_along_axis(broadcast_to(b, (*stack, *b.shape[-2:])), rows, axis=-2)
