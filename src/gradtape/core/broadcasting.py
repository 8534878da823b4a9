"""Derivatives in the shapes and dtypes of their primals: broadcast forward, summed backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.needed_ops import needed
from gradtape.errors import ShapeError


def broadcast_sizes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """NumPy's broadcasting on shapes that may hold symbolic sizes."""
    common: tuple[Any, ...] = ()
    for shape in shapes:
        if shape and shape != common:
            if common:
                break
            common = shape
    else:
        return common  # arrays of one shape, and numbers
    ndim = max((len(shape) for shape in shapes), default=0)
    result: list[Any] = [1] * ndim
    for shape in shapes:
        for axis, size in enumerate(shape, start=ndim - len(shape)):
            if size != 1 and result[axis] != 1 and size != result[axis]:
                raise ShapeError(
                    f"shapes {', '.join(map(str, shapes))} do not broadcast, expected sizes that "
                    "are equal or 1, counted from the last axis; x[:, None] adds an axis of size 1"
                )
            if size != 1:
                result[axis] = size
    return tuple(result)


def broadcast_tangent(tangent: Any, out: Any) -> Any:
    """A tangent broadcast and cast to the shape and dtype of its primal."""
    if tangent.shape != out.shape:
        tangent = needed.broadcast_to(tangent, out.shape)
    return fit(tangent, out)


def unbroadcast(ct: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which its primal of `shape` was broadcast."""
    if ct.shape == shape:
        return ct
    extra = len(ct.shape) - len(shape)
    axes = tuple(range(extra))
    if 1 in shape:
        axes += tuple(
            axis + extra
            for axis, size in enumerate(shape)
            if size == 1 and ct.shape[axis + extra] != 1
        )
    if type(ct) is np.ndarray:
        total = np.add.reduce(ct, axis=axes)
        return total if shape and len(axes) == extra else total.reshape(shape)
    summed = needed.sum(ct, axis=axes, keepdims=False) if axes else ct
    return needed.reshape(summed, shape)


def fit(cotangent: Any, primal: Any) -> Any:
    """A cotangent in the dtype of its primal: real for a real primal, and cast if necessary."""
    dtype = primal.dtype if hasattr(primal, "dtype") else np.float64
    if cotangent.dtype == dtype:
        return cotangent
    if cotangent.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        cotangent = needed.real(cotangent)
    return needed.astype(cotangent, dtype)
