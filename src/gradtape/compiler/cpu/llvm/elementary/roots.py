"""sqrt, cbrt, hypot."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    INF,
    constants,
    format_of,
    high_half,
    polynomial,
    power_of_two,
    rounded,
    split_exponent,
)

# The cube root between √½ and √2; relative error 2^-13.7 and 2^-19.6.
_CBRT = {
    "float": (0.4925025087121205, 0.7397102230208688, -0.2903435330356775, 0.058200835766033396),
    "double": (
        0.4216855730795013,
        1.056011414888278,
        -0.836013742040967,
        0.5108639569622778,
        -0.1794853201455367,
        0.026937114806077394,
    ),
}
_CBRT_2 = 1.2599210498948732

# hypot scales arguments beyond these bounds by these factors, so that squares stay in range.
_LARGE = {"float": (2.0**62, 2.0**-64), "double": (2.0**510, 2.0**-512)}
_SMALL = {"float": (2.0**-50, 2.0**76), "double": (2.0**-450, 2.0**600)}


def sqrt(b: Builder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return b.sqrt(x)


def cbrt(b: Builder, x: Value) -> Value:
    """The cube root: a polynomial for the mantissa, then one step of Halley's method."""
    const = constants(b, x)
    a = b.fabs(x)
    k, m = split_exponent(b, a)
    # k = 3q + j with j = −1, 0 or 1
    q, shifted = rounded(b, k, 1.0 / 3.0, add=format_of(x).bias)
    j = b.fma(q, const(-3.0), k)
    above, below = b.fcmp("ogt", j, const(0.0)), b.fcmp("olt", j, const(0.0))

    def by_rest(one_more: float, one_less: float) -> Value:
        return b.select(above, const(one_more), b.select(below, const(one_less), const(1.0)))

    m_full = b.fmul(m, by_rest(2.0, 0.5))
    guess = b.fmul(polynomial(b, m, _CBRT[x.type.scalar]), by_rest(_CBRT_2, 1.0 / _CBRT_2))
    # With half of its digits, the square of the guess is exact.
    t = high_half(b, guess)
    r = b.fdiv(m_full, b.exact_fmul(t, t))
    # Halley for t³ = m with r = m/t²: t + t·(r − t)/(2t + r)
    step = b.fdiv(b.exact_fsub(r, t), b.fadd(b.fadd(t, t), r))
    result = b.copysign(b.fmul(b.fma(t, step, t), power_of_two(b, shifted)), x)
    is_usual = b.and_(b.fcmp("ogt", a, const(0.0)), b.fcmp("olt", a, const(INF)))
    return b.select(is_usual, result, x)


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """√(x² + y²) without overflow or loss of digits on the way."""
    const = constants(b, x)
    width, height = b.fabs(x), b.fabs(y)
    is_wider = b.fcmp("ogt", width, height)
    greater, lesser = b.select(is_wider, width, height), b.select(is_wider, height, width)
    factor, inverse = const(1.0), const(1.0)
    for predicate, (bound, scale) in (
        ("ogt", _LARGE[x.type.scalar]),
        ("olt", _SMALL[x.type.scalar]),
    ):
        outside = b.fcmp(predicate, greater, const(bound))
        factor = b.select(outside, const(scale), factor)
        inverse = b.select(outside, const(1.0 / scale), inverse)
    greater, lesser = b.fmul(greater, factor), b.fmul(lesser, factor)
    root = b.sqrt(b.fma(greater, greater, b.fmul(lesser, lesser)))
    result = b.fmul(root, inverse)
    # Infinite if one of them is, even beside NaN.
    is_infinite = b.or_(b.fcmp("oeq", width, const(INF)), b.fcmp("oeq", height, const(INF)))
    return b.select(is_infinite, const(INF), result)
