"""The same elements in another shape: reshape, transpose, broadcast and their relatives.

All of them are linear: an op states its transpose, forward mode is the op itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_first, move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import broadcast_sizes, linear, sharing, unbroadcast
from gradtape.core.lowering import Elements, Reader, Relabel
from gradtape.core.op import Facts, Op, op_of
from gradtape.core.scalar import Scalar
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError
from gradtape.ops.arguments import (
    INTEGER,
    Batch,
    as_array,
    as_shape,
    normalize_axes,
    normalize_axis,
    not_a_shape,
)
from gradtape.ops.cast import copy as copy_of
from gradtape.typing import Array, ArrayLike, Axis, Shape

# ---- reshape ------------------------------------------------------------------------------------


def _infer_reshape(x: Aval, shape: tuple[int, ...]) -> Aval:
    if math.prod(shape) != math.prod(x.shape):
        raise ShapeError(f"reshape: got {x} for {shape}, expected the same number of elements")
    return Aval(shape, x.dtype)


# d reshape(x) = reshape(dx); transpose: reshape back
_reshape: Callable[..., Any] = sharing(
    linear(
        "reshape",
        lambda xp, x, shape: x.reshape(shape),
        lambda ct, _out, _x, shape: _reshape(ct, shape=_x.shape),
        infer=_infer_reshape,
        batch=batch_first(lambda size, shape: {"shape": (size, *shape)}),
        aliases=True,
        facts=Facts(rearranges=True, layout="view"),
        lower=Relabel(),
    ),
    permutes=True,
)

reshape_op = op_of(_reshape)


def reshape(x: ArrayLike, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements in another shape.

    Args:
        x: What to reshape.
        shape: The new sizes; one of them may be -1, meaning whatever is left.
        order: "C" reads and writes the last axis fastest, "F" the first.
        copy: True gives the result memory of its own. Without it the result is a view where it
            can be one: what is written into it is written into `x`; False raises where it cannot.

    Raises:
        ShapeError: The number of elements differs.
        ArgumentError: A copy is needed that `copy=False` forbids, or `order` is something else.

    >>> gt.reshape(np.arange(4.0), (2, -1))
    array([[0., 1.],
           [2., 3.]])
    """
    x = as_array(x)
    try:
        new = (shape,) if isinstance(shape, INTEGER) else tuple(shape)
        low = min(new) if new else 0
        negative = low < 0
    except (TypeError, ValueError):
        raise not_a_shape("reshape", shape) from None
    if negative:
        new = _fill_in(new, x.shape, low)
    if order == "C":
        out = _reshape(x, shape=new)
    elif order == "F":
        out = transpose(_reshape(transpose(x), shape=new[::-1]))
    else:
        keep = "; to keep the first axis, x.reshape(len(x), -1)" if isinstance(order, int) else ""
        raise ArgumentError(f'reshape: got order={order!r}, expected "C" or "F"{keep}')
    if copy is None:
        return out
    if copy:
        return copy_of(out)
    if not _may_share(out, x):
        raise ArgumentError(f"reshape: got {x.shape} for {new} and copy=False; it needs a copy")
    return out


def _may_share(view: Any, x: Any) -> bool:
    """Whether two arrays can share memory; those without values can."""
    raw = [innermost(one, show=True) if isinstance(one, Tensor) else one for one in (view, x)]
    arrays = all(isinstance(one, np.ndarray) for one in raw)
    return not arrays or np.may_share_memory(*raw) or not raw[0].size


def _fill_in(shape: tuple[Any, ...], old: tuple[int, ...], low: int) -> tuple[int, ...]:
    """`shape` with its one -1 replaced by the size that is left."""
    size, rest = math.prod(old), -math.prod(shape)
    if low < -1 or shape.count(-1) != 1 or not rest or size % rest:
        raise ShapeError(
            f"reshape: got {old} for {shape}, expected a shape of {size} elements, with at most "
            "one -1 that is determined by the rest"
        )
    place = shape.index(-1)
    return (*shape[:place], size // rest, *shape[place + 1 :])


def ravel(x: ArrayLike, /, order: str = "C") -> Array:
    """The elements along one axis; options as of `reshape`.

    >>> gt.ravel(np.ones((2, 3))).shape
    (6,)
    """
    x = as_array(x)
    return reshape(x, math.prod(x.shape), order)


def flatten(x: ArrayLike, /, order: str = "C") -> Array:
    """A copy of the elements along one axis; options as of `reshape`.

    >>> gt.flatten(np.ones((2, 3))).shape
    (6,)
    """
    return copy_of(ravel(x, order))


def expand_dims(x: ArrayLike, /, axis: int | Sequence[int]) -> Array:
    """The array with new axes of size 1.

    Args:
        x: What to expand.
        axis: Where the new axes are in the result.

    Raises:
        AxisError: The result has no such axis, or one was named twice.

    >>> gt.expand_dims(np.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = as_array(x)
    if axis is None:
        raise DTypeError("expand_dims: got axis=None, expected an integer or a tuple of integers")
    count = len(axis) if isinstance(axis, Sequence) else 1
    added = normalize_axes(axis, len(x.shape) + count, "expand_dims")
    shape = list(x.shape)
    for place in sorted(added):
        shape.insert(place, 1)
    return _reshape(x, shape=tuple(shape))


unsqueeze = expand_dims


def squeeze(x: ArrayLike, /, axis: Axis = None) -> Array:
    """The array without axes of size 1: all of them, or those given as `axis`.

    Raises:
        ShapeError: A given axis is not of size 1.

    >>> gt.squeeze(np.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = as_array(x)
    old = x.shape
    if axis is None:
        return _reshape(x, shape=tuple(n for n in old if n != 1))
    removed = normalize_axes(axis, len(old), "squeeze")
    if any(old[a] != 1 for a in removed):
        raise ShapeError(f"squeeze: got shape {old} with axis {axis}, expected size 1 there")
    return _reshape(x, shape=tuple(n for a, n in enumerate(old) if a not in removed))


def _at_least(ndim: int, arrays: Sequence[ArrayLike], shapes: Callable[..., Any]) -> Array:
    """The arrays; those with fewer than `ndim` axes reshaped by `shapes`."""
    grown = tuple(
        _reshape(x, shape=shapes(*x.shape)) if len(x.shape) < ndim else x
        for x in map(as_array, arrays)
    )
    return grown[0] if len(grown) == 1 else grown


def atleast_1d(*arrays: ArrayLike) -> Array:
    """Each array with at least one axis; a tuple of them if several are given.

    >>> gt.atleast_1d(1.0)
    array([1.])
    """
    return _at_least(1, arrays, lambda: (1,))


def atleast_2d(*arrays: ArrayLike) -> Array:
    """Each array with at least two axes, new ones in front; a tuple of them if several are given.

    >>> gt.atleast_2d(np.ones(3)).shape
    (1, 3)
    """
    return _at_least(2, arrays, lambda n=1: (1, n))


def atleast_3d(*arrays: ArrayLike) -> Array:
    """Each array with at least three axes, placed as NumPy does; a tuple if several are given.

    >>> gt.atleast_3d(np.ones(3)).shape
    (1, 3, 1)
    """
    return _at_least(3, arrays, lambda m=1, n=None: (1, m, 1) if n is None else (m, n, 1))


# ---- transpose ----------------------------------------------------------------------------------


# Transposing back is transposing by the inverse permutation.
_transpose: Callable[..., Any] = sharing(
    linear(
        "transpose",
        lambda xp, x, axes: x.transpose(axes),
        lambda ct, _out, _x, axes: _transpose(
            ct, axes=tuple(sorted(range(len(axes)), key=axes.__getitem__))
        ),
        infer=lambda x, axes: Aval(tuple(x.shape[a] for a in axes), x.dtype),
        batch=batch_first(lambda size, axes: {"axes": (0, *(a + 1 for a in axes))}),
        aliases=True,
        facts=Facts(rearranges=True, layout="view"),
        lower=Elements(lambda i, x, axes: x(*(i[axes.index(a)] for a in range(len(axes))))),
    ),
    permutes=True,
)

transpose_op = op_of(_transpose)


def transpose(x: ArrayLike, /, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes permuted; reversed if no order is given.

    Args:
        x: What to transpose.
        axes: The old axis that each new axis is.

    Raises:
        AxisError: `axes` is not a permutation of the axes.

    >>> gt.transpose(np.ones((2, 3))).shape
    (3, 2)
    """
    x = as_array(x)
    ndim = len(x.shape)
    if axes is None:
        return _transpose(x, axes=tuple(range(ndim))[::-1])
    axes = axes if isinstance(axes, Sequence) else np.atleast_1d(axes).tolist()
    order = normalize_axes(tuple(axes), ndim, "transpose")
    if len(order) != ndim:
        swap = f"; use swapaxes{tuple(axes)} to swap these two" if len(order) == 2 else ""
        raise AxisError(
            f"transpose: got axes {tuple(axes)}, expected all {ndim} of them once{swap}"
        )
    return _transpose(x, axes=order)


permute_dims = transpose


def moveaxis(x: ArrayLike, /, source: Axis, destination: Axis) -> Array:
    """The array with the axes `source` moved to the places `destination`, the others in order.

    Raises:
        AxisError: There is no such axis, or there are not as many places as axes.

    >>> gt.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(x)
    ndim = len(x.shape)
    moved = normalize_axes(source, ndim, "moveaxis")
    places = normalize_axes(destination, ndim, "moveaxis")
    if len(moved) != len(places):
        raise AxisError(f"moveaxis: got {len(moved)} sources and {len(places)} destinations")
    order = [a for a in range(ndim) if a not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return _transpose(x, axes=tuple(order))


def swapaxes(x: ArrayLike, /, axis1: int, axis2: int) -> Array:
    """The array with the axes `axis1` and `axis2` exchanged; an AxisError if it lacks one.

    >>> gt.swapaxes(np.ones((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    x = as_array(x)
    order = list(range(len(x.shape)))
    a = normalize_axis(axis1, len(order), "swapaxes")
    b = normalize_axis(axis2, len(order), "swapaxes")
    order[a], order[b] = b, a
    return _transpose(x, axes=tuple(order))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes exchanged; an AxisError if it has fewer than two.

    >>> gt.matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return swapaxes(x, -1, -2)


# ---- broadcast ----------------------------------------------------------------------------------


def _batch_broadcast(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    x, shape = move_batch_axis(args[0], axes[0]), params["shape"]
    size, *own = x.shape
    x = _reshape(x, shape=(size, *(1,) * (len(shape) - len(own)), *own))
    return call(op, (x,), {"shape": (size, *shape)}), 0


def broadcasts_to(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether an array of the shape `own` can be repeated to a shape."""
    try:
        return broadcast_sizes(own, shape) == shape
    except ShapeError:
        return False


def _infer_broadcast(x: Aval, shape: tuple[int, ...]) -> Aval:
    # An axis may not be longer than asked for, though the two shapes would broadcast.
    if broadcast_sizes(x.shape, shape) != shape:
        raise ShapeError(f"broadcast_to: got {x}, expected a shape that broadcasts to {shape}")
    return Aval(shape, x.dtype)


def _broadcast_element(i: Sequence[Scalar], x: Reader, shape: tuple[int, ...]) -> Scalar:
    own = x.aval.shape
    last = i[len(i) - len(own) :]
    return x(*(0 if n == 1 else k for k, n in zip(last, own, strict=True)))


# Repeating is undone by summing.
_broadcast_to = sharing(
    linear(
        "broadcast_to",
        lambda xp, x, shape: xp.broadcast_to(x, shape),
        lambda ct, _out, _x, shape: unbroadcast(ct, _x.shape),
        infer=_infer_broadcast,
        batch=_batch_broadcast,
        aliases=True,
        facts=Facts(rearranges=True),
        lower=Elements(_broadcast_element, repeats=True),
    )
)

broadcast_op = op_of(_broadcast_to)


def broadcast_to(x: ArrayLike, /, shape: Shape) -> Array:
    """The array repeated to the given `shape`, by NumPy's broadcasting.

    Raises:
        ShapeError: The array does not broadcast to the shape.

    >>> gt.broadcast_to(np.array([1.0, 2.0]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    return _broadcast_to(as_array(x), shape=as_shape(shape, "broadcast_to"))


def broadcast_arrays(*arrays: ArrayLike) -> tuple[Array, ...]:
    """A tuple of the arrays, each repeated to the shape they broadcast to together.

    Raises:
        ShapeError: They do not broadcast.

    >>> [x.shape for x in gt.broadcast_arrays(np.ones((2, 1)), np.ones(3))]
    [(2, 3), (2, 3)]
    """
    inputs = [as_array(x) for x in arrays]
    shape = broadcast_sizes(*(x.shape for x in inputs))
    return tuple(x if x.shape == shape else _broadcast_to(x, shape=shape) for x in inputs)
