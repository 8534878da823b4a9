"""The polar decomposition. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import isfinite
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import MATRIX, adjoint
from gradtape.ops.linalg.gauge import outside, rounding, skew
from gradtape.ops.linalg.hermitian import symmetric_part
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.reduce import sum as sum_of
from gradtape.typing import Array, ArrayLike

SINGULAR = (
    "polar: got a matrix that has not full rank, expected singular values above 0, as the unitary "
    "factor jumps there and has no derivative; add a small multiple of a matrix of full rank"
)

# ---- equations with a Hermitian matrix on both sides --------------------------------------------


def _balanced_forward(xp: Any, p: Any, c: Any) -> Any:
    w, v = xp.linalg.eigh(p)
    scale = rounding(w.shape[-1], w.dtype) * xp.abs(w).max(axis=-1, initial=0)
    sums = w[..., :, None] + w[..., None, :]
    sums = xp.where(sums > 2 * scale[..., None, None], sums, xp.nan)
    return v @ ((v.conj().mT @ c @ v) / sums) @ v.conj().mT


def _balanced_vjp(wanted: tuple[bool, bool], ct: Any, out: Any, p: Any, _c: Any) -> Any:
    back = balanced(p, ct)
    other = adjoint(out)
    return -symmetric_part(back @ other + other @ back) if wanted[0] else None, back


def _balanced_jvp(tangents: Sequence[Any], out: Any, p: Any, _c: Any) -> Any:
    dp, dc = tangents
    dp = None if dp is None else symmetric_part(dp)
    return balanced(p, added(dc, None if dp is None else -(dp @ out + out @ dp)))


# P·X + X·P = C with P Hermitian and positive definite, else NaN: P·dX + dX·P = dC − dP·X − X·dP
balanced = general(
    "balanced_sylvester",
    _balanced_forward,
    infer=lambda p, c: Aval(c.shape, np.result_type(p.dtype, c.dtype)),
    vjp_all=_balanced_vjp,
    jvp=_balanced_jvp,
)


# ---- the unitary factor -------------------------------------------------------------------------


def _unitary_forward(xp: Any, x: Any) -> Any:
    u, _, vh = xp.linalg.svd(x, full_matrices=False)
    return u @ vh


def _divided(x: Any, p: Any) -> Any:
    """X·P⁻¹ of a Hermitian P: X·Y + X·Y with P·Y + Y·P = 1."""
    return 2.0 * (x @ balanced(p, np.eye(p.shape[-1], dtype=p.dtype) + 0.0 * p))


def _unitary_vjp(ct: Any, out: Any, x: Any) -> Any:
    p = symmetric_part(adjoint(out) @ x)
    back = 2.0 * (out @ balanced(p, skew(adjoint(out) @ ct)))
    if out.shape[-2] > out.shape[-1]:
        back = back + _divided(outside(ct, out), p)
    return require(back, isfinite(sum_of(back, MATRIX, keepdims=True)), SINGULAR)


# A = U·P with UᴴU = 1: Uᴴ·dU = X, skew, P·X + X·P = Uᴴ·dA − dAᴴ·U; out of its columns
# dU = dA·P⁻¹; a symmetric map
_unitary = general(
    "polar",
    _unitary_forward,
    vjps=(_unitary_vjp,),
    self_adjoint=True,
)


@in_float32
def polar(a: ArrayLike, side: str = "right") -> tuple[Array, Array]:
    """Polar decomposition `u @ p` of a matrix, or of each in a stack.

    Neither factor depends on a choice of singular vectors; they have derivatives of every order in
    both modes wherever the matrix has full rank.

    Args:
        a: The matrix.
        side: "right" for `u @ p`, "left" for `p @ u`.

    Returns:
        `u`, whose columns are orthonormal, or its rows if there are more columns than rows;
        and `p`, Hermitian and positive semidefinite.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: There is no such side.
        NotDifferentiableError: A derivative was asked for, and the matrix has not full rank.

    >>> u, p = gt.linalg.polar(np.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> p
    array([[3., 0.],
           [0., 2.]])
    """
    check_choice("polar", ("right", "left"), side=side)
    a = matrix_stack("polar", a)
    wide = a.shape[-2] < a.shape[-1]
    u = adjoint(_unitary(adjoint(a))) if wide else _unitary(a)
    product = adjoint(u) @ a if side == "right" else a @ adjoint(u)
    return u, symmetric_part(product)
