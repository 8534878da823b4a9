"""Riccati's equations of optimal control. Xᴴ is the conjugate transpose.

With the gain K that is best for X, the first derivative of X is the same as if K did not change:
it solves a Lyapunov equation with the matrix A − B·K of the closed loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape.core.define import added
from gradtape.ops.family import member
from gradtape.ops.linalg.common import adjoint, check_fit, explained
from gradtape.ops.linalg.equations import discrete_lyapunov, solve_continuous_lyapunov
from gradtape.ops.linalg.hermitian import symmetric_part
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.solve import solve, solve_stack
from gradtape.ops.linalg.stacks import matrices, matrixwise, summed
from gradtape.ops.norm import inexact
from gradtape.typing import Array, ArrayLike

_REMEDY = "expected a system that can be stabilised, and r that can be inverted"


def _one(a: Any, b: Any, q: Any, r: Any, discrete: bool) -> Any:
    name = "solve_discrete_are" if discrete else "solve_continuous_are"
    return explained(name, _REMEDY)(getattr(scipy_linalg(), name))(a, b, q, r)


def _gain(out: Any, a: Any, b: Any, r: Any, discrete: bool) -> Any:
    """K = R⁻¹·Bᴴ·X, or (R + Bᴴ·X·B)⁻¹·Bᴴ·X·A."""
    seen = adjoint(b) @ out
    return solve_stack(r + seen @ b, seen @ a) if discrete else solve_stack(r, seen)


def _lyapunov(a: Any, q: Any, discrete: bool) -> Any:
    """X = A·X·Aᴴ + Q, or A·X + X·Aᴴ + Q = 0."""
    return discrete_lyapunov(a, q) if discrete else solve_continuous_lyapunov(a, -q)


def _vjp(_wanted: Any, ct: Any, out: Any, a: Any, b: Any, _q: Any, r: Any, discrete: bool) -> Any:
    gain = _gain(out, a, b, r, discrete)
    loop = a - b @ gain
    back = _lyapunov(loop, ct, discrete)
    by_matrix = (out @ loop if discrete else out) @ (back + adjoint(back))
    return by_matrix, -(by_matrix @ adjoint(gain)), back, gain @ back @ adjoint(gain)


def _jvp(tangents: Sequence[Any], out: Any, a: Any, b: Any, _q: Any, r: Any, discrete: bool) -> Any:
    da, db, dq, dr = tangents
    gain = _gain(out, a, b, r, discrete)
    loop = a - b @ gain
    moved = added(da, None if db is None else -(db @ gain))
    change = added(dq, None if dr is None else adjoint(gain) @ dr @ gain)
    if moved is not None:
        half = adjoint(moved) @ (out @ loop if discrete else out)
        change = added(change, half + adjoint(half))
    return _lyapunov(adjoint(loop), change, discrete)


# AᴴX + XA − XB·K + Q = 0: Fᴴ·dX + dX·F = −(dQ + Kᴴ·dR·K + DᴴX + XD), with F = A − B·K and
# D = dA − dB·K; discrete: X = AᴴX(A − B·K) + Q, dX = Fᴴ·dX·F + dQ + Kᴴ·dR·K + DᴴXF + FᴴXD
_riccati = matrixwise("riccati", _one, vjp_all=summed(_vjp), jvp=_jvp, like=0)


def _solve_are(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    /,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
) -> Array:
    """The stabilising solution X of {equation}.

    Args:
        a: A square matrix, or a stack of them.
        b: A matrix with as many rows.
        q: A Hermitian matrix of the size of `a`; its Hermitian part is taken.
        r: A Hermitian matrix with as many columns as `b`{regular}; its Hermitian part is taken.
        e: A matrix of the size of `a` that can be inverted: {with_e}.
        s: A matrix of the shape of `b`{with_s}.

    Raises:
        LinAlgError: A matrix is not square, or there is no stabilising solution.
        ShapeError: The sizes do not fit.

    solve_continuous_are:
    >>> one = np.eye(1)
    >>> gt.linalg.solve_continuous_are(0 * one, one, 4 * one, one)
    array([[2.]])

    solve_discrete_are:
    >>> one = np.eye(1)
    >>> gt.linalg.solve_discrete_are(0 * one, one, 4 * one, one)
    array([[4.]])
    """
    a, q, r = *matrices(name, a, q), *matrices(name, r)
    b, sizes = inexact(b), (a.shape[-1], r.shape[-1])
    expected = f"b of {sizes[0]} rows and {sizes[1]} columns"
    check_fit(name, b.shape[-2:] == sizes, expected, a, b, q, r)
    q, r = symmetric_part(q), symmetric_part(r)
    s = None if s is None else inexact(s)
    if e is not None:
        # Between E⁻ᴴ and E⁻¹ it is the equation without E, for A·E⁻¹ in place of A.
        (e,) = matrices(name, e)
        a = adjoint(solve(adjoint(e), adjoint(a)))
        q = adjoint(solve(adjoint(e), adjoint(solve(adjoint(e), q))))
        s = None if s is None else solve(adjoint(e), s)
    if s is not None:
        # Completing the square: the cross term goes into A and Q.
        steady = solve(r, adjoint(s))
        a, q = a - b @ steady, q - s @ steady
    return _riccati(a, b, q, r, discrete=name == "solve_discrete_are")


solve_continuous_are = in_float32(
    member(
        "solve_continuous_are",
        _solve_are,
        equation="`aᴴX + Xa - (Xb + s)r⁻¹(bᴴX + sᴴ) + q = 0`",
        regular=", not singular",
        with_e="the equation is then `eᴴXa + aᴴXe - (eᴴXb + s)r⁻¹(bᴴXe + sᴴ) + q = 0`",
        with_s="",
    )
)
solve_discrete_are = in_float32(
    member(
        "solve_discrete_are",
        _solve_are,
        equation="`aᴴXa - X - (aᴴXb + s)(r + bᴴXb)⁻¹(bᴴXa + sᴴ) + q = 0`",
        regular="",
        with_e="`eᴴXe` then stands in place of X",
        with_s="; `r` must then not be singular",
    )
)
