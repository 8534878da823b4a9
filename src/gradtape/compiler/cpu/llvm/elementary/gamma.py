"""lgamma: a quotient of polynomials up to 3, Stirling's series beyond, a reflection below 0."""

from __future__ import annotations

import math

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.logarithm import log, log_of_product
from gradtape.compiler.cpu.llvm.elementary.pieces import (
    INF,
    at_most,
    constants,
    polynomial,
    split_exponent,
    where_any,
)
from gradtape.compiler.cpu.llvm.elementary.polygamma import SIN_PI, distance_to_integer

# Arguments below the first take a step of the recurrence; from the second on the series is exact.
_NEAR, _FAR = 0.75, 3.0
# lgamma(z)/((z − 1)(z − 2)) for z from 0.75 to 3 as a quotient of polynomials in z − 0.75; relative
# error 2^-30.1 and 2^-58.5.
_LGAMMA_NEAR = {
    "float": (
        (
            0.6504990458488464,
            1.1961662769317627,
            0.6053433418273926,
            0.07737262547016144,
            0.0006565420189872384,
        ),
        (1.0, 2.380519390106201, 1.767963171005249, 0.4445008337497711, 0.027582811191678047),
    ),
    "double": (
        (
            0.6504990445801452,
            2.641707965227519,
            4.181631203710061,
            3.272935481840901,
            1.3288329074721383,
            0.2689510409499716,
            0.023773141206110775,
            0.000662004501088358,
            1.2481885515196518e-06,
        ),
        (
            1.0,
            4.602723695761933,
            8.469434118811014,
            7.982391018556873,
            4.109589164352581,
            1.1439725687417452,
            0.16026642284984818,
            0.0096037181121767,
            0.00016595749422014977,
        ),
    ),
}
# x·(lgamma(x) − (x − ½)·log x + x − ½·log 2π) for x ≥ 3 as a polynomial in 1/x²; relative error of
# lgamma 2^-34.9 and 2^-60.4.
_LGAMMA_FAR = {
    "float": (
        0.083333320915699,
        -0.002777131972834468,
        0.0007775564445182681,
        -0.0004204399592708796,
    ),
    "double": (
        0.08333333333333144,
        -0.0027777777769409833,
        0.000793650656394554,
        -0.0005952263521606022,
        0.0008411430871617216,
        -0.0018968513401302505,
        0.0059217110664765696,
        -0.02115320661997408,
        0.0686295026103517,
        -0.15842313060766566,
        0.1813750088750916,
    ),
}
# ½·log 2π − ½
_LOG_ROOT = 0.4189385332046727
# Negative arguments closer to 0 than this have the value of their size.
_CLOSE = {"float": 2.0**-30, "double": 2.0**-60}


def lgamma(b: Builder, x: Value) -> Value:
    """The logarithm of |Γ(x)|."""
    const = constants(b, x)
    a = b.fabs(x)
    found = _of_positive(b, a)
    is_negative = b.fcmp("olt", x, b.fneg(const(_CLOSE[x.type.scalar])))

    # |Γ(x)| = π/(|x·sin(πx)|·Γ(|x|)); the sine is 0 at the poles, where its logarithm is −∞.
    def reflected() -> Value:
        r = distance_to_integer(b, a)
        sine = b.fmul(b.fabs(r), polynomial(b, b.fmul(r, r), SIN_PI[x.type.scalar]))
        product = b.fmul(b.fmul(a, const(1.0 / math.pi)), sine)
        mirrored = b.fneg(b.fadd(log(b, product), found))
        at_end = b.select(b.fcmp("oeq", r, const(0.0)), const(INF), mirrored)
        at_end = b.select(b.fcmp("oeq", a, const(INF)), x, at_end)
        return b.select(is_negative, at_end, found)

    return where_any(b, is_negative, reflected, found)


def _of_positive(b: Builder, a: Value) -> Value:
    """The logarithm of Γ(a) for a ≥ 0."""
    const = constants(b, a)
    k, m = split_exponent(b, a)
    f = b.exact_fsub(m, const(1.0))
    # log a, and log a − 1 with one rounding.
    logarithm, less_one = (log_of_product(b, k, f, add) for add in (0.0, -1.0))

    # log Γ(a) = (z − 1)(z − 2)·q(z) with z = a, or z = a + 1 less log a
    is_below = b.fcmp("olt", a, const(_NEAR))
    bounded = at_most(b, a, _FAR)
    t = b.select(is_below, bounded, b.exact_fsub(bounded, const(1.0)))
    s = b.fadd(t, const(1.0 - _NEAR))
    above, below = (polynomial(b, s, c) for c in _LGAMMA_NEAR[a.type.scalar])
    factors = b.fmul(t, b.exact_fsub(t, const(1.0)))
    near = b.fdiv(b.fmul(factors, above), below)
    # Less −0, so that the zeros are positive.
    near = b.fsub(near, b.select(is_below, logarithm, const(-0.0)))

    # log Γ(a) = (a − ½)(log a − 1) + ½·log 2π − ½ + …/a
    inverse = b.fdiv(const(1.0), a)
    series = polynomial(b, b.fmul(inverse, inverse), _LGAMMA_FAR[a.type.scalar])
    rest = b.fma(series, inverse, const(_LOG_ROOT))
    far = b.fma(b.exact_fsub(a, const(0.5)), less_one, rest)
    found = b.select(b.fcmp("olt", a, const(_FAR)), near, far)
    # At 0 and at infinity it is infinite; NaN is what it was.
    found = b.select(b.fcmp("olt", a, const(INF)), found, a)
    return b.select(b.fcmp("oeq", a, const(0.0)), const(INF), found)
