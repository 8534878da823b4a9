"""Determinants: det, slogdet, logdet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Matrices
from gradtape.ops.cast import conj, imag, real
from gradtape.ops.exponential import log
from gradtape.ops.linalg import by_lapack, small
from gradtape.ops.linalg.cofactors import cofactors
from gradtape.ops.linalg.common import MATRIX, adjoint, dtype_of, real_dtype, square, stretch
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.solve import inv
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike

# ---- det -----------------------------------------------------------------------------------------

# d det(A) = Σ C∘dA with the cofactors C, which exist for singular matrices as well
_det = general(
    "det",
    lambda xp, x: xp.linalg.det(x),
    infer=lambda x: Aval(x.shape[:-2], dtype_of("inv", x.dtype)),
    vjps=(lambda ct, _out, x: stretch(ct) * conj(cofactors(x)),),
    jvp=lambda tangents, _out, x: sum_of(cofactors(x) * tangents[0], MATRIX),
    lower=Matrices(
        small.det,
        fits=small.up_to(8),
        library=by_lapack.det,
        takes=by_lapack.takes,
    ),
)


@in_float32
def det(x: ArrayLike, /) -> Array:
    """The determinant of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square; or singular, for a derivative of fourth order.

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
    return Aval(x.shape[:-2], dtype), Aval(x.shape[:-2], real_dtype(dtype))


# d log|det A| = Re tr(A⁻¹·dA); the sign of a real determinant is piecewise constant
_slogdet = general(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    infer=_infer_slogdet,
    vjps=(_slogdet_vjp,),
    jvp=_slogdet_jvp,
    outputs=2,
    lower=Matrices(
        small.slogdet,
        fits=small.up_to(8),
        library=by_lapack.slogdet,
        takes=by_lapack.takes,
    ),
)


@in_float32
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


@in_float32
def logdet(x: ArrayLike, /) -> Array:
    """The logarithm of the determinant of a square matrix, or of each in a stack.

    For a real matrix with a negative determinant it is NaN, for a singular one -inf.

    Raises:
        LinAlgError: A matrix is not square; or, for derivatives, it is singular.

    >>> float(gt.linalg.logdet(np.array([[2.0, 0.0], [0.0, 0.5]])))
    0.0
    """
    sign, logarithm = slogdet(x)
    if sign.dtype.kind == "c":
        return log(sign) + logarithm
    return where(sign < 0, np.nan, logarithm)
