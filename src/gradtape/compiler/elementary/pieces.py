"""The building blocks of elementary functions: constants, polynomials, bounds, exponents.

Everything works on float32 and float64. Numbers are rounded to integers by adding a large number:
conversions are undefined for NaN, and for 64-bit integers slow on older CPUs. Comparisons are
chosen such that NaN passes through.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.scalar import (
    Scalar,
    bits,
    constant,
    convert,
    fma,
    from_bits,
    left_shift,
    right_shift,
    where,
)

INF = math.inf
NAN = math.nan
LOG2_E = 1.4426950408889634

# ln 2 in two parts. The first ends in so many zeros that its product with an exponent is exact,
# with or without a fused multiply-add.
LN2 = {
    "float32": (0.693145751953125, 1.428606765330187e-06),
    "float64": (0.6931471805598903, 5.497923018708371e-14),
}


# The coefficients above and below the line.
Quotient = Sequence[Sequence[float]]


class Format(NamedTuple):
    """The layout of a floating-point dtype.

    Attributes:
        mantissa: Bits of the mantissa that are stored.
        bias: The number added to an exponent to store it.
        shifter: 1.5 · 2^mantissa. Adding it to a much smaller number rounds that to an integer,
            which is then in the lowest bits of the sum.
        tiny: The smallest normal number.
    """

    mantissa: int
    bias: int
    shifter: float
    tiny: float


_FORMATS = {
    4: Format(23, 127, 1.5 * 2.0**23, 2.0**-126),
    8: Format(52, 1023, 1.5 * 2.0**52, 2.0**-1022),
}


def format_of(x: Scalar) -> Format:
    """The layout of a float, or of the float that has these bits."""
    return _FORMATS[x.dtype.itemsize]


def number(x: Scalar, value: float) -> Scalar:
    """A constant of the dtype of x, for where nothing else determines the dtype."""
    return constant(value, x.dtype)


def bits_of(dtype: np.dtype[Any], value: float) -> int:
    """The bits of a number in a floating-point dtype, as an integer."""
    code = ("<f", "<i") if dtype.itemsize == 4 else ("<d", "<q")
    return int(struct.unpack(code[1], struct.pack(code[0], value))[0])


# ---- polynomials ---------------------------------------------------------------------------------


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of a text, with spaces between them."""
    return tuple(map(float, text.split()))


def polynomials(text: str) -> dict[str, tuple[float, ...]]:
    """Coefficients by dtype, of a text such as `float32: 1.0 0.5 float64: 1.0 0.25 0.125`."""
    return {dtype: numbers(part) for dtype, part in _by_dtype(text)}


def quotients(text: str) -> dict[str, Quotient]:
    """The same of quotients of two polynomials, with a slash between them."""
    return {dtype: [numbers(half) for half in part.split("/")] for dtype, part in _by_dtype(text)}


def _by_dtype(text: str) -> Iterable[tuple[str, str]]:
    _, *parts = re.split(r"(float\d+):", text)
    return zip(parts[::2], parts[1::2], strict=True)


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """The sum c₀ + c₁x + c₂x² + … for the given coefficients.

    The even and odd powers of long ones run side by side; the lowest two coefficients, where
    rounding counts, are added last and one by one.
    """
    c = coefficients
    if len(c) <= 4:
        return _horner(x, c)
    square = x * x
    even, odd = _horner(square, c[2::2]), _horner(square, c[3::2])
    return _horner(x, [*c[:2], fma(odd, x, even)])


def quotient(x: Scalar, fitted: dict[str, Quotient]) -> Scalar:
    """A quotient of polynomials, fitted for each dtype."""
    above, below = (polynomial(x, coefficients) for coefficients in fitted[x.dtype.name])
    return above / below


def _horner(x: Scalar, coefficients: Sequence[Scalar | float]) -> Scalar:
    """c₀ + x(c₁ + x(c₂ + …))."""
    *others, last = coefficients
    result = convert(last, x.dtype)
    for c in reversed(others):
        result = fma(result, x, c)
    return result


# ---- bounds --------------------------------------------------------------------------------------


def at_most(x: Scalar, bound: float) -> Scalar:
    """The lesser of x and a bound; NaN stays NaN."""
    return where(x > bound, bound, x)


def at_least(x: Scalar, bound: float) -> Scalar:
    """The greater of x and a bound; NaN stays NaN."""
    return where(x < bound, bound, x)


# ---- exponents -----------------------------------------------------------------------------------


def rounded(x: Scalar, factor: float, add: int = 0) -> tuple[Scalar, Scalar]:
    """The integer k nearest to x·factor, as a float, and bits whose lowest hold k + add."""
    shifter = format_of(x).shifter + add
    shifted = fma(x, factor, shifter)
    return shifted - shifter, bits(shifted)


def without_multiples_of_ln2(x: Scalar, k: Scalar, part: float = 1.0) -> Scalar:
    """The difference x − k·ln2·part."""
    high, low = (-number * part for number in LN2[x.dtype.name])
    return fma(k, low, fma(k, high, x))


def power_of_two(shifted: Scalar) -> Scalar:
    """2ᵏ for bits whose lowest hold k + bias."""
    return from_bits(left_shift(shifted, format_of(shifted).mantissa))


def scaled_in_two_steps(p: Scalar, shifted: Scalar) -> Scalar:
    """p·2ᵏ for bits whose lowest hold k + 2·bias.

    In two factors, since 2ᵏ itself is not a normal number where results overflow or are subnormal.
    """
    half = _shifted_down(shifted, 1)
    return p * power_of_two(half) * power_of_two(shifted - half)


def _shifted_down(x: Scalar, count: int) -> Scalar:
    """An integer shifted down, with zeros in front whatever its sign."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return convert(right_shift(convert(x, unsigned), count), x.dtype)


def split_exponent(x: Scalar, *, subnormal: bool = True) -> tuple[Scalar, Scalar]:
    """The k, as a float, and m of x = 2ᵏ·m with √½ ≤ m ≤ √2, for 0 < x < ∞.

    Args:
        x: The number.
        subnormal: Whether it may be subnormal.
    """
    form, root_half = format_of(x), bits_of(x.dtype, math.sqrt(0.5))
    lifted = None
    if subnormal:
        lift = form.mantissa + 1
        is_subnormal = x < form.tiny
        x = where(is_subnormal, x * 2.0**lift, x)
        lifted = where(is_subnormal, number(x, lift), 0.0)
    above = bits(x) - root_half
    k = exponent(above, lifted)
    return k, from_bits((above & (2**form.mantissa - 1)) + root_half)


def exponent(x: Scalar, subtract: Scalar | None = None) -> Scalar:
    """Bits shifted down by the size of a mantissa, as a signed number, minus another number."""
    form = format_of(x)
    if x.dtype.itemsize == 4:
        k = convert(right_shift(x, form.mantissa), np.float32)
        return k if subtract is None else k - subtract
    # Older CPUs convert 64-bit integers slowly; one put into the mantissa of 2^52 is added to it.
    dtype = np.dtype(np.float64)
    positive = x + bits_of(dtype, 1.0)
    large = bits_of(dtype, 2.0**form.mantissa)
    offset = constant(2.0**form.mantissa + form.bias, dtype)
    if subtract is not None:
        offset = offset + subtract
    return from_bits(_shifted_down(positive, form.mantissa) | large) - offset


def high_half(x: Scalar) -> Scalar:
    """The upper half of the digits of x: products of two such numbers are exact."""
    low_digits = (format_of(x).mantissa + 2) // 2
    return from_bits(bits(x) & -(2**low_digits))
