"""Reductions that say which or how many: argmax, argmin, any, all, count_nonzero; untracked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.core.lowering import Composite, Elements, Reduction
from gradtape.core.scalar import truth
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.comparison import equal, isnan, logical_or, not_equal
from gradtape.ops.reduce import (
    NO_AXIS,
    REDUCTIONS,
    masked,
    max as max_of,
    min as min_of,
    prepared,
    reduced_shape,
    reducer,
    sum as sum_of,
)
from gradtape.ops.select import where as where_of
from gradtape.ops.shape import ravel, reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


def _infer_position(name: str, x: Aval, axis: int) -> Aval:
    if x.shape[axis] == 0:
        raise ShapeError(f"{name}: got {x}, expected at least one element along axis {axis}")
    return Aval(reduced_shape(x.shape, (axis,), False), np.dtype(np.intp))


def _numbers_forward(xp: Any, x: Any, axis: int) -> Any:
    rest = (1,) * (len(x.shape) - axis - 1)
    return xp.broadcast_to(xp.arange(x.shape[axis]).reshape(-1, *rest), x.shape)


# The number of each element along an axis; in native code it is the counter of a loop.
numbers_along = general(
    "numbers_along",
    _numbers_forward,
    infer=lambda x, axis: Aval(x.shape, np.dtype(np.intp)),
    lower=Elements(lambda i, x, axis: i[axis]),
)


def _first_extreme(extreme: Callable[..., Any], x: Any, axis: int) -> Any:
    """The smallest number of an element that is the extreme; NaN counts as one."""
    found = equal(x, extreme(x, axis, keepdims=True))
    if x.dtype.kind == "f":
        found = logical_or(found, isnan(x))
    numbers = where_of(found, numbers_along(x, axis=axis), x.shape[axis])
    return min_of(numbers, axis)


def _arg(name: str, extreme: Callable[..., Any]) -> Callable[..., Any]:
    return general(
        name,
        lambda xp, x, axis: getattr(x, name)(axis),
        infer=functools.partial(_infer_position, name),
        kind="reduction",
        lower=Composite(functools.partial(_first_extreme, extreme)),
    )


_argmax, _argmin = _arg("argmax", max_of), _arg("argmin", min_of)


def position_along(
    op: Callable[..., Any], name: str, x: ArrayLike, axis: int | None, keepdims: bool
) -> Array:
    """The positions that an op finds along one axis, or in the flattened array."""
    x = as_array(x)
    shape = x.shape
    if axis is None:
        out = op(ravel(x), axis=0)
        return reshape(out, (1,) * len(shape)) if keepdims else out
    axis = normalize_axis(axis, len(shape), name)
    out = op(x, axis=axis)
    return reshape(out, (*shape[:axis], 1, *shape[axis + 1 :])) if keepdims else out


@options(REDUCTIONS, raises=NO_AXIS)
def argmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the largest element is, the first one if there are several; has no derivative.

    Args:
        x: Where to look.
        axis: Along which axis; None looks in the flattened array.

    Raises:
        ShapeError: There are no elements.

    >>> gt.argmax(np.array([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    array([1, 0])
    """
    return position_along(_argmax, "argmax", x, axis, keepdims)


@options(REDUCTIONS, raises=NO_AXIS)
def argmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the smallest element is; otherwise as `argmax`.

    Args:
        x: Where to look.
        axis: Along which axis; None looks in the flattened array.

    Raises:
        ShapeError: There are no elements.

    >>> gt.argmin(np.array([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    array([0, 1])
    """
    return position_along(_argmin, "argmin", x, axis, keepdims)


def _test(ufunc: np.ufunc, name: str, combine: str) -> Callable[..., Any]:
    return general(
        name,
        reducer(ufunc, name),
        infer=lambda x, axis, keepdims: Aval(
            reduced_shape(x.shape, axis, keepdims), np.dtype(np.bool_)
        ),
        kind="reduction",
        lower=Reduction(combine, truth),
    )


_any, _all = _test(np.logical_or, "any", "or"), _test(np.logical_and, "all", "and")


@options(REDUCTIONS, raises=NO_AXIS)
def any(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Array:
    """Whether any element is true, over all or the given axes.

    Args:
        x: The truth values; numbers count as true if they are not 0.

    >>> gt.any(np.array([[True, False], [False, False]]), axis=1)
    array([ True, False])
    """
    return _truth(_any, "any", x, axis, keepdims, where)


@options(REDUCTIONS, raises=NO_AXIS)
def all(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Array:
    """Whether all elements are true, over all or the given axes.

    Args:
        x: The truth values; numbers count as true if they are not 0.

    >>> gt.all(np.array([[True, True], [False, True]]), axis=1)
    array([ True, False])
    """
    return _truth(_all, "all", x, axis, keepdims, where)


def _truth(op: Any, name: str, x: ArrayLike, axis: Axis, keepdims: bool, where: Any) -> Array:
    if where is not True and where is not None:
        return masked(name, x, axis, None, keepdims, None, where)
    x, axes = prepared(name, x, axis)
    return op(x, axis=axes, keepdims=bool(keepdims))


def count_nonzero(x: ArrayLike, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """How many elements are not zero, over all or the given axes.

    Args:
        x: Where to count.
        axis: One or several axes; None counts over all of them.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        AxisError: There is no such axis.

    >>> gt.count_nonzero(np.array([0.0, 2.0, 3.0]))
    np.int64(2)
    """
    return sum_of(not_equal(as_array(x), 0), axis, keepdims=keepdims)
