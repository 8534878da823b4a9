"""What functions of arrays do with their arguments: axes, shapes, dtypes, options of NumPy."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.op import registry
from gradtape.core.spellings import keyword_advice
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import AxisError, DTypeError, GradtapeError, ShapeError, UnsupportedError
from gradtape.typing import Array, ArrayLike, Axis, Shape

# A batched result and where its batch axis is.
Batch = tuple[Any, int]
INTEGER = (int, np.integer)
ARRAYS = (Tensor, np.ndarray)
EVERY_AXIS = tuple(tuple(range(ndim)) for ndim in range(65))  # NumPy allows 64 axes


def as_array(x: ArrayLike) -> Array:
    """`x` if it has a shape, else (numbers, lists) an array of it."""
    return x if isinstance(x, ARRAYS) or hasattr(x, "shape") else np.asarray(as_value(x))


def normalize_axis(axis: int, ndim: int, name: str) -> int:
    """An axis counted from the front, checked."""
    try:
        axis = operator.index(axis)
    except TypeError as error:
        if isinstance(error, GradtapeError):
            raise
        raise DTypeError(f"{name}: came axis {axis!r}; needed an integer") from None
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"{name}: came axis {axis} for an array of {ndim} axes; needed one from "
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
        raise AxisError(f"{name}: came axis {tuple(axis)}; an axis was named twice")
    return axes


def as_shape(shape: Shape, name: str) -> tuple[int, ...]:
    """A size or a sequence of sizes as a tuple, checked."""
    sizes = shape if isinstance(shape, Sequence | np.ndarray) else (shape,)
    try:
        result = tuple(operator.index(size) for size in sizes)
    except TypeError as error:
        raise ShapeError(
            f"{name}: came shape {shape!r}; needed an integer or a tuple of integers"
        ) from error
    if any(size < 0 for size in result):
        raise ShapeError(f"{name}: came shape {result}; a size cannot be negative")
    return result


def as_dtype(dtype: Any, name: str) -> np.dtype[Any]:
    """What was given as dtype (None: float64), checked."""
    try:
        return np.dtype(np.float64 if dtype is None else dtype)
    except TypeError as error:
        raise DTypeError(
            f"{name}: came dtype {dtype!r}; needed a dtype such as gt.float32; several sizes go "
            "into one tuple: (2, 3)"
        ) from error


def refuse(name: str, options: dict[str, Any]) -> None:
    """Raise for options NumPy has and gradtape has not, unless they were left at None."""
    for option, value in options.items():
        if value is not None and value is not np._NoValue:
            advice = keyword_advice([option])
            raise UnsupportedError(
                f"{name}: came {option}=; "
                + (
                    advice
                    or "gradtape does not take it; leave it out and apply it to the argument or to "
                    "the result"
                )
            )


def masked(
    name: str,
    x: ArrayLike,
    axis: Axis,
    dtype: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
    unsupported: dict[str, Any],
) -> Array:
    """A reduction with `initial` or `where`, by a family of ops that is loaded for it."""
    refuse(name, unsupported)
    return registry.functions["reduce_where"](name, x, axis, dtype, keepdims, initial, where)


def weak_or_array(value: ArrayLike) -> Any:
    """Lists as arrays; Python's numbers stay, as they do not decide the dtype."""
    return value if isinstance(value, int | float) else as_array(value)
