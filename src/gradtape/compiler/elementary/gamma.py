"""lgamma: a quotient of polynomials up to 3, Stirling's series beyond, a reflection below 0."""

from __future__ import annotations

import math

from gradtape.compiler.elementary.logarithm import log, log_of_product
from gradtape.compiler.elementary.pieces import (
    INF,
    at_most,
    polynomial,
    polynomials,
    quotients,
    split_exponent,
)
from gradtape.compiler.elementary.polygamma import SIN_PI, distance_to_integer
from gradtape.core.scalar import Scalar, absolute, fma, rarely, where

# Arguments below the first take a step of the recurrence; from the second on, the series is exact.
_NEAR, _FAR = 0.75, 3.0
# lgamma(z)/((z − 1)(z − 2)) for z from 0.75 to 3 as a quotient of polynomials in z − 0.75; relative
# error 2^-30.1 and 2^-58.5.
_LGAMMA_NEAR = quotients("""
    float32: 0.6504990458488464 1.1961662769317627 0.6053433418273926 0.07737262547016144
             0.0006565420189872384
           / 1.0 2.380519390106201 1.767963171005249 0.4445008337497711 0.027582811191678047
    float64: 0.6504990445801452 2.641707965227519 4.181631203710061 3.272935481840901
             1.3288329074721383 0.2689510409499716 0.023773141206110775 0.000662004501088358
             1.2481885515196518e-06
           / 1.0 4.602723695761933 8.469434118811014 7.982391018556873 4.109589164352581
             1.1439725687417452 0.16026642284984818 0.0096037181121767 0.00016595749422014977
""")
# x·(lgamma(x) − (x − ½)·log x + x − ½·log 2π) for x ≥ 3 as a polynomial in 1/x²; relative error of
# lgamma 2^-34.9 and 2^-60.4.
_LGAMMA_FAR = polynomials("""
    float32: 0.083333320915699 -0.002777131972834468 0.0007775564445182681 -0.0004204399592708796
    float64: 0.08333333333333144 -0.0027777777769409833 0.000793650656394554 -0.0005952263521606022
             0.0008411430871617216 -0.0018968513401302505 0.0059217110664765696 -0.02115320661997408
             0.0686295026103517 -0.15842313060766566 0.1813750088750916
""")
# ½·log 2π − ½
_LOG_ROOT = 0.4189385332046727
# Negative arguments closer to 0 than this have the value of their absolute value.
_CLOSE = {"float32": 2.0**-30, "float64": 2.0**-60}


def lgamma(x: Scalar) -> Scalar:
    """The logarithm of |Γ(x)|."""
    a = absolute(x)
    found = _of_positive(a)
    is_negative = x < -_CLOSE[x.dtype.name]

    # |Γ(x)| = π/(|x·sin(πx)|·Γ(|x|)); the sine is 0 at the poles, where its logarithm is −∞.
    r = distance_to_integer(a)
    sine = absolute(r) * polynomial(r * r, SIN_PI[x.dtype.name])
    product = a * (1.0 / math.pi) * sine
    mirrored = -(log(product) + found)
    at_end = where(r == 0.0, INF, mirrored)
    return rarely(is_negative, where(a == INF, x, at_end), found)


def _of_positive(a: Scalar) -> Scalar:
    """The logarithm of Γ(a) for a ≥ 0."""
    k, m = split_exponent(a)
    f = m - 1.0
    # log a, and log a − 1 with one rounding.
    logarithm, less_one = (log_of_product(k, f, add) for add in (0.0, -1.0))

    # log Γ(a) = (z − 1)(z − 2)·q(z) with z = a, or z = a + 1 less log a
    is_below = a < _NEAR
    bounded = at_most(a, _FAR)
    t = where(is_below, bounded, bounded - 1.0)
    s = t + (1.0 - _NEAR)
    above, below = (polynomial(s, c) for c in _LGAMMA_NEAR[a.dtype.name])
    factors = t * (t - 1.0)
    near = factors * above / below
    # Minus −0, so that the zeros are positive.
    near = near - where(is_below, logarithm, -0.0)

    # log Γ(a) = (a − ½)(log a − 1) + ½·log 2π − ½ + …/a
    inverse = 1.0 / a
    series = polynomial(inverse * inverse, _LGAMMA_FAR[a.dtype.name])
    rest = fma(series, inverse, _LOG_ROOT)
    far = fma(a - 0.5, less_one, rest)
    found = where(a < _FAR, near, far)
    # It is infinite at 0 and at infinity; NaN stays NaN.
    found = where(a < INF, found, a)
    return where(a == 0.0, INF, found)
