"""Distributions of incomplete gamma and beta functions, at loc 0 and scale 1."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.exponential import exp, log, log1p, sqrt
from gradtape.ops.select import where
from gradtape.ops.special.common import series
from gradtape.ops.special.distributions import fdtr, fdtrc, fdtri
from gradtape.ops.special.entropy import xlog1py
from gradtape.ops.special.gamma import betaln, digamma, lgamma
from gradtape.ops.special.incomplete_beta import betainc, betaincc, betainccinv, betaincinv
from gradtape.ops.special.incomplete_gamma import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
)
from gradtape.ops.special.log_tails import log_betainc, log_gammainc, log_gammaincc
from gradtape.ops.special.student import stdtr, stdtrit
from gradtape.ops.stats.continuous import LOG_2, LOG_PI, POSITIVE, finite_above
from gradtape.ops.stats.density import Continuous
from gradtape.ops.stats.normal_family import HALF_LOG_2_PI
from gradtape.ops.stats.tails import log1p_square

# ---- of gamma functions -------------------------------------------------------------------------

# The entropy of gamma, less that of a normal distribution of the same variance, is a series in 1/a:
# that of log Γ(a) and of its derivative together, of Bernoulli's numbers.
_ENTROPY_TERMS = (
    *(0.0, -1 / 3, -1 / 12, -1 / 90, 1 / 120, 1 / 210, -1 / 252, -1 / 210, 1 / 240),
    *(5 / 594, -1 / 132),
)


def gamma_entropy(a: Any) -> Any:
    """By a + log Γ(a) + (1 − a)·ψ(a), whose terms cancel where a is large."""
    far = a > 30
    large, small = where(far, a, 30.0), where(far, 1.0, a)
    outer = 0.5 * log(large) + (HALF_LOG_2_PI + 0.5) + series(_ENTROPY_TERMS, 1 / large)
    return where(far, outer, small + lgamma(small) + (1 - small) * digamma(small))


gamma = Continuous(
    "gamma",
    ("a",),
    support=POSITIVE,
    powers=(lambda a: a - 1, None),
    logpdf=lambda z, a: -z - lgamma(a),
    cdf=lambda z, a: gammainc(a, z),
    sf=lambda z, a: gammaincc(a, z),
    logcdf=lambda z, log_z, a: log_gammainc(a, z, log_z),
    logsf=lambda z, log_z, a: log_gammaincc(a, z, log_z),
    ppf=lambda q, a: gammaincinv(a, q),
    isf=lambda q, a: gammainccinv(a, q),
    mean=lambda a: a,
    var=lambda a: a,
    entropy=gamma_entropy,
)

chi2 = Continuous(
    "chi2",
    ("df",),
    support=POSITIVE,
    powers=(lambda df: 0.5 * df - 1, None),
    logpdf=lambda z, df: -0.5 * z - lgamma(0.5 * df) - 0.5 * LOG_2 * df,
    cdf=lambda z, df: gammainc(0.5 * df, 0.5 * z),
    sf=lambda z, df: gammaincc(0.5 * df, 0.5 * z),
    logcdf=lambda z, log_z, df: log_gammainc(0.5 * df, 0.5 * z, log_z - LOG_2),
    logsf=lambda z, log_z, df: log_gammaincc(0.5 * df, 0.5 * z, log_z - LOG_2),
    ppf=lambda q, df: 2 * gammaincinv(0.5 * df, q),
    isf=lambda q, df: 2 * gammainccinv(0.5 * df, q),
    mean=lambda df: df,
    var=lambda df: 2 * df,
    entropy=lambda df: gamma_entropy(0.5 * df) + LOG_2,
)

invgamma = Continuous(
    "invgamma",
    ("a",),
    support=POSITIVE,
    open_below=True,
    logpdf=lambda z, a: -(a + 1) * log(z) - lgamma(a) - 1 / z,
    cdf=lambda z, a: gammaincc(a, 1 / z),
    sf=lambda z, a: gammainc(a, 1 / z),
    logcdf=lambda z, a: log_gammaincc(a, 1 / z, -log(z)),
    logsf=lambda z, a: log_gammainc(a, 1 / z, -log(z)),
    ppf=lambda q, a: 1 / gammainccinv(a, q),
    isf=lambda q, a: 1 / gammaincinv(a, q),
    mean=lambda a: finite_above(1, a, lambda a: 1 / (a - 1)),
    var=lambda a: finite_above(2, a, lambda a: 1 / (a - 1) ** 2 / (a - 2)),
    entropy=lambda a: gamma_entropy(a) - 2 * digamma(a),
)

# ---- of beta functions --------------------------------------------------------------------------


def _beta_entropy(a: Any, b: Any) -> Any:
    """The part that entropies of quotients of gamma variables share: no more than logarithms."""
    return gamma_entropy(a) + gamma_entropy(b) - gamma_entropy(a + b)


beta = Continuous(
    "beta",
    ("a", "b"),
    support=(0.0, 1.0),
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
    mean=lambda a, b: a / (a + b),
    var=lambda a, b: a / (a + b) * (b / (a + b)) / (a + b + 1),
    entropy=lambda a, b: _beta_entropy(a, b) - digamma(a + b),
)


def _t_logpdf(z: Any, df: Any) -> Any:
    # Of infinitely many degrees of freedom it is the normal distribution.
    normal = df == math.inf
    df = where(normal, 1.0, df)
    value = -0.5 * (df + 1) * log1p_square(z / sqrt(df)) - betaln(0.5 * df, 0.5) - 0.5 * log(df)
    z = where(normal, z, 0.0)
    return where(normal, -0.5 * (z * z) - HALF_LOG_2_PI, value)


def _t_log_tail(z: Any, df: Any) -> Any:
    """Log P(> z); for z > 0 the probability is ½·I(ν/2, ½, ν/(ν + z²))."""
    upper = z > 0
    out = where(upper, z, 1.0)
    log_share = -log1p_square(out / sqrt(df))
    both = 2 * stdtr(df, -out)
    above = log_betainc(0.5 * df, 0.5, exp(log_share), log_share, both, 1 - both) - LOG_2
    return where(upper, above, log1p(-stdtr(df, where(upper, 0.0, z))))


def _t_quantile(q: Any, df: Any) -> Any:
    # SciPy's function takes 0 for 1.
    lowest = q == 0
    return where(lowest, -math.inf, stdtrit(df, where(lowest, 0.5, q)))


def _t_var(df: Any) -> Any:
    return where(df > 1, finite_above(2, df, lambda df: 1 + 2 / (df - 2)), math.nan)


def _t_entropy(df: Any) -> Any:
    normal = df == math.inf
    df = where(normal, 1.0, df)
    m, n = 0.5 * df, 0.5 * df + 0.5
    value = digamma(n) - 1.5 * digamma(m) + gamma_entropy(m) - gamma_entropy(n)
    return where(normal, HALF_LOG_2_PI, value + 0.5 * (LOG_PI + log(df))) + 0.5


t = Continuous(
    "t",
    ("df",),
    symmetric=True,
    logpdf=_t_logpdf,
    cdf=lambda z, df: stdtr(df, z),
    logsf=_t_log_tail,
    ppf=_t_quantile,
    mean=lambda df: where(df > 1, 0.0, math.inf),
    var=_t_var,
    entropy=_t_entropy,
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


def _f_var(dfn: Any, dfd: Any) -> Any:
    def finite(n: Any) -> Any:
        return 2 / dfn * (1 + 2 / (n - 2)) ** 2 * (1 + (dfn + 2) / (n - 4))

    return finite_above(4, dfd, finite)


def _f_entropy(dfn: Any, dfd: Any) -> Any:
    m, n = 0.5 * dfn, 0.5 * dfd
    return _beta_entropy(m, n) - 2 * digamma(n) + digamma(m + n) + log(dfd / dfn)


f = Continuous(
    "f",
    ("dfn", "dfd"),
    support=POSITIVE,
    powers=(lambda dfn, _dfd: 0.5 * dfn - 1, None),
    logpdf=_f_logpdf,
    cdf=lambda z, dfn, dfd: fdtr(dfn, dfd, z),
    sf=lambda z, dfn, dfd: fdtrc(dfn, dfd, z),
    logcdf=_f_logcdf,
    logsf=_f_logsf,
    ppf=lambda q, dfn, dfd: fdtri(dfn, dfd, q),
    isf=lambda q, dfn, dfd: 1 / fdtri(dfd, dfn, q),  # the quotient the other way round
    mean=lambda _dfn, dfd: finite_above(2, dfd, lambda n: 1 + 2 / (n - 2)),
    var=_f_var,
    entropy=_f_entropy,
)
