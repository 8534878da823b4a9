"""Parts of floating numbers: fraction and whole, mantissa and exponent, neighbours, steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.core.op import Zero
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import floor_divide, remainder
from gradtape.ops.cast import astype
from gradtape.ops.rounding import PIECEWISE_CONSTANT, trunc
from gradtape.ops.select import mask
from gradtape.typing import Array, ArrayLike

# ---- two results --------------------------------------------------------------------------------


def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """The rounded quotient and the remainder: `floor_divide` and `remainder` together.

    >>> gt.divmod(np.array([5.0, -5.0]), 3.0)
    (array([ 1., -2.]), array([2., 1.]))
    """
    return floor_divide(x, y), remainder(x, y)


def _fraction_element(x: Any) -> Any:
    # The fractional part of infinity is 0; NaN stays NaN.
    (x,) = scalar.promoted(x)
    none = scalar.constant(0, x.dtype)
    rest = scalar.where(scalar.absolute(x) == math.inf, none, x - scalar.trunc(x))
    return scalar.copysign(rest, x)


# The whole part is a step, so that d frac(x) = dx
@elementwise(
    lambda xp, x: xp.modf(x)[0],
    lambda ct, _out, _x: ct,
    lower=_fraction_element,
)
def fraction(x: ArrayLike, /) -> Array:
    """The fractional part, with the sign of the number."""


def modf(x: ArrayLike, /) -> tuple[Array, Array]:
    """The fractional and the integral part, both with the sign of the number.

    >>> gt.modf(np.array([1.5, -2.25]))
    (array([ 0.5 , -0.25]), array([ 1., -2.]))
    """
    x = as_array(x)
    rest = fraction(x)
    return rest, trunc(astype(x, rest.dtype, copy=False))


@elementwise(lambda xp, x: xp.frexp(x)[1])
def exponent(x: ArrayLike, /) -> Array:
    """The integer e of x = m·2^e with 0.5 <= |m| < 1."""


# x = m·2^e with e piecewise constant, so that dm = dx·2^(−e)
@elementwise(
    lambda xp, x: xp.frexp(x)[0],
    lambda ct, _out, x: ldexp(ct, -exponent(x)),  # type: ignore[has-type]
)
def mantissa(x: ArrayLike, /) -> Array:
    """The number m of x = m·2^e with 0.5 <= |m| < 1."""


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissa and exponent: x = m·2^e with 0.5 <= |m| < 1; the exponent is an integer.

    >>> gt.frexp(np.array([3.0, -0.5]))
    (array([ 0.75, -0.5 ]), array([2, 0], dtype=int32))
    """
    x = as_array(x)
    return mantissa(x), exponent(x)


# d(x·2^n) = dx·2^n; n is an integer
@elementwise(
    np.ldexp,
    lambda ct, _out, _x, n: ldexp(ct, n),  # type: ignore[has-type]
    Zero("an exponent is an integer"),
)
def ldexp(x: ArrayLike, n: ArrayLike, /) -> Array:
    """Numbers times 2 to the power of integers.

    >>> gt.ldexp(np.array([0.75, -0.5]), np.array([2, 0]))
    array([ 3. , -0.5])
    """


# ---- neighbours and steps -----------------------------------------------------------------------


# A neighbour of x lies as far from x as rounding does: d nextafter(x, y) = dx
@elementwise(np.nextafter, lambda ct, _out, _x, _y: ct, PIECEWISE_CONSTANT)
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating numbers next to those of the first array, towards those of the second.

    >>> gt.nextafter(np.array([1.0]), 2.0) - 1.0
    array([2.22044605e-16])
    """


@elementwise(np.spacing, PIECEWISE_CONSTANT)
def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next floating number away from zero.

    >>> gt.spacing(np.array([1.0]))
    array([2.22044605e-16])
    """


def _heaviside_element(x: Any, y: Any) -> Any:
    x, y = scalar.promoted(x, y, like="heaviside")
    side = scalar.where(x > 0, scalar.constant(1, x.dtype), scalar.where(x < 0, 0, x))
    return scalar.where(x == 0, y, side)


# A step in x; the value at the step is y
@elementwise(
    np.heaviside,
    PIECEWISE_CONSTANT,
    lambda ct, _out, x, _y: mask(ct, x == 0),
    lower=_heaviside_element,
)
def heaviside(x: ArrayLike, y: ArrayLike, /) -> Array:
    """0 for negative and 1 for positive elements of the first array; where it is 0, the second.

    >>> gt.heaviside(np.array([-1.0, 0.0, 2.0]), 0.5)
    array([0. , 0.5, 1. ])
    """
