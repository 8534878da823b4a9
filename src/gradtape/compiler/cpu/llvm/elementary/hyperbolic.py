"""sinh, cosh, tanh: split off a power of two, an even and an odd polynomial for the rest."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    LOG2_E,
    at_most,
    constants,
    format_of,
    polynomial,
    power_of_two,
    rounded,
    without_multiples_of_ln2,
)

# (sinh(r)/r − 1)/r² as a polynomial in r², |r| ≤ ln2/2; relative error of sinh 2^-34.3 and 2^-61.7.
_SINH = {
    "float": (0.1666666716337204, 0.00833317544311285, 0.00019974067981820554),
    "double": (
        0.16666666666666677,
        0.008333333333321386,
        0.00019841269886815649,
        2.7557243452388233e-06,
        2.5109320604289537e-08,
    ),
}
# (cosh(r) − 1)/r² as a polynomial in r², |r| ≤ ln2/2; error of cosh 2^-33.2 and 2^-58.0.
_COSH = {
    "float": (0.5, 0.041666459292173386, 0.0013935437891632318),
    "double": (
        0.5000000000000013,
        0.04166666666651048,
        0.001388888894835192,
        2.4801488512035428e-05,
        2.7631807431821586e-07,
    ),
}
# (r·coth(r) − 1)/r² as a polynomial in r², |r| ≤ ln2/4; error of r·coth(r) 2^-28.8 and 2^-60.
_COTH = {
    "float": (0.33333250880241394, -0.022133700549602509),
    "double": (
        0.33333333333333204,
        -0.022222222221609936,
        0.002116402022528183,
        -0.0002116339321359214,
        2.1187001508107951e-05,
    ),
}

# Beyond these arguments sinh and cosh are infinite.
_HIGHEST = {"float": 90.0, "double": 711.0}
# Beyond this power of two, e⁻ˣ does not count beside eˣ.
_ONE_SIDED = 64
# Closer to 0 than this, sinh is its argument.
_SINH_SMALLEST = {"float": 2.0**-13, "double": 2.0**-28}
# Beyond these arguments tanh rounds to 1.
_TANH_HIGHEST = {"float": 9.1, "double": 19.1}


def sinh(b: Builder, x: Value) -> Value:
    """The hyperbolic sine."""
    # sinh(u + r) = sinh u·cosh r + cosh u·sinh r with u = k·ln2
    a = b.fabs(x)
    difference, total, s, c = _parts(b, a)
    # A quarter of it: difference + (difference·(cosh r − 1) + total·sinh r).
    quarter = b.fadd(difference, b.fma(difference, c, b.fmul(total, s)))
    half = b.fadd(quarter, quarter)
    is_small = b.fcmp("olt", a, b.const(x.type, _SINH_SMALLEST[x.type.scalar]))
    return b.select(is_small, x, b.copysign(b.fadd(half, half), x))


def cosh(b: Builder, x: Value) -> Value:
    """The hyperbolic cosine."""
    # cosh(u + r) = cosh u·cosh r + sinh u·sinh r with u = k·ln2
    difference, total, s, c = _parts(b, b.fabs(x))
    quarter = b.fadd(total, b.fma(total, c, b.fmul(difference, s)))
    half = b.fadd(quarter, quarter)
    return b.fadd(half, half)


def _parts(b: Builder, a: Value) -> tuple[Value, Value, Value, Value]:
    """For a = k·ln2 + r ≥ 0: quarters of sinh(k·ln2) and cosh(k·ln2), then sinh r and cosh r − 1.

    Quarters, since 2ᵏ may overflow where the result does not.
    """
    form = format_of(a)
    a = at_most(b, a, _HIGHEST[a.type.scalar])
    k, shifted = rounded(b, a, LOG2_E, add=form.bias - 3)
    r = without_multiples_of_ln2(b, a, k)
    z = b.fmul(r, r)
    s = b.fma(b.fmul(r, z), polynomial(b, z, _SINH[a.type.scalar]), r)
    c = b.fmul(z, polynomial(b, z, _COSH[a.type.scalar]))
    grown = power_of_two(b, shifted)
    _, shifted_back = rounded(b, at_most(b, k, _ONE_SIDED), -1.0, add=form.bias - 3)
    shrunk = power_of_two(b, shifted_back)
    return b.fsub(grown, shrunk), b.fadd(grown, shrunk), s, c


def tanh(b: Builder, x: Value) -> Value:
    """The hyperbolic tangent.

    With |x| = k·ln2/2 + r and c = r·coth r, e^2|x| = 2ᵏ·(c + r)/(c − r), so that
    tanh |x| = n/(n + 2(c − r)) for n = 2ᵏ(c + r) − (c − r).
    """
    const = constants(b, x)
    a = at_most(b, b.fabs(x), _TANH_HIGHEST[x.type.scalar])
    k, shifted = rounded(b, a, 2 * LOG2_E, add=format_of(x).bias)
    r = without_multiples_of_ln2(b, a, k, part=0.5)
    z = b.fmul(r, r)
    c_less_one = b.fmul(z, polynomial(b, z, _COTH[x.type.scalar]))
    growth = b.fsub(power_of_two(b, shifted), const(1.0))
    # n = growth + (growth·(c − 1 + r) + 2r): the first and last are exact where they matter most.
    n = b.fadd(growth, b.fma(b.fadd(c_less_one, r), growth, b.fadd(r, r)))
    below = b.fadd(b.fma(b.fsub(c_less_one, r), const(2.0), n), const(2.0))
    return b.copysign(b.fdiv(n, below), x)
