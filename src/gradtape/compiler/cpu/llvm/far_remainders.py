"""Remainders of huge arguments modulo π: x/π from the bits of 1/π that matter for it.

Bits of 1/π whose product with x is a multiple of 2 change nothing, and those far below the point
do not count: 192 bits in between give x/π modulo 2 to 127 bits after the point, in integers. No
double except 0 is closer to a multiple of π/2 than 2^-62, which leaves more than 60 of these bits.

One function per module, called in the rare case that a lane needs it.
"""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import I64, PTR, Builder, Module, Type, Value

_NAME = "gradtape.far_remainders"
_TABLE = "gradtape.inverse_pi"
_I128 = Type("i128")
_F64 = Type("double")

# 64 zeros, then the first 1216 bits of 1/π after the point.
INVERSE_PI_WORDS = (
    0x0000000000000000,
    0x517CC1B727220A94,
    0xFE13ABE8FA9A6EE0,
    0x6DB14ACC9E21C820,
    0xFF28B1D5EF5DE2B0,
    0xDB92371D2126E970,
    0x0324977504E8C90E,
    0x7F0EF58E5894D39F,
    0x74411AFA975DA242,
    0x74CE38135A2FBF20,
    0x9CC8EB1CC1A99CFA,
    0x4E422FC5DEFC941D,
    0x8FFC4BFFEF02CC07,
    0xF79788C5AD05368F,
    0xB69B3F6793E584DB,
    0xA7A31FB34F2FF516,
    0xBA93DD63F5F2F8BD,
    0x9E839CFBC5294975,
    0x35FDAFD88FC6AE84,
    0x2B0198237E3DB5D5,
)
_PI_62 = 0xC90FDAA22168C234  # π · 2^62


def with_far_remainders(
    b: Builder, x: Value, r: Value, k: Value, unit: float, offset: float, near: float
) -> tuple[Value, Value]:
    """The given remainders and multiples, corrected in lanes where |x| is beyond `near`.

    Args:
        b: The builder to write with.
        x: The arguments, in double precision.
        r: Remainders of x + offset·π modulo unit·π.
        k: Integers whose lowest bit is that of the multiple.
        unit: 1 or 1/2.
        offset: 0 or 1/2; with 1/2, x must not be negative.
        near: The bound of |x| up to which r and k are right.
    """
    if not b.module.defines(_NAME):
        b.module.define(_table())
        b.module.define(_function(b.module))
    rooms = [b.spare(value.type, number) for number, value in enumerate((x, r, k))]
    for value, room in zip((x, r, k), rooms, strict=True):
        b.store(value, room)
    numbers = b.const(I64, x.type.lanes), b.const(_F64, near)
    steps = b.const(I64, int(offset * 2**63)), b.const(I64, 0 if unit == 1.0 else 1)
    b.emit(f"call void @{_NAME}({', '.join(map(str, (*rooms, *numbers, *steps)))})")
    return b.load(rooms[1], r.type), b.load(rooms[2], k.type)


def _table() -> str:
    words = ", ".join(f"i64 {word}" for word in INVERSE_PI_WORDS)
    return f"@{_TABLE} = internal constant [{len(INVERSE_PI_WORDS)} x i64] [{words}]"


def _function(module: Module) -> str:
    """For each lane with near < |x| < ∞: replace r and k."""
    b = Builder(module)
    x, r, k = (Value(PTR, name) for name in ("%x", "%r", "%k"))
    lanes, offset, halving = (Value(I64, name) for name in ("%lanes", "%offset", "%halving"))
    near = Value(_F64, "%near")
    with b.loop(lanes) as lane:
        number = b.load(b.element(x, lane, "double"), _F64)
        size = b.fabs(number)
        is_far = b.fcmp("ogt", size, near)
        is_finite = b.fcmp("olt", size, float("inf"))
        with b.only_if(b.and_(is_far, is_finite)):
            turns = _turns(b, b.bits(number))
            turns = b.shl(b.add(turns, _high(b, offset)), b.convert("zext", halving, "i128"))
            remainder, multiple = _nearest(b, turns, halving)
            # sin and tan are odd; the offset belongs to cos, whose arguments are not negative.
            sign = b.and_(b.bits(number), -(2**63))
            b.store(b.from_bits(b.xor(b.bits(remainder), sign)), b.element(r, lane, "double"))
            b.store(multiple, b.element(k, lane, "i64"))
    b.emit("ret void")
    listed = ", ".join(map(str, (x, r, k, lanes, near, offset, halving)))
    return b.function(f"define internal void @{_NAME}({listed}) noinline cold nounwind")


def _turns(b: Builder, bits: Value) -> Value:
    """|x|/π modulo 2 for the bits of x, as a 128-bit integer in units of 2^-127."""
    exponent = b.and_(b.lshr(bits, 52), 0x7FF)
    mantissa = b.or_(b.and_(bits, 2**52 - 1), 2**52)
    # |x| = mantissa · 2^(exponent − 1075): bits of the table before this one have no effect.
    first = b.sub(exponent, 1075 - 63)
    word, shift = b.lshr(first, 6), b.and_(first, 63)
    table = Value(PTR, f"@{_TABLE}")
    words = [b.load(b.element(table, b.add(word, n), "i64"), I64) for n in range(4)]
    window = [b.intrinsic("fshl", I64, *words[n : n + 2], shift) for n in range(3)]
    m, high, middle, low = (b.convert("zext", v, "i128") for v in (mantissa, *window))
    carry = b.lshr(b.mul(m, low), 64)
    return b.add(b.add(b.mul(m, middle), carry), b.shl(b.mul(m, high), 64))


def _high(b: Builder, x: Value) -> Value:
    """A 64-bit integer as the high half of a 128-bit one."""
    return b.shl(b.convert("zext", x, "i128"), 64)


def _nearest(b: Builder, turns: Value, halving: Value) -> tuple[Value, Value]:
    """The f·π and k modulo 2 of turns = k + f with |f| ≤ 1/2; f·π/2 when halving."""
    multiple = b.lshr(b.add(turns, 2**126), 127)
    f = b.xor(turns, b.shl(multiple, 127))
    negative = b.ashr(f, 127)
    size = b.sub(b.xor(f, negative), negative)
    b.module.declare("llvm.ctlz.i128", "i128", ["i128", "i1"])
    zeros = b.instruction(_I128, f"call i128 @llvm.ctlz.i128({size}, i1 false)")
    leading = b.lshr(b.shl(size, zeros), 64)
    product = b.lshr(b.mul(leading, _PI_62), 64)
    digits = b.convert("uitofp", b.convert("trunc", product, "i64"), "double")
    # size = leading · 2^(64 − zeros), f = size · 2^-127: f·π = product · 2^(−61 − zeros)
    exponent = b.sub(b.sub(b.const(I64, 1023 - 61), b.convert("trunc", zeros, "i64")), halving)
    scaled = b.fmul(digits, b.from_bits(b.shl(exponent, 52)))
    sign = b.shl(b.convert("trunc", negative, "i64"), 63)
    return b.from_bits(b.xor(b.bits(scaled), sign)), b.convert("trunc", multiple, "i64")
