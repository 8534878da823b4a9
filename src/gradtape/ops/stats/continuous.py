"""Continuous distributions, each by its formulas at place 0 and scale 1."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.activation import log_sigmoid, sigmoid
from gradtape.ops.arithmetic import absolute, power
from gradtape.ops.erf import erf, ndtr
from gradtape.ops.exponential import exp, expm1, log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.bessel_fixed import i0e
from gradtape.ops.special.distributions import fdtr, fdtrc, fdtri, stdtr, stdtrit
from gradtape.ops.special.elementary import logit
from gradtape.ops.special.entropy import xlog1py, xlogy
from gradtape.ops.special.gamma import betaln, lgamma
from gradtape.ops.special.incomplete_beta import betainc, betaincc, betainccinv, betaincinv
from gradtape.ops.special.incomplete_gamma import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
)
from gradtape.ops.special.normal import log_ndtr, ndtri
from gradtape.ops.stats.base import Continuous
from gradtape.ops.trigonometric import arctan2, cos, tan

_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_LOG_2, _LOG_PI = math.log(2.0), math.log(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_POSITIVE = (0.0, math.inf)


def _all_positive(*shapes: Any) -> Any:
    known: Any = True
    for shape in shapes:
        known = (shape > 0) & known
    return known


# ---- of no shape parameter ----------------------------------------------------------------------

norm = Continuous(
    "norm",
    logpdf=lambda z: -0.5 * (z * z) - _HALF_LOG_2_PI,
    cdf=ndtr,
    sf=lambda z: ndtr(-z),
    logcdf=log_ndtr,
    logsf=lambda z: log_ndtr(-z),
    ppf=ndtri,
    isf=lambda q: -ndtri(q),
)

uniform = Continuous(
    "uniform",
    support=(0.0, 1.0),
    inside=0.5,
    logpdf=lambda z: 0.0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    ppf=lambda q: q,
    isf=lambda q: 1 - q,
)

expon = Continuous(
    "expon",
    support=_POSITIVE,
    inside=1.0,
    logpdf=lambda z: -z,
    cdf=lambda z: -expm1(-z),
    sf=lambda z: exp(-z),
    logsf=lambda z: -z,
    ppf=lambda q: -log1p(-q),
    isf=lambda q: -log(q),
)


def _cauchy_logpdf(z: Any) -> Any:
    """−log π·(1 + z²), by 1/z where z² may be too large."""
    size = absolute(z)
    far = size > 100.0
    outer = where(far, size, 1.0)
    inner = where(far, 0.0, z)
    return -_LOG_PI - where(far, 2 * log(outer) + log1p((1 / outer) ** 2), log1p(inner * inner))


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


def _laplace_quantile(q: Any) -> Any:
    upper = q > 0.5
    return where(upper, -log(2 * where(upper, 1 - q, 0.5)), log(2 * where(upper, 0.5, q)))


laplace = Continuous(
    "laplace",
    logpdf=lambda z: -absolute(z) - _LOG_2,
    cdf=lambda z: _laplace_tail(-z),
    sf=_laplace_tail,
    ppf=_laplace_quantile,
    isf=lambda q: -_laplace_quantile(q),
)

logistic = Continuous(
    "logistic",
    logpdf=lambda z: log_sigmoid(z) + log_sigmoid(-z),
    cdf=sigmoid,
    sf=lambda z: sigmoid(-z),
    logcdf=log_sigmoid,
    logsf=lambda z: log_sigmoid(-z),
    ppf=logit,
    isf=lambda q: -logit(q),
)

gumbel_r = Continuous(
    "gumbel_r",
    logpdf=lambda z: -z - exp(-z),
    cdf=lambda z: exp(-exp(-z)),
    sf=lambda z: -expm1(-exp(-z)),
    logcdf=lambda z: -exp(-z),
    ppf=lambda q: -log(-log(q)),
    isf=lambda q: -log(-log1p(-q)),
)

gumbel_l = Continuous(
    "gumbel_l",
    logpdf=lambda z: z - exp(z),
    cdf=lambda z: -expm1(-exp(z)),
    sf=lambda z: exp(-exp(z)),
    logsf=lambda z: -exp(z),
    ppf=lambda q: log(-log1p(-q)),
    isf=lambda q: log(-log(q)),
)

halfnorm = Continuous(
    "halfnorm",
    support=_POSITIVE,
    inside=1.0,
    logpdf=lambda z: -0.5 * (z * z) - _HALF_LOG_2_PI + _LOG_2,
    cdf=lambda z: erf(z * _ROOT_HALF),
    sf=lambda z: 2 * ndtr(-z),
    logsf=lambda z: log_ndtr(-z) + _LOG_2,
    ppf=lambda q: ndtri(0.5 + 0.5 * q),
    isf=lambda q: -ndtri(0.5 * q),
)

rayleigh = Continuous(
    "rayleigh",
    support=_POSITIVE,
    inside=1.0,
    logpdf=lambda z: log(z) - 0.5 * (z * z),
    cdf=lambda z: -expm1(-0.5 * (z * z)),
    sf=lambda z: exp(-0.5 * (z * z)),
    logsf=lambda z: -0.5 * (z * z),
    ppf=lambda q: power(-2 * log1p(-q), 0.5),
    isf=lambda q: power(-2 * log(q), 0.5),
)

# ---- of the gamma family ------------------------------------------------------------------------

gamma = Continuous(
    "gamma",
    ("a",),
    support=_POSITIVE,
    inside=1.0,
    valid=_all_positive,
    logpdf=lambda z, a: xlogy(a - 1, z) - z - lgamma(a),
    cdf=lambda z, a: gammainc(a, z),
    sf=lambda z, a: gammaincc(a, z),
    ppf=lambda q, a: gammaincinv(a, q),
    isf=lambda q, a: gammainccinv(a, q),
)

chi2 = Continuous(
    "chi2",
    ("df",),
    support=_POSITIVE,
    inside=1.0,
    valid=_all_positive,
    logpdf=lambda z, df: xlogy(0.5 * df - 1, z) - 0.5 * z - lgamma(0.5 * df) - 0.5 * _LOG_2 * df,
    cdf=lambda z, df: gammainc(0.5 * df, 0.5 * z),
    sf=lambda z, df: gammaincc(0.5 * df, 0.5 * z),
    ppf=lambda q, df: 2 * gammaincinv(0.5 * df, q),
    isf=lambda q, df: 2 * gammainccinv(0.5 * df, q),
)

invgamma = Continuous(
    "invgamma",
    ("a",),
    support=_POSITIVE,
    inside=1.0,
    open_below=True,
    valid=_all_positive,
    logpdf=lambda z, a: -(a + 1) * log(z) - lgamma(a) - 1 / z,
    cdf=lambda z, a: gammaincc(a, 1 / z),
    sf=lambda z, a: gammainc(a, 1 / z),
    ppf=lambda q, a: 1 / gammainccinv(a, q),
    isf=lambda q, a: 1 / gammaincinv(a, q),
)

weibull_min = Continuous(
    "weibull_min",
    ("c",),
    support=_POSITIVE,
    inside=1.0,
    valid=_all_positive,
    logpdf=lambda z, c: log(c) + xlogy(c - 1, z) - power(z, c),
    cdf=lambda z, c: -expm1(-power(z, c)),
    sf=lambda z, c: exp(-power(z, c)),
    logsf=lambda z, c: -power(z, c),
    ppf=lambda q, c: power(-log1p(-q), 1 / c),
    isf=lambda q, c: power(-log(q), 1 / c),
)

# ---- of the beta family -------------------------------------------------------------------------

beta = Continuous(
    "beta",
    ("a", "b"),
    support=(0.0, 1.0),
    inside=0.5,
    valid=_all_positive,
    logpdf=lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b),
    cdf=lambda z, a, b: betainc(a, b, z),
    sf=lambda z, a, b: betaincc(a, b, z),
    ppf=lambda q, a, b: betaincinv(a, b, q),
    isf=lambda q, a, b: betainccinv(a, b, q),
)


def _t_logpdf(z: Any, df: Any) -> Any:
    # Of infinitely many degrees of freedom it is the normal distribution.
    normal = df == math.inf
    df = where(normal, 1.0, df)
    value = -0.5 * (df + 1) * log1p(z * z / df) - betaln(0.5 * df, 0.5) - 0.5 * log(df)
    return where(normal, -0.5 * (z * z) - _HALF_LOG_2_PI, value)


def _t_quantile(q: Any, df: Any) -> Any:
    # SciPy's function takes 0 for 1.
    lowest = q == 0
    return where(lowest, -math.inf, stdtrit(df, where(lowest, 0.5, q)))


t = Continuous(
    "t",
    ("df",),
    valid=_all_positive,
    logpdf=_t_logpdf,
    cdf=lambda z, df: stdtr(df, z),
    sf=lambda z, df: stdtr(df, -z),
    ppf=_t_quantile,
    isf=lambda q, df: -_t_quantile(q, df),
)


def _f_logpdf(z: Any, dfn: Any, dfd: Any) -> Any:
    m, n = 0.5 * dfn, 0.5 * dfd
    scaled = dfn * z / dfd
    powers = m * log(dfn / dfd) + xlogy(m - 1, z) - (m + n) * log1p(scaled)
    return powers - betaln(m, n)


f = Continuous(
    "f",
    ("dfn", "dfd"),
    support=_POSITIVE,
    inside=1.0,
    valid=_all_positive,
    logpdf=_f_logpdf,
    cdf=lambda z, dfn, dfd: fdtr(dfn, dfd, z),
    sf=lambda z, dfn, dfd: fdtrc(dfn, dfd, z),
    ppf=lambda q, dfn, dfd: fdtri(dfn, dfd, q),
)

# ---- others -------------------------------------------------------------------------------------

lognorm = Continuous(
    "lognorm",
    ("s",),
    support=_POSITIVE,
    inside=1.0,
    open_below=True,
    valid=_all_positive,
    logpdf=lambda z, s: -0.5 * (log(z) / s) ** 2 - log(s) - log(z) - _HALF_LOG_2_PI,
    cdf=lambda z, s: ndtr(log(z) / s),
    sf=lambda z, s: ndtr(-log(z) / s),
    logcdf=lambda z, s: log_ndtr(log(z) / s),
    logsf=lambda z, s: log_ndtr(-log(z) / s),
    ppf=lambda q, s: exp(s * ndtri(q)),
    isf=lambda q, s: exp(-s * ndtri(q)),
)

pareto = Continuous(
    "pareto",
    ("b",),
    support=(1.0, math.inf),
    inside=2.0,
    valid=_all_positive,
    logpdf=lambda z, b: log(b) - (b + 1) * log(z),
    cdf=lambda z, b: -expm1(-b * log(z)),
    sf=lambda z, b: exp(-b * log(z)),
    logsf=lambda z, b: -b * log(z),
    ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: exp(-log(q) / b),
)

vonmises = Continuous(
    "vonmises",
    ("kappa",),
    valid=lambda kappa: kappa >= 0,
    logpdf=lambda z, kappa: kappa * (cos(z) - 1) - log(i0e(kappa)) - 2 * _HALF_LOG_2_PI,
)


def _log_mass(low: Any, high: Any) -> Any:
    """log(Φ(high) − Φ(low)), from the smaller tail."""
    mirrored = low > 0
    a, b = where(mirrored, -high, low), where(mirrored, -low, high)
    top = log_ndtr(b)
    # Below minus infinity there is nothing, and next to nothing no share of it.
    none = (a == -math.inf) | (top == -math.inf)
    below = exp(log_ndtr(where(none, -1.0, a)) - where(none, 0.0, top))
    return top + log1p(-where(none, 0.0, below))


def _log_share(part: Any, rest: Any, whole: Any) -> Any:
    """The logarithm of a part of a mass, by the rest where that is less; all in logarithms."""
    share, less = part - whole, rest - whole < part - whole
    return where(less, log1p(-exp(where(less, rest - whole, -1.0))), share)


truncnorm = Continuous(
    "truncnorm",
    ("a", "b"),
    support=(lambda a, _b: a, lambda _a, b: b),
    inside=lambda a, b: _between(a, b),
    valid=lambda a, b: a < b,
    logpdf=lambda z, a, b: -0.5 * (z * z) - _HALF_LOG_2_PI - _log_mass(a, b),
    cdf=lambda z, a, b: exp(_log_mass(a, z) - _log_mass(a, b)),
    sf=lambda z, a, b: exp(_log_mass(z, b) - _log_mass(a, b)),
    logcdf=lambda z, a, b: _log_share(_log_mass(a, z), _log_mass(z, b), _log_mass(a, b)),
    logsf=lambda z, a, b: _log_share(_log_mass(z, b), _log_mass(a, z), _log_mass(a, b)),
)


def _between(a: Any, b: Any) -> Any:
    """A point between bounds, of which one or both may be infinite."""
    return where(
        a == -math.inf,
        where(b == math.inf, 0.0, b - 1.0),
        where(b == math.inf, a + 1.0, 0.5 * (a + b)),
    )
