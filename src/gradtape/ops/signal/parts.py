"""Helpers for signals: parts along the last axis, dtypes, windows, continuation beyond the ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate
from gradtape.ops.pad import pad_constant
from gradtape.ops.pad_modes import pad
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike

# How a signal may continue beyond its ends -> the mode of `pad`; "odd" has none.
_CONTINUED = {"zeros": "constant", "constant": "edge", "even": "reflect"}
CONTINUATIONS = (*_CONTINUED, "odd", None)


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


def time_last(name: str, x: ArrayLike, axis: int) -> tuple[Array, int]:
    """The same with the axis of time moved to the end."""
    x, axis = signal_along(name, x, axis)
    return moveaxis(x, axis, -1), axis


def in_common(name: str, *arrays: Any) -> list[Any]:
    """Arrays in the common dtype of a filter: single or double precision, real or complex."""
    dtype = np.result_type(*(array.dtype for array in arrays))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    if dtype.char not in "fdFD":
        raise DTypeError(f"{name}: got {dtype}, expected float32 or float64; use astype")
    return [astype(array, dtype, copy=False) for array in arrays]


def vector(name: str, what: str, x: ArrayLike) -> Any:
    """A vector, or a number as one, checked to have elements."""
    x = as_array(x)
    if len(x.shape) > 1 or 0 in x.shape:
        raise ShapeError(
            f"{name}: got {what} of shape {x.shape}, expected one axis of at least one element"
        )
    return reshape(x, (-1,))


def window_of(name: str, window: Any, size: int, *, periodic: bool = True) -> Any:
    """A window given by its name in SciPy, or as an array, which is checked to have that size."""
    if isinstance(window, str | tuple):
        import scipy.signal

        return scipy.signal.get_window(window, size, fftbins=periodic)
    window = as_array(window)
    if window.shape != (size,):
        raise ShapeError(f"{name}: got a window of shape {window.shape}, expected ({size},)")
    return window


def along_last(ndim: int, width: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Widths of padding for the last of `ndim` axes."""
    return (*((0, 0),) * (ndim - 1), width)


def longer(x: Any, before: int, after: int) -> Any:
    """The array with zeros before and after it along the last axis."""
    return pad_constant(x, widths=along_last(len(x.shape), (before, after)), fill=0)


def padded(x: Any, widths: Any, mode: str, value: Any) -> Any:
    """The array continued by `pad`; the value, which may be a tensor, is for "constant"."""
    if mode == "constant":
        return pad(x, widths, constant_values=value)
    return pad(x, widths, mode=mode)


def extended(x: Any, kind: str | None, length: int) -> Any:
    """The signal continued beyond both ends of its last axis.

    Args:
        x: The signal; longer than `length` for "even" and "odd".
        kind: "zeros", "constant" (the last element), "even" (mirrored), "odd" (mirrored and turned
            upside down), or None for not at all.
        length: By how many elements.
    """
    if kind is None or length == 0:
        return x
    if kind != "odd":
        return pad(x, along_last(len(x.shape), (length, length)), mode=_CONTINUED[kind])
    size = x.shape[-1]
    before = 2 * part(x, 0, 1) - flip(part(x, 1, length + 1), -1)
    after = 2 * part(x, size - 1, size) - flip(part(x, size - 1 - length, size - 1), -1)
    return concatenate([before, x, after], -1)
