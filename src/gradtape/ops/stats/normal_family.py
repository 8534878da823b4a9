"""The normal distribution and those made of it, by their formulas at loc 0 and scale 1."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gradtape.ops.arithmetic import hypot
from gradtape.ops.cast import stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.erf import erf, erfinv, ndtr
from gradtape.ops.exponential import exp, expm1, log, log1p
from gradtape.ops.logaddexp import logaddexp
from gradtape.ops.select import where
from gradtape.ops.special.bessel_fixed import i0e
from gradtape.ops.special.common import series
from gradtape.ops.special.elementary import cosm1
from gradtape.ops.special.normal import log_ndtr, ndtri, ndtri_exp
from gradtape.ops.stats.continuous import LOG_2, POSITIVE
from gradtape.ops.stats.density import Continuous, between
from gradtape.ops.stats.tails import quiet_log
from gradtape.ops.trigonometric import cosh

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)

norm = Continuous(
    "norm",
    symmetric=True,
    logpdf=lambda z: -0.5 * (z * z) - HALF_LOG_2_PI,
    cdf=ndtr,
    logcdf=log_ndtr,
    ppf=ndtri,
    mean=0.0,
    var=1.0,
    entropy=HALF_LOG_2_PI + 0.5,
)

# ---- one half of it -----------------------------------------------------------------------------


def _log_erf_share(z: Any) -> Any:
    """log(erf(z/√2)/z) for z < 1, by the series of erf."""
    terms = [(-0.5) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(16)]
    return log(series(terms, z * z)) + (LOG_2 - HALF_LOG_2_PI)


def _halfnorm_logcdf(z: Any, log_z: Any) -> Any:
    low = z < 1
    near = where(low, log_z, 0.0) + _log_erf_share(where(low, z, 0.5))
    return where(low, near, log1p(-2 * ndtr(-where(low, 1.0, z))))


def _halfnorm_logsf(z: Any, _log_z: Any) -> Any:
    low = z < 1
    near = log1p(-erf(where(low, z, 0.5) * _ROOT_HALF))
    return where(low, near, log_ndtr(-where(low, 1.0, z)) + LOG_2)


halfnorm = Continuous(
    "halfnorm",
    support=POSITIVE,
    powers=(lambda: 0.0, None),
    logpdf=lambda z: -0.5 * (z * z) - HALF_LOG_2_PI + LOG_2,
    pdf=lambda z: exp(-0.5 * (z * z)) * math.sqrt(2.0 / math.pi),
    cdf=lambda z: erf(z * _ROOT_HALF),
    sf=lambda z: 2 * ndtr(-z),
    logcdf=_halfnorm_logcdf,
    logsf=_halfnorm_logsf,
    ppf=lambda q: erfinv(q) / _ROOT_HALF,
    isf=lambda q: -ndtri(0.5 * q),
    mean=math.sqrt(2 / math.pi),
    var=1 - 2 / math.pi,
    entropy=HALF_LOG_2_PI + 0.5 - LOG_2,
)

# ---- of its logarithm, and on a circle ----------------------------------------------------------

lognorm = Continuous(
    "lognorm",
    ("s",),
    support=POSITIVE,
    open_below=True,
    logpdf=lambda z, s: -0.5 * (log(z) / s) ** 2 - log(s) - log(z) - HALF_LOG_2_PI,
    cdf=lambda z, s: ndtr(log(z) / s),
    sf=lambda z, s: ndtr(-log(z) / s),
    logcdf=lambda z, s: log_ndtr(log(z) / s),
    logsf=lambda z, s: log_ndtr(-log(z) / s),
    ppf=lambda q, s: exp(s * ndtri(q)),
    isf=lambda q, s: exp(-s * ndtri(q)),
    mean=lambda s: exp(0.5 * s * s),
    var=lambda s: exp(s * s) * expm1(s * s),
    entropy=lambda s: log(s) + HALF_LOG_2_PI + 0.5,
)

_ROOT_OF_SHARE = math.sqrt(2.0 / math.pi)

skewnorm = Continuous(
    "skewnorm",
    ("a",),
    valid=isfinite,
    logpdf=lambda z, a: -0.5 * (z * z) - HALF_LOG_2_PI + LOG_2 + log_ndtr(a * z),
    mean=lambda a: _lean(a) * _ROOT_OF_SHARE,
    var=lambda a: 1 - (_lean(a) * _ROOT_OF_SHARE) ** 2,
)


def _lean(a: Any) -> Any:
    return a / hypot(a, 1.0)


def _invgauss_logpdf(z: Any, mu: Any) -> Any:
    far = z > 4 * mu  # where second derivatives of the square cancel
    square = (where(far, 1.0, z / mu) - 1) ** 2 / z
    outer = z / (mu * mu) - 2 / mu + 1 / z
    return -1.5 * log(z) - 0.5 * where(far, outer, square) - HALF_LOG_2_PI


invgauss = Continuous(
    "invgauss",
    ("mu",),
    support=POSITIVE,
    open_below=True,
    logpdf=_invgauss_logpdf,
    mean=lambda mu: mu,
    var=lambda mu: mu * mu * mu,
)

# I₀(κ)·e^−κ·√(2πκ) = Σ ((2k − 1)!!)²/(k!·8ᵏ)/κᵏ
_I0_TERMS = [math.prod(range(1, 2 * k, 2)) ** 2 / (math.factorial(k) * 8.0**k) for k in range(14)]


def _log_i0e(kappa: Any) -> Any:
    """The logarithm of the scaled Bessel function, by its asymptotic series where that is exact.

    Its derivative i1e/i0e − 1 would cancel there.
    """
    far = kappa > 60
    large = where(far, kappa, 60.0)
    outer = log(series(_I0_TERMS, 1 / large)) - 0.5 * log(large) - HALF_LOG_2_PI
    return where(far, outer, log(i0e(where(far, 1.0, kappa))))


vonmises = Continuous(
    "vonmises",
    ("kappa",),
    valid=lambda kappa: kappa >= 0,
    logpdf=lambda z, kappa: kappa * cosm1(z) - _log_i0e(kappa) - 2 * HALF_LOG_2_PI,
)

# ---- between bounds -----------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Below it derivatives of quotients by a density overflow.
_LEAST_DENSITY = 1e-150
_HALF_RULE = tuple(zip(_NODES[10:].tolist(), _WEIGHTS[10:].tolist(), strict=True))


def _ends(low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Bounds in the lower tail rather than the upper one, and whether they are close."""
    mirrored = low > 0
    a, b = where(mirrored, -high, low), where(mirrored, -low, high)
    return a, b, (b - a) * (1 + where(b > 0, b - a, -a)) < 1


def _log_mass(low: Any, high: Any) -> Any:
    """log(Φ(high) − Φ(low)), from the smaller tail, and by quadrature over a narrow interval."""
    a, b, narrow = _ends(low, high)
    half, rest = _narrow_mass(a, b, narrow)
    return where(narrow, log(half) + rest, _wide_log_mass(a, b, narrow))


def _wide_log_mass(a: Any, b: Any, narrow: Any) -> Any:
    a, b = where(narrow, -1.0, a), where(narrow, 0.0, b)
    top = log_ndtr(b)
    # There is no mass below minus infinity, and no share of an empty mass.
    none = (a == -math.inf) | (top == -math.inf)
    below = exp(log_ndtr(where(none, -1.0, a)) - where(none, 0.0, top))
    return top + log1p(-where(none, 0.0, below))


def _narrow_mass(a: Any, b: Any, narrow: Any) -> tuple[Any, Any]:
    """Half the width h, and the logarithm of φ(m)·∫ exp(−m·h·s − (h·s)²/2) ds from −1 to 1.

    m is the middle. Their product is the mass; h by itself may be 0.
    """
    a, b = where(narrow, a, -0.25), where(narrow, b, 0.25)
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    total: Any = 0.0
    for node, weight in _HALF_RULE:
        s = half * node
        total = total + 2 * weight * exp(-0.5 * (s * s)) * cosh(middle * s)
    return half, log(total) - 0.5 * (middle * middle) - HALF_LOG_2_PI


def _share(low: Any, high: Any, whole: Any) -> Any:
    """The share of a mass that lies between two bounds; `whole` is the logarithm of the mass."""
    a, b, narrow = _ends(low, high)
    half, rest = _narrow_mass(a, b, narrow)
    wide = exp(_wide_log_mass(a, b, narrow) - whole)
    return where(narrow, half * exp(rest - whole), wide)


def _truncated_tail(z: Any, a: Any, b: Any, *, upper: bool, logs: bool = False) -> Any:
    """A tail, or its logarithm, by itself; or by the other one if that is less."""
    whole = _log_mass(a, b)
    below, above = _share(a, z, whole), _share(z, b, whole)
    own, other = (above, below) if upper else (below, above)
    large = own > 0.5
    if not logs:
        return where(large, 1 - other, own)
    direct = (_log_mass(z, b) if upper else _log_mass(a, z)) - whole
    return where(large, log1p(-where(large, other, 0.5)), direct)


def _log_tail(a: Any) -> Any:
    """The logarithm of Φ(a), with a slope of 0 where a is −∞."""
    none = a == -math.inf
    return where(none, -math.inf, log_ndtr(where(none, -1.0, a)))


def _truncated_quantile(below: Any, above: Any, a: Any, b: Any) -> Any:
    """The point with given shares below and above it; from the smaller tail of the whole."""
    whole = _log_mass(a, b)
    log_below = logaddexp(_log_tail(a), quiet_log(below) + whole)
    lower = log_below < -LOG_2
    log_above = logaddexp(_log_tail(-b), quiet_log(above) + whole)
    z = where(
        lower,
        ndtri_exp(where(lower, log_below, -LOG_2)),
        -ndtri_exp(where(lower, -LOG_2, log_above)),
    )
    z = _into(z, a, b)
    # A Newton step: next to a bound the tails of the whole are not exact enough.
    density = exp(-0.5 * (z * z) - HALF_LOG_2_PI - whole)
    some = isfinite(z) & (density > _LEAST_DENSITY)
    near = where(some, z, between(a, b))
    away = where(below < 0.5, _share(a, near, whole) - below, above - _share(near, b, whole))
    step = where(some, away, 0.0) / where(some, density, 1.0)
    return _into(z - step, a, b)


def _into(z: Any, a: Any, b: Any) -> Any:
    """A point clipped to bounds that only rounding can have left: its derivatives stay."""
    below, above = z < a, z > b
    bound = where(below, a, where(above, b, 0.0))
    return z + stop_gradient(bound - where(below | above, z, 0.0))


truncnorm = Continuous(
    "truncnorm",
    ("a", "b"),
    support=(lambda a, _b: a, lambda _a, b: b),
    valid=lambda a, b: a < b,
    logpdf=lambda z, a, b: -0.5 * (z * z) - HALF_LOG_2_PI - _log_mass(a, b),
    cdf=functools.partial(_truncated_tail, upper=False),
    sf=functools.partial(_truncated_tail, upper=True),
    logcdf=functools.partial(_truncated_tail, upper=False, logs=True),
    logsf=functools.partial(_truncated_tail, upper=True, logs=True),
    ppf=lambda q, a, b: _truncated_quantile(q, 1 - q, a, b),
    isf=lambda q, a, b: _truncated_quantile(1 - q, q, a, b),
)
