"""Spherical Bessel functions, and those of Airy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise, elementwise_op
from gradtape.core.op import NotDifferentiable
from gradtape.errors import NotDifferentiableError
from gradtape.ops.arguments import as_array
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import maximum, where
from gradtape.ops.special.bessel import ive, kve
from gradtape.ops.special.bessel_scaled import scaled_derivative
from gradtape.ops.special.common import of_scipy
from gradtape.typing import Array, ArrayLike

# ---- spherical Bessel functions -----------------------------------------------------------------

_ORDER = NotDifferentiable("spherical Bessel functions: the order is an integer")


def _slope(function: Callable[..., Any], lower: float, upper: float, n: Any, z: Any) -> Any:
    """(lower·n·f(n − 1) + upper·(n + 1)·f(n + 1))/(2n + 1), regular at 0 where f is."""
    below, above = function(maximum(n - 1, 0), z), function(n + 1, z)
    # Of order 0 there is no first term, not even 0·∞.
    first = where(n == 0, 0.0, (lower * n / (2 * n + 1)) * below)
    return first + (upper * (n + 1) / (2 * n + 1)) * above


_of_orders = functools.partial(of_scipy, whole=(0,))


# d j_n = (n·j_{n−1} − (n + 1)·j_{n+1})/(2n + 1)·dz
@elementwise(
    _of_orders("spherical_jn"),
    _ORDER,
    lambda ct, _out, n, z: ct * _slope(spherical_j, 1.0, -1.0, n, z),  # type: ignore[has-type]
)
def spherical_j(n: ArrayLike, z: ArrayLike, /) -> Array:
    """Spherical Bessel function of the first kind."""


# d y_n = (n·y_{n−1} − (n + 1)·y_{n+1})/(2n + 1)·dz
@elementwise(
    _of_orders("spherical_yn"),
    _ORDER,
    lambda ct, _out, n, z: ct * _slope(spherical_y, 1.0, -1.0, n, z),  # type: ignore[has-type]
)
def spherical_y(n: ArrayLike, z: ArrayLike, /) -> Array:
    """Spherical Bessel function of the second kind."""


# d i_n = (n·i_{n−1} + (n + 1)·i_{n+1})/(2n + 1)·dz
@elementwise(
    _of_orders("spherical_in"),
    _ORDER,
    lambda ct, _out, n, z: ct * _slope(spherical_i, 1.0, 1.0, n, z),  # type: ignore[has-type]
)
def spherical_i(n: ArrayLike, z: ArrayLike, /) -> Array:
    """Modified spherical Bessel function of the first kind."""


# d k_n = −(n·k_{n−1} + (n + 1)·k_{n+1})/(2n + 1)·dz
@elementwise(
    _of_orders("spherical_kn"),
    _ORDER,
    lambda ct, _out, n, z: ct * _slope(spherical_k, -1.0, -1.0, n, z),  # type: ignore[has-type]
)
def spherical_k(n: ArrayLike, z: ArrayLike, /) -> Array:
    """Modified spherical Bessel function of the second kind."""


def _orders(n: ArrayLike) -> Any:
    """Orders as integers; a tensor of them as it is."""
    return n if isinstance(n, int) else as_array(n)


def spherical_jn(n: ArrayLike, z: ArrayLike, /, derivative: bool = False) -> Array:
    """Spherical Bessel function of the first kind of integer order `n`.

    Args:
        n: The order.
        z: Where to evaluate it.
        derivative: Whether to give its derivative instead.

    >>> gt.special.spherical_jn(0, np.array([0.0, 1.0]))
    array([1.        , 0.84147098])
    """
    n = _orders(n)
    return _slope(spherical_j, 1.0, -1.0, n, z) if derivative else spherical_j(n, z)


def spherical_yn(n: ArrayLike, z: ArrayLike, /, derivative: bool = False) -> Array:
    """Spherical Bessel function of the second kind of integer order `n`.

    Args:
        n: The order.
        z: Where to evaluate it.
        derivative: Whether to give its derivative instead.

    >>> gt.special.spherical_yn(0, np.array([1.0]))
    array([-0.54030231])
    """
    n = _orders(n)
    return _slope(spherical_y, 1.0, -1.0, n, z) if derivative else spherical_y(n, z)


def spherical_in(n: ArrayLike, z: ArrayLike, /, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the first kind of integer order `n`.

    Args:
        n: The order.
        z: Where to evaluate it.
        derivative: Whether to give its derivative instead.

    >>> gt.special.spherical_in(0, np.array([0.0, 1.0]))
    array([1.        , 1.17520119])
    """
    n = _orders(n)
    return _slope(spherical_i, 1.0, 1.0, n, z) if derivative else spherical_i(n, z)


def spherical_kn(n: ArrayLike, z: ArrayLike, /, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the second kind of integer order `n`.

    Args:
        n: The order.
        z: Where to evaluate it.
        derivative: Whether to give its derivative instead.

    >>> gt.special.spherical_kn(0, np.array([1.0]))
    array([0.57786367])
    """
    n = _orders(n)
    return _slope(spherical_k, -1.0, -1.0, n, z) if derivative else spherical_k(n, z)


# ---- Airy functions -----------------------------------------------------------------------------

# From here on, slopes of scaled ones are computed without cancellation.
_FAR = 10.0


def _airy_slopes(out: Any, z: Any) -> tuple[Any, ...]:
    ai, aip, bi, bip = out
    return aip, z * ai, bip, z * bi


# y″ = z·y for both: d(y, y′) = (y′, z·y)·dz
_airy = elementwise_op("airy", of_scipy("airy"), _airy_slopes, outputs=4)


def airy(z: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Airy functions and their derivatives, (Ai, Ai', Bi, Bi').

    >>> gt.special.airy(np.array([0.0]))[0]
    array([0.35502805])
    """
    return _airy(z)  # type: ignore[no-any-return]


def _airye_slopes(out: Any, z: Any) -> tuple[Any, ...]:
    if z.dtype.kind == "c":
        raise NotDifferentiableError(
            f"airye: got {z.dtype}; its scale is an absolute value of a complex number, so it has "
            "no complex derivative; use airy"
        )
    ai, aip, bi, bip = out
    # Below 0 the scale of Bi is 1, and the scaled Ai is not real: NaN.
    root = sqrt(maximum(z, 0.0))
    near = aip + root * ai, z * ai + root * aip, bip - root * bi, z * bi - root * bip
    far = z > _FAR
    outer = _outer_slopes(where(far, z, _FAR))
    return tuple(where(far, *both) for both in zip(outer, near, strict=True))


def _outer_slopes(z: Any) -> tuple[Any, ...]:
    """The same far out, where the terms cancel, by scaled Bessel functions of s."""
    root = sqrt(z)
    s = (2 / 3) * z * root

    def slope(function: Callable[..., Any], kind: str, order: float, power: float) -> Any:
        # d zᵖ·f(s) = (p·zᵖ⁻¹·f(s) + zᵖ·√z·f′(s))·dz
        factor = z if power == 1 else root
        change = scaled_derivative(order, s, kind=kind, order=1)
        return factor * (power / z * function(order, s) + root * change)

    def grown(order: float, power: float) -> Any:
        return slope(ive, "ive", order, power) + slope(ive, "ive", -order, power)

    third = 1 / math.sqrt(3.0)
    return (
        (third / math.pi) * slope(kve, "kve", 1 / 3, 0.5),
        (-third / math.pi) * slope(kve, "kve", 2 / 3, 1.0),
        third * grown(1 / 3, 0.5),
        third * grown(2 / 3, 1.0),
    )


# With s = 2/3·z^(3/2), s′ = √z: Ai·exp(s) and Bi·exp(−s) have these terms besides
_airye = elementwise_op("airye", of_scipy("airye"), _airye_slopes, outputs=4)


def airye(z: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Airy functions and their derivatives without their exponential growth, for real z.

    >>> gt.special.airye(np.array([0.0, 100.0]))[0]
    array([0.35502805, 0.08919692])
    """
    return _airye(z)  # type: ignore[no-any-return]
