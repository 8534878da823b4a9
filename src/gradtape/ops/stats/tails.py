"""What distributions are made of: one minus exponentials, exact in both tails, and powers of 0."""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.arithmetic import power
from gradtape.ops.exponential import exp, expm1, log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.elementary import exprel

# Above this power of z, z^k and its derivatives that matter are 0 where z is.
FLAT = 3.0
# The exponential of minus the exponential of this is 0, and so are its derivatives.
VANISHED = 7.0


def one_minus_exp(u: Any) -> Any:
    """1 − e⁻ᵘ for u ≥ 0, with a slope that is exact where this is close to 1."""
    large = u > 1
    return where(large, 1 - exp(-where(large, u, 1.0)), -expm1(-where(large, 0.5, u)))


def log_one_minus_exp(u: Any, log_u: Any) -> Any:
    """log(1 − e⁻ᵘ) for u ≥ 0, given log u, too, which counts where u is small or underflows."""
    large = u > math.log(2)
    upper = log1p(-exp(-where(large, u, 1.0)))
    return where(large, upper, where(large, 0.0, log_u) + log(exprel(-where(large, 0.5, u))))


def capped(w: Any) -> Any:
    """The argument as far as exp(−exp(w)) is not 0, so that the inner one does not overflow."""
    return where(w > VANISHED, VANISHED, w)


def power_of_zero(base: Any, exponent: Any, zero: Any) -> Any:
    """A power where its base is 0, with the derivatives of low order it has there; 1 elsewhere."""
    flat = exponent > FLAT
    value = power(where(zero, base, 1.0), where(flat, FLAT, exponent))
    return where(flat & zero, 0.0, value)
