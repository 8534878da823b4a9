"""Bessel functions of any order, differentiable in their argument.

Arguments are in SciPy's order: `jv(v, z)`. Derivatives are given by neighbouring orders, so they
are regular at 0 where the functions are, and exist to any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.define import elementwise, elementwise_op
from gradtape.errors import NotDifferentiableError
from gradtape.ops.special.bessel_scaled import scaled_derivative
from gradtape.ops.special.common import as_complex, in_parameter, of_scipy
from gradtape.typing import Array, ArrayLike


def _half(lower: float, upper: float) -> Callable[..., Any]:
    """½·(lower·f(v − 1, z) + upper·f(v + 1, z)) for a function f."""

    def combination(function: Callable[..., Any], v: Any, z: Any) -> Any:
        below, above = function(v - 1, z), function(v + 1, z)
        return (0.5 * lower) * below + (0.5 * upper) * above

    return combination


_difference, _sum, _fall = _half(1.0, -1.0), _half(1.0, 1.0), _half(-1.0, -1.0)


def _real_only(name: str, z: Any) -> None:
    """Raise for a complex argument of a function that is scaled by an absolute value."""
    if z.dtype.kind == "c":
        raise NotDifferentiableError(
            f"{name}: got {z.dtype}; its scale is an absolute value of a complex number, so it "
            "has no complex derivative; use the function without scale"
        )


# d J_v = ½·(J_{v−1} − J_{v+1})·dz
@elementwise(
    of_scipy("jv"),
    in_parameter("jv", "its order"),
    lambda ct, _out, v, z: ct * _difference(jv, v, z),  # type: ignore[has-type]
)
def jv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Bessel function of the first kind of order `v`; the derivative is in `z`.

    >>> gt.special.jv(0, np.array([0.0, 1.0]))
    array([1.        , 0.76519769])
    """


# d Y_v = ½·(Y_{v−1} − Y_{v+1})·dz
@elementwise(
    of_scipy("yv"),
    in_parameter("yv", "its order"),
    lambda ct, _out, v, z: ct * _difference(yv, v, z),  # type: ignore[has-type]
)
def yv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Bessel function of the second kind of order `v`; the derivative is in `z`.

    >>> gt.special.yv(0, np.array([1.0]))
    array([0.08825696])
    """


# d I_v = ½·(I_{v−1} + I_{v+1})·dz
@elementwise(
    of_scipy("iv"),
    in_parameter("iv", "its order"),
    lambda ct, _out, v, z: ct * _sum(iv, v, z),  # type: ignore[has-type]
)
def iv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Modified Bessel function of the first kind of order `v`; the derivative is in `z`.

    >>> gt.special.iv(0, np.array([0.0, 1.0]))
    array([1.        , 1.26606588])
    """


# d K_v = −½·(K_{v−1} + K_{v+1})·dz
@elementwise(
    of_scipy("kv"),
    in_parameter("kv", "its order"),
    lambda ct, _out, v, z: ct * _fall(kv, v, z),  # type: ignore[has-type]
)
def kv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Modified Bessel function of the second kind of order `v`; the derivative is in `z`.

    >>> gt.special.kv(0, np.array([1.0]))
    array([0.42102444])
    """


# ---- scaled by exponentials ----------------------------------------------------------------------


def _jve_partial(ct: Any, out: Any, v: Any, z: Any) -> Any:
    _real_only("jve", z)
    return ct * _difference(jve, v, z)


# of real z: as J_v
@elementwise(
    of_scipy("jve"),
    in_parameter("jve", "its order"),
    _jve_partial,
)
def jve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`jv` times exp(-|imag z|); the derivative is in `z`, of real numbers.

    >>> gt.special.jve(0, np.array([1.0]))
    array([0.76519769])
    """


def _yve_partial(ct: Any, out: Any, v: Any, z: Any) -> Any:
    _real_only("yve", z)
    return ct * _difference(yve, v, z)


# of real z: as Y_v
@elementwise(
    of_scipy("yve"),
    in_parameter("yve", "its order"),
    _yve_partial,
)
def yve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`yv` times exp(-|imag z|); the derivative is in `z`, of real numbers.

    >>> gt.special.yve(0, np.array([1.0]))
    array([0.08825696])
    """


# d I_v·exp(−|z|) = (½·(I_{v−1} + I_{v+1}) − sign z·I_v)·exp(−|z|)·dz, of real z
def _ive_partial(ct: Any, out: Any, v: Any, z: Any) -> Any:
    _real_only("ive", z)
    return ct * scaled_derivative(v, z, kind="ive", order=1)


@elementwise(
    of_scipy("ive"),
    in_parameter("ive", "its order"),
    _ive_partial,
)
def ive(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`iv` times exp(-|real z|); the derivative is in `z`, of real numbers.

    >>> gt.special.ive(0, np.array([1.0, 1000.0]))
    array([0.46575961, 0.01261724])
    """


# d K_v·eᶻ = (K_v − ½·(K_{v−1} + K_{v+1}))·eᶻ·dz
@elementwise(
    of_scipy("kve"),
    in_parameter("kve", "its order"),
    lambda ct, _out, v, z: ct * scaled_derivative(v, z, kind="kve", order=1),
)
def kve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`kv` times exp(z); the derivative is in `z`.

    >>> gt.special.kve(0, np.array([1.0, 1000.0]))
    array([1.14446308, 0.03962832])
    """


# ---- Hankel functions ----------------------------------------------------------------------------


# d H_v = ½·(H_{v−1} − H_{v+1})·dz
_hankel1: Callable[..., Any] = elementwise_op(
    "hankel1",
    of_scipy("hankel1"),
    in_parameter("hankel1", "its order"),
    lambda ct, _out, v, z: ct * _difference(_hankel1, v, z),
)


def hankel1(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Hankel function of the first kind, `jv` + i·`yv`; the derivative is in `z`.

    >>> gt.special.hankel1(0, np.array([1.0]))
    array([0.76519769+0.08825696j])
    """
    return _hankel1(v, as_complex(z))


# d H_v = ½·(H_{v−1} − H_{v+1})·dz
_hankel2: Callable[..., Any] = elementwise_op(
    "hankel2",
    of_scipy("hankel2"),
    in_parameter("hankel2", "its order"),
    lambda ct, _out, v, z: ct * _difference(_hankel2, v, z),
)


def hankel2(v: ArrayLike, z: ArrayLike, /) -> Array:
    """Hankel function of the second kind, `jv` - i·`yv`; the derivative is in `z`.

    >>> gt.special.hankel2(0, np.array([1.0]))
    array([0.76519769-0.08825696j])
    """
    return _hankel2(v, as_complex(z))


# d H_v·exp(−iz) = (½·(H_{v−1} − H_{v+1}) − i·H_v)·exp(−iz)·dz
def hankel1e(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`hankel1` times exp(-i·z); the derivative is in `z`.

    >>> gt.special.hankel1e(0, np.array([1.0]))
    array([0.48770375-0.59620621j])
    """
    return scaled_derivative(v, as_complex(z), kind="hankel1e", order=0)


# d H_v·exp(iz) = (½·(H_{v−1} − H_{v+1}) + i·H_v)·exp(iz)·dz
def hankel2e(v: ArrayLike, z: ArrayLike, /) -> Array:
    """`hankel2` times exp(i·z); the derivative is in `z`.

    >>> gt.special.hankel2e(0, np.array([1.0]))
    array([0.48770375+0.59620621j])
    """
    return scaled_derivative(v, as_complex(z), kind="hankel2e", order=0)


# ---- integer orders ------------------------------------------------------------------------------


def yn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Bessel function of the second kind of integer order `n`; see `yv`.

    >>> gt.special.yn(0, np.array([1.0]))
    array([0.08825696])
    """
    return yv(n, x)


def kn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """Modified Bessel function of the second kind of integer order `n`; see `kv`.

    >>> gt.special.kn(0, np.array([1.0]))
    array([0.42102444])
    """
    return kv(n, x)
