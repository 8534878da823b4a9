"""Student's distribution, differentiable in its degrees of freedom."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise, elementwise_op
from gradtape.ops.exponential import log1p
from gradtape.ops.select import where
from gradtape.ops.special.common import scipy_function, series
from gradtape.ops.special.gamma import digamma_step, polygamma
from gradtape.ops.special.quadrature import beta_slope, blockwise, gauss_rule
from gradtape.ops.special.stirling import derivative_factors, stirling_remainder
from gradtape.typing import Array, ArrayLike


@blockwise
def _density_forward(xp: Any, df: Any, t: Any) -> Any:
    half = 0.5 * df
    # Γ(h + ½)/Γ(h) by Stirling's formula, whose large parts cancel
    grown = half * xp.log1p(0.5 / half) - 0.5
    grown = grown + stirling_remainder(xp, half + 0.5) - stirling_remainder(xp, half)
    exponent = grown - (half + 0.5) * xp.log1p(t * t / df)
    exponent = xp.where(df < math.inf, exponent, -0.5 * t * t)
    return xp.where(df > 0, xp.exp(exponent) / math.sqrt(2 * math.pi), math.nan)


# ψ(h + ½) − ψ(h) − 1/2h in powers of h⁻²
_EXCESS = (1 / 8, -1 / 64, 1 / 128, -17 / 2048, 31 / 2048, -691 / 16384, 5461 / 32768)
_LARGE = 20.0


def _excess(half: Any) -> Any:
    """The same by that series, for large numbers."""
    inverse = 1 / (half * half)
    return inverse * series(_EXCESS, inverse)


def _bend(w: Any) -> Any:
    """log(1 + w) − w/(1 + w)."""
    near = w < 0.1
    small, large = where(near, w, 0.0), where(near, 1.0, w)
    terms = small * small * series([(-1) ** k * (k + 1) / (k + 2) for k in range(18)], small)
    return where(near, terms, log1p(large) - large / (1 + large))


def _relative_slope(df: Any, t: Any, excess: Any) -> Any:
    """∂ log f/∂ν, in terms that are as small as it is for large ν."""
    w = t * t / df
    return 0.5 * (excess + w / (df * (1 + w)) - _bend(w))


def _density_by_df(ct: Any, out: Any, df: Any, t: Any) -> Any:
    half = 0.5 * df
    large = half > _LARGE
    near, far = where(large, _LARGE, half), where(large, half, _LARGE)
    excess = where(large, _excess(far), digamma_step(near, 0.5) - 0.5 / near)
    return ct * (out * _relative_slope(df, t, excess))


# f = Γ((ν + 1)/2)/(√(νπ)·Γ(ν/2))·(1 + t²/ν)^(−(ν + 1)/2): d log f = −(ν + 1)·t/(ν + t²)·dt
# + ½·(ψ((ν + 1)/2) − ψ(ν/2) − log(1 + t²/ν) + (t² − 1)/(ν + t²))·dν
@elementwise(
    _density_forward,
    _density_by_df,
    lambda ct, out, df, t: ct * (out * (-(df + 1) * t / (df + t * t))),
)
def t_density(df: ArrayLike, t: ArrayLike, /) -> Array:
    """The density of Student's t with `df` degrees of freedom.

    >>> gt.ops.special.student.t_density(1.0, np.array([0.0]))
    array([0.31830989])
    """


@blockwise
def _slope_forward(xp: Any, df: Any, t: Any, order: int) -> Any:
    """Sign t·∂ⁿI(½, b, y)/∂bⁿ at b = ν/2 and y = t²/(ν + t²), where F = ½ + ½·sign t·I."""
    half, square = 0.5 * df, t * t
    y, x = square / (df + square), df / (df + square)
    below = beta_slope(xp, 0.5, half, xp.where(y < 0.5, y, 0.5), orders=(0, order))
    above = -beta_slope(xp, half, 0.5, xp.where(y < 0.5, 0.5, x), orders=(order, 0))
    return xp.sign(t) * xp.where(y < 0.5, below, above)


def _slope_factor(df: Any, t: Any, order: int) -> Any:
    half = 0.5 * df

    def logs(k: int) -> Any:
        if k == 1:
            return digamma_step(half, 0.5) - log1p(t * t / df)
        return polygamma(k - 1, half + 0.5) - polygamma(k - 1, half)

    return t_density(df, t) * derivative_factors(order, logs)[order]


# With f·qₙ the derivative of that order of the density: dKₙ = 2·f·qₙ·dt + (½·Kₙ₊₁ − t/ν·f·qₙ)·dν
_stdtr_slope: Callable[..., Any] = elementwise_op(
    "stdtr_slope",
    _slope_forward,
    lambda ct, _out, df, t, order: (
        ct * (0.5 * _stdtr_slope(df, t, order=order + 1) - t / df * _slope_factor(df, t, order))
    ),
    lambda ct, _out, df, t, order: ct * (2.0 * _slope_factor(df, t, order)),
)


# From here on ∂f/∂ν is integrated; it changes its sign near _TURN.
_MANY, _TURN = 50.0, 1.55


def _direct_slope(xp: Any, df: Any, t: Any) -> Any:
    """∂F/∂ν as the integral of ∂f/∂ν, for large ν: of one sign, on the side of t where it is."""
    points, weights = gauss_rule(xp)
    size, w = abs(t), t * t / df
    inside = size < _TURN
    # Outwards, by log τ/|t|, until f has fallen by exp(−50)
    outer = xp.where(inside, 1.0, w)
    reach = 0.5 * xp.log1p((1 + outer) * xp.expm1(100.0 / (df + 1)) / outer)
    stretched = size[:, None] * xp.exp(reach[:, None] * points)
    tau = xp.where(inside[:, None], size[:, None] * points, stretched)
    step = xp.where(inside[:, None], size[:, None], -reach[:, None] * stretched)
    many = df[:, None] + 0.0 * tau
    slope = _relative_slope(many, tau, _excess(0.5 * many))
    return xp.sign(t) * ((_density_forward(xp, many, tau) * slope * step) @ weights)


@blockwise
def _by_df_forward(xp: Any, df: Any, t: Any) -> Any:
    large = (df > _MANY) & (df < math.inf)
    few, many = xp.where(df > _MANY, 1.0, df), xp.where(large, df, _MANY)
    density = _density_forward(xp, few, t)
    slope = 0.25 * _slope_forward(xp, few, t, order=1) - t / (2 * few) * density
    out = xp.where(large, _direct_slope(xp, many, t), slope)
    return xp.where(df == math.inf, 0.0 * t, out)


def _by_df_by_df(ct: Any, _out: Any, df: Any, t: Any) -> Any:
    density = t_density(df, t)
    curve = 0.125 * _stdtr_slope(df, t, order=2) - 0.25 * t / df * _slope_factor(df, t, 1)
    return ct * (curve - t / (2 * df) * (_density_by_df(1.0, density, df, t) - density / df))


# ∂F/∂ν = ¼·K₁ − t·f/(2ν), whose derivative by t is ∂f/∂ν
_stdtr_by_df: Callable[..., Any] = elementwise_op(
    "stdtr_by_df",
    _by_df_forward,
    _by_df_by_df,
    lambda ct, _out, df, t: _density_by_df(ct, t_density(df, t), df, t),
)


# dF = f·dt + ∂F/∂ν·dν
@scipy_function(
    lambda ct, _out, df, t: ct * _stdtr_by_df(df, t),
    lambda ct, _out, df, t: ct * t_density(df, t),
)
def stdtr(df: ArrayLike, t: ArrayLike, /) -> Array:
    """Distribution function of Student's t with `df` degrees of freedom.

    >>> gt.scipy.special.stdtr(1.0, np.array([0.0, 1.0]))
    array([0.5 , 0.75])
    """


# t with F(ν, t) = p: dt = (dp − ∂F/∂ν·dν)/f
@scipy_function(
    lambda ct, out, df, _p: -ct * (_stdtr_by_df(df, out) / t_density(df, out)),
    lambda ct, out, df, _p: ct / t_density(df, out),
)
def stdtrit(df: ArrayLike, p: ArrayLike, /) -> Array:
    """Inverse of `stdtr` in its second argument.

    >>> gt.scipy.special.stdtrit(1.0, np.array([0.5, 0.75])).round(12)
    array([0., 1.])
    """
