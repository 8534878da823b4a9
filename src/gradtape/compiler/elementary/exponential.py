"""exp, exp2, expm1, sigmoid: split off a power of two, a polynomial for the rest."""

from __future__ import annotations

from gradtape.compiler.elementary.pieces import (
    LOG2_E,
    at_least,
    at_most,
    format_of,
    polynomial,
    polynomials,
    power_of_two,
    rounded,
    scaled_in_two_steps,
    without_multiples_of_ln2,
)
from gradtape.core.scalar import Scalar, absolute, fma, where

# (eʳ − 1 − r)/r² as a polynomial, for |r| ≤ ln2/2; relative error of eʳ 2^-28.2 and 2^-57.9.
_EXP = polynomials("""
    float32: 0.4999999403953552 0.16666516661643982 0.041668105870485306 0.00836913101375103
             0.0013836441794410348
    float64: 0.5000000000000011 0.1666666666666643 0.04166666666652566 0.008333333333479668
             0.001388888894492553 0.00019841269546543123 2.4801491653985433e-05
             2.7557543721523842e-06 2.763079641254105e-07 2.5015719442254775e-08
""")
# The same, fitted to the relative error of eʳ − 1: 2^-28.2 and 2^-60.4.
_EXPM1 = polynomials("""
    float32: 0.5 0.16666635870933533 0.041666511446237564 0.008341509848833084 0.0013930537970736623
             0.0001504616520833224
    float64: 0.5 0.16666666666666677 0.041666666666666685 0.008333333333321832 0.0013888888888875268
             0.00019841269885709654 2.4801587331532844e-05 2.755724447466605e-06
             2.755729034996766e-07 2.5108985128932737e-08 2.0900328480194287e-09
""")
# (2ʳ − 1)/r as a polynomial, for |r| ≤ 1/2; relative error of 2ʳ 2^-26.3 and 2^-56.4.
EXP2 = polynomials("""
    float32: 0.6931471824645996 0.24022594094276428 0.055503662675619125 0.00962543673813343
             0.0013387928484007716 0.00013337316340766847
    float64: 0.6931471805599453 0.24022650695910172 0.055504108664824574 0.009618129107577063
             0.001333355814556659 0.00015403530478925786 1.5252734741781015e-05
             1.3215424379797633e-06 1.0177651815176556e-07 7.075644826076406e-09
             4.5204257388226177e-10
""")

# Beyond these arguments the result is infinite, or rounds to zero.
_EXP_RANGE = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}
_EXP2_RANGE = {"float32": (-151.0, 129.0), "float64": (-1076.0, 1025.0)}
# Below the first, expm1 is −1; closer to 0 than the second, it is its argument.
_EXPM1_LOWEST = {"float32": -18.0, "float64": -38.0}
_EXPM1_SMALLEST = {"float32": 2.0**-26, "float64": 2.0**-55}


def exp(x: Scalar) -> Scalar:
    """eˣ = 2ᵏ·eʳ."""
    lowest, highest = _EXP_RANGE[x.dtype.name]
    return exp_of_bounded(at_least(at_most(x, highest), lowest))


def exp_of_bounded(x: Scalar) -> Scalar:
    """eˣ for arguments inside the range beyond which it is 0 or infinite."""
    k, shifted = rounded(x, LOG2_E, add=2 * format_of(x).bias)
    p = exp_of_remainder(without_multiples_of_ln2(x, k))
    return scaled_in_two_steps(p, shifted)


def exp_of_remainder(r: Scalar) -> Scalar:
    """eʳ for |r| ≤ ln2/2."""
    return exp_less_one_of_remainder(r) + 1.0


def exp_less_one_of_remainder(r: Scalar) -> Scalar:
    """eʳ − 1 = r + r²q for |r| ≤ ln2/2, as exact as a number added to 1 needs to be."""
    return fma(r * r, polynomial(r, _EXP[r.dtype.name]), r)


def exp2(x: Scalar) -> Scalar:
    """2ˣ = 2ᵏ·2ʳ."""
    lowest, highest = _EXP2_RANGE[x.dtype.name]
    x = at_least(at_most(x, highest), lowest)
    k, shifted = rounded(x, 1.0, add=2 * format_of(x).bias)
    return scaled_in_two_steps(exp2_of_remainder(x - k), shifted)


def exp2_of_remainder(r: Scalar) -> Scalar:
    """2ʳ for |r| ≤ 1/2."""
    return fma(r, polynomial(r, EXP2[r.dtype.name]), 1.0)


def expm1(x: Scalar) -> Scalar:
    """eˣ − 1 = 2ᵏ·(eʳ − 1) + (2ᵏ − 1)."""
    bounded = at_least(at_most(x, _EXP_RANGE[x.dtype.name][1]), _EXPM1_LOWEST[x.dtype.name])
    # Half of the result, since 2ᵏ itself may overflow.
    k, shifted = rounded(bounded, LOG2_E, add=format_of(x).bias - 1)
    r = without_multiples_of_ln2(bounded, k)
    p = fma(r * r, polynomial(r, _EXPM1[x.dtype.name]), r)
    half_scale = power_of_two(shifted)
    half = fma(half_scale, p, half_scale - 0.5)
    is_tiny = absolute(x) < _EXPM1_SMALLEST[x.dtype.name]
    return where(is_tiny, x, half + half)


def sigmoid(x: Scalar) -> Scalar:
    """1/(1 + e⁻ˣ); for negative x, eˣ/(1 + eˣ), which keeps full precision where it is small."""
    far = at_least(-absolute(x), _EXP_RANGE[x.dtype.name][0])
    e = exp_of_bounded(far)
    is_negative = x < 0.0
    return where(is_negative, e, 1.0) / (1.0 + e)
