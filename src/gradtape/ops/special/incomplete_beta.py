"""Incomplete beta functions, differentiable in their parameters to any order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import elementwise, elementwise_op
from gradtape.ops.exponential import log, log1p
from gradtape.ops.select import mask, where
from gradtape.ops.special.common import raised, scipy_function
from gradtape.ops.special.entropy import xlog1py, xlogy
from gradtape.ops.special.gamma import digamma_step, polygamma
from gradtape.ops.special.incomplete_gamma import sloped
from gradtape.ops.special.quadrature import beta_slope, blockwise, mixed_factor
from gradtape.ops.special.stirling import beta_weight
from gradtape.typing import Array, ArrayLike

# ---- the density and the slope ------------------------------------------------------------------


@blockwise
def _density_forward(xp: Any, a: Any, b: Any, x: Any) -> Any:
    known = (a > 0) & (b > 0) & (a + b < np.inf)
    inside = known & (x > 0) & (x < 1)
    p, q = xp.where(inside, a, 1.0), xp.where(inside, b, 1.0)
    t = xp.where(inside, x, 0.5)
    value = beta_weight(xp, p, q, t, 1 - t) / t / (1 - t)
    # At an end: infinite, the other parameter, or 0
    own, other = xp.where(x == 0, a, b), xp.where(x == 0, b, a)
    end = xp.where(own < 1, np.inf, xp.where(own == 1, other, 0.0))
    edge = xp.where(known & ((x == 0) | (x == 1)), end, np.nan)
    return xp.where(inside, value, edge)


def _density_by_a(ct: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
    scaled = ct * out
    return xlogy(scaled, x) + scaled * digamma_step(a, b)


def _density_by_b(ct: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
    scaled = ct * out
    return xlog1py(scaled, -x) + scaled * digamma_step(b, a)


def _density_by_x(ct: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
    flat = out == 0  # at an end with a parameter above 1, or far out
    below, above = where(flat, 1.0, x), where(flat, 1.0, 1 - x)
    return ct * (out * ((a - 1) / below - (b - 1) / above))


# p = xᵃ⁻¹·(1 − x)ᵇ⁻¹/B(a, b): d log p = (log x − ψ(a) + ψ(a + b))·da
# + (log(1 − x) − ψ(b) + ψ(a + b))·db + ((a − 1)/x − (b − 1)/(1 − x))·dx
@elementwise(_density_forward, _density_by_a, _density_by_b, _density_by_x)
def beta_density(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """The density of the beta distribution of shapes `a` and `b`.

    >>> gt.ops.special.incomplete_beta.beta_density(2.0, 2.0, np.array([0.0, 0.5]))
    array([0. , 1.5])
    """


def _slope_by_x(ct: Any, _out: Any, a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    def logs(k: int, n: int) -> Any:
        order = k + n - 1
        value = polygamma(order, a + b)
        if n == 0:
            value = value - polygamma(order, a) + (log(x) if k == 1 else 0.0)
        if k == 0:
            value = value - polygamma(order, b) + (log1p(-x) if n == 1 else 0.0)
        return value

    density = beta_density(a, b, x)
    return mask(ct * density * mixed_factor(*orders, logs), density != 0)


# ∂ⁱ⁺ʲI/∂aⁱ∂bʲ: one order more in a or b; in x the same derivative of the density
_betainc_slope: Callable[..., Any] = elementwise_op(
    "betainc_slope",
    beta_slope,
    lambda ct, _out, a, b, x, orders: ct * _betainc_slope(a, b, x, orders=raised(orders, 0)),
    lambda ct, _out, a, b, x, orders: ct * _betainc_slope(a, b, x, orders=raised(orders, 1)),
    _slope_by_x,
)
by_a = functools.partial(_betainc_slope, orders=(1, 0))
by_b = functools.partial(_betainc_slope, orders=(0, 1))


# ---- the functions and their inverses -----------------------------------------------------------


# dI = ∂I/∂a·da + ∂I/∂b·db + xᵃ⁻¹·(1 − x)ᵇ⁻¹/B(a, b)·dx
@scipy_function(
    lambda ct, _out, a, b, x: ct * by_a(a, b, x),
    lambda ct, _out, a, b, x: ct * by_b(a, b, x),
    lambda ct, _out, a, b, x: sloped(ct, beta_density(a, b, x)),
)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Regularized incomplete beta function, differentiable in all arguments.

    >>> gt.scipy.special.betainc(2.0, 1.0, np.array([0.0, 0.5]))
    array([0.  , 0.25])
    """


# One minus the above
@scipy_function(
    lambda ct, _out, a, b, x: -ct * by_a(a, b, x),
    lambda ct, _out, a, b, x: -ct * by_b(a, b, x),
    lambda ct, _out, a, b, x: -sloped(ct, beta_density(a, b, x)),
)
def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """One minus the regularized incomplete beta function, differentiable in all arguments.

    >>> gt.scipy.special.betaincc(2.0, 1.0, np.array([0.0, 0.5]))
    array([1.  , 0.75])
    """


def _density_or_one(a: Any, b: Any, x: Any) -> Any:
    """The density, and 1 at the ends: there slopes by parameters are 0, whatever it is."""
    end = (x == 0) | (x == 1)
    return where(end, 1.0, beta_density(a, b, where(end, 0.5, x)))


def _inverse_by_a(ct: Any, out: Any, a: Any, b: Any, _y: Any) -> Any:
    return -ct * (by_a(a, b, out) / _density_or_one(a, b, out))


def _inverse_by_b(ct: Any, out: Any, a: Any, b: Any, _y: Any) -> Any:
    return -ct * (by_b(a, b, out) / _density_or_one(a, b, out))


# x with I(a, b, x) = y: dx = (dy − ∂I/∂a·da − ∂I/∂b·db)/p(a, b, x)
@scipy_function(
    _inverse_by_a,
    _inverse_by_b,
    lambda ct, out, a, b, _y: ct / beta_density(a, b, out),
)
def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `betainc` in its last argument.

    >>> gt.scipy.special.betaincinv(2.0, 1.0, np.array([0.0, 0.25]))
    array([0. , 0.5])
    """


# x with 1 − I(a, b, x) = y: the same with −dy
@scipy_function(
    _inverse_by_a,
    _inverse_by_b,
    lambda ct, out, a, b, _y: -ct / beta_density(a, b, out),
)
def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `betaincc` in its last argument.

    >>> gt.scipy.special.betainccinv(2.0, 1.0, np.array([1.0, 0.75]))
    array([0. , 0.5])
    """
