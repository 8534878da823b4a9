"""Rounding: piecewise constant, so that derivatives are zero wherever they exist."""

from __future__ import annotations

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise, elementwise_op
from gradtape.core.op import Zero
from gradtape.ops import lowered
from gradtape.ops.comparison import signbit
from gradtape.ops.select import mask, where
from gradtape.typing import Array, ArrayLike

PIECEWISE_CONSTANT = Zero("piecewise constant")


@elementwise(np.floor, PIECEWISE_CONSTANT, lower=scalar.floor)
def floor(x: ArrayLike, /) -> Array:
    """The largest integers not above the elements.

    >>> gt.floor(np.array([1.5, -1.5]))
    array([ 1., -2.])
    """


@elementwise(np.ceil, PIECEWISE_CONSTANT, lower=scalar.ceil)
def ceil(x: ArrayLike, /) -> Array:
    """The smallest integers not below the elements.

    >>> gt.ceil(np.array([1.5, -1.5]))
    array([ 2., -1.])
    """


@elementwise(np.trunc, PIECEWISE_CONSTANT, lower=scalar.trunc)
def trunc(x: ArrayLike, /) -> Array:
    """The elements without their fractional parts.

    >>> gt.trunc(np.array([1.5, -1.5]))
    array([ 1., -1.])
    """


@elementwise(np.rint, PIECEWISE_CONSTANT, lower=scalar.rint)
def rint(x: ArrayLike, /) -> Array:
    """The nearest integers; of two equally near, the even one.

    >>> gt.rint(np.array([1.5, 2.5]))
    array([2., 2.])
    """


_round = elementwise_op(
    "round", lambda xp, x, decimals: xp.round(x, decimals), PIECEWISE_CONSTANT, lower=lowered.round
)


def round(x: ArrayLike, /, decimals: int = 0) -> Array:
    """The elements rounded to decimals; of two equally near, the even one.

    Args:
        x: What to round.
        decimals: How many places after the decimal point; negative ones are before it.

    Raises:
        DTypeError: `decimals` is not an integer.

    >>> gt.round(np.array([1.25, -3.75]), 1)
    array([ 1.2, -3.8])
    """
    return _round(x, decimals=decimals)


# |x| with the sign of y: dx where it keeps its sign, −dx where it changes, 0 at 0; constant in y
@elementwise(
    np.copysign,
    lambda ct, out, x, _y: mask(where(signbit(x) == signbit(out), ct, -ct), x != 0),
    PIECEWISE_CONSTANT,
    lower=scalar.copysign,
)
def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The first array with the signs of the second.

    >>> gt.copysign(np.array([1.0, -2.0]), -1.0)
    array([-1., -2.])
    """
