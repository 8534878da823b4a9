"""Arrays put together and taken apart: append, insert, delete, block, splits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor, concrete
from gradtape.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from gradtape.ops.arguments import as_array, as_shape, normalize_axes, normalize_axis
from gradtape.ops.arrays.axes import along
from gradtape.ops.arrays.known import values_of
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes
from gradtape.ops.diagonal import diag
from gradtape.ops.family import member
from gradtape.ops.gather import take
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.like import zeros_like
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.ops.split import split
from gradtape.typing import Array, ArrayLike, Axis, Shape

# ---- more and fewer elements --------------------------------------------------------------------


def append(arr: ArrayLike, values: ArrayLike, /, axis: int | None = None) -> Array:
    """An array with another one after it.

    Args:
        arr: The first array.
        values: What comes after it.
        axis: Along which axis; None joins the flattened arrays.

    Raises:
        ShapeError: The shapes do not fit.
        AxisError: There is no such axis.

    >>> gt.append(np.array([1.0, 2.0]), 3.0)
    array([1., 2., 3.])
    """
    arr, values = as_array(arr), as_array(values)
    if axis is None:
        arr, values, axis = reshape(arr, -1), reshape(values, -1), 0
    return concatenate([arr, values], axis)


def _numbered(edit: Callable[..., Any], name: str, numbers: Any, obj: Any, *values: Any) -> Any:
    """The numbers of slices after NumPy's own function has inserted or deleted some of them."""
    places = concrete(obj, name) if isinstance(obj, Tensor) else obj
    try:
        return edit(numbers, places, *values)
    except (IndexError, ValueError) as error:  # ValueError: a mask of another size
        raise IndexingError(f"{name}: {error}") from None


def delete(arr: ArrayLike, /, obj: Any, axis: int | None = None) -> Array:
    """An array without some of its slices.

    Args:
        arr: What to take from.
        obj: Which ones to leave out: a number, a slice, several numbers, or a mask.
        axis: Along which axis; None takes from the flattened array.

    Raises:
        IndexingError: There is no such slice.
        AxisError: There is no such axis.

    >>> gt.delete(np.array([1.0, 2.0, 3.0]), 1)
    array([1., 3.])
    """
    arr, axis = along("delete", arr, axis)
    numbers = np.arange(arr.shape[axis])
    return take(arr, _numbered(np.delete, "delete", numbers, obj), axis)


def insert(arr: ArrayLike, /, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with other slices put between its own.

    Args:
        arr: What to put them into.
        obj: Before which slices: a number, a slice, several numbers, or a mask.
        values: What to put there; it broadcasts, and is cast to the dtype of the array.
        axis: Along which axis; None puts them into the flattened array.

    Raises:
        IndexingError: There is no such place.
        ShapeError: The values do not fit.
        AxisError: There is no such axis.

    >>> gt.insert(np.array([1.0, 2.0]), 1, 5.0)
    array([1., 5., 2.])
    """
    arr, axis = along("insert", arr, axis)
    values = as_array(values)
    if values.dtype.kind == "c" and arr.dtype.kind != "c":
        raise DTypeError(
            f"insert: got values of {values.dtype} for {arr.dtype}, which cannot hold them; cast "
            "one of them with astype"
        )
    values = astype(values, arr.dtype, copy=False)
    size = arr.shape[axis]
    numbers = np.arange(size)
    count = _numbered(np.insert, "insert", numbers, obj, 0).size - size
    if count == 1 and not isinstance(obj, slice):
        # Any number of values can go to the one place: their own axis counts them, or their first
        # one if the place is a number and not a list of one.
        missing = len(arr.shape) - len(values.shape)
        values = reshape(values, (1,) * missing + values.shape)
        values = moveaxis(values, 0, axis) if np.ndim(obj) == 0 else values
        count = values.shape[axis]
    order = _numbered(np.insert, "insert", numbers, obj, size + np.arange(count))
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    return take(concatenate([arr, broadcast_to(values, shape)], axis), order, axis)


def resize(x: ArrayLike, /, new_shape: Shape) -> Array:
    """An array of another size, with the elements repeated from the start or cut off.

    Args:
        x: Where elements come from.
        new_shape: The size or sizes.

    Raises:
        ShapeError: A size is negative.

    >>> gt.resize(np.array([1.0, 2.0, 3.0]), (2, 2))
    array([[1., 2.],
           [3., 1.]])
    """
    x = reshape(as_array(x), -1)
    shape = as_shape(new_shape, "resize")
    size = math.prod(shape)
    if not x.shape[0]:
        return zeros_like(x, shape=shape)
    return reshape(take(x, np.arange(size) % x.shape[0]), shape)


def trim_zeros(filt: ArrayLike, /, trim: str = "fb", axis: Axis = None) -> Array:
    """An array without the zeros at its ends.

    Args:
        filt: What to trim.
        trim: Which ends: "f" for the front, "b" for the back, "fb" for both.
        axis: Along which axes; None for all of them.

    Raises:
        ArgumentError: `trim` is something else.
        ConversionError: The values are not known, inside of `jit` or `vmap`: they tell the size.

    >>> gt.trim_zeros(np.array([0.0, 1.0, 0.0, 2.0, 0.0]))
    array([1., 0., 2.])
    """
    filt = as_array(filt)
    ends = trim.lower()
    if not ends or set(ends) - set("fb"):
        raise ArgumentError(f'trim_zeros: got trim={trim!r}, expected "f", "b" or "fb"')
    axes = normalize_axes(axis, len(filt.shape), "trim_zeros")
    found = np.nonzero(np.atleast_1d(values_of(filt)))
    index = [slice(None)] * len(filt.shape)
    for a in axes:
        where = found[a]
        start, stop = (where.min(), where.max() + 1) if where.size else (0, 0)
        # Where all are zeros nothing is left, whichever end is trimmed.
        index[a] = slice(
            int(start) if "f" in ends else None,
            int(stop) if "b" in ends or not where.size else None,
        )
    return getitem(filt, tuple(index))


# ---- joining ------------------------------------------------------------------------------------


def block(arrays: Any, /) -> Array:
    """An array made of blocks: the innermost lists are joined along the last axis, and so on.

    Args:
        arrays: Nested lists of arrays.

    Raises:
        ShapeError: The shapes do not fit, or a list is empty.

    >>> gt.block([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 3))]])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]])
    """
    depth = _depth(arrays)
    ndim = max(depth, *(len(x.shape) for x in _leaves(arrays)), 0)

    def joined(part: Any, level: int) -> Array:
        if isinstance(part, list):
            return concatenate([joined(one, level + 1) for one in part], level - depth)
        part = as_array(part)
        return reshape(part, (1,) * (ndim - len(part.shape)) + part.shape)

    return joined(arrays, 0)


def _depth(part: Any) -> int:
    """How deep lists are nested."""
    if not isinstance(part, list):
        return 0
    depths = {_depth(one) for one in part}
    if len(depths) != 1:
        raise ShapeError(
            f"block: got lists of depths {sorted(depths)}, expected one depth, no gaps"
        )
    return 1 + depths.pop()


def _leaves(part: Any) -> list[Array]:
    return [x for one in part for x in _leaves(one)] if isinstance(part, list) else [as_array(part)]


# ---- taking apart -------------------------------------------------------------------------------


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, which they lose.

    Args:
        x: What to take apart.
        axis: The axis.

    Raises:
        AxisError: There is no such axis.

    >>> gt.unstack(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    (array([1., 3.]), array([2., 4.]))
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "unstack")
    before = (slice(None),) * axis
    return tuple(getitem(x, (*before, i)) for i in range(x.shape[axis]))


# The axis along which each of them splits, and how many axes it needs.
_SPLITS = {"hsplit": (1, 1), "vsplit": (0, 2), "dsplit": (2, 3)}


def _split(name: str, x: ArrayLike, /, indices_or_sections: Any) -> list[Array]:
    """The parts of an array {which}.

    Args:
        x: What to split.
        indices_or_sections: How many parts, or where the later ones begin.

    Raises:
        ShapeError: The array has too few axes, or cannot be split so.

    hsplit:
    >>> gt.hsplit(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    [array([1., 2.]), array([3., 4.])]

    vsplit:
    >>> gt.vsplit(np.array([[1.0, 2.0], [3.0, 4.0]]), 2)
    [array([[1., 2.]]), array([[3., 4.]])]

    dsplit:
    >>> gt.dsplit(np.array([[[1.0, 2.0]]]), 2)
    [array([[[1.]]]), array([[[2.]]])]
    """
    x = as_array(x)
    axis, least = _SPLITS[name]
    check_axes(name, x, least=least)
    return split(x, indices_or_sections, min(axis, len(x.shape) - 1))


hsplit = member("hsplit", _split, which="along its second axis, or the only one")
vsplit = member("vsplit", _split, which="of at least two axes along its first axis")
dsplit = member("dsplit", _split, which="of at least three axes along its third axis")


def diagflat(v: ArrayLike, /, k: int = 0) -> Array:
    """The matrix with the flattened array on a diagonal.

    Args:
        v: The elements.
        k: Which diagonal: 0 is the main one, positive ones lie above it.

    >>> gt.diagflat(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    return diag(reshape(as_array(v), -1), k)


def rollaxis(x: ArrayLike, /, axis: int, start: int = 0) -> Array:
    """An array with one axis moved to before another.

    Args:
        x: What to rearrange.
        axis: The axis to move.
        start: The axis it comes before.

    Raises:
        AxisError: There is no such axis.

    >>> gt.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_array(x)
    ndim = len(x.shape)
    axis = normalize_axis(axis, ndim, "rollaxis")
    start = start if start == ndim else normalize_axis(start, ndim, "rollaxis")
    return moveaxis(x, axis, start - 1 if axis < start else start)
