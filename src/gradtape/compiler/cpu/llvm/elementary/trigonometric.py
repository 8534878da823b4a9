"""sin, cos, tan: remove multiples of π, then a polynomial.

The multiple k·π is subtracted in parts of π so short that their products with k are exact, which
leaves a remainder accurate to its last bit even next to a zero of the function. Arguments too large
for that branch to code that takes longer (`far.py`).
"""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.far import with_far_remainders
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    at_most,
    constants,
    format_of,
    is_single,
    polynomial,
)

# π in parts of 13 bits (float) and 36 bits (double), the last one full.
_PI_PARTS = {
    "float": (3.14111328125, 0.0004793405532836914, 3.1781382858753204e-08, 5.126688136514179e-12),
    "double": (3.1415926535846666, 5.1266883031679116e-12, 2.1125998133974855e-23),
}
# Up to here k has at most 10 and 16 bits.
_NEAR = {"float": 3200.0, "double": 131072.0}
_INVERSE_PI = 0.3183098861837907

# (sin(r)/r − 1)/r² as a polynomial in r², |r| ≤ π/2; relative error of the sine 2^-27.3 and
# 2^-61.6.
_SIN = {
    "float": (
        -0.16666659712791443,
        0.008333069272339344,
        -0.00019809773948509246,
        2.606081807243754e-06,
    ),
    "double": (
        -0.16666666666666666,
        0.008333333333333207,
        -0.0001984126984121248,
        2.755731921156932e-06,
        -2.505210690437817e-08,
        1.6058940997838501e-10,
        -7.643019181216879e-13,
        2.721416615400502e-15,
    ),
}
# (tan(r)/r − 1)/r² for |r| ≤ π/4 as a quotient of polynomials in r²; relative error of the tangent
# 2^-35.2 and 2^-55.4.
_TAN = {
    "float": (
        (0.3333333321326735, -0.01489632341048079),
        (1.0, -0.44468902270153254, 0.015971078989836913),
    ),
    "double": (
        (0.3333333333333313, -0.020538654189126135, 0.0002009518549549945),
        (1.0, -0.46161596256755616, 0.023344478688875632, -0.0002084345808655788),
    ),
}


def sin(b: Builder, x: Value) -> Value:
    """The sine."""
    return _alternating_sine(b, *_remainder(b, x, unit=1.0, offset=0.0))


def cos(b: Builder, x: Value) -> Value:
    """The cosine: cos x = sin(|x| + π/2)."""
    return _alternating_sine(b, *_remainder(b, b.fabs(x), unit=1.0, offset=0.5))


def _alternating_sine(b: Builder, r: Value, k: Value) -> Value:
    """(−1)ᵏ·sin r for |r| ≤ π/2."""
    z = b.fmul(r, r)
    y = b.fma(b.fmul(r, z), polynomial(b, z, _SIN[r.type.scalar]), r)
    # Rounding must not lead beyond 1; the sign is that of r, also for −0.
    y = b.copysign(at_most(b, b.fabs(y), 1.0), r)
    return b.from_bits(b.xor(b.bits(y), b.shl(k, b.const(k.type, r.type.bits - 1))))


def tan(b: Builder, x: Value) -> Value:
    """The tangent, by that of the remainder modulo π/2 or −1 over it."""
    r, k = _remainder(b, x, unit=0.5, offset=0.0)
    z = b.fmul(r, r)
    above, below = (polynomial(b, z, c) for c in _TAN[x.type.scalar])
    near = b.copysign(b.fadd(r, b.fdiv(b.fmul(b.fmul(r, z), above), below)), r)
    is_odd = b.icmp("ne", b.and_(k, b.const(k.type, 1)), b.const(k.type, 0))
    return b.select(is_odd, b.fdiv(b.const(x.type, -1.0), near), near)


def _remainder(b: Builder, x: Value, *, unit: float, offset: float) -> tuple[Value, Value]:
    """The r, and bits whose lowest is that of k, of x + offset·π = k·(unit·π) + r, |r| ≤ unit·π/2.

    Branches where an argument is far away, and leaves the builder in a new block.
    """
    r, k = _near_remainder(b, x, unit, offset)
    is_far = b.fcmp("ogt", b.fabs(x), b.const(x.type, _NEAR[x.type.scalar]))
    before, far, after = b.block, b.new_block("far"), b.new_block("reduced")
    b.branch_if(b.any(is_far), far, after)
    b.start(far)
    if is_single(x):
        # What is far in single precision is near in double, or treated as far there.
        wide_r, wide_k = _remainder(b, b.convert("fpext", x, "double"), unit=unit, offset=offset)
        far_r, far_k = b.convert("fptrunc", wide_r, "float"), b.convert("trunc", wide_k, "i32")
        far_r, far_k = b.select(is_far, far_r, r), b.select(is_far, far_k, k)
    else:
        far_r, far_k = with_far_remainders(b, x, r, k, _NEAR["double"], unit=unit, offset=offset)
    far = b.block
    b.branch(after)
    b.start(after)
    return b.phi(r.type, (r, before), (far_r, far)), b.phi(k.type, (k, before), (far_k, far))


def _near_remainder(b: Builder, x: Value, unit: float, offset: float) -> tuple[Value, Value]:
    """The same for arguments that are near."""
    const = constants(b, x)
    shifter = const(format_of(x).shifter)
    if offset:
        shifted = b.exact_fadd(b.fma(x, const(_INVERSE_PI / unit), const(offset)), shifter)
        k = b.exact_fsub(b.exact_fsub(shifted, shifter), const(offset))
    else:
        shifted = b.fma(x, const(_INVERSE_PI / unit), shifter)
        k = b.exact_fsub(shifted, shifter)
    r = x
    *parts, last = (const(-part * unit) for part in _PI_PARTS[x.type.scalar])
    for part in parts:
        before, r = r, b.fma(k, part, r)
    if unit == 1.0:
        return b.fma(k, last, r), b.bits(shifted)
    # The tangent shows an error of r enlarged: add what the last step lost, but keep −0.
    lost = b.fma(k, parts[-1], b.exact_fsub(before, r))
    return b.copysign(b.exact_fadd(r, b.fma(k, last, lost)), r), b.bits(shifted)
