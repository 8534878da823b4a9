"""Discrete distributions, each by its formulas for counts inside of its support."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.exponential import exp, log, log1p
from gradtape.ops.rounding import floor
from gradtape.ops.special.distributions import bdtr, bdtrc
from gradtape.ops.special.entropy import xlog1py, xlogy
from gradtape.ops.special.gamma import lgamma
from gradtape.ops.special.incomplete_beta import betainc, betaincc
from gradtape.ops.special.incomplete_gamma import pdtr, pdtrc
from gradtape.ops.special.log_tails import log_betainc, log_gammainc, log_gammaincc
from gradtape.ops.stats.counts import Discrete
from gradtape.ops.stats.tails import log_one_minus_exp, one_minus_exp, quiet_log, quiet_log_rest


def _is_share(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _coin_entropy(p: Any) -> Any:
    return -xlogy(p, p) - xlog1py(1 - p, -p)


bernoulli = Discrete(
    "bernoulli",
    ("p",),
    support=(0, 1),
    valid=_is_share,
    logpmf=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    vanishing=lambda k, p: [(p, k, xlog1py(1 - k, -p)), (1 - p, 1 - k, xlogy(k, p))],
    # Below 1 it is the probability of 0.
    cdf=lambda k, p: 1 - p + 0 * k,
    sf=lambda k, p: p + 0 * k,
    logcdf=lambda k, p: quiet_log_rest(p) + 0 * k,
    logsf=lambda k, p: quiet_log(p) + 0 * k,
    mean=lambda p: p,
    var=lambda p: p * (1 - p),
    entropy=_coin_entropy,
)


def _ways(k: Any, n: Any) -> Any:
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)


binom = Discrete(
    "binom",
    ("n", "p"),
    support=(0, lambda n, _p: n),
    valid=lambda n, p: (n >= 0) & (n == floor(n)) & (n < math.inf) & _is_share(p),
    logpmf=lambda k, n, p: _ways(k, n) + xlogy(k, p) + xlog1py(n - k, -p),
    vanishing=lambda k, n, p: [
        (p, k, _ways(k, n) + xlog1py(n - k, -p)),
        (1 - p, n - k, _ways(k, n) + xlogy(k, p)),
    ],
    cdf=bdtr,
    sf=bdtrc,
    logcdf=lambda k, n, p: log_betainc(
        n - k, k + 1, 1 - p, quiet_log_rest(p), bdtr(k, n, p), bdtrc(k, n, p)
    ),
    logsf=lambda k, n, p: log_betainc(k + 1, n - k, p, quiet_log(p), bdtrc(k, n, p), bdtr(k, n, p)),
    mean=lambda n, p: n * p,
    var=lambda n, p: n * p * (1 - p),
)

poisson = Discrete(
    "poisson",
    ("mu",),
    support=(0, math.inf),
    valid=lambda mu: mu >= 0,
    logpmf=lambda k, mu: xlogy(k, mu) - lgamma(k + 1.0) - mu,
    vanishing=lambda k, mu: [(mu, k, -lgamma(k + 1.0) - mu)],
    cdf=pdtr,
    sf=pdtrc,
    logcdf=lambda k, mu: log_gammaincc(k + 1, mu, quiet_log(mu)),
    logsf=lambda k, mu: log_gammainc(k + 1, mu, quiet_log(mu)),
    mean=lambda mu: mu,
    var=lambda mu: mu,
)


def _geom_logcdf(k: Any, p: Any) -> Any:
    exponent = -quiet_log_rest(p)
    return log_one_minus_exp(k * exponent, log(k * 1.0) + log(exponent))


geom = Discrete(
    "geom",
    ("p",),
    support=(1, math.inf),
    valid=lambda p: (p > 0) & (p <= 1),
    logpmf=lambda k, p: xlog1py(k - 1, -p) + log(p),
    vanishing=lambda k, p: [(1 - p, k - 1, log(p))],
    cdf=lambda k, p: one_minus_exp(-k * log1p(-p)),
    sf=lambda k, p: exp(k * log1p(-p)),
    logcdf=_geom_logcdf,
    logsf=lambda k, p: k * log1p(-p),
    mean=lambda p: 1 / p,
    var=lambda p: (1 - p) / (p * p),
    entropy=lambda p: _coin_entropy(p) / p,
)


def _nbinom_weight(k: Any, n: Any, p: Any) -> Any:
    return lgamma(n + k + 0.0) - lgamma(k + 1.0) - lgamma(n + 0.0) + n * log(p)


nbinom = Discrete(
    "nbinom",
    ("n", "p"),
    support=(0, math.inf),
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    logpmf=lambda k, n, p: _nbinom_weight(k, n, p) + xlog1py(k, -p),
    vanishing=lambda k, n, p: [(1 - p, k, _nbinom_weight(k, n, p))],
    cdf=lambda k, n, p: betainc(n, k + 1, p),
    sf=lambda k, n, p: betaincc(n, k + 1, p),
    logcdf=lambda k, n, p: log_betainc(
        n, k + 1, p, quiet_log(p), betainc(n, k + 1, p), betaincc(n, k + 1, p)
    ),
    logsf=lambda k, n, p: log_betainc(
        k + 1, n, 1 - p, quiet_log_rest(p), betaincc(n, k + 1, p), betainc(n, k + 1, p)
    ),
    mean=lambda n, p: n * (1 - p) / p,
    var=lambda n, p: n * (1 - p) / (p * p),
)
