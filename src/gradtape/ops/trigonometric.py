"""Circular and hyperbolic functions with their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise, elementwise_op
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike

# ---- circular functions -------------------------------------------------------------------------


# d sin x = cos x·dx
@elementwise(np.sin, lambda ct, _out, x: ct * cos(x), lower=scalar.sin)  # type: ignore[has-type]
def sin(x: ArrayLike, /) -> Array:
    """Sine, element by element.

    >>> gt.sin(np.array([0.0, 1.0]))
    array([0.        , 0.84147098])
    """


# d cos x = −sin x·dx
@elementwise(np.cos, lambda ct, _out, x: -ct * sin(x), lower=scalar.cos)
def cos(x: ArrayLike, /) -> Array:
    """Cosine, element by element.

    >>> gt.cos(np.array([0.0, 1.0]))
    array([1.        , 0.54030231])
    """


# d tan x = (1 + tan² x)·dx
@elementwise(np.tan, lambda ct, out, _x: ct + ct * out * out, lower=scalar.tan)
def tan(x: ArrayLike, /) -> Array:
    """Tangent, element by element.

    >>> gt.tan(np.array([0.0, 1.0]))
    array([0.        , 1.55740772])
    """


def _root_of_one_less_square(x: Any) -> Any:
    """√(1 − x²); on a branch cut, on the side given by the sign of the zero in `x`.

    A real number is (y, +0) as a complex one: subtracting it keeps the sign of a zero, adding it
    does not, and neither does subtracting `x` from it.
    """
    if x.dtype.kind == "c":
        return sqrt(-(x - 1)) * sqrt(x - (-1))
    return sqrt((1 - x) * (1 + x))


# d arcsin x = dx/√(1 − x²)
@elementwise(np.arcsin, lambda ct, _out, x: ct / _root_of_one_less_square(x), lower=scalar.arcsin)
def arcsin(x: ArrayLike, /) -> Array:
    """Angle of a sine, from -π/2 to π/2.

    >>> gt.arcsin(np.array([0.0, 1.0]))
    array([0.        , 1.57079633])
    """


# d arccos x = −dx/√(1 − x²)
@elementwise(np.arccos, lambda ct, _out, x: -ct / _root_of_one_less_square(x), lower=scalar.arccos)
def arccos(x: ArrayLike, /) -> Array:
    """Angle of a cosine, from 0 to π.

    >>> gt.arccos(np.array([0.0, 1.0]))
    array([1.57079633, 0.        ])
    """


# d arctan x = dx/(1 + x²)
@elementwise(np.arctan, lambda ct, _out, x: ct / (1 + x * x), lower=scalar.arctan)
def arctan(x: ArrayLike, /) -> Array:
    """Angle of a tangent, from -π/2 to π/2.

    >>> gt.arctan(np.array([0.0, 1.0]))
    array([0.        , 0.78539816])
    """


def _square_distance(x: Any, y: Any) -> Any:
    # At the origin, where there is no derivative, 1: the gradient is 0 there, as in PyTorch.
    square = x * x + y * y
    return where(square == 0, 1, square)


# d arctan(y/x) = (x·dy − y·dx)/(x² + y²)
@elementwise(
    np.arctan2,
    lambda ct, _out, y, x: ct * (x / _square_distance(x, y)),
    lambda ct, _out, y, x: -ct * (y / _square_distance(x, y)),
    lower=scalar.arctan2,
)
def arctan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """Angle of the point (x, y), from -π to π.

    >>> gt.arctan2(np.array([0.0, 1.0]), np.array([-1.0, 0.0]))
    array([3.14159265, 1.57079633])
    """


_DEGREE = math.pi / 180.0


@elementwise(
    np.deg2rad,
    lambda ct, _out, _x: ct * _DEGREE,
    lower=lambda x: scalar.promoted(x)[0] * _DEGREE,
)
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians.

    >>> gt.deg2rad(np.array([0.0, 180.0]))
    array([0.        , 3.14159265])
    """


@elementwise(
    np.rad2deg,
    lambda ct, _out, _x: ct / _DEGREE,
    lower=lambda x: scalar.promoted(x)[0] * (180.0 / math.pi),
)
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees.

    >>> gt.rad2deg(np.array([0.0, np.pi]))
    array([  0., 180.])
    """


def _sinc_forward(xp: Any, x: Any, order: int) -> Any:
    """Derivative of any order of sin(πx)/(πx).

    With u = πx and s the cardinal sine of u, differentiating u·s = sin u n times gives
    u·s⁽ⁿ⁾ + n·s⁽ⁿ⁻¹⁾ = sin⁽ⁿ⁾ u. Close to 0 it cancels, and the series of s takes over.
    """
    if order == 0 and xp is not scalar:
        return xp.sinc(x)
    u = math.pi * x
    if order == 0:
        return xp.where(u == 0, 1.0, xp.sin(u) / u)
    near = xp.abs(u) < order + 1
    far = xp.where(near, 1, u)
    s = xp.sin(far) / far
    for n in range(1, order + 1):
        s = (xp.sin(far + n * (math.pi / 2)) - n * s) / far
    # Σ (−1)ᵐ·u²ᵐ⁻ⁿ/((2m + 1)·(2m − n)!); terms are below the resolution after about 4u of them.
    u = xp.where(near, u, 0)
    square, series = u * u, 0 * u
    for m in reversed(range((order + 1) // 2, 2 * order + 14)):
        scale = (-1) ** m / ((2 * m + 1) * math.factorial(2 * m - order))
        series = series * square + scale
    return math.pi**order * xp.where(near, series * u if order % 2 else series, s)


# d sinc⁽ⁿ⁾(x) = sinc⁽ⁿ⁺¹⁾(x)·dx
_sinc: Callable[..., Any] = elementwise_op(
    "sinc",
    _sinc_forward,
    lambda ct, _out, x, order: ct * _sinc(x, order=order + 1),
    lower=scalar,
)


def sinc(x: ArrayLike, /) -> Array:
    """The normalized cardinal sine, sin(πx)/(πx).

    >>> gt.sinc(np.array([0.0, 0.5]))
    array([1.        , 0.63661977])
    """
    return _sinc(x, order=0)


# ---- hyperbolic functions -----------------------------------------------------------------------


# d sinh x = cosh x·dx
@elementwise(np.sinh, lambda ct, _out, x: ct * cosh(x), lower=scalar.sinh)  # type: ignore[has-type]
def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine, element by element.

    >>> gt.sinh(np.array([0.0, 1.0]))
    array([0.        , 1.17520119])
    """


# d cosh x = sinh x·dx
@elementwise(np.cosh, lambda ct, _out, x: ct * sinh(x), lower=scalar.cosh)
def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine, element by element.

    >>> gt.cosh(np.array([0.0, 1.0]))
    array([1.        , 1.54308063])
    """


# d tanh x = (1 − tanh² x)·dx
@elementwise(np.tanh, lambda ct, out, _x: ct - ct * out * out, lower=scalar.tanh)
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent, element by element.

    >>> gt.tanh(np.array([0.0, 1.0]))
    array([0.        , 0.76159416])
    """


# d arcsinh x = dx/√(x² + 1); subtracting −1 keeps the sign of a zero, as in arcsin
@elementwise(np.arcsinh, lambda ct, _out, x: ct / sqrt(x * x - (-1)), lower=scalar.arcsinh)
def arcsinh(x: ArrayLike, /) -> Array:
    """Inverse of the hyperbolic sine.

    >>> gt.arcsinh(np.array([0.0, 1.0]))
    array([0.        , 0.88137359])
    """


# d arccosh x = dx/(√(x − 1)·√(x + 1)); two roots, as one has the wrong sign in half the plane
@elementwise(
    np.arccosh,
    lambda ct, _out, x: ct / (sqrt(x - 1) * sqrt(x - (-1))),
    lower=scalar.arccosh,
)
def arccosh(x: ArrayLike, /) -> Array:
    """Inverse of the hyperbolic cosine, for arguments from 1.

    >>> gt.arccosh(np.array([1.0, 2.0]))
    array([0.        , 1.3169579])
    """


# d arctanh x = dx/(1 − x²)
@elementwise(np.arctanh, lambda ct, _out, x: ct / ((1 - x) * (1 + x)), lower=scalar.arctanh)
def arctanh(x: ArrayLike, /) -> Array:
    """Inverse of the hyperbolic tangent, for arguments from -1 to 1.

    >>> gt.arctanh(np.array([0.0, 0.5]))
    array([0.        , 0.54930614])
    """


# The names of the array API standard and of PyTorch.
asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh
radians, degrees = deg2rad, rad2deg
