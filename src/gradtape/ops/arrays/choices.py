"""Choosing among arrays: by conditions, by numbers, piece by piece."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.define import broadcast_sizes
from gradtape.errors import ArgumentError, IndexingError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.assign import setitem
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.comparison import logical_not, logical_or
from gradtape.ops.gather import as_indices, take, take_along_axis
from gradtape.ops.index import getitem
from gradtape.ops.inspection import result_type
from gradtape.ops.join import stack
from gradtape.ops.like import zeros_like
from gradtape.ops.nonzero import flatnonzero
from gradtape.ops.select import clip, where
from gradtape.ops.shape import broadcast_arrays, broadcast_to, expand_dims, reshape, squeeze
from gradtape.typing import Array, ArrayLike


def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], /, default: ArrayLike = 0
) -> Array:
    """Elements of the first array whose condition holds.

    Args:
        condlist: Conditions, arrays of truth values.
        choicelist: An array for each of them.
        default: The value where none holds.

    Raises:
        ArgumentError: There are not as many arrays as conditions, or none.
        ShapeError: Their shapes do not broadcast.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> gt.select([x < 2, x > 2], [x, 10 * x])
    array([ 1.,  0., 30.])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"select: got {len(condlist)} conditions and {len(choicelist)} arrays, expected as "
            "many, and at least one"
        )
    choices = [as_array(choice) for choice in choicelist]
    conditions = [as_array(condition) for condition in condlist]
    if any(condition.dtype != np.bool_ for condition in conditions):
        raise ArgumentError("select: got a condition that is no truth value; compare first")
    out: Any = default if isinstance(default, int | float | complex) else as_array(default)
    dtype = result_type(*choices, out)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = where(condition, astype(choice, dtype, copy=False), out)
    return out


def choose(a: ArrayLike, choices: Any, /, *, mode: str = "raise") -> Array:
    """Elements of several arrays, by the number of the array for each place.

    Args:
        a: The numbers.
        choices: The arrays, as a sequence or along the first axis of an array; they broadcast.
        mode: What to do with a number out of range: "raise", "wrap" or "clip".

    Raises:
        IndexingError: A number is out of bounds, or not an integer.
        ArgumentError: `mode` is something else.

    >>> gt.choose(np.array([1, 0]), [np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    array([3., 2.])
    """
    numbers = as_indices(a, "choose")
    arrays = broadcast_arrays(numbers, *choices)
    numbers, whole = arrays[0], stack(arrays[1:])
    count = len(arrays) - 1
    if mode != "raise":
        numbers = in_bounds("choose", numbers, count, mode)
    elif (known := values_if_known(numbers)) is None:
        # Elsewhere negative numbers count from the end; here they are as wrong as too large ones.
        numbers = where(numbers < 0, count, numbers)
    elif np.any((known < 0) | (known >= count)):
        raise IndexingError(f"choose: got a number outside of 0 to {count - 1}; there are {count}")
    return squeeze(take_along_axis(whole, expand_dims(numbers, 0), axis=0), 0)


def in_bounds(name: str, numbers: Any, size: int, mode: str) -> Any:
    """Indices wrapped around at a size, or clipped to it; with "raise" they stay as they are."""
    check_choice(name, ("raise", "wrap", "clip"), mode=mode)
    if mode == "wrap":
        return numbers % size
    return clip(numbers, 0, size - 1) if mode == "clip" else numbers


def compress(condition: ArrayLike, x: ArrayLike, /, axis: int | None = None) -> Array:
    """The slices along an axis for which a condition holds.

    Args:
        condition: Truth values, at most as many as slices.
        x: What to take from.
        axis: The axis; None takes from the flattened array.

    Raises:
        ShapeError: The condition has not one axis.
        ConversionError: The condition is not known, inside of `jit` or `vmap`: it tells the size.

    >>> gt.compress([True, False, True], np.array([1.0, 2.0, 3.0]))
    array([1., 3.])
    """
    condition = as_array(condition)
    check_axes("compress", condition, 1, what="a condition")
    return take(x, flatnonzero(condition), axis)


def extract(condition: ArrayLike, x: ArrayLike, /) -> Array:
    """The elements of the flattened array for which a condition holds.

    Args:
        condition: Truth values, as many as elements.
        x: What to take from.

    Raises:
        ConversionError: The condition is not known, inside of `jit` or `vmap`: it tells the size.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> gt.extract(x > 1.5, x)
    array([2., 3.])
    """
    return take(reshape(as_array(x), -1), flatnonzero(as_array(condition)))


def piecewise(
    x: ArrayLike,
    condlist: Any,
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    /,
    *args: Any,
    **kw: Any,
) -> Array:
    """A function defined piece by piece: where a condition holds, its function applies.

    Args:
        x: Where to evaluate it.
        condlist: Conditions, arrays of truth values; if several hold, the last one counts.
        funclist: A function or a number for each of them; one more is for where none holds.
        *args: Further arguments of the functions.
        **kw: Those by name.

    Raises:
        ArgumentError: The numbers of conditions and functions do not fit.

    >>> x = np.array([-2.0, 0.0, 3.0])
    >>> gt.piecewise(x, [x < 0, x > 1], [np.abs, lambda x: x * x, 0.5])
    array([2. , 0.5, 9. ])
    """
    x = as_array(x)
    conditions = _conditions(condlist, x)
    if len(funclist) == len(conditions) + 1:
        conditions = [*conditions, logical_not(functools.reduce(logical_or, conditions))]
    if len(funclist) != len(conditions):
        raise ArgumentError(
            f"piecewise: got {len(conditions)} conditions and {len(funclist)} functions, expected "
            "as many functions, or one more"
        )
    out = zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        # As in NumPy, a function sees only its piece, if there is any.
        known = values_if_known(condition) if callable(function) else None
        if known is not None and not known.any():
            continue
        piece = x if known is None else getitem(x, known)
        value = as_array(function(piece, *args, **kw) if callable(function) else function)
        value = astype(value, x.dtype, copy=False)
        out = where(condition, value, out) if known is None else setitem(out, value, known)
    return out


def _conditions(condlist: Any, x: Array) -> list[Array]:
    """The conditions as a list; a single one may come without a list."""
    listed = isinstance(condlist, list | tuple) and not isinstance(condlist[0], bool | np.bool_)
    if not listed:
        whole = as_array(condlist)
        several = len(whole.shape) > len(x.shape)
        condlist = [getitem(whole, i) for i in range(whole.shape[0])] if several else [whole]
    conditions = [as_array(c) for c in condlist]
    return [
        broadcast_to(c if c.dtype == np.bool_ else c != 0, broadcast_sizes(c.shape, x.shape))
        for c in conditions
    ]
