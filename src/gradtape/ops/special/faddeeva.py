"""The function of Faddeeva and its derivatives of all orders, exact where they cancel.

w(z) = exp(−z²)·erfc(−i·z) has w′ = 2i/√π − 2z·w, and w⁽ⁿ⁺¹⁾ = −2z·w⁽ⁿ⁾ − 2n·w⁽ⁿ⁻¹⁾ from then on.
Far out w is nearly i/(√π·z), and the terms of these cancel: there an asymptotic series is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import elementwise_op
from gradtape.ops.erf import scipy_special
from gradtape.ops.special.common import as_complex, operand
from gradtape.ops.special.quadrature import blockwise
from gradtape.typing import Array, ArrayLike

_ROOT_PI = math.sqrt(math.pi)
# From here on, this many terms are exact.
FAR, _TERMS = 6.5, 40
# So near to the real axis the real part of w may be that of exp(−z²).
_AXIS = 1e-3


def _derivative(value: Any, z: Any, order: int, constant: complex = 0.0) -> Any:
    """f⁽ⁿ⁾(z) of a function f with f′ = constant − 2z·f, given its value."""
    lower: Any = 0.0
    for n in range(order):
        added = constant if n == 0 else 0.0
        lower, value = value, added - 2.0 * z * value - 2.0 * n * lower
    return value


def _near(xp: Any, z: Any, order: int) -> Any:
    """w⁽ⁿ⁾(z) by SciPy and the recurrence."""
    return _derivative(scipy_special(xp).wofz(z), z, order, 2j / _ROOT_PI)


def _tail(zeta: Any, square: Any, order: int) -> Any:
    """The derivative of order n of Σ (2k − 1)!!·sᵏ/ζ²ᵏ⁺¹ over k, given s."""
    ratio = square / (zeta * zeta)
    total: Any = 0.0
    for k in reversed(range(_TERMS)):
        odd, rising = range(1, 2 * k, 2), range(2 * k + 1, 2 * k + 1 + order)
        total = total * ratio + math.prod(odd) * math.prod(rising)
    return (-1.0) ** order * total / zeta ** (order + 1)


def _gaussian(xp: Any, z: Any, order: int) -> Any:
    """Derivatives of the term missing from the series: exp(−z²) on the real axis, twice it below.

    w(z) = 2·exp(−z²) − w(−z) carries the series over to the lower half of the plane.
    """
    low = (z.imag < _AXIS) & (abs(z) < 1e100)
    z, times = xp.where(low, z, 0.0), xp.where(z.imag <= -_AXIS, 2.0, 1.0)
    return xp.where(low, _derivative(times * xp.exp(-z * z), z, order), 0.0)


def _wofz_forward(xp: Any, z: Any, order: int) -> Any:
    dtype, z = z.dtype, z.astype(np.complex128)
    far = (abs(z) > FAR) & (order > 0)
    with np.errstate(all="ignore"):
        out = _near(xp, xp.where(far, 1.0, z), order)
        distant = xp.where(far, z, FAR)
        tail = 1j / _ROOT_PI * _tail(distant, 0.5, order) + _gaussian(xp, distant, order)
    return xp.where(far, tail, out).astype(dtype)[()]


# d w⁽ⁿ⁾(z) = w⁽ⁿ⁺¹⁾(z)·dz
wofz_derivative: Callable[..., Any] = elementwise_op(
    "wofz",
    _wofz_forward,
    lambda ct, _out, z, order: ct * wofz_derivative(z, order=order + 1),
)


def wofz(z: ArrayLike, /) -> Array:
    """Faddeeva function, exp(-z²)·erfc(-i·z); its result is complex.

    >>> gt.scipy.special.wofz(np.array([0.0]))
    array([1.+0.j])
    """
    return wofz_derivative(as_complex(z), order=0)


# ---- the profile of Voigt -----------------------------------------------------------------------


@blockwise
def _voigt_forward(xp: Any, x: Any, sigma: Any, gamma: Any, order: int, imaginary: bool) -> Any:
    """A part of V⁽ⁿ⁾ with V = w(ζ/(σ·√2))/(σ·√(2π)) and ζ = x + i·γ."""
    zeta, scale = x + 1j * gamma, sigma * math.sqrt(2.0)
    z = xp.where(sigma == 0, 1e100, zeta / xp.where(sigma == 0, 1.0, scale))
    far = abs(zeta) > FAR * abs(scale)
    near = _near(xp, xp.where(far, 0.0, z), order)
    normal = _gaussian(xp, xp.where(far, z, FAR), order)
    tail = 1j / math.pi * _tail(xp.where(far, zeta, FAR), sigma * sigma, order)
    power = _ROOT_PI * xp.where(sigma == 0, 1.0, scale) ** (order + 1)
    out = xp.where(far, tail + normal / power, near / power)
    out = out.imag if imaginary else out.real
    out = xp.where(xp.isinf(x) | xp.isinf(gamma) | xp.isinf(sigma), 0.0, out)
    return xp.where(xp.isnan(x) | xp.isnan(gamma) | xp.isnan(sigma), math.nan, out)


def _by_gamma(ct: Any, _out: Any, x: Any, sigma: Any, gamma: Any, **params: Any) -> Any:
    # Real and imaginary parts change places.
    order, imaginary = params["order"], params["imaginary"]
    other = _voigt(x, sigma, gamma, order=order + 1, imaginary=not imaginary)
    return ct * (other if imaginary else -other)


# V is a function of x + i·γ, and spreads like heat in σ²/2: dV = V′·dx + σ·V″·dσ + i·V′·dγ
_voigt: Callable[..., Any] = elementwise_op(
    "voigt",
    _voigt_forward,
    lambda ct, _out, x, sigma, gamma, order, imaginary: (
        ct * _voigt(x, sigma, gamma, order=order + 1, imaginary=imaginary)
    ),
    lambda ct, _out, x, sigma, gamma, order, imaginary: (
        ct * (sigma * _voigt(x, sigma, gamma, order=order + 2, imaginary=imaginary))
    ),
    _by_gamma,
)


def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike, /) -> Array:
    """Voigt profile: a normal density of deviation `sigma` and a Cauchy one of half-width `gamma`.

    >>> gt.scipy.special.voigt_profile(np.array([0.0]), 1.0, 1.0)
    array([0.20870928])
    """
    args = (operand(x), operand(sigma), operand(gamma))
    return _voigt(*args, order=0, imaginary=False)
