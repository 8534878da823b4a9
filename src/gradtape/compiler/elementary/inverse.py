"""arcsin, arccos, arctan, arctan2: bring the argument close to 0, then an odd polynomial."""

from __future__ import annotations

from gradtape.compiler.elementary.pieces import (
    INF,
    number,
    polynomial,
    polynomials,
)
from gradtape.core.scalar import (
    Scalar,
    absolute,
    copysign,
    fma,
    isnan,
    signbit,
    sqrt,
    where,
)

# (arcsin(x)/x − 1)/x² as a polynomial in x², |x| ≤ 1/2; relative error of arcsin 2^-27.6 and
# 2^-55.9.
_ARCSIN = polynomials("""
    float32: 0.16666752099990845 0.07495306432247162 0.045469775795936584 0.024180738255381584
             0.04216650128364563
    float64: 0.16666666666665403 0.07500000000338587 0.04464285682693724 0.030381959197440918
             0.02237175653778535 0.017359728390453324 0.013884994958102788 0.0121708330973645
             0.006520794067981826 0.019548348372836026 -0.016256405088795386 0.031934724141499116
""")
# (arctan(x)/x − 1)/x² as a polynomial in x², |x| ≤ √2 − 1; relative error of arctan 2^-30.4 and
# 2^-59.4.
_ARCTAN = polynomials("""
    float32: -0.33333316445350647 0.19998525083065033 -0.1424429714679718 0.10598265379667282
             -0.060873374342918396
    float64: -0.3333333333333319 0.1999999999995218 -0.1428571428005374 0.11111110776279891
             -0.09090897550328965 0.07692056510087177 -0.06663061753715929 0.05847580144000575
             -0.050379050429442934 0.03802882724500025 -0.017867886893026756
""")
# π/4 in two parts, the first so short that multiples of it are exact.
_QUARTER_PI = {
    "float32": (0.785398006439209, 1.5695823663008923e-07),
    "float64": (0.7853981633974483, 3.061616997868383e-17),
}
_TAN_PI_8 = 0.41421356237309503
# arctan2 scales arguments beyond these bounds by these factors, so that their sum does not overflow
# and fractions of them keep their digits.
_LARGE = {"float32": (2.0**125, 0.25), "float64": (2.0**1021, 0.25)}
_SMALL = {"float32": (2.0**-100, 2.0**30), "float64": (2.0**-960, 2.0**60)}


def arcsin(x: Scalar) -> Scalar:
    """The inverse of the sine: for |x| > 1/2, π/2 − 2·arcsin √((1 − |x|)/2)."""
    is_large, near, beyond = _arcsin_parts(x, absolute(x))
    high, low = (2.0 * part for part in _QUARTER_PI[x.dtype.name])
    twice = near + near
    from_end = high - twice
    lost = high - from_end - twice
    large = from_end + fma(-2.0, beyond, lost + low)
    return copysign(where(is_large, large, near + beyond), x)


def arccos(x: Scalar) -> Scalar:
    """The inverse of the cosine: π/2 − arcsin x, but 2·arcsin √((1 − x)/2) for x > 1/2."""
    is_large, near, beyond = _arcsin_parts(x, x)
    is_negative = x < 0.0
    # turns·π/2 − factor·(near + beyond): 1 and 1, but 0 and −2 close to 1, 2 and 2 close to −1.
    factor = where(is_large, where(is_negative, number(x, 2.0), -2.0), 1.0)
    turns = where(is_large, where(is_negative, number(x, 2.0), 0.0), 1.0)
    high, low = (2.0 * part for part in _QUARTER_PI[x.dtype.name])
    rest = fma(factor, beyond, turns * -low)
    return turns * high - fma(factor, near, rest)


def _arcsin_parts(x: Scalar, small: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Whether |x| > 1/2, then y and arcsin(y) − y for y = `small`, or y = √((1 − |x|)/2) if so."""
    a = absolute(x)
    is_large = a > 0.5
    # For |x| > 1 the root is NaN, as it should be.
    z = where(is_large, fma(a, -0.5, 0.5), x * x)
    y = where(is_large, sqrt(z), small)
    return is_large, y, y * z * polynomial(z, _ARCSIN[x.dtype.name])


def arctan(x: Scalar) -> Scalar:
    """The inverse of the tangent."""
    a = absolute(x)
    is_above = a > 1.0
    lesser, greater = where(is_above, 1.0, a), where(is_above, a, 1.0)
    return copysign(_angle(lesser, greater, is_above, None), x)


def arctan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y), between −π and π; the sign of zeros tells sides apart."""
    width, height = absolute(x), absolute(y)
    is_steep = height > width
    lesser, greater = where(is_steep, width, height), where(is_steep, height, width)
    (large, lowered), (small, raised) = _LARGE[x.dtype.name], _SMALL[x.dtype.name]
    scale = where(greater > large, lowered, number(x, 1.0))
    scale = where(greater < small, raised, scale)
    lesser, greater = lesser * scale, greater * scale
    # ∞/∞ counts as 1/1, 0/0 as 0/1.
    both_infinite = lesser == INF
    lesser = where(both_infinite, 1.0, lesser)
    is_one = both_infinite | (greater == 0.0)
    greater = where(is_one, 1.0, greater)
    is_behind = signbit(x)
    angle = copysign(_angle(lesser, greater, is_steep, is_behind), y)
    return where(isnan(x) | isnan(y), x + y, angle)


def _angle(lesser: Scalar, greater: Scalar, is_steep: Scalar, is_behind: Scalar | None) -> Scalar:
    """The angle of a point in the upper half-plane, from the absolute values of its coordinates.

    It is arctan(l/g) = π/4 + arctan((l − g)/(l + g)), subtracted from π/2 for a point nearer to the
    vertical axis than to the horizontal one, and from π for a point left of the vertical axis.
    """
    is_wide = lesser > greater * _TAN_PI_8
    above = where(is_wide, lesser - greater, lesser)
    below = where(is_wide, lesser + greater, greater)
    t = above / below
    eighths = where(is_wide, number(t, 1.0), 0.0)
    eighths = where(is_steep, 2.0 - eighths, eighths)
    t = where(is_steep, -t, t)
    if is_behind is not None:
        eighths = where(is_behind, 4.0 - eighths, eighths)
        t = where(is_behind, -t, t)
    z = t * t
    high, low = _QUARTER_PI[lesser.dtype.name]
    beyond = fma(t * z, polynomial(z, _ARCTAN[t.dtype.name]), eighths * low)
    return fma(eighths, high, t + beyond)
