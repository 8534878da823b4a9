"""Equations for a matrix: Sylvester's and Lyapunov's. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general, unbroadcast
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.linalg.common import adjoint
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack, scipy_linalg
from gradtape.ops.linalg.stacks import (
    batch_stacks,
    common_dtype,
    failed,
    matrices,
    over_stack,
    stack_of,
)
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike

# ---- Sylvester ----------------------------------------------------------------------------------


def _sylvester_forward(_xp: Any, a: Any, b: Any, q: Any) -> Any:
    dtype = common_dtype(a, b, q)
    return over_stack(_one_sylvester, *(x.astype(dtype, copy=False) for x in (a, b, q)))


def _one_sylvester(a: Any, b: Any, q: Any) -> Any:
    """By triangular forms of both matrices, as Bartels and Stewart do."""
    if not q.size or not all(np.isfinite(x).all() for x in (a, b, q)):
        return np.full(q.shape, np.nan, q.dtype)
    schur = scipy_linalg().schur
    (r, u), (s, v) = schur(a), schur(b.conj().T)
    turned = u.conj().T @ q @ v
    out, scale, info = lapack("trsyl", q.dtype)(r, s, turned, tranb="C")
    if info > 0:
        problem = "an eigenvalue of the first matrix is minus one of the second"
        raise failed("solve_sylvester", (a, b, q), problem, "expected none to add up to 0")
    return u @ (scale * out) @ v.conj().T


def _sylvester_vjp(
    wanted: tuple[bool, ...], ct: Any, out: Any, a: Any, b: Any, _q: Any
) -> tuple[Any, ...]:
    back = _sylvester(adjoint(a), adjoint(b), ct)
    return (
        unbroadcast(-(back @ adjoint(out)), a.shape) if wanted[0] else None,
        unbroadcast(-(adjoint(out) @ back), b.shape) if wanted[1] else None,
        unbroadcast(back, _q.shape) if wanted[2] else None,
    )


def _sylvester_jvp(tangents: Sequence[Any], out: Any, a: Any, b: Any, _q: Any) -> Any:
    da, db, dq = tangents
    left, right = None if da is None else -(da @ out), None if db is None else -(out @ db)
    return _sylvester(a, b, added(dq, left, right))


def _infer_sylvester(a: Aval, b: Aval, q: Aval) -> Aval:
    return Aval((*stack_of(a, b, q), *q.shape[-2:]), common_dtype(a, b, q))


# A·X + X·B = Q: A·dX + dX·B = dQ − dA·X − X·dB
_sylvester = general(
    "solve_sylvester",
    _sylvester_forward,
    infer=_infer_sylvester,
    vjp_all=_sylvester_vjp,
    jvp=_sylvester_jvp,
    batch=batch_stacks,
)


@in_float32
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike, /) -> Array:
    """The solution X of `a @ X + X @ b = q`.

    Args:
        a: A square matrix, or a stack of them.
        b: A square matrix, or a stack of them.
        q: A matrix with the rows of `a` and the columns of `b`, or a stack of them.

    Raises:
        LinAlgError: A matrix is not square, or an eigenvalue of `a` is minus one of `b`.
        ShapeError: The sizes do not fit.

    >>> gt.linalg.solve_sylvester(np.eye(2), np.eye(2), np.array([[2.0, 0.0], [4.0, 2.0]]))
    array([[1., 0.],
           [2., 1.]])
    """
    a, b = matrices("solve_sylvester", a, b, same=False)
    q = inexact(q)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ShapeError(
            f"solve_sylvester: got shapes {a.shape}, {b.shape} and {q.shape}, expected the third "
            f"of {a.shape[-1]} rows and {b.shape[-1]} columns"
        )
    return _sylvester(a, b, q)


# ---- Lyapunov -----------------------------------------------------------------------------------


@in_float32
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike, /) -> Array:
    """The solution X of `a @ X + X @ a.conj().T = q`.

    Args:
        a: A square matrix, or a stack of them.
        q: A square matrix of the same size, or a stack of them.

    Raises:
        LinAlgError: A matrix is not square, or two eigenvalues of `a` add up to 0.
        ShapeError: The sizes differ.

    >>> gt.linalg.solve_continuous_lyapunov(np.eye(2), np.array([[2.0, 4.0], [4.0, 6.0]]))
    array([[1., 2.],
           [2., 3.]])
    """
    a, q = matrices("solve_continuous_lyapunov", a, q)
    return _sylvester(a, adjoint(a), q)


# SciPy's older name
solve_lyapunov = solve_continuous_lyapunov


def _discrete_forward(_xp: Any, a: Any, q: Any) -> Any:
    dtype = common_dtype(a, q)

    def one(a: Any, q: Any) -> Any:
        if not q.size:
            return np.empty(q.shape, dtype)
        try:
            with np.errstate(all="ignore"):
                out = scipy_linalg().solve_discrete_lyapunov(a, q)
            # SciPy before 1.17 divides by 0 where the equations are diagonal.
            if np.isinf(out).any():
                raise np.linalg.LinAlgError("singular")
        except np.linalg.LinAlgError as error:
            problem = "the product of two eigenvalues of the first matrix is 1"
            remedy = "expected none to be"
            raise failed("solve_discrete_lyapunov", (a, q), problem, remedy) from error
        return out.astype(dtype, copy=False)

    return over_stack(one, *(x.astype(dtype, copy=False) for x in (a, q)))


def _discrete_vjp(wanted: tuple[bool, bool], ct: Any, out: Any, a: Any, _q: Any) -> Any:
    back = discrete_lyapunov(adjoint(a), ct)
    by_matrix = None
    if wanted[0]:
        by_matrix = unbroadcast(back @ a @ adjoint(out) + adjoint(back) @ a @ out, a.shape)
    return by_matrix, unbroadcast(back, _q.shape) if wanted[1] else None


def _discrete_jvp(tangents: Sequence[Any], out: Any, a: Any, _q: Any) -> Any:
    da, dq = tangents
    moved = None if da is None else da @ out @ adjoint(a) + a @ out @ adjoint(da)
    return discrete_lyapunov(a, added(dq, moved))


def _infer_discrete(a: Aval, q: Aval) -> Aval:
    return Aval((*stack_of(a, q), *q.shape[-2:]), common_dtype(a, q))


# X = A·X·Aᴴ + Q: dX = A·dX·Aᴴ + dQ + dA·X·Aᴴ + A·X·dAᴴ
discrete_lyapunov = general(
    "solve_discrete_lyapunov",
    _discrete_forward,
    infer=_infer_discrete,
    vjp_all=_discrete_vjp,
    jvp=_discrete_jvp,
    batch=batch_stacks,
)


@in_float32
def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, /, method: str | None = None) -> Array:
    """The solution X of `a @ X @ a.conj().T - X + q = 0`.

    Args:
        a: A square matrix, or a stack of them.
        q: A square matrix of the same size, or a stack of them.
        method: Accepted as in SciPy, "direct" or "bilinear"; the size decides.

    Raises:
        LinAlgError: A matrix is not square, or the product of two eigenvalues of `a` is 1.
        ShapeError: The sizes differ.
        ArgumentError: There is no such method.

    >>> gt.linalg.solve_discrete_lyapunov(np.eye(2) / 2, np.array([[3.0, 0.0], [0.0, 6.0]]))
    array([[4., 0.],
           [0., 8.]])
    """
    if method not in (None, "direct", "bilinear"):
        raise ArgumentError(
            f"solve_discrete_lyapunov: got method={method!r}, expected 'direct' or 'bilinear'"
        )
    a, q = matrices("solve_discrete_lyapunov", a, q)
    return discrete_lyapunov(a, q)
