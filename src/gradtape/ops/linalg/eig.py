"""Eigenvalues and eigenvectors of any square matrices. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.ops.cast import conj, imag, stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.diagonal import diagonal
from gradtape.ops.exponential import sqrt
from gradtape.ops.linalg.checks import Test, once, require, verified
from gradtape.ops.linalg.common import adjoint, failed, inverse, square
from gradtape.ops.linalg.gauge import (
    alone,
    by_vectors,
    depends,
    depends_on_phases,
    differences,
    equal_weights,
    largest,
    negligible,
    on_diagonal,
    shared,
    treated_differently,
    unmoved,
    vanishes,
)
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.solve import inv, solve_stack
from gradtape.ops.linalg.stacks import matrices
from gradtape.ops.norm import inexact, vector_norm
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import divide_or_zero, where
from gradtape.ops.shape import squeeze
from gradtape.typing import Array, ArrayLike

_REMEDY = "use eigh for Hermitian matrices, or functions of the matrix such as expm and trace"
DEFECTIVE = (
    "eig: got a matrix without a basis of eigenvectors, up to rounding, expected one, as "
    f"eigenvalues have infinite slopes there; {_REMEDY}"
)
BASIS = depends("eig", "which eigenvectors were chosen for repeated eigenvalues", _REMEDY)
PHASE = depends_on_phases("eig", "eigenvectors", "v @ diag(w) @ inv(v)")
VALUES = treated_differently("eig", "eigenvalues", "sum or mean")


def complex_of(dtype: Any) -> np.dtype[Any]:
    """The complex dtype that goes with the one LAPACK computes in."""
    return np.result_type(np.linalg.eigvals(np.ones((1, 1), dtype)).dtype, np.complex64)


def equal_pairs(w: Any, uncertain: Any = 1.0) -> Any:
    """For each pair of complex values, whether they differ only by rounding.

    Args:
        w: The values.
        uncertain: How far each may have moved per unit of rounding of the largest one.
    """
    w = stop_gradient(w)
    bound = negligible(abs(w), w.shape[-1]) * uncertain
    gaps = abs(w[..., :, None] - w[..., None, :])
    return (gaps <= bound[..., :, None]) | (gaps <= bound[..., None, :])


def uncertainty(w: Any, dual: Any, x: Any) -> Any:
    """How much eigenvalues move if the matrix changes by one unit of their largest one.

    A change E of the matrix moves an eigenvalue by y·E·v, with v its eigenvector of length 1 and y
    its row of the dual basis. Rounding that is small next to the matrix is
    therefore much larger for eigenvalues whose y is long.

    Args:
        w: The eigenvalues.
        dual: The dual basis, V⁻¹.
        x: The matrix.
    """
    columns = _length(x, -2)
    size = where(columns > abs(stop_gradient(w)), columns, abs(stop_gradient(w)))
    return divide_or_zero(largest(size, -1), largest(w, -1)) * _length(dual, -1)


def _length(x: Any, axis: int) -> Any:
    """The lengths of vectors along an axis, without history; at most the largest number."""
    unit = largest(x, axis)
    return squeeze(unit, axis) * sqrt(
        sum_of(abs(divide_or_zero(stop_gradient(x), unit)) ** 2, axis)
    )


def _spread(w: Any, same: Any) -> Any:
    """How far eigenvalues are from the mean of those equal to them, relative to the largest."""
    w = stop_gradient(w)
    return divide_or_zero(abs(w - shared(w, same)), largest(w, -1))


# ---- the dual basis -----------------------------------------------------------------------------


def _dual_forward(xp: Any, v: Any) -> Any:
    """V⁻¹, and NaN where half of the digits or more would be lost."""
    size = v.shape[-1]
    if not size:
        return v
    values = xp.linalg.svd(v, compute_uv=False)
    bad = ~(values[..., -1] > xp.finfo(values.dtype).eps ** 0.5 * values[..., 0])
    safe = xp.where(bad[..., None, None], xp.eye(size, dtype=v.dtype), v)
    return xp.where(bad[..., None, None], xp.nan, xp.linalg.inv(safe)).astype(v.dtype)


_dual = inverse("dual_basis", _dual_forward)


def dual_basis(v: Any) -> Any:
    """V⁻¹, required to exist."""
    out = _dual(v)
    return require(out, isfinite(out), DEFECTIVE)


# ---- decomposition ------------------------------------------------------------------------------


def _diagonal_if_scalar(xp: Any, x: Any) -> Any:
    """A multiple of the identity without rounding errors off its diagonal; others unchanged.

    Any vectors are eigenvectors of it up to rounding, and LAPACK may find some that depend on each
    other.
    """
    unit = xp.eye(x.shape[-1], dtype=x.dtype)
    with np.errstate(all="ignore"):
        factor = xp.trace(x, axis1=-2, axis2=-1)[..., None, None] / max(x.shape[-1], 1)
        scalar = (abs(x - factor * unit) <= xp.finfo(x.dtype).eps * abs(factor)).all((-2, -1))
    return xp.where(scalar[..., None, None] & (unit == 0), 0, x)


def _eig_forward(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eig(_diagonal_if_scalar(xp, x))
    dtype = complex_of(x.dtype)
    return w.astype(dtype), v.astype(dtype)


def _eig_vjp(ct: Any, out: Any, x: Any) -> Any:
    (by_w, by_v), (w, v) = ct, out
    dual = dual_basis(v)
    same = equal_pairs(w, uncertainty(w, dual, x))
    inner = adjoint(v) @ by_v
    along = diagonal(inner, 0, -2, -1)[..., None, :]
    # Lengths are fixed, so changes of them have no effect.
    across = by_v - v * along
    values = by_vectors(by_w, w)
    weights = equal_weights(by_w, same, VALUES, w, inner, spread=_spread(w, same))
    fixed = vanishes(imag(along), inner, by_v, values)[..., 0, :]
    weights = require(weights, fixed, PHASE)
    weights = require(
        weights, alone(same) | vanishes(largest(by_v, -2), by_v, values)[..., 0, :], BASIS
    )
    middle = where(same, 0.0, (adjoint(v) @ across) / conj(differences(w, same)))
    return adjoint(dual) @ (middle + on_diagonal(weights)) @ adjoint(v)


def _eig_jvp(tangents: Sequence[Any], out: Any, x: Any) -> Any:
    w, v = out
    dual = dual_basis(v)
    same = equal_pairs(w, uncertainty(w, dual, x))
    moved = dual @ tangents[0] @ v
    mean, apart = shared(diagonal(moved, 0, -2, -1), same), alone(same)
    kept = unmoved(moved, mean, tangents[0], apart, BASIS)
    dw = mean + diagonal(kept, 0, -2, -1)
    dv = v @ (where(same, 0.0, moved / differences(w, same)) + kept)
    dv = dv - v * sum_of(conj(v) * dv, -2, keepdims=True)
    return once(dw, apart, BASIS), once(dv, apart[..., None, :], BASIS)


def _infer_eig(x: Aval) -> tuple[Aval, Aval]:
    dtype = complex_of(x.dtype)
    return Aval(x.shape[:-1], dtype), Aval(x.shape, dtype)


# A·V = V·diag(w), N = V⁻¹·dA·V: dw = diag N, dV = V·(N∘1/(wⱼ − wᵢ)) less its part along V
_eig = general(
    "eig",
    _eig_forward,
    infer=_infer_eig,
    vjps=(_eig_vjp,),
    jvp=_eig_jvp,
    outputs=2,
)


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in the columns of a matrix.

    >>> gt.linalg.eig(np.diag([3.0, 1.0])).eigenvalues
    array([3.+0.j, 1.+0.j])
    """

    eigenvalues: Array
    eigenvectors: Array


@in_float32
def eig(
    a: ArrayLike,
    b: ArrayLike | None = None,
    left: bool = False,
    right: bool = True,
) -> EigResult | tuple[Array, ...] | Array:
    """Eigenvalues and eigenvectors of a square matrix, or of each in a stack.

    Results are complex, even where they happen to be real numbers. The phases of eigenvectors are
    free, and gradients of functions that depend on them are refused.

    Args:
        a: The matrix.
        b: For the generalised problem `a @ v = w * b @ v`, a matrix that can be inverted.
        left: Whether to return left eigenvectors: `vl.conj().T @ a = diag(w) @ vl.conj().T @ b`.
        right: Whether to return right eigenvectors.

    Returns:
        A named tuple: `eigenvalues`, in no particular order, and `eigenvectors`, in columns of
        length 1. With `left`, a tuple of the eigenvalues, left eigenvectors and, if wanted, right
        ones; the eigenvalues alone if neither are wanted.

    Raises:
        LinAlgError: A matrix is not square; `b` is singular; left eigenvectors are asked for where
            there is no basis of right ones; or LAPACK did not converge.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> w, v = gt.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> w
    array([0.+1.j, 0.-1.j])
    """
    a, b = _reduced("eig", a, b)
    if not left:
        return EigResult(*_eig(a)) if right else _eigvals(a)
    w, v = _eig(a)
    # V⁻¹·B⁻¹·A = diag(w)·V⁻¹: the rows of V⁻¹·B⁻¹ are left eigenvectors.
    dual = adjoint(inv(verified(v, _independent)))
    dual = dual if b is None else solve_stack(adjoint(b), dual)
    lefts = dual / vector_norm(dual, axis=-2, keepdims=True)
    return (w, lefts, v) if right else (w, lefts)


def independent(name: str, remedy: str) -> Test:
    """A test that eigenvectors leave more than half of the digits computed from them right."""

    def test(xp: Any, v: Any) -> None:
        if v.size and (xp.linalg.cond(v) > xp.finfo(v.dtype).eps ** -0.5).any():
            raise failed(name, (v,), "eigenvectors depend on each other", remedy)

    return test


_independent = independent("eig", "expected a basis of them for left ones; use eig(a.conj().T)")


def _reduced(name: str, a: ArrayLike, b: ArrayLike | None) -> tuple[Any, Any]:
    """A, or B⁻¹·A, which has the eigenvalues and right eigenvectors of A·v = w·B·v; and B."""
    if b is None:
        return square(name, inexact(a)), None
    a, b = matrices(name, a, b)
    return solve_stack(b, a), b


# ---- eigenvalues alone --------------------------------------------------------------------------


def _eigvals_vjp(ct: Any, _out: Any, x: Any) -> Any:
    w, v = _eig(x)
    dual = dual_basis(v)
    same = equal_pairs(w, uncertainty(w, dual, x))
    weights = equal_weights(ct, same, VALUES, w, spread=_spread(w, same))
    return adjoint(dual) @ (weights[..., :, None] * adjoint(v))


def _eigvals_jvp(tangents: Sequence[Any], _out: Any, x: Any) -> Any:
    w, v = _eig(x)
    moved = dual_basis(v) @ tangents[0] @ v
    # Values that are equal only because they are uncertain keep their own changes: nearby there may
    # be no basis of eigenvectors, and then symmetric functions see more than the shared change.
    same = equal_pairs(w)
    return once(shared(diagonal(moved, 0, -2, -1), same), alone(same), VALUES)


# dw = diag(V⁻¹·dA·V); equal values share the change, as those of eigvalsh
_eigvals = general(
    "eigvals",
    lambda xp, x: xp.linalg.eigvals(x).astype(complex_of(x.dtype)),
    infer=lambda x: _infer_eig(x)[0],
    vjps=(_eigvals_vjp,),
    jvp=_eigvals_jvp,
)


@in_float32
def eigvals(a: ArrayLike, b: ArrayLike | None = None) -> Array:
    """Eigenvalues of a square matrix, or of each in a stack, as complex numbers.

    Args:
        a: The matrix.
        b: For the generalised problem `a @ v = w * b @ v`, a matrix that can be inverted.

    Raises:
        LinAlgError: A matrix is not square; `b` is singular; or LAPACK did not converge.
        NotDifferentiableError: A derivative was asked for that does not exist: of a single one of
            repeated eigenvalues, or of a matrix without a basis of eigenvectors.

    >>> gt.linalg.eigvals(np.array([[2.0, 1.0], [0.0, 3.0]]))
    array([2.+0.j, 3.+0.j])
    """
    return _eigvals(_reduced("eigvals", a, b)[0])
