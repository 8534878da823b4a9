"""Functions that write into an array: on a tensor they assign, and stay differentiable.

An ndarray takes only tensors without history, as everywhere else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.choices import in_bounds
from gradtape.ops.arrays.known import without_history
from gradtape.ops.assign import setitem
from gradtape.ops.cast import astype
from gradtape.ops.gather import as_indices, take, take_along_axis
from gradtape.ops.nonzero import flatnonzero
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.typing import ArrayLike

Write = Callable[..., None]


def _writes(function: Write) -> Write:
    """A function that writes into tensors itself, and leaves ndarrays to NumPy's of its name."""
    name = function.__name__

    @functools.wraps(function)
    def write(target: Any, /, *args: Any, **options: Any) -> None:
        if isinstance(target, Tensor):
            target.check_writable(name)
            function(target, *args, **options)
        else:
            getattr(np, name)(target, *without_history(name, args), **options)

    return write


def _put_flat(target: Tensor, values: Any, places: Any) -> None:
    """Write values to places in the flattened tensor."""
    flat = setitem(reshape(target, -1), astype(values, target.dtype, copy=False), places)
    target[...] = reshape(flat, target.shape)


def _cycled(values: ArrayLike, count: int, name: str) -> Any:
    """`count` values, repeated from the start when they run out."""
    values = reshape(as_array(values), -1)
    size = values.shape[0]
    if size == count or not count:
        return values if count else take(values, np.arange(0))
    if not size:
        raise ShapeError(f"{name}: got no values for {count} places")
    return take(values, np.arange(count) % size)


@_writes
def put(a: Any, ind: ArrayLike, v: ArrayLike, /, mode: str = "raise") -> None:
    """Write values to places in the flattened tensor, in place.

    Args:
        a: What to write into.
        ind: The places.
        v: The values; they are repeated if there are fewer.
        mode: What to do out of bounds: "raise", "wrap" around, or "clip" to the ends.

    Raises:
        IndexingError: A place is out of bounds.
        ArgumentError: `mode` is something else.

    >>> x = gt.zeros(3)
    >>> gt.put(x, [0, 2], [1.0, 5.0])
    >>> x
    tensor([1., 0., 5.])
    """
    places = reshape(as_indices(ind, "put"), -1)
    places = in_bounds("put", places, a.size, mode)
    _put_flat(a, _cycled(v, places.shape[0], "put"), places)


@_writes
def place(arr: Any, mask: ArrayLike, vals: ArrayLike, /) -> None:
    """Write values one after the other to where a mask is true, in place.

    Args:
        arr: What to write into.
        mask: Truth values, of the shape of the tensor.
        vals: The values; they are repeated if there are fewer.

    Raises:
        ConversionError: The mask is not known, inside of `jit` or `vmap`: it tells how many.

    >>> x = gt.tensor([1.0, 2.0, 3.0])
    >>> gt.place(x, x > 1.5, [10.0, 20.0])
    >>> x
    tensor([ 1., 10., 20.])
    """
    places = flatnonzero(as_array(mask))
    _put_flat(arr, _cycled(vals, places.shape[0], "place"), places)


@_writes
def putmask(a: Any, mask: ArrayLike, values: ArrayLike, /) -> None:
    """Write values to where a mask is true, each to the place that has its number, in place.

    Args:
        a: What to write into.
        mask: Truth values, of the shape of the tensor.
        values: The values; they are repeated to the size of the tensor.

    Raises:
        ShapeError: The mask has another size.

    >>> x = gt.tensor([1.0, 2.0, 3.0])
    >>> gt.putmask(x, x > 1.5, [10.0, 20.0, 30.0])
    >>> x
    tensor([ 1., 20., 30.])
    """
    mask = as_array(mask)
    if math.prod(mask.shape) != a.size:
        raise ShapeError(f"putmask: got a mask of shape {mask.shape} for shape {a.shape}")
    new = reshape(_cycled(values, a.size, "putmask"), a.shape)
    a[...] = where(reshape(mask, a.shape), astype(new, a.dtype, copy=False), a)


@_writes
def put_along_axis(arr: Any, indices: ArrayLike, values: ArrayLike, /, axis: int | None) -> None:
    """Write values along an axis to where an array of numbers says, in place.

    Args:
        arr: What to write into.
        indices: The numbers, with equally many axes; the other axes broadcast against the tensor's.
        values: The values, which broadcast against the numbers.
        axis: The axis; None writes to the flattened tensor.

    Raises:
        IndexingError: A number is out of bounds, or not an integer.
        ShapeError: The shapes do not fit.

    >>> x = gt.zeros((2, 2))
    >>> gt.put_along_axis(x, np.array([[1], [0]]), 5.0, axis=1)
    >>> x
    tensor([[0., 5.],
            [5., 0.]])
    """
    indices = as_indices(indices, "put_along_axis")
    numbers = np.arange(arr.size)
    numbers = numbers if axis is None else numbers.reshape(arr.shape)
    places = take_along_axis(numbers, indices, 0 if axis is None else axis)
    values = broadcast_to(as_array(values), places.shape)
    _put_flat(arr, reshape(values, -1), reshape(places, -1))


@_writes
def fill_diagonal(a: Any, val: ArrayLike, /, wrap: bool = False) -> None:
    """Write values to the main diagonal of a tensor, in place.

    Args:
        a: What to write into: a matrix, or more axes of one size.
        val: The values; they are repeated if there are fewer.
        wrap: Whether the diagonal of a tall matrix goes on after it has reached the last column.

    Raises:
        ShapeError: There is only one axis, or more than two are of different sizes.

    >>> x = gt.zeros((2, 2))
    >>> gt.fill_diagonal(x, [1.0, 2.0])
    >>> x
    tensor([[1., 0.],
            [0., 2.]])
    """
    if len(a.shape) < 2 or (len(a.shape) > 2 and len(set(a.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: got shape {a.shape}, expected two axes, or several of one size"
        )
    marked = np.zeros(a.shape, bool)
    np.fill_diagonal(marked, True, wrap)
    places = np.flatnonzero(marked)
    _put_flat(a, _cycled(val, places.size, "fill_diagonal"), places)
