"""Eigenvalues and eigenvectors of Hermitian matrices. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Matrices
from gradtape.errors import ArgumentError
from gradtape.ops.checks import check_choice
from gradtape.ops.linalg import by_lapack, spectra_by_lapack
from gradtape.ops.linalg.checks import once, require
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.common import adjoint, real_dtype, square
from gradtape.ops.linalg.gauge import (
    alone,
    by_vectors,
    depends,
    depends_on_phases,
    diagonal_of,
    differences,
    equal_weights,
    groups,
    on_diagonal,
    settle,
    shared,
    skew,
    treated_differently,
    unmoved,
    vanishes,
)
from gradtape.ops.linalg.hermitian import mirrored, symmetric_part
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.norm import inexact
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike

_REMEDY = (
    "use functions that do not depend on it: gt.linalg.hermitian_function for those of the "
    "matrix, projections on whole spaces, eigvalsh and sums over equal eigenvalues"
)
BASIS = depends("eigh", "which eigenvectors were chosen for repeated eigenvalues", _REMEDY)
PHASE = depends_on_phases("eigh", "complex eigenvectors", "v @ v.conj().T")
VALUES = treated_differently("eigh", "eigenvalues")
SECOND = (
    "eigh: got repeated eigenvalues, and second derivatives, which they do not have by "
    "themselves, expected eigenvalues that differ; use gt.linalg.hermitian_function, of which a "
    "sum over eigenvalues is the trace"
)
SPLIT = (
    "eigh: got repeated eigenvalues, and in forward mode a direction in which they part, expected "
    "eigenvalues that differ, as their eigenvectors have no derivative; use "
    "gt.linalg.hermitian_function for functions of the matrix, eigvalsh for the eigenvalues alone, "
    "or reverse mode for a result that does not depend on the choice of eigenvectors"
)


# ---- decomposition ------------------------------------------------------------------------------


def _eigh_forward(xp: Any, x: Any, lower: bool) -> Any:
    w, v = xp.linalg.eigh(x, UPLO="L" if lower else "U")
    settle(xp, w, [v], x.shape[-1])
    return w, v


def _eigh_vjp(ct: Any, out: Any, _x: Any, lower: bool) -> Any:
    (by_w, by_v), (w, v) = ct, out
    same = groups(w, w.shape[-1])
    inner = adjoint(v) @ by_v
    turning = skew(inner)
    weights = on_diagonal(equal_weights(by_w, same, VALUES, w, inner))
    still = vanishes(turning, inner, by_vectors(by_w, w))
    inside = required_still(turning, still, same, BASIS, PHASE)
    return v @ (where(same, inside, turning / differences(w, same)) + weights) @ adjoint(v)


def required_still(turning: Any, still: Any, same: Any, basis: str, phase: str) -> Any:
    """Zeros, required to be the effect of rotating vectors of equal values: gauge invariance."""
    zeros = 0.0 * turning
    off_diagonal = ~np.eye(same.shape[-1], dtype=bool)
    free = same & off_diagonal ^ True
    inside = once(require(zeros, still | free, basis), free, basis)
    if turning.dtype.kind != "c":
        return inside
    return require(inside, still | off_diagonal, phase)


def _eigh_jvp(tangents: Sequence[Any], out: Any, _x: Any, lower: bool) -> Any:
    w, v = out
    same = groups(w, w.shape[-1])
    moved = adjoint(v) @ symmetric_part(tangents[0]) @ v
    mean, apart = shared(diagonal_of(moved), same), alone(same)
    kept = unmoved(moved, mean, tangents[0], apart, SPLIT)
    dv = v @ (where(same, 0.0, moved / differences(w, same)) + kept)
    return once(mean + diagonal_of(kept), apart, SECOND), once(dv, apart[..., None, :], SECOND)


def _infer_eigh(x: Aval, lower: bool) -> tuple[Aval, Aval]:
    dtype = np.linalg.eigh(np.ones((1, 1), x.dtype))[1].dtype
    return Aval(x.shape[:-1], real_dtype(dtype)), Aval(x.shape, dtype)


# A = V·diag(w)·Vᴴ, M = Vᴴ·dA·V: dw = diag M, dV = V·(M∘1/(wⱼ − wᵢ)); equal values share the change
decompose = general(
    "eigh",
    _eigh_forward,
    infer=_infer_eigh,
    vjps=(_eigh_vjp,),
    jvp=_eigh_jvp,
    outputs=2,
    lower=Matrices(library=spectra_by_lapack.eigh, takes=by_lapack.takes, hopeful=True),
)


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors in the columns of a matrix.

    >>> gt.linalg.eigh(np.diag([3.0, 1.0])).eigenvalues
    array([1., 3.])
    """

    eigenvalues: Array
    eigenvectors: Array


@in_float32
def eigh(
    a: ArrayLike,
    b: ArrayLike | str | None = None,
    *,
    UPLO: str = "L",
    lower: bool | None = None,
    eigvals_only: bool = False,
    type: int = 1,
    subset_by_index: tuple[int, int] | None = None,
) -> EighResult | Array:
    """Eigenvalues and eigenvectors of a Hermitian matrix, or of each in a stack.

    The eigenvectors of a repeated eigenvalue are a basis of their space like any other, and complex
    ones have free phases. Gradients of functions that depend on that choice are refused; others
    have their gradient even where eigenvalues are repeated.

    Args:
        a: The matrix; only one triangle is read, and the derivative is that with respect to a
            matrix that stays Hermitian.
        b: For the generalised problem `a @ v = w * b @ v`, a positive definite Hermitian matrix.
        UPLO: Which triangle is read: "L" or "U"; it may be given in place of `b`, as in NumPy.
        lower: The same in SciPy's terms: True for "L", False for "U".
        eigvals_only: Whether to return only the eigenvalues.
        type: Which generalised problem it is: 1 for the one above, 2 for `a @ b @ v = w * v`, 3 for
            `b @ a @ v = w * v`.
        subset_by_index: The numbers of the first and the last eigenvalue that are wanted.

    Returns:
        A named tuple: `eigenvalues`, in ascending order, and `eigenvectors`, in columns; with `b`
        these are such that `v.conj().T @ b @ v` is the identity, or `v.conj().T @ inv(b) @ v` if
        `type` is 3.

    Raises:
        LinAlgError: A matrix is not square; or `b` is not positive definite.
        ArgumentError: There is no such triangle, type or subset.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> w, v = gt.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    array([1., 3.])
    """
    if isinstance(b, str):
        UPLO, b = b, None
    UPLO = str(UPLO).upper()
    check_choice("eigh", ("L", "U"), UPLO=UPLO)
    reads_lower = UPLO == "L" if lower is None else bool(lower)
    a = square("eigh", inexact(a))
    chosen = _subset(subset_by_index, a.shape[-1])
    if b is None:
        if eigvals_only:
            return _eigvalsh(a, lower=reads_lower)[..., chosen]
        w, v = decompose(a, lower=reads_lower)
        return EighResult(w[..., chosen], v[..., chosen])
    b = mirrored(square("eigh", inexact(b)), lower=reads_lower, conjugate=True)
    reduced, back = _reduced(mirrored(a, lower=reads_lower, conjugate=True), cholesky(b), type)
    if eigvals_only:
        return _eigvalsh(reduced, lower=True)[..., chosen]
    w, v = decompose(reduced, lower=True)
    return EighResult(w[..., chosen], back(v[..., chosen]))


def _reduced(a: Any, factor: Any, type: int) -> tuple[Any, Callable[[Any], Any]]:
    """The problem without B = L·Lᴴ, and a function that maps its eigenvectors to the original's.

    A·v = w·B·v has L⁻¹·A·L⁻ᴴ and v = L⁻ᴴ·y; A·B·v = w·v has Lᴴ·A·L and the same, B·A·v = w·v has
    v = L·y.
    """
    check_choice("eigh", (1, 2, 3), type=type)
    if type == 3:
        return adjoint(factor) @ a @ factor, lambda y: factor @ y

    def back(y: Any) -> Any:
        return solve_triangular(adjoint(factor), y, lower=False)

    if type == 2:
        return adjoint(factor) @ a @ factor, back
    half = solve_triangular(factor, a, lower=True)
    return solve_triangular(factor, adjoint(half), lower=True), back


def _subset(numbers: tuple[int, int] | None, size: int) -> slice:
    """The eigenvalues from one number to another, both of them included."""
    if numbers is None:
        return slice(None)
    first, last = numbers
    if not 0 <= first <= last < size:
        raise ArgumentError(
            f"eigh: got the numbers {first} to {last} of {size} eigenvalues, expected the first "
            f"and the last one, from 0 to {size - 1}"
        )
    return slice(first, last + 1)


# ---- eigenvalues alone --------------------------------------------------------------------------


def _eigvalsh_forward(xp: Any, x: Any, lower: bool) -> Any:
    w = xp.linalg.eigvalsh(x, UPLO="L" if lower else "U")
    settle(xp, w, [], x.shape[-1])
    return w


def _eigvalsh_vjp(ct: Any, _out: Any, x: Any, lower: bool) -> Any:
    w, v = decompose(x, lower=lower)
    weights = equal_weights(ct, groups(w, w.shape[-1]), VALUES, w)
    return (v * weights[..., None, :]) @ adjoint(v)


def _eigvalsh_jvp(tangents: Sequence[Any], _out: Any, x: Any, lower: bool) -> Any:
    w, v = decompose(x, lower=lower)
    moved = adjoint(v) @ symmetric_part(tangents[0]) @ v
    same = groups(w, w.shape[-1])
    return once(shared(diagonal_of(moved), same), alone(same), SECOND)


# dw = diag(Vᴴ·dA·V); equal values share the change: what becomes of them is not known here, and
# every function that has a derivative treats them alike
_eigvalsh = general(
    "eigvalsh",
    _eigvalsh_forward,
    infer=lambda x, lower: _infer_eigh(x, lower)[0],
    vjps=(_eigvalsh_vjp,),
    jvp=_eigvalsh_jvp,
    lower=Matrices(library=spectra_by_lapack.eigvalsh, takes=by_lapack.takes, hopeful=True),
)


@in_float32
def eigvalsh(
    a: ArrayLike,
    b: ArrayLike | str | None = None,
    *,
    UPLO: str = "L",
    lower: bool | None = None,
    type: int = 1,
    subset_by_index: tuple[int, int] | None = None,
) -> Array:
    """Eigenvalues of a Hermitian matrix, or of each in a stack, in ascending order.

    A single one of repeated eigenvalues has no derivative; functions that treat them alike have
    one, such as their sum and their maximum.

    Args:
        a: The matrix; only one triangle is read.
        b: For the generalised problem `a @ v = w * b @ v`, a positive definite Hermitian matrix.
        UPLO: Which triangle is read: "L" or "U"; it may be given in the place of `b`, as in NumPy.
        lower: The same in SciPy's way: True for "L", False for "U".
        type: Which generalised problem it is: 1 for the one above, 2 for `a @ b @ v = w * v`, 3 for
            `b @ a @ v = w * v`.
        subset_by_index: The numbers of the first and the last eigenvalue that are wanted.

    Raises:
        LinAlgError: A matrix is not square; or `b` is not positive definite.
        ArgumentError: There is no such triangle, type or subset.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> gt.linalg.eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    array([1., 3.])
    """
    options = {"lower": lower, "type": type, "subset_by_index": subset_by_index}
    return eigh(a, b, UPLO=UPLO, eigvals_only=True, **options)  # type: ignore[arg-type]
