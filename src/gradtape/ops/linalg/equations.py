"""Equations for a matrix: Sylvester's and Lyapunov's. Xᴴ is the conjugate transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.define import added
from gradtape.ops.checks import check_choice
from gradtape.ops.linalg.common import adjoint, check_fit, explained, failed
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import lapack, scipy_linalg
from gradtape.ops.linalg.stacks import matrices, matrixwise, summed
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike

# ---- Sylvester ----------------------------------------------------------------------------------


def _one_sylvester(a: Any, b: Any, q: Any) -> Any:
    """By triangular forms of both matrices, as Bartels and Stewart do."""
    if not all(np.isfinite(x).all() for x in (a, b, q)):
        return np.full(q.shape, np.nan, q.dtype)
    schur = scipy_linalg().schur
    (r, u), (s, v) = schur(a), schur(b.conj().T)
    turned = u.conj().T @ q @ v
    out, scale, info = lapack("trsyl", q.dtype)(r, s, turned, tranb="C")
    if info > 0:
        problem = "an eigenvalue of the first matrix is minus one of the second"
        raise failed("solve_sylvester", (a, b, q), problem, "expected none to add up to 0")
    return u @ (scale * out) @ v.conj().T


def _sylvester_vjp(_wanted: Any, ct: Any, out: Any, a: Any, b: Any, _q: Any) -> Any:
    back = _sylvester(adjoint(a), adjoint(b), ct)
    return -(back @ adjoint(out)), -(adjoint(out) @ back), back


def _sylvester_jvp(tangents: Sequence[Any], out: Any, a: Any, b: Any, _q: Any) -> Any:
    da, db, dq = tangents
    left, right = None if da is None else -(da @ out), None if db is None else -(out @ db)
    return _sylvester(a, b, added(dq, left, right))


# A·X + X·B = Q: A·dX + dX·B = dQ − dA·X − X·dB
_sylvester = matrixwise(
    "solve_sylvester",
    _one_sylvester,
    vjp_all=summed(_sylvester_vjp),
    jvp=_sylvester_jvp,
    divisors=(0, 1),
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
    q, sizes = inexact(q), (a.shape[-1], b.shape[-1])
    expected = f"the third of {sizes[0]} rows and {sizes[1]} columns"
    check_fit("solve_sylvester", q.shape[-2:] == sizes, expected, a, b, q)
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


@explained(
    "solve_discrete_lyapunov",
    "expected none to be",
    problem="the product of two eigenvalues of the first matrix is 1",
)
def _one_discrete(a: Any, q: Any) -> Any:
    with np.errstate(all="ignore"):
        out = scipy_linalg().solve_discrete_lyapunov(a, q)
    # SciPy before 1.17 divides by 0 where the equations are diagonal.
    if np.isinf(out).any():
        raise np.linalg.LinAlgError("singular")
    return out


def _discrete_vjp(_wanted: Any, ct: Any, out: Any, a: Any, _q: Any) -> Any:
    back = discrete_lyapunov(adjoint(a), ct)
    return back @ a @ adjoint(out) + adjoint(back) @ a @ out, back


def _discrete_jvp(tangents: Sequence[Any], out: Any, a: Any, _q: Any) -> Any:
    da, dq = tangents
    moved = None if da is None else da @ out @ adjoint(a) + a @ out @ adjoint(da)
    return discrete_lyapunov(a, added(dq, moved))


# X = A·X·Aᴴ + Q: dX = A·dX·Aᴴ + dQ + dA·X·Aᴴ + A·X·dAᴴ
discrete_lyapunov = matrixwise(
    "solve_discrete_lyapunov", _one_discrete, vjp_all=summed(_discrete_vjp), jvp=_discrete_jvp
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
    check_choice("solve_discrete_lyapunov", (None, "direct", "bilinear"), method=method)
    a, q = matrices("solve_discrete_lyapunov", a, q)
    return discrete_lyapunov(a, q)
