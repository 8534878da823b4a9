"""exp, exp2, expm1, sigmoid: split off a power of two, a polynomial for the rest."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    LOG2_E,
    at_least,
    at_most,
    constants,
    format_of,
    polynomial,
    power_of_two,
    rounded,
    scaled_in_two_steps,
    without_multiples_of_ln2,
)

# (eʳ − 1 − r)/r² as a polynomial, for |r| ≤ ln2/2; relative error of eʳ 2^-28.2 and 2^-57.9.
_EXP = {
    "float": (
        0.4999999403953552,
        0.16666516661643982,
        0.041668105870485306,
        0.00836913101375103,
        0.0013836441794410348,
    ),
    "double": (
        0.5000000000000011,
        0.1666666666666643,
        0.04166666666652566,
        0.008333333333479668,
        0.001388888894492553,
        0.00019841269546543123,
        2.4801491653985433e-05,
        2.7557543721523842e-06,
        2.763079641254105e-07,
        2.5015719442254775e-08,
    ),
}
# The same with the relative error of eʳ − 1 in mind: 2^-28.2 and 2^-60.4.
_EXPM1 = {
    "float": (
        0.5,
        0.16666635870933533,
        0.041666511446237564,
        0.008341509848833084,
        0.0013930537970736623,
        0.0001504616520833224,
    ),
    "double": (
        0.5,
        0.16666666666666677,
        0.041666666666666685,
        0.008333333333321832,
        0.0013888888888875268,
        0.00019841269885709654,
        2.4801587331532844e-05,
        2.755724447466605e-06,
        2.755729034996766e-07,
        2.5108985128932737e-08,
        2.0900328480194287e-09,
    ),
}
# (2ʳ − 1)/r as a polynomial, for |r| ≤ 1/2; relative error of 2ʳ 2^-26.3 and 2^-56.4.
EXP2 = {
    "float": (
        0.6931471824645996,
        0.24022594094276428,
        0.055503662675619125,
        0.00962543673813343,
        0.0013387928484007716,
        0.00013337316340766847,
    ),
    "double": (
        0.6931471805599453,
        0.24022650695910172,
        0.055504108664824574,
        0.009618129107577063,
        0.001333355814556659,
        0.00015403530478925786,
        1.5252734741781015e-05,
        1.3215424379797633e-06,
        1.0177651815176556e-07,
        7.075644826076406e-09,
        4.5204257388226177e-10,
    ),
}

# Beyond these arguments the result is infinite, or rounds to zero.
_EXP_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
_EXP2_RANGE = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
# Below the first expm1 is −1; closer to 0 than the second it is its argument.
_EXPM1_LOWEST = {"float": -18.0, "double": -38.0}
_EXPM1_SMALLEST = {"float": 2.0**-26, "double": 2.0**-55}


def exp(b: Builder, x: Value) -> Value:
    """eˣ = 2ᵏ·eʳ."""
    lowest, highest = _EXP_RANGE[x.type.scalar]
    return exp_of_bounded(b, at_least(b, at_most(b, x, highest), lowest))


def exp_of_bounded(b: Builder, x: Value) -> Value:
    """eˣ for arguments inside the range beyond which it is 0 or infinite."""
    k, shifted = rounded(b, x, LOG2_E, add=2 * format_of(x).bias)
    p = exp_of_remainder(b, without_multiples_of_ln2(b, x, k))
    return scaled_in_two_steps(b, p, shifted)


def exp_of_remainder(b: Builder, r: Value) -> Value:
    """eʳ for |r| ≤ ln2/2."""
    return b.fadd(exp_less_one_of_remainder(b, r), b.const(r.type, 1.0))


def exp_less_one_of_remainder(b: Builder, r: Value) -> Value:
    """eʳ − 1 = r + r²q for |r| ≤ ln2/2, as exact as it counts beside 1."""
    return b.fma(b.fmul(r, r), polynomial(b, r, _EXP[r.type.scalar]), r)


def exp2(b: Builder, x: Value) -> Value:
    """2ˣ = 2ᵏ·2ʳ."""
    lowest, highest = _EXP2_RANGE[x.type.scalar]
    x = at_least(b, at_most(b, x, highest), lowest)
    k, shifted = rounded(b, x, 1.0, add=2 * format_of(x).bias)
    return scaled_in_two_steps(b, exp2_of_remainder(b, b.exact_fsub(x, k)), shifted)


def exp2_of_remainder(b: Builder, r: Value) -> Value:
    """2ʳ for |r| ≤ 1/2."""
    return b.fma(r, polynomial(b, r, EXP2[r.type.scalar]), b.const(r.type, 1.0))


def expm1(b: Builder, x: Value) -> Value:
    """eˣ − 1 = 2ᵏ·(eʳ − 1) + (2ᵏ − 1)."""
    const = constants(b, x)
    bounded = at_least(b, at_most(b, x, _EXP_RANGE[x.type.scalar][1]), _EXPM1_LOWEST[x.type.scalar])
    # Half of the result, since 2ᵏ itself may overflow.
    k, shifted = rounded(b, bounded, LOG2_E, add=format_of(x).bias - 1)
    r = without_multiples_of_ln2(b, bounded, k)
    p = b.fma(b.fmul(r, r), polynomial(b, r, _EXPM1[x.type.scalar]), r)
    half_scale = power_of_two(b, shifted)
    half = b.fma(half_scale, p, b.fsub(half_scale, const(0.5)))
    is_tiny = b.fcmp("olt", b.fabs(x), const(_EXPM1_SMALLEST[x.type.scalar]))
    return b.select(is_tiny, x, b.fadd(half, half))


def sigmoid(b: Builder, x: Value) -> Value:
    """1/(1 + e⁻ˣ); for negative x, eˣ/(1 + eˣ), which keeps its digits where it is small."""
    one = b.const(x.type, 1.0)
    far = at_least(b, b.fneg(b.fabs(x)), _EXP_RANGE[x.type.scalar][0])
    e = exp_of_bounded(b, far)
    is_negative = b.fcmp("olt", x, b.const(x.type, 0.0))
    return b.fdiv(b.select(is_negative, e, one), b.fadd(one, e))
