"""log, log2, log10, log1p: split off a power of two, then log(1 + f) of what is left."""

from __future__ import annotations

import math

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    INF,
    LN2,
    NAN,
    bits_of,
    constants,
    exponent,
    format_of,
    polynomial,
    split_exponent,
)

# (2·atanh(s)/s − 2)/s² as a polynomial in s², |s| ≤ 3 − √8; relative error of atanh 2^-30.2 and
# 2^-59.5.
_ATANH = {
    "float": (0.6666677594184875, 0.39977580308914185, 0.29870927333831787),
    "double": (
        0.6666666666666734,
        0.39999999999416397,
        0.28571428742116245,
        0.22222198593416082,
        0.18183563568202857,
        0.15314063995431537,
        0.1479586449051603,
    ),
}
# 1/ln 2, 1/ln 10 and log10(2) in two parts each; the first of log10(2) is short, as that of ln 2.
_LOG2_E = {
    "float": (1.4426950216293335, 1.925963033500011e-08),
    "double": (1.4426950408889634, 2.0355273740931033e-17),
}
_LOG10_E = {
    "float": (0.4342944920063019, -1.0103049952192578e-08),
    "double": (0.4342944819032518, 1.098319650216765e-17),
}
_LOG10_2 = {
    "float": (0.301025390625, 4.605039066518657e-06),
    "double": (0.30102999566383914, 1.42050232272661e-13),
}


def log(b: Builder, x: Value) -> Value:
    """The natural logarithm."""
    k, m = split_exponent(b, x)
    f = b.exact_fsub(m, b.const(x.type, 1.0))
    return with_limits(b, x, x, log_of_product(b, k, f))


def log_of_product(b: Builder, k: Value, f: Value, whole: float = 0.0) -> Value:
    """log(2ᵏ·(1 + f)) for √½ ≤ 1 + f ≤ √2, plus a small integer that is not rounded before."""
    high, low = (b.const(f.type, part) for part in LN2[f.type.scalar])
    rest = b.fadd(f, _log_beyond(b, f, b.fmul(k, low)))
    if not whole:
        return b.fma(k, high, rest)
    return b.fadd(b.exact_fadd(b.exact_fmul(k, high), b.const(f.type, whole)), rest)


def _log_beyond(b: Builder, f: Value, add: Value | None = None) -> Value:
    """log(1 + f) − f, plus another number.

    With s = f/(2 + f), log(1 + f) = 2·atanh(s) = f − s·(f − s²·(…)): an error of s hardly counts.
    """
    s = b.fdiv(f, b.fadd(f, b.const(f.type, 2.0)))
    z = b.fmul(s, s)
    t = b.fma(b.fneg(z), polynomial(b, z, _ATANH[f.type.scalar]), f)
    return b.fma(b.fneg(s), t, add) if add else b.fmul(b.fneg(s), t)


def with_limits(b: Builder, x: Value, u: Value, result: Value) -> Value:
    """The logarithm of u(x): x itself where that is ∞ or NaN, −∞ for u = 0, NaN for u < 0."""
    const = constants(b, u)
    result = b.select(b.fcmp("olt", x, const(INF)), result, x)
    at_end = b.select(b.fcmp("oeq", u, const(0.0)), const(-INF), const(NAN))
    return b.select(b.fcmp("ole", u, const(0.0)), at_end, result)


def log2(b: Builder, x: Value) -> Value:
    """The logarithm to base 2, exact for powers of 2."""
    k, m = split_exponent(b, x)
    f = b.exact_fsub(m, b.const(x.type, 1.0))
    high, low = (b.const(x.type, part) for part in _LOG2_E[x.type.scalar])
    y = b.fma(f, high, b.fma(f, low, b.fmul(_log_beyond(b, f), high)))
    return with_limits(b, x, x, b.fadd(k, y))


def log10(b: Builder, x: Value) -> Value:
    """The logarithm to base 10."""
    k, m = split_exponent(b, x)
    f = b.exact_fsub(m, b.const(x.type, 1.0))
    high, low = (b.const(x.type, part) for part in _LOG10_E[x.type.scalar])
    k_high, k_low = (b.const(x.type, part) for part in _LOG10_2[x.type.scalar])
    y = b.fma(f, low, b.fma(_log_beyond(b, f), high, b.fmul(k, k_low)))
    return with_limits(b, x, x, b.fma(k, k_high, b.fma(f, high, y)))


def log1p(b: Builder, x: Value) -> Value:
    """log(1 + x), exact where 1 + x would round."""
    # Exact: fused with a product that x may be, the sum would belong to another number than x.
    u = b.exact_fadd(x, b.const(x.type, 1.0))
    result = log_of_product(b, *split_one_plus(b, x, u))
    # The sign is that of x, also for −0.
    return with_limits(b, x, u, b.copysign(result, x))


def log1p_of_positive(b: Builder, x: Value, is_doubled: Value) -> Value:
    """log(1 + x) for x ≥ 0, and log(2(1 + x)) where `is_doubled`."""
    const = constants(b, x)
    k, f = split_one_plus(b, x, b.exact_fadd(x, const(1.0)))
    k = b.fadd(k, b.select(is_doubled, const(1.0), const(0.0)))
    return b.select(b.fcmp("olt", x, const(INF)), log_of_product(b, k, f), x)


def split_one_plus(b: Builder, x: Value, u: Value) -> tuple[Value, Value]:
    """1 + x = 2ᵏ·(1 + f): k and f, where u is 1 + x rounded; f = x·2⁻ᵏ + (2⁻ᵏ − 1)."""
    const, int_type = constants(b, x), x.type.as_int
    above = b.sub(b.bits(u), b.const(int_type, bits_of(x.type, math.sqrt(0.5))))
    k_bits = b.and_(above, b.const(int_type, -(2 ** format_of(x).mantissa)))
    # Only x with |x| > 1/4 are scaled, so that the exponent can be changed in place.
    x_scaled = b.from_bits(b.sub(b.bits(x), k_bits))
    # 2 · 2⁻ᵏ rather than 2⁻ᵏ, whose exponent could not be stored for the largest x.
    twice = b.from_bits(b.sub(b.const(int_type, bits_of(x.type, 2.0)), k_bits))
    return exponent(b, above), b.fadd(x_scaled, b.fma(twice, const(0.5), const(-1.0)))
