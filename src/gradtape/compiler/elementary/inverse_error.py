"""erfinv, erfcinv, ndtri: a polynomial in log(1 − x²), a step of Halley's method in the tails.

The logarithm of 1 − x² spreads the tails out: erf⁻¹(x)/x is a smooth function of it.
"""

from __future__ import annotations

import math

from gradtape.compiler.elementary.logarithm import log
from gradtape.compiler.elementary.normal import erfcx_of_positive
from gradtape.compiler.elementary.pieces import (
    INF,
    polynomial,
    polynomials,
)
from gradtape.core.scalar import Scalar, absolute, copysign, fma, rarely, sqrt, where

# erf⁻¹(x)/x as a polynomial in w − 2.5, for w = −log(1 − x²) up to 5; relative error 2^-27.4 and
# 2^-60.2.
_CENTRE, _CENTRE_END = 2.5, 5.0
_NEAR = polynomials("""
    float32: 1.5014094114303589 0.24664027988910675 -0.004177386872470379 -0.0012527419021353126
             0.00021834448853041977 -4.963355877407594e-06 -3.4627164495759644e-06
             4.661710022446641e-07 2.3233589274695987e-08 -8.791007921615801e-09
    float64: 1.501409351110792 0.246640276744167 -0.004177317724383611 -0.0012527079078110148
             0.00021825026434398024 -4.9960795989105115e-06 -3.4166195963613006e-06
             4.787252186202805e-07 1.3416803492385184e-08 -1.0861169022877053e-08
             9.073038471954877e-10 1.1960703276428633e-10 -3.1102879318790544e-11
             9.115513137523939e-13 5.356621589927726e-13 -7.612362296746315e-14
             -2.8864861313478225e-15 1.8963375263231615e-15 -1.359751300019895e-16
             -2.6800654118398174e-17 4.865801744543441e-18 1.692340778133014e-19
             -6.763381994993011e-20
""")
# erfc⁻¹(q)/s for s = √(−log q) from 2.3 to 27.4 as a quotient of polynomials in 1/s, to begin with;
# relative error 2^-21.8.
_TAIL = (
    (1.0001140414911716, 8.608933367372954, 6.415621563116569, -0.681361997141766),
    (1.0, 8.624162997644877, 8.412229544492572, 6.123575630687318),
)


def erfinv(x: Scalar) -> Scalar:
    """The inverse of the error function."""
    return _inverse(x, 1.0 - absolute(x))


def erfcinv(x: Scalar) -> Scalar:
    """The inverse of 1 − erf."""
    is_small = x < 1.0
    rest = where(is_small, x, 2.0 - x)
    return _inverse(1.0 - x, rest)


def ndtri(p: Scalar) -> Scalar:
    """The inverse of the normal distribution function: √2·erf⁻¹(2p − 1)."""
    is_small = p < 0.5
    smaller = where(is_small, p, 1.0 - p)
    x = p + p - 1.0
    return _inverse(x, smaller + smaller) * math.sqrt(2.0)


def _inverse(x: Scalar, rest: Scalar) -> Scalar:
    """erf⁻¹(x), given 1 − |x| in full precision; NaN where that is negative."""
    # 1 − x² = (1 − |x|)(1 + |x|)
    w = -log(rest * (2.0 - rest))
    factor = polynomial(w - _CENTRE, _NEAR[x.dtype.name])
    # As in SciPy, −0 gives 0.
    near = (x + 0.0) * factor
    is_tail = w > _CENTRE_END
    return rarely(is_tail, copysign(_tail(rest), x), near)


def _tail(q: Scalar) -> Scalar:
    """erfc⁻¹(q) for small q: where h(y) = y² − log erfcx(y) + log q is 0.

    The derivatives are h′ = 2/(√π·erfcx(y)) and h″ = h′·(h′ − 2y).
    """
    v = -log(q)
    s = sqrt(v)
    above, below = (polynomial(1.0 / s, c) for c in _TAIL)
    y = s * above / below
    scaled = erfcx_of_positive(y)
    h = fma(y, y, -v) - log(scaled)
    half_slope = 1.0 / math.sqrt(math.pi) / scaled
    step = h / half_slope * 0.5
    y = y - fma(step * step, half_slope - y, step)
    return where(q == 0.0, INF, y)
