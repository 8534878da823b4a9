"""sin, cos, tan: remove multiples of π, then a polynomial.

The multiple k·π is subtracted in parts of π so short that their products with k are exact, which
leaves a remainder accurate to its last bit even next to a zero of the function. Arguments too large
for that take longer: the printer of a machine has an instruction for them (`far_remainder`), which
gives r and k for finite float64 arguments beyond a bound, and leaves others as they are.
"""

from __future__ import annotations

import numpy as np

from gradtape.compiler.elementary.pieces import (
    at_most,
    format_of,
    polynomial,
    polynomials,
    quotients,
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
    rarely_together,
    where,
)

# π in parts of 13 bits (float) and 36 bits (double), the last one full.
_PI_PARTS = polynomials("""
    float32: 3.14111328125 0.0004793405532836914 3.1781382858753204e-08 5.126688136514179e-12
    float64: 3.1415926535846666 5.1266883031679116e-12 2.1125998133974855e-23
""")
# Up to here k has at most 10 and 16 bits.
_NEAR = {"float32": 3200.0, "float64": 131072.0}
_INVERSE_PI = 0.3183098861837907

# (sin(r)/r − 1)/r² as a polynomial in r², |r| ≤ π/2; relative error of the sine 2^-27.3 and
# 2^-61.6.
_SIN = polynomials("""
    float32: -0.16666659712791443 0.008333069272339344 -0.00019809773948509246 2.606081807243754e-06
    float64: -0.16666666666666666 0.008333333333333207 -0.0001984126984121248 2.755731921156932e-06
             -2.505210690437817e-08 1.6058940997838501e-10 -7.643019181216879e-13
             2.721416615400502e-15
""")
# (tan(r)/r − 1)/r² for |r| ≤ π/4 as a quotient of polynomials in r²; relative error of the tangent
# 2^-35.2 and 2^-55.4.
_TAN = quotients("""
    float32: 0.3333333321326735 -0.01489632341048079
           / 1.0 -0.44468902270153254 0.015971078989836913
    float64: 0.3333333333333313 -0.020538654189126135 0.0002009518549549945
           / 1.0 -0.46161596256755616 0.023344478688875632 -0.0002084345808655788
""")


def sin(x: Scalar) -> Scalar:
    """The sine."""
    return _alternating_sine(*_remainder(x, 1.0, 0.0))


def cos(x: Scalar) -> Scalar:
    """The cosine: cos x = sin(|x| + π/2)."""
    return _alternating_sine(*_remainder(absolute(x), 1.0, 0.5))


def _alternating_sine(r: Scalar, k: Scalar) -> Scalar:
    """(−1)ᵏ·sin r for |r| ≤ π/2."""
    z = r * r
    y = fma(r * z, polynomial(z, _SIN[r.dtype.name]), r)
    # Rounding must not go beyond 1; the sign is that of r, even for −0.
    y = copysign(at_most(absolute(y), 1.0), r)
    return from_bits(bits(y) ^ left_shift(k, 8 * r.dtype.itemsize - 1))


def tan(x: Scalar) -> Scalar:
    """The tangent: that of the remainder modulo π/2, or −1 divided by it."""
    r, k = _remainder(x, 0.5, 0.0)
    z = r * r
    above, below = (polynomial(z, c) for c in _TAN[x.dtype.name])
    near = copysign(r + r * z * above / below, r)
    return where((k & 1) != 0, -1.0 / near, near)


# ---- remainders ----------------------------------------------------------------------------------


def _remainder(x: Scalar, unit: float, offset: float) -> tuple[Scalar, Scalar]:
    """The r of x + offset·π = k·(unit·π) + r, |r| ≤ unit·π/2; bits whose lowest is that of k."""
    r, k = near = _near_remainder(x, unit, offset)
    bound = _NEAR[x.dtype.name]
    if x.dtype == np.float64:
        how = unit, offset, bound
        far_r = Scalar("far_remainder", (x, r, k), r.dtype, extra=how)
        far_k = Scalar("far_multiple", (x, r, k), k.dtype, extra=how)
    else:
        # Arguments far in single precision are near in double, or treated as far there.
        wide_r, wide_k = _remainder(convert(x, np.float64), unit, offset)
        far_r, far_k = convert(wide_r, np.float32), convert(wide_k, np.int32)
    r, k = rarely_together(absolute(x) > bound, (far_r, far_k), near)
    return r, k


def _near_remainder(x: Scalar, unit: float, offset: float) -> tuple[Scalar, Scalar]:
    """The same for near arguments."""
    shifter = format_of(x).shifter
    if offset:
        shifted = fma(x, _INVERSE_PI / unit, offset) + shifter
        k = shifted - shifter - offset
    else:
        shifted = fma(x, _INVERSE_PI / unit, shifter)
        k = shifted - shifter
    r = x
    *parts, last = (-part * unit for part in _PI_PARTS[x.dtype.name])
    for part in parts:
        before, r = r, fma(k, part, r)
    if unit == 1.0:
        return fma(k, last, r), bits(shifted)
    # The tangent magnifies an error of r: add the rounding error of the last step, but keep −0.
    lost = fma(k, parts[-1], before - r)
    return copysign(r + fma(k, last, lost), r), bits(shifted)
