"""Densities, tails and quantiles of common distributions, under the names of `scipy.stats`.

Every parameter has a gradient: shapes, `loc` and `scale`. Outside of a support the logarithm of a
density is -inf and its gradient 0.
"""

from gradtape.ops.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    f,
    gamma,
    gumbel_l,
    gumbel_r,
    halfnorm,
    invgamma,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    rayleigh,
    t,
    truncnorm,
    uniform,
    vonmises,
    weibull_min,
)
from gradtape.ops.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from gradtape.ops.stats.multivariate import dirichlet, multinomial, multivariate_normal

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
