"""Derivatives of incomplete gamma and beta functions in their parameters, of any order.

These functions are integrals of a density, ∫₀ˣ p(t; a) dt. So ∂ⁿ/∂aⁿ is ∫₀ˣ p·qₙ dt with
qₙ = (∂ⁿp/∂aⁿ)/p, a polynomial in log t. Three facts make that easy to compute in full precision:

- The integral of p·qₙ over everything is 0. So the integral to the left of x is minus that to the
  right; on the side away from the bulk of the density, q₁ has one sign, and nothing cancels.
- In the variable log t (for the beta density log t/(1 − t)) the integrand falls off from x on, by
  a known amount, without a singularity: Gauss's quadrature of a fixed number of points does it.
- Where a parameter is small it falls off slowly; then one step of the recurrence that raises the
  parameter is taken first, whose other term is elementary.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.ops.erf import scipy_special
from gradtape.ops.special.stirling import (
    beta_weight,
    derivative_factors,
    digamma_minus_log,
    expm1_minus,
    gamma_weight,
    log1p_minus,
    log_ratio,
    polygamma,
    polygamma_step,
)

# The integrand is followed until it has fallen by exp(−_DROP).
_DROP = 50.0
_POINTS = 64
# So many elements are treated at once, with all points of the quadrature beside each other.
_BLOCK = 1024
_TINY = 1e-300


_legendre = functools.cache(np.polynomial.legendre.leggauss)


def gauss_rule(xp: Any) -> tuple[Any, Any]:
    """Points and weights on [0, 1] for ∫ f(s) ds with s², so that points gather at 0."""
    points, weights = map(xp.asarray, _legendre(_POINTS))
    points = 0.5 * (points + 1.0)
    return points * points, weights * points


def blockwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A forward for any arrays, of a function that takes flat ones in double precision.

    It gets some elements at a time.
    """

    def forward(xp: Any, *arrays: Any, **params: Any) -> Any:
        dtype = xp.result_type(*arrays)
        arrays = tuple(xp.broadcast_arrays(*(xp.asarray(array) for array in arrays)))
        flat = [array.astype(np.float64).reshape(-1) for array in arrays]
        out = xp.empty(flat[0].shape)
        with np.errstate(all="ignore"):
            for start in range(0, out.size, _BLOCK):
                part = slice(start, start + _BLOCK)
                out[part] = function(xp, *(array[part] for array in flat), **params)
        # Integers and Python's numbers alone make float64, as everywhere.
        return out.reshape(arrays[0].shape).astype(dtype if dtype.kind == "f" else np.float64)[()]

    return forward


# ---- gamma --------------------------------------------------------------------------------------


@blockwise
def gamma_slope(xp: Any, a: Any, x: Any, order: int) -> Any:
    """∂ⁿP(a, x)/∂aⁿ of the regularized lower incomplete gamma function, n from 1."""
    inside = (a >= 0) & (x > 0) & (x < math.inf) & (a < math.inf)
    safe_a = xp.maximum(xp.where(inside, a, 1.0), _TINY)
    safe_x = xp.where(inside, x, 1.0)
    edge = xp.where((a >= 0) & (x >= 0), 0.0, math.nan)
    return xp.where(inside, _gamma_slope(xp, safe_a, safe_x, order), edge)


def _gamma_slope(xp: Any, a: Any, x: Any, order: int) -> Any:
    # P(a, x) = P(a + 1, x) + xᵃ·e⁻ˣ/Γ(a + 1)
    raised = (a < 1) & (x < 1)
    term = gamma_weight(xp, a, x) / a * _gamma_factors(xp, a, x, order, 0.0)[order]
    return _gamma_integral(xp, a + raised, x, order) + xp.where(raised, term, 0.0)


def _gamma_factors(xp: Any, a: Any, x: Any, order: int, log_t: Any) -> list[Any]:
    """The factors (∂ⁿf/∂aⁿ)/f of f = tᵃ/Γ(a + 1), given log t/x."""
    at_x = log_ratio(xp, x, a, x - a) - digamma_minus_log(xp, a + 1) - xp.log1p(1 / a)

    def logs(k: int) -> Any:
        value = at_x if k == 1 else -polygamma(xp, k - 1, a + 1)
        value = value[:, None] if np.ndim(log_t) > 1 else value
        return value + log_t if k == 1 else value

    return derivative_factors(order, logs)


def _gamma_integral(xp: Any, a: Any, x: Any, order: int) -> Any:
    """∫₀ˣ p·qₙ dt as the integral over the side of x away from the mean a."""
    below = x < a
    points, weights = gauss_rule(xp)
    reach = _gamma_reach(xp, a, x, below)
    z = xp.where(below, -reach, reach)[:, None] * points
    # With t = x·exp(z): log of tᵃ·e⁻ᵗ over that at x
    change = (a - x)[:, None] * z - x[:, None] * expm1_minus(xp, z)
    factors = _gamma_factors(xp, a, x, order, z)
    # 1/Γ(a) is a/Γ(a + 1), and ∂ⁿ(a·f) = a·∂ⁿf + n·∂ⁿ⁻¹f: 1/a does not cancel for small a.
    values = xp.exp(change) * (a[:, None] * factors[order] + order * factors[order - 1])
    return xp.where(below, reach, -reach) * gamma_weight(xp, a, x) / a * (values @ weights)


def _gamma_reach(xp: Any, a: Any, x: Any, below: Any) -> Any:
    """How far from log x the integrand has fallen by exp(−_DROP), or a little further."""
    slope = abs(a - x)
    # To the left: a·w − x·(1 − e⁻ʷ) is at least slope·w, a·w − x, and slope·w + x·w²/3 for w ≤ 1.
    bent = 2.0 * _DROP / (slope + xp.sqrt(slope * slope + 4.0 / 3.0 * _DROP * x))
    left = xp.minimum(_DROP / slope, (_DROP + x) / a)
    left = xp.minimum(left, xp.where(bent <= 1.0, bent, math.inf))
    left = (_DROP - x * xp.expm1(-left)) / a
    # To the right: x·(eʷ − 1) − a·w is at least (x − a)·w + x·w²/2.
    right = 2.0 * _DROP / (slope + xp.sqrt(slope * slope + 2.0 * _DROP * x))
    right = xp.log1p((_DROP + a * right) / x)
    return xp.where(below, left, right)


# ---- beta ---------------------------------------------------------------------------------------


@blockwise
def beta_slope(xp: Any, a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    """∂ⁱ⁺ʲI(a, b, x)/∂aⁱ∂bʲ of the regularized incomplete beta function, i + j from 1."""
    i, j = orders
    known = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    out = xp.where(known & (x * (1 - x) == 0), 0.0, math.nan)
    inside = known & (x > 0) & (x < 1) & (a + b < math.inf)
    a, b = xp.maximum(a, _TINY), xp.maximum(b, _TINY)
    for near, sign in ((inside & (x <= 0.5), 1.0), (inside & (x > 0.5), -1.0)):
        p, q, u = a[near], b[near], x[near]
        # I(a, b, x) = 1 − I(b, a, 1 − x)
        args = (p, q, u, 1 - u, i, j) if sign > 0 else (q, p, 1 - u, u, j, i)
        out[near] = sign * _beta_slope(xp, *args)
    return out


def _beta_slope(xp: Any, a: Any, b: Any, x: Any, y: Any, i: int, j: int) -> Any:
    """The same for x ≤ 1/2 and y = 1 − x."""
    below = a * y > b * x
    # I(a, b) = I(a + 1, b) + xᵃ·yᵇ/(a·B(a, b)) and I(a, b) = I(a, b + 1) − xᵃ·yᵇ/(b·B(a, b))
    raise_a = (a < 1) & (below | (b * x < 1))
    raise_b = (b < 1) & ~below
    if i == 0 and raise_a.any():
        out = xp.empty_like(a)
        out[raise_a] = _beta_slope_small(xp, *(value[raise_a] for value in (a, b, x, y)), j=j)
        others = (value[~raise_a] for value in (a, b, x, y, raise_a, raise_b))
        out[~raise_a] = _beta_slope_raised(xp, *others, i=i, j=j)
        return out
    return _beta_slope_raised(xp, a, b, x, y, raise_a, raise_b, i=i, j=j)


def _beta_slope_raised(
    xp: Any, a: Any, b: Any, x: Any, y: Any, raise_a: Any, raise_b: Any, *, i: int, j: int
) -> Any:
    weight = beta_weight(xp, a, b, x, y)
    by_a = weight / a * _BetaFactors(xp, a, b, x, y, (1, 0)).factor(i, j)
    a = a + raise_a
    weight = beta_weight(xp, a, b, x, y)
    by_b = weight / b * _BetaFactors(xp, a, b, x, y, (0, 1)).factor(i, j)
    terms = xp.where(raise_a, by_a, 0.0) - xp.where(raise_b, by_b, 0.0)
    return terms + _beta_integral(xp, a, b + raise_b, x, y, i, j)


def _beta_slope_small(xp: Any, a: Any, b: Any, x: Any, y: Any, *, j: int) -> Any:
    """∂ʲI/∂bʲ for small a, where I is nearly constant in b and the terms above would cancel.

    Of I = J/B with J = ∫₀ˣ tᵃ⁻¹·(1 − t)ᵇ⁻¹ dt, each factor is differentiated by itself.
    """
    factors = _BetaFactors(xp, a, b, x, y, (0, 0))
    factors.at_b = xp.where(factors.small, factors._step(0), factors.at_b - xp.log1p(-x))
    reach = _beta_reach(xp, a + 1, b, x, y, xp.full(a.shape, True))
    points, weights = gauss_rule(xp)
    t = x[:, None] * xp.exp(-reach[:, None] * points)
    # dt = −t·dw: each power of log (1 − t) takes the place of a factor t.
    density = xp.exp(-a[:, None] * reach[:, None] * points + (b - 1)[:, None] * xp.log1p(-t))
    scale = reach * beta_weight(xp, a, b, x, y) / y**b
    total = factors.factor(0, j) * scipy_special(xp).betainc(a, b, x)
    for n in range(1, j + 1):
        integral = scale * ((density * xp.log1p(-t) ** n) @ weights)
        total = total + math.comb(j, n) * factors.factor(0, j - n) * integral
    return total


def mixed_factor(i: int, j: int, logs: Callable[[int, int], Any]) -> Any:
    """(∂ⁱ⁺ʲf/∂aⁱ∂bʲ)/f, given the derivatives `logs(k, n)` of log f; see `derivative_factors`."""
    if i == 0:
        return mixed_factor(j, 0, lambda k, n: logs(n, k)) if j else 1.0
    parts = (
        (math.comb(i - 1, k) * math.comb(j, n), (k + 1, n), (i - 1 - k, j - n))
        for k in range(i)
        for n in range(j + 1)
    )
    return sum(count * logs(*one) * mixed_factor(*rest, logs) for count, one, rest in parts)


class _BetaFactors:
    """Derivatives of f = tᵃ·(1 − t)ᵇ·Γ(a + b)/(Γ(a + m)·Γ(b + n)), m and n being 0 or 1."""

    def __init__(self, xp: Any, a: Any, b: Any, x: Any, y: Any, raised: tuple[Any, Any]) -> None:
        self.xp, self.a, self.b, self.raised = xp, a, b, raised
        total, c, (m, n) = a + b, b * x - a * y, raised
        shared = digamma_minus_log(xp, total)
        at_a = log_ratio(xp, total * x, a, c) + shared
        self.at_a = at_a - digamma_minus_log(xp, a + m) - xp.log1p(m / a)
        at_b = log_ratio(xp, total * y, b, -c) + shared
        at_b = at_b - digamma_minus_log(xp, b + n) - xp.log1p(n / b)
        # Beside a large b, ψ(a + b) − ψ(b) and log y are both small.
        self.small = a < 0.01 * b
        self.at_b = xp.where(self.small, self._step(0) + xp.log1p(-x) - n / b, at_b)
        # log t/x and log (1 − t)/y, with all points of the quadrature beside each other
        self.log_t: Any = 0.0
        self.log_rest: Any = 0.0

    def _step(self, order: int) -> Any:
        """ψ⁽ⁿ⁾(a + b) − ψ⁽ⁿ⁾(b) where a is small beside b."""
        return polygamma_step(self.xp, order, self.b, self.xp.where(self.small, self.a, 0.0))

    def factor(self, i: int, j: int) -> Any:
        """(∂ⁱ⁺ʲf/∂aⁱ∂bʲ)/f."""
        return mixed_factor(i, j, self._log)

    def _log(self, k: int, n: int) -> Any:
        """∂ᵏ⁺ⁿ log f/∂aᵏ∂bⁿ."""
        if k + n == 1:
            value, change = (self.at_a, self.log_t) if k else (self.at_b, self.log_rest)
            return self._spread(value) + change
        order = k + n - 1
        value = polygamma(self.xp, order, self.a + self.b)
        if n == 0:
            value = value - polygamma(self.xp, order, self.a + self.raised[0])
        if k == 0:
            # ψ⁽ⁿ⁾(b + 1) = ψ⁽ⁿ⁾(b) + (−1)ⁿ·n!/bⁿ⁺¹
            jump = self.raised[1] * (-1) ** order * math.factorial(order) / self.b**n
            direct = value - polygamma(self.xp, order, self.b + self.raised[1])
            value = self.xp.where(self.small, self._step(order) - jump, direct)
        return self._spread(value)

    def _spread(self, value: Any) -> Any:
        return value[:, None] if np.ndim(self.log_t) > 1 else value


def _beta_integral(xp: Any, a: Any, b: Any, x: Any, y: Any, i: int, j: int) -> Any:
    """The integral over the side of x away from the mean a/(a + b)."""
    below = a * y > b * x
    points, weights = gauss_rule(xp)
    reach = _beta_reach(xp, a, b, x, y, below)
    z = xp.where(below, -reach, reach)[:, None] * points
    # With t/(1 − t) = x/y·exp(z): log of tᵃ·(1 − t)ᵇ over that at x
    part = x[:, None] * xp.expm1(z)
    log_part = xp.log1p(part)
    near = log1p_minus(xp, part, log_part) + x[:, None] * expm1_minus(xp, z)
    bend = xp.where(z < 0.5, near, log_part - x[:, None] * z)
    change = (a * y - b * x)[:, None] * z - (a + b)[:, None] * bend
    # 1/Γ(a) is a/Γ(a + 1), and ∂ⁱ(a·f)/a = ∂ⁱf + i/a·∂ⁱ⁻¹f: so 1/a² does not cancel for small a.
    raised = xp.where(a < 1, i > 1, 0.0), xp.where(b < 1, j > 1, 0.0)
    factors = _BetaFactors(xp, a, b, x, y, raised)
    factors.log_t, factors.log_rest = z - log_part, -log_part
    total: Any = 0.0
    for m in range(2 if i > 1 else 1):
        for n in range(2 if j > 1 else 1):
            scale = (raised[0] * i / a) ** m * (raised[1] * j / b) ** n
            total = total + scale * ((xp.exp(change) * factors.factor(i - m, j - n)) @ weights)
    return xp.where(below, reach, -reach) * beta_weight(xp, a, b, x, y) * total


def _beta_reach(xp: Any, a: Any, b: Any, x: Any, y: Any, below: Any) -> Any:
    """How far from log x/y the integrand has fallen by exp(−_DROP), or a little further."""
    total, slope = a + b, abs(a * y - b * x)
    # The second derivative falls by less than e within 1: at least slope·w + (a + b)·x·y·w²/2e.
    curve = 2.0 / math.e * _DROP * total * x * y
    bent = 2.0 * _DROP / (slope + xp.sqrt(slope * slope + curve))
    bound = xp.minimum(_DROP / slope, xp.where(bent <= 1.0, bent, math.inf))
    # To the left: a·w + (a + b)·log(1 − x·(1 − e⁻ʷ)); to the right: b takes the place of a.
    left = xp.minimum(bound, (_DROP - total * xp.log(y)) / a)
    left = (_DROP - total * xp.log1p(x * xp.expm1(-left))) / a
    right = xp.minimum(bound, (_DROP - total * xp.log(x)) / b)
    refined = xp.log1p(xp.expm1((_DROP + a * right) / total) / x)
    return xp.where(below, left, xp.minimum(right, refined))


# ---- tails by themselves ------------------------------------------------------------------------


@blockwise
def gamma_tail(xp: Any, a: Any, x: Any, upper: bool, powers: tuple[int, int]) -> Any:
    """∫ exp(a·z − x·(eᶻ − 1))·zⁿ·(eᶻ − 1)ᵏ dz over z > 0, or z < 0; 1 where x is NaN.

    With powers of 0 it is the incomplete gamma function over xᵃ·e⁻ˣ/Γ(a), which it may be computed
    with where both of them underflow. x is NaN where that is not needed.
    """
    n, k = powers
    asked = x == x
    out = xp.ones_like(x)
    a, x = a[asked], x[asked]
    points, weights = gauss_rule(xp)
    reach = _gamma_reach(xp, a, x, xp.full(a.shape, not upper))
    z = (reach if upper else -reach)[:, None] * points
    change = (a - x)[:, None] * z - x[:, None] * expm1_minus(xp, z)
    out[asked] = reach * ((xp.exp(change) * z**n * xp.expm1(z) ** k) @ weights)
    return out


@blockwise
def beta_tail(xp: Any, a: Any, b: Any, x: Any, powers: tuple[int, int, int]) -> Any:
    """∫ exp(a·z − (a + b)·l)·(z − l)ⁱ·(−l)ʲ·rᵏ dz over z < 0; 1 where x is NaN.

    Here l = log(1 + x·(eᶻ − 1)) and r = ∂l/∂x. With powers of 0 it is the incomplete beta function
    over xᵃ·(1 − x)ᵇ/B(a, b).
    """
    i, j, k = powers
    asked = x == x
    out = xp.ones_like(x)
    a, b, x = a[asked], b[asked], x[asked]
    points, weights = gauss_rule(xp)
    reach = _beta_reach(xp, a, b, x, 1 - x, xp.full(a.shape, True))
    z = -reach[:, None] * points
    grown = xp.expm1(z)
    part = x[:, None] * grown
    logs = xp.log1p(part)
    bend = log1p_minus(xp, part, logs) + x[:, None] * expm1_minus(xp, z)
    change = (a * (1 - x) - b * x)[:, None] * z - (a + b)[:, None] * bend
    factors = (z - logs) ** i * (-logs) ** j * (grown / (1 + part)) ** k
    out[asked] = reach * ((xp.exp(change) * factors) @ weights)
    return out
