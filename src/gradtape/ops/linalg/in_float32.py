"""Functions that compute in float32 when given float16 or narrower floats."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradtape.core.small_floats import FLOAT32
from gradtape.ops.cast import astype

F = TypeVar("F", bound=Callable[..., Any])


def in_float32(function: F) -> F:
    """Make a function compute in float32 when given float16 or narrower floats.

    Results in float32 are rounded to the dtype of the arguments, if they share one. Containers
    of arrays among the arguments are looked into, as far as tuples and lists go.
    """

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if _has_short(value):
                break
        else:
            if not (kwargs and any(map(_has_short, kwargs.values()))):
                return function(*args, **kwargs)
        floats = {leaf.dtype for leaf in _arrays((args, kwargs)) if leaf.dtype.kind in "fcV"}
        short = floats.pop() if len(floats) == 1 else None
        out = function(
            *map(_lengthened, args), **{key: _lengthened(value) for key, value in kwargs.items()}
        )
        return out if short is None else _shortened(out, short)

    return computed  # type: ignore[return-value]


def _has_short(value: Any) -> bool:
    """Whether a value is an array of floats narrower than float32, or has one in it."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return _is_short(dtype)
    return type(value) in (tuple, list) and any(map(_has_short, value))


def _is_short(dtype: Any) -> bool:
    return getattr(dtype, "itemsize", 4) <= 2 and dtype.kind in "fV"


def _arrays(value: Any) -> list[Any]:
    """The arrays and tensors in a value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _arrays(part)]
    return [value] if isinstance(getattr(value, "dtype", None), np.dtype) else []


def _lengthened(value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(map(_lengthened, value))
    return _cast(value, FLOAT32) if _has_short(value) else value


def _shortened(out: Any, dtype: np.dtype[Any]) -> Any:
    """Results in float32 as another dtype."""
    if isinstance(out, tuple | list):
        parts = [_shortened(part, dtype) for part in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return _cast(out, dtype) if getattr(out, "dtype", None) == FLOAT32 else out


def _cast(value: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, np.generic):
        return value.astype(dtype)  # stays a number
    return astype(value, dtype)
