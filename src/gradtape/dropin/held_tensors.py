"""Whether there is a tensor among the arguments of a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.tensor import OBJECTS
from gradtape.ops import joined
from gradtape.ops.joined import PLAIN


def any_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments of a call are tensors, or hold some.

    >>> from gradtape.dropin.held_tensors import any_tensor
    >>> any_tensor(({"x": gt.ones(2)}, 1.0), {}), any_tensor((np.ones(2),), {"axis": 0})
    (True, False)
    """
    for value in args:
        kind = type(value)
        if kind is np.ndarray:
            if value.dtype is OBJECTS and holds_tensor(value):
                return True
        elif kind not in PLAIN and holds_tensor(value):
            return True
    return bool(kwargs) and any(map(holds_tensor, kwargs.values()))


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor, a container of some, or an object of ours made of tensors."""
    if isinstance(value, list | tuple | set):
        return any(type(item) not in PLAIN and holds_tensor(item) for item in value)
    if isinstance(value, dict):
        return any(map(holds_tensor, value.values()))
    if hasattr(type(value), "holds_tensors"):
        return bool(value.holds_tensors)
    return joined.holds_tensor(value)
