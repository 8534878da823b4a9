"""Equations with a triangular matrix. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general
from gradtape.core.lowering import Matrices
from gradtape.core.op import Facts
from gradtape.ops.checks import check_choice
from gradtape.ops.diagonal import tril, triu
from gradtape.ops.linalg import by_lapack, small
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import SINGULAR, adjoint, failed, square
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack
from gradtape.ops.linalg.stacks import batch_stacks, computed_in, over_stack, stack_of, summed
from gradtape.ops.matmul import by_left
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike


def _triangle(x: Any, lower: bool, unit_diagonal: bool) -> Any:
    """The part of a matrix that is read."""
    return tril(x, -int(unit_diagonal)) if lower else triu(x, int(unit_diagonal))


def _forward(xp: Any, a: Any, b: Any, lower: bool, unit_diagonal: bool) -> Any:
    dtype = computed_in(a.dtype, b.dtype)
    if xp is not np:
        part = (xp.tril if lower else xp.triu)(a)
        if unit_diagonal:
            one = xp.eye(a.shape[-1], dtype=a.dtype)
            part = part * (1 - one) + one
        return xp.linalg.solve(part, b)
    solve = functools.partial(_solve_one, lapack("trtrs", dtype), lower, unit_diagonal)
    return over_stack(solve, a.astype(dtype, copy=False), b.astype(dtype, copy=False))


def _solve_one(trtrs: Any, lower: bool, unit_diagonal: bool, a: Any, b: Any) -> Any:
    if not b.size:
        return np.empty(b.shape, b.dtype)
    # LAPACK reads columns: a matrix in rows is given as its transpose, without a copy.
    if a.flags.f_contiguous:
        out, info = trtrs(a, b, lower=lower, trans=0, unitdiag=unit_diagonal)
    else:
        out, info = trtrs(a.T, b, lower=not lower, trans=1, unitdiag=unit_diagonal)
    if info > 0:
        problem = f"the diagonal has a 0 at {info - 1}"
        raise failed("solve_triangular", (a, b), f"Singular matrix: {problem}", SINGULAR)
    return out


def _infer(a: Aval, b: Aval, lower: bool, unit_diagonal: bool) -> Aval:
    return Aval((*stack_of(a, b), *b.shape[-2:]), computed_in(a.dtype, b.dtype))


def _vjp(
    wanted: tuple[bool, bool], ct: Any, out: Any, a: Any, _b: Any, lower: bool, unit_diagonal: bool
) -> Any:
    back = triangular(adjoint(a), ct, lower=not lower, unit_diagonal=unit_diagonal)
    by_matrix = by_left(-back, None, a, out) if wanted[0] else None
    return None if by_matrix is None else _triangle(by_matrix, lower, unit_diagonal), back


def _jvp(
    tangents: Sequence[Any], out: Any, a: Any, _b: Any, lower: bool, unit_diagonal: bool
) -> Any:
    da, db = tangents
    moved = None if da is None else -(_triangle(da, lower, unit_diagonal) @ out)
    return triangular(a, added(db, moved), lower=lower, unit_diagonal=unit_diagonal)


# x = T⁻¹b with the triangle T of A: dx = T⁻¹(db − dT·x)
triangular = general(
    "solve_triangular",
    _forward,
    infer=_infer,
    vjp_all=summed(_vjp),
    jvp=_jvp,
    batch=batch_stacks,
    facts=Facts(divisors=(0,)),
    lower=Matrices(
        small.solve_triangular,
        fits=small.rows_up_to(8),
        columns=True,
        library=by_lapack.solve_triangular,
        takes=by_lapack.takes,
    ),
)


_TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


@in_float32
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    /,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The solution x of `a @ x = b` for a triangular matrix; the other triangle is not read.

    Args:
        a: A square matrix, or a stack of them.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        trans: 0 or "N" for the matrix itself, 1 or "T" for its transpose, 2 or "C" for its
            conjugate transpose.
        lower: Whether the lower triangle is read, and not the upper one.
        unit_diagonal: Whether to assume ones on the diagonal, which is then not read.

    Raises:
        LinAlgError: A matrix is not square, or has a 0 on its diagonal.
        ShapeError: `b` does not fit.
        ArgumentError: There is no such `trans`.

    >>> gt.linalg.solve_triangular(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
    array([0.5, 1. ])
    """
    check_choice("solve_triangular", _TRANSPOSED, trans=trans)
    a = square("solve_triangular", inexact(a))
    turned = _TRANSPOSED[trans]
    if turned:
        a, lower = (adjoint(a) if turned == 2 else a.mT), not lower
    params = {"lower": bool(lower), "unit_diagonal": bool(unit_diagonal)}
    return in_columns("solve_triangular", lambda b: triangular(a, b, **params), a, inexact(b))


def divided_by_upper(x: Any, r: Any, *, by_adjoint: bool) -> Any:
    """X·R⁻¹ or X·R⁻ᴴ of an upper triangular R."""
    turned = r if by_adjoint else adjoint(r)
    return adjoint(solve_triangular(turned, adjoint(x), lower=not by_adjoint))
