"""The gamma function and its kin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.define import elementwise, public
from gradtape.errors import ArgumentError
from gradtape.ops.erf import narrowed, scipy_special, special
from gradtape.ops.parametric import parametric
from gradtape.typing import Array, ArrayLike


def _polygamma_forward(xp: Any, x: Any, order: int) -> Any:
    # ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹·n!·ζ(n + 1, x)
    sign = 1.0 if order % 2 else -1.0
    return narrowed(sign * math.factorial(order) * scipy_special(xp).zeta(order + 1, x), x)


# d ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁺¹⁾(x)·dx
_polygamma: Callable[..., Any] = parametric(
    "polygamma",
    _polygamma_forward,
    lambda ct, _out, x, order: ct * _polygamma(x, order=order + 1),
)


# d ψ(x) = ψ⁽¹⁾(x)·dx
@elementwise(
    special("digamma"),
    lambda ct, _out, x: ct * _polygamma(x, order=1),
    replaces=("scipy.special.psi",),
)
def digamma(x: ArrayLike, /) -> Array:
    """Derivative of the logarithm of the gamma function.

    >>> gt.digamma(np.array([1.0, 2.0]))
    array([-0.57721566,  0.42278434])
    """


@public()
def polygamma(n: int, x: ArrayLike, /) -> Array:
    """Derivative of order `n` of the digamma function.

    Args:
        n: The order, a Python integer from 0.
        x: Where to evaluate it.

    Raises:
        ArgumentError: The order is not an integer from 0.

    >>> gt.polygamma(1, np.array([1.0, 2.0]))
    array([1.64493407, 0.64493407])
    """
    if not isinstance(n, int | np.integer) or n < 0:
        raise ArgumentError(f"polygamma: came order {n!r}; needed a Python integer from 0")
    return digamma(x) if n == 0 else _polygamma(x, order=int(n))


# d log Γ(x) = ψ(x)·dx
@elementwise(
    special("gammaln"),
    lambda ct, _out, x: ct * digamma(x),
    replaces=("scipy.special.gammaln",),
)
def lgamma(x: ArrayLike, /) -> Array:
    """Logarithm of the absolute value of the gamma function.

    >>> gt.lgamma(np.array([1.0, 5.0]))
    array([0.        , 3.17805383])
    """
