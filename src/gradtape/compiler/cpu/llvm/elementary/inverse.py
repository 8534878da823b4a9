"""arcsin, arccos, arctan, arctan2: bring the argument close to 0, then an odd polynomial."""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.pieces import INF, constants, polynomial

# (arcsin(x)/x − 1)/x² as a polynomial in x², |x| ≤ 1/2; relative error of arcsin 2^-27.6 and
# 2^-55.9.
_ARCSIN = {
    "float": (
        0.16666752099990845,
        0.07495306432247162,
        0.045469775795936584,
        0.024180738255381584,
        0.04216650128364563,
    ),
    "double": (
        0.16666666666665403,
        0.07500000000338587,
        0.04464285682693724,
        0.030381959197440918,
        0.02237175653778535,
        0.017359728390453324,
        0.013884994958102788,
        0.0121708330973645,
        0.006520794067981826,
        0.019548348372836026,
        -0.016256405088795386,
        0.031934724141499116,
    ),
}
# (arctan(x)/x − 1)/x² as a polynomial in x², |x| ≤ √2 − 1; relative error of arctan 2^-30.4 and
# 2^-59.4.
_ARCTAN = {
    "float": (
        -0.33333316445350647,
        0.19998525083065033,
        -0.1424429714679718,
        0.10598265379667282,
        -0.060873374342918396,
    ),
    "double": (
        -0.3333333333333319,
        0.1999999999995218,
        -0.1428571428005374,
        0.11111110776279891,
        -0.09090897550328965,
        0.07692056510087177,
        -0.06663061753715929,
        0.05847580144000575,
        -0.050379050429442934,
        0.03802882724500025,
        -0.017867886893026756,
    ),
}
# π/4 in two parts, the first so short that multiples of it are exact.
_QUARTER_PI = {
    "float": (0.785398006439209, 1.5695823663008923e-07),
    "double": (0.7853981633974483, 3.061616997868383e-17),
}
_TAN_PI_8 = 0.41421356237309503
# arctan2 scales arguments beyond these bounds by these factors, so that their sum does not overflow
# and fractions of them keep their digits.
_LARGE = {"float": (2.0**125, 0.25), "double": (2.0**1021, 0.25)}
_SMALL = {"float": (2.0**-100, 2.0**30), "double": (2.0**-960, 2.0**60)}


def arcsin(b: Builder, x: Value) -> Value:
    """The inverse of the sine: for |x| > 1/2, π/2 − 2·arcsin √((1 − |x|)/2)."""
    const = constants(b, x)
    is_large, near, beyond = _arcsin_parts(b, x, b.fabs(x))
    high, low = (2.0 * part for part in _QUARTER_PI[x.type.scalar])
    twice = b.fadd(near, near)
    from_end = b.exact_fsub(const(high), twice)
    lost = b.exact_fsub(b.exact_fsub(const(high), from_end), twice)
    large = b.fadd(from_end, b.fma(const(-2.0), beyond, b.fadd(lost, const(low))))
    return b.copysign(b.select(is_large, large, b.fadd(near, beyond)), x)


def arccos(b: Builder, x: Value) -> Value:
    """The inverse of the cosine: π/2 − arcsin x, but 2·arcsin √((1 − x)/2) for x > 1/2."""
    const = constants(b, x)
    is_large, near, beyond = _arcsin_parts(b, x, x)
    is_negative = b.fcmp("olt", x, const(0.0))
    # turns·π/2 − factor·(near + beyond): 1 and 1, but 0 and −2 close to 1, 2 and 2 close to −1.
    factor = b.select(is_large, b.select(is_negative, const(2.0), const(-2.0)), const(1.0))
    turns = b.select(is_large, b.select(is_negative, const(2.0), const(0.0)), const(1.0))
    high, low = (const(2.0 * part) for part in _QUARTER_PI[x.type.scalar])
    rest = b.fma(factor, beyond, b.fmul(turns, b.fneg(low)))
    return b.exact_fsub(b.fmul(turns, high), b.fma(factor, near, rest))


def _arcsin_parts(b: Builder, x: Value, small: Value) -> tuple[Value, Value, Value]:
    """Whether |x| > 1/2, then y and arcsin(y) − y for y = `small`, or y = √((1 − |x|)/2) if so."""
    const = constants(b, x)
    a = b.fabs(x)
    is_large = b.fcmp("ogt", a, const(0.5))
    # For |x| > 1 the root is NaN, as it should be.
    z = b.select(is_large, b.fma(a, const(-0.5), const(0.5)), b.fmul(x, x))
    y = b.select(is_large, b.sqrt(z), small)
    return is_large, y, b.fmul(b.fmul(y, z), polynomial(b, z, _ARCSIN[x.type.scalar]))


def arctan(b: Builder, x: Value) -> Value:
    """The inverse of the tangent."""
    one = b.const(x.type, 1.0)
    a = b.fabs(x)
    is_above = b.fcmp("ogt", a, one)
    lesser, greater = b.select(is_above, one, a), b.select(is_above, a, one)
    return b.copysign(_angle(b, lesser, greater, is_above, None), x)


def arctan2(b: Builder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), between −π and π; the sign of zeros tells sides apart."""
    const = constants(b, x)
    width, height = b.fabs(x), b.fabs(y)
    is_steep = b.fcmp("ogt", height, width)
    lesser, greater = b.select(is_steep, width, height), b.select(is_steep, height, width)
    scale = const(1.0)
    for predicate, (bound, factor) in (
        ("ogt", _LARGE[x.type.scalar]),
        ("olt", _SMALL[x.type.scalar]),
    ):
        scale = b.select(b.fcmp(predicate, greater, const(bound)), const(factor), scale)
    lesser, greater = b.fmul(lesser, scale), b.fmul(greater, scale)
    # ∞/∞ counts as 1/1, 0/0 as 0/1.
    both_infinite = b.fcmp("oeq", lesser, const(INF))
    lesser = b.select(both_infinite, const(1.0), lesser)
    is_one = b.or_(both_infinite, b.fcmp("oeq", greater, const(0.0)))
    greater = b.select(is_one, const(1.0), greater)
    is_behind = b.icmp("slt", b.bits(x), b.const(x.type.as_int, 0))
    angle = b.copysign(_angle(b, lesser, greater, is_steep, is_behind), y)
    return b.select(b.fcmp("uno", x, y), b.fadd(x, y), angle)


def _angle(
    b: Builder, lesser: Value, greater: Value, is_steep: Value, is_behind: Value | None
) -> Value:
    """The angle of a point in the upper half-plane, by the sizes of its coordinates.

    It is arctan(l/g) = π/4 + arctan((l − g)/(l + g)); that taken from π/2 for a point nearer to the
    vertical axis than to the horizontal one, and from π for a point behind the vertical axis.
    """
    const = constants(b, lesser)
    is_wide = b.fcmp("ogt", lesser, b.fmul(greater, const(_TAN_PI_8)))
    above = b.select(is_wide, b.exact_fsub(lesser, greater), lesser)
    below = b.select(is_wide, b.exact_fadd(lesser, greater), greater)
    t = b.fdiv(above, below)
    eighths = b.select(is_wide, const(1.0), const(0.0))
    eighths = b.select(is_steep, b.fsub(const(2.0), eighths), eighths)
    t = b.select(is_steep, b.fneg(t), t)
    if is_behind:
        eighths = b.select(is_behind, b.fsub(const(4.0), eighths), eighths)
        t = b.select(is_behind, b.fneg(t), t)
    z = b.fmul(t, t)
    high, low = (const(part) for part in _QUARTER_PI[lesser.type.scalar])
    beyond = b.fma(b.fmul(t, z), polynomial(b, z, _ARCTAN[t.type.scalar]), b.fmul(eighths, low))
    return b.fma(eighths, high, b.fadd(t, beyond))
