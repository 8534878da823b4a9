"""Logarithms of incomplete gamma and beta functions, also where the functions underflow.

A tail that is not small is computed as SciPy does, and its logarithm taken. A small one is split
into its leading factor, whose logarithm is elementary, and an integral of about 1 over its slope.
That integral is an op of its own, whose derivatives are integrals of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise_op
from gradtape.ops.exponential import log, log1p
from gradtape.ops.select import where
from gradtape.ops.special.common import raised
from gradtape.ops.special.gamma import betaln, lgamma
from gradtape.ops.special.incomplete_gamma import gammainc, gammaincc
from gradtape.ops.special.quadrature import beta_tail, gamma_tail

# Below this, derivatives of a logarithm by those of the function begin to lose digits.
_SMALL = 1e-3

# Each derivative of the integrand is another power of one of its factors.
gamma_integral: Callable[..., Any] = elementwise_op(
    "gamma_tail",
    gamma_tail,
    lambda ct, _out, a, x, upper, powers: (
        ct * gamma_integral(a, x, upper=upper, powers=raised(powers, 0))
    ),
    lambda ct, _out, a, x, upper, powers: (
        -ct * gamma_integral(a, x, upper=upper, powers=raised(powers, 1))
    ),
)


def _beta_tail_by_x(ct: Any, _out: Any, a: Any, b: Any, x: Any, powers: Any) -> Any:
    i, j, k = powers
    total = (a + b + k) * beta_integral(a, b, x, powers=(i, j, k + 1))
    if i:
        total = total + i * beta_integral(a, b, x, powers=(i - 1, j, k + 1))
    if j:
        total = total + j * beta_integral(a, b, x, powers=(i, j - 1, k + 1))
    return -ct * total


# The same; by x: ∂l = r and ∂r = −r², so that −(a + b + k)·rᵏ⁺¹, and −r for each factor with l
beta_integral: Callable[..., Any] = elementwise_op(
    "beta_tail",
    beta_tail,
    lambda ct, _out, a, b, x, powers: ct * beta_integral(a, b, x, powers=raised(powers, 0)),
    lambda ct, _out, a, b, x, powers: ct * beta_integral(a, b, x, powers=raised(powers, 1)),
    _beta_tail_by_x,
)


def log_of(probability: Any, rest: Any) -> Any:
    """The logarithm of p, by 1 − p where that is the smaller one."""
    large = probability > 0.5
    small = log(where(large, 0.5, probability))
    return where(large, log1p(-where(large, rest, 0.5)), small)


def log_gammainc(a: Any, x: Any, log_x: Any) -> Any:
    """The logarithm of the lower incomplete gamma function, given that of x, too."""
    value = gammainc(a, x)
    return _log_gamma(a, x, log_x, value, gammaincc(a, x), value < _SMALL, upper=False)


def log_gammaincc(a: Any, x: Any, log_x: Any) -> Any:
    """The logarithm of the upper incomplete gamma function, given that of x, too."""
    value = gammaincc(a, x)
    # For tiny a it is small everywhere, but only beyond the mean it is a tail.
    small = (value < _SMALL) & (x > a)
    return _log_gamma(a, x, log_x, value, gammainc(a, x), small, upper=True)


def _log_gamma(
    a: Any, x: Any, log_x: Any, value: Any, rest: Any, small: Any, *, upper: bool
) -> Any:
    integral = log(gamma_integral(a, where(small, x, math.nan), upper=upper, powers=(0, 0)))
    leading = a * where(small, log_x, 0.0) - where(small, x, 0.0) - lgamma(a)
    return where(small, leading + integral, log_of(where(small, 0.25, value), rest))


def log_betainc(a: Any, b: Any, x: Any, log_x: Any, value: Any, rest: Any) -> Any:
    """The logarithm of the incomplete beta function, given log x, its value and one minus that."""
    small = (value < _SMALL) & (a * (1 - x) > b * x)
    integral = log(beta_integral(a, b, where(small, x, math.nan), powers=(0, 0, 0)))
    leading = a * where(small, log_x, 0.0) + b * log1p(-where(small, x, 0.0)) - betaln(a, b)
    return where(small, leading + integral, log_of(where(small, 0.25, value), rest))
