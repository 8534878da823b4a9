"""Discrete distributions, each by its formulas for counts inside of its support."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.exponential import exp, expm1, log, log1p
from gradtape.ops.special.distributions import bdtr, bdtrc
from gradtape.ops.special.entropy import xlog1py, xlogy
from gradtape.ops.special.gamma import lgamma
from gradtape.ops.special.incomplete_beta import betainc, betaincc
from gradtape.ops.special.incomplete_gamma import pdtr, pdtrc
from gradtape.ops.stats.base import Discrete


def _is_share(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


bernoulli = Discrete(
    "bernoulli",
    ("p",),
    support=(0, 1),
    valid=_is_share,
    logpmf=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    # Below 1 it is the probability of 0.
    cdf=lambda k, p: 1 - p + 0 * k,
    sf=lambda k, p: p + 0 * k,
)


def _binom_logpmf(k: Any, n: Any, p: Any) -> Any:
    ways = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


binom = Discrete(
    "binom",
    ("n", "p"),
    support=(0, lambda n, _p: n),
    valid=lambda n, p: (n >= 0) & _is_share(p),
    logpmf=_binom_logpmf,
    cdf=bdtr,
    sf=bdtrc,
)

poisson = Discrete(
    "poisson",
    ("mu",),
    support=(0, math.inf),
    valid=lambda mu: mu >= 0,
    logpmf=lambda k, mu: xlogy(k, mu) - lgamma(k + 1.0) - mu,
    cdf=pdtr,
    sf=pdtrc,
)

geom = Discrete(
    "geom",
    ("p",),
    support=(1, math.inf),
    valid=lambda p: (p > 0) & (p <= 1),
    logpmf=lambda k, p: xlog1py(k - 1, -p) + log(p),
    cdf=lambda k, p: -expm1(k * log1p(-p)),
    sf=lambda k, p: exp(k * log1p(-p)),
    logsf=lambda k, p: k * log1p(-p),
)


def _nbinom_logpmf(k: Any, n: Any, p: Any) -> Any:
    ways = lgamma(n + k + 0.0) - lgamma(k + 1.0) - lgamma(n + 0.0)
    return ways + n * log(p) + xlog1py(k, -p)


nbinom = Discrete(
    "nbinom",
    ("n", "p"),
    support=(0, math.inf),
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    logpmf=_nbinom_logpmf,
    cdf=lambda k, n, p: betainc(n, k + 1, p),
    sf=lambda k, n, p: betaincc(n, k + 1, p),
)
