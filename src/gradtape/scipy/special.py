"""Special functions, under the names and with the signatures of `scipy.special`."""

from gradtape.dropin.modules import make_scipy as _make_scipy
from gradtape.ops.activation import (
    log_sigmoid as _log_sigmoid,
    sigmoid as _sigmoid,
    softplus as softplus,
)
from gradtape.ops.erf import erf as erf, erfc as erfc, erfinv as erfinv, ndtr as ndtr
from gradtape.ops.exponential import (
    cbrt as cbrt,
    exp2 as exp2,
    exp10 as exp10,
    expm1 as expm1,
    log1p as log1p,
)
from gradtape.ops.special.bessel import (
    hankel1 as hankel1,
    hankel1e as hankel1e,
    hankel2 as hankel2,
    hankel2e as hankel2e,
    iv as iv,
    ive as ive,
    jv as jv,
    jve as jve,
    kn as kn,
    kv as kv,
    kve as kve,
    yn as yn,
    yv as yv,
    yve as yve,
)
from gradtape.ops.special.bessel_derivatives import (
    h1vp as h1vp,
    h2vp as h2vp,
    ivp as ivp,
    jvp as jvp,
    kvp as kvp,
    yvp as yvp,
)
from gradtape.ops.special.bessel_fixed import (
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
    j0 as j0,
    j1 as j1,
    k0 as k0,
    k0e as k0e,
    k1 as k1,
    k1e as k1e,
    y0 as y0,
    y1 as y1,
)
from gradtape.ops.special.carlson import (
    elliprc as elliprc,
    elliprd as elliprd,
    elliprf as elliprf,
    elliprg as elliprg,
    elliprj as elliprj,
)
from gradtape.ops.special.counting import comb as comb, factorial as factorial, perm as perm
from gradtape.ops.special.distributions import (
    bdtr as bdtr,
    bdtrc as bdtrc,
    bdtri as bdtri,
    fdtr as fdtr,
    fdtrc as fdtrc,
    fdtri as fdtri,
    nbdtr as nbdtr,
    nbdtrc as nbdtrc,
    nbdtri as nbdtri,
)
from gradtape.ops.special.elementary import (
    boxcox as boxcox,
    boxcox1p as boxcox1p,
    cosdg as cosdg,
    cosm1 as cosm1,
    cotdg as cotdg,
    exprel as exprel,
    inv_boxcox as inv_boxcox,
    inv_boxcox1p as inv_boxcox1p,
    logit as logit,
    powm1 as powm1,
    radian as radian,
    sindg as sindg,
    tandg as tandg,
)
from gradtape.ops.special.elliptic import (
    agm as agm,
    ellipe as ellipe,
    ellipeinc as ellipeinc,
    ellipj as ellipj,
    ellipk as ellipk,
    ellipkinc as ellipkinc,
    ellipkm1 as ellipkm1,
)
from gradtape.ops.special.entropy import (
    entr as entr,
    kl_div as kl_div,
    rel_entr as rel_entr,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from gradtape.ops.special.faddeeva import voigt_profile as voigt_profile, wofz as wofz
from gradtape.ops.special.functions import (
    diric as diric,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    softmax as softmax,
)
from gradtape.ops.special.gamma import (
    beta as beta,
    betaln as betaln,
    binom as binom,
    digamma as digamma,
    gamma as gamma,
    gammasgn as gammasgn,
    lgamma as _lgamma,
    loggamma as loggamma,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    rgamma as rgamma,
    zeta as zeta,
)
from gradtape.ops.special.hypergeometric import (
    hyp0f1 as hyp0f1,
    hyp1f1 as hyp1f1,
    hyp2f1 as hyp2f1,
    hyperu as hyperu,
    lambertw as lambertw,
    log_wright_bessel as log_wright_bessel,
    modstruve as modstruve,
    struve as struve,
    wright_bessel as wright_bessel,
    wrightomega as wrightomega,
)
from gradtape.ops.special.incomplete_beta import (
    betainc as betainc,
    betaincc as betaincc,
    betainccinv as betainccinv,
    betaincinv as betaincinv,
)
from gradtape.ops.special.incomplete_gamma import (
    chdtr as chdtr,
    chdtrc as chdtrc,
    chdtri as chdtri,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammainccinv as gammainccinv,
    gammaincinv as gammaincinv,
    gdtr as gdtr,
    gdtrc as gdtrc,
    gdtrix as gdtrix,
    pdtr as pdtr,
    pdtrc as pdtrc,
    pdtri as pdtri,
)
from gradtape.ops.special.integrals import (
    exp1 as exp1,
    expi as expi,
    expn as expn,
    fresnel as fresnel,
    shichi as shichi,
    sici as sici,
    spence as spence,
)
from gradtape.ops.special.kelvin import (
    bei as bei,
    beip as beip,
    ber as ber,
    berp as berp,
    kei as kei,
    keip as keip,
    kelvin as kelvin,
    ker as ker,
    kerp as kerp,
)
from gradtape.ops.special.losses import huber as huber, pseudo_huber as pseudo_huber
from gradtape.ops.special.normal import (
    dawsn as dawsn,
    erfcinv as erfcinv,
    erfcx as erfcx,
    erfi as erfi,
    log_ndtr as log_ndtr,
    ndtri as ndtri,
    ndtri_exp as ndtri_exp,
    nrdtrimn as nrdtrimn,
    nrdtrisd as nrdtrisd,
    owens_t as owens_t,
)
from gradtape.ops.special.polynomials import (
    eval_chebyc as eval_chebyc,
    eval_chebys as eval_chebys,
    eval_chebyt as eval_chebyt,
    eval_chebyu as eval_chebyu,
    eval_gegenbauer as eval_gegenbauer,
    eval_genlaguerre as eval_genlaguerre,
    eval_hermite as eval_hermite,
    eval_hermitenorm as eval_hermitenorm,
    eval_jacobi as eval_jacobi,
    eval_laguerre as eval_laguerre,
    eval_legendre as eval_legendre,
    eval_sh_chebyt as eval_sh_chebyt,
    eval_sh_chebyu as eval_sh_chebyu,
    eval_sh_jacobi as eval_sh_jacobi,
    eval_sh_legendre as eval_sh_legendre,
)
from gradtape.ops.special.spherical import (
    airy as airy,
    airye as airye,
    spherical_in as spherical_in,
    spherical_jn as spherical_jn,
    spherical_kn as spherical_kn,
    spherical_yn as spherical_yn,
)
from gradtape.ops.special.student import stdtr as stdtr, stdtrit as stdtrit
from gradtape.ops.trigonometric import sinc as sinc

expit = _sigmoid
log_expit = _log_sigmoid
gammaln = _lgamma
psi = digamma
jn = jv

_make_scipy(globals())
