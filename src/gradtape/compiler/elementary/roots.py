"""cbrt and hypot."""

from __future__ import annotations

from gradtape.compiler.elementary.pieces import (
    INF,
    format_of,
    high_half,
    number,
    polynomial,
    polynomials,
    power_of_two,
    rounded,
    split_exponent,
)
from gradtape.core.scalar import Scalar, absolute, copysign, fma, sqrt, where

# The cube root between √½ and √2; relative error 2^-13.7 and 2^-19.6.
_CBRT = polynomials("""
    float32: 0.4925025087121205 0.7397102230208688 -0.2903435330356775 0.058200835766033396
    float64: 0.4216855730795013 1.056011414888278 -0.836013742040967 0.5108639569622778
             -0.1794853201455367 0.026937114806077394
""")
_CBRT_2 = 1.2599210498948732

# hypot scales arguments beyond these bounds by these factors, so that squares stay in range.
_LARGE = {"float32": (2.0**62, 2.0**-64), "float64": (2.0**510, 2.0**-512)}
_SMALL = {"float32": (2.0**-50, 2.0**76), "float64": (2.0**-450, 2.0**600)}


def cbrt(x: Scalar) -> Scalar:
    """The cube root: a polynomial for the mantissa, then one step of Halley's method."""
    a = absolute(x)
    k, m = split_exponent(a)
    # k = 3q + j with j = −1, 0 or 1
    q, shifted = rounded(k, 1.0 / 3.0, add=format_of(x).bias)
    j = fma(q, -3.0, k)
    above, below = j > 0.0, j < 0.0

    def by_rest(one_more: float, one_less: float) -> Scalar:
        return where(above, one_more, where(below, one_less, number(x, 1.0)))

    m_full = m * by_rest(2.0, 0.5)
    guess = polynomial(m, _CBRT[x.dtype.name]) * by_rest(_CBRT_2, 1.0 / _CBRT_2)
    # With half of its digits, the square of the guess is exact.
    t = high_half(guess)
    r = m_full / (t * t)
    # Halley for t³ = m with r = m/t²: t + t·(r − t)/(2t + r)
    step = (r - t) / (t + t + r)
    result = copysign(fma(t, step, t) * power_of_two(shifted), x)
    is_usual = (a > 0.0) & (a < INF)
    return where(is_usual, result, x)


def hypot(x: Scalar, y: Scalar) -> Scalar:
    """√(x² + y²) without overflow or loss of digits on the way."""
    width, height = absolute(x), absolute(y)
    is_wider = width > height
    greater, lesser = where(is_wider, width, height), where(is_wider, height, width)
    (large, lowered), (small, raised) = _LARGE[x.dtype.name], _SMALL[x.dtype.name]
    is_large, is_small = greater > large, greater < small
    factor = where(is_small, raised, where(is_large, lowered, number(x, 1.0)))
    inverse = where(is_small, 1.0 / raised, where(is_large, 1.0 / lowered, number(x, 1.0)))
    greater, lesser = greater * factor, lesser * factor
    root = sqrt(fma(greater, greater, lesser * lesser))
    result = root * inverse
    # Infinite if one of them is, even beside NaN.
    is_infinite = (width == INF) | (height == INF)
    return where(is_infinite, INF, result)
