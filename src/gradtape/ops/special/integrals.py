"""Integrals that have names: sine, cosine, exponential, Fresnel's, the dilogarithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.ops.exponential import exp, log
from gradtape.ops.select import where
from gradtape.ops.special.common import scipy_function, series
from gradtape.ops.special.elementary import exprel
from gradtape.ops.trigonometric import cos, cosh, sin, sinc, sinh
from gradtape.typing import Array, ArrayLike


def _over_argument(function: Callable[[Any], Any], z: Any, sign: int) -> Any:
    """Sine or its hyperbolic kin over a complex argument, by its series around 0."""
    near = abs(z) < 0.5
    small, large = where(near, z, 0.0), where(near, 1.0, z)
    terms = series([sign**k / math.factorial(2 * k + 1) for k in range(8)], small * small)
    return where(near, terms, function(large) / large)


def _sici_slopes(_out: Any, x: Any) -> tuple[Any, ...]:
    # sinc is regular at 0, but not defined for complex numbers.
    by_si = _over_argument(sin, x, -1) if x.dtype.kind == "c" else sinc(x * (1 / math.pi))
    return by_si, cos(x) / x


# d(Si, Ci) = (sin x/x, cos x/x)·dx
@scipy_function(_sici_slopes, outputs=2)
def sici(x: ArrayLike, /) -> tuple[Array, Array]:
    """Sine and cosine integrals.

    >>> gt.scipy.special.sici(np.array([1.0]))
    (array([0.94608307]), array([0.33740392]))
    """


def _shichi_slopes(_out: Any, x: Any) -> tuple[Any, ...]:
    if x.dtype.kind == "c":
        return _over_argument(sinh, x, 1), cosh(x) / x
    rise, fall = exprel(x), exprel(-x)
    return 0.5 * (rise + fall), 0.5 * (rise - fall) + 1 / x


# d(Shi, Chi) = (sinh x/x, cosh x/x)·dx
@scipy_function(_shichi_slopes, outputs=2)
def shichi(x: ArrayLike, /) -> tuple[Array, Array]:
    """Hyperbolic sine and cosine integrals.

    >>> gt.scipy.special.shichi(np.array([1.0]))
    (array([1.05725088]), array([0.83786694]))
    """


def _fresnel_slopes(_out: Any, x: Any) -> tuple[Any, ...]:
    phase = (0.5 * math.pi) * (x * x)
    return sin(phase), cos(phase)


# d(S, C) = (sin(πx²/2), cos(πx²/2))·dx
@scipy_function(_fresnel_slopes, outputs=2)
def fresnel(x: ArrayLike, /) -> tuple[Array, Array]:
    """Integrals of Fresnel, (S, C).

    >>> gt.scipy.special.fresnel(np.array([1.0]))
    (array([0.43825915]), array([0.7798934]))
    """


# ---- exponential integrals ----------------------------------------------------------------------


def _expi_partial(ct: Any, _out: Any, x: Any) -> Any:
    half = exp(0.5 * x)  # eˣ overflows before the quotient does.
    return ct * (half * (half / x))


# d Ei = eˣ/x·dx
@scipy_function(_expi_partial)
def expi(x: ArrayLike, /) -> Array:
    """Exponential integral Ei.

    >>> gt.scipy.special.expi(np.array([1.0]))
    array([1.89511782])
    """


# d E₁ = −e⁻ˣ/x·dx
@scipy_function(lambda ct, _out, x: -ct * (exp(-x) / x))
def exp1(x: ArrayLike, /) -> Array:
    """Exponential integral E1.

    >>> gt.scipy.special.exp1(np.array([1.0]))
    array([0.21938393])
    """


def _expn_partial(ct: Any, out: Any, n: Any, x: Any) -> Any:
    lowest = n == 0
    below = expn(where(lowest, 0, n - 1), x)
    return -ct * where(lowest, out * (1 + 1 / x), below)


# d E_n = −E_{n−1}·dx, and E₀ = e⁻ˣ/x
@scipy_function("its order", _expn_partial)
def expn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Exponential integral of integer order `n`; the derivative is in `x`.

    >>> gt.scipy.special.expn(2, np.array([1.0]))
    array([0.14849551])
    """


# ---- dilogarithm --------------------------------------------------------------------------------


def _spence_partial(ct: Any, _out: Any, z: Any) -> Any:
    # Around 1 by the series of −log(1 + w)/w
    near = abs(z - 1) < 0.1
    w, far = where(near, z - 1, 0.0), where(near, 2.0, z)
    terms = series([(-1) ** (k + 1) / (k + 1) for k in range(20)], w)
    return ct * where(near, terms, log(far) / (1 - far))


# d Li₂(1 − z) = log z/(1 − z)·dz
@scipy_function(_spence_partial)
def spence(z: ArrayLike, /) -> Array:
    """Function of Spence, the dilogarithm of 1 - z.

    >>> gt.scipy.special.spence(np.array([0.0, 1.0]))
    array([1.64493407, 0.        ])
    """
