"""The LDL decomposition of Hermitian and symmetric matrices. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.ops.arrays.sort import argsort
from gradtape.ops.cast import stop_gradient
from gradtape.ops.diagonal import diagonal, tril, triu
from gradtape.ops.gather import take_along_axis
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import (
    MATRIX,
    adjoint,
    real_dtype,
    reordered,
    square,
)
from gradtape.ops.linalg.gauge import largest, on_diagonal, rounding
from gradtape.ops.linalg.hermitian import mirrored
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.stacks import over_stack
from gradtape.ops.linalg.triangular import triangular
from gradtape.ops.norm import inexact
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

SINGULAR = (
    "ldl: got a matrix with a pivot of 0 before the last one, expected a matrix that can be "
    "inverted for a derivative of the factors to exist; add a multiple of the identity"
)

# ---- the op -------------------------------------------------------------------------------------


def _forward(_xp: Any, x: Any, lower: bool, hermitian: bool) -> Any:
    def one(x: Any) -> tuple[Any, Any, Any]:
        permuted, d, order = scipy_linalg().ldl(x, lower=lower, hermitian=hermitian)
        return permuted[order], d, order

    return over_stack(one, x)


def _turned(x: Any, hermitian: bool) -> Any:
    return adjoint(x) if hermitian else x.mT


def _by_factor(factor: Any, x: Any, lower: bool) -> Any:
    """L⁻¹·X."""
    return triangular(factor, x, lower=lower, unit_diagonal=True)


def _beside(d: Any) -> Any:
    """Which elements beside the diagonal belong to a block of D with two rows."""
    return (abs(stop_gradient(d)) > 0) & ~np.eye(d.shape[-1], dtype=bool)


def _outside(x: Any, d: Any, lower: bool) -> Any:
    """The strict triangle without the blocks."""
    return where(_beside(d), 0.0, tril(x, -1) if lower else triu(x, 1))


def _inside(x: Any, d: Any) -> Any:
    """The blocks alone."""
    return where(_beside(d) | np.eye(d.shape[-1], dtype=bool), x, 0.0)


def _inverse(d: Any, factor: Any, x: Any, lower: bool) -> Any:
    """D⁻¹, block by block, required to be regular, except a last single row, never a divisor.

    [[p, r], [s, q]] has the inverse [[q, −r], [−s, p]]/(p·q − r·s), and p alone 1/p. If A changes
    by E, then D does by the blocks of L⁻¹·E·L⁻ᴴ: rounding of A becomes that much in a pivot.
    """
    if not d.shape[-1]:
        return d
    beside = _beside(d)
    paired = sum_of(beside, -1) > 0
    pivot, across = diagonal(d, 0, -2, -1), where(beside, d, 0.0)
    other = where(paired, sum_of(where(beside, pivot[..., None, :], 0.0), -1), 1.0)
    determinant = pivot * other - sum_of(across * across.mT, -1)
    # A block of two rows that is rounding was made by it, and another matrix nearby has none there:
    # it is required to be regular also where it is the last.
    bound = _rounding_of_pivots(factor, x, lower) * where(paired, largest(across, -1)[..., 0], 1.0)
    regular = abs(stop_gradient(determinant)) > bound
    last = np.arange(d.shape[-1]) == (d.shape[-1] - 1 if lower else 0)
    last = last & (paired ^ True)
    one = require(
        np.ones((), real_dtype(d.dtype)),
        all_of(regular | last, -1, keepdims=True)[..., None],
        SINGULAR,
    )
    determinant = where(regular, determinant, 1.0)
    return (on_diagonal(other / determinant) - across / determinant[..., :, None]) * one


def _rounding_of_pivots(factor: Any, x: Any, lower: bool) -> Any:
    """How much of each pivot may be rounding of the matrix."""
    size = factor.shape[-1]
    identity = np.eye(size, dtype=factor.dtype) + 0.0 * stop_gradient(factor)
    rows = sum_of(abs(_by_factor(stop_gradient(factor), identity, lower)), -1)
    return rounding(size, factor.dtype) * largest(x, MATRIX)[..., 0] * rows**2


def _vjp(ct: Any, out: Any, x: Any, lower: bool, hermitian: bool) -> Any:
    (by_factor, by_d, _), (factor, d, order) = ct, out
    back, params = adjoint(factor), {"lower": not lower, "unit_diagonal": True}
    inner = (back @ by_factor) @ adjoint(_inverse(d, factor, x, lower))
    half = triangular(back, _outside(inner, d, lower) + _inside(by_d, d), **params)
    whole = _turned(triangular(back, _turned(half, hermitian), **params), hermitian)
    return reordered(whole, argsort(order, axis=-1))


def _jvp(tangents: Sequence[Any], out: Any, x: Any, lower: bool, hermitian: bool) -> Any:
    factor, d, order = out
    half = _by_factor(factor, reordered(tangents[0], order), lower)
    moved = _turned(_by_factor(factor, _turned(half, hermitian), lower), hermitian)
    change = factor @ (_outside(moved, d, lower) @ _inverse(d, factor, x, lower))
    return change, _inside(moved, d), None


def _infer(x: Aval, lower: bool, hermitian: bool) -> tuple[Aval, Aval, Aval]:
    return x, x, Aval(x.shape[:-1], np.dtype(np.int64))


# P·A·Pᵀ = L·D·Lᴴ with blocks of one row or two in D, M = L⁻¹·P·dA·Pᵀ·L⁻ᴴ: dD is the blocks of M,
# dL = L·N·D⁻¹ with the triangle N of M outside of them; symmetric matrices have Lᵀ in place of Lᴴ
_ldl = general(
    "ldl",
    _forward,
    infer=_infer,
    vjps=(_vjp,),
    jvp=_jvp,
    outputs=3,
)

# ---- public -------------------------------------------------------------------------------------


class LDLResult(NamedTuple):
    """A triangular matrix with its rows reordered, a matrix of blocks on the diagonal, the order.

    >>> lu, d, perm = gt.linalg.ldl(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> lu @ d @ lu.T
    array([[2., 1.],
           [1., 3.]])
    """

    lu: Array
    d: Array
    perm: Array


@in_float32
def ldl(A: ArrayLike, lower: bool = True, hermitian: bool = True) -> LDLResult:
    """LDL decomposition `lu @ d @ lu.conj().T` of a Hermitian matrix, or of each in a stack.

    Which rows are swapped, and which blocks of `d` have two rows, is piecewise constant, and has no
    derivative.

    Args:
        A: The matrix; only one triangle is read, and the derivative is that with respect to a
            matrix that stays Hermitian, or symmetric.
        lower: Whether to read the lower triangle, and to give a lower factor, else the upper ones.
        hermitian: Whether complex matrices are Hermitian; if not they are symmetric, and
            `lu @ d @ lu.T`.

    Returns:
        A named tuple: `lu`, the factor with its rows reordered such that `lu[perm]` is triangular
        with ones on its diagonal; `d`, with blocks of one row or two on its diagonal; and `perm`.

    Raises:
        LinAlgError: A matrix is not square.
        NotDifferentiableError: A derivative was asked for that does not exist, as a pivot before
            the last one is 0.

    >>> lu, d, perm = gt.linalg.ldl(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> d
    array([[2. , 0. ],
           [0. , 2.5]])
    """
    a = mirrored(square("ldl", inexact(A)), lower=bool(lower), conjugate=bool(hermitian))
    factor, d, order = _ldl(a, lower=bool(lower), hermitian=bool(hermitian))
    back = argsort(order, axis=-1)
    return LDLResult(take_along_axis(factor, back[..., :, None], -2), d, order)
