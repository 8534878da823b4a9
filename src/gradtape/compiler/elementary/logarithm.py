"""log, log2, log10, log1p: split off a power of two, then log(1 + f) of the rest."""

from __future__ import annotations

import math

from gradtape.compiler.elementary.pieces import (
    INF,
    LN2,
    NAN,
    bits_of,
    exponent,
    format_of,
    number,
    polynomial,
    polynomials,
    split_exponent,
)
from gradtape.core.scalar import Scalar, bits, copysign, fma, from_bits, where

# (2·atanh(s)/s − 2)/s² as a polynomial in s², |s| ≤ 3 − √8; relative error of atanh 2^-30.2 and
# 2^-59.5.
_ATANH = polynomials("""
    float32: 0.6666677594184875 0.39977580308914185 0.29870927333831787
    float64: 0.6666666666666734 0.39999999999416397 0.28571428742116245 0.22222198593416082
             0.18183563568202857 0.15314063995431537 0.1479586449051603
""")
# 1/ln 2, 1/ln 10 and log10(2) in two parts each; the first of log10(2) is short, like that of ln 2.
_LOG2_E = {
    "float32": (1.4426950216293335, 1.925963033500011e-08),
    "float64": (1.4426950408889634, 2.0355273740931033e-17),
}
_LOG10_E = {
    "float32": (0.4342944920063019, -1.0103049952192578e-08),
    "float64": (0.4342944819032518, 1.098319650216765e-17),
}
_LOG10_2 = {
    "float32": (0.301025390625, 4.605039066518657e-06),
    "float64": (0.30102999566383914, 1.42050232272661e-13),
}


def log(x: Scalar) -> Scalar:
    """The natural logarithm."""
    k, m = split_exponent(x)
    f = m - 1.0
    return with_limits(x, x, log_of_product(k, f))


def log_of_product(k: Scalar, f: Scalar, whole: float = 0.0) -> Scalar:
    """log(2ᵏ·(1 + f)) for √½ ≤ 1 + f ≤ √2, plus a small integer added before rounding."""
    high, low = LN2[f.dtype.name]
    rest = f + _log_beyond(f, k * low)
    if not whole:
        return fma(k, high, rest)
    return k * high + whole + rest


def _log_beyond(f: Scalar, add: Scalar | None = None) -> Scalar:
    """log(1 + f) − f, plus another number.

    With s = f/(2 + f), log(1 + f) = 2·atanh(s) = f − s·(f − s²·(…)): an error of s hardly counts.
    """
    s = f / (f + 2.0)
    z = s * s
    t = fma(-z, polynomial(z, _ATANH[f.dtype.name]), f)
    return -s * t if add is None else fma(-s, t, add)


def with_limits(x: Scalar, u: Scalar, result: Scalar) -> Scalar:
    """The logarithm of u(x): x itself where x is ∞ or NaN, −∞ for u = 0, NaN for u < 0."""
    result = where(x < INF, result, x)
    at_end = where(u == 0.0, number(u, -INF), NAN)
    return where(u <= 0.0, at_end, result)


def log2(x: Scalar) -> Scalar:
    """The logarithm to base 2, exact for powers of 2."""
    k, m = split_exponent(x)
    f = m - 1.0
    high, low = _LOG2_E[x.dtype.name]
    y = fma(f, high, fma(f, low, _log_beyond(f) * high))
    return with_limits(x, x, k + y)


def log10(x: Scalar) -> Scalar:
    """The logarithm to base 10."""
    k, m = split_exponent(x)
    f = m - 1.0
    high, low = _LOG10_E[x.dtype.name]
    k_high, k_low = _LOG10_2[x.dtype.name]
    y = fma(f, low, fma(_log_beyond(f), high, k * k_low))
    return with_limits(x, x, fma(k, k_high, fma(f, high, y)))


def log1p(x: Scalar) -> Scalar:
    """log(1 + x), exact where 1 + x would round."""
    # Not fused with a product that x may be: the sum would belong to a number other than x.
    u = x + 1.0
    result = log_of_product(*split_one_plus(x, u))
    # The sign is that of x, even for −0.
    return with_limits(x, u, copysign(result, x))


def log1p_of_positive(x: Scalar, is_doubled: Scalar) -> Scalar:
    """log(1 + x) for x ≥ 0, and log(2(1 + x)) where `is_doubled`."""
    k, f = split_one_plus(x, x + 1.0)
    k = k + where(is_doubled, number(x, 1.0), 0.0)
    return where(x < INF, log_of_product(k, f), x)


def split_one_plus(x: Scalar, u: Scalar) -> tuple[Scalar, Scalar]:
    """1 + x = 2ᵏ·(1 + f): k and f, where u is 1 + x rounded; f = x·2⁻ᵏ + (2⁻ᵏ − 1)."""
    above = bits(u) - bits_of(x.dtype, math.sqrt(0.5))
    k_bits = above & -(2 ** format_of(x).mantissa)
    # Only x with |x| > 1/4 are scaled, so that the exponent can be changed in place.
    x_scaled = from_bits(bits(x) - k_bits)
    # 2 · 2⁻ᵏ rather than 2⁻ᵏ, whose exponent could not be stored for the largest x.
    twice = from_bits(bits_of(x.dtype, 2.0) - k_bits)
    return exponent(above), x_scaled + fma(twice, 0.5, -1.0)
