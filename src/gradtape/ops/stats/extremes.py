"""Distributions of extreme values and of heavy tails, whose shape may be 0 or of either sign."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.arithmetic import sign
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.common import series
from gradtape.ops.special.elementary import exprel
from gradtape.ops.stats.continuous import EULER_GAMMA
from gradtape.ops.stats.density import Continuous
from gradtape.ops.stats.tails import (
    capped,
    exp_minus,
    log_one_minus_exp,
    one_minus_exp,
    quiet_log_rest,
)

_LOG_TERMS = [(-1.0) ** k / (k + 1) for k in range(20)]


def _log_quotient(u: Any) -> Any:
    """log(1 + u)/u, by its series where that is close to 1."""
    near = abs(u) < 0.1
    return where(near, series(_LOG_TERMS, where(near, u, 0.0)), _far_quotient(u, near))


def _far_quotient(u: Any, near: Any) -> Any:
    u = where(near, 1.0, u)
    return quiet_log_rest(-u) / u


def _times(factor: Any, y: Any) -> Any:
    """A product that is 0 where the factor is, though y may be infinite."""
    none = factor == 0
    return where(none, 0.0, factor * where(none, 0.0, y))


def _warped(z: Any, c: Any) -> Any:
    """log(1 + c·z)/c, which is z for c = 0."""
    return z * _log_quotient(c * z)


def _above(c: Any) -> Any:
    """The end −1/c of a support, if c is less than 0."""
    ends = c < 0
    return where(ends, -1 / where(ends, c, -1.0), math.inf)


def _mean_of_excess(c: Any) -> Any:
    finite = c < 1
    return where(finite, 1 / (1 - where(finite, c, 0.0)), math.inf)


def _var_of_excess(c: Any) -> Any:
    finite = c < 0.5
    c = where(finite, c, 0.0)
    return where(finite, 1 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)


genpareto = Continuous(
    "genpareto",
    ("c",),
    support=(0.0, _above),
    valid=isfinite,
    # The density is (1 + cz)^(−1 − 1/c).
    logpdf=lambda z, c: -_times(c + 1, _warped(z, c)),
    cdf=lambda z, c: one_minus_exp(_warped(z, c)),
    sf=lambda z, c: exp_minus(_warped(z, c)),
    logcdf=lambda z, c: log_one_minus_exp(_warped(z, c), _log_warped(z, c)),
    logsf=lambda z, c: -_warped(z, c),
    ppf=lambda q, c: _unwarped(-log1p(-q), c),
    isf=lambda q, c: _unwarped(-log(q), c),
    mean=_mean_of_excess,
    var=_var_of_excess,
    entropy=lambda c: 1 + c,
)


def _log_warped(z: Any, c: Any) -> Any:
    return log(z) + log(_log_quotient(c * z))


def _unwarped(y: Any, c: Any) -> Any:
    """The point z whose `_warped` form is y, which is infinite at the ends of the support."""
    endless = (c == 0) & (abs(y) == math.inf)
    ends = (c != 0) & (where(endless, 0.0, y) * c == -math.inf)
    inner = where(ends | endless, 0.0, y)
    end = where(ends, -1 / where(ends, c, 1.0), inner * exprel(c * inner))
    # To first order in c; the slope by c is infinite, too.
    y = where(endless, y, 1.0)
    return where(endless, y * exp(where(endless, c, 0.0) * sign(y)), end)


# ---- of maxima ----------------------------------------------------------------------------------


def _gumbel_place(z: Any, c: Any) -> Any:
    """−y, where y has the distribution of Gumbel: log(1 − c·z)/c."""
    return -_warped(z, -c)


def _log_density_of_maxima(z: Any, c: Any) -> Any:
    w = _gumbel_place(z, c)
    none = w == math.inf  # at a lower bound
    w = where(none, 0.0, w)
    return where(none, -math.inf, _times(1 - c, w) - exp(w))


def _below(c: Any) -> Any:
    """The end 1/c of a support, if c is less than 0."""
    return -_above(c)


genextreme = Continuous(
    "genextreme",
    ("c",),
    support=(_below, lambda c: _above(-c)),
    valid=isfinite,
    logpdf=_log_density_of_maxima,
    cdf=lambda z, c: exp(-exp(capped(_gumbel_place(z, c)))),
    sf=lambda z, c: one_minus_exp(exp(capped(_gumbel_place(z, c)))),
    logcdf=lambda z, c: -exp(_gumbel_place(z, c)),
    logsf=lambda z, c: _log_upper_tail(capped(_gumbel_place(z, c))),
    ppf=lambda q, c: _unwarped(-log(-log(q)), -c),
    isf=lambda q, c: _unwarped(-log(-log1p(-q)), -c),
    entropy=lambda c: EULER_GAMMA * (1 - c) + 1,
)


def _log_upper_tail(w: Any) -> Any:
    """log(1 − exp(−eʷ))."""
    return log_one_minus_exp(exp(w), w)
