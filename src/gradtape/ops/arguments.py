"""Check and convert arguments of array functions: axes, shapes, dtypes, numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import advice
from gradtape.core.state import adopted
from gradtape.core.tensor import OBJECTS, Tensor, as_value, is_extended_float
from gradtape.errors import AxisError, DTypeError, GradtapeError, ShapeError
from gradtape.typing import Array, ArrayLike, Axis, Shape

# A batched result and where its batch axis is.
Batch = tuple[Any, int]
INTEGER = (int, np.integer)
_FLOAT = np.dtype(np.float64)
ARRAYS = (Tensor, np.ndarray)
EVERY_AXIS = tuple(tuple(range(ndim)) for ndim in range(65))  # NumPy allows 64 axes


def as_array(x: ArrayLike) -> Array:
    """`x` if it has a shape, else (numbers, lists) an array of it."""
    if isinstance(x, ARRAYS) or hasattr(x, "shape"):
        return as_value(x) if x.dtype is OBJECTS else x
    value = as_value(x)
    return value if isinstance(value, Tensor) else np.asarray(value)


def normalize_axis(axis: int, ndim: int, name: str) -> int:
    """An axis counted from the front, checked."""
    if type(axis) is not int:
        if type(axis) is bool:
            raise DTypeError(f"{name}: got axis={axis}, expected an integer")
        axis = as_integer(axis, name, "axis")
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"{name}: got axis {axis} for an array of {ndim} axes, expected one from "
            f"{-ndim} to {ndim - 1}"
        )
    return axis % ndim


def normalize_axes(axis: Axis, ndim: int, name: str) -> tuple[int, ...]:
    """One or several axes (None: all) as a tuple counted from the front, checked."""
    if axis is None:
        return EVERY_AXIS[ndim]
    if type(axis) is int or not isinstance(axis, Sequence):
        return (normalize_axis(axis, ndim, name),)
    axes = tuple(normalize_axis(a, ndim, name) for a in axis)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: got axis {tuple(axis)}; an axis was named twice")
    return axes


def as_integer(value: Any, name: str, option: str) -> int:
    """An integer given as `option`, checked; 2.0 is not one."""
    try:
        return operator.index(value)
    except TypeError as error:
        if isinstance(error, GradtapeError):
            raise
    raise DTypeError(f"{name}: got {option}={advice.shown(value)}, expected an integer") from None


def as_number(value: Any, name: str, option: str) -> float:
    """A real number given as `option`, checked."""
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError) as error:
        if isinstance(error, GradtapeError):
            raise
    raise DTypeError(
        f"{name}: got {option}={advice.shown(value)}, expected a real number"
    ) from None


def not_a_shape(name: str, shape: Any) -> ShapeError:
    """The error for something that is neither a size nor a sequence of sizes."""
    text = f"{name}: got shape {shape!r}, expected an integer or a tuple of integers"
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    if any(isinstance(size, Tensor) for size in sizes):
        text += "; name an argument of gt.jit that is a size in static_argnums or static_argnames"
    return ShapeError(text)


def as_shape(shape: Shape, name: str) -> tuple[int, ...]:
    """A size or a sequence of sizes as a tuple, checked."""
    several = isinstance(shape, Sequence) or (isinstance(shape, np.ndarray) and shape.ndim > 0)
    sizes: Any = shape if several else (shape,)
    try:
        result = tuple([operator.index(size) for size in sizes])
    except TypeError as error:
        raise not_a_shape(name, shape) from error
    if bool in map(type, sizes):
        raise ShapeError(f"{name}: got shape {shape!r}, expected integers, not truth values")
    if result and min(result) < 0:
        raise ShapeError(f"{name}: got shape {result}; a size cannot be negative")
    return result


def as_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """A dtype argument (None: float64), checked: one of numbers or truth values."""
    if dtype is None:
        return np.dtype(np.float64)
    error = None
    try:
        # NumPy would take a tensor's own dtype.
        found: np.dtype[Any] | None = None if isinstance(dtype, Tensor) else np.dtype(dtype)
    except (TypeError, ValueError) as raised:
        found, error = None, raised
    if found is None or not (found.kind in "biufc" or is_extended_float(found)):
        raise DTypeError(
            f"{name}: got dtype {dtype!r}, expected a dtype such as gt.float32; several sizes go "
            "into one tuple: (2, 3)"
        ) from error
    return found


def check_real(name: str, **options: Any) -> None:
    """Raise for complex numbers in options that must be real."""
    for option, value in options.items():
        if isinstance(value, complex) or getattr(value, "dtype", _FLOAT).kind == "c":
            raise DTypeError(f"{name}: got {option}={advice.shown(value)}, expected a real number")


def real_only(name: str, x: Any) -> Any:
    """`x`; raises if it is complex, as complex numbers have no order."""
    if getattr(x, "dtype", _FLOAT).kind == "c":
        raise DTypeError(
            f"{name}: got {advice.shown(x)}, expected real numbers; use gt.real or gt.abs"
        )
    return x


def weak_or_array(value: ArrayLike) -> Any:
    """Lists as arrays; Python numbers stay, as they do not decide the dtype."""
    return value if isinstance(value, int | float) else adopted(as_array(value))
