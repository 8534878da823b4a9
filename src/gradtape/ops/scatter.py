"""Writing at places given by arrays, under the names of PyTorch and TensorFlow."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import in_front
from gradtape.core.call import call
from gradtape.core.define import general
from gradtape.core.op import NotDifferentiable, Op
from gradtape.core.state import adopted
from gradtape.errors import ArgumentError, IndexingError, ShapeError
from gradtape.ops.arguments import Batch, as_array, normalize_axis, weak_or_array
from gradtape.ops.assign import flat_positions, setitem
from gradtape.ops.cast import astype
from gradtape.ops.comparison import equal
from gradtape.ops.family import member
from gradtape.ops.gather import (
    check_fits,
    gather_leading,
    places_along,
    prepared,
    scatter as add_at,
    take,
)
from gradtape.ops.index import FULL, getitem, index_positions
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, broadcasts_to, reshape
from gradtape.typing import Array, ArrayLike

# ---- the largest or smallest of what is written ------------------------------------------------


def _extreme_forward(xp: Any, x: Any, src: Any, positions: Any, largest: bool) -> Any:
    out = xp.array(x)
    (xp.maximum if largest else xp.minimum).at(out, positions, src)
    return out


def _shares(out: Any, x: Any, src: Any, positions: Any) -> tuple[Any, Any, Any]:
    """Which elements of `x` and `src` are in the result, and how many share a place in it."""
    from_x = astype(equal(x, out), out.dtype)
    from_src = astype(equal(src, gather_leading(out, positions)), out.dtype)
    count = from_x + add_at(from_src, positions, shape=x.shape)
    # At NaN nothing is equal.
    return from_x, from_src, where(count == 0, 1.0, count)


def _extreme_by_x(ct: Any, out: Any, x: Any, src: Any, positions: Any, largest: bool) -> Any:
    from_x, _, count = _shares(out, x, src, positions)
    return ct * from_x / count


def _extreme_by_src(ct: Any, out: Any, x: Any, src: Any, positions: Any, largest: bool) -> Any:
    _, from_src, count = _shares(out, x, src, positions)
    return gather_leading(ct / count, positions) * from_src


def _extreme_jvp(
    tangents: Sequence[Any], out: Any, x: Any, src: Any, positions: Any, largest: bool
) -> Any:
    from_x, from_src, count = _shares(out, x, src, positions)
    dx, dsrc, _ = tangents
    moved = 0.0 if dx is None else dx * from_x
    if dsrc is not None:
        moved = moved + add_at(dsrc * from_src, positions, shape=x.shape)
    return moved / count


def _batch_extreme(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    x, src, positions = in_front(args, axes)
    flat = flat_positions(positions, x.shape[1])
    out = call(op, (reshape(x, -1), reshape(src, -1), flat), params)
    return reshape(out, x.shape), 0


# out[p] = max(x[p], src at p): those that are as large as the result share its cotangent.
scatter_extreme: Callable[..., Any] = general(
    "scatter_extreme",
    _extreme_forward,
    infer=lambda x, src, positions, largest: Aval(x.shape, x.dtype),
    vjps=(
        _extreme_by_x,
        _extreme_by_src,
        NotDifferentiable("scatter_max: an index has no derivative"),
    ),
    jvp=_extreme_jvp,
    batch=_batch_extreme,
)


# ---- along an axis ------------------------------------------------------------------------------


def _along(
    name: str, x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int
) -> tuple[Any, list[Any], Any]:
    """The array, the places along an axis, and what is written there, checked."""
    x, index, axis = prepared(f"{name}(x, index, src, axis)", x, index, axis)
    check_fits(index, x, axis, name, "x")
    src = adopted(as_array(src))
    if src.shape:
        check_fits(index, src, None, name, "src")
        if src.shape != index.shape:
            src = getitem(src, tuple(slice(n) for n in index.shape))
    return x, places_along(index.shape, index, axis), src


def scatter(x: ArrayLike, index: ArrayLike, src: ArrayLike, /, axis: int) -> Array:
    """The array with values written at places along an axis, as `torch.scatter`.

    For axis 0: `out = x`, then `out[index[i, j], j] = src[i, j]` for all i, j. Where an index
    repeats, the last value remains, and only that one has a gradient.

    Args:
        x: What to write into; it is not changed.
        index: Integers, in an array with as many axes as `x`.
        src: What to write, an array or a number; elements outside the shape of `index` are not
            used.
        axis: The axis that `index` counts along.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        ShapeError: The numbers of axes differ, or `index` is too long along one.
        AxisError: There is no such axis.

    >>> gt.scatter(np.zeros(3), np.array([2, 0]), np.array([1.0, 2.0]), axis=0)
    array([2., 0., 1.])
    """
    x, places, src = _along("scatter", x, index, src, axis)
    return setitem(x, src, tuple(places))


def _extreme(name: str, x: ArrayLike, index: ArrayLike, src: ArrayLike, /, axis: int) -> Array:
    """The array with elements {moved} to values at places along an axis.

    For axis 0: `out = x`, then `out[index[i, j], j] = {better}(out[index[i, j], j], src[i, j])` for
    all i, j; `torch.scatter_reduce` with "a{better}". Elements that are equally {good} share the
    gradient.

    Args:
        x: What to begin with; it is not changed.
        index: Integers, in an array with as many axes as `x`.
        src: The values; elements outside the shape of `index` are not used.
        axis: The axis that `index` counts along.

    Raises:
        IndexingError: An index is out of bounds, or not an integer.
        ShapeError: The numbers of axes differ, or `index` is too long along one.
        AxisError: There is no such axis.

    scatter_max:
    >>> gt.scatter_max(np.zeros(3), np.array([0, 0, 2]), np.array([1.0, 2.0, -3.0]), axis=0)
    array([2., 0., 0.])

    scatter_min:
    >>> gt.scatter_min(np.zeros(3), np.array([0, 0, 2]), np.array([1.0, 2.0, -3.0]), axis=0)
    array([ 0.,  0., -3.])
    """
    x, places, src = _along(name, x, index, src, axis)
    positions, shape = index_positions(x.shape, tuple(places), name), x.shape
    src = broadcast_to(astype(src, x.dtype, copy=False), positions.shape)
    flat = (reshape(part, -1) for part in (x, src, positions))
    return reshape(scatter_extreme(*flat, largest=name == "scatter_max"), shape)


scatter_max = member("scatter_max", _extreme, moved="raised", better="max", good="large")
scatter_min = member("scatter_min", _extreme, moved="lowered", better="min", good="small")


# ---- by any index -------------------------------------------------------------------------------


def index_put(
    x: ArrayLike, indices: Any, values: ArrayLike, /, *, accumulate: bool = False
) -> Array:
    """The array with `x[indices] = values` done, or `+=` for each place, as `torch.index_put`.

    Args:
        x: What to write into; it is not changed.
        indices: The index in brackets.
        values: What to write, broadcast to the part.
        accumulate: Whether to add; an index that repeats then adds several times, which
            `x[indices] += values` does not.

    Raises:
        IndexingError: The index is out of bounds, or of a kind arrays do not take.
        ShapeError: The values do not broadcast to the part.

    >>> gt.index_put(np.zeros(3), [0, 0, 2], 1.0, accumulate=True)
    array([2., 0., 1.])
    """
    # As in PyTorch, a list of arrays has one for each axis.
    of_axes = isinstance(indices, list) and any(np.ndim(one) for one in indices)
    x, index = as_array(x), tuple(indices) if of_axes else indices
    if not accumulate:
        return setitem(x, values, index)
    positions = index_positions(x.shape, index, "index_put")
    values = astype(adopted(as_array(values)), x.dtype, copy=False)
    if not broadcasts_to(values.shape, positions.shape):
        raise ShapeError(
            f"index_put: got values of shape {values.shape}, expected what broadcasts to "
            f"{positions.shape}, the shape of the part"
        )
    added = reshape(broadcast_to(values, positions.shape), -1)
    size = (math.prod(x.shape),)
    return x + reshape(add_at(added, reshape(positions, -1), shape=size), x.shape)


def index_select(x: ArrayLike, index: ArrayLike, /, axis: int) -> Array:
    """Slices along an axis, by their numbers in an array with one axis; see `take`.

    Args:
        x: What to take from.
        index: The numbers.
        axis: The axis to take along.

    Raises:
        IndexingError: A number is out of bounds, or not an integer.
        ShapeError: The index has more axes than one.
        AxisError: There is no such axis.

    >>> gt.index_select(np.eye(3), [2, 0], axis=0)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    x, index, axis = prepared("index_select(x, index, axis)", x, index, axis)
    if len(index.shape) != 1:
        raise ShapeError(
            f"index_select: got an index of shape {index.shape}, expected one axis; use gt.take"
        )
    return take(x, index, axis=axis)


def masked_fill(x: ArrayLike, mask: ArrayLike, value: ArrayLike, /) -> Array:
    """The array with a number in place of the elements where a mask is true.

    Args:
        x: The array.
        mask: Truth values that broadcast to its shape.
        value: A number, or an array without axes.

    Raises:
        ShapeError: The mask does not broadcast to the shape, or the value is not one number.
        IndexingError: The mask is not one of truth values.

    >>> gt.masked_fill(np.array([1.0, 2.0]), np.array([True, False]), 0.0)
    array([0., 2.])
    """
    x, mask = as_array(x), _as_mask("masked_fill", mask)
    if np.shape(value) or not broadcasts_to(mask.shape, x.shape):
        raise ShapeError(
            f"masked_fill: got x {x.shape}, mask {mask.shape}, value {np.shape(value)}, expected a "
            "mask that broadcasts to x, and one number; use gt.where(mask, value, x) for arrays"
        )
    return astype(where(mask, value, x), x.dtype, copy=False)


def boolean_mask(x: ArrayLike, /, mask: ArrayLike, axis: int = 0) -> Array:
    """The elements or slices where a mask is true, as `tf.boolean_mask`.

    Args:
        x: The array.
        mask: Truth values for its axes from `axis` on, of as many as the mask has.
        axis: The first axis that the mask is for.

    Raises:
        IndexingError: The mask is not one of truth values, or its shape does not fit.
        AxisError: There is no such axis.

    >>> gt.boolean_mask(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([True, False]), axis=1)
    array([[1.],
           [3.]])
    """
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), "boolean_mask")
    return getitem(x, (*(FULL,) * axis, _as_mask("boolean_mask", mask)))


def _as_mask(name: str, mask: ArrayLike) -> Any:
    found = as_array(mask)
    if found.dtype != np.bool_:
        raise IndexingError(
            f"{name}: got a mask of dtype {found.dtype}, expected truth values, such as x > 0"
        )
    return found


def add_n(arrays: Sequence[ArrayLike], /) -> Array:
    """The sum of arrays that broadcast, in their order.

    Args:
        arrays: At least one.

    Raises:
        ArgumentError: There are none.
        ShapeError: They do not broadcast.

    >>> gt.add_n([np.ones(2), 2.0, np.array([1.0, 3.0])])
    array([4., 6.])
    """
    found = [weak_or_array(array) for array in arrays]
    if not found:
        raise ArgumentError("add_n: got no arrays, expected at least one")
    return as_array(functools.reduce(operator.add, found))
