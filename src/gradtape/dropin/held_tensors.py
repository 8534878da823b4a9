"""Whether there is a tensor among the arguments of a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor

# Types that hold no tensors; an array may hold some as objects.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), slice, np.float64, np.dtype})
_OBJECTS = np.dtype(object)


def any_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of a call are tensors, or hold some."""
    for value in args:
        kind = type(value)
        if kind is np.ndarray:
            if value.dtype is _OBJECTS and holds_tensor(value):
                return True
        elif kind not in _PLAIN and holds_tensor(value):
            return True
    return bool(kwargs) and any(map(holds_tensor, kwargs.values()))


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor, a container of some, or an object of ours made of tensors.

    >>> from gradtape.dropin.held_tensors import holds_tensor
    >>> holds_tensor([1.0, (gt.ones(()), 2.0)]), holds_tensor([1.0, np.ones(3)])
    (True, False)
    """
    if isinstance(value, Tensor):
        return True
    if isinstance(value, list | tuple | set):
        return any(type(item) not in _PLAIN and holds_tensor(item) for item in value)
    if isinstance(value, dict):
        return any(map(holds_tensor, value.values()))
    if isinstance(value, np.ndarray):
        return value.dtype == _OBJECTS and any(isinstance(item, Tensor) for item in value.flat)
    return getattr(type(value), "holds_tensors", False)
