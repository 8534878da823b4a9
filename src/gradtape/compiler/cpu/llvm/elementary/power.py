"""xʸ = 2^(y·log2 |x|), the logarithm in about 65 bits so that large powers keep their digits."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.exponential import EXP2
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    INF,
    NAN,
    at_least,
    at_most,
    constants,
    format_of,
    high_half,
    is_single,
    polynomial,
    power_of_two,
    rounded,
    scaled_in_two_steps,
    split_exponent,
)

# (3·atanh(s)/s − 3 − s²)/s⁴ as a polynomial in s², |s| ≤ 3 − √8; relative error of atanh 2^-66.3.
_ATANH = (
    0.6000000000000338,
    0.42857142855149055,
    0.333333337799797,
    0.27272676539787755,
    0.23080136590164368,
    0.19885211052987234,
    0.19794651479574682,
)
# 2/(3·ln2), its first 26 digits and the rest.
_FACTOR = 0.9617966939259756
_FACTOR_HIGH = 0.9617966860532761
_FACTOR_LOW = 7.872699542894897e-09

# For single precision: log2(1 + f)/s for s = f/(2 + f), and 2ʳ; relative error 2^-37.8 and 2^-29.0.
_LOG2_SINGLE = (
    2.8853900817900944,
    0.9617966733326379,
    0.5770835866681849,
    0.4116726152746665,
    0.3407320837657145,
)
_EXP2_SINGLE = (
    1.000000000555718,
    0.6931472057749118,
    0.24022646880888074,
    0.05550328701294768,
    0.009618489820963052,
    0.0013399960770563261,
    0.00015345624287837692,
)
# Beyond these powers of two results overflow or round to 0, in both directions.
_FURTHEST_SINGLE = 200.0
_FURTHEST_DOUBLE = 1100.0
# With exponents beyond the second any base but 1 does so; with exponents below the first no finite
# base gives anything but 1.
_EXPONENTS = (2.0**-100, 2.0**70)
# What stands for log2 ∞: more than enough with all those exponents.
_INFINITE_LOGARITHM = 2.0**200


def power(b: Builder, x: Value, y: Value) -> Value:
    """xʸ, with the special cases of C's pow."""
    const = constants(b, x)
    base, exponent = b.fabs(x), b.fabs(y)
    bounded = at_least(b, at_most(b, exponent, _EXPONENTS[1]), _EXPONENTS[0])
    positive = _single if is_single(x) else _double
    result = positive(b, base, b.copysign(bounded, y))
    # Negative bases: odd powers are negative, other than whole ones undefined, but for −∞ and −0.
    is_whole, is_odd = _whole_and_odd(b, exponent)
    sign = b.and_(b.bits(x), b.shl(is_odd, b.const(is_odd.type, x.type.bits - 1)))
    sign = b.select(is_whole, sign, b.const(sign.type, 0))
    result = b.from_bits(b.xor(b.bits(result), sign))
    is_negative = b.and_(b.fcmp("olt", x, const(0.0)), b.fcmp("ogt", x, const(-INF)))
    is_defined = b.or_(is_whole, b.xor(is_negative, b.const(is_negative.type, 1)))
    result = b.select(is_defined, result, const(NAN))
    is_one = b.or_(b.fcmp("oeq", y, const(0.0)), b.fcmp("oeq", x, const(1.0)))
    return b.select(is_one, const(1.0), result)


def _whole_and_odd(b: Builder, size: Value) -> tuple[Value, Value]:
    """Whether a size is a whole number, and bits whose lowest then is that of the number."""
    one = 2.0 ** format_of(size).mantissa
    # From twice this number on all are even, from this number on the units are the lowest digit.
    size = at_most(b, size, 2.0 * one)
    add = b.select(
        b.fcmp("olt", size, b.const(size.type, one)),
        b.const(size.type, one),
        b.const(size.type, 0.0),
    )
    raised = b.exact_fadd(size, add)
    return b.fcmp("oeq", b.exact_fsub(raised, add), size), b.bits(raised)


def _finite_or_not(b: Builder, base: Value, k: Value) -> Value:
    """The exponent k of a base, but what stands for log2 0 and log2 ∞, and NaN for NaN."""
    const = constants(b, base)
    at_end = at_most(b, base, _INFINITE_LOGARITHM)
    k = b.select(b.fcmp("olt", base, const(INF)), k, at_end)
    return b.select(b.fcmp("oeq", base, const(0.0)), const(-_INFINITE_LOGARITHM), k)


def _single(b: Builder, base: Value, y: Value) -> Value:
    """The power of a base ≥ 0, by way of double precision, where nothing overflows."""
    base, y = b.convert("fpext", base, "double"), b.convert("fpext", y, "double")
    const = constants(b, base)
    k, m = split_exponent(b, base, subnormal=False)
    s = b.fdiv(b.fsub(m, const(1.0)), b.fadd(m, const(1.0)))
    k = _finite_or_not(b, base, k)
    z = b.fmul(y, b.fma(s, polynomial(b, b.fmul(s, s), _LOG2_SINGLE), k))
    z = at_least(b, at_most(b, z, _FURTHEST_SINGLE), -_FURTHEST_SINGLE)
    n, shifted = rounded(b, z, 1.0, add=format_of(base).bias)
    p = polynomial(b, b.exact_fsub(z, n), _EXP2_SINGLE)
    return b.convert("fptrunc", b.fmul(p, power_of_two(b, shifted)), "float")


def _double(b: Builder, base: Value, y: Value) -> Value:
    """The power of a base ≥ 0."""
    const = constants(b, base)
    log_high, log_low = _log2_in_two_parts(b, base)
    # z + rest = y·(log_high + log_low); the product of the high parts is exact.
    y_high = high_half(b, y)
    z = b.exact_fmul(y_high, log_high)
    rest = b.fma(b.exact_fsub(y, y_high), log_high, b.fmul(y, log_low))
    n, shifted = rounded(b, z, 1.0, add=2 * format_of(base).bias)
    z_less_n = b.exact_fsub(z, n)
    r = b.exact_fadd(z_less_n, rest)
    lost = b.exact_fadd(b.exact_fsub(z_less_n, r), rest)
    # 2^(r + lost) = 1 + (r·q + lost·ln2)
    q = polynomial(b, r, EXP2["double"])
    p = b.fadd(b.fma(r, q, b.fmul(lost, const(EXP2["double"][0]))), const(1.0))
    result = scaled_in_two_steps(b, p, shifted)
    furthest = const(_FURTHEST_DOUBLE)
    result = b.select(b.fcmp("ogt", z, furthest), const(INF), result)
    return b.select(b.fcmp("olt", z, b.fneg(furthest)), const(0.0), result)


def _log2_in_two_parts(b: Builder, base: Value) -> tuple[Value, Value]:
    """log2 base = high + low, where high has half the digits.

    With s = f/(2 + f), log2(1 + f) = 2/(3·ln2) · s·(3 + s² + …); products that must be exact are
    those of numbers with half the digits.
    """
    const = constants(b, base)
    k, m = split_exponent(b, base)
    k = _finite_or_not(b, base, k)
    f, total = b.exact_fsub(m, const(1.0)), b.exact_fadd(m, const(1.0))
    inverse = b.fdiv(const(1.0), total)
    s = b.fmul(f, inverse)
    # s = s_high + s_low: s_low = (f − s_high·(1 + m))/(1 + m)
    s_high = high_half(b, s)
    total_high = high_half(b, total)
    total_low = b.exact_fsub(m, b.exact_fsub(total_high, const(1.0)))
    left = b.exact_fsub(f, b.exact_fmul(s_high, total_high))
    s_low = b.fmul(inverse, b.exact_fsub(left, b.exact_fmul(s_high, total_low)))
    # t = 3 + s² + … = t_high + t_low
    square_high = b.exact_fmul(s_high, s_high)
    z = b.fmul(s, s)
    beyond = b.fma(b.fmul(z, z), polynomial(b, z, _ATANH), b.fmul(s_low, b.fadd(s_high, s)))
    t_high = high_half(b, b.fadd(b.exact_fadd(const(3.0), square_high), beyond))
    t_low = b.exact_fsub(beyond, b.exact_fsub(b.exact_fsub(t_high, const(3.0)), square_high))
    # u = 2/(3·ln2)·s = u_high + u_low
    main = b.exact_fmul(s_high, const(_FACTOR_HIGH))
    rest = b.fma(s_high, const(_FACTOR_LOW), b.fmul(s_low, const(_FACTOR)))
    u = b.exact_fadd(main, rest)
    u_high = high_half(b, u)
    u_low = b.exact_fsub(rest, b.exact_fsub(u_high, main))
    # k + u·t = high + low
    first = b.exact_fmul(u_high, t_high)
    second = b.fma(u_low, t_high, b.fmul(u, t_low))
    high = high_half(b, b.exact_fadd(k, b.exact_fadd(first, second)))
    low = b.exact_fsub(second, b.exact_fsub(b.exact_fsub(high, k), first))
    return high, low
