"""Determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import batch_at_front, general, public
from gradtape.ops.cast import conj, imag, real
from gradtape.ops.linalg.common import MATRIX, adjoint, dtype_of, infer_like, square, stretch
from gradtape.ops.linalg.solve import inv
from gradtape.ops.reduce import sum as sum_of
from gradtape.typing import Array, ArrayLike


def _cofactors_forward(xp: Any, x: Any) -> Any:
    """det(A)·A⁻ᵀ; where A is singular or nearly so, by products of its singular values."""
    try:
        inverse = xp.linalg.inv(x)
        condition = _one_norm(xp, x) * _one_norm(xp, inverse)
        if not (condition > xp.finfo(x.dtype).eps ** -0.5).any():
            return xp.linalg.det(x)[..., None, None] * inverse.mT
    except np.linalg.LinAlgError:
        pass
    u, s, vh = xp.linalg.svd(x)
    one = xp.ones_like(s[..., :1])
    before = xp.concatenate([one, s[..., :-1]], axis=-1).cumprod(axis=-1)
    after = xp.concatenate([one, s[..., :0:-1]], axis=-1).cumprod(axis=-1)[..., ::-1]
    others = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None] * before * after
    return (u.conj() * others[..., None, :]) @ vh.conj()


def _one_norm(xp: Any, x: Any) -> Any:
    return xp.abs(x).sum(axis=-2).max(axis=-1, initial=0)


def _cofactors_vjp(ct: Any, out: Any, x: Any) -> Any:
    inverse = adjoint(inv(x))
    scale = sum_of(conj(out) * ct, MATRIX)
    return stretch(scale) * inverse - inverse @ ct.mT @ conj(out)


def _cofactors_jvp(tangents: Sequence[Any], out: Any, x: Any) -> Any:
    inverse, (dx,) = inv(x), tangents
    return out * stretch(sum_of(inverse.mT * dx, MATRIX)) - out @ dx.mT @ inverse.mT


# C = det(A)·A⁻ᵀ: dC = C·tr(A⁻¹·dA) − C·dAᵀ·A⁻ᵀ; where A is singular this form does not hold, and
# `inv` raises
_cofactors = general(
    "cofactors",
    _cofactors_forward,
    infer=infer_like("inv"),
    vjps=(_cofactors_vjp,),
    jvp=_cofactors_jvp,
    batch=batch_at_front,
)

# d det(A) = Σ C∘dA with the cofactors C, which exist for singular matrices as well
_det = general(
    "det",
    lambda xp, x: xp.linalg.det(x),
    infer=lambda x: Aval(x.shape[:-2], dtype_of("inv", x.dtype)),
    vjps=(lambda ct, _out, x: stretch(ct) * conj(_cofactors(x)),),
    jvp=lambda tangents, _out, x: sum_of(_cofactors(x) * tangents[0], MATRIX),
    batch=batch_at_front,
)


@public(np.linalg.det)
def det(x: ArrayLike, /) -> Array:
    """The determinant of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square; or, only for second derivatives, it is singular.

    >>> gt.linalg.det(np.array([[1.0, 2.0], [0.0, 4.0]]))
    np.float64(4.0)
    """
    return _det(square("det", x))


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of a determinant.

    >>> sign, logabsdet = gt.linalg.slogdet(np.diag([-1.0, 1.0]))
    >>> sign * gt.exp(logabsdet)
    np.float64(-1.0)
    """

    sign: Array
    logabsdet: Array


def _slogdet_vjp(ct: Any, _out: Any, x: Any) -> Any:
    by_sign, by_log = ct
    if x.dtype.kind == "c":
        # The sign e^(iφ) turns by dφ = Im tr(A⁻¹·dA).
        by_log = by_log + 1j * imag(by_sign * conj(slogdet(x).sign))
    return stretch(by_log) * adjoint(inv(x))


def _slogdet_jvp(tangents: Sequence[Any], _out: Any, x: Any) -> Any:
    change = sum_of(inv(x).mT * tangents[0], MATRIX)
    if x.dtype.kind != "c":
        return None, change
    return slogdet(x).sign * (1j * imag(change)), real(change)


def _infer_slogdet(x: Aval) -> tuple[Aval, Aval]:
    dtype = dtype_of("inv", x.dtype)
    return Aval(x.shape[:-2], dtype), Aval(x.shape[:-2], np.empty(0, dtype).real.dtype)


# d log|det A| = Re tr(A⁻¹·dA); the sign of a real determinant is piecewise constant
_slogdet = general(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    infer=_infer_slogdet,
    vjps=(_slogdet_vjp,),
    jvp=_slogdet_jvp,
    batch=batch_at_front,
    outputs=2,
)


@public(np.linalg.slogdet)
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Sign and logarithm of the determinant of a square matrix, or of each in a stack.

    Returns:
        A named tuple: `sign`, which is 0 if the matrix is singular, and `logabsdet`.

    Raises:
        LinAlgError: A matrix is not square; or, for derivatives, it is singular.

    >>> gt.linalg.slogdet(np.array([[-1.0, 0.0], [0.0, 1.0]]))
    SlogdetResult(sign=np.float64(-1.0), logabsdet=np.float64(0.0))
    """
    return SlogdetResult(*_slogdet(square("slogdet", x)))
