"""Incomplete gamma functions, differentiable in their parameter to any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import elementwise, elementwise_op
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import log
from gradtape.ops.select import mask, where
from gradtape.ops.special.common import operand, promoted, scipy_function, whole_part
from gradtape.ops.special.entropy import xlogy
from gradtape.ops.special.gamma import digamma, polygamma
from gradtape.ops.special.quadrature import blockwise, gamma_slope
from gradtape.ops.special.stirling import derivative_factors, gamma_weight
from gradtape.typing import Array, ArrayLike

# ---- the density and the slope ------------------------------------------------------------------


@blockwise
def _density_forward(xp: Any, a: Any, x: Any) -> Any:
    inside = (a > 0) & (x > 0) & (x < np.inf) & (a < np.inf)
    shape, t = xp.where(inside, a, 1.0), xp.where(inside, x, 1.0)
    # xᵃ may underflow where xᵃ⁻¹ does not.
    lower = shape > 2
    value = gamma_weight(xp, shape - lower, t) / xp.where(lower, shape - 1, t)
    at_zero = xp.where(a < 1, np.inf, xp.where(a == 1, 1.0, 0.0))
    edge = xp.where(x == 0, at_zero, xp.where(x == np.inf, 0.0, np.nan))
    return xp.where(inside, value, xp.where(a > 0, edge, np.nan))


def sloped(ct: Any, density: Any) -> Any:
    """`ct` times a density, and 0 where `ct` is, also at an end where the density is infinite."""
    return mask(ct * density, (ct != 0) | isfinite(density))


def _density_by_a(ct: Any, out: Any, a: Any, x: Any) -> Any:
    scaled = ct * out
    return xlogy(scaled, x) - scaled * digamma(a)


def _density_by_x(ct: Any, out: Any, a: Any, x: Any) -> Any:
    # p·(a − 1)/x is the density of a − 1, which is regular at 0.
    above = a > 1
    lower = gamma_density(where(above, a - 1, 1.0), x)
    other = (a - 1) * out / where(above, 1.0, x)
    return ct * (where(above, lower, other) - out)


# p = xᵃ⁻¹·e⁻ˣ/Γ(a): dp = p·((log x − ψ(a))·da + ((a − 1)/x − 1)·dx)
@elementwise(_density_forward, _density_by_a, _density_by_x)
def gamma_density(a: ArrayLike, x: ArrayLike, /) -> Array:
    """The density of the gamma distribution of shape `a`.

    >>> gt.ops.special.incomplete_gamma.gamma_density(1.0, np.array([0.0, 1.0]))
    array([1.        , 0.36787944])
    """


def _slope_by_x(ct: Any, _out: Any, a: Any, x: Any, order: int) -> Any:
    def logs(k: int) -> Any:
        return log(x) - digamma(a) if k == 1 else -polygamma(k - 1, a)

    density = gamma_density(a, x)
    return mask(ct * density * derivative_factors(order, logs)[order], density != 0)


# ∂ⁿP/∂aⁿ: one order more in a; in x the same derivative of the density
gammainc_slope: Callable[..., Any] = elementwise_op(
    "gammainc_slope",
    gamma_slope,
    lambda ct, _out, a, x, order: ct * gammainc_slope(a, x, order=order + 1),
    _slope_by_x,
)


# ---- the functions and their inverses -----------------------------------------------------------


# dP = ∂P/∂a·da + xᵃ⁻¹·e⁻ˣ/Γ(a)·dx
@scipy_function(
    lambda ct, _out, a, x: ct * gammainc_slope(a, x, order=1),
    lambda ct, _out, a, x: sloped(ct, gamma_density(a, x)),
)
def gammainc(a: ArrayLike, x: ArrayLike, /) -> Array:
    """Regularized lower incomplete gamma function, differentiable in both arguments.

    >>> gt.scipy.special.gammainc(2.0, np.array([0.0, 1.0]))
    array([0.        , 0.26424112])
    """


# Q = 1 − P
@scipy_function(
    lambda ct, _out, a, x: -ct * gammainc_slope(a, x, order=1),
    lambda ct, _out, a, x: -sloped(ct, gamma_density(a, x)),
)
def gammaincc(a: ArrayLike, x: ArrayLike, /) -> Array:
    """Regularized upper incomplete gamma function, differentiable in both arguments.

    >>> gt.scipy.special.gammaincc(2.0, np.array([0.0, 1.0]))
    array([1.        , 0.73575888])
    """


def inverse_by_shape(ct: Any, out: Any, a: Any, _y: Any = None) -> Any:
    """`ct` times −(∂P/∂a)/p(a, x): how x moves with `a` where P(a, x) stays the same."""
    # At x = 0 the slope is 0, whatever the density is.
    density = where(out == 0, 1.0, gamma_density(a, where(out == 0, 1.0, out)))
    return -ct * (gammainc_slope(a, out, order=1) / density)


# x with P(a, x) = y: dx = (dy − ∂P/∂a·da)/p(a, x)
@scipy_function(inverse_by_shape, lambda ct, out, a, _y: ct / gamma_density(a, out))
def gammaincinv(a: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `gammainc` in its second argument.

    >>> gt.scipy.special.gammaincinv(2.0, np.array([0.0, 0.5]))
    array([0.        , 1.67834699])
    """


# x with Q(a, x) = y: dx = −(dy + ∂P/∂a·da)/p(a, x)
@scipy_function(inverse_by_shape, lambda ct, out, a, _y: -ct / gamma_density(a, out))
def gammainccinv(a: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `gammaincc` in its second argument.

    >>> gt.scipy.special.gammainccinv(2.0, np.array([1.0, 0.5]))
    array([0.        , 1.67834699])
    """


# ---- distribution functions that are these ------------------------------------------------------


def _not_negative(x: ArrayLike) -> Any:
    """An argument, and NaN where it is negative: what SciPy has no value for."""
    x = operand(x)
    return where(x < 0, math.nan, x)


def gdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Distribution function of the gamma distribution of rate `a` and shape `b`.

    >>> gt.scipy.special.gdtr(1.0, 2.0, np.array([1.0]))
    array([0.26424112])
    """
    return gammainc(b, operand(a) * _not_negative(x))


def gdtrc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """One minus `gdtr`.

    >>> gt.scipy.special.gdtrc(1.0, 2.0, np.array([1.0]))
    array([0.73575888])
    """
    return gammaincc(b, operand(a) * _not_negative(x))


def chdtr(v: ArrayLike, x: ArrayLike, /) -> Array:
    """Distribution function of chi square with `v` degrees of freedom.

    >>> gt.scipy.special.chdtr(2.0, np.array([2.0]))
    array([0.63212056])
    """
    return gammainc(0.5 * operand(v), 0.5 * operand(x))


def chdtrc(v: ArrayLike, x: ArrayLike, /) -> Array:
    """One minus `chdtr`.

    >>> gt.scipy.special.chdtrc(2.0, np.array([2.0]))
    array([0.36787944])
    """
    return gammaincc(0.5 * operand(v), 0.5 * operand(x))


def chdtri(v: ArrayLike, p: ArrayLike, /) -> Array:
    """Inverse of `chdtrc` in its second argument.

    >>> gt.scipy.special.chdtri(2.0, np.array([0.36787944]))
    array([2.00000001])
    """
    return 2.0 * gammainccinv(0.5 * operand(v), p)


def pdtr(k: ArrayLike, m: ArrayLike, /) -> Array:
    """Probability of at most `k` events of a Poisson distribution of mean `m`.

    >>> gt.scipy.special.pdtr(1, np.array([1.0]))
    array([0.73575888])
    """
    return gammaincc(_not_negative(whole_part(k)) + 1, m)


def pdtrc(k: ArrayLike, m: ArrayLike, /) -> Array:
    """One minus `pdtr`.

    >>> gt.scipy.special.pdtrc(1, np.array([1.0]))
    array([0.26424112])
    """
    return gammainc(_not_negative(whole_part(k)) + 1, m)


def pdtri(k: ArrayLike, y: ArrayLike, /) -> Array:
    """Inverse of `pdtr` in its second argument.

    >>> gt.scipy.special.pdtri(0, np.array([np.exp(-2.0)]))
    array([2.])
    """
    return gammainccinv(_not_negative(whole_part(k)) + 1, y)


def gdtrix(a: ArrayLike, b: ArrayLike, p: ArrayLike, /) -> Array:
    """Inverse of `gdtr` in its last argument.

    >>> gt.scipy.special.gdtrix(2.0, 2.0, np.array([0.5]))
    array([0.8391735])
    """
    a, b, p = promoted(a, b, p)
    return gammaincinv(b, p) / a
