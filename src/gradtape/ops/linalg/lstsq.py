"""The pseudo-inverse and least squares, for matrices of any rank. Xᴴ is the conjugate transpose.

Where the rank of a matrix changes, its pseudo-inverse jumps. Derivatives are those along changes
that keep the rank, which are all small ones if the rank is full. Where singular values above
rounding count as 0, they are those of the function that drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import broadcast_sizes, general
from gradtape.core.tensor import Tensor, concrete, innermost
from gradtape.errors import ArgumentError, ConversionError, NotDifferentiableError
from gradtape.ops.cast import astype, conj, real, stop_gradient
from gradtape.ops.checks import check_least
from gradtape.ops.exponential import cbrt
from gradtape.ops.join import stack
from gradtape.ops.linalg.columns import in_columns
from gradtape.ops.linalg.common import MATRIX, adjoint, square
from gradtape.ops.linalg.condition import matrix_rank
from gradtape.ops.linalg.hermitian import mirrored
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.stacks import (
    batch_stacks,
    computed_in,
    matrix_stack,
    stack_of,
    summed,
)
from gradtape.ops.linalg.svd import svdvals
from gradtape.ops.linalg.truncation import kept_change
from gradtape.ops.norm import inexact
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.typing import Array, ArrayLike

# Half the spacing of float64, which LAPACK takes for a negative cutoff
_SPACING = 2.0**-53

# ---- pseudo-inverse -----------------------------------------------------------------------------


def _pinv_forward(xp: Any, x: Any, rtol: float, hermitian: bool, atol: float = 0.0) -> Any:
    if not atol:
        return xp.linalg.pinv(x, rtol, hermitian)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    kept = s > atol + rtol * s.max(axis=-1, initial=0, keepdims=True)
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0)
    return adjoint(u * inverse[..., None, :] @ vh)


def _pinv_vjp(ct: Any, out: Any, x: Any, rtol: float, hermitian: bool, atol: float = 0.0) -> Any:
    p, p_adjoint, back = out, adjoint(out), adjoint(ct)
    missed = back - x @ (p @ back)
    unseen = back - (back @ p) @ x
    by_kept = missed @ p @ p_adjoint + p_adjoint @ p @ unseen - p_adjoint @ ct @ p_adjoint
    return kept_change(x, by_kept, rtol, atol)


def _pinv_jvp(
    tangents: Sequence[Any], out: Any, x: Any, rtol: float, hermitian: bool, atol: float = 0.0
) -> Any:
    p, p_adjoint, dx = out, adjoint(out), kept_change(x, tangents[0], rtol, atol)
    back = adjoint(dx)
    missed = back - (back @ x) @ p
    unseen = back - p @ (x @ back)
    return p @ p_adjoint @ missed + unseen @ p_adjoint @ p - p @ dx @ p


def _infer_pinv(x: Aval, rtol: float, hermitian: bool, atol: float = 0.0) -> Aval:
    *stack, rows, columns = x.shape
    return Aval((*stack, columns, rows), x.dtype)


# P = A⁺: dP = P·Pᴴ·dAᴴ·(I − A·P) + (I − P·A)·dAᴴ·Pᴴ·P − P·dA·P
_pinv = general(
    "pinv",
    _pinv_forward,
    infer=_infer_pinv,
    vjps=(_pinv_vjp,),
    jvp=_pinv_jvp,
)


@in_float32
def pinv(
    x: ArrayLike,
    /,
    rcond: ArrayLike = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike = None,
) -> Array:
    """The pseudo-inverse of a matrix, or of each in a stack.

    Its derivative is that along changes that keep the number of singular values above the cutoff.

    Args:
        x: The matrix; it may have any shape and rank.
        rcond: Singular values count as 0 if they are not larger than the largest one times this;
            one number, or one for each matrix of a stack.
        hermitian: Whether the matrix is Hermitian. Only the lower triangle is read then, and the
            derivative is that with respect to a matrix that stays Hermitian.
        rtol: Another name for `rcond`, as the Array API standard has it. If neither is given it
            is 1e-15, as for `np.linalg.pinv`, or the spacing of float32 numbers times the larger
            number of rows and columns.

    Raises:
        LinAlgError: There are less than two axes; or the matrix is not square, but said to be
            Hermitian.
        ArgumentError: Both `rcond` and `rtol` were given.

    >>> gt.linalg.pinv(np.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    x = matrix_stack("pinv", x)
    if rcond is not None and rtol is not None:
        raise ArgumentError("pinv: got both rcond and rtol; give one of them")
    cutoff = rtol if rcond is None else rcond
    if cutoff is None:
        single = x.dtype in (np.float32, np.complex64)
        cutoff = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if single else 1e-15
    if hermitian:
        x = mirrored(square("pinv", x), lower=True, conjugate=True)
    if getattr(cutoff, "shape", ()):
        return _pinv_each(x, cutoff, bool(hermitian))
    return _pinv(x, rtol=float(cutoff), hermitian=bool(hermitian))


def _pinv_each(x: Any, cutoffs: Any, hermitian: bool) -> Any:
    """The pseudo-inverses of a stack of matrices that have a cutoff each."""
    cutoffs = concrete(cutoffs, "pinv (rtol)") if isinstance(cutoffs, Tensor) else cutoffs
    shape = broadcast_sizes(x.shape[:-2], cutoffs.shape)
    x = broadcast_to(x, (*shape, *x.shape[-2:]))
    if 0 in x.shape:
        return _pinv(x, rtol=0.0, hermitian=hermitian)
    matrices = reshape(x, (-1, *x.shape[-2:]))
    each = np.broadcast_to(cutoffs, shape).ravel()
    found = [
        _pinv(matrices[i], rtol=float(cutoff), hermitian=hermitian) for i, cutoff in enumerate(each)
    ]
    return reshape(stack(found), (*shape, x.shape[-1], x.shape[-2]))


@in_float32
def pinvh(
    a: ArrayLike,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
) -> Array | tuple[Array, Array]:
    """The pseudo-inverse of a Hermitian matrix, or of each in a stack.

    Args:
        a: The matrix; only one triangle is read, and the derivative is that with respect to a
            matrix that stays Hermitian and keeps its rank.
        atol: Eigenvalues count as 0 if their sizes are not larger than this and `rtol` times the
            largest one together; None is 0.
        rtol: None is the spacing of numbers times the size.
        lower: Whether the lower triangle is read, else the upper one.
        return_rank: Whether to return the rank as well.

    Raises:
        LinAlgError: A matrix is not square.
        ArgumentError: `atol` or `rtol` is below 0.

    >>> gt.linalg.pinvh(np.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    a = square("pinvh", inexact(a))
    a = mirrored(a, lower=bool(lower), conjugate=True)
    return inverse_and_rank("pinvh", a, atol, rtol, return_rank=return_rank, hermitian=True)


def inverse_and_rank(
    name: str,
    a: Any,
    atol: float | None,
    rtol: float | None,
    *,
    return_rank: bool,
    hermitian: bool = False,
) -> Array | tuple[Array, Array]:
    """The pseudo-inverse with SciPy's cutoff, and the rank if wanted."""
    spacing = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    least, relative = 0.0 if atol is None else atol, spacing if rtol is None else rtol
    check_least(name, 0, atol=least, rtol=relative)
    inverse = _pinv(a, rtol=float(relative), hermitian=hermitian, atol=float(least))
    if not return_rank:
        return inverse
    largest = max_of(svdvals(stop_gradient(a)), -1, initial=0.0)
    limit = least + relative * largest
    return inverse, matrix_rank(a, limit, hermitian)


# ---- least squares ------------------------------------------------------------------------------


def _lstsq_forward(xp: Any, a: Any, b: Any, rcond: float) -> Any:
    dtype = computed_in(a.dtype, b.dtype)
    stack = stack_of(a, b)
    a, b = (xp.broadcast_to(x.astype(dtype, copy=False), stack + x.shape[-2:]) for x in (a, b))
    x = xp.zeros((*stack, a.shape[-1], b.shape[-1]), dtype)
    rank = xp.zeros(stack, np.intc)
    for index in np.ndindex(*stack):
        x[index], _, rank[index], _ = xp.linalg.lstsq(a[index], b[index], rcond)
    return x, rank


def _infer_lstsq(a: Aval, b: Aval, rcond: float) -> tuple[Aval, Aval]:
    stack = stack_of(a, b)
    dtype = computed_in(a.dtype, b.dtype)
    return Aval((*stack, a.shape[-1], b.shape[-1]), dtype), Aval(stack, np.dtype(np.intc))


def _pinv_in_double(a: Any, rcond: float) -> Any:
    """The pseudo-inverse in double precision, as in the forward, for the same rank."""
    wide = np.result_type(a.dtype, np.float64)
    inverse = _pinv(astype(a, wide, copy=False), rtol=rcond, hermitian=False)
    return astype(inverse, a.dtype)


def _lstsq_vjp(wanted: Any, ct: Any, out: Any, a: Any, b: Any, rcond: float) -> Any:
    (x, _), p = out, _pinv_in_double(a, rcond)
    back = adjoint(p) @ ct[0]
    if not wanted[0]:
        return None, back
    missed, unseen = b - a @ x, ct[0] - adjoint(a) @ back
    by_matrix = missed @ adjoint(p @ back) + (adjoint(p) @ x) @ adjoint(unseen)
    return kept_change(a, by_matrix - back @ adjoint(x), rcond), back


def _lstsq_jvp(tangents: Sequence[Any], out: Any, a: Any, b: Any, rcond: float) -> Any:
    (da, db), (x, _), p = tangents, out, _pinv_in_double(a, rcond)
    if da is None:
        return p @ db, None
    da = kept_change(a, da, rcond)
    change = (-da @ x) if db is None else db - da @ x
    back = adjoint(da)
    seen = p @ (adjoint(p) @ (back @ (b - a @ x)))
    unseen = back @ (adjoint(p) @ x)
    return p @ change + seen + unseen - p @ (a @ unseen), None


# x = A⁺b: dx = A⁺(db − dA·x) + A⁺·A⁺ᴴ·dAᴴ·(b − A·x) + (I − A⁺·A)·dAᴴ·A⁺ᴴ·x
_lstsq = general(
    "lstsq",
    _lstsq_forward,
    infer=_infer_lstsq,
    vjp_all=summed(_lstsq_vjp),
    jvp=_lstsq_jvp,
    batch=batch_stacks,
    outputs=2,
)


class LstsqResult(NamedTuple):
    """The result of `lstsq`: solution, sums of squared residuals, rank and singular values.

    >>> gt.linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0])).x
    array([2.])
    """

    x: Array
    residuals: Array
    rank: Array
    s: Array


@in_float32
def lstsq(a: ArrayLike, b: ArrayLike, /, rcond: float | None = None) -> LstsqResult:
    """The vector x of least size among those with the least `|a @ x - b|`.

    Args:
        a: A matrix of any shape and rank, or a stack of them. The derivative is that along changes
            that keep its rank.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.
        rcond: Singular values count as 0 if they are not larger than the largest one times this;
            None is the spacing of float64, in which NumPy computes, times the larger number of rows
            and columns; a negative number is half of that spacing.

    Returns:
        A named tuple: `x`; `residuals`, the sum of squares of `a @ x - b` for each column, and
        empty if there are no more rows than columns or the rank is less than the number of columns
        (under `jit` and `vmap`, where a shape cannot depend on a rank, NaN instead); `rank`; and
        `s`, the singular values of `a`. Where `a` lacks rank they have no second derivatives; in
        forward mode these are infinite or NaN then.

    Raises:
        LinAlgError: `a` has less than two axes, or has no decomposition.
        ShapeError: `b` does not fit.

    >>> gt.linalg.lstsq(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0, 5.0])).x
    array([1., 2.])
    """
    a, b = matrix_stack("lstsq", a), inexact(b)
    rows, columns = a.shape[-2:]
    if rcond is None:
        rcond = 2 * _SPACING * max(rows, columns)
    x, residuals, rank = solution("lstsq", a, b, float(rcond))
    return LstsqResult(x, _chosen(residuals, rank, rows, columns), rank, values(a))


def solution(name: str, a: Any, b: Any, cutoff: float) -> tuple[Any, Any, Any]:
    """The solution, the sums of squared residuals of each column, and the rank."""
    cutoff = _SPACING if cutoff < 0 else cutoff
    ranks: list[Any] = []
    residuals: list[Any] = []

    def solve(b: Any) -> Any:
        x, rank = _lstsq(a, b, rcond=cutoff)
        ranks.append(rank)
        missed = b - a @ x
        residuals.append(sum_of(real(conj(missed) * missed), -2))
        return x

    return in_columns(name, solve, a, b), residuals[0], ranks[0]


def values(a: Any) -> Any:
    """The singular values, with an infinite derivative in forward mode where they have none.

    Forward mode differentiates everything that is computed: an error would come up even if only the
    solution is used, which has all its derivatives.
    """
    try:
        return svdvals(a)
    except NotDifferentiableError:
        still = stop_gradient(a)
        # The cube root of 0 is 0, and infinitely steep.
        moved = cbrt(sum_of(real(a - still), MATRIX))
        return svdvals(still) + reshape(moved, (*moved.shape, 1))


def _chosen(residuals: Any, rank: Any, rows: int, columns: int) -> Any:
    """The residuals where NumPy returns them: for more rows than columns, and these independent."""
    if rows <= columns:
        return residuals[..., :0]
    try:
        known = innermost(rank) if isinstance(rank, Tensor) else rank
    except ConversionError:
        known = None
    if known is None or np.ndim(known):
        return where_complete(residuals, rank, columns)
    return residuals if known == columns else residuals[..., :0]


def where_complete(residuals: Any, rank: Any, columns: int) -> Any:
    """The residuals of matrices of full rank; NaN for the others."""
    return where(reshape(rank == columns, (*rank.shape, 1)), residuals, np.nan)
