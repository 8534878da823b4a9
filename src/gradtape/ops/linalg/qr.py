"""The QR decomposition. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Composite, Matrices
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.diagonal import diagonal, tril, triu
from gradtape.ops.exponential import sqrt
from gradtape.ops.gather import take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.linalg import by_lapack, small
from gradtape.ops.linalg.checks import require
from gradtape.ops.linalg.common import MATRIX, adjoint, real_dtype
from gradtape.ops.linalg.gauge import (
    depends,
    largest,
    outside,
    place_special,
    rounding,
    skew,
    vanishes,
)
from gradtape.ops.linalg.hermitian import lower_half
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack, scipy_linalg
from gradtape.ops.linalg.stacks import matrix_stack, over_stack
from gradtape.ops.linalg.triangular import divided_by_upper, triangular
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

DEPENDENT = (
    "qr: got a matrix whose first columns depend on each other, expected independent ones, as many "
    "as there are rows or columns, for a derivative of the factors to exist; add noise to the "
    "matrix, or use svd"
)
NULL = depends(
    "qr",
    "which basis completes the columns of q in mode='complete'",
    "use mode='reduced', and projections such as 1 - q @ q.conj().T",
)


def _half_upper(x: Any) -> Any:
    """The upper triangle with half of the diagonal."""
    return lower_half(x.mT).mT


def _independent_forward(xp: Any, r: Any) -> Any:
    size = r.shape[-1]
    rounded = rounding(size, r.dtype)
    sizes = abs(r)
    scale = sizes.max(-2, keepdims=True, initial=0)
    fine = xp.diagonal(sizes, axis1=-2, axis2=-1) > rounded * scale[..., 0, :]
    # Columns are scaled to one size: products of numbers of extreme sizes would over- or underflow.
    scaled = r / xp.where(scale > 0, scale, 1)
    places = xp.arange(size)
    scaled[..., places, places] = xp.where(fine, scaled[..., places, places], 1)
    lengths = xp.linalg.norm(scaled, axis=-2)
    left = (abs(_inverse_of_upper(xp, scaled)) * lengths[..., :, None]).sum(-2)
    return fine & (left * rounded < 1)


def _independent_by_ops(r: Any) -> Any:
    """The same by ops that have native code."""
    size = r.shape[-1]
    rounded, sizes = rounding(size, r.dtype), abs(r)
    # Ones for any elements, NaN included: the code of an op has no arrays of its own.
    ones = astype((sizes >= 0) | (sizes != sizes), r.dtype)
    identity = tril(triu(ones))
    scale = largest(r, -2)
    fine = diagonal(sizes, 0, -2, -1) > rounded * scale[..., 0, :]
    scaled = r / where(scale > 0, scale, 1.0)
    scaled = where((identity > 0) & (fine[..., None, :] ^ True), 1.0, scaled)
    lengths = sqrt(sum_of(scaled * scaled, -2))
    inverse = triangular(scaled, identity, lower=False, unit_diagonal=False)
    left = sum_of(abs(inverse) * lengths[..., :, None], -2)
    return fine & (left * rounded < 1)


def _inverse_of_upper(xp: Any, r: Any) -> Any:
    if xp is not np:
        return xp.linalg.inv(r)
    trtri = lapack("trtri", r.dtype)
    return over_stack(lambda one: trtri(one)[0] if one.size else one, r)


# Which columns of an upper triangular matrix are no combination of those before them. An element
# rᵢᵢ of the diagonal is what is left of a column if those before it, times numbers cⱼ, are
# subtracted. It counts as 0 if it is no more than rounding of all these columns: of their lengths
# times |cⱼ|, which are large if the columns before nearly depend on each other. As R⁻¹ has −cⱼ/rᵢᵢ
# in its column i, that is a matter of its elements times lengths of columns of R.
_independent = general(
    "independent_columns",
    _independent_forward,
    infer=lambda r: Aval(r.shape[:-1], np.dtype(bool)),
    lower=Composite(_independent_by_ops),
)


def regular(r: Any, message: str, count: int | None = None) -> tuple[Any, Any]:
    """An upper triangular matrix that is safe to divide by, and a factor 1 that requires it to be.

    Args:
        r: The matrix.
        message: Of the error.
        count: How many elements of the diagonal matter; None for all of them.
    """
    size = r.shape[-1]
    columns = _independent(stop_gradient(r))
    ok = all_of(columns[..., :count], -1, keepdims=True)[..., None]
    one = require(np.ones((), real_dtype(r.dtype)), ok, message)
    return where(columns[..., None, :] | ~np.eye(size, dtype=bool), r, 1.0), one


# ---- tall matrices ------------------------------------------------------------------------------


def _qr_vjp(ct: Any, out: Any, _x: Any, mode: str) -> Any:
    (by_q, by_r), (q, r) = ct, out
    count = r.shape[-1]
    rest, by_rest = q[..., count:], by_q[..., count:]
    q, r, by_q, by_r = q[..., :count], r[..., :count, :], by_q[..., :count], by_r[..., :count, :]
    safe, one = regular(r, DEPENDENT)
    if rest.shape[-1]:
        # Orthogonal to q, the rest goes into its space as q goes out of it.
        inner = adjoint(rest) @ by_rest
        still = all_of(vanishes(skew(inner), ct[0], triu(by_r) @ adjoint(r)), MATRIX, keepdims=True)
        by_q = require(by_q, still, NULL) - rest @ (adjoint(by_rest) @ q)
    half = _half_upper(adjoint(q) @ by_q - triu(by_r) @ adjoint(r))
    return divided_by_upper(by_q - q @ (half + adjoint(half)), safe, by_adjoint=True) * one


def _qr_jvp(tangents: Sequence[Any], out: Any, _x: Any, mode: str) -> Any:
    q, r = out
    count = r.shape[-1]
    rest, zeros = q[..., count:], r[..., count:, :]
    q, r = q[..., :count], r[..., :count, :]
    safe, one = regular(r, DEPENDENT)
    moved = divided_by_upper(tangents[0], safe, by_adjoint=False) * one
    inner = adjoint(q) @ moved
    half = _half_upper(inner + adjoint(inner))
    leaving = outside(moved, q)
    dq, dr = q @ (inner - half) + leaving, half @ r
    if not rest.shape[-1]:
        return dq, dr
    dq = concatenate([dq, -(q @ (adjoint(leaving) @ rest))], -1)
    return dq, concatenate([dr, 0.0 * zeros], -2)


def _qr_forward(xp: Any, x: Any, mode: str) -> Any:
    q, r = xp.linalg.qr(x, mode)
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows - columns > 1:
        for index in np.ndindex(x.shape[:-2]):
            place_special(xp, q[index][:, columns:])
    return q, r


def _infer_qr(x: Aval, mode: str) -> tuple[Aval, Aval]:
    *stack, rows, columns = x.shape
    size = rows if mode == "complete" else columns
    return Aval((*stack, rows, size), x.dtype), Aval((*stack, size, columns), x.dtype)


# A = Q·R with the diagonal of R real, M = Qᴴ·dA·R⁻¹: dR = Φ(M + Mᴴ)·R, where Φ takes the upper
# half, and dQ = Q·(M − Φ(M + Mᴴ)) + (1 − QQᴴ)·dA·R⁻¹
_qr = general(
    "qr",
    _qr_forward,
    infer=_infer_qr,
    vjps=(_qr_vjp,),
    jvp=_qr_jvp,
    outputs=2,
    lower=Matrices(
        small.qr,
        fits=lambda x, mode: mode == "reduced" and small.up_to(4)(x),
        library=by_lapack.qr,
        takes=lambda x, mode: mode == "reduced" and by_lapack.takes(x),
    ),
)


# ---- any matrices -------------------------------------------------------------------------------


def _pivots_of_one(a: Any) -> Any:
    return scipy_linalg().qr(a, mode="r", pivoting=True)[1].astype(np.int64)


# Which columns come first is piecewise constant
_pivots = general(
    "qr_pivots",
    lambda _xp, x: over_stack(_pivots_of_one, x),
    infer=lambda x: Aval((*x.shape[:-2], x.shape[-1]), np.dtype(np.int64)),
)


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangular matrix.

    >>> q, r = gt.linalg.qr(np.eye(2))
    >>> q @ r
    array([[1., 0.],
           [0., 1.]])
    """

    Q: Array
    R: Array


@in_float32
def qr(
    a: ArrayLike, mode: str = "reduced", *, pivoting: bool = False
) -> QRResult | Array | tuple[Array, ...]:
    """QR decomposition `q @ r` of a matrix, or of each in a stack.

    Args:
        a: The matrix.
        mode: "reduced" gives `q` as many columns as the matrix has rows or columns, "complete" a
            square `q`, "r" only `r`.
        pivoting: Whether to reorder columns so that the diagonal of `r` does not increase.

    Returns:
        A named tuple of `Q` and `R`, or `r` alone; with `pivoting` a tuple that has the order of
        the columns as its last element: `a[:, p] = q @ r`.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: There is no such mode.
        NotDifferentiableError: A derivative was asked for that does not exist, as the first columns
            depend on each other.

    >>> q, r = gt.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> abs(r)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    a = matrix_stack("qr", a)
    check_choice("qr", ("reduced", "complete", "r"), mode=mode)
    order: tuple[Array, ...] = ()
    if pivoting:
        order = (_pivots(a),)
        a = take_along_axis(a, order[0][..., None, :], -1)
    result = _decomposed(a, "complete" if mode == "complete" else "reduced")
    if mode == "r":
        return (result.R, *order) if order else result.R
    return (*result, *order) if order else result


def _decomposed(a: Any, mode: str) -> QRResult:
    rows, columns = a.shape[-2:]
    if rows >= columns:
        return QRResult(*_qr(a, mode=mode if rows > columns else "reduced"))
    q, r = _qr(a[..., :rows], mode="reduced")
    return QRResult(q, concatenate([r, adjoint(q) @ a[..., rows:]], -1))
