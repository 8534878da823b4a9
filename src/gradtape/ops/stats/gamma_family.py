"""Distributions of incomplete gamma and beta functions, at place 0 and scale 1."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.exponential import log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.distributions import fdtr, fdtrc, fdtri, stdtr, stdtrit
from gradtape.ops.special.entropy import xlog1py
from gradtape.ops.special.gamma import betaln, lgamma
from gradtape.ops.special.incomplete_beta import betainc, betaincc, betainccinv, betaincinv
from gradtape.ops.special.incomplete_gamma import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
)
from gradtape.ops.special.log_tails import log_betainc, log_gammainc, log_gammaincc
from gradtape.ops.stats.continuous import LOG_2, POSITIVE, all_positive
from gradtape.ops.stats.density import Continuous
from gradtape.ops.stats.normal_family import HALF_LOG_2_PI

# ---- of gamma functions -------------------------------------------------------------------------

gamma = Continuous(
    "gamma",
    ("a",),
    support=POSITIVE,
    inside=1.0,
    valid=all_positive,
    powers=(lambda a: a - 1, None),
    logpdf=lambda z, a: -z - lgamma(a),
    cdf=lambda z, a: gammainc(a, z),
    sf=lambda z, a: gammaincc(a, z),
    logcdf=lambda z, log_z, a: log_gammainc(a, z, log_z),
    logsf=lambda z, log_z, a: log_gammaincc(a, z, log_z),
    ppf=lambda q, a: gammaincinv(a, q),
    isf=lambda q, a: gammainccinv(a, q),
)

chi2 = Continuous(
    "chi2",
    ("df",),
    support=POSITIVE,
    inside=1.0,
    valid=all_positive,
    powers=(lambda df: 0.5 * df - 1, None),
    logpdf=lambda z, df: -0.5 * z - lgamma(0.5 * df) - 0.5 * LOG_2 * df,
    cdf=lambda z, df: gammainc(0.5 * df, 0.5 * z),
    sf=lambda z, df: gammaincc(0.5 * df, 0.5 * z),
    logcdf=lambda z, log_z, df: log_gammainc(0.5 * df, 0.5 * z, log_z - LOG_2),
    logsf=lambda z, log_z, df: log_gammaincc(0.5 * df, 0.5 * z, log_z - LOG_2),
    ppf=lambda q, df: 2 * gammaincinv(0.5 * df, q),
    isf=lambda q, df: 2 * gammainccinv(0.5 * df, q),
)

invgamma = Continuous(
    "invgamma",
    ("a",),
    support=POSITIVE,
    inside=1.0,
    open_below=True,
    valid=all_positive,
    logpdf=lambda z, a: -(a + 1) * log(z) - lgamma(a) - 1 / z,
    cdf=lambda z, a: gammaincc(a, 1 / z),
    sf=lambda z, a: gammainc(a, 1 / z),
    logcdf=lambda z, a: log_gammaincc(a, 1 / z, -log(z)),
    logsf=lambda z, a: log_gammainc(a, 1 / z, -log(z)),
    ppf=lambda q, a: 1 / gammainccinv(a, q),
    isf=lambda q, a: 1 / gammaincinv(a, q),
)

# ---- of beta functions --------------------------------------------------------------------------

beta = Continuous(
    "beta",
    ("a", "b"),
    support=(0.0, 1.0),
    inside=0.5,
    valid=all_positive,
    powers=(lambda a, _b: a - 1, lambda _a, b: b - 1),
    logpdf=lambda z, a, b: 0.0 * z - betaln(a, b),
    cdf=lambda z, a, b: betainc(a, b, z),
    sf=lambda z, a, b: betaincc(a, b, z),
    logcdf=lambda z, log_z, a, b: log_betainc(a, b, z, log_z, betainc(a, b, z), betaincc(a, b, z)),
    logsf=lambda z, _log_z, a, b: log_betainc(
        b, a, 1 - z, xlog1py(1.0, -z), betaincc(a, b, z), betainc(a, b, z)
    ),
    ppf=lambda q, a, b: betaincinv(a, b, q),
    isf=lambda q, a, b: betainccinv(a, b, q),
)


def _t_logpdf(z: Any, df: Any) -> Any:
    # Of infinitely many degrees of freedom it is the normal distribution.
    normal = df == math.inf
    df = where(normal, 1.0, df)
    value = -0.5 * (df + 1) * log1p(z * z / df) - betaln(0.5 * df, 0.5) - 0.5 * log(df)
    return where(normal, -0.5 * (z * z) - HALF_LOG_2_PI, value)


def _t_log_tail(z: Any, df: Any) -> Any:
    """Log P(> z); for z > 0 the probability is ½·I(ν/2, ½, ν/(ν + z²))."""
    upper = z > 0
    out = where(upper, z, 1.0)
    ratio = out * out / df
    both = 2 * stdtr(df, -out)
    above = log_betainc(0.5 * df, 0.5, 1 / (1 + ratio), -log1p(ratio), both, 1 - both) - LOG_2
    return where(upper, above, log1p(-stdtr(df, where(upper, 0.0, z))))


def _t_quantile(q: Any, df: Any) -> Any:
    # SciPy's function takes 0 for 1.
    lowest = q == 0
    return where(lowest, -math.inf, stdtrit(df, where(lowest, 0.5, q)))


t = Continuous(
    "t",
    ("df",),
    valid=all_positive,
    logpdf=_t_logpdf,
    cdf=lambda z, df: stdtr(df, z),
    sf=lambda z, df: stdtr(df, -z),
    logcdf=lambda z, df: _t_log_tail(-z, df),
    logsf=_t_log_tail,
    ppf=_t_quantile,
    isf=lambda q, df: -_t_quantile(q, df),
)


def _f_logpdf(z: Any, dfn: Any, dfd: Any) -> Any:
    m, n = 0.5 * dfn, 0.5 * dfd
    return m * log(dfn / dfd) - (m + n) * log1p(dfn * z / dfd) - betaln(m, n)


def _f_logcdf(z: Any, log_z: Any, dfn: Any, dfd: Any) -> Any:
    ratio = dfn * z / dfd
    log_share = log_z + log(dfn / dfd) - log1p(ratio)
    tails = fdtr(dfn, dfd, z), fdtrc(dfn, dfd, z)
    return log_betainc(0.5 * dfn, 0.5 * dfd, ratio / (1 + ratio), log_share, *tails)


def _f_logsf(z: Any, _log_z: Any, dfn: Any, dfd: Any) -> Any:
    ratio = dfn * z / dfd
    tails = fdtrc(dfn, dfd, z), fdtr(dfn, dfd, z)
    return log_betainc(0.5 * dfd, 0.5 * dfn, 1 / (1 + ratio), -log1p(ratio), *tails)


f = Continuous(
    "f",
    ("dfn", "dfd"),
    support=POSITIVE,
    inside=1.0,
    valid=all_positive,
    powers=(lambda dfn, _dfd: 0.5 * dfn - 1, None),
    logpdf=_f_logpdf,
    cdf=lambda z, dfn, dfd: fdtr(dfn, dfd, z),
    sf=lambda z, dfn, dfd: fdtrc(dfn, dfd, z),
    logcdf=_f_logcdf,
    logsf=_f_logsf,
    ppf=lambda q, dfn, dfd: fdtri(dfn, dfd, q),
)
