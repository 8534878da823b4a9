"""The LU decomposition with partial pivoting. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Matrices
from gradtape.errors import ArgumentError
from gradtape.ops.diagonal import tril, triu
from gradtape.ops.gather import take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.linalg import by_lapack, small
from gradtape.ops.linalg.common import adjoint, real_dtype
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack
from gradtape.ops.linalg.qr import regular
from gradtape.ops.linalg.stacks import matrix_stack, over_stack
from gradtape.ops.linalg.triangular import divided_by_upper, solve_triangular
from gradtape.ops.locate import one_hot
from gradtape.typing import Array, ArrayLike

DEPENDENT = (
    "lu: got a matrix whose first columns depend on each other, expected independent ones for a "
    "derivative of the factors to exist; use qr or svd"
)

# ---- the packed factors -------------------------------------------------------------------------


def _forward(xp: Any, x: Any) -> Any:
    if not x.size:
        return x.copy(), xp.zeros((*x.shape[:-2], min(x.shape[-2:])), np.int32)
    packed, pivots, _ = over_stack(lapack("getrf", x.dtype), x if xp is np else x.get())
    return xp.asarray(packed), xp.asarray(pivots)


def _unit_lower(packed: Any) -> Any:
    """The lower factor, from a matrix of both."""
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    return tril(packed[..., :count], -1) + np.eye(rows, count, dtype=packed.dtype)


def _upper(packed: Any) -> Any:
    """The upper factor, from a matrix of both."""
    return triu(packed[..., : min(packed.shape[-2:]), :])


def _by_unit(lower: Any, x: Any) -> Any:
    """L⁻¹·X of a lower triangular L with ones on its diagonal."""
    return solve_triangular(lower, x, lower=True, unit_diagonal=True)


def _by_unit_adjoint(lower: Any, x: Any) -> Any:
    """L⁻ᴴ·X."""
    return solve_triangular(adjoint(lower), x, lower=False, unit_diagonal=True)


def _parts(packed: Any) -> tuple[Any, Any, Any, Any, Any]:
    """L and U where they are square, U to divide by, L and U in full; a factor of 1 guards it."""
    lower, upper = _unit_lower(packed), _upper(packed)
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    # The last element of the diagonal is divided by only for rows below it.
    safe, one = regular(upper[..., :count], DEPENDENT, count if rows > columns else count - 1)
    return lower, upper, lower[..., :count, :], upper[..., :count], safe * one


def _vjp(ct: Any, out: Any, _x: Any) -> Any:
    (packed, pivots), by_packed = out, ct[0]
    count = min(packed.shape[-2:])
    lower, upper, square_lower, square_upper, safe = _parts(packed)
    by_lower, by_upper = tril(by_packed[..., :count], -1), triu(by_packed[..., :count, :])
    by_square_lower, by_square_upper = by_lower[..., :count, :], by_upper[..., :count]
    below = right = None
    if packed.shape[-2] > count:
        below = divided_by_upper(by_lower[..., count:, :], safe, by_adjoint=True)
        by_square_upper = by_square_upper - adjoint(lower[..., count:, :]) @ below
    if packed.shape[-1] > count:
        right = _by_unit_adjoint(square_lower, by_upper[..., count:])
        by_square_lower = by_square_lower - right @ adjoint(upper[..., count:])
    turned = adjoint(square_lower) @ by_square_lower - by_square_upper @ adjoint(square_upper)
    inner = by_square_upper + divided_by_upper(tril(turned, -1), safe, by_adjoint=True)
    back = _by_unit_adjoint(square_lower, inner)
    if below is not None:
        back = concatenate([back, below], -2)
    if right is not None:
        back = concatenate([back, right], -1)
    order = order_of_rows(pivots, rows=back.shape[-2], inverse=True)
    return take_along_axis(back, order[..., None], -2)


def _jvp(tangents: Sequence[Any], out: Any, _x: Any) -> Any:
    packed, pivots = out
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    lower, upper, square_lower, square_upper, safe = _parts(packed)
    order = order_of_rows(pivots, rows=rows, inverse=False)
    moved = take_along_axis(tangents[0], order[..., None], -2)
    inner = _by_unit(square_lower, moved[..., :count, :count])
    strict = tril(divided_by_upper(inner, safe, by_adjoint=False), -1)
    d_lower, d_upper = square_lower @ strict, triu(inner - strict @ square_upper)
    change = tril(d_lower, -1) + d_upper
    if rows > count:
        below = moved[..., count:, :] - lower[..., count:, :] @ d_upper
        change = concatenate([change, divided_by_upper(below, safe, by_adjoint=False)], -2)
    if columns > count:
        right = moved[..., count:] - d_lower @ upper[..., count:]
        change = concatenate([change, _by_unit(square_lower, right)], -1)
    return change, None


def _infer(x: Aval) -> tuple[Aval, Aval]:
    return x, Aval((*x.shape[:-2], min(x.shape[-2:])), np.dtype(np.int32))


# A = P·L·U, N = L⁻¹·Pᵀ·dA, T = strictly lower part of N·U⁻¹: dL = L·T, dU = N − T·U; rows below a
# square part have dL = (dA − L·dU)·U⁻¹, columns right of it dU = L⁻¹·(dA − dL·U)
_factor = general(
    "lu_factor",
    _forward,
    infer=_infer,
    vjps=(_vjp,),
    jvp=_jvp,
    outputs=2,
    lower=Matrices(
        small.lu_factor,
        fits=small.up_to(8),
        library=by_lapack.lu_factor,
        takes=by_lapack.takes,
    ),
)


# ---- permutations -------------------------------------------------------------------------------


def _order_forward(xp: Any, pivots: Any, rows: int, inverse: bool) -> Any:
    swaps = np.asarray(pivots if xp is np else pivots.get())
    if swaps.size and not (swaps.min() >= 0 and swaps.max() < rows):
        # Pivots from lu_factor are never out of bounds.
        raise ArgumentError(
            f"lu_solve: got pivots out of bounds, expected rows from 0 to {rows - 1}"
        )
    order = np.empty((*swaps.shape[:-1], rows), np.int64)
    order[...] = np.arange(rows)
    for index in np.ndindex(swaps.shape[:-1]):
        one = order[index]
        for i, j in enumerate(swaps[index]):
            one[i], one[j] = one[j], one[i]
    return xp.asarray(np.argsort(order, axis=-1) if inverse else order)


# Which row comes where: rows are swapped with their pivots one after the other
order_of_rows = general(
    "lu_order",
    _order_forward,
    infer=lambda pivots, rows, inverse: Aval((*pivots.shape[:-1], rows), np.dtype(np.int64)),
    lower=Matrices(small.lu_order, fits=lambda _pivots, rows, inverse: rows <= 8, axes=1),
)


# ---- public functions ---------------------------------------------------------------------------


@in_float32
def lu_factor(a: ArrayLike) -> tuple[Array, Array]:
    """Both factors of a pivoted LU decomposition in one matrix, for `lu_solve`.

    Args:
        a: The matrix, or a stack of them.

    Returns:
        The matrix that has `u` in its upper triangle and `l`, without its diagonal of ones, below;
        and the pivots: row i was swapped with row `piv[i]`.

    Raises:
        LinAlgError: There are less than two axes.
        NotDifferentiableError: A derivative was asked for that does not exist, as the first columns
            depend on each other.

    >>> lu, piv = gt.linalg.lu_factor(np.array([[0.0, 1.0], [2.0, 4.0]]))
    >>> lu
    array([[2., 4.],
           [0., 1.]])
    >>> piv
    array([1, 1], dtype=int32)
    """
    return _factor(matrix_stack("lu_factor", a))  # type: ignore[no-any-return]


class LUResult(NamedTuple):
    """A permutation, a lower triangular matrix with ones on its diagonal, and an upper one.

    >>> p, l, u = gt.linalg.lu(np.array([[0.0, 1.0], [2.0, 4.0]]))
    >>> p @ l @ u
    array([[0., 1.],
           [2., 4.]])
    """

    P: Array
    L: Array
    U: Array


@in_float32
def lu(
    a: ArrayLike, permute_l: bool = False, *, p_indices: bool = False
) -> LUResult | tuple[Array, Array]:
    """LU decomposition `p @ l @ u` with partial pivoting of a matrix, or of each in a stack.

    Which rows are swapped is piecewise constant, and has no derivative.

    Args:
        a: The matrix.
        permute_l: Whether to return `p @ l` and `u` only.
        p_indices: Whether to return the permutation as indices: `a = (l @ u)[p]`.

    Returns:
        A named tuple of `P`, `L` and `U`; or a tuple of two if `permute_l`.

    Raises:
        LinAlgError: There are less than two axes.
        NotDifferentiableError: A derivative was asked for that does not exist, as the first columns
            depend on each other.

    >>> p, l, u = gt.linalg.lu(np.array([[0.0, 1.0], [2.0, 4.0]]))
    >>> u
    array([[2., 4.],
           [0., 1.]])
    """
    packed, pivots = _factor(matrix_stack("lu", a))
    lower, upper = _unit_lower(packed), _upper(packed)
    rows = packed.shape[-2]
    where_from = order_of_rows(pivots, rows=rows, inverse=True)
    if permute_l:
        return take_along_axis(lower, where_from[..., None], -2), upper
    if p_indices:
        return LUResult(where_from, lower, upper)
    permutation = one_hot(where_from, rows, dtype=real_dtype(packed.dtype))
    return LUResult(permutation, lower, upper)
