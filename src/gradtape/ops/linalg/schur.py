"""The Schur decomposition. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.define import general
from gradtape.ops.cast import astype, conj, stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import isfinite
from gradtape.ops.diagonal import diagonal, tril, triu
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import MATRIX, adjoint, square
from gradtape.ops.linalg.eig import complex_of, equal_pairs, uncertainty
from gradtape.ops.linalg.gauge import depends_on_phases, differences, skew, vanishes
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.stacks import over_stack
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.norm import inexact, vector_norm
from gradtape.ops.select import where
from gradtape.ops.which import all as all_of, any as any_of
from gradtape.typing import Array, ArrayLike

REPEATED = (
    "schur: got a matrix with repeated eigenvalues, or a real one with output='real' that has "
    "complex eigenvalues, expected different eigenvalues, and a triangular result, for a "
    "derivative to exist; use output='complex' for the second, functions such as expm for the first"
)
PHASE = depends_on_phases("schur", "the columns of z", "z @ t @ z.conj().T")

# ---- eigenvectors of triangular matrices --------------------------------------------------------


def _vectors_forward(xp: Any, t: Any) -> Any:
    """Column j solves (T − tⱼⱼ)·x = 0 with a 1 in row j and zeros below; NaN where it cannot."""
    size = t.shape[-1]
    out = np.zeros(t.shape, t.dtype)
    out[..., np.arange(size), np.arange(size)] = 1
    for j in range(1, size):
        for i in range(j - 1, -1, -1):
            rest = t[..., i, j] + (t[..., i, i + 1 : j] * out[..., i + 1 : j, j]).sum(axis=-1)
            pivot = t[..., i, i] - t[..., j, j]
            out[..., i, j] = -rest / np.where(pivot == 0, np.nan, pivot)
    return xp.asarray(out)


def _shares(t: Any) -> tuple[Any, Any]:
    """Which eigenvalues are equal, and their differences."""
    values = diagonal(t, 0, -2, -1)
    same = equal_pairs(values)
    return same, differences(values, same)


def _between(r: Any, x: Any) -> Any:
    """R⁻¹·X·R of a unit upper triangular R."""
    return solve_triangular(r, x @ r, lower=False, unit_diagonal=True)


def _between_adjoint(r: Any, x: Any) -> Any:
    """R⁻ᴴ·X·Rᴴ, the adjoint of that."""
    return solve_triangular(adjoint(r), x @ adjoint(r), lower=True, unit_diagonal=True)


def _vectors_vjp(ct: Any, out: Any, t: Any) -> Any:
    same, gaps = _shares(t)
    inner = where(same, 0.0, triu(adjoint(out) @ ct, 1) / conj(gaps))
    return triu(_between_adjoint(out, inner))


def _vectors_jvp(tangents: Sequence[Any], out: Any, t: Any) -> Any:
    same, gaps = _shares(t)
    return out @ where(same, 0.0, triu(_between(out, triu(tangents[0])) / gaps, 1))


# T·R = R·diag(t) with ones on the diagonal of R: dR = R·(strictly upper R⁻¹·dT·R∘1/(tⱼ − tᵢ))
_vectors = general(
    "triangular_eigenvectors",
    _vectors_forward,
    vjps=(_vectors_vjp,),
    jvp=_vectors_jvp,
)

# ---- decomposition ------------------------------------------------------------------------------


def _forward(_xp: Any, x: Any) -> Any:
    return over_stack(_one, x) if x.size else (x.copy(), x.copy())


def _one(x: Any) -> Any:
    return scipy_linalg().schur(x, output="complex" if x.dtype.kind == "c" else "real")


def _basis(t: Any) -> tuple[Any, Any, Any]:
    """Eigenvectors of T, required to exist; differences of its eigenvalues, and which are equal."""
    same, gaps = _shares(t)
    repeated = same ^ np.eye(t.shape[-1], dtype=bool)
    fine = all_of((repeated ^ True) & (tril(t, -1) == 0), MATRIX, keepdims=True)
    safe = where(fine, t, np.diag(np.arange(t.shape[-1])).astype(t.dtype))
    vectors = _vectors(safe)
    fine = fine & (_doubtful(safe, stop_gradient(vectors)) ^ True)
    return require(vectors, fine & isfinite(vectors), REPEATED), gaps, same


def _doubtful(t: Any, vectors: Any) -> Any:
    """Whether two eigenvalues differ by less than rounding of the matrix may have moved them."""
    identity = np.eye(t.shape[-1], dtype=t.dtype) + 0.0 * vectors
    dual = solve_triangular(vectors, identity, lower=False, unit_diagonal=True)
    dual = dual * vector_norm(vectors, axis=-2)[..., :, None]
    values = diagonal(t, 0, -2, -1)
    same = equal_pairs(values, uncertainty(values, dual, t))
    return any_of(same ^ np.eye(t.shape[-1], dtype=bool), MATRIX, keepdims=True)


def _vjp(ct: Any, out: Any, _x: Any) -> Any:
    (by_t, by_z), (t, z) = ct, out
    by_t = triu(by_t)
    r, gaps, same = _basis(t)
    whole = adjoint(z) @ by_z + adjoint(t) @ by_t - by_t @ adjoint(t)
    turning = skew(whole)
    if t.dtype.kind == "c":
        still = vanishes(diagonal(turning, 0, -2, -1)[..., None, :], whole)
        turning = require(turning, all_of(still, MATRIX, keepdims=True), PHASE)
    inner = adjoint(r) @ tril(2.0 * turning, -1)
    inner = adjoint(solve_triangular(r, adjoint(inner), lower=False, unit_diagonal=True))
    inner = where(same, 0.0, inner / conj(gaps))
    return z @ (by_t + _between_adjoint(r, inner)) @ adjoint(z)


def _jvp(tangents: Sequence[Any], out: Any, _x: Any) -> Any:
    t, z = out
    r, gaps, same = _basis(t)
    moved = adjoint(z) @ tangents[0] @ z
    inner = r @ where(same, 0.0, _between(r, moved) / gaps)
    inner = adjoint(solve_triangular(adjoint(r), adjoint(inner), lower=True, unit_diagonal=True))
    strict = tril(inner, -1)
    turning = strict - adjoint(strict)
    return triu(moved - turning @ t + t @ turning), z @ turning


# A = Z·T·Zᴴ, T·R = R·diag(t), M = Zᴴ·dA·Z: Zᴴ·dZ = X − Xᴴ with X strictly lower, that part of
# R·(R⁻¹·M·R∘1/(tⱼ − tᵢ))·R⁻¹; dT = M − Zᴴ·dZ·T + T·Zᴴ·dZ
_schur = general(
    "schur",
    _forward,
    infer=lambda x: (x, x),
    vjps=(_vjp,),
    jvp=_jvp,
    outputs=2,
)


class SchurResult(NamedTuple):
    """An upper triangular matrix and a unitary one.

    >>> t, z = gt.linalg.schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    array([[1., 2.],
           [0., 3.]])
    """

    T: Array
    Z: Array


@in_float32
def schur(a: ArrayLike, output: str = "real") -> SchurResult:
    """Schur decomposition `z @ t @ z.conj().T` of a square matrix, or of each in a stack.

    Args:
        a: The matrix.
        output: "real" leaves a real matrix real: `t` then has blocks of size 2 for pairs of complex
            eigenvalues, where there is no derivative. "complex" gives triangular matrices.

    Returns:
        A named tuple: `T`, upper triangular with the eigenvalues on its diagonal, and `Z`, unitary.

    Raises:
        LinAlgError: A matrix is not square.
        ArgumentError: There is no such output.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> t, z = gt.linalg.schur(np.array([[0.0, 1.0], [-1.0, 0.0]]), output="complex")
    >>> np.round(np.diagonal(t), 12)
    array([0.+1.j, 0.-1.j])
    """
    check_choice("schur", ("real", "complex", "r", "c"), output=output)
    a = square("schur", inexact(a))
    if output[0] == "c":
        a = astype(a, complex_of(a.dtype), copy=False)
    return SchurResult(*_schur(a))
