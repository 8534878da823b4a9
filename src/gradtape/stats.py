"""Densities, tails, quantiles and moments of common distributions, as in `scipy.stats`.

Every parameter has a gradient: shapes, `loc` and `scale`. Outside of a support the logarithm of a
density is -inf and its gradient 0.
"""

from gradtape.help.public import make_public as _make_public
from gradtape.ops.stats.continuous import (
    cauchy,
    expon,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    pareto,
    rayleigh,
    uniform,
    weibull_min,
)
from gradtape.ops.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from gradtape.ops.stats.gamma_family import beta, chi2, f, gamma, invgamma, t
from gradtape.ops.stats.multivariate import dirichlet, multinomial, multivariate_normal
from gradtape.ops.stats.normal_family import halfnorm, lognorm, norm, truncnorm, vonmises

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "halfnorm",
    "invgamma",
    "laplace",
    "logistic",
    "lognorm",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rayleigh",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_min",
]

_make_public(globals())
