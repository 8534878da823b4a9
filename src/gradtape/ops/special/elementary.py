"""Elementary functions that take care to be exact, and transforms of data made of them."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.ops.arithmetic import power
from gradtape.ops.erf import special
from gradtape.ops.exponential import exp, log, log1p, sqrt
from gradtape.ops.select import maximum, minimum, where
from gradtape.ops.special.common import doubled, of_scipy, series
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
@elementwise(
    special("logit"),
    lambda ct, _out, x: ct / (x * (1 - x)),
    replaces=("scipy.special.logit",),
    lower=_logit_element,
)
def logit(x: ArrayLike, /) -> Array:
    """Inverse of the logistic function, log(x/(1 - x)).

    >>> gt.special.logit(np.array([0.5, 1.0]))
    array([ 0., inf])
    """


# ---- (eˣ − 1)/x and the transforms of Box and Cox -----------------------------------------------


def exprel_slope(u: Any) -> Any:
    """The derivative of (eᵘ − 1)/u."""
    near = abs(u) < 1
    small, large = where(near, u, 0.0), where(near, 1.0, u)
    terms = series([(k + 1) / math.factorial(k + 2) for k in range(20)], small)
    return where(near, terms, (exp(large) - exprel(large)) / large)


# d (eˣ − 1)/x = (eˣ − (eˣ − 1)/x)/x·dx
@elementwise(
    special("exprel"),
    lambda ct, _out, x: ct * exprel_slope(x),
    replaces=("scipy.special.exprel",),
)
def exprel(x: ArrayLike, /) -> Array:
    """Relative error exponential, (exp(x) - 1)/x, which is 1 at 0.

    >>> gt.special.exprel(np.array([0.0, 1.0]))
    array([1.        , 1.71828183])
    """


def _boxcox_by_parameter(ct: Any, y: Any, lmbda: Any) -> Any:
    # (x^λ − 1)/λ = y·exprel(λ·y) with y = log x
    return ct * (y * y * exprel_slope(lmbda * y))


# d (x^λ − 1)/λ = x^(λ−1)·dx + y²·exprel′(λ·y)·dλ with y = log x
@elementwise(
    of_scipy("boxcox"),
    lambda ct, _out, x, lmbda: ct * power(x, lmbda - 1),
    lambda ct, _out, x, lmbda: _boxcox_by_parameter(ct, log(x), lmbda),
    replaces=("scipy.special.boxcox",),
)
def boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Transform of Box and Cox, (x^lmbda - 1)/lmbda, which is log x for lmbda = 0.

    >>> gt.special.boxcox(np.array([1.0, 4.0]), 0.5)
    array([0., 2.])
    """


# The same of 1 + x
@elementwise(
    of_scipy("boxcox1p"),
    lambda ct, _out, x, lmbda: ct * exp((lmbda - 1) * log1p(x)),
    lambda ct, _out, x, lmbda: _boxcox_by_parameter(ct, log1p(x), lmbda),
    replaces=("scipy.special.boxcox1p",),
)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Transform of Box and Cox of 1 + x, exact for small x too.

    >>> gt.special.boxcox1p(np.array([0.0, 3.0]), 0.5)
    array([0., 2.])
    """


def _inverse_by_parameter(power: Any, y: Any, lmbda: Any) -> Any:
    # log((1 + λy)^(1/λ)) = y·log(1 + u)/u with u = λ·y; its derivative is y²·h(u) with
    # h = (u/(1 + u) − log(1 + u))/u² = Σ (−1)ᵏ⁺¹·(k + 1)/(k + 2)·uᵏ
    u = lmbda * y
    near = abs(u) < 0.1
    small, large = where(near, u, 0.0), where(near, 1.0, u)
    terms = series([(-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(20)], small)
    direct = (large / (1 + large) - log1p(large)) / (large * large)
    return power * y * y * where(near, terms, direct)


# x = (1 + λ·y)^(1/λ): dx = x/(1 + λ·y)·dy + x·y²·h(λ·y)·dλ
@elementwise(
    of_scipy("inv_boxcox"),
    lambda ct, out, y, lmbda: ct * (out / (1 + lmbda * y)),
    lambda ct, out, y, lmbda: ct * _inverse_by_parameter(out, y, lmbda),
    replaces=("scipy.special.inv_boxcox",),
)
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Inverse of `boxcox` in its first argument.

    >>> gt.special.inv_boxcox(np.array([0.0, 2.0]), 0.5)
    array([1., 4.])
    """


# The same minus 1
@elementwise(
    of_scipy("inv_boxcox1p"),
    lambda ct, out, y, lmbda: ct * ((out + 1) / (1 + lmbda * y)),
    lambda ct, out, y, lmbda: ct * _inverse_by_parameter(out + 1, y, lmbda),
    replaces=("scipy.special.inv_boxcox1p",),
)
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """Inverse of `boxcox1p` in its first argument.

    >>> gt.special.inv_boxcox1p(np.array([0.0, 2.0]), 0.5)
    array([0., 3.])
    """


# d(x^y − 1) = y·x^(y−1)·dx + x^y·log x·dy
@elementwise(
    of_scipy("powm1"),
    lambda ct, _out, x, y: ct * (y * power(x, y - 1)),
    lambda ct, _out, x, y: ct * (power(x, y) * log(x)),
    replaces=("scipy.special.powm1",),
)
def powm1(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Power minus one, exact where that is small.

    >>> gt.special.powm1(np.array([1.0, 3.0]), 2.0)
    array([0., 8.])
    """


# ---- angles in degrees --------------------------------------------------------------------------


# d(cos x − 1) = −sin x·dx
@elementwise(special("cosm1"), lambda ct, _out, x: -ct * sin(x), replaces=("scipy.special.cosm1",))
def cosm1(x: ArrayLike, /) -> Array:
    """Cosine minus one, exact for small arguments.

    >>> gt.special.cosm1(np.array([0.0, 1e-8]))
    array([ 0.e+00, -5.e-17])
    """


# d sin x° = π/180·cos x°·dx
@elementwise(
    special("sindg"),
    lambda ct, _out, x: ct * (_DEGREE * cosdg(x)),  # type: ignore[has-type]
    replaces=("scipy.special.sindg",),
)
def sindg(x: ArrayLike, /) -> Array:
    """Sine of an angle in degrees.

    >>> gt.special.sindg(np.array([30.0, 90.0]))
    array([0.5, 1. ])
    """


# d cos x° = −π/180·sin x°·dx
@elementwise(
    special("cosdg"),
    lambda ct, _out, x: ct * (-_DEGREE * sindg(x)),
    replaces=("scipy.special.cosdg",),
)
def cosdg(x: ArrayLike, /) -> Array:
    """Cosine of an angle in degrees.

    >>> gt.special.cosdg(np.array([0.0, 60.0]))
    array([1. , 0.5])
    """


# d tan x° = π/180·(1 + tan² x°)·dx
@elementwise(
    special("tandg"),
    lambda ct, out, _x: ct * (_DEGREE * (1 + out * out)),
    replaces=("scipy.special.tandg",),
)
def tandg(x: ArrayLike, /) -> Array:
    """Tangent of an angle in degrees.

    >>> gt.special.tandg(np.array([0.0, 45.0]))
    array([0., 1.])
    """


# d cot x° = −π/180·(1 + cot² x°)·dx
@elementwise(
    special("cotdg"),
    lambda ct, out, _x: ct * (-_DEGREE * (1 + out * out)),
    replaces=("scipy.special.cotdg",),
)
def cotdg(x: ArrayLike, /) -> Array:
    """Cotangent of an angle in degrees.

    >>> gt.special.cotdg(np.array([45.0, 90.0]))
    array([1., 0.])
    """


# ---- losses -------------------------------------------------------------------------------------


def _huber_element(delta: Any, r: Any) -> Any:
    size = scalar.absolute(r)
    inside = scalar.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return scalar.where(delta < 0, math.inf, inside)


# huber = r²/2 for |r| ≤ δ, else δ·(|r| − δ/2): dr is clipped to ±δ; dδ is |r| − δ outside
@elementwise(
    of_scipy("huber"),
    lambda ct, _out, delta, r: ct * maximum(abs(r) - delta, 0),
    lambda ct, _out, delta, r: ct * maximum(minimum(r, delta), -delta),
    replaces=("scipy.special.huber",),
    lower=doubled("huber", _huber_element),
)
def huber(delta: ArrayLike, r: ArrayLike, /) -> Array:
    """Loss of Huber: a parabola up to `delta`, straight beyond; inf for a negative `delta`.

    >>> gt.special.huber(1.0, np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    """


def _pseudo_huber_by_delta(ct: Any, _out: Any, delta: Any, r: Any) -> Any:
    ratio = r / delta
    root = sqrt(1 + ratio * ratio)
    # 2δ·(√ − 1) − r²/(δ·√), with √ − 1 = ratio²/(√ + 1)
    return ct * (delta * (ratio * ratio) * (2 / (root + 1) - 1 / root))


def _pseudo_huber_by_r(ct: Any, _out: Any, delta: Any, r: Any) -> Any:
    ratio = r / delta
    return ct * (r / sqrt(1 + ratio * ratio))


# d δ²·(√(1 + (r/δ)²) − 1) = r/√·dr + (2δ·(√ − 1) − r²/(δ·√))·dδ
@elementwise(
    of_scipy("pseudo_huber"),
    _pseudo_huber_by_delta,
    _pseudo_huber_by_r,
    replaces=("scipy.special.pseudo_huber",),
)
def pseudo_huber(delta: ArrayLike, r: ArrayLike, /) -> Array:
    """Smooth form of the loss of Huber.

    >>> gt.special.pseudo_huber(1.0, np.array([0.0, 1.0]))
    array([0.        , 0.41421356])
    """
