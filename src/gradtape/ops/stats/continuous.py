"""Continuous distributions of elementary functions, by formulas for loc 0 and scale 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from gradtape.ops.activation import sigmoid
from gradtape.ops.arithmetic import absolute, power
from gradtape.ops.exponential import exp, expm1, log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.common import series
from gradtape.ops.special.elementary import logit
from gradtape.ops.special.gamma import gamma as gamma_of, lgamma
from gradtape.ops.stats.density import Continuous, reflected
from gradtape.ops.stats.tails import (
    VANISHED,
    capped,
    exp_minus,
    log1p_square,
    log_one_minus_exp,
    one_minus_exp,
    quiet_log,
)
from gradtape.ops.trigonometric import arctan, arctan2, sin, tan

LOG_2, LOG_PI = math.log(2.0), math.log(math.pi)
EULER_GAMMA = 0.5772156649015329
POSITIVE = (0.0, math.inf)


def finite_above(
    least: float, shape: Any, moment: Callable[[Any], Any], otherwise: float = math.inf
) -> Any:
    """A moment that is infinite unless a shape parameter is greater than a number."""
    finite = shape > least
    return where(finite, moment(where(finite, shape, least + 1.0)), otherwise)


# ---- of bounded and half-bounded support --------------------------------------------------------

uniform = Continuous(
    "uniform",
    support=(0.0, 1.0),
    powers=(lambda: 0.0, None),
    logpdf=lambda z: 0.0 * z,
    pdf=lambda z: 1.0 + 0.0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    logcdf=lambda _z, log_z: log_z,
    logsf=lambda z, _log_z: log1p(-z),
    ppf=lambda q: q,
    isf=lambda q: 1 - q,
    mean=0.5,
    var=1 / 12,
    entropy=0.0,
)

expon = Continuous(
    "expon",
    support=POSITIVE,
    powers=(lambda: 0.0, None),
    logpdf=lambda z: -z,
    pdf=lambda z: exp(-z),
    cdf=one_minus_exp,
    sf=lambda z: exp(-z),
    logcdf=log_one_minus_exp,
    logsf=lambda z, _log_z: -z,
    ppf=lambda q: -log1p(-q),
    isf=lambda q: -log(q),
    mean=1.0,
    var=1.0,
    entropy=1.0,
)

rayleigh = Continuous(
    "rayleigh",
    support=POSITIVE,
    powers=(lambda: 1.0, None),
    logpdf=lambda z: -0.5 * (z * z),
    pdf=lambda z: z * exp(-0.5 * (z * z)),
    cdf=lambda z: one_minus_exp(0.5 * (z * z)),
    sf=lambda z: exp(-0.5 * (z * z)),
    logcdf=lambda z, log_z: log_one_minus_exp(0.5 * (z * z), 2 * log_z - LOG_2),
    logsf=lambda z, _log_z: -0.5 * (z * z),
    ppf=lambda q: power(-2 * log1p(-q), 0.5),
    isf=lambda q: power(-2 * log(q), 0.5),
    mean=math.sqrt(math.pi / 2),
    var=2 - math.pi / 2,
    entropy=1 + 0.5 * EULER_GAMMA - 0.5 * LOG_2,
)

# log Γ(1 + 2ε) − 2·log Γ(1 + ε) = Σ (−ε)ᵏ·ζ(k)·(2ᵏ − 2)/k for k ≥ 2
_ZETA = (
    *(1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.0369277551433699),
    *(1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822),
)
_GAMMA_TERMS = [zeta * (-1) ** k * (2**k - 2) / k for k, zeta in enumerate(_ZETA, 2)]


def _weibull_var(c: Any) -> Any:
    """Γ(1 + 2/c) − Γ(1 + 1/c)², by the logarithm of the quotient where they are close."""
    far = c > 100
    small, near = 1 / where(far, c, 100.0), where(far, 1.0, c)
    outer = small * small * series(_GAMMA_TERMS, small)
    inner = lgamma(1 + 2 / near) - 2 * lgamma(1 + 1 / near)
    return gamma_of(1 + 1 / c) ** 2 * expm1(where(far, outer, inner))


weibull_min = Continuous(
    "weibull_min",
    ("c",),
    support=POSITIVE,
    powers=(lambda c: c - 1, None),
    logpdf=lambda z, c: log(c) - power(z, c),
    cdf=lambda z, c: one_minus_exp(power(z, c)),
    sf=lambda z, c: exp_minus(power(z, c)),
    logcdf=lambda z, log_z, c: log_one_minus_exp(power(z, c), c * log_z),
    logsf=lambda z, _log_z, c: -power(z, c),
    ppf=lambda q, c: power(-log1p(-q), 1 / c),
    isf=lambda q, c: power(-log(q), 1 / c),
    mean=lambda c: gamma_of(1 + 1 / c),
    var=_weibull_var,
    entropy=lambda c: 1 + EULER_GAMMA * (1 - 1 / c) - log(c),
)


def _pareto_logcdf(z: Any, b: Any) -> Any:
    return log_one_minus_exp(b * log(z), log(b) + log(log(z)))


pareto = Continuous(
    "pareto",
    ("b",),
    support=(1.0, math.inf),
    logpdf=lambda z, b: log(b) - (b + 1) * log(z),
    cdf=lambda z, b: one_minus_exp(b * log(z)),
    sf=lambda z, b: exp(-b * log(z)),
    logcdf=_pareto_logcdf,
    logsf=lambda z, b: -b * log(z),
    ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: exp(-log(q) / b),
    mean=lambda b: finite_above(1, b, lambda b: 1 + 1 / (b - 1)),
    var=lambda b: finite_above(2, b, lambda b: b / (b - 1) ** 2 / (b - 2)),
    entropy=lambda b: 1 + 1 / b - log(b),
)

# ---- of unbounded support -----------------------------------------------------------------------


def _cauchy_tail_quantile(q: Any) -> Any:
    """The point whose upper tail is q: cot πq, by the smaller tail if it is small."""
    lower, upper = q < 0.25, q > 0.75
    tail = where(lower, q, where(upper, 1 - q, 0.25))
    outer = 1 / tan(math.pi * tail)
    inner = tan(math.pi * (0.5 - where(lower | upper, 0.5, q)))
    return where(lower, outer, where(upper, -outer, inner))


def _cauchy_log_tail(z: Any) -> Any:
    """The logarithm of the probability of more than z; far out that is 1/(π·z)."""
    far, below = 1e-8 * z > 1, z < 0
    near = log(arctan2(1.0, where(far | below, 1.0, z)) / math.pi)
    bulk = log1p(-arctan2(1.0, where(below, -z, 1.0)) / math.pi)
    return where(far, -LOG_PI - log(where(far, z, 1.0)), where(below, bulk, near))


cauchy = Continuous(
    "cauchy",
    symmetric=True,
    logpdf=lambda z: -LOG_PI - log1p_square(z),
    sf=lambda z: arctan2(1.0, z) / math.pi,
    logsf=_cauchy_log_tail,
    isf=_cauchy_tail_quantile,
    mean=math.nan,
    var=math.nan,
    entropy=LOG_PI + 2 * LOG_2,
)


def _halfcauchy_logcdf(z: Any) -> Any:
    low = z < 1
    near = quiet_log(arctan(where(low, z, 0.5)) * (2 / math.pi))
    return where(low, near, log1p(-arctan2(1.0, where(low, 1.0, z)) * (2 / math.pi)))


def _halfcauchy_logsf(z: Any) -> Any:
    low = z < 1
    near = log1p(-arctan(where(low, z, 0.5)) * (2 / math.pi))
    return where(low, near, _cauchy_log_tail(where(low, 1.0, z)) + LOG_2)


def _halfcauchy_quantile(below: Any, above: Any) -> Any:
    """The point with given shares below and above it, from the smaller one."""
    low = below < 0.5
    near = tan(0.5 * math.pi * where(low, below, 0.5))
    return where(low, near, 1 / tan(0.5 * math.pi * where(low, 0.5, above)))


halfcauchy = Continuous(
    "halfcauchy",
    support=POSITIVE,
    logpdf=lambda z: LOG_2 - LOG_PI - log1p_square(z),
    cdf=lambda z: arctan(z) * (2 / math.pi),
    sf=lambda z: arctan2(1.0, z) * (2 / math.pi),
    logcdf=_halfcauchy_logcdf,
    logsf=_halfcauchy_logsf,
    ppf=lambda q: _halfcauchy_quantile(q, 1 - q),
    isf=lambda q: _halfcauchy_quantile(1 - q, q),
    mean=math.inf,
    var=math.inf,
    entropy=LOG_2 + LOG_PI,
)


def _laplace_tail(z: Any) -> Any:
    """The probability of more than z."""
    upper = z > 0
    # Not by |z|, which has a kink where this has none.
    below = 0.5 * exp(where(upper, 0.0, z))
    return where(upper, 0.5 * exp(-where(upper, z, 0.0)), 1 - below)


def _laplace_log_tail(z: Any) -> Any:
    upper = z > 0
    below = 0.5 * exp(where(upper, 0.0, z))
    return where(upper, -z - LOG_2, log1p(-below))


def _laplace_quantile(q: Any) -> Any:
    upper = q > 0.5
    return where(upper, -log(2 * where(upper, 1 - q, 0.5)), log(2 * where(upper, 0.5, q)))


laplace = Continuous(
    "laplace",
    symmetric=True,
    logpdf=lambda z: -absolute(z) - LOG_2,
    sf=_laplace_tail,
    logsf=_laplace_log_tail,
    ppf=_laplace_quantile,
    mean=0.0,
    var=2.0,
    entropy=1 + LOG_2,
)


def _logistic_tail(z: Any) -> Any:
    """The probability of less than z, by the rest where that is small: its slope is exact."""
    upper = z > 0
    return where(upper, 1 - sigmoid(-where(upper, z, 0.0)), sigmoid(where(upper, 0.0, z)))


def _logistic_log_tail(z: Any) -> Any:
    """Its logarithm; `log_sigmoid` loses the second derivative far below 0."""
    upper = z > 0
    size = where(upper, z, -z)
    return where(upper, 0.0, z) - log1p(exp(-size))


logistic = Continuous(
    "logistic",
    symmetric=True,
    logpdf=lambda z: _logistic_log_tail(z) + _logistic_log_tail(-z),
    cdf=_logistic_tail,
    logcdf=_logistic_log_tail,
    ppf=logit,
    mean=0.0,
    var=math.pi**2 / 3,
    entropy=2.0,
)


def _fisk_odds(z: Any, c: Any) -> tuple[Any, Any]:
    """The smaller one of the odds zᶜ and their inverse, and whether the inverse is."""
    upper = z > 1
    return power(where(upper, 1 / where(upper, z, 1.0), z), c), upper


def _fisk_logpdf(z: Any, c: Any) -> Any:
    odds, upper = _fisk_odds(z, c)
    return log(c) - 2 * log1p(odds) - where(upper, 2 * c * log(where(upper, z, 1.0)), 0.0)


def _fisk_tail(z: Any, c: Any, *, lower: bool) -> Any:
    odds, upper = _fisk_odds(z, c)
    small = odds / (1 + odds)
    return where(upper == lower, 1 - small, small)


def _fisk_log_tail(z: Any, log_z: Any, c: Any, *, lower: bool) -> Any:
    odds, upper = _fisk_odds(z, c)
    away = upper == lower
    size = c * where(away, 0.0, where(upper, -log_z, log_z))
    return size - log1p(odds)


# x/sin x = Σ gₖ·x^2k, the inverse of the series of sin x/x
_OVER_SINE = [1.0]
for _k in range(1, 18):
    _terms = ((-1) ** j / math.factorial(2 * j + 1) * _OVER_SINE[_k - j] for j in range(1, _k + 1))
    _OVER_SINE.append(-sum(_terms))
_FISK_VAR_TERMS = [
    4.0**k * _OVER_SINE[k] - sum(_OVER_SINE[i] * _OVER_SINE[k - i] for i in range(k + 1))
    for k in range(18)
]


def _fisk_var(c: Any) -> Any:
    """2b/sin 2b − (b/sin b)² for b = π/c, by its series where these cancel."""
    b = math.pi / c
    near = b < 0.4
    inner, outer = where(near, b, 0.0), where(near, 0.5, b)
    far = 2 * outer / sin(2 * outer) - (outer / sin(outer)) ** 2
    return where(near, series(_FISK_VAR_TERMS, inner * inner), far)


def _fisk_mean(c: Any) -> Any:
    b = math.pi / c
    return b / sin(b)


fisk = Continuous(
    "fisk",
    ("c",),
    support=POSITIVE,
    powers=(lambda c: c - 1, None),
    logpdf=_fisk_logpdf,
    cdf=functools.partial(_fisk_tail, lower=True),
    sf=functools.partial(_fisk_tail, lower=False),
    logcdf=functools.partial(_fisk_log_tail, lower=True),
    logsf=functools.partial(_fisk_log_tail, lower=False),
    ppf=lambda q, c: exp(logit(q) / c),
    isf=lambda q, c: exp(-logit(q) / c),
    mean=lambda c: finite_above(1, c, _fisk_mean, math.nan),
    var=lambda c: finite_above(2, c, _fisk_var, math.nan),
    entropy=lambda c: 2 - log(c),
)


def _gumbel_density(w: Any) -> Any:
    """exp(w − eʷ)."""
    gone = w > VANISHED
    w = where(gone, 0.0, w)
    return where(gone, 0.0, exp(w - exp(w)))


def _gumbel_log_tail(w: Any) -> Any:
    """log(1 − exp(−eʷ))."""
    w = capped(w)
    return log_one_minus_exp(exp(w), w)


_GUMBEL: dict[str, Any] = {
    "logpdf": lambda z: z - exp(z),
    "pdf": _gumbel_density,
    "cdf": lambda z: one_minus_exp(exp(capped(z))),
    "sf": lambda z: exp(-exp(capped(z))),
    "logcdf": _gumbel_log_tail,
    "logsf": lambda z: -exp(z),
    "ppf": lambda q: log(-log1p(-q)),
    "isf": lambda q: log(-log(q)),
    "mean": -EULER_GAMMA,
    "var": math.pi**2 / 6,
    "entropy": 1 + EULER_GAMMA,
}
gumbel_l = Continuous("gumbel_l", **_GUMBEL)
gumbel_r = Continuous("gumbel_r", **reflected(_GUMBEL))
