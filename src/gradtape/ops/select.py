"""Choosing between values: where, maximum, minimum, clip.

Where an element was not chosen its gradient is a clean 0, whatever the cotangent; rules get
that by `mask`, not by multiplying with zeros, which would turn an infinite cotangent into NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise, elementwise_op
from gradtape.core.fast import F32, F64
from gradtape.core.op import Facts, Zero, op_of
from gradtape.core.promotion import is_half
from gradtape.core.state import adopted
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.ops import lowered
from gradtape.ops.cast import copy as copy_of, imag, real
from gradtape.ops.comparison import isfinite, logical_not
from gradtape.ops.inspection import finfo
from gradtape.ops.nonzero import nonzero
from gradtape.typing import Array, ArrayLike

_BOOL = np.dtype(np.bool_)
_CONDITION = Zero("only whether the condition is true matters")


# ---- mask and where -----------------------------------------------------------------------------


def _mask(x: Any, condition: Any) -> Any:
    # The bits of a number times 0 or 1: several times faster than a branch for each element.
    if type(x) is type(condition) is np.ndarray and condition.dtype is _BOOL:
        if x.dtype is F64:
            return (x.view(np.int64) * condition).view(F64)
        if x.dtype is F32:
            return (x.view(np.int32) * condition).view(F32)
    return np.where(condition, x, 0)


# d mask(x, c) = mask(dx, c)
@elementwise(
    lambda xp, x, condition: _mask(x, condition) if xp is np else xp.where(condition, x, 0),
    lambda ct, _out, _x, condition: mask(ct, condition),  # type: ignore[has-type]
    _CONDITION,
    fast=_mask,
    facts=Facts(carries=(0,)),
    lower=lambda x, condition: scalar.where(condition, x, 0),
    bounded=True,
)
def mask(x: ArrayLike, condition: ArrayLike, /) -> Array:
    """The array with zeros where the boolean condition is false, also for infinities and NaN.

    >>> gt.ops.select.mask(np.array([1.0, np.nan]), np.array([True, False]))
    array([1., 0.])
    """


# d(x/y) = dx/y − (x/y)·dy/y, where 1/0 is taken as 0; as a function of y it has no slope there
@elementwise(
    lambda xp, x, y: xp.where(y == 0, 0, x / xp.where(y == 0, 1, y)),
    lambda ct, _out, _x, y: divide_or_zero(ct, y),  # type: ignore[has-type]
    lambda ct, out, _x, y: -ct * out / y,
    facts=Facts(divisors=(1,)),
    lower=scalar,
)
def divide_or_zero(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Quotient of two arrays, and 0 where the second one is 0: the slope of a norm at its kink.

    >>> gt.ops.select.divide_or_zero(np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """


# d where(c, x, y) = where(c, dx, dy)
_where = elementwise_op(
    "where",
    lambda xp, condition, x, y: xp.where(condition, x, y),
    _CONDITION,
    lambda ct, _out, condition, _x, _y: mask(ct, condition),
    lambda ct, _out, condition, _x, _y: mask(ct, logical_not(condition)),
    facts=Facts(carries=(1, 2)),
    lower=scalar,
    bounded=True,
)
where_op = op_of(_where)


def where(condition: ArrayLike, x: ArrayLike = None, y: ArrayLike = None, /) -> Array:
    """Elements of `x` where the condition is true, of `y` where it is not.

    Elements that were not chosen have gradient 0, even if they are infinite or NaN. With the
    condition alone it is `gt.nonzero`.

    Args:
        condition: Truth values; numbers count as true if they are not 0.
        x: What to take where it is true.
        y: What to take where it is false.

    Raises:
        ArgumentError: Only one of `x` and `y` was given.

    >>> gt.where(np.array([True, False]), np.array([1.0, 2.0]), 0.0)
    array([1., 0.])
    """
    if y is not None:
        return _where(condition, x, y)
    if x is not None:
        raise ArgumentError("where: got x without y; give both of them, or neither")
    return nonzero(condition)


# ---- maximum and minimum ------------------------------------------------------------------------


def _larger(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    # All of it where x > y, half of it at a tie; NaN on either side passes on, as in PyTorch.
    half = 0.5 * ct
    return mask(half, (x < y) ^ True) + mask(half, (x <= y) ^ True)


# d max(x, y) = [x > y]·dx + [x < y]·dy, half each where x = y
@elementwise(
    np.maximum,
    _larger,
    lambda ct, _out, x, y: _larger(ct, None, y, x),
    facts=Facts(commutes="biu"),
    lower=scalar.maximum,
    bounded=True,
)
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of two elements, NaN if one of them is; a tie shares the gradient.

    >>> gt.maximum(np.array([1.0, 3.0]), 2.0)
    array([2., 3.])
    """


# d min(x, y) = [x < y]·dx + [x > y]·dy, half each where x = y
@elementwise(
    np.minimum,
    lambda ct, _out, x, y: _larger(ct, None, y, x),
    lambda ct, _out, x, y: _larger(ct, None, x, y),
    facts=Facts(commutes="biu"),
    lower=scalar.minimum,
    bounded=True,
)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of two elements, NaN if one of them is; a tie shares the gradient.

    >>> gt.minimum(np.array([1.0, 3.0]), 2.0)
    array([1., 2.])
    """


# As maximum, but x gets it at a tie, and a number wins against NaN
@elementwise(
    np.fmax,
    lambda ct, _out, x, y: mask(ct, (x >= y) | (y != y)),
    lambda ct, _out, x, y: mask(ct, ((x >= y) | (y != y)) ^ True),
    lower=lambda x, y: scalar.where((x >= y) | scalar.isnan(y), x, y),
    bounded=True,
)
def fmax(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of two elements, the other one if one is NaN; at a tie the first is taken.

    >>> gt.fmax(np.array([1.0, np.nan]), 2.0)
    array([2., 2.])
    """


# As minimum, but x gets it at a tie, and a number wins against NaN
@elementwise(
    np.fmin,
    lambda ct, _out, x, y: mask(ct, (x <= y) | (y != y)),
    lambda ct, _out, x, y: mask(ct, ((x <= y) | (y != y)) ^ True),
    lower=lambda x, y: scalar.where((x <= y) | scalar.isnan(y), x, y),
    bounded=True,
)
def fmin(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of two elements, the other one if one is NaN; at a tie the first is taken.

    >>> gt.fmin(np.array([1.0, np.nan]), 2.0)
    array([1., 2.])
    """


# ---- clip ---------------------------------------------------------------------------------------


def _inside(ct: Any, _out: Any, x: Any, *, low: Any, high: Any) -> Any:
    if high is None:
        return mask(ct, x >= low)
    return mask(ct, x <= high if low is None else (x >= low) & (x <= high))


# d clip(x) = [low ≤ x ≤ high]·dx: the gradient passes at the bounds, as in PyTorch
_clip = elementwise_op(
    "clip",
    lambda xp, x, low, high: xp.clip(x, low, high),
    _inside,
    lower=lowered.clip,
    bounded=True,
)


# The same for a bound that is an array: it gets the gradient where x does not
@elementwise(
    lambda xp, x, low: xp.maximum(x, low),
    lambda ct, _out, x, low: mask(ct, x >= low),
    lambda ct, _out, x, low: mask(ct, x < low),
    lower=scalar,
    bounded=True,
)
def clip_below(x: ArrayLike, low: ArrayLike, /) -> Array:
    """The array with elements below a bound raised to it; at the bound the gradient passes."""


@elementwise(
    lambda xp, x, high: xp.minimum(x, high),
    lambda ct, _out, x, high: mask(ct, x <= high),
    lambda ct, _out, x, high: mask(ct, x > high),
    lower=scalar,
    bounded=True,
)
def clip_above(x: ArrayLike, high: ArrayLike, /) -> Array:
    """The array with elements above a bound lowered to it; at the bound the gradient passes."""


def clip(
    x: ArrayLike,
    /,
    min: ArrayLike = None,
    max: ArrayLike = None,
    *,
    a_min: ArrayLike = None,
    a_max: ArrayLike = None,
) -> Array:
    """The array with elements below a lower bound raised to it, those above an upper one lowered.

    Args:
        x: What to clip.
        min: The lower bound, or None for none; it has a gradient where it was taken.
        max: The upper bound, likewise; where the bounds cross it is the one taken.
        a_min: Another name of `min`.
        a_max: Another name of `max`.

    Raises:
        ArgumentError: A bound was given twice.

    >>> gt.clip(np.array([-1.0, 0.5, 3.0]), 0.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ArgumentError("clip: a bound got twice; give either a_min and a_max, or min and max")
    low = min if a_min is None else a_min
    high = max if a_max is None else a_max
    if low is None and high is None:
        return copy_of(x)
    if _is_plain(low) and _is_plain(high):
        return _clip(x, low=low, high=high)
    if isinstance(high, Tensor):
        x = adopted(x)  # a trace must know x before it sees a bound that is an array
    x = x if low is None else clip_below(x, low)
    return x if high is None else clip_above(x, high)


def _is_plain(bound: Any) -> bool:
    return bound is None or type(bound) is float or type(bound) is int


# ---- nan_to_num ---------------------------------------------------------------------------------


def _where_finite(ct: Any, _out: Any, x: Any, **_params: Any) -> Any:
    if x.dtype.kind != "c":
        return mask(ct, isfinite(x))
    # Both parts of a complex number are replaced by themselves.
    return mask(real(ct), isfinite(real(x))) + 1j * mask(imag(ct), isfinite(imag(x)))


# The identity where x is finite, constant elsewhere
_nan_to_num = elementwise_op(
    "nan_to_num",
    lambda xp, x, nan, posinf, neginf: xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    _where_finite,
    lower=lowered.nan_to_num,
    bounded=True,
)


def nan_to_num(
    x: ArrayLike,
    /,
    *,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """The array with NaN and infinities replaced by numbers; their gradient is 0.

    Args:
        x: What to clean.
        nan: What replaces NaN.
        posinf: What replaces infinity; None for the largest number of the dtype.
        neginf: What replaces minus infinity; None for the smallest number of the dtype.

    >>> gt.nan_to_num(np.array([1.0, np.nan]))
    array([1., 0.])
    """
    dtype = getattr(x, "dtype", None)
    if dtype is not None and is_half(dtype):  # computed in float32
        largest = float(finfo(dtype).max)
        posinf = largest if posinf is None else posinf
        neginf = -largest if neginf is None else neginf
    return _nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
