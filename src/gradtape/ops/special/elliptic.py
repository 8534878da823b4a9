"""Elliptic integrals and functions, differentiable in argument and parameter.

The parameter is `m`, the square of the modulus, as in SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise_op
from gradtape.ops.erf import scipy_special
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import where
from gradtape.ops.special.carlson import carlson_integral
from gradtape.ops.special.common import operand, scipy_function
from gradtape.ops.special.hypergeometric import hyp2f1
from gradtape.ops.special.quadrature import blockwise
from gradtape.ops.trigonometric import cos, sin
from gradtape.typing import Array, ArrayLike

# ---- complete integrals -------------------------------------------------------------------------


def _around_zero(m: Any, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """One form for small m, where the other one divides by m."""
    small = abs(m) < 0.1
    return where(small, near(where(small, m, 0.0)), far(where(small, 0.5, m)))


def _ellipk_slope(m: Any) -> Any:
    return _around_zero(
        m,
        lambda m: (math.pi / 8) * hyp2f1(1.5, 1.5, 2, m),
        lambda m: (ellipe(m) / (1 - m) - ellipk(m)) / (2 * m),
    )


# d K(m) = (E/(1 − m) − K)/(2m)·dm; as a series π/8·₂F₁(3/2, 3/2; 2; m)
@scipy_function(lambda ct, _out, m: ct * _ellipk_slope(m))
def ellipk(m: ArrayLike, /) -> Array:
    """Complete elliptic integral of the first kind.

    >>> gt.scipy.special.ellipk(np.array([0.0, 0.5]))
    array([1.57079633, 1.85407468])
    """


# d K(1 − p) = −K′(1 − p)·dp
@scipy_function(lambda ct, _out, p: -ct * _ellipkm1_slope(p))
def ellipkm1(p: ArrayLike, /) -> Array:
    """Complete elliptic integral of the first kind around m = 1, `ellipk` of 1 - p.

    >>> gt.scipy.special.ellipkm1(np.array([0.5, 1.0]))
    array([1.85407468, 1.57079633])
    """


def _ellipkm1_slope(p: Any) -> Any:
    """K′(1 − p)."""
    small = abs(1 - p) < 0.1
    m, q = where(small, 1 - p, 0.0), where(small, 0.5, p)
    series = (math.pi / 8) * hyp2f1(1.5, 1.5, 2, m)
    return where(small, series, (ellipe(1 - q) / q - ellipkm1(q)) / (2 * (1 - q)))


def _ellipe_slope(m: Any) -> Any:
    return _around_zero(
        m,
        lambda m: (-math.pi / 8) * hyp2f1(0.5, 1.5, 2, m),
        lambda m: (ellipe(m) - ellipk(m)) / (2 * m),
    )


# d E(m) = (E − K)/(2m)·dm; as a series −π/8·₂F₁(1/2, 3/2; 2; m)
@scipy_function(lambda ct, _out, m: ct * _ellipe_slope(m))
def ellipe(m: ArrayLike, /) -> Array:
    """Complete elliptic integral of the second kind.

    >>> gt.scipy.special.ellipe(np.array([0.0, 0.5]))
    array([1.57079633, 1.35064388])
    """


def agm(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Arithmetic-geometric mean of two numbers of the same sign.

    >>> gt.scipy.special.agm(np.array([1.0, 24.0]), np.array([1.0, 6.0]))
    array([ 1.        , 13.45817148])
    """
    # π/4·(a + b)/K(((a − b)/(a + b))²)
    a, b = operand(a), operand(b)
    total = a + b
    nothing = total == 0
    share = (a / where(nothing, 1.0, total)) * (b / where(nothing, 1.0, total))
    mean = (0.25 * math.pi) * total / ellipkm1(where(nothing, 1.0, 4.0 * share))
    return where(nothing & (a != 0), math.nan, mean)


# ---- incomplete integrals -----------------------------------------------------------------------


def _integral(xp: Any, powers: tuple[int, int], cosine: Any, delta: Any) -> Any:
    """The integral of Carlson in the formula below, given cos²φ and Δ²."""
    elliprd = scipy_special(xp).elliprd
    if powers == (1, 0):
        return elliprd(cosine, delta, 1.0) / 1.5
    if powers == (1, 1):
        return elliprd(cosine, 1.0, delta) / 1.5
    n, j = powers
    return carlson_integral(
        xp, cosine, delta, 1.0 + 0.0 * delta, exponents=(0.5, j + 0.5, n - j + 0.5)
    )


@blockwise
def _moment_forward(xp: Any, phi: Any, m: Any, powers: tuple[int, int]) -> Any:
    """∫ sin²ⁿθ/Δ²ʲ⁺¹ dθ from 0 to φ, n from 1, of whole half turns and what is left of them.

    With s = sin φ it is ½·s²ⁿ⁺¹·∫ (t + cos²φ)^(−1/2)·(t + Δ²)^(−j−1/2)·(t + 1)^(j−n−1/2) dt.
    """
    turns = xp.rint(phi / math.pi)
    rest = phi - turns * math.pi
    s, cosine = xp.sin(rest), xp.cos(rest) ** 2
    part = 0.5 * s ** (2 * powers[0] + 1) * _integral(xp, powers, cosine, _square(s, cosine, m))
    half = _integral(xp, powers, 0.0 * m, xp.where(turns == 0, 1.0, 1 - m))
    return xp.where(m <= 1, part + xp.where(turns == 0, 0.0, turns * half), math.nan)


def _square(sine: Any, cosine: Any, m: Any) -> Any:
    """Δ² = 1 − m·sin²φ, given the sine and the square of the cosine; exact around m = 1."""
    return cosine + (1 - m) * (sine * sine)


def _delta(phi: Any, m: Any) -> Any:
    return sqrt(_square(sin(phi), cos(phi) ** 2, m))


def _moment_by_phi(ct: Any, _out: Any, phi: Any, m: Any, powers: tuple[int, int]) -> Any:
    n, j = powers
    return ct * (sin(phi) ** (2 * n) / _delta(phi, m) ** (2 * j + 1))


def _moment_by_m(ct: Any, _out: Any, phi: Any, m: Any, powers: tuple[int, int]) -> Any:
    n, j = powers
    return ct * ((j + 0.5) * _moment(phi, m, powers=(n + 1, j + 1)))


# With Δ = √(1 − m·sin²θ): d ∫ sin²ⁿθ/Δ²ʲ⁺¹ dθ = sin²ⁿφ/Δ²ʲ⁺¹·dφ + (j + ½)·∫ sin²ⁿ⁺²θ/Δ²ʲ⁺³ dθ·dm
_moment: Callable[..., Any] = elementwise_op(
    "elliptic_moment", _moment_forward, _moment_by_phi, _moment_by_m
)


def _ellipkinc_slope(phi: Any, m: Any) -> Any:
    """∂F/∂m."""
    return 0.5 * _moment(phi, m, powers=(1, 1))


# dF = dφ/Δ + ½·∫ sin²θ/Δ³ dθ·dm
@scipy_function(
    lambda ct, _out, phi, m: ct / _delta(phi, m),
    lambda ct, _out, phi, m: ct * _ellipkinc_slope(phi, m),
)
def ellipkinc(phi: ArrayLike, m: ArrayLike, /) -> Array:
    """Incomplete elliptic integral of the first kind.

    >>> gt.scipy.special.ellipkinc(np.array([0.0, 1.0]), 0.5)
    array([0.        , 1.08321677])
    """


# dE = Δ·dφ − ½·∫ sin²θ/Δ dθ·dm
@scipy_function(
    lambda ct, _out, phi, m: ct * _delta(phi, m),
    lambda ct, _out, phi, m: ct * (-0.5 * _moment(phi, m, powers=(1, 0))),
)
def ellipeinc(phi: ArrayLike, m: ArrayLike, /) -> Array:
    """Incomplete elliptic integral of the second kind.

    >>> gt.scipy.special.ellipeinc(np.array([0.0, 1.0]), 0.5)
    array([0.        , 0.92732988])
    """


# ---- functions of Jacobi ------------------------------------------------------------------------


def _ellipj_by_u(out: Any, _u: Any, m: Any) -> tuple[Any, ...]:
    sn, cn, dn, _ = out
    return cn * dn, -sn * dn, -m * sn * cn, dn


def _ellipj_by_m(out: Any, _u: Any, m: Any) -> tuple[Any, ...]:
    # u = F(φ, m) stays: dφ = −∂F/∂m·Δ·dm, and Δ = dn
    sn, cn, dn, phi = out
    turn = -_ellipkinc_slope(phi, m) * dn
    return cn * turn, -sn * turn, -sn * (0.5 * sn + m * cn * turn) / dn, turn


# d(sn, cn, dn, φ) = (cn·dn, −sn·dn, −m·sn·cn, dn)·du, and by the turn of φ in m
@scipy_function(_ellipj_by_u, _ellipj_by_m, outputs=4)
def ellipj(u: ArrayLike, m: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Elliptic functions of Jacobi, (sn, cn, dn, φ).

    >>> gt.scipy.special.ellipj(np.array([1.0]), 0.5)[0]
    array([0.80300182])
    """
