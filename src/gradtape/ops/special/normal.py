"""Relatives of the error function and the normal distribution, exact in the tails."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.ops.cast import imag
from gradtape.ops.erf import erf, ndtr
from gradtape.ops.exponential import exp
from gradtape.ops.select import where
from gradtape.ops.special.common import promoted, scipy_function, series
from gradtape.ops.special.faddeeva import FAR as FAR_IN_PLANE, wofz_derivative
from gradtape.typing import Array, ArrayLike

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2 = math.sqrt(2.0)
_ROOT_2_PI = math.sqrt(2.0 * math.pi)
# From here on, asymptotic series of a few terms are exact.
_FAR = 8.0


# ---- scaled functions ---------------------------------------------------------------------------


def _erfcx_partial(ct: Any, out: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return ct * (1j * wofz_derivative(1j * x, order=1))  # erfcx(z) = w(iz)
    near = 2.0 * x * out - 2.0 / _ROOT_PI
    # Far out the two terms cancel: −Σ (−1)ᵏ·(2k + 1)!/k!/(4x²)ᵏ/(√π·x²) is what they leave.
    far = x > _FAR
    z = where(far, x, _FAR)
    terms = [(-1) ** k * math.factorial(2 * k + 1) / math.factorial(k) for k in range(18)]
    tail = -series(terms, 0.25 / (z * z)) / (_ROOT_PI * z * z)
    return ct * where(far, tail, near)


# d exp(x²)·erfc(x) = (2x·erfcx(x) − 2/√π)·dx
@scipy_function(_erfcx_partial, lower=scalar.erfcx)
def erfcx(x: ArrayLike, /) -> Array:
    """Complementary error function times exp(x²), which neither overflows nor vanishes.

    >>> gt.scipy.special.erfcx(np.array([0.0, 100.0]))
    array([1.        , 0.00564161])
    """


# d erfi x = 2/√π·exp(x²)·dx
@scipy_function(lambda ct, _out, x: ct * (2.0 / _ROOT_PI * exp(x * x)))
def erfi(x: ArrayLike, /) -> Array:
    """Error function of an imaginary argument, -i·erf(i·x).

    >>> gt.scipy.special.erfi(np.array([0.0, 1.0]))
    array([0.        , 1.65042576])
    """


def _dawsn_partial(ct: Any, out: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        # F(z) = i·√π/2·(exp(−z²) − w(z)), and F′ is even: so that w is small, above.
        z = where(imag(x) < 0, -x, x)
        slope = -2.0 * z * exp(-z * z) - wofz_derivative(z, order=1)
        near = abs(x) < FAR_IN_PLANE
        return ct * where(near, 1.0 - 2.0 * x * out, (0.5j * _ROOT_PI) * slope)
    near = 1.0 - 2.0 * x * out
    # Far out: −Σ (2k − 1)!!/(2x²)ᵏ, k from 1
    far = abs(x) > _FAR
    z = where(far, x, _FAR)
    inverse = 0.5 / (z * z)
    odd = [float(math.prod(range(1, 2 * k + 2, 2))) for k in range(20)]
    return ct * where(far, -inverse * series(odd, inverse), near)


# d F(x) = (1 − 2x·F(x))·dx
@scipy_function(_dawsn_partial)
def dawsn(x: ArrayLike, /) -> Array:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to x.

    >>> gt.scipy.special.dawsn(np.array([0.0, 1.0]))
    array([0.        , 0.53807951])
    """


# ---- inverses -----------------------------------------------------------------------------------


# y = erfc⁻¹(x): dy = −√π/2·exp(y²)·dx
@scipy_function(lambda ct, out, _x: -ct * (_ROOT_PI / 2.0 * exp(out * out)), lower=scalar.erfcinv)
def erfcinv(x: ArrayLike, /) -> Array:
    """Inverse of the complementary error function, for arguments from 0 to 2.

    >>> gt.scipy.special.erfcinv(np.array([0.5, 1.5]))
    array([ 0.47693628, -0.47693628])
    """


# y = Φ⁻¹(p): dy = √(2π)·exp(y²/2)·dp
@scipy_function(lambda ct, out, _p: ct * (_ROOT_2_PI * exp(0.5 * out * out)), lower=scalar.ndtri)
def ndtri(p: ArrayLike, /) -> Array:
    """Quantile of the standard normal distribution.

    >>> gt.scipy.special.ndtri(np.array([0.5, 0.975]))
    array([0.        , 1.95996398])
    """


def _inside(p: Any) -> Any:
    """A probability, and NaN from 0 down and from 1 up."""
    return where((p > 0) & (p < 1), p, math.nan)


def nrdtrimn(p: ArrayLike, std: ArrayLike, x: ArrayLike, /) -> Array:
    """The mean of a normal distribution that is below `x` with probability `p`.

    >>> gt.scipy.special.nrdtrimn(0.5, 2.0, np.array([1.0]))
    array([1.])
    """
    p, std, x = promoted(p, std, x)
    return x - where(std > 0, std, math.nan) * ndtri(_inside(p))


def nrdtrisd(mn: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Array:
    """The standard deviation of a normal distribution that is below `x` with probability `p`.

    >>> gt.scipy.special.nrdtrisd(0.0, 0.975, np.array([1.95996398]))
    array([1.])
    """
    mn, p, x = promoted(mn, p, x)
    return (x - mn) / ndtri(_inside(p))


# ---- logarithms ---------------------------------------------------------------------------------


def normal_ratio(x: Any) -> Any:
    """φ(x)/Φ(x), the slope of log Φ: exact where both vanish."""
    below = x < 0
    tail = erfcx(where(below, x, 0.0) * (-1.0 / _ROOT_2))
    bulk = ndtr(where(below, 0.0, x))
    # φ/Φ = √(2/π)/erfcx(−x/√2) below 0
    above = where(below, math.sqrt(2.0 / math.pi), exp(-0.5 * x * x) * (1.0 / _ROOT_2_PI))
    return above / where(below, tail, bulk)


# d log Φ(x) = φ(x)/Φ(x)·dx
@scipy_function(lambda ct, _out, x: ct * normal_ratio(x), lower=scalar.log_ndtr)
def log_ndtr(x: ArrayLike, /) -> Array:
    """Logarithm of the standard normal distribution function, exact in both tails.

    >>> gt.scipy.special.log_ndtr(np.array([-100.0, 0.0]))
    array([-5.00552421e+03, -6.93147181e-01])
    """


# x = Φ⁻¹(eʸ): dx = Φ(x)/φ(x)·dy
@scipy_function(lambda ct, out, _y: ct / normal_ratio(out))
def ndtri_exp(y: ArrayLike, /) -> Array:
    """Inverse of `log_ndtr`.

    >>> gt.scipy.special.ndtri_exp(np.array([-5005.52420869]))
    array([-100.])
    """


# ---- Owen's function ----------------------------------------------------------------------------


def _owens_by_h(ct: Any, _out: Any, h: Any, a: Any) -> Any:
    return ct * (erf(a * h * (1.0 / _ROOT_2)) * exp(-0.5 * h * h) * (-0.5 / _ROOT_2_PI))


def _owens_by_a(ct: Any, _out: Any, h: Any, a: Any) -> Any:
    scale = 1.0 + a * a
    return ct * (exp(-0.5 * h * h * scale) / (2.0 * math.pi * scale))


# dT = −φ(h)·erf(a·h/√2)/2·dh + exp(−h²·(1 + a²)/2)/(2π·(1 + a²))·da
@scipy_function(_owens_by_h, _owens_by_a)
def owens_t(h: ArrayLike, a: ArrayLike, /) -> Array:
    """Owen's T function: the probability of X > h and 0 < Y < a·X for two normal variables.

    >>> gt.scipy.special.owens_t(np.array([0.0, 1.0]), 1.0)
    array([0.125     , 0.06674188])
    """
