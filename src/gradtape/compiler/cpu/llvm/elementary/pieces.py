"""What the elementary functions are made of: constants, polynomials, bounds, exponents.

Everything works on `float` and `double` in any number of lanes and is straight-line code. Rounding
to an integer goes by adding a large number: conversions are undefined for NaN, and for 64-bit
integers slow on older CPUs. Comparisons are chosen such that NaN passes through.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradtape.compiler.cpu.llvm.builder import Builder, Type, Value

INF = math.inf
NAN = math.nan
LOG2_E = 1.4426950408889634

# ln 2 in two parts. The first ends in so many zeros that its product with an exponent is exact,
# with or without a fused multiply-add.
LN2 = {
    "float": (0.693145751953125, 1.428606765330187e-06),
    "double": (0.6931471805598903, 5.497923018708371e-14),
}


class Format(NamedTuple):
    """The layout of a floating-point type.

    Attributes:
        mantissa: Bits of the mantissa that are stored.
        bias: What is added to an exponent to store it.
        shifter: 1.5 · 2^mantissa. Adding it to a much smaller number rounds that to an integer,
            which then stands in the lowest bits of the sum.
        tiny: The smallest normal number.
    """

    mantissa: int
    bias: int
    shifter: float
    tiny: float


FORMATS = {
    "float": Format(23, 127, 1.5 * 2.0**23, 2.0**-126),
    "double": Format(52, 1023, 1.5 * 2.0**52, 2.0**-1022),
}


def format_of(x: Value) -> Format:
    """The layout of a value's scalar type."""
    return FORMATS[x.type.scalar]


def is_single(x: Value) -> bool:
    """Whether a value is `float` rather than `double`."""
    return x.type.scalar == "float"


def constants(b: Builder, x: Value) -> Callable[[float], Value]:
    """A function that makes constants of a value's type."""
    return lambda number: b.const(x.type, number)


def bits_of(type: Type, number: float) -> int:
    """The bits of a number in a floating-point type, as an integer."""
    code = ("<f", "<i") if type.scalar == "float" else ("<d", "<q")
    return int(struct.unpack(code[1], struct.pack(code[0], number))[0])


# ---- polynomials ---------------------------------------------------------------------------------


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Write c₀ + c₁x + c₂x² + … for the given coefficients.

    The even and odd powers of long ones run side by side; the lowest two coefficients, where
    rounding counts, are added last and one by one.
    """
    c = [b.const(x.type, number) for number in coefficients]
    if len(c) <= 4:
        return _horner(b, x, c)
    square = b.fmul(x, x)
    even, odd = _horner(b, square, c[2::2]), _horner(b, square, c[3::2])
    return _horner(b, x, [*c[:2], b.fma(odd, x, even)])


def _horner(b: Builder, x: Value, coefficients: Sequence[Value]) -> Value:
    """c₀ + x(c₁ + x(c₂ + …))."""
    result = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = b.fma(result, x, c)
    return result


# ---- bounds --------------------------------------------------------------------------------------


def at_most(b: Builder, x: Value, bound: float) -> Value:
    """The lesser of x and a bound; NaN stays NaN."""
    limit = b.const(x.type, bound)
    return b.select(b.fcmp("ogt", x, limit), limit, x)


def at_least(b: Builder, x: Value, bound: float) -> Value:
    """The greater of x and a bound; NaN stays NaN."""
    limit = b.const(x.type, bound)
    return b.select(b.fcmp("olt", x, limit), limit, x)


# ---- exponents -----------------------------------------------------------------------------------


def rounded(b: Builder, x: Value, factor: float, add: int = 0) -> tuple[Value, Value]:
    """The integer k nearest to x·factor, as a float, and bits whose lowest hold k + add."""
    const = constants(b, x)
    shifter = const(format_of(x).shifter + add)
    shifted = b.fma(x, const(factor), shifter)
    return b.exact_fsub(shifted, shifter), b.bits(shifted)


def without_multiples_of_ln2(b: Builder, x: Value, k: Value, part: float = 1.0) -> Value:
    """The difference x − k·ln2·part."""
    high, low = (b.const(x.type, -number * part) for number in LN2[x.type.scalar])
    return b.fma(k, low, b.fma(k, high, x))


def power_of_two(b: Builder, shifted: Value) -> Value:
    """2ᵏ for bits whose lowest hold k + bias."""
    type = Type("float" if shifted.type.bits == 32 else "double", shifted.type.lanes)
    mantissa = FORMATS[type.scalar].mantissa
    return b.from_bits(b.shl(shifted, b.const(shifted.type, mantissa)))


def scaled_in_two_steps(b: Builder, p: Value, shifted: Value) -> Value:
    """p·2ᵏ for bits whose lowest hold k + 2·bias.

    In two factors, since 2ᵏ itself is no normal number where results overflow or are subnormal.
    """
    half = b.lshr(shifted, b.const(shifted.type, 1))
    other_half = b.sub(shifted, half)
    return b.fmul(b.fmul(p, power_of_two(b, half)), power_of_two(b, other_half))


def split_exponent(b: Builder, x: Value, *, subnormal: bool = True) -> tuple[Value, Value]:
    """The k, as a float, and m of x = 2ᵏ·m with √½ ≤ m ≤ √2, for 0 < x < ∞.

    Args:
        b: Where to write.
        x: The numbers.
        subnormal: Whether some may be subnormal.
    """
    const, form, int_type = constants(b, x), format_of(x), x.type.as_int
    lifted = None
    if subnormal:
        lift = form.mantissa + 1
        is_subnormal = b.fcmp("olt", x, const(form.tiny))
        x = b.select(is_subnormal, b.fmul(x, const(2.0**lift)), x)
        lifted = b.select(is_subnormal, const(lift), const(0.0))
    above = b.sub(b.bits(x), b.const(int_type, bits_of(x.type, math.sqrt(0.5))))
    k = exponent(b, above, lifted)
    digits = b.and_(above, b.const(int_type, 2**form.mantissa - 1))
    m = b.from_bits(b.add(digits, b.const(int_type, bits_of(x.type, math.sqrt(0.5)))))
    return k, m


def exponent(b: Builder, bits: Value, subtract: Value | None = None) -> Value:
    """Bits shifted down by the size of a mantissa, as a signed number; less another number."""
    type = Type("float" if bits.type.bits == 32 else "double", bits.type.lanes)
    form = FORMATS[type.scalar]
    mantissa = b.const(bits.type, form.mantissa)
    if type.scalar == "float":
        k = b.convert("sitofp", b.ashr(bits, mantissa), "float")
        return b.exact_fsub(k, subtract) if subtract else k
    # Older CPUs convert 64-bit integers slowly; one put into the mantissa of 2^52 is added to it.
    positive = b.add(bits, b.const(bits.type, bits_of(type, 1.0)))
    large = b.const(bits.type, bits_of(type, 2.0**form.mantissa))
    offset = b.const(type, 2.0**form.mantissa + form.bias)
    if subtract:
        offset = b.exact_fadd(offset, subtract)
    return b.exact_fsub(b.from_bits(b.or_(b.lshr(positive, mantissa), large)), offset)


def high_half(b: Builder, x: Value) -> Value:
    """The upper half of the digits of x: products of two such numbers are exact."""
    low_digits = (format_of(x).mantissa + 2) // 2
    bits = b.bits(x)
    return b.from_bits(b.and_(bits, b.const(bits.type, -(2**low_digits))))


# ---- what few lanes need -------------------------------------------------------------------------


def where_any(
    b: Builder, condition: Value, function: Callable[[], Value], otherwise: Value
) -> Value:
    """What a function writes if a condition holds in some lane, else a value that is there already.

    The function chooses by lanes itself. Branches, and leaves the builder in a new block.
    """
    before, inside, after = b.block, b.new_block("rare"), b.new_block("common")
    b.branch_if(b.any(condition), inside, after)
    b.start(inside)
    found = function()
    inside = b.block
    b.branch(after)
    b.start(after)
    return b.phi(otherwise.type, (otherwise, before), (found, inside))
