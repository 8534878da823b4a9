"""Singular values and singular vectors. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Matrices
from gradtape.ops.arrays.sort import argsort
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.gather import take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.linalg import by_lapack, spectra_by_lapack
from gradtape.ops.linalg.checks import once, require
from gradtape.ops.linalg.common import MATRIX, adjoint, real_dtype
from gradtape.ops.linalg.eigh import eigh, eigvalsh, required_still
from gradtape.ops.linalg.gauge import (
    alone,
    by_vectors,
    depends,
    depends_on_phases,
    diagonal_of,
    differences,
    equal_weights,
    groups,
    largest,
    negligible,
    on_diagonal,
    outside,
    place,
    place_special,
    settle,
    shared,
    skew,
    treated_differently,
    unmoved,
    vanishes,
)
from gradtape.ops.linalg.hermitian import symmetric_part
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.rearrange import flip
from gradtape.ops.select import where
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

_REMEDY = (
    "use functions that do not depend on it: gt.linalg.singular_function and gt.linalg.polar for "
    "those of the matrix, projections on whole spaces, svdvals and sums over equal singular values"
)
BASIS = depends("svd", "which singular vectors were chosen for repeated singular values", _REMEDY)
PHASE = depends_on_phases("svd", "complex singular vectors", "u @ vh")
VALUES = treated_differently("svd", "singular values")
NULL = depends(
    "svd",
    "which basis was chosen for a null space, that of singular values of 0 or of full_matrices",
    "use the first columns of u and rows of vh, and projections such as 1 - u @ u.conj().T",
)
KINK = (
    "svd: got singular values of 0 in a result that depends on them, expected values above 0, as "
    "they have a kink there, and say nothing of what becomes of their vectors; use svdvals for the "
    "values alone, or gt.linalg.singular_function for functions of the matrix"
)
SECOND = (
    "svd: got singular values that are repeated or 0, and second derivatives, which they do not "
    "have by themselves, expected values above 0 that differ; use gt.linalg.singular_function"
)
SPLIT = (
    "svd: got singular values that are repeated or 0, and in forward mode a direction in which "
    "they part, expected values that differ, as their vectors have no derivative; use "
    "gt.linalg.singular_function or polar for functions of the matrix, svdvals for the values "
    "alone, or reverse mode for a result that does not depend on the choice of vectors"
)


# ---- decomposition ------------------------------------------------------------------------------


def _svd_forward(xp: Any, x: Any, full_matrices: bool) -> Any:
    u, s, vh = xp.linalg.svd(x, full_matrices)
    size = max(x.shape[-2:])
    nulls = s.shape[-1] - np.count_nonzero(s > negligible(s, size), axis=-1)
    free = max(u.shape[-1], vh.shape[-1]) - s.shape[-1] > 1
    if not free and not np.any(nulls) and np.count_nonzero(groups(s, size)) == s.size:
        return u, s, vh
    v = xp.array(vh.conj().mT)
    for index in np.ndindex(s.shape[:-1]):
        rank = s.shape[-1] - int(nulls[index])
        # The two null spaces are independent.
        for basis, seed in ((u[index][:, rank:], 1), (v[index][:, rank:], 2)):
            if nulls[index]:
                place(xp, [basis], seed)
            else:
                place_special(xp, basis, seed)
    settle(xp, s, [u, v], size, zeros=True)
    return u, s, xp.ascontiguousarray(v.conj().mT)


def _parts(out: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The vectors that go with singular values, and the rest: u, v, s, other u, other v."""
    u, s, vh = out
    count, v = s.shape[-1], adjoint(vh)
    return u[..., :count], v[..., :count], s, u[..., count:], v[..., count:]


def _kinds(s: Any, size: int) -> tuple[Any, Any, Any]:
    """Which singular values are 0, which pairs are equal, and which of them are both 0."""
    zero = stop_gradient(s) <= negligible(s, size)
    return zero, groups(s, size), zero[..., :, None] & zero[..., None, :]


def _sums(s: Any, both_zero: Any) -> Any:
    """sⱼ + sᵢ, and 1 for pairs of zeros."""
    return where(both_zero, 1.0, s[..., None, :] + s[..., :, None])


def _svd_vjp(ct: Any, out: Any, _x: Any, full_matrices: bool) -> Any:
    by_u, by_s, by_v = ct[0], ct[1], adjoint(ct[2])
    u, v, s, rest_u, rest_v = _parts(out)
    count = s.shape[-1]
    zero, same, both_zero = _kinds(s, max(_x.shape[-2:]))
    in_u, in_v = adjoint(u) @ by_u[..., :count], adjoint(v) @ by_v[..., :count]
    together, apart = skew(in_u) + skew(in_v), skew(in_u) - skew(in_v)
    wholes = by_u, by_v, by_vectors(by_s, s)
    still = required_still(together, vanishes(together, *wholes), same, BASIS, PHASE)
    separate = require(0.0 * apart, vanishes(apart, *wholes) | (both_zero ^ True), NULL)
    middle = (
        where(same, still, together / differences(s, same))
        + where(both_zero, separate, apart / _sums(s, both_zero))
        + on_diagonal(_weights(by_u, by_s, by_v, s, same, zero))
    )
    result = u @ middle
    if (out_u := _leaving(by_u, u, rest_u, s, zero, wholes)) is not None:
        result = result + out_u
    result = result @ adjoint(v)
    out_v = _leaving(by_v, v, rest_v, s, zero, wholes)
    return result if out_v is None else result + u @ adjoint(out_v)


def _weights(by_u: Any, by_s: Any, by_v: Any, s: Any, same: Any, zero: Any) -> Any:
    """The cotangent of singular values, those of 0 required to have none.

    Nor may both vectors of such a value be used: nothing ties their signs to each other.
    """
    above, wholes = zero ^ True, (by_u, by_v, by_vectors(by_s, s))
    weights = equal_weights(by_s, same, VALUES, s, by_u, by_v)
    weights = require(weights, vanishes(by_vectors(by_s, s), *wholes)[..., 0, :] | above, KINK)
    unused = [
        vanishes(largest(ct[..., : s.shape[-1]], -2), *wholes)[..., 0, :] for ct in (by_u, by_v)
    ]
    return require(weights, unused[0] | unused[1] | above, NULL)


def _leaving(
    ct: Any, basis: Any, rest: Any, s: Any, zero: Any, wholes: tuple[Any, Any, Any]
) -> Any:
    """The cotangent of changes that take vectors out of their space, over the singular values.

    None if there is no space but theirs. The rest of a full basis follows them: as it is
    orthogonal, its change into their space is theirs out of it with the opposite sign.
    """
    count = s.shape[-1]
    if basis.shape[-2] == count:
        return None
    by_basis, by_rest = ct[..., :count], ct[..., count:]
    leaving = outside(by_basis, basis)
    if rest.shape[-1]:
        turning = skew(adjoint(rest) @ by_rest)
        still = all_of(vanishes(turning, *wholes), MATRIX, keepdims=True)
        leaving = require(leaving - rest @ (adjoint(by_rest) @ basis), still, NULL)
    zero = zero[..., None, :]
    held = require(0.0 * leaving, vanishes(leaving, *wholes) | (zero ^ True), NULL)
    return where(zero, held, leaving / where(zero, 1.0, s[..., None, :]))


def _svd_jvp(tangents: Sequence[Any], out: Any, _x: Any, full_matrices: bool) -> Any:
    (dx,), (u, v, s, rest_u, rest_v) = tangents, _parts(out)
    zero, same, both_zero = _kinds(s, max(_x.shape[-2:]))
    apart = alone(same) & (zero ^ True)
    moved = adjoint(u) @ dx @ v
    level = where(zero, 0.0, shared(diagonal_of(moved), same))
    kept = unmoved(moved, level, dx, apart, SPLIT)
    together = where(same, 0.0, symmetric_part(moved) / differences(s, same)) + kept
    across = where(both_zero, 0.0, skew(moved) / _sums(s, both_zero))
    ds = once(level + diagonal_of(kept), apart, SECOND)
    du = _pushed(u, rest_u, together + across, dx @ v, s, apart)
    dv = _pushed(v, rest_v, together - across, adjoint(dx) @ u, s, apart)
    return du, ds, adjoint(dv)


def _pushed(basis: Any, rest: Any, inner: Any, moved: Any, s: Any, apart: Any) -> Any:
    """The change of a basis by its turning in its space, and by leaving it."""
    apart = apart[..., None, :]
    if basis.shape[-2] == s.shape[-1]:
        return once(basis @ inner, apart, SECOND)
    leaving = outside(moved, basis)
    held = require(0.0 * leaving, vanishes(leaving, moved) | apart, SPLIT)
    leaving = where(apart, leaving / where(apart, s[..., None, :], 1.0), held)
    change = once(basis @ inner + leaving, apart, SECOND)
    if not rest.shape[-1]:
        return change
    return concatenate([change, -(basis @ (adjoint(leaving) @ rest))], -1)


def _infer_svd(x: Aval, full_matrices: bool) -> tuple[Aval, Aval, Aval]:
    *stack, rows, columns = x.shape
    count = min(rows, columns)
    dtype = np.linalg.svd(np.ones((1, 1), x.dtype))[0].dtype
    return (
        Aval((*stack, rows, rows if full_matrices else count), dtype),
        Aval((*stack, count), real_dtype(dtype)),
        Aval((*stack, columns if full_matrices else count, columns), dtype),
    )


# A = U·S·Vᴴ, Uᴴ·dA·V = P + N, Hermitian and skew: dS = diag P, and in the two bases
# Uᴴ·dU = P∘1/(sⱼ − sᵢ) + N∘1/(sⱼ + sᵢ), Vᴴ·dV = P∘1/(sⱼ − sᵢ) − N∘1/(sⱼ + sᵢ);
# out of them (1 − UUᴴ)·dA·V·S⁻¹ and (1 − VVᴴ)·dAᴴ·U·S⁻¹
decompose = general(
    "svd",
    _svd_forward,
    infer=_infer_svd,
    vjps=(_svd_vjp,),
    jvp=_svd_jvp,
    outputs=3,
    lower=Matrices(library=spectra_by_lapack.svd, takes=spectra_by_lapack.takes_svd, hopeful=True),
)


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values descending, right singular vectors in rows.

    >>> gt.linalg.svd(np.diag([3.0, 1.0])).S
    array([3., 1.])
    """

    U: Array
    S: Array
    Vh: Array


@in_float32
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> SVDResult | Array:
    """Singular value decomposition `u @ diag(s) @ vh` of a matrix, or of each in a stack.

    Singular vectors of a repeated singular value, and those of null spaces, are a basis like any
    other; complex ones have free phases. Gradients of functions that depend on that choice are
    refused; others have their gradient even where singular values are repeated or 0.

    Args:
        a: The matrix.
        full_matrices: Whether `u` and `vh` are square, completed by bases of the null spaces.
        compute_uv: Whether to return the vectors; if not, the result is `svdvals(a)`.
        hermitian: Whether to treat `a` as Hermitian, reading its lower triangle; that is faster.

    Returns:
        A named tuple: `U`, the singular values `S` in descending order, and `Vh`.

    Raises:
        LinAlgError: There are less than two axes, or LAPACK did not converge.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> u, s, vh = gt.linalg.svd(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> s
    array([2., 1.])
    """
    a = matrix_stack("svd", a)
    if hermitian:
        return _hermitian_svd(a) if compute_uv else _hermitian_values(a)
    if not compute_uv:
        return _svdvals(a)
    return SVDResult(*decompose(a, full_matrices=bool(full_matrices)))


def _hermitian_svd(a: Any) -> SVDResult:
    w, v = eigh(a)
    order = flip(argsort(stop_gradient(abs(w)), axis=-1), -1)
    w, v = take_along_axis(w, order, -1), take_along_axis(v, order[..., None, :], -1)
    signs = astype(where(w < 0.0, -1.0, 1.0), w.dtype)
    return SVDResult(v, signs * w, adjoint(v * signs[..., None, :]))


def _hermitian_values(a: Any) -> Array:
    s = abs(eigvalsh(a))
    return take_along_axis(s, flip(argsort(stop_gradient(s), axis=-1), -1), -1)


# ---- singular values alone ----------------------------------------------------------------------


def _svdvals_forward(xp: Any, x: Any) -> Any:
    s = xp.linalg.svd(x, compute_uv=False)
    settle(xp, s, [], max(x.shape[-2:]), zeros=True)
    return s


def _svdvals_vjp(ct: Any, _out: Any, x: Any) -> Any:
    u, s, vh = decompose(x, full_matrices=False)
    zero, same, _ = _kinds(s, max(x.shape[-2:]))
    above = zero ^ True
    weights = equal_weights(once(where(zero, 0.0, ct), above, SECOND), same, VALUES, s)
    return (u * weights[..., None, :]) @ vh


def _svdvals_jvp(tangents: Sequence[Any], _out: Any, x: Any) -> Any:
    u, s, vh = decompose(x, full_matrices=False)
    zero, same, _ = _kinds(s, max(x.shape[-2:]))
    change = shared(diagonal_of(adjoint(u) @ tangents[0] @ adjoint(vh)), same)
    return once(where(zero, 0.0, change), alone(same) & (zero ^ True), SECOND)


# dS = Re diag(Uᴴ·dA·V); equal values share the change, and a value of 0 has a kink there as |x| has
_svdvals = general(
    "svdvals",
    _svdvals_forward,
    infer=lambda x: _infer_svd(x, False)[1],
    vjps=(_svdvals_vjp,),
    jvp=_svdvals_jvp,
    lower=Matrices(library=spectra_by_lapack.svdvals, takes=by_lapack.takes, hopeful=True),
)


@in_float32
def svdvals(a: ArrayLike, /) -> Array:
    """Singular values of a matrix, or of each in a stack, in descending order.

    A single one of repeated singular values has no derivative; functions that treat them alike have
    one, such as their sum and their maximum. At a value of 0 there is a kink as that of `abs`, and
    the gradient is 0.

    Raises:
        LinAlgError: There are less than two axes, or LAPACK did not converge.
        NotDifferentiableError: A derivative was asked for that does not exist.

    >>> gt.linalg.svdvals(np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([2., 1.])
    """
    return _svdvals(matrix_stack("svdvals", a))
