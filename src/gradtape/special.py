"""Special functions, under the names of `scipy.special`."""

from gradtape.ops.erf import erf, erfc, erfinv, ndtr
from gradtape.ops.special.entropy import xlogy
from gradtape.ops.special.gamma import digamma, lgamma, polygamma

gammaln = lgamma
psi = digamma

__all__ = [
    "erf",
    "erfc",
    "erfinv",
    "ndtr",
    "xlogy",
    "digamma",
    "psi",
    "gammaln",
    "polygamma",
]
