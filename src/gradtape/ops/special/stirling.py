"""Parts of the densities of the gamma and beta distributions, exact for large parameters.

Logarithms of gamma functions are large where a density is not: written out, they would cancel and
leave few digits. Here the large parts cancel on paper (by Stirling's formula), for all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops.erf import scipy_special
from gradtape.ops.special.common import series

# From here on asymptotic series are exact in double precision.
_LARGE = 20.0
_NEAR = 0.3
# Next to a pole of second order or a higher one all is infinite.
_POLE = 1e-160
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)

# Coefficients B₂ₖ/(2k·(2k − 1)) of the remainder of Stirling's formula, and B₂ₖ/2k of ψ.
_REMAINDER = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def stirling_remainder(xp: Any, a: Any) -> Any:
    """Log Γ(a) − (a − ½)·log a + a − ½·log 2π, for a > 0."""
    direct = scipy_special(xp).gammaln(a) - (a - 0.5) * xp.log(a) + a - _HALF_LOG_2_PI
    big = xp.maximum(a, _LARGE)
    return xp.where(a < _LARGE, direct, series(_REMAINDER, 1 / (big * big)) / big)


def digamma_minus_log(xp: Any, a: Any) -> Any:
    """ψ(a) − log a, for a > 0."""
    big = xp.maximum(a, _LARGE)
    inverse = 1 / (big * big)
    far = -0.5 / big - inverse * series(_DIGAMMA, inverse)
    return xp.where(a < _LARGE, scipy_special(xp).digamma(a) - xp.log(a), far)


def log_ratio(xp: Any, x: Any, y: Any, difference: Any) -> Any:
    """log(x/y) of positive numbers whose difference x − y is known better than it is computed."""
    delta = difference / y
    near = abs(delta) < _NEAR
    return xp.where(near, xp.log1p(xp.where(near, delta, 0.0)), xp.log(x) - xp.log(y))


def log1p_minus(xp: Any, delta: Any, log1p: Any) -> Any:
    """log(1 + δ) − δ, given the logarithm for δ that is not small."""
    near = abs(delta) < _NEAR
    small = xp.where(near, delta, 0.0)
    # log(1 + δ) = 2·artanh r with r = δ/(2 + δ), and 2·r − δ = −δ·r
    r = small / (2.0 + small)
    square = r * r
    terms = series([1.0 / (2 * k + 3) for k in range(12)], square)
    return xp.where(near, r * (2.0 * square * terms - small), log1p - delta)


def expm1_minus(xp: Any, w: Any) -> Any:
    """exp(w) − 1 − w."""
    near = abs(w) < 0.5
    small = xp.where(near, w, 0.0)
    terms = series([1.0 / math.factorial(k + 2) for k in range(15)], small)
    return xp.where(near, small * small * terms, xp.expm1(w) - w)


def gamma_weight(xp: Any, a: Any, x: Any) -> Any:
    """xᵃ·e⁻ˣ/Γ(a) for positive a and x."""
    ratio = log_ratio(xp, x, a, x - a)
    exponent = a * log1p_minus(xp, (x - a) / a, ratio) - stirling_remainder(xp, a)
    return xp.sqrt(a / (2.0 * math.pi)) * xp.exp(exponent)


def beta_weight(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """xᵃ·yᵇ/B(a, b) for positive a and b, and x + y = 1, neither of them 0."""
    # With x₀ = a/(a + b): x/x₀ − 1 = c/a and y/y₀ − 1 = −c/b; the terms of first order cancel.
    total, c = a + b, b * x - a * y
    by_a = a * log1p_minus(xp, c / a, log_ratio(xp, total * x, a, c))
    by_b = b * log1p_minus(xp, -c / b, log_ratio(xp, total * y, b, -c))
    rest = stirling_remainder(xp, total) - stirling_remainder(xp, a) - stirling_remainder(xp, b)
    # The root in parts: a product of small parameters may underflow.
    root = xp.sqrt(a / total) * xp.sqrt(b / (2.0 * math.pi))
    return root * xp.exp(by_a + by_b + rest)


def derivative_factors(order: int, logs: Callable[[int], Any]) -> list[Any]:
    """f⁽ⁿ⁾/f for n up to `order`, given the derivatives `logs(k)` of log f for k from 1.

    f⁽ⁿ⁺¹⁾/f = Σ C(n, k)·(log f)⁽ᵏ⁺¹⁾·f⁽ⁿ⁻ᵏ⁾/f
    """
    factors: list[Any] = [1.0]
    for n in range(order):
        factors.append(sum(math.comb(n, k) * logs(k + 1) * factors[n - k] for k in range(n + 1)))
    return factors


def polygamma(xp: Any, order: int, x: Any) -> Any:
    """ψ⁽ⁿ⁾(x) for positive x and n from 1."""
    sign = 1.0 if order % 2 else -1.0
    return sign * math.factorial(order) * scipy_special(xp).zeta(order + 1, x)


def real_polygamma(xp: Any, order: int, x: Any) -> Any:
    """ψ⁽ⁿ⁾(x) of real numbers, n from 1.

    SciPy sums as many terms as a negative argument is large. A reflection takes one step:
    ψ⁽ⁿ⁾(x) = (−1)ⁿ·ψ⁽ⁿ⁾(1 − x) − π·(cot πx)⁽ⁿ⁾
    """
    low = x < 0
    if not low.any():
        return polygamma(xp, order, x)
    found = polygamma(xp, order, xp.where(low, 1, x))
    # −∞ counts as an integer: like these it is a pole, of the sign that poles of odd order have.
    below = xp.where(low & (x > -math.inf), x, 0).astype(xp.float64)
    fraction = below - xp.rint(below)
    pole, parity = fraction == 0, (-1.0) ** order
    with np.errstate(over="ignore", divide="ignore"):  # SciPy's functions do not warn of poles
        slope = _cotangent_derivative(order, *_sine_and_cosine(xp, fraction))
        rest = polygamma(xp, order, 1.0 - below) - xp.where(pole, math.inf, parity * slope)
        return xp.where(low, (parity * rest).astype(found.dtype), found)[()]


def _sine_and_cosine(xp: Any, r: Any) -> tuple[Any, Any]:
    """Those of πr for |r| ≤ 1/2, never 0; the cosine is exact around its zero."""
    away = xp.copysign(xp.maximum(abs(r), _POLE), r)
    return xp.sin(math.pi * away), xp.sin(math.pi * (0.5 - abs(r)))


def _cotangent_derivative(order: int, sine: Any, cosine: Any) -> Any:
    """The derivative of order n from 1 of π·cot πr, given sine and cosine of πr.

    It is πⁿ⁺¹·Qₙ(cot πr)/sin² πr with Q₁ = −1 and Qₙ₊₁(c) = −(2c·Qₙ + (1 + c²)·Qₙ′), whose
    coefficients all have the same sign.
    """
    q = np.polynomial.Polynomial([-1.0])
    for _ in range(order - 1):
        q = -(q * [0.0, 2.0] + q.deriv() * [1.0, 0.0, 1.0])
    return math.pi ** (order + 1) * series(q.coef.tolist(), cosine / sine) / (sine * sine)


def polygamma_step(xp: Any, order: int, x: Any, step: Any) -> Any:
    """ψ⁽ⁿ⁾(x + step) − ψ⁽ⁿ⁾(x) for positive x and a step below x/100, by Taylor's series."""
    return sum(step**k / math.factorial(k) * polygamma(xp, order + k, x) for k in range(1, 9))


def polygamma_difference(xp: Any, x: Any, step: Any, order: int) -> Any:
    """ψ⁽ⁿ⁾(x + step) − ψ⁽ⁿ⁾(x), exact where the step is small beside x, or x is large."""
    total = x + step
    low = (x <= 0) & (total <= 0)
    if not low.any():
        return _right_difference(xp, order, x, step)
    found = _right_difference(xp, order, xp.where(low, 1.0 - x, x), xp.where(low, -step, step))
    # By the reflection of `real_polygamma`. The cotangents of a whole step are equal, at poles too.
    apart = low & (step != xp.rint(step))
    here, there = xp.where(apart, x, 0.25), xp.where(apart, total, 0.25)
    if order == 0:
        (sine, _), (moved, _) = (_sine_and_cosine(xp, v - xp.rint(v)) for v in (here, there))
        turned = step - xp.rint(step)
        # cot u − cot v = sin(v − u)/(sin u·sin v); half turns that were dropped change its sign.
        halves = xp.rint(there) - xp.rint(here) - xp.rint(step)
        sign = 1.0 - 2.0 * (halves % 2.0)
        pole = (here == xp.rint(here)) | (there == xp.rint(there))
        change = -math.pi * sign * xp.sin(math.pi * turned) / (sine * moved)
        change = xp.where(pole, xp.copysign(math.inf, change), change)
    else:
        after, before = (
            _cotangent_derivative(order, *_sine_and_cosine(xp, v - xp.rint(v)))
            for v in (there, here)
        )
        change = after - before
    mirrored = (-1.0) ** order * found
    return xp.where(low, mirrored - xp.where(apart, change, 0.0), found)


def _right_difference(xp: Any, order: int, x: Any, step: Any) -> Any:
    """The same, where not both of x and x + step are negative."""
    special, total = scipy_special(xp), x + step
    if order == 0:
        direct = special.digamma(total) - special.digamma(x)
    else:
        direct = real_polygamma(xp, order, total) - real_polygamma(xp, order, x)
    small = (x > 0) & (abs(step) < 0.01 * x)
    near = polygamma_step(xp, order, xp.where(small, x, 1.0), xp.where(small, step, 0.0))
    result = xp.where(small, near, direct)
    if order:
        return result
    # Of logarithms the difference is exact, and what ψ differs from them by is small.
    large = (x > _LARGE) & (total > _LARGE) & (total < math.inf) & ~small
    big, moved = xp.where(large, x, _LARGE), xp.where(large, total, _LARGE)
    shift = xp.log1p(xp.where(large, step, 0.0) / big)
    far = shift + (digamma_minus_log(xp, moved) - digamma_minus_log(xp, big))
    return xp.where(large, far, result)


# The numbers of Bernoulli B₂, B₄, …
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)

# Beyond this imaginary part the cotangent is constant.
_HIGH = 100.0


def complex_polygamma(xp: Any, order: int, z: Any) -> Any:
    """ψ⁽ⁿ⁾(z) of complex numbers, n from 1, on the left by the reflection of `real_polygamma`."""
    dtype, z, low = z.dtype, z.astype(xp.complex128), z.real < 0
    if not low.any():
        return _right_polygamma(xp, order, z).astype(dtype)
    found = _right_polygamma(xp, order, xp.where(low, 1 - z, z))
    below = xp.where(low, z, 0.25)
    high = xp.clip(below.imag, -_HIGH, _HIGH)
    r = math.pi * (below.real - xp.rint(below.real) + 1j * high)
    slope = _cotangent_derivative(order, xp.sin(r), xp.cos(r))
    return xp.where(low, (-1.0) ** order * found - slope, found).astype(dtype)[()]


def _right_polygamma(xp: Any, order: int, z: Any) -> Any:
    """That of numbers with positive real parts: by its asymptotic series, far enough out."""
    steps = int(_LARGE) + 1
    sign, factorial = (-1.0) ** (order + 1), math.factorial
    total = xp.zeros_like(z)
    for k in range(steps):
        total = total + factorial(order) / (z + k) ** (order + 1)
    inverse = 1 / (z + steps)  # its powers vanish where those of z would overflow
    total = total + factorial(order - 1) * inverse**order
    total = total + 0.5 * factorial(order) * inverse ** (order + 1)
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        scale = bernoulli * factorial(2 * k + order - 1) / factorial(2 * k)
        total = total + scale * inverse ** (2 * k + order)
    return sign * total
