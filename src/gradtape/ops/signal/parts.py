"""Helpers for signals: parts along the last axis, dtypes, continuation beyond the ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.pad import pad_constant
from gradtape.ops.pad_modes import pad
from gradtape.ops.rearrange import flip
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike

# How a signal may continue beyond its ends -> the mode of `pad`; "odd" has none.
_CONTINUED = {"zeros": "constant", "constant": "edge", "even": "reflect"}


def part(x: Any, start: int | None, stop: int | None, step: int | None = None) -> Any:
    """Elements along the last axis."""
    return getitem(x, (Ellipsis, slice(start, stop, step)))


def signal_along(name: str, x: ArrayLike, axis: int) -> tuple[Array, int]:
    """The signal as an array, checked to have elements along its axis of time, and that axis."""
    x = as_array(x)
    axis = normalize_axis(axis, len(x.shape), name)
    if x.shape[axis] == 0:
        raise ShapeError(f"{name}: got shape {x.shape}, expected elements along axis {axis}")
    return x, axis


def in_common(name: str, *arrays: Any) -> list[Any]:
    """Arrays in the common dtype of a filter: single or double precision, real or complex."""
    dtype = np.result_type(*(array.dtype for array in arrays))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    if dtype.char not in "fdFD":
        raise DTypeError(f"{name}: got {dtype}, expected float32 or float64; use astype")
    return [astype(array, dtype, copy=False) for array in arrays]


def along_last(ndim: int, width: tuple[int, int]) -> list[tuple[int, int]]:
    """Widths of padding for the last of `ndim` axes."""
    return [(0, 0)] * (ndim - 1) + [width]


def padded(x: Any, widths: Any, value: Any) -> Any:
    """The array with a number around it, which may be a tensor."""
    if not isinstance(value, Tensor):
        return pad(x, widths, constant_values=value)
    widths = tuple(map(tuple, widths))
    inside = np.pad(np.ones(x.shape, bool), widths)
    return where(inside, pad_constant(x, widths=widths, fill=0), astype(value, x.dtype))


def extended(name: str, option: str, x: Any, kind: str | None, length: int) -> Any:
    """The signal continued beyond both ends of its last axis.

    Args:
        name: The function, for errors.
        option: Its option, likewise.
        x: The signal.
        kind: "zeros", "constant" (the last element), "even" (mirrored), "odd" (mirrored and turned
            upside down), or None for not at all.
        length: By how many elements.
    """
    if kind not in (*_CONTINUED, "odd", None):
        kinds = ", ".join(map(repr, (*_CONTINUED, "odd", None)))
        raise ArgumentError(f"{name}: got {option}={kind!r}, expected one of {kinds}")
    if kind is None or length == 0:
        return x
    size, widths = x.shape[-1], along_last(len(x.shape), (length, length))
    if length >= size and kind in ("even", "odd"):
        raise ShapeError(
            f"{name}: got {size} elements in time, expected more than are put before and after, "
            f"which is {length}"
        )
    if kind != "odd":
        return pad(x, widths, mode=_CONTINUED[kind])
    before = 2 * part(x, 0, 1) - flip(part(x, 1, length + 1), -1)
    after = 2 * part(x, size - 1, size) - flip(part(x, size - 1 - length, size - 1), -1)
    return concatenate([before, x, after], -1)
