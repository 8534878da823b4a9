"""Special functions beyond the error function."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.special import (
        bessel as bessel,
        bessel_fixed as bessel_fixed,
        distributions as distributions,
        elementary as elementary,
        elliptic as elliptic,
        entropy as entropy,
        functions as functions,
        gamma as gamma,
        hypergeometric as hypergeometric,
        incomplete_beta as incomplete_beta,
        incomplete_gamma as incomplete_gamma,
        integrals as integrals,
        log_tails as log_tails,
        normal as normal,
        polynomials as polynomials,
        spherical as spherical,
    )
