"""Elementary functions that take care to be exact, and transforms of data made of them."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.ops.arithmetic import power
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log, log1p
from gradtape.ops.select import mask, where
from gradtape.ops.special.common import promoted, scipy_function, series, typed
from gradtape.ops.special.entropy import xlog1py
from gradtape.ops.trigonometric import sin
from gradtape.typing import Array, ArrayLike

_DEGREE = math.pi / 180.0


def _logit_element(x: Any) -> Any:
    (x,) = scalar.promoted(x, like="logit")
    # Near 1/2 the quotient is near 1, where its logarithm would lose digits.
    s = 2 * (x - 0.5)
    far = scalar.log(x / (1 - x))
    inside = scalar.absolute(s) <= 0.4
    return scalar.where(inside, scalar.log1p(s) - scalar.log1p(-s), far)


# d log(x/(1 − x)) = dx/(x·(1 − x))
@scipy_function(lambda ct, _out, x: ct / (x * (1 - x)), lower=_logit_element)
def logit(x: ArrayLike, /) -> Array:
    """Inverse of the logistic function, log(x/(1 - x)).

    >>> gt.scipy.special.logit(np.array([0.5, 1.0]))
    array([ 0., inf])
    """


# ---- (eˣ − 1)/x and the transforms of Box and Cox -----------------------------------------------


def exprel_slope(u: Any) -> Any:
    """The derivative of (eᵘ − 1)/u."""
    near = abs(u) < 1
    small, low, high = where(near, u, 0.0), where(u <= -1, u, -1.0), where(u >= 1, u, 1.0)
    terms = series([(k + 1) / math.factorial(k + 2) for k in range(20)], small)
    falling = (exp(low) - exprel(low)) / low
    # The same without the exponential, which overflows before the quotient does
    rising = exprel(high) * (1 - 1 / high) + 1 / high
    return where(near, terms, where(u < 0, falling, rising))


# d (eˣ − 1)/x = (eˣ − (eˣ − 1)/x)/x·dx
@scipy_function(lambda ct, _out, x: ct * exprel_slope(x))
def exprel(x: ArrayLike, /) -> Array:
    """Relative error exponential, (exp(x) - 1)/x, which is 1 at 0.

    >>> gt.scipy.special.exprel(np.array([0.0, 1.0]))
    array([1.        , 1.71828183])
    """


def _boxcox_by_parameter(ct: Any, y: Any, lmbda: Any) -> Any:
    # (x^λ − 1)/λ = y·exprel(λ·y) with y = log x; where x^λ vanishes, −1/λ
    gone = lmbda * y < -50
    u = where(gone, 0.0, lmbda) * where(isfinite(y), y, 1.0)
    slope = where(gone, 1.0, y) ** 2 * exprel_slope(u)
    return ct * where(gone, 1 / where(gone, lmbda, 1.0) ** 2, slope)


# d (x^λ − 1)/λ = x^(λ−1)·dx + y²·exprel′(λ·y)·dλ with y = log x
@scipy_function(
    lambda ct, _out, x, lmbda: ct * power(x, lmbda - 1),
    lambda ct, _out, x, lmbda: _boxcox_by_parameter(ct, log(x), *typed(ct.dtype, lmbda)),
)
def boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Transform of Box and Cox, (x^lmbda - 1)/lmbda, which is log x for lmbda = 0.

    >>> gt.scipy.special.boxcox(np.array([1.0, 4.0]), 0.5)
    array([0., 2.])
    """


# The same of 1 + x
@scipy_function(
    lambda ct, _out, x, lmbda: ct * exp(xlog1py(lmbda - 1, x)),
    lambda ct, _out, x, lmbda: _boxcox_by_parameter(ct, log1p(x), *typed(ct.dtype, lmbda)),
)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Transform of Box and Cox of 1 + x, exact for small x too.

    >>> gt.scipy.special.boxcox1p(np.array([0.0, 3.0]), 0.5)
    array([0., 2.])
    """


def _inverse_at_end(y: Any, lmbda: Any) -> tuple[Any, Any, Any]:
    """Where 1 + λy is 0; and there, the slopes of (1 + λy)^(1/λ) by y, and by λ."""
    end = lmbda * y == -1
    divisor = where(end, lmbda, 1.0)
    by_y = power(0.0 * divisor, 1 / divisor - 1)  # 0, 1 or infinite
    return end, by_y, where(by_y == 0, 0.0, by_y * where(end, y, 1.0) / divisor)


def _inverse_by_y(power: Any, y: Any, lmbda: Any) -> Any:
    end, at_end, _ = _inverse_at_end(y, lmbda)
    return where(end, at_end, power / (1 + where(end, 0.0, lmbda) * y))


def _inverse_by_parameter(power: Any, y: Any, lmbda: Any) -> Any:
    # log((1 + λy)^(1/λ)) = y·log(1 + u)/u with u = λ·y; its derivative is y²·h(u) with
    # h = (u/(1 + u) − log(1 + u))/u² = Σ (−1)ᵏ⁺¹·(k + 1)/(k + 2)·uᵏ
    u = lmbda * y
    end, _, at_end = _inverse_at_end(y, lmbda)
    near = abs(u) < 0.1
    small, large = where(near, u, 0.0), where(near | end, 1.0, u)
    terms = series([(-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(20)], small)
    direct = (large / (1 + large) - log1p(large)) / (large * large)
    return where(end, at_end, power * y * y * where(near, terms, direct))


# x = (1 + λ·y)^(1/λ): dx = x/(1 + λ·y)·dy + x·y²·h(λ·y)·dλ
@scipy_function(
    lambda ct, out, y, lmbda: ct * _inverse_by_y(out, *typed(ct.dtype, y, lmbda)),
    lambda ct, out, y, lmbda: ct * _inverse_by_parameter(out, *typed(ct.dtype, y, lmbda)),
)
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Inverse of `boxcox` in its first argument.

    >>> gt.scipy.special.inv_boxcox(np.array([0.0, 2.0]), 0.5)
    array([1., 4.])
    """


# The same minus 1
@scipy_function(
    lambda ct, out, y, lmbda: ct * _inverse_by_y(out + 1, *typed(ct.dtype, y, lmbda)),
    lambda ct, out, y, lmbda: ct * _inverse_by_parameter(out + 1, *typed(ct.dtype, y, lmbda)),
)
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Inverse of `boxcox1p` in its first argument.

    >>> gt.scipy.special.inv_boxcox1p(np.array([0.0, 2.0]), 0.5)
    array([0., 3.])
    """


def _powm1_by_base(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    x, y = typed(ct.dtype, x, y)
    zero = y == 0  # x⁰ is constant, also at x = 0.
    return mask(ct * (y * power(x, where(zero, 1.0, y - 1))), zero ^ True)


def _powm1_by_exponent(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    x, y = typed(ct.dtype, x, y)
    flat = (x == 0) & (y >= 0)  # 0^y is constant there, as `power` has it.
    return mask(ct * (power(x, y) * log(where(flat, 1.0, x))), flat ^ True)


# d(x^y − 1) = y·x^(y−1)·dx + x^y·log x·dy
@scipy_function(_powm1_by_base, _powm1_by_exponent)
def powm1(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Power minus one, exact where that is small.

    >>> gt.scipy.special.powm1(np.array([1.0, 3.0]), 2.0)
    array([0., 8.])
    """


# ---- angles in degrees --------------------------------------------------------------------------


# d(cos x − 1) = −sin x·dx
@scipy_function(lambda ct, _out, x: -ct * sin(x))
def cosm1(x: ArrayLike, /) -> Array:
    """Cosine minus one, exact for small arguments.

    >>> gt.scipy.special.cosm1(np.array([0.0, 1e-8]))
    array([ 0.e+00, -5.e-17])
    """


def radian(d: ArrayLike, m: ArrayLike, s: ArrayLike, /) -> Array:
    """An angle in degrees, minutes and seconds, in radians.

    >>> gt.scipy.special.radian(np.array([180.0]), 0.0, 0.0)
    array([3.14159265])
    """
    d, m, s = promoted(d, m, s)
    return _DEGREE * (d + m / 60.0 + s / 3600.0)


# d sin x° = π/180·cos x°·dx
@scipy_function(lambda ct, _out, x: ct * (_DEGREE * cosdg(x)))  # type: ignore[has-type]
def sindg(x: ArrayLike, /) -> Array:
    """Sine of an angle in degrees.

    >>> gt.scipy.special.sindg(np.array([30.0, 90.0]))
    array([0.5, 1. ])
    """


# d cos x° = −π/180·sin x°·dx
@scipy_function(lambda ct, _out, x: ct * (-_DEGREE * sindg(x)))
def cosdg(x: ArrayLike, /) -> Array:
    """Cosine of an angle in degrees.

    >>> gt.scipy.special.cosdg(np.array([0.0, 60.0]))
    array([1. , 0.5])
    """


# d tan x° = π/180/cos² x°·dx
@scipy_function(lambda ct, _out, x: ct * (_DEGREE / cosdg(x) ** 2))
def tandg(x: ArrayLike, /) -> Array:
    """Tangent of an angle in degrees.

    >>> gt.scipy.special.tandg(np.array([0.0, 45.0]))
    array([0., 1.])
    """


# d cot x° = −π/180/sin² x°·dx
@scipy_function(lambda ct, _out, x: ct * (-_DEGREE / sindg(x) ** 2))
def cotdg(x: ArrayLike, /) -> Array:
    """Cotangent of an angle in degrees.

    >>> gt.scipy.special.cotdg(np.array([45.0, 90.0]))
    array([1., 0.])
    """
