"""Riccati's equations of optimal control. Xᴴ is the conjugate transpose.

With the gain K that is best for X, the first derivative of X is the same as if K did not change:
it solves a Lyapunov equation with the matrix A − B·K of the closed loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general, unbroadcast
from gradtape.errors import ShapeError
from gradtape.ops.linalg.common import adjoint
from gradtape.ops.linalg.equations import discrete_lyapunov, solve_continuous_lyapunov
from gradtape.ops.linalg.hermitian import symmetric_part
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.lapack import scipy_linalg
from gradtape.ops.linalg.solve import solve, solve_stack
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


def _forward(_xp: Any, a: Any, b: Any, q: Any, r: Any, discrete: bool) -> Any:
    name = "solve_discrete_are" if discrete else "solve_continuous_are"
    dtype = common_dtype(a, b, q, r)

    def one(a: Any, b: Any, q: Any, r: Any) -> Any:
        try:
            out = getattr(scipy_linalg(), name)(a, b, q, r)
        except np.linalg.LinAlgError as error:
            remedy = "expected a system that can be stabilised, and r that can be inverted"
            raise failed(name, (a, b, q, r), str(error), remedy) from error
        return out.astype(dtype, copy=False)

    return over_stack(one, *(x.astype(dtype, copy=False) for x in (a, b, q, r)))


def _gain(out: Any, a: Any, b: Any, r: Any, discrete: bool) -> Any:
    """K = R⁻¹·Bᴴ·X, or (R + Bᴴ·X·B)⁻¹·Bᴴ·X·A."""
    seen = adjoint(b) @ out
    return solve_stack(r + seen @ b, seen @ a) if discrete else solve_stack(r, seen)


def _vjp(
    wanted: tuple[bool, ...], ct: Any, out: Any, a: Any, b: Any, _q: Any, r: Any, discrete: bool
) -> Any:
    gain = _gain(out, a, b, r, discrete)
    loop = a - b @ gain
    if discrete:
        back, steered = discrete_lyapunov(loop, ct), out @ loop
    else:
        back, steered = solve_continuous_lyapunov(loop, -ct), out
    by_matrix = steered @ (back + adjoint(back))
    return (
        unbroadcast(by_matrix, a.shape) if wanted[0] else None,
        unbroadcast(-(by_matrix @ adjoint(gain)), b.shape) if wanted[1] else None,
        unbroadcast(back, _q.shape) if wanted[2] else None,
        unbroadcast(gain @ back @ adjoint(gain), r.shape) if wanted[3] else None,
    )


def _jvp(tangents: Sequence[Any], out: Any, a: Any, b: Any, _q: Any, r: Any, discrete: bool) -> Any:
    da, db, dq, dr = tangents
    gain = _gain(out, a, b, r, discrete)
    loop = a - b @ gain
    moved = added(da, None if db is None else -(db @ gain))
    change = added(dq, None if dr is None else adjoint(gain) @ dr @ gain)
    if moved is not None:
        half = adjoint(moved) @ (out @ loop if discrete else out)
        change = added(change, half + adjoint(half))
    if discrete:
        return discrete_lyapunov(adjoint(loop), change)
    return solve_continuous_lyapunov(adjoint(loop), -change)


def _infer(a: Aval, b: Aval, q: Aval, r: Aval, discrete: bool) -> Aval:
    return Aval((*stack_of(a, b, q, r), *a.shape[-2:]), common_dtype(a, b, q, r))


# AᴴX + XA − XB·K + Q = 0: Fᴴ·dX + dX·F = −(dQ + Kᴴ·dR·K + DᴴX + XD), with F = A − B·K and
# D = dA − dB·K; discrete: X = AᴴX(A − B·K) + Q, dX = Fᴴ·dX·F + dQ + Kᴴ·dR·K + DᴴXF + FᴴXD
_riccati = general(
    "riccati",
    _forward,
    infer=_infer,
    vjp_all=_vjp,
    jvp=_jvp,
    batch=batch_stacks,
)


def _solve_are(
    name: str, a: ArrayLike, b: ArrayLike, q: ArrayLike, r: ArrayLike, e: Any, s: Any
) -> Any:
    a, q, r = *matrices(name, a, q), *matrices(name, r)
    b, discrete = inexact(b), name == "solve_discrete_are"
    if len(b.shape) < 2 or b.shape[-2:] != (a.shape[-1], r.shape[-1]):
        raise ShapeError(
            f"{name}: got a, b, q, r of shapes {a.shape}, {b.shape}, {q.shape}, {r.shape}, "
            f"expected b of {a.shape[-1]} rows and {r.shape[-1]} columns"
        )
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
    return _riccati(a, b, q, r, discrete=discrete)


@in_float32
def solve_continuous_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    /,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
) -> Array:
    """The stabilising solution X of `aᴴX + Xa - (Xb + s)r⁻¹(bᴴX + sᴴ) + q = 0`.

    Args:
        a: A square matrix, or a stack of them.
        b: A matrix with as many rows.
        q: A Hermitian matrix of the size of `a`; its Hermitian part is taken.
        r: A Hermitian matrix with as many columns as `b`, not singular; its Hermitian part is
            taken.
        e: A matrix of the size of `a` that can be inverted: the equation is then
            `eᴴXa + aᴴXe - (eᴴXb + s)r⁻¹(bᴴXe + sᴴ) + q = 0`.
        s: A matrix of the shape of `b`.

    Raises:
        LinAlgError: A matrix is not square, or there is no stabilising solution.
        ShapeError: The sizes do not fit.

    >>> one = np.eye(1)
    >>> gt.linalg.solve_continuous_are(0 * one, one, 4 * one, one)
    array([[2.]])
    """
    return _solve_are("solve_continuous_are", a, b, q, r, e, s)


@in_float32
def solve_discrete_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    /,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
) -> Array:
    """The stabilising solution X of `aᴴXa - X - (aᴴXb + s)(r + bᴴXb)⁻¹(bᴴXa + sᴴ) + q = 0`.

    Args:
        a: A square matrix, or a stack of them.
        b: A matrix with as many rows.
        q: A Hermitian matrix of the size of `a`; its Hermitian part is taken.
        r: A Hermitian matrix with as many columns as `b`; its Hermitian part is taken.
        e: A matrix of the size of `a` that can be inverted: `eᴴXe` then stands in place of X.
        s: A matrix of the shape of `b`; `r` must then not be singular.

    Raises:
        LinAlgError: A matrix is not square, or there is no stabilising solution.
        ShapeError: The sizes do not fit.

    >>> one = np.eye(1)
    >>> gt.linalg.solve_discrete_are(0 * one, one, 4 * one, one)
    array([[4.]])
    """
    return _solve_are("solve_discrete_are", a, b, q, r, e, s)
