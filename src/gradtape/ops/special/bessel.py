"""Bessel functions of any order, differentiable in their argument.

Arguments are in SciPy's order: `jv(v, z)`. Derivatives are given by neighbouring orders, so they
are regular at 0 where the functions are, and exist to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise_op
from gradtape.ops.rounding import trunc
from gradtape.ops.special.bessel_scaled import scaled_derivative
from gradtape.ops.special.common import (
    as_complex,
    in_parameter,
    of_scipy,
    real_only,
    scipy_function,
)
from gradtape.typing import Array, ArrayLike


def _difference(function: Callable[..., Any], v: Any, z: Any) -> Any:
    """½·(f(v − 1, z) − f(v + 1, z)) for a function f."""
    return 0.5 * function(v - 1, z) - 0.5 * function(v + 1, z)


def _mean(function: Callable[..., Any], v: Any, z: Any) -> Any:
    """½·(f(v − 1, z) + f(v + 1, z)) for a function f."""
    return 0.5 * function(v - 1, z) + 0.5 * function(v + 1, z)


# d J_v = ½·(J_{v−1} − J_{v+1})·dz
@scipy_function("its order", lambda ct, _out, v, z: ct * _difference(jv, v, z))  # type: ignore[has-type]
def jv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Bessel function of the first kind of order `v`; the derivative is in `z`.

    >>> gt.scipy.special.jv(0, np.array([0.0, 1.0]))
    array([1.        , 0.76519769])
    """


# d Y_v = ½·(Y_{v−1} − Y_{v+1})·dz
@scipy_function("its order", lambda ct, _out, v, z: ct * _difference(yv, v, z))  # type: ignore[has-type]
def yv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Bessel function of the second kind of order `v`; the derivative is in `z`.

    >>> gt.scipy.special.yv(0, np.array([1.0]))
    array([0.08825696])
    """


# d I_v = ½·(I_{v−1} + I_{v+1})·dz
@scipy_function("its order", lambda ct, _out, v, z: ct * _mean(iv, v, z))  # type: ignore[has-type]
def iv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Modified Bessel function of the first kind of order `v`; the derivative is in `z`.

    >>> gt.scipy.special.iv(0, np.array([0.0, 1.0]))
    array([1.        , 1.26606588])
    """


# d K_v = −½·(K_{v−1} + K_{v+1})·dz
@scipy_function("its order", lambda ct, _out, v, z: -ct * _mean(kv, v, z))  # type: ignore[has-type]
def kv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Modified Bessel function of the second kind of order `v`; the derivative is in `z`.

    >>> gt.scipy.special.kv(0, np.array([1.0]))
    array([0.42102444])
    """


# ---- scaled by exponentials ----------------------------------------------------------------------


# of real z: as J_v
@scipy_function(
    "its order",
    lambda ct, _out, v, z: ct * _difference(jve, v, real_only("jve", z)),  # type: ignore[has-type]
)
def jve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`jv` times exp(-|imag z|); the derivative is in `z`, of real numbers.

    >>> gt.scipy.special.jve(0, np.array([1.0]))
    array([0.76519769])
    """


# of real z: as Y_v
@scipy_function(
    "its order",
    lambda ct, _out, v, z: ct * _difference(yve, v, real_only("yve", z)),  # type: ignore[has-type]
)
def yve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`yv` times exp(-|imag z|); the derivative is in `z`, of real numbers.

    >>> gt.scipy.special.yve(0, np.array([1.0]))
    array([0.08825696])
    """


# d I_v·exp(−|z|) = (½·(I_{v−1} + I_{v+1}) − sign z·I_v)·exp(−|z|)·dz, of real z
@scipy_function(
    "its order",
    lambda ct, _out, v, z: ct * scaled_derivative(v, real_only("ive", z), kind="ive", order=1),
)
def ive(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`iv` times exp(-|real z|); the derivative is in `z`, of real numbers.

    >>> gt.scipy.special.ive(0, np.array([1.0, 1000.0]))
    array([0.46575961, 0.01261724])
    """


# d K_v·eᶻ = (K_v − ½·(K_{v−1} + K_{v+1}))·eᶻ·dz
@scipy_function(
    "its order",
    lambda ct, _out, v, z: ct * scaled_derivative(v, z, kind="kve", order=1),
)
def kve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`kv` times exp(z); the derivative is in `z`.

    >>> gt.scipy.special.kve(0, np.array([1.0, 1000.0]))
    array([1.14446308, 0.03962832])
    """


# ---- Hankel functions ----------------------------------------------------------------------------


# d H_v = ½·(H_{v−1} − H_{v+1})·dz
def _hankel_op(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = elementwise_op(
        name,
        of_scipy(name),
        in_parameter(name, "its order"),
        lambda ct, _out, v, z: ct * _difference(function, v, z),
    )
    return function


_hankel1, _hankel2 = _hankel_op("hankel1"), _hankel_op("hankel2")


def hankel1(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Hankel function of the first kind, `jv` + i·`yv`; the derivative is in `z`.

    >>> gt.scipy.special.hankel1(0, np.array([1.0]))
    array([0.76519769+0.08825696j])
    """
    return _hankel1(v, as_complex(z))


def hankel2(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Hankel function of the second kind, `jv` - i·`yv`; the derivative is in `z`.

    >>> gt.scipy.special.hankel2(0, np.array([1.0]))
    array([0.76519769-0.08825696j])
    """
    return _hankel2(v, as_complex(z))


# d H_v·exp(−iz) = (½·(H_{v−1} − H_{v+1}) − i·H_v)·exp(−iz)·dz
def hankel1e(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`hankel1` times exp(-i·z); the derivative is in `z`.

    >>> gt.scipy.special.hankel1e(0, np.array([1.0]))
    array([0.48770375-0.59620621j])
    """
    return scaled_derivative(v, as_complex(z), kind="hankel1e", order=0)


# d H_v·exp(iz) = (½·(H_{v−1} − H_{v+1}) + i·H_v)·exp(iz)·dz
def hankel2e(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`hankel2` times exp(i·z); the derivative is in `z`.

    >>> gt.scipy.special.hankel2e(0, np.array([1.0]))
    array([0.48770375+0.59620621j])
    """
    return scaled_derivative(v, as_complex(z), kind="hankel2e", order=0)


# ---- integer orders ------------------------------------------------------------------------------


def yn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Bessel function of the second kind of integer order `n`; see `yv`.

    >>> gt.scipy.special.yn(0, np.array([1.0]))
    array([0.08825696])
    """
    return yv(_whole(n), x)


def kn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Modified Bessel function of the second kind of integer order `n`; see `kv`.

    >>> gt.scipy.special.kn(0, np.array([1.0]))
    array([0.42102444])
    """
    return kv(_whole(n), x)


def _whole(n: Any) -> Any:
    """The order without its fraction, which SciPy leaves out."""
    return math.trunc(n) if isinstance(n, int | float) else trunc(n)
