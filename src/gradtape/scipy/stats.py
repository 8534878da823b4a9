"""Distributions and summaries of observations, as in `scipy.stats`.

Distributions have densities, tails, quantiles and moments for tensors. Every parameter has a
gradient: shapes, `loc` and `scale`. Outside of a support the logarithm of a density is -inf and its
gradient 0.
"""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.stats.continuous import (
    cauchy as cauchy,
    expon as expon,
    fisk as fisk,
    gumbel_l as gumbel_l,
    gumbel_r as gumbel_r,
    halfcauchy as halfcauchy,
    laplace as laplace,
    logistic as logistic,
    pareto as pareto,
    rayleigh as rayleigh,
    uniform as uniform,
    weibull_min as weibull_min,
)
from gradtape.ops.stats.correlation import pearsonr as pearsonr
from gradtape.ops.stats.discrete import (
    bernoulli as bernoulli,
    binom as binom,
    geom as geom,
    nbinom as nbinom,
    poisson as poisson,
)
from gradtape.ops.stats.extremes import genextreme as genextreme, genpareto as genpareto
from gradtape.ops.stats.gamma_family import (
    beta as beta,
    chi2 as chi2,
    f as f,
    gamma as gamma,
    invgamma as invgamma,
    t as t,
)
from gradtape.ops.stats.information import entropy as entropy
from gradtape.ops.stats.kernel_density import gaussian_kde as gaussian_kde
from gradtape.ops.stats.means import gmean as gmean, hmean as hmean, pmean as pmean
from gradtape.ops.stats.multivariate import (
    dirichlet as dirichlet,
    multinomial as multinomial,
    multivariate_normal as multivariate_normal,
)
from gradtape.ops.stats.normal_family import (
    halfnorm as halfnorm,
    invgauss as invgauss,
    lognorm as lognorm,
    norm as norm,
    skewnorm as skewnorm,
    truncnorm as truncnorm,
    vonmises as vonmises,
)
from gradtape.ops.stats.power_likelihoods import (
    boxcox_llf as boxcox_llf,
    yeojohnson_llf as yeojohnson_llf,
)
from gradtape.ops.stats.summaries import (
    gzscore as gzscore,
    iqr as iqr,
    kurtosis as kurtosis,
    median_abs_deviation as median_abs_deviation,
    moment as moment,
    sem as sem,
    skew as skew,
    tmean as tmean,
    tstd as tstd,
    tvar as tvar,
    variation as variation,
    zmap as zmap,
    zscore as zscore,
)
from gradtape.ops.stats.transport import wasserstein_distance as wasserstein_distance

_make_scipy(globals())
