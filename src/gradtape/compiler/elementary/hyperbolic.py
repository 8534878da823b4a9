"""sinh, cosh, tanh: split off a power of two, an even and an odd polynomial for the rest."""

from __future__ import annotations

from gradtape.compiler.elementary.pieces import (
    LOG2_E,
    at_most,
    format_of,
    polynomial,
    polynomials,
    power_of_two,
    rounded,
    without_multiples_of_ln2,
)
from gradtape.core.scalar import Scalar, absolute, copysign, fma, where

# (sinh(r)/r − 1)/r² as a polynomial in r², |r| ≤ ln2/2; relative error of sinh 2^-34.3 and 2^-61.7.
_SINH = polynomials("""
    float32: 0.1666666716337204 0.00833317544311285 0.00019974067981820554
    float64: 0.16666666666666677 0.008333333333321386 0.00019841269886815649 2.7557243452388233e-06
             2.5109320604289537e-08
""")
# (cosh(r) − 1)/r² as a polynomial in r², |r| ≤ ln2/2; error of cosh 2^-33.2 and 2^-58.0.
_COSH = polynomials("""
    float32: 0.5 0.041666459292173386 0.0013935437891632318
    float64: 0.5000000000000013 0.04166666666651048 0.001388888894835192 2.4801488512035428e-05
             2.7631807431821586e-07
""")
# (r·coth(r) − 1)/r² as a polynomial in r², |r| ≤ ln2/4; error of r·coth(r) 2^-28.8 and 2^-60.
_COTH = polynomials("""
    float32: 0.33333250880241394 -0.02213370054960251
    float64: 0.33333333333333204 -0.022222222221609935 0.002116402022528183 -0.0002116339321359214
             2.118700150810795e-05
""")

# Beyond these arguments sinh and cosh are infinite.
_HIGHEST = {"float32": 90.0, "float64": 711.0}
# Beyond this power of two, e⁻ˣ does not count beside eˣ.
_ONE_SIDED = 64
# Closer to 0 than this, sinh is its argument.
_SINH_SMALLEST = {"float32": 2.0**-13, "float64": 2.0**-28}
# Beyond these arguments tanh rounds to 1.
_TANH_HIGHEST = {"float32": 9.1, "float64": 19.1}


def sinh(x: Scalar) -> Scalar:
    """The hyperbolic sine."""
    # sinh(u + r) = sinh u·cosh r + cosh u·sinh r with u = k·ln2
    a = absolute(x)
    difference, total, s, c = _parts(a)
    # A quarter of it: difference + (difference·(cosh r − 1) + total·sinh r).
    quarter = difference + fma(difference, c, total * s)
    half = quarter + quarter
    is_small = a < _SINH_SMALLEST[x.dtype.name]
    return where(is_small, x, copysign(half + half, x))


def cosh(x: Scalar) -> Scalar:
    """The hyperbolic cosine."""
    # cosh(u + r) = cosh u·cosh r + sinh u·sinh r with u = k·ln2
    difference, total, s, c = _parts(absolute(x))
    quarter = total + fma(total, c, difference * s)
    half = quarter + quarter
    return half + half


def _parts(a: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """For a = k·ln2 + r ≥ 0: quarters of sinh(k·ln2) and cosh(k·ln2), then sinh r and cosh r − 1.

    Quarters, since 2ᵏ may overflow where the result does not.
    """
    form = format_of(a)
    a = at_most(a, _HIGHEST[a.dtype.name])
    k, shifted = rounded(a, LOG2_E, add=form.bias - 3)
    r = without_multiples_of_ln2(a, k)
    z = r * r
    s = fma(r * z, polynomial(z, _SINH[a.dtype.name]), r)
    c = z * polynomial(z, _COSH[a.dtype.name])
    grown = power_of_two(shifted)
    _, shifted_back = rounded(at_most(k, _ONE_SIDED), -1.0, add=form.bias - 3)
    shrunk = power_of_two(shifted_back)
    return grown - shrunk, grown + shrunk, s, c


def tanh(x: Scalar) -> Scalar:
    """The hyperbolic tangent.

    With |x| = k·ln2/2 + r and c = r·coth r, e^2|x| = 2ᵏ·(c + r)/(c − r), so that
    tanh |x| = n/(n + 2(c − r)) for n = 2ᵏ(c + r) − (c − r).
    """
    a = at_most(absolute(x), _TANH_HIGHEST[x.dtype.name])
    k, shifted = rounded(a, 2 * LOG2_E, add=format_of(x).bias)
    r = without_multiples_of_ln2(a, k, part=0.5)
    z = r * r
    c_less_one = z * polynomial(z, _COTH[x.dtype.name])
    growth = power_of_two(shifted) - 1.0
    # n = growth + (growth·(c − 1 + r) + 2r): the first and last are exact where they matter most.
    n = growth + fma(c_less_one + r, growth, r + r)
    below = fma(c_less_one - r, 2.0, n) + 2.0
    return copysign(n / below, x)
