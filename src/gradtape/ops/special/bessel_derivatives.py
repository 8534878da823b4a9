"""Derivatives of Bessel functions under names of their own, as SciPy has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.ops.special.bessel import hankel1, hankel2, iv, jv, kv, yv
from gradtape.ops.special.common import check_whole, operand
from gradtape.typing import Array, ArrayLike


def _derivative(
    name: str, function: Callable[..., Any], change: float, v: ArrayLike, z: ArrayLike, n: int
) -> Any:
    """f⁽ⁿ⁾ = 2⁻ⁿ·Σ C(n, k)·sᵏ·f_{v−n+2k}, where f′ = ½·(f_{v−1} + s·f_{v+1})."""
    check_whole(name, 0, n=n)
    v, n = operand(v), int(n)
    terms = (math.comb(n, k) * change**k * function(v - n + 2 * k, z) for k in range(n + 1))
    return 0.5**n * sum(terms)


def jvp(v: ArrayLike, z: ArrayLike, /, n: int = 1) -> Array:
    """Derivative of order `n` of `jv` in its argument.

    >>> gt.scipy.special.jvp(0, np.array([1.0]))
    array([-0.44005059])
    """
    return _derivative("jvp", jv, -1.0, v, z, n)


def yvp(v: ArrayLike, z: ArrayLike, /, n: int = 1) -> Array:
    """Derivative of order `n` of `yv` in its argument.

    >>> gt.scipy.special.yvp(0, np.array([1.0]))
    array([0.78121282])
    """
    return _derivative("yvp", yv, -1.0, v, z, n)


def ivp(v: ArrayLike, z: ArrayLike, /, n: int = 1) -> Array:
    """Derivative of order `n` of `iv` in its argument.

    >>> gt.scipy.special.ivp(0, np.array([1.0]))
    array([0.5651591])
    """
    return _derivative("ivp", iv, 1.0, v, z, n)


def kvp(v: ArrayLike, z: ArrayLike, /, n: int = 1) -> Array:
    """Derivative of order `n` of `kv` in its argument.

    >>> gt.scipy.special.kvp(0, np.array([1.0]))
    array([-0.60190723])
    """
    return (-1) ** int(n) * _derivative("kvp", kv, 1.0, v, z, n)


def h1vp(v: ArrayLike, z: ArrayLike, /, n: int = 1) -> Array:
    """Derivative of order `n` of `hankel1` in its argument.

    >>> gt.scipy.special.h1vp(0, np.array([1.0]))
    array([-0.44005059+0.78121282j])
    """
    return _derivative("h1vp", hankel1, -1.0, v, z, n)


def h2vp(v: ArrayLike, z: ArrayLike, /, n: int = 1) -> Array:
    """Derivative of order `n` of `hankel2` in its argument.

    >>> gt.scipy.special.h2vp(0, np.array([1.0]))
    array([-0.44005059-0.78121282j])
    """
    return _derivative("h2vp", hankel2, -1.0, v, z, n)
