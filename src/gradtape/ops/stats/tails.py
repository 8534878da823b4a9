"""Building blocks of distributions: 1 − eˣ and the like, exact in both tails; powers of 0."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.arithmetic import absolute, power
from gradtape.ops.exponential import exp, expm1, log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.elementary import exprel
from gradtape.ops.special.entropy import xlog1py, xlogy

# Above this power k, z^k and its relevant derivatives are 0 where z is 0.
FLAT = 3.0
# The exponential of minus this is 0, and so are its derivatives.
GONE = 800.0
# The exponential of minus the exponential of this is 0, and so are its derivatives.
VANISHED = 7.0


def quiet_log(p: Any) -> Any:
    """The logarithm, without a warning for 0."""
    return xlogy(1.0, p)


def quiet_log_rest(p: Any) -> Any:
    """log(1 − p), without a warning for 1."""
    return xlog1py(1.0, -p)


def exp_minus(u: Any) -> Any:
    """e⁻ᵘ, flat where it is 0, though the slope of u may be infinite there."""
    gone = u > GONE
    return where(gone, 0.0, exp(-where(gone, 0.0, u)))


def one_minus_exp(u: Any) -> Any:
    """1 − e⁻ᵘ for u ≥ 0, with a slope that is exact where this is close to 1."""
    large = u > 1
    return where(large, 1 - exp_minus(where(large, u, 1.0)), -expm1(-where(large, 0.5, u)))


def log_one_minus_exp(u: Any, log_u: Any) -> Any:
    """log(1 − e⁻ᵘ) for u ≥ 0, given log u, too, which counts where u is small or underflows."""
    large = u > math.log(2)
    upper = log1p(-exp_minus(where(large, u, 1.0)))
    return where(large, upper, where(large, 0.0, log_u) + log(exprel(-where(large, 0.5, u))))


def log1p_square(z: Any) -> Any:
    """log(1 + z²), by 1/z where z² may be too large."""
    size = absolute(z)
    far = size > 100.0
    outer = where(far, size, 1.0)
    inner = where(far, 0.0, z)
    return where(far, 2 * log(outer) + log1p((1 / outer) ** 2), log1p(inner * inner))


def capped(w: Any) -> Any:
    """The argument, capped where exp(−exp(w)) is 0, so that the inner one does not overflow."""
    return where(w > VANISHED, VANISHED, w)


def power_of_zero(base: Any, exponent: Any, zero: Any) -> Any:
    """A power where its base is 0, with the derivatives of low order it has there; 1 elsewhere."""
    flat = exponent > FLAT
    value = power(where(zero, base, 1.0), where(flat, FLAT, exponent))
    return where(flat & zero, 0.0, value)
