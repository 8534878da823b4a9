"""Elliptic integrals and functions, differentiable in argument and parameter.

The parameter is `m`, the square of the modulus, as in SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import answers, elementwise
from gradtape.ops.erf import scipy_special, special
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import where
from gradtape.ops.special.common import of_scipy, with_params, with_results
from gradtape.ops.special.hypergeometric import hyp2f1
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
@elementwise(
    special("ellipk"),
    lambda ct, _out, m: ct * _ellipk_slope(m),
    replaces=("scipy.special.ellipk",),
)
def ellipk(m: ArrayLike, /) -> Array:
    """Complete elliptic integral of the first kind.

    >>> gt.special.ellipk(np.array([0.0, 0.5]))
    array([1.57079633, 1.85407468])
    """


# d K(1 − p) = −K′(1 − p)·dp
@elementwise(
    special("ellipkm1"),
    lambda ct, out, p: -ct * _ellipkm1_slope(out, p),
    replaces=("scipy.special.ellipkm1",),
)
def ellipkm1(p: ArrayLike, /) -> Array:
    """Complete elliptic integral of the first kind around m = 1, `ellipk` of 1 - p.

    >>> gt.special.ellipkm1(np.array([0.5, 1.0]))
    array([1.85407468, 1.57079633])
    """


def _ellipkm1_slope(k: Any, p: Any) -> Any:
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
@elementwise(
    special("ellipe"),
    lambda ct, _out, m: ct * _ellipe_slope(m),
    replaces=("scipy.special.ellipe",),
)
def ellipe(m: ArrayLike, /) -> Array:
    """Complete elliptic integral of the second kind.

    >>> gt.special.ellipe(np.array([0.0, 0.5]))
    array([1.57079633, 1.35064388])
    """


# ---- incomplete integrals -----------------------------------------------------------------------


def _ellipd_forward(xp: Any, phi: Any, m: Any) -> Any:
    """∫ sin²θ/√(1 − m·sin²θ) dθ from 0 to φ, by Carlson's R_D within half a period."""
    dtype = xp.result_type(phi, m)
    phi, m = (xp.asarray(v, np.float64) for v in (phi, m))
    turns = xp.rint(phi / math.pi)
    rest = phi - turns * math.pi
    s = xp.sin(rest)
    carlson = scipy_special(xp).elliprd
    part = s * s * s / 3 * carlson(xp.cos(rest) ** 2, 1 - m * s * s, 1.0)
    whole = xp.where(turns == 0, 0.0, 2 * turns / 3 * carlson(0.0, 1 - m, 1.0))
    return (part + whole).astype(dtype if dtype.kind == "f" else np.float64)


def _delta(phi: Any, m: Any) -> Any:
    s = sin(phi)
    return sqrt(1 - m * (s * s))


def _ellipd_by_phi(ct: Any, _out: Any, phi: Any, m: Any) -> Any:
    s = sin(phi)
    return ct * (s * s / sqrt(1 - m * (s * s)))


# D = (F − E)/m: dD = sin²φ/Δ·dφ + (∂F/∂m − D/2)/m·dm; the latter is not computed at m = 0
_ellipd = with_params(
    "ellipd",
    _ellipd_forward,
    _ellipd_by_phi,
    lambda ct, out, phi, m: ct * ((_ellipkinc_slope(phi, m, ellipkinc(phi, m)) - 0.5 * out) / m),  # type: ignore[has-type]
)


def _ellipkinc_slope(phi: Any, m: Any, f: Any) -> Any:
    """∂F/∂m = (F − D − sin φ·cos φ/Δ)/(2·(1 − m))."""
    rest = sin(phi) * cos(phi) / _delta(phi, m)
    return (f - _ellipd(phi, m) - rest) / (2 * (1 - m))


# dF = dφ/Δ + ∂F/∂m·dm with Δ = √(1 − m·sin²φ)
@elementwise(
    of_scipy("ellipkinc"),
    lambda ct, _out, phi, m: ct / _delta(phi, m),
    lambda ct, out, phi, m: ct * _ellipkinc_slope(phi, m, out),
    replaces=("scipy.special.ellipkinc",),
)
def ellipkinc(phi: ArrayLike, m: ArrayLike, /) -> Array:
    """Incomplete elliptic integral of the first kind.

    >>> gt.special.ellipkinc(np.array([0.0, 1.0]), 0.5)
    array([0.        , 1.08321677])
    """


# dE = Δ·dφ − D/2·dm with D = (F − E)/m
@elementwise(
    of_scipy("ellipeinc"),
    lambda ct, _out, phi, m: ct * _delta(phi, m),
    lambda ct, _out, phi, m: ct * (-0.5 * _ellipd(phi, m)),
    replaces=("scipy.special.ellipeinc",),
)
def ellipeinc(phi: ArrayLike, m: ArrayLike, /) -> Array:
    """Incomplete elliptic integral of the second kind.

    >>> gt.special.ellipeinc(np.array([0.0, 1.0]), 0.5)
    array([0.        , 0.92732988])
    """


# ---- functions of Jacobi ------------------------------------------------------------------------


def _ellipj_by_u(out: Any, _u: Any, m: Any) -> tuple[Any, ...]:
    sn, cn, dn, _ = out
    return cn * dn, -sn * dn, -m * sn * cn, dn


def _ellipj_by_m(out: Any, u: Any, m: Any) -> tuple[Any, ...]:
    # u = F(φ, m) stays: dφ = −∂F/∂m·Δ·dm, and Δ = dn
    sn, cn, dn, phi = out
    turn = -_ellipkinc_slope(phi, m, u) * dn
    return cn * turn, -sn * turn, -sn * (0.5 * sn + m * cn * turn) / dn, turn


# d(sn, cn, dn, φ) = (cn·dn, −sn·dn, −m·sn·cn, dn)·du, and by the turn of φ in m
_ellipj = with_results("ellipj", of_scipy("ellipj"), 4, _ellipj_by_u, _ellipj_by_m)


@answers("scipy.special.ellipj")
def ellipj(u: ArrayLike, m: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Elliptic functions of Jacobi, (sn, cn, dn, φ).

    >>> gt.special.ellipj(np.array([1.0]), 0.5)[0]
    array([0.80300182])
    """
    return _ellipj(u, m)  # type: ignore[no-any-return]


# ---- symmetric integrals of Carlson -------------------------------------------------------------


def _elliprd_by(one: Any, other: Any, z: Any) -> Any:
    """∂R_D(x, y, z)/∂x = (R_D(y, z, x) − R_D(x, y, z))/(2·(x − z))."""
    return (elliprd(other, z, one) - elliprd(one, other, z)) / (2 * (one - z))


def _elliprd_by_z(ct: Any, out: Any, x: Any, y: Any, z: Any) -> Any:
    # R_D is homogeneous of degree −3/2.
    parts = x * _elliprd_by(x, y, z) + y * _elliprd_by(y, x, z)
    return ct * ((-1.5 * out - parts) / z)


# dR_D by its relations; where two arguments are equal these are 0/0, and NaN
@elementwise(
    of_scipy("elliprd"),
    lambda ct, _out, x, y, z: ct * _elliprd_by(x, y, z),
    lambda ct, _out, x, y, z: ct * _elliprd_by(y, x, z),
    _elliprd_by_z,
    replaces=("scipy.special.elliprd",),
)
def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Symmetric elliptic integral of the second kind, degenerate in `z`.

    >>> gt.special.elliprd(0.0, 2.0, np.array([1.0]))
    array([1.79721035])
    """


# dR_F = −(R_D(y, z, x)·dx + R_D(z, x, y)·dy + R_D(x, y, z)·dz)/6
@elementwise(
    of_scipy("elliprf"),
    lambda ct, _out, x, y, z: ct * elliprd(y, z, x) * (-1 / 6),
    lambda ct, _out, x, y, z: ct * elliprd(z, x, y) * (-1 / 6),
    lambda ct, _out, x, y, z: ct * elliprd(x, y, z) * (-1 / 6),
    replaces=("scipy.special.elliprf",),
)
def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Completely symmetric elliptic integral of the first kind.

    >>> gt.special.elliprf(1.0, 2.0, np.array([0.0]))
    array([1.31102878])
    """


def _elliprg_by(x: Any, y: Any, z: Any) -> Any:
    """∂R_G/∂x = (R_F − x·R_D(y, z, x)/3)/4."""
    return 0.25 * (elliprf(x, y, z) - x * elliprd(y, z, x) * (1 / 3))


# dR_G = ∂R_G/∂x·dx + …, the same for all
@elementwise(
    of_scipy("elliprg"),
    lambda ct, _out, x, y, z: ct * _elliprg_by(x, y, z),
    lambda ct, _out, x, y, z: ct * _elliprg_by(y, z, x),
    lambda ct, _out, x, y, z: ct * _elliprg_by(z, x, y),
    replaces=("scipy.special.elliprg",),
)
def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Completely symmetric elliptic integral of the second kind.

    >>> gt.special.elliprg(1.0, 2.0, np.array([0.0]))
    array([0.95504945])
    """
