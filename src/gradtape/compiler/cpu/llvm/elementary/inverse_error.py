"""erfinv, erfcinv, ndtri: a polynomial in the logarithm of 1 − x², a step of Halley's in the tails.

The logarithm of what is left of 1 spreads the tails out: erf⁻¹(x)/x is a smooth function of it.
"""

from __future__ import annotations

import math

from gradtape.compiler.cpu.llvm.builder import Builder, Value
from gradtape.compiler.cpu.llvm.elementary.logarithm import log
from gradtape.compiler.cpu.llvm.elementary.normal import erfcx_of_positive
from gradtape.compiler.cpu.llvm.elementary.pieces import INF, constants, polynomial, where_any

# erf⁻¹(x)/x as a polynomial in w − 2.5, for w = −log(1 − x²) up to 5; relative error 2^-27.4 and
# 2^-60.2.
_CENTRE, _CENTRE_END = 2.5, 5.0
_NEAR = {
    "float": (
        1.5014094114303589,
        0.24664027988910675,
        -0.004177386872470379,
        -0.0012527419021353126,
        0.00021834448853041977,
        -4.963355877407594e-06,
        -3.4627164495759644e-06,
        4.661710022446641e-07,
        2.3233589274695987e-08,
        -8.791007921615801e-09,
    ),
    "double": (
        1.501409351110792,
        0.246640276744167,
        -0.004177317724383611,
        -0.0012527079078110148,
        0.00021825026434398024,
        -4.9960795989105115e-06,
        -3.4166195963613006e-06,
        4.787252186202805e-07,
        1.3416803492385184e-08,
        -1.0861169022877053e-08,
        9.073038471954877e-10,
        1.1960703276428633e-10,
        -3.1102879318790544e-11,
        9.115513137523939e-13,
        5.356621589927726e-13,
        -7.612362296746315e-14,
        -2.8864861313478225e-15,
        1.8963375263231615e-15,
        -1.359751300019895e-16,
        -2.6800654118398174e-17,
        4.865801744543441e-18,
        1.692340778133014e-19,
        -6.763381994993011e-20,
    ),
}
# erfc⁻¹(q)/s for s = √(−log q) from 2.3 to 27.4 as a quotient of polynomials in 1/s, to begin with;
# relative error 2^-21.8.
_TAIL = (
    (1.0001140414911716, 8.608933367372954, 6.415621563116569, -0.681361997141766),
    (1.0, 8.624162997644877, 8.412229544492572, 6.123575630687318),
)


def erfinv(b: Builder, x: Value) -> Value:
    """The inverse of the error function."""
    return _inverse(b, x, b.exact_fsub(b.const(x.type, 1.0), b.fabs(x)))


def erfcinv(b: Builder, x: Value) -> Value:
    """The inverse of 1 − erf."""
    const = constants(b, x)
    is_small = b.fcmp("olt", x, const(1.0))
    rest = b.select(is_small, x, b.exact_fsub(const(2.0), x))
    return _inverse(b, b.exact_fsub(const(1.0), x), rest)


def ndtri(b: Builder, p: Value) -> Value:
    """The inverse of the normal distribution function: √2·erf⁻¹(2p − 1)."""
    const = constants(b, p)
    is_small = b.fcmp("olt", p, const(0.5))
    smaller = b.select(is_small, p, b.exact_fsub(const(1.0), p))
    x = b.exact_fsub(b.exact_fadd(p, p), const(1.0))
    return b.fmul(_inverse(b, x, b.exact_fadd(smaller, smaller)), const(math.sqrt(2.0)))


def _inverse(b: Builder, x: Value, rest: Value) -> Value:
    """erf⁻¹(x), given 1 − |x| with all its digits; NaN where that is negative."""
    const = constants(b, x)
    # 1 − x² = (1 − |x|)(1 + |x|)
    w = b.fneg(log(b, b.fmul(rest, b.fsub(const(2.0), rest))))
    factor = polynomial(b, b.fsub(w, const(_CENTRE)), _NEAR[x.type.scalar])
    # As SciPy has it, −0 gives 0.
    near = b.fmul(b.exact_fadd(x, const(0.0)), factor)
    is_tail = b.fcmp("ogt", w, const(_CENTRE_END))

    def with_tails() -> Value:
        return b.select(is_tail, b.copysign(_tail(b, rest), x), near)

    return where_any(b, is_tail, with_tails, near)


def _tail(b: Builder, q: Value) -> Value:
    """erfc⁻¹(q) for small q: where h(y) = y² − log erfcx(y) + log q is 0.

    The derivatives are h′ = 2/(√π·erfcx(y)) and h″ = h′·(h′ − 2y).
    """
    const = constants(b, q)
    v = b.fneg(log(b, q))
    s = b.sqrt(v)
    above, below = (polynomial(b, b.fdiv(const(1.0), s), c) for c in _TAIL)
    y = b.fdiv(b.fmul(s, above), below)
    scaled = erfcx_of_positive(b, y)
    h = b.fsub(b.fma(y, y, b.fneg(v)), log(b, scaled))
    half_slope = b.fdiv(const(1.0 / math.sqrt(math.pi)), scaled)
    step = b.fmul(b.fdiv(h, half_slope), const(0.5))
    y = b.fsub(y, b.fma(b.fmul(step, step), b.fsub(half_slope, y), step))
    return b.select(b.fcmp("oeq", q, const(0.0)), const(INF), y)
