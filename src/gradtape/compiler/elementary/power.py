"""xʸ = 2^(y·log2 |x|), with about 65 bits of the logarithm so that large powers stay accurate."""

from __future__ import annotations

import numpy as np

from gradtape.compiler.elementary.exponential import EXP2
from gradtape.compiler.elementary.pieces import (
    INF,
    NAN,
    at_least,
    at_most,
    format_of,
    high_half,
    number,
    numbers,
    polynomial,
    power_of_two,
    rounded,
    scaled_in_two_steps,
    split_exponent,
)
from gradtape.core.scalar import (
    Scalar,
    absolute,
    bits,
    convert,
    copysign,
    fma,
    from_bits,
    left_shift,
    where,
)

# (3·atanh(s)/s − 3 − s²)/s⁴ as a polynomial in s², |s| ≤ 3 − √8; relative error of atanh 2^-66.3.
_ATANH = numbers("""
    0.6000000000000338 0.42857142855149055 0.333333337799797 0.27272676539787755 0.23080136590164368
    0.19885211052987234 0.19794651479574682
""")
# 2/(3·ln2), its first 26 digits and the rest.
_FACTOR = 0.9617966939259756
_FACTOR_HIGH = 0.9617966860532761
_FACTOR_LOW = 7.872699542894897e-09

# For single precision: log2(1 + f)/s for s = f/(2 + f), and 2ʳ; relative error 2^-37.8 and 2^-29.0.
_LOG2_SINGLE = numbers("""
    2.8853900817900944 0.9617966733326379 0.5770835866681849 0.4116726152746665 0.3407320837657145
""")
_EXP2_SINGLE = numbers("""
    1.000000000555718 0.6931472057749118 0.24022646880888074 0.05550328701294768
    0.009618489820963052 0.0013399960770563261 0.00015345624287837692
""")
# Beyond these powers of two results overflow or round to 0, in both directions.
_FURTHEST_SINGLE = 200.0
_FURTHEST_DOUBLE = 1100.0
# With exponents beyond the second, any base except 1 does so; with exponents below the first, every
# finite base gives 1.
_EXPONENTS = (2.0**-100, 2.0**70)
# Stands for log2 ∞: more than enough with all those exponents.
_INFINITE_LOGARITHM = 2.0**200


def power(x: Scalar, y: Scalar) -> Scalar:
    """xʸ, with the special cases of C's pow."""
    base, exponent = absolute(x), absolute(y)
    bounded = at_least(at_most(exponent, _EXPONENTS[1]), _EXPONENTS[0])
    positive = _single if x.dtype.itemsize == 4 else _double
    result = positive(base, copysign(bounded, y))
    # Negative bases: odd powers are negative, and fractional ones undefined, except for −∞ and −0.
    is_whole, is_odd = _whole_and_odd(exponent)
    sign = bits(x) & left_shift(is_odd, 8 * x.dtype.itemsize - 1)
    sign = where(is_whole, sign, 0)
    result = from_bits(bits(result) ^ sign)
    is_negative = (x < 0.0) & (x > -INF)
    is_defined = is_whole | ~is_negative
    result = where(is_defined, result, NAN)
    is_one = (y == 0.0) | (x == 1.0)
    return where(is_one, 1.0, result)


def _whole_and_odd(size: Scalar) -> tuple[Scalar, Scalar]:
    """Whether an absolute value is whole, and bits whose lowest is then that of the number."""
    one = 2.0 ** format_of(size).mantissa
    # From twice this number on all are even; from this number on the units are the lowest digit.
    size = at_most(size, 2.0 * one)
    add = where(size < one, number(size, one), 0.0)
    raised = size + add
    return raised - add == size, bits(raised)


def _finite_or_not(base: Scalar, k: Scalar) -> Scalar:
    """The exponent k of a base, or the numbers that stand for log2 0 and log2 ∞; NaN for NaN."""
    at_end = at_most(base, _INFINITE_LOGARITHM)
    k = where(base < INF, k, at_end)
    return where(base == 0.0, -_INFINITE_LOGARITHM, k)


def _single(base: Scalar, y: Scalar) -> Scalar:
    """The power of a base ≥ 0, by way of double precision, where nothing overflows."""
    base, y = convert(base, np.float64), convert(y, np.float64)
    k, m = split_exponent(base, subnormal=False)
    s = (m - 1.0) / (m + 1.0)
    k = _finite_or_not(base, k)
    z = y * fma(s, polynomial(s * s, _LOG2_SINGLE), k)
    z = at_least(at_most(z, _FURTHEST_SINGLE), -_FURTHEST_SINGLE)
    n, shifted = rounded(z, 1.0, add=format_of(base).bias)
    p = polynomial(z - n, _EXP2_SINGLE)
    return convert(p * power_of_two(shifted), np.float32)


def _double(base: Scalar, y: Scalar) -> Scalar:
    """The power of a base ≥ 0."""
    log_high, log_low = _log2_in_two_parts(base)
    # z + rest = y·(log_high + log_low); the product of the high parts is exact.
    y_high = high_half(y)
    z = y_high * log_high
    rest = fma(y - y_high, log_high, y * log_low)
    n, shifted = rounded(z, 1.0, add=2 * format_of(base).bias)
    z_less_n = z - n
    r = z_less_n + rest
    lost = z_less_n - r + rest
    # 2^(r + lost) = 1 + (r·q + lost·ln2)
    q = polynomial(r, EXP2["float64"])
    p = fma(r, q, lost * EXP2["float64"][0]) + 1.0
    result = scaled_in_two_steps(p, shifted)
    furthest = _FURTHEST_DOUBLE
    result = where(z > furthest, INF, result)
    return where(z < -furthest, 0.0, result)


def _log2_in_two_parts(base: Scalar) -> tuple[Scalar, Scalar]:
    """log2 base = high + low, where high has half the digits.

    With s = f/(2 + f), log2(1 + f) = 2/(3·ln2) · s·(3 + s² + …); products that must be exact are
    those of numbers with half the digits.
    """
    k, m = split_exponent(base)
    k = _finite_or_not(base, k)
    f, total = m - 1.0, m + 1.0
    inverse = 1.0 / total
    s = f * inverse
    # s = s_high + s_low: s_low = (f − s_high·(1 + m))/(1 + m)
    s_high = high_half(s)
    total_high = high_half(total)
    total_low = m - (total_high - 1.0)
    left = f - s_high * total_high
    s_low = inverse * (left - s_high * total_low)
    # t = 3 + s² + … = t_high + t_low
    square_high = s_high * s_high
    z = s * s
    beyond = fma(z * z, polynomial(z, _ATANH), s_low * (s_high + s))
    t_high = high_half(3.0 + square_high + beyond)
    t_low = beyond - (t_high - 3.0 - square_high)
    # u = 2/(3·ln2)·s = u_high + u_low
    main = s_high * _FACTOR_HIGH
    rest = fma(s_high, _FACTOR_LOW, s_low * _FACTOR)
    u = main + rest
    u_high = high_half(u)
    u_low = rest - (u_high - main)
    # k + u·t = high + low
    first = u_high * t_high
    second = fma(u_low, t_high, u * t_low)
    high = high_half(k + (first + second))
    low = second - (high - k - first)
    return high, low
