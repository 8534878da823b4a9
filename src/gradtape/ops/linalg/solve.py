"""Equations: solve and the inverse. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import added, general
from gradtape.core.finite import is_traced
from gradtape.core.lowering import Matrices
from gradtape.core.op import Facts, Op
from gradtape.errors import LinAlgError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import equal
from gradtape.ops.diagonal import diagonal
from gradtape.ops.linalg import by_lapack, small
from gradtape.ops.linalg.banded import banded
from gradtape.ops.linalg.bands import diagonals
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import (
    DEFINITE,
    SINGULAR,
    adjoint,
    evaluated_by,
    failed,
    infer_like,
    inverse,
    square,
)
from gradtape.ops.linalg.hermitian import mirrored
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack
from gradtape.ops.linalg.lu import lu_factor
from gradtape.ops.linalg.stacks import batch_stacks, computed_in, over_stack, stack_of, summed
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.matmul import by_left
from gradtape.ops.norm import inexact
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# ---- factors, which the backward pass uses again ------------------------------------------------

# A stack of smaller matrices is solved by one call of NumPy, which keeps no factors: a call of
# LAPACK for each would cost more than factoring them twice.
_SMALL = 24


def _kept(shape: tuple[Any, ...], assume: str) -> bool:
    """Whether the factors of such matrices are kept."""
    return len(shape) == 2 or shape[-1] >= _SMALL or assume in ("pos", small.FACTORED)


def _factor(a: Any, assume: str) -> tuple[Any, Any]:
    """Factors of one matrix by LAPACK: the Cholesky factor, or L, U and pivots of Aᵀ.

    LAPACK reads columns: the transpose of a matrix in rows needs no copy.
    """
    if not a.size:
        return a, np.empty((1, 0), np.intc)
    if assume == "pos":
        factor, info = lapack("potrf", a.dtype)(a.T, lower=True)
        if info > 0:
            raise failed("solve", (a,), "Matrix is not positive definite", DEFINITE)
        return factor, np.zeros((1, a.shape[-1]), np.intc)
    factors, pivots, info = lapack("getrf", a.dtype)(a.T)
    if info > 0:
        raise failed("solve", (a,), "Singular matrix", SINGULAR)
    return factors, pivots[None]


def _solve_by_factors(factors: Any, pivots: Any, b: Any, assume: str, back: bool) -> Any:
    """A⁻¹b by the factors of one matrix, or A⁻ᴴb if `back`."""
    if not b.size:
        return np.empty(b.shape, b.dtype)
    if assume == "pos":
        # The factor is that of Aᵀ, which is the conjugate of A.
        return lapack("potrs", b.dtype)(factors, b.conj(), lower=True)[0].conj()
    getrs = lapack("getrs", b.dtype)
    if not back:
        return getrs(factors, pivots[0], b, trans=1)[0]
    return getrs(factors, pivots[0], b.conj())[0].conj()


def _by_factors(factors: Any, pivots: Any, b: Any, assume: str, back: bool) -> Any:
    """The same for stacks; columns of one matrix are solved together."""
    one = functools.partial(_solve_by_factors, assume=assume, back=back)
    if factors.ndim == 2 and b.ndim > 2:
        columns = np.moveaxis(b, -2, 0)
        flat = one(factors, pivots, columns.reshape(b.shape[-2], -1))
        return np.moveaxis(flat.reshape(columns.shape), 0, -2)
    return over_stack(one, factors, pivots, b)


# ---- solving again with kept factors ------------------------------------------------------------


def _again_forward(
    xp: Any, factors: Any, pivots: Any, a: Any, b: Any, assume: str, back: bool
) -> Any:
    if not factors.shape[-2]:
        return xp.linalg.solve(a.conj().mT if back else a, b)
    dtype = computed_in(factors.dtype, b.dtype)
    factors, b = factors.astype(dtype, copy=False), b.astype(dtype, copy=False)
    return _by_factors(factors, pivots, b, assume, back)


def _infer_again(_factors: Aval, _pivots: Aval, a: Aval, b: Aval, assume: str, back: bool) -> Aval:
    return Aval((*stack_of(a, b), *b.shape[-2:]), computed_in(a.dtype, b.dtype))


def _again_vjp(
    wanted: tuple[bool, ...], ct: Any, out: Any, factors: Any, pivots: Any, a: Any, _b: Any,
    assume: str, back: bool,
) -> Any:  # fmt: skip
    turned = again(factors, pivots, a, ct, assume=assume, back=not back)
    by_matrix = None
    if wanted[2]:
        by_matrix = by_left(-out, None, a, turned) if back else by_left(-turned, None, a, out)
    return None, None, by_matrix, turned


def _again_jvp(
    tangents: Sequence[Any], out: Any, factors: Any, pivots: Any, a: Any, _b: Any,
    assume: str, back: bool,
) -> Any:  # fmt: skip
    _, _, da, db = tangents
    change = added(db, None if da is None else -((adjoint(da) if back else da) @ out))
    if change is None:
        return None  # the factors have no derivative of their own: that of A goes past them
    return again(factors, pivots, a, change, assume=assume, back=back)


def _batch_again(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    *others, b = args
    if axes[:3] == (None,) * 3 and len(others[2].shape) == 2 and len(b.shape) == 3:
        columns, shape = _side_by_side(b, axes[3])
        return reshape(call(op, (*others, columns), params), shape), 2
    return batch_stacks(op, axes, args, params)


def _side_by_side(b: Any, axis: int) -> tuple[Any, Any]:
    """The columns of a batch for which there is one matrix, and the shape of the result."""
    b = move_batch_axis(b, axis, 2)
    return reshape(b, (b.shape[0], b.shape[1] * b.shape[2])), b.shape


# x = A⁻¹b, with factors of A that are at hand: dx = A⁻¹(db − dA·x); `back` has Aᴴ in place of A
again = general(
    "solve_again",
    _again_forward,
    infer=_infer_again,
    vjp_all=summed(_again_vjp),
    jvp=_again_jvp,
    batch=_batch_again,
    facts=Facts(divisors=(2,)),
    lower=Matrices(
        small.solve_again,
        fits=small.rows_up_to(8),
        columns=True,
        library=by_lapack.solve_again,
        takes=by_lapack.takes,
    ),
)

# ---- solve --------------------------------------------------------------------------------------

_solve_by_numpy = evaluated_by("solve", "solve", SINGULAR)


def _solve_forward(xp: Any, a: Any, b: Any, assume: str) -> Any:
    dtype = computed_in(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if xp is not np or not _kept(a.shape, assume):
        *stack, _, size = a.shape
        nothing = np.empty((*stack, 0, size), dtype), np.empty((*stack, 1, 0), np.intc)
        return _solve_by_numpy(xp, a, b), *nothing
    factors, pivots = over_stack(functools.partial(_factor, assume=assume), a)
    return _by_factors(factors, pivots, b, assume, back=False), factors, pivots


def _infer_solve(a: Aval, b: Aval, assume: str) -> tuple[Aval, Aval, Aval]:
    dtype = computed_in(a.dtype, b.dtype)
    *stack, size, _ = a.shape
    kept = _kept(a.shape, assume)
    return (
        Aval((*stack_of(a, b), *b.shape[-2:]), dtype),
        Aval((*stack, size if kept else 0, size), dtype),
        Aval((*stack, 1, size if kept else 0), np.dtype(np.intc)),
    )


def _solve_vjp(wanted: tuple[bool, bool], ct: Any, out: Any, a: Any, _b: Any, assume: str) -> Any:
    solution, factors, pivots = out
    if ct[0] is None:
        return None, None
    back = again(factors, pivots, a, ct[0], assume=assume, back=True)
    return by_left(-back, None, a, solution) if wanted[0] else None, back


def _solve_jvp(tangents: Sequence[Any], out: Any, a: Any, _b: Any, assume: str) -> Any:
    (da, db), (solution, factors, pivots) = tangents, out
    change = added(db, None if da is None else -(da @ solution))
    return again(factors, pivots, a, change, assume=assume, back=False), None, None


def _solve_batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    (a, b), (axis, axis2) = args, axes
    if axis is None and len(a.shape) == 2 and len(b.shape) == 3:
        # The matrix is factored once.
        columns, shape = _side_by_side(b, axis2)
        out, factors, pivots = call(op, (a, columns), params)
        return (reshape(out, shape), factors, pivots), (2, None, None)
    if len(a.shape) == 3 and axis is not None and any(map(is_traced, args)):
        # A graph of one matrix has kept its factors: it is in the shapes around this op.
        params = {"assume": params["assume"] if params["assume"] == "pos" else small.FACTORED}
    out, axes = batch_stacks(op, axes, args, params)
    return out, axes if axis is not None else (0, None, None)


_pull_solve = summed(_solve_vjp)
_pull_solve.takes_none = True  # type: ignore[attr-defined]

# x = A⁻¹b: dx = A⁻¹(db − dA·x); besides x it gives factors of A, for the rules
_solve = general(
    "solve",
    _solve_forward,
    infer=_infer_solve,
    vjp_all=_pull_solve,
    jvp=_solve_jvp,
    batch=_solve_batch,
    facts=Facts(divisors=(0,)),
    outputs=3,
    lower=Matrices(
        small.solve,
        fits=small.rows_up_to(8),
        columns=True,
        library=by_lapack.solve,
        takes=by_lapack.takes,
    ),
)


def solve_stack(a: Any, b: Any, assume: str = "gen") -> Any:
    """The solutions of equations whose right hand sides are matrices of columns."""
    return _solve(a, b, assume=assume)[0]


def factored(a: Any) -> Callable[[Any], Any]:
    """A function that solves `a @ x = b` for one vector after the other, and factors `a` once."""
    _, factors, pivots = _solve(a, np.zeros((a.shape[-1], 1)), assume="gen")

    def solution(b: Any) -> Any:
        return again(factors, pivots, a, b[..., None], assume="gen", back=False)[..., 0]

    return solution


def solve_unless_singular(a: Any, b: Any) -> tuple[Any, Any]:
    """Solve `a @ x = b` for one vector, without an error: also return whether `a` is singular.

    The solution of singular equations is 0. This is for loops that have to end before they raise,
    in compiled code as well.
    """
    if not any(map(is_traced, (a, b))):
        # NumPy solves a whole stack in one call.
        with contextlib.suppress(LinAlgError):
            return solve(a, b), np.bool_(False)
    factors, pivots = lu_factor(stop_gradient(a.mT))
    # The factors of Aᵀ are those that `solve` keeps.
    pivot = diagonal(factors)
    none = astype(equal(pivot, 0), factors.dtype)
    divisors = factors + none * np.eye(a.shape[-1], dtype=factors.dtype)
    x = again(divisors, pivots[None], a, b[..., None], assume="gen", back=False)[..., 0]
    is_singular = max_of(none) > 0 if a.shape[-1] else np.bool_(False)
    return where(is_singular, 0, x), is_singular


_STRUCTURES = {
    None: "gen", "gen": "gen", "general": "gen",
    "sym": "sym", "symmetric": "sym",
    "her": "her", "hermitian": "her",
    "pos": "pos", "positive definite": "pos",
    "upper triangular": "upper", "lower triangular": "lower",
    "diagonal": "diagonal", "tridiagonal": "tridiagonal",
}  # fmt: skip


@in_float32
def solve(
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    lower: bool = False,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """The solution x of `a @ x = b`.

    Args:
        a: A square matrix, or a stack of them.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        lower: Whether the lower triangle of a matrix with a structure is read, else the upper one.
        assume_a: The known structure of the matrix: "gen" (or None), "sym", "her", "pos",
            "upper triangular", "lower triangular", "diagonal", "tridiagonal". No more is read than
            the matrix is said to have, one triangle if it has two alike, and the derivative is that
            with respect to a matrix that stays what it is.
        transposed: Whether to solve `a.mT @ x = b`.

    Raises:
        LinAlgError: A matrix is not square, or singular; or not positive definite but said to be.
        ShapeError: `b` does not fit.
        ArgumentError: There is no such structure.
        UnsupportedError: The structure is "banded".

    >>> gt.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    a, b = square("solve", a), as_array(b)
    if assume_a == "banded":
        raise UnsupportedError(
            "solve: got assume_a='banded', and how many diagonals there are depends on values; "
            "use solve_banded, or leave it out"
        )
    check_choice("solve", _STRUCTURES, assume_a=assume_a)
    structure = _STRUCTURES[assume_a]
    if structure in ("upper", "lower"):
        return solve_triangular(a, b, trans=int(bool(transposed)), lower=structure == "lower")
    if structure in ("diagonal", "tridiagonal"):
        width = int(structure == "tridiagonal")
        ab = diagonals(inexact(a.mT if transposed else a), width, width)
        by_diagonals = functools.partial(banded, ab, lower=width, upper=width, definite=False)
        return in_columns("solve", by_diagonals, a, inexact(b))
    if structure != "gen":
        a = mirrored(inexact(a), lower=bool(lower), conjugate=structure != "sym")
    if transposed:
        a = a.mT
    assume = "pos" if structure == "pos" else "gen"
    return in_columns("solve", lambda b: solve_stack(a, b, assume), a, b)


# ---- inverse ------------------------------------------------------------------------------------

# From this size on, L and U are inverted; NumPy solves equations with the identity, a third more
# work.
_LARGE = 128
# How many columns are computed together.
_BLOCK = 64
_inv_by_numpy = evaluated_by("inv", "inv", SINGULAR)


def _inv_forward(xp: Any, x: Any) -> Any:
    if xp is not np or x.shape[-1] < _LARGE or x.dtype.char not in "fdFD":
        return _inv_by_numpy(xp, x)
    return over_stack(_inverted, x)


def _inverted(a: Any) -> Any:
    """The inverse of one matrix; transposed twice, since LAPACK reads columns."""
    factors, pivots, info = lapack("getrf", a.dtype)(a.T)
    if info > 0:
        raise failed("inv", (a,), "Singular matrix", SINGULAR)
    return lapack("getri", a.dtype)(factors, pivots, lwork=_BLOCK * len(a))[0].T


_inv = inverse(
    "inv",
    _inv_forward,
    infer_like("inv"),
    Matrices(
        small.inv,
        fits=small.up_to(7),
        library=functools.partial(by_lapack.inv, large=_LARGE, block=_BLOCK),
        takes=by_lapack.takes,
    ),
)


@in_float32
def inv(x: ArrayLike, /) -> Array:
    """The inverse of a square matrix, or of each in a stack; to solve equations use `solve`.

    Raises:
        LinAlgError: A matrix is not square, or singular.

    >>> gt.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return _inv(square("inv", x))
