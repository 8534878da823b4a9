"""Conversions between float32 and the 16-bit floats, which are integers of 16 bits in registers.

Nothing is computed in 16 bits: values are converted when they are loaded, and rounded to the
nearest, ties to even, when an op is done. Subnormal numbers keep their values, which the CPU's own
conversion to bfloat16 would replace by 0.
"""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value

HALVES = ("bfloat16", "float16")

# The bits of float32 where float16 ends: its smallest normal number, and 2^16, which is too large.
_SMALLEST, _TOO_LARGE = 113 << 23, 143 << 23
_INFINITY = 255 << 23
_MANTISSA = 13  # so many bits fewer than float32


def from_half(b: Builder, x: Value, name: str) -> Value:
    """The float32 of a 16-bit float, whose dtype has this name."""
    if name == "bfloat16":
        return b.from_bits(b.shl(b.convert("zext", x, "i32"), 16))
    if b.module.has_half:
        return b.convert("fpext", b.convert("bitcast", x, "half"), "float")
    wide = b.convert("zext", x, "i32")
    size = b.shl(b.and_(wide, 0x7FFF), _MANTISSA)
    exponent = b.and_(size, 31 << 23)
    # Exponents move from a bias of 15 to one of 127; infinity and NaN to the end of the range.
    moved = b.add(size, 112 << 23)
    at_end = b.icmp("eq", exponent, 31 << 23)
    normal = b.select(at_end, b.add(moved, 112 << 23), moved)
    # A subnormal number is what its bits lack to those of the smallest normal number.
    start = b.const(normal.type.of("float"), 2.0**-14)
    low = b.exact_fsub(b.from_bits(b.add(size, _SMALLEST)), start)
    size = b.select(b.icmp("eq", exponent, 0), b.bits(low), normal)
    return b.from_bits(b.or_(size, b.shl(b.and_(wide, 0x8000), 16)))


def to_half(b: Builder, x: Value, name: str) -> Value:
    """A float32 rounded to the 16-bit float of this name."""
    if name == "bfloat16":
        return _to_bfloat16(b, x)
    if b.module.has_half:
        return b.convert("bitcast", b.convert("fptrunc", x, "half"), "i16")
    bits = b.bits(x)
    size = b.and_(bits, 0x7FFFFFFF)
    normal = b.lshr(b.sub(_rounding(b, size, _MANTISSA), 112 << 23), _MANTISSA)
    # Adding 0.5 moves the bits of subnormal numbers to the end, and rounds them.
    half = b.const(x.type, 0.5)
    low = b.sub(b.bits(b.exact_fadd(b.from_bits(size), half)), b.bits(half))
    number = b.select(b.icmp("ult", size, _SMALLEST), low, normal)
    infinity, nan = b.const(size.type, 0x7C00), b.const(size.type, 0x7E00)
    quiet = b.select(b.icmp("ugt", size, _INFINITY), nan, infinity)
    number = b.select(b.icmp("ult", size, _TOO_LARGE), number, quiet)
    sign = b.and_(b.lshr(bits, 16), 0x8000)
    return b.convert("trunc", b.or_(number, sign), "i16")


def _to_bfloat16(b: Builder, x: Value) -> Value:
    bits = b.bits(x)
    # Rounding up the bits of NaN could make them those of infinity or 0.
    quiet = b.or_(bits, 1 << 22)
    number = b.select(b.fcmp("uno", x, x), quiet, _rounding(b, bits, 16))
    return b.convert("trunc", b.lshr(number, 16), "i16")


def _rounding(b: Builder, bits: Value, dropped: int) -> Value:
    """Bits to cut off `dropped` of, plus what rounds them to the nearest, ties to even."""
    odd = b.and_(b.lshr(bits, dropped), 1)
    return b.add(b.add(bits, (1 << (dropped - 1)) - 1), odd)
