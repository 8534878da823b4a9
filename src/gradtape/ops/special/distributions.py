"""Distribution functions that are incomplete beta functions, under SciPy's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import answers, elementwise
from gradtape.ops.exponential import log1p
from gradtape.ops.select import where
from gradtape.ops.special.common import of_scipy, operand, whole_part, with_params
from gradtape.ops.special.gamma import digamma_step, polygamma
from gradtape.ops.special.incomplete_beta import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
)
from gradtape.ops.special.quadrature import beta_slope, in_blocks
from gradtape.ops.special.stirling import derivative_factors, stirling_remainder
from gradtape.typing import Array, ArrayLike

# ---- Student's distribution ---------------------------------------------------------------------


def _density_forward(xp: Any, df: Any, t: Any) -> Any:
    def block(df: Any, t: Any) -> Any:
        half = 0.5 * df
        # Γ(h + ½)/Γ(h) by Stirling's formula, whose large parts cancel
        grown = half * xp.log1p(0.5 / half) - 0.5
        grown = grown + stirling_remainder(xp, half + 0.5) - stirling_remainder(xp, half)
        exponent = grown - (half + 0.5) * xp.log1p(t * t / df)
        return xp.where(df > 0, xp.exp(exponent) / math.sqrt(2 * math.pi), math.nan)

    return in_blocks(xp, block, df, t)


def _log_slope(df: Any, t: Any) -> Any:
    """Log (1 + t²/ν)⁻¹ − ψ(ν/2) + ψ(ν/2 + 1/2)."""
    half = 0.5 * df
    return digamma_step(half, 0.5) - log1p(t * t / df)


def _density_by_df(ct: Any, out: Any, df: Any, t: Any) -> Any:
    square = t * t
    return ct * (out * (0.5 * _log_slope(df, t) + (square - 1) / (2 * (df + square))))


# f = Γ((ν + 1)/2)/(√(νπ)·Γ(ν/2))·(1 + t²/ν)^(−(ν + 1)/2): d log f = −(ν + 1)·t/(ν + t²)·dt
# + ½·(ψ((ν + 1)/2) − ψ(ν/2) − log(1 + t²/ν) + (t² − 1)/(ν + t²))·dν
@elementwise(
    _density_forward,
    _density_by_df,
    lambda ct, out, df, t: ct * (out * (-(df + 1) * t / (df + t * t))),
)
def t_density(df: ArrayLike, t: ArrayLike, /) -> Array:
    """The density of Student's t with `df` degrees of freedom.

    >>> gt.ops.special.distributions.t_density(1.0, np.array([0.0]))
    array([0.31830989])
    """


def _slope_forward(xp: Any, df: Any, t: Any, order: int) -> Any:
    """Sign t·∂ⁿI(½, b, y)/∂bⁿ at b = ν/2 and y = t²/(ν + t²), where F = ½ + ½·sign t·I."""
    dtype = xp.result_type(df, t)
    df, t = (xp.asarray(v, np.float64) for v in (df, t))
    half, square = 0.5 * df, t * t
    y, x = square / (df + square), df / (df + square)
    below = beta_slope(xp, 0.5, half, xp.where(y < 0.5, y, 0.5), (0, order))
    above = -beta_slope(xp, half, 0.5, xp.where(y < 0.5, 0.5, x), (order, 0))
    out = xp.sign(t) * xp.where(y < 0.5, below, above)
    return out.astype(dtype if dtype.kind == "f" else np.float64)


def _slope_factor(df: Any, t: Any, order: int) -> Any:
    half = 0.5 * df

    def logs(k: int) -> Any:
        if k == 1:
            return _log_slope(df, t)
        return polygamma(k - 1, half + 0.5) - polygamma(k - 1, half)

    return t_density(df, t) * derivative_factors(order, logs)[order]


# With f·qₙ the derivative of that order of the density: dKₙ = 2·f·qₙ·dt + (½·Kₙ₊₁ − t/ν·f·qₙ)·dν
_stdtr_slope: Callable[..., Any] = with_params(
    "stdtr_slope",
    _slope_forward,
    lambda ct, _out, df, t, order: (
        ct * (0.5 * _stdtr_slope(df, t, order=order + 1) - t / df * _slope_factor(df, t, order))
    ),
    lambda ct, _out, df, t, order: ct * (2.0 * _slope_factor(df, t, order)),
)


def _stdtr_by_df(ct: Any, _out: Any, df: Any, t: Any) -> Any:
    return ct * (0.25 * _stdtr_slope(df, t, order=1) - t * t_density(df, t) / (2 * df))


# dF = f·dt + (¼·K₁ − t·f/(2ν))·dν
@elementwise(
    of_scipy("stdtr"),
    _stdtr_by_df,
    lambda ct, _out, df, t: ct * t_density(df, t),
    replaces=("scipy.special.stdtr",),
)
def stdtr(df: ArrayLike, t: ArrayLike, /) -> Array:
    """Distribution function of Student's t with `df` degrees of freedom.

    >>> gt.special.stdtr(1.0, np.array([0.0, 1.0]))
    array([0.5 , 0.75])
    """


# t with F(ν, t) = p: dt = (dp − ∂F/∂ν·dν)/f
@elementwise(
    of_scipy("stdtrit"),
    lambda ct, out, df, _p: -_stdtr_by_df(ct, None, df, out) / t_density(df, out),
    lambda ct, out, df, _p: ct / t_density(df, out),
    replaces=("scipy.special.stdtrit",),
)
def stdtrit(df: ArrayLike, p: ArrayLike, /) -> Array:
    """Inverse of `stdtr` in its second argument.

    >>> gt.special.stdtrit(1.0, np.array([0.5, 0.75]))
    array([0., 1.])
    """


# ---- others -------------------------------------------------------------------------------------


def _shares(dfn: Any, dfd: Any, x: Any) -> tuple[Any, Any, Any]:
    """Whether x is low, and the share of it in m·x + n, or what is left: the one that is small."""
    scaled = dfn * x
    low = scaled < dfd
    share, rest = scaled / (dfd + scaled), dfd / (dfd + scaled)
    return low, where(low, share, 0.25), where(low, 0.25, rest)


@answers("scipy.special.fdtr")
def fdtr(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Array:
    """Distribution function of F with `dfn` and `dfd` degrees of freedom.

    >>> gt.special.fdtr(2.0, 2.0, np.array([1.0]))
    array([0.5])
    """
    dfn, dfd = operand(dfn), operand(dfd)
    m, n = 0.5 * dfn, 0.5 * dfd
    low, share, rest = _shares(dfn, dfd, operand(x))
    return where(low, betainc(m, n, share), betaincc(n, m, rest))


@answers("scipy.special.fdtrc")
def fdtrc(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Array:
    """One minus `fdtr`.

    >>> gt.special.fdtrc(2.0, 2.0, np.array([1.0]))
    array([0.5])
    """
    dfn, dfd = operand(dfn), operand(dfd)
    m, n = 0.5 * dfn, 0.5 * dfd
    low, share, rest = _shares(dfn, dfd, operand(x))
    return where(low, betaincc(m, n, share), betainc(n, m, rest))


@answers("scipy.special.fdtri")
def fdtri(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike, /) -> Array:
    """Inverse of `fdtr` in its last argument.

    >>> gt.special.fdtri(2.0, 2.0, np.array([0.5]))
    array([1.])
    """
    dfn, dfd = operand(dfn), operand(dfd)
    m, n = 0.5 * dfn, 0.5 * dfd
    p = operand(p)
    # x/(1 − x), by 1 − x where that is the smaller one
    low = p < betainc(m, n, 0.5)
    x, rest = betaincinv(m, n, where(low, p, 0.5)), betainccinv(n, m, where(low, 0.5, p))
    return where(low, x / (1 - where(low, x, 0.0)), (1 - rest) / rest) * dfd / dfn


@answers("scipy.special.bdtr")
def bdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """Probability of at most `k` successes in `n` trials of probability `p`; `k` is rounded down.

    >>> gt.special.bdtr(1, 2, np.array([0.5]))
    array([0.75])
    """
    k = whole_part(k)
    return betaincc(k + 1, operand(n) - k, p)


@answers("scipy.special.bdtrc")
def bdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """One minus `bdtr`.

    >>> gt.special.bdtrc(1, 2, np.array([0.5]))
    array([0.25])
    """
    k = whole_part(k)
    return betainc(k + 1, operand(n) - k, p)


@answers("scipy.special.nbdtr")
def nbdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """Probability of at most `k` failures before `n` successes; `k` is rounded down.

    >>> gt.special.nbdtr(1, 2, np.array([0.5]))
    array([0.5])
    """
    return betainc(n, whole_part(k) + 1, p)


@answers("scipy.special.nbdtrc")
def nbdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """One minus `nbdtr`.

    >>> gt.special.nbdtrc(1, 2, np.array([0.5]))
    array([0.5])
    """
    return betaincc(n, whole_part(k) + 1, p)
