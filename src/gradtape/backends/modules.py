"""Which array module a raw value belongs to.

NumPy is always there. CuPy is never imported here: an array that *is* a CuPy array brings its
module with it, so looking its type up is enough and costs nothing when CuPy is absent.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from gradtape.errors import DTypeError, GradtapeError, ShapeError, a_type

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


def make_array(value: Any, dtype: Any = None) -> Any:
    """An array of numbers of what is not one yet: lists, objects with `__array__`.

    Raises:
        ShapeError: Lists in lists differ in their lengths.
        DTypeError: It has no numbers in it.
    """
    try:
        array = np.asarray(value, dtype)
    except ValueError as error:
        # NumPy asks tensors in lists for their values, and hides what they have to say.
        hidden = error.__cause__ or error.__context__
        if isinstance(hidden, GradtapeError):
            raise hidden from None
        if "inhomogeneous" not in str(error):
            raise
        raise ShapeError(
            "got lists of different lengths in a list, expected the same length for all; fill them "
            "up, or use several arrays"
        ) from None
    if array.dtype.kind in "OUS" and dtype is None:
        raise DTypeError(f"got {_what(value)}, expected an array, a number, or lists of numbers")
    return array


def _what(value: Any) -> str:
    return "None" if value is None else f"{a_type(value)} that is no array of numbers"


def as_index(array: Any) -> int:
    """The number in an array of one integer, as positions, sizes and axes are.

    Raises:
        DTypeError: It is not an integer, or not one.
    """
    try:
        return operator.index(array)
    except TypeError:
        raise DTypeError(
            f"got a tensor of {array.dtype}{list(array.shape)}, expected an integer; use int(t), "
            "or int(t.item()) while it is recorded"
        ) from None


def is_raw(value: Any) -> bool:
    """Whether `value` is an array or number of a backend, as opposed to a tensor or a container."""
    return isinstance(value, _NUMPY_TYPES) or type(value).__module__.partition(".")[0] == "cupy"
