"""Arrays that are written as lists of tensors, or as NumPy's arrays of tracked numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.tensor import OBJECTS, Tensor
from gradtape.errors import DTypeError, ShapeError, a_type
from gradtape.ops.arguments import as_array
from gradtape.ops.join import stack
from gradtape.ops.shape import reshape

# Types that hold no tensors; an array may hold some as objects.
PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), slice, np.float64})


def holds_tensor(data: Any) -> bool:
    """Whether data is a tensor, or nested sequences or an array of objects with one in them.

    >>> from gradtape.ops.joined import holds_tensor
    >>> holds_tensor([1.0, (gt.ones(()), 2.0)]), holds_tensor([1.0, np.ones(3)])
    (True, False)
    """
    if isinstance(data, Tensor):
        return True
    if isinstance(data, list | tuple):
        return any(type(item) not in PLAIN and holds_tensor(item) for item in data)
    if isinstance(data, np.ndarray) and data.dtype is OBJECTS:
        return any(isinstance(item, Tensor) for item in data.flat)
    return False


def joined(data: Any) -> Any:
    """Data that holds tensors, as one tensor; anything else as it is.

    NumPy's functions of tracked numbers also give arrays of objects that are plain numbers, as
    `np.sign` does; these become arrays of numbers.

    Args:
        data: A tensor, nested sequences, or an array of objects.

    Raises:
        DTypeError: Something beside the tensors is no number.
        ShapeError: Sequences differ in their lengths, or tensors in their shapes.

    >>> from gradtape.ops.joined import joined
    >>> joined([[gt.ones(()), 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(data, Tensor):
        return data
    if not holds_tensor(data):
        is_plain = isinstance(data, np.ndarray) and data.dtype is OBJECTS
        return np.array(data.tolist()) if is_plain and all(map(_is_number, data.flat)) else data
    if isinstance(data, np.ndarray):
        return reshape(stack([_number(item) for item in data.flat]), data.shape)
    numbers: list[Any] = []
    shape = _numbers_in(data, numbers)
    if shape is not None:
        return reshape(stack(numbers), shape)
    parts = [as_array(joined(item)) for item in data]
    if len({part.shape for part in parts}) > 1:
        raise ShapeError(
            f"got {', '.join(str(aval_of(part)) for part in parts)} in a list, expected one shape "
            "for all"
        )
    return stack(parts)


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float | complex | np.number | np.bool)


def _number(item: Any) -> Any:
    """An element of an array of objects."""
    if _is_number(item) or (isinstance(item, Tensor) and not item.shape):
        return item
    raise DTypeError(
        f"got {a_type(item)} beside tensors in an array of objects, expected numbers; use "
        "gt.stack, or gt.asarray of nested lists"
    )


def _numbers_in(data: Any, found: list[Any]) -> tuple[int, ...] | None:
    """The shape of nested sequences of numbers, put into `found`; None if there are others."""
    if not isinstance(data, list | tuple):
        found.append(data)
        return () if type(data) in PLAIN or getattr(data, "shape", None) == () else None
    shapes = {_numbers_in(item, found) for item in data}
    if None in shapes:
        return None
    if len(shapes) > 1:
        raise ShapeError(
            "got lists of different lengths in a list, expected the same length for all; fill them "
            "up, or use several arrays"
        )
    return (len(data), *shapes.pop()) if shapes else (0,)  # type: ignore[misc]
