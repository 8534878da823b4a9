"""Special functions beyond the error function."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.special import (
        bessel as bessel,
        bessel_derivatives as bessel_derivatives,
        bessel_fixed as bessel_fixed,
        bessel_scaled as bessel_scaled,
        carlson as carlson,
        counting as counting,
        distributions as distributions,
        elementary as elementary,
        elliptic as elliptic,
        entropy as entropy,
        faddeeva as faddeeva,
        functions as functions,
        gamma as gamma,
        hypergeometric as hypergeometric,
        incomplete_beta as incomplete_beta,
        incomplete_gamma as incomplete_gamma,
        integrals as integrals,
        kelvin as kelvin,
        log_tails as log_tails,
        losses as losses,
        normal as normal,
        polynomials as polynomials,
        spherical as spherical,
        student as student,
    )
