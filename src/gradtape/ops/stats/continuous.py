"""Continuous distributions of elementary functions, by their formulas at place 0 and scale 1."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.activation import sigmoid
from gradtape.ops.arithmetic import absolute, power
from gradtape.ops.exponential import exp, log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.elementary import logit
from gradtape.ops.stats.density import Continuous
from gradtape.ops.stats.tails import VANISHED, capped, log_one_minus_exp, one_minus_exp
from gradtape.ops.trigonometric import arctan2, tan

LOG_2, LOG_PI = math.log(2.0), math.log(math.pi)
POSITIVE = (0.0, math.inf)


def all_positive(*shapes: Any) -> Any:
    """Whether all of the shape parameters are positive."""
    known: Any = True
    for shape in shapes:
        known = (shape > 0) & known
    return known


# ---- of bounded and half-bounded support --------------------------------------------------------

uniform = Continuous(
    "uniform",
    support=(0.0, 1.0),
    inside=0.5,
    powers=(lambda: 0.0, None),
    logpdf=lambda z: 0.0 * z,
    pdf=lambda z: 1.0 + 0.0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    logcdf=lambda _z, log_z: log_z,
    logsf=lambda z, _log_z: log1p(-z),
    ppf=lambda q: q,
    isf=lambda q: 1 - q,
)

expon = Continuous(
    "expon",
    support=POSITIVE,
    inside=1.0,
    powers=(lambda: 0.0, None),
    logpdf=lambda z: -z,
    pdf=lambda z: exp(-z),
    cdf=one_minus_exp,
    sf=lambda z: exp(-z),
    logcdf=log_one_minus_exp,
    logsf=lambda z, _log_z: -z,
    ppf=lambda q: -log1p(-q),
    isf=lambda q: -log(q),
)

rayleigh = Continuous(
    "rayleigh",
    support=POSITIVE,
    inside=1.0,
    powers=(lambda: 1.0, None),
    logpdf=lambda z: -0.5 * (z * z),
    pdf=lambda z: z * exp(-0.5 * (z * z)),
    cdf=lambda z: one_minus_exp(0.5 * (z * z)),
    sf=lambda z: exp(-0.5 * (z * z)),
    logcdf=lambda z, log_z: log_one_minus_exp(0.5 * (z * z), 2 * log_z - LOG_2),
    logsf=lambda z, _log_z: -0.5 * (z * z),
    ppf=lambda q: power(-2 * log1p(-q), 0.5),
    isf=lambda q: power(-2 * log(q), 0.5),
)

weibull_min = Continuous(
    "weibull_min",
    ("c",),
    support=POSITIVE,
    inside=1.0,
    valid=all_positive,
    powers=(lambda c: c - 1, None),
    logpdf=lambda z, c: log(c) - power(z, c),
    cdf=lambda z, c: one_minus_exp(power(z, c)),
    sf=lambda z, c: exp(-power(z, c)),
    logcdf=lambda z, log_z, c: log_one_minus_exp(power(z, c), c * log_z),
    logsf=lambda z, _log_z, c: -power(z, c),
    ppf=lambda q, c: power(-log1p(-q), 1 / c),
    isf=lambda q, c: power(-log(q), 1 / c),
)


def _pareto_logcdf(z: Any, b: Any) -> Any:
    return log_one_minus_exp(b * log(z), log(b) + log(log(z)))


pareto = Continuous(
    "pareto",
    ("b",),
    support=(1.0, math.inf),
    inside=2.0,
    valid=all_positive,
    logpdf=lambda z, b: log(b) - (b + 1) * log(z),
    cdf=lambda z, b: one_minus_exp(b * log(z)),
    sf=lambda z, b: exp(-b * log(z)),
    logcdf=_pareto_logcdf,
    logsf=lambda z, b: -b * log(z),
    ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: exp(-log(q) / b),
)

# ---- of unbounded support -----------------------------------------------------------------------


def _cauchy_logpdf(z: Any) -> Any:
    """−log π·(1 + z²), by 1/z where z² may be too large."""
    size = absolute(z)
    far = size > 100.0
    outer = where(far, size, 1.0)
    inner = where(far, 0.0, z)
    return -LOG_PI - where(far, 2 * log(outer) + log1p((1 / outer) ** 2), log1p(inner * inner))


def _cauchy_tail_quantile(q: Any) -> Any:
    """Where the probability of more is q: cot πq, by the smaller tail if it is small."""
    lower, upper = q < 0.25, q > 0.75
    tail = where(lower, q, where(upper, 1 - q, 0.25))
    outer = 1 / tan(math.pi * tail)
    inner = tan(math.pi * (0.5 - where(lower | upper, 0.5, q)))
    return where(lower, outer, where(upper, -outer, inner))


cauchy = Continuous(
    "cauchy",
    logpdf=_cauchy_logpdf,
    cdf=lambda z: arctan2(1.0, -z) / math.pi,
    sf=lambda z: arctan2(1.0, z) / math.pi,
    ppf=lambda q: -_cauchy_tail_quantile(q),
    isf=_cauchy_tail_quantile,
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
    logpdf=lambda z: -absolute(z) - LOG_2,
    cdf=lambda z: _laplace_tail(-z),
    sf=_laplace_tail,
    logcdf=lambda z: _laplace_log_tail(-z),
    logsf=_laplace_log_tail,
    ppf=_laplace_quantile,
    isf=lambda q: -_laplace_quantile(q),
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
    logpdf=lambda z: _logistic_log_tail(z) + _logistic_log_tail(-z),
    cdf=_logistic_tail,
    sf=lambda z: _logistic_tail(-z),
    logcdf=_logistic_log_tail,
    logsf=lambda z: _logistic_log_tail(-z),
    ppf=logit,
    isf=lambda q: -logit(q),
)


def _gumbel_density(w: Any) -> Any:
    """exp(w − eʷ)."""
    gone = w > VANISHED
    w = where(gone, 0.0, w)
    return where(gone, 0.0, exp(w - exp(w)))


def _gumbel_tail(w: Any) -> Any:
    """1 − exp(−eʷ)."""
    return one_minus_exp(exp(capped(w)))


def _gumbel_log_tail(w: Any) -> Any:
    w = capped(w)
    return log_one_minus_exp(exp(w), w)


gumbel_r = Continuous(
    "gumbel_r",
    logpdf=lambda z: -z - exp(-z),
    pdf=lambda z: _gumbel_density(-z),
    cdf=lambda z: exp(-exp(capped(-z))),
    sf=lambda z: _gumbel_tail(-z),
    logcdf=lambda z: -exp(-z),
    logsf=lambda z: _gumbel_log_tail(-z),
    ppf=lambda q: -log(-log(q)),
    isf=lambda q: -log(-log1p(-q)),
)

gumbel_l = Continuous(
    "gumbel_l",
    logpdf=lambda z: z - exp(z),
    pdf=_gumbel_density,
    cdf=_gumbel_tail,
    sf=lambda z: exp(-exp(capped(z))),
    logcdf=_gumbel_log_tail,
    logsf=lambda z: -exp(z),
    ppf=lambda q: log(-log1p(-q)),
    isf=lambda q: log(-log(q)),
)
