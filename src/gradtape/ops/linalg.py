"""Linear algebra: solve, inverse, determinant, Cholesky factor. Xᴴ is the conjugate transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import call
from gradtape.core.define import (
    batch_at_front,
    broadcast_sizes,
    general,
    move_batch_axis,
    public,
    unbroadcast,
)
from gradtape.core.op import Op
from gradtape.errors import LinAlgError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import conj, imag, real
from gradtape.ops.matmul import by_left
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

_MATRIX = (-2, -1)


def adjoint(x: Any) -> Any:
    """The conjugate transpose of a stack of matrices."""
    return conj(x).mT if x.dtype.kind == "c" else x.mT


def _square(name: str, x: ArrayLike) -> Any:
    """`x` as an array, checked to be a stack of square matrices."""
    x = as_array(x)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(
            f"{name}: came shape {x.shape}; needed a square matrix, or a stack of them along the "
            "first axes"
        )
    return x


def _checked(name: str, function: str, remedy: str) -> Callable[..., Any]:
    """`evaluate` by a function of `xp.linalg`, with an error that says what came and what to do."""

    def evaluate(xp: Any, *arrays: Any) -> Any:
        try:
            return getattr(xp.linalg, function)(*arrays)
        except np.linalg.LinAlgError as error:
            came = ", ".join(str(aval_of(array)) for array in arrays)
            raise LinAlgError(f"{name}: came {came}; {error}; {remedy}") from error

    return evaluate


_SINGULAR = "needed a matrix that can be inverted; add a small multiple of the identity"


@functools.cache
def _dtype(function: str, *dtypes: Any) -> Any:
    """The dtype NumPy computes in, by trying."""
    return getattr(np.linalg, function)(*(np.ones((1, 1), dtype) for dtype in dtypes)).dtype


def _infer_like(function: str) -> Callable[[Aval], Aval]:
    return lambda x: Aval(x.shape, _dtype(function, x.dtype))


def _stretch(x: Any) -> Any:
    """Numbers, one per matrix, so that they multiply matrices."""
    return reshape(x, (*x.shape, 1, 1))


# ---- solve --------------------------------------------------------------------------------------


def _infer_solve(a: Aval, b: Aval) -> Aval:
    batch = broadcast_sizes(a.shape[:-2], b.shape[:-2])
    return Aval((*batch, *b.shape[-2:]), _dtype("solve", a.dtype, b.dtype))


def _solve_vjp(wanted: tuple[bool, bool], ct: Any, out: Any, a: Any, _b: Any) -> Any:
    # A record that kept the factors of A would save most of this.
    back = _solve(adjoint(a), ct)
    return (
        by_left(-back, None, a, out) if wanted[0] else None,
        unbroadcast(back, _b.shape) if wanted[1] else None,
    )


def _solve_jvp(tangents: Sequence[Any], out: Any, a: Any, _b: Any) -> Any:
    da, db = tangents
    if da is None:
        return _solve(a, db)
    moved = -(da @ out)
    return _solve(a, moved if db is None else db + moved)


def _solve_batch(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> tuple[Any, int]:
    (a, b), (axis, axis2) = args, axes
    if axis is None and len(a.shape) == 2 and len(b.shape) == 3:
        # One matrix for the whole batch is factored once: the batch becomes columns.
        b = move_batch_axis(b, axis2, 2)
        columns = reshape(b, (b.shape[0], b.shape[1] * b.shape[2]))
        return reshape(call(op, (a, columns), params), b.shape), 2
    ndim = max(len(x.shape) - (n is not None) for x, n in zip(args, axes, strict=True))
    return call(op, [_front(x, n, ndim) for x, n in zip(args, axes, strict=True)], params), 0


def _front(x: Any, axis: int | None, ndim: int) -> Any:
    """The batch axis first, then axes of size 1 so that the others line up from the right."""
    if axis is None:
        return x
    size, *own = move_batch_axis(x, axis).shape
    return reshape(move_batch_axis(x, axis), (size, *(1,) * (ndim - len(own)), *own))


# x = A⁻¹b: dx = A⁻¹(db − dA·x)
_solve = general(
    "solve",
    _checked("solve", "solve", _SINGULAR),
    infer=_infer_solve,
    vjp_all=_solve_vjp,
    jvp=_solve_jvp,
    batch=_solve_batch,
)


@public(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike, /) -> Array:
    """The solution x of `a @ x = b`.

    Args:
        a: A square matrix, or a stack of them.
        b: A vector if it has one axis, else a matrix of columns or a stack of them.

    Raises:
        LinAlgError: A matrix is not square, or singular.
        ShapeError: `b` does not fit.

    >>> gt.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    a, b = _square("solve", a), as_array(b)
    vector = len(b.shape) == 1
    if not b.shape or b.shape[0 if vector else -2] != a.shape[-1]:
        raise ShapeError(
            f"solve: came shapes {a.shape} and {b.shape}; needed a vector of {a.shape[-1]} "
            "elements, or matrices of as many rows"
        )
    if not vector:
        return _solve(a, b)
    out = _solve(a, reshape(b, (b.shape[0], 1)))
    return reshape(out, out.shape[:-1])


# ---- inverse ------------------------------------------------------------------------------------

# d A⁻¹ = −A⁻¹·dA·A⁻¹
_inv = general(
    "inv",
    _checked("inv", "inv", _SINGULAR),
    infer=_infer_like("inv"),
    vjps=(lambda ct, out, _x: -(adjoint(out) @ ct @ adjoint(out)),),
    jvp=lambda tangents, out, _x: -(out @ tangents[0] @ out),
    batch=batch_at_front,
)


@public(np.linalg.inv)
def inv(x: ArrayLike, /) -> Array:
    """The inverse of a square matrix, or of each in a stack; to solve equations use `solve`.

    Raises:
        LinAlgError: A matrix is not square, or singular.

    >>> gt.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return _inv(_square("inv", x))


# ---- determinant --------------------------------------------------------------------------------


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
    scale = sum_of(conj(out) * ct, _MATRIX)
    return _stretch(scale) * inverse - inverse @ ct.mT @ conj(out)


def _cofactors_jvp(tangents: Sequence[Any], out: Any, x: Any) -> Any:
    inverse, (dx,) = inv(x), tangents
    return out * _stretch(sum_of(inverse.mT * dx, _MATRIX)) - out @ dx.mT @ inverse.mT


# C = det(A)·A⁻ᵀ: dC = C·tr(A⁻¹·dA) − C·dAᵀ·A⁻ᵀ; where A is singular this form does not hold, and
# `inv` raises
_cofactors = general(
    "cofactors",
    _cofactors_forward,
    infer=_infer_like("inv"),
    vjps=(_cofactors_vjp,),
    jvp=_cofactors_jvp,
    batch=batch_at_front,
)

# d det(A) = Σ C∘dA with the cofactors C, which exist for singular matrices as well
_det = general(
    "det",
    lambda xp, x: xp.linalg.det(x),
    infer=lambda x: Aval(x.shape[:-2], _dtype("inv", x.dtype)),
    vjps=(lambda ct, _out, x: _stretch(ct) * conj(_cofactors(x)),),
    jvp=lambda tangents, _out, x: sum_of(_cofactors(x) * tangents[0], _MATRIX),
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
    return _det(_square("det", x))


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
    return _stretch(by_log) * adjoint(inv(x))


def _slogdet_jvp(tangents: Sequence[Any], _out: Any, x: Any) -> Any:
    change = sum_of(inv(x).mT * tangents[0], _MATRIX)
    if x.dtype.kind != "c":
        return None, change
    return slogdet(x).sign * (1j * imag(change)), real(change)


def _infer_slogdet(x: Aval) -> tuple[Aval, Aval]:
    dtype = _dtype("inv", x.dtype)
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
    return SlogdetResult(*_slogdet(_square("slogdet", x)))


# ---- Cholesky -----------------------------------------------------------------------------------


def _lower_half(x: Any) -> Any:
    """The lower triangle with half of the diagonal: what of a Hermitian change a factor takes."""
    size, dtype = x.shape[-1], np.empty(0, x.dtype).real.dtype
    return x * (np.tri(size, dtype=dtype) - np.eye(size, dtype=dtype) / 2)


def _cholesky_vjp(ct: Any, out: Any, _x: Any) -> Any:
    upper = adjoint(out)
    half = _solve(upper, adjoint(_solve(upper, _lower_half(upper @ ct))))
    return (half + adjoint(half)) / 2


def _cholesky_jvp(tangents: Sequence[Any], out: Any, _x: Any) -> Any:
    change = (tangents[0] + adjoint(tangents[0])) / 2
    return out @ _lower_half(_solve(out, adjoint(_solve(out, change))))


# A = L·Lᴴ: dL = L·Φ(L⁻¹·dA·L⁻ᴴ), where Φ takes the lower half
_cholesky = general(
    "cholesky",
    _checked("cholesky", "cholesky", "needed eigenvalues above 0; add a multiple of the identity"),
    infer=_infer_like("cholesky"),
    vjps=(_cholesky_vjp,),
    jvp=_cholesky_jvp,
    batch=batch_at_front,
)


@public(np.linalg.cholesky)
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Array:
    """The triangular factor L of a positive definite Hermitian matrix `L @ L.conj().T`.

    Args:
        x: The matrix, or a stack of them; only one triangle is read, and the derivative is that
            with respect to a matrix that stays Hermitian.
        upper: Whether to give Lᴴ instead, reading the upper triangle.

    Raises:
        LinAlgError: A matrix is not square, or not positive definite.

    >>> gt.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[2., 0.],
           [1., 1.]])
    """
    x = _square("cholesky", x)
    return adjoint(_cholesky(adjoint(x))) if upper else _cholesky(x)
