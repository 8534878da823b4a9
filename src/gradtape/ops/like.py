"""The shape of an array, and new arrays of the same shape and dtype.

A buffer made by `zeros_like` of a tensor is itself a tensor: recorded ones can be put into it.
"""

from __future__ import annotations

import math
from typing import Any

from gradtape.backends import array_module
from gradtape.core.aval import Abstract
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, as_dtype, as_shape, normalize_axes
from gradtape.ops.cast import astype, copy
from gradtape.ops.device import check_device, device_of
from gradtape.ops.family import member
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike, Axis, Shape


def shape(x: ArrayLike, /) -> tuple[int, ...]:
    """The sizes of the axes.

    Returns:
        A tuple with one integer for each axis.

    >>> gt.shape(np.ones((2, 3)))
    (2, 3)
    """
    return tuple(as_array(x).shape)


def ndim(x: ArrayLike, /) -> int:
    """The number of axes.

    >>> gt.ndim(np.ones((2, 3)))
    2
    """
    return len(as_array(x).shape)


def size(x: ArrayLike, /, axis: Axis = None) -> int:
    """The number of elements, or the number of places along the given axes.

    Args:
        x: What to measure.
        axis: One or several axes; None counts all elements.

    Raises:
        AxisError: There is no such axis.

    >>> gt.size(np.ones((2, 3)))
    6
    """
    sizes = as_array(x).shape
    return math.prod(sizes[a] for a in normalize_axes(axis, len(sizes), "size"))


def _like(
    name: str,
    x: ArrayLike,
    /,
    dtype: Any = None,
    *,
    shape: Shape | None = None,
    device: Any = None,
    order: str = "K",
    subok: bool = True,
) -> Array:
    """{what}.

    Args:
        x: What to take shape and dtype from; a tensor gives a tensor.
        dtype: Another dtype.
        shape: Another shape.
        device: None or that of `x`: gradtape does not move arrays.
        order: Without effect: results do not depend on the layout of memory.
        subok: Without effect: there are no subclasses.

    zeros_like:
    >>> gt.zeros_like(np.ones(2))
    array([0., 0.])

    ones_like:
    >>> gt.ones_like(np.zeros(2))
    array([1., 1.])

    empty_like:
    >>> gt.empty_like(np.zeros(2)).shape
    (2,)
    """
    x = as_array(x)
    check_device(device, name, device_of(x))
    sizes = x.shape if shape is None else as_shape(shape, name)
    raw = innermost(x, show=True) if isinstance(x, Tensor) else x
    kind = x.dtype if dtype is None else as_dtype(dtype, name)
    if isinstance(raw, Abstract):
        return raw.filled(1 if name == "ones_like" else 0, sizes, kind)
    made = getattr(array_module(raw), name.removesuffix("_like"))(sizes, kind)
    return Tensor(made) if isinstance(x, Tensor) else made


_OWN = "of the same shape and dtype; a tensor of its own, which can be assigned to"
_UNSET = "An array of the same shape and dtype, its elements not set"
zeros_like = member("zeros_like", _like, what=f"Zeros {_OWN}")
ones_like = member("ones_like", _like, what=f"Ones {_OWN}")
empty_like = member("empty_like", _like, what=_UNSET)


def full_like(
    x: ArrayLike,
    /,
    fill_value: ArrayLike,
    dtype: Any = None,
    *,
    shape: Shape | None = None,
    device: Any = None,
    order: str = "K",
    subok: bool = True,
) -> Array:
    """The fill value repeated to the same shape and dtype.

    Only the fill value is differentiated.

    Args:
        x: What to take shape and dtype from; a tensor gives a tensor.
        fill_value: A number, or an array that broadcasts to the shape.
        dtype: Another dtype.
        shape: Another shape.
        device: None or that of `x`: gradtape does not move arrays.
        order: Without effect: results do not depend on the layout of memory.
        subok: Without effect: there are no subclasses.

    Raises:
        ShapeError: The fill value does not broadcast to the shape.

    >>> gt.full_like(np.zeros(2), 3.0)
    array([3., 3.])
    """
    buffer = zeros_like(x, dtype, shape=shape, device=device)
    if isinstance(buffer, Tensor) and isinstance(innermost(buffer, show=True), Abstract):
        buffer[...] = fill_value
        return buffer
    if isinstance(fill_value, Tensor):
        # Memory of its own, not a broadcast view of one number.
        return copy(broadcast_to(astype(fill_value, buffer.dtype, copy=False), buffer.shape))
    array = buffer.value if isinstance(buffer, Tensor) else buffer
    try:
        array[...] = fill_value
    except ValueError as error:
        raise ShapeError(f"full_like: got shape {array.shape}; {error}") from None
    except TypeError as error:
        raise DTypeError(
            f"full_like: got fill_value={fill_value!r} for {array.dtype}; {error}; give dtype="
        ) from None
    return buffer
