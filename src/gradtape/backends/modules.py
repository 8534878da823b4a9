"""Which array module a raw value belongs to.

NumPy is always there. CuPy is never imported here: an array that *is* a CuPy array brings its
module with it, so looking its type up is enough and costs nothing when CuPy is absent.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_NUMPY_TYPES = (np.ndarray, np.generic, bool, int, float, complex)


def array_module(*values: Any) -> Any:
    """Return the module (`numpy` or `cupy`) that computes on these raw values."""
    for value in values:
        if type(value) is not np.ndarray and type(value).__module__.partition(".")[0] == "cupy":
            return sys.modules["cupy"]
    return np


def to_numpy(value: Any) -> Any:
    """A raw value as a NumPy array; one of another device is copied from there."""
    return value.get() if hasattr(value, "get") else np.asarray(value)


def is_raw(value: Any) -> bool:
    """Whether `value` is an array or number of a backend, as opposed to a tensor or a container."""
    return isinstance(value, _NUMPY_TYPES) or type(value).__module__.partition(".")[0] == "cupy"
