"""Spherical Bessel functions, and those of Airy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise_op
from gradtape.core.op import NotDifferentiable
from gradtape.ops.arguments import as_array
from gradtape.ops.exponential import sqrt
from gradtape.ops.family import member
from gradtape.ops.select import maximum, where
from gradtape.ops.special.bessel import ive, kve
from gradtape.ops.special.bessel_scaled import scaled_derivative
from gradtape.ops.special.common import of_scipy, real_only, scipy_function
from gradtape.typing import Array, ArrayLike

# ---- spherical Bessel functions -----------------------------------------------------------------

# A function of order and argument, and its derivative.
_WithSlope = tuple[Callable[..., Any], Callable[..., Any]]


def _with_slope(name: str, lower: float, upper: float) -> _WithSlope:
    """A function f of SciPy, and f′ = (lower·n·f(n − 1) + upper·(n + 1)·f(n + 1))/(2n + 1).

    That is regular at 0 where f is.
    """

    def slope(n: Any, z: Any) -> Any:
        below, above = function(maximum(n - 1, 0), z), function(n + 1, z)
        # Of order 0 there is no first term, not even 0·∞.
        first = where(n == 0, 0.0, (lower * n / (2 * n + 1)) * below)
        return first + (upper * (n + 1) / (2 * n + 1)) * above

    function: Callable[..., Any] = elementwise_op(
        name.removesuffix("n"),
        of_scipy(name, whole=(0,)),
        NotDifferentiable("spherical Bessel functions: the order is an integer"),
        lambda ct, _out, n, z: ct * slope(n, z),
    )
    return function, slope


_SPHERICAL = {
    "spherical_jn": _with_slope("spherical_jn", 1.0, -1.0),
    "spherical_yn": _with_slope("spherical_yn", 1.0, -1.0),
    "spherical_in": _with_slope("spherical_in", 1.0, 1.0),
    "spherical_kn": _with_slope("spherical_kn", -1.0, -1.0),
}


def _spherical(name: str, n: ArrayLike, z: ArrayLike, /, derivative: bool = False) -> Array:
    """{what} Bessel function of the {kind} kind, of integer order `n`.

    Args:
        n: The order.
        z: Where to evaluate it.
        derivative: Whether to give its derivative instead.

    spherical_jn:
    >>> gt.scipy.special.spherical_jn(0, np.array([0.0, 1.0]))
    array([1.        , 0.84147098])

    spherical_yn:
    >>> gt.scipy.special.spherical_yn(0, np.array([1.0]))
    array([-0.54030231])

    spherical_in:
    >>> gt.scipy.special.spherical_in(0, np.array([0.0, 1.0]))
    array([1.        , 1.17520119])

    spherical_kn:
    >>> gt.scipy.special.spherical_kn(0, np.array([1.0]))
    array([0.57786367])
    """
    function, slope = _SPHERICAL[name]
    return (slope if derivative else function)(n if isinstance(n, int) else as_array(n), z)


spherical_jn = member("spherical_jn", _spherical, what="Spherical", kind="first")
spherical_yn = member("spherical_yn", _spherical, what="Spherical", kind="second")
spherical_in = member("spherical_in", _spherical, what="Modified spherical", kind="first")
spherical_kn = member("spherical_kn", _spherical, what="Modified spherical", kind="second")


# ---- Airy functions -----------------------------------------------------------------------------

# From here on, slopes of scaled ones are computed without cancellation.
_FAR = 10.0


def _airy_slopes(out: Any, z: Any) -> tuple[Any, ...]:
    ai, aip, bi, bip = out
    return aip, z * ai, bip, z * bi


# y″ = z·y for both: d(y, y′) = (y′, z·y)·dz
@scipy_function(_airy_slopes, outputs=4)
def airy(z: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Airy functions and their derivatives, (Ai, Ai', Bi, Bi').

    >>> gt.scipy.special.airy(np.array([0.0]))[0]
    array([0.35502805])
    """


def _airye_slopes(out: Any, z: Any) -> tuple[Any, ...]:
    z, (ai, aip, bi, bip) = real_only("airye", z), out
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
@scipy_function(_airye_slopes, outputs=4)
def airye(z: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Airy functions and their derivatives without their exponential growth, for real z.

    >>> gt.scipy.special.airye(np.array([0.0, 100.0]))[0]
    array([0.35502805, 0.08919692])
    """
