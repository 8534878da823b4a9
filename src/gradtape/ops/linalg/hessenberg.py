"""The Hessenberg form of square matrices. Xᴴ is the conjugate transpose.

A = Q·H·Qᴴ, where H has nothing below its first subdiagonal, and Q leaves the first axis alone; of a
complex matrix the subdiagonal is real. If A changes by Q·M·Qᴴ, then Q changes by Q·Ω with a skew Ω
whose first column is 0, such that M + H·Ω − Ω·H keeps the form. Finding Ω from M is a linear map,
and an op of its own; so is its transpose. How these two change with H follows from the same
equation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.define import general
from gradtape.ops.cast import copy, stop_gradient
from gradtape.ops.diagonal import diagonal, triu
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import MATRIX, adjoint, square
from gradtape.ops.linalg.gauge import largest, rounding
from gradtape.ops.linalg.implicit import transposed_pair
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.stacks import over_stack
from gradtape.ops.norm import inexact
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

DECOUPLED = (
    "hessenberg: got a matrix whose form has a 0 on its subdiagonal, expected other numbers there, "
    "as it is not unique otherwise and has no derivative; use schur or eigvals"
)

# The angle by which rounding may turn the basis.
FAR = 1 / 64

# ---- how the basis turns, and the transpose of that ---------------------------------------------


def _turning_one(h: Any, m: Any) -> Any:
    """Ω from M, column by column: that of Ω·H − H·Ω − M has to vanish below the subdiagonal."""
    size = len(h)
    out = np.zeros_like(h)
    for j in range(size - 1):
        rest = m[:, j] + h @ out[:, j] - out[:, : j + 1] @ h[: j + 1, j]
        column = _free(rest, j + 1) / _pivot(h, j)
        out[j + 1, j + 1 :] = -column[j + 1 :].conj()
        out[j + 1 :, j + 1] = column[j + 1 :]
    return out


def _pull_one(h: Any, ct: Any) -> Any:
    """The same steps transposed, from the last column to the first."""
    size = len(h)
    out, left = np.zeros_like(h), ct.astype(h.dtype)
    for j in reversed(range(size - 1)):
        # An element below the diagonal stands above it as well, with the opposite sign.
        both = left[:, j + 1] - left[j + 1].conj()
        both[j + 1] = left[j + 1, j + 1]
        column = _free(both, j + 1) / _pivot(h, j)
        out[:, j] = column
        left[:, j] += h.conj().T @ column
        left[:, : j + 1] -= np.outer(column, h[: j + 1, j].conj())
    return out


def _free(column: Any, row: int) -> Any:
    """The part of a column that a rotation acts on: the elements below a row, and its phase."""
    out = column.copy()
    out[: row + 1] = 0
    if column.dtype.kind == "c":
        out[row] = 1j * column[row].imag
    return out


def _pivot(h: Any, j: int) -> Any:
    """An element of the subdiagonal; the last one of a real matrix is not divided by."""
    return h[j + 1, j].real if h[j + 1, j] != 0 else 1.0


def _commutator(x: Any, y: Any) -> Any:
    return x @ y - y @ x


# Ω with M + H·Ω − Ω·H of the form, linear in M: dΩ is that of dM + dH·Ω − Ω·dH; its transpose G
# of C changes by that of dC + dHᴴ·G − G·dHᴴ
_turning, _pull = transposed_pair(
    ("hessenberg_turning", _turning_one),
    ("hessenberg_pull", _pull_one),
    moved=lambda turning, dh: _commutator(dh, turning),
    moved_back=lambda g, dh: _commutator(adjoint(dh), g),
    by_matrix=_commutator,
)

# ---- decomposition ------------------------------------------------------------------------------


def _forward(_xp: Any, x: Any) -> Any:
    return over_stack(functools.partial(scipy_linalg().hessenberg, calc_q=True), x)


def _coupled(h: Any) -> Any:
    """H, required to have no 0 on the subdiagonal; a last one may be 0 if it has no phase.

    Rounding in one element is divided by it and enters the next, so an element that should be 0 may
    be much larger than rounding. The test is how far a change of the matrix by rounding, in a
    direction with nothing special about it, would turn the basis: it must not be far.
    """
    below = abs(stop_gradient(diagonal(h, -1, -2, -1)))
    unit = rounding(h.shape[-1], h.dtype)
    fine = below > unit * largest(h, MATRIX)[..., 0]
    if h.dtype.kind != "c":
        fine = fine[..., :-1]
    size = stop_gradient(largest(h, MATRIX))
    direction = np.random.default_rng(0).normal(size=h.shape[-2:]).astype(h.dtype)
    turned = unit * largest(_turning(stop_gradient(h), size * direction), MATRIX)
    fine = all_of(fine, -1, keepdims=True)[..., None] & ((turned > FAR) ^ True)
    return require(h, fine, DECOUPLED)


def _vjp(ct: Any, out: Any, _x: Any) -> Any:
    (by_h, by_q), (h, q) = ct, out
    h, by_h = _coupled(h), triu(by_h, -1)
    whole = adjoint(q) @ by_q + _commutator(adjoint(h), by_h)
    return q @ (by_h + _pull(h, whole)) @ adjoint(q)


def _jvp(tangents: Sequence[Any], out: Any, _x: Any) -> Any:
    h, q = out
    h = _coupled(h)
    moved = adjoint(q) @ tangents[0] @ q
    turning = _turning(h, moved)
    return triu(moved + _commutator(h, turning), -1), q @ turning


# A = Q·H·Qᴴ, M = Qᴴ·dA·Q, Ω = Ω(H, M): dQ = Q·Ω, dH = M + H·Ω − Ω·H
_hessenberg = general(
    "hessenberg",
    _forward,
    infer=lambda x: (x, x),
    vjps=(_vjp,),
    jvp=_jvp,
    outputs=2,
)


class HessenbergResult(NamedTuple):
    """A matrix with zeros below its first subdiagonal, and a unitary one.

    >>> h, q = gt.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]), calc_q=True)
    >>> h
    array([[1., 2.],
           [3., 4.]])
    """

    H: Array
    Q: Array


@in_float32
def hessenberg(a: ArrayLike, calc_q: bool = False) -> HessenbergResult | Array:
    """Hessenberg form `q @ h @ q.conj().T` of a square matrix, or of each in a stack.

    Args:
        a: The matrix.
        calc_q: Whether to return `q` as well.

    Returns:
        `h`, with zeros below its first subdiagonal; or a named tuple of `H` and `Q`, unitary.

    Raises:
        LinAlgError: A matrix is not square.
        NotDifferentiableError: A derivative was asked for that does not exist, as the subdiagonal
            has a 0.

    >>> gt.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    a = square("hessenberg", inexact(a))
    if a.shape[-1] > 2:
        result = HessenbergResult(*_hessenberg(a))
    else:
        # Already of that form; 0·a keeps the identity on the tape of a, with a derivative of 0.
        result = HessenbergResult(copy(a), np.eye(a.shape[-1], dtype=a.dtype) + 0 * a)
    return result if calc_q else result.H
