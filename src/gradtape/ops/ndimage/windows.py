"""What filters of images share: their windows, and how an array goes on beyond its ends."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import normalize_axes
from gradtape.ops.pad import pad
from gradtape.typing import Array, Axis

# SciPy's name for what lies beyond the ends -> NumPy's, of `pad`.
_PADDING = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def per_axis(name: str, what: str, value: Any, count: int) -> list[Any]:
    """One value for all axes, or one for each, as a list."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise ShapeError(
            f"{name}: came {what}={value}; needed one, or one for each of {count} axes"
        )
    return values


def chosen_axes(name: str, ndim: int, axes: Axis) -> tuple[int, ...]:
    return normalize_axes(axes, ndim, name)


def surrounded(
    name: str,
    x: Array,
    sizes: dict[int, int],
    modes: Sequence[str],
    cval: float,
    origins: Sequence[int],
) -> Array:
    """The array continued along axes, so that a window of the given sizes fits everywhere.

    Args:
        name: The function, for errors.
        x: The array.
        sizes: The size of the window along axes.
        modes: What lies beyond the ends of each of these axes.
        cval: The number for "constant".
        origins: By how much the window is moved along each of them.
    """
    for (axis, size), mode, origin in zip(sizes.items(), modes, origins, strict=True):
        if mode not in _PADDING:
            raise ArgumentError(f"{name}: came mode={mode!r}; needed one of {', '.join(_PADDING)}")
        before = size // 2 + operator.index(origin)
        if size < 1 or not 0 <= before < size:
            raise ArgumentError(
                f"{name}: came a window of {size} with origin={origin}; needed at least one "
                "element, and an origin inside of the window"
            )
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (before, size - 1 - before)
        # What goes on beyond the ends of an axis without elements, no window sees.
        if _PADDING[mode] == "constant" or x.shape[axis] == 0:
            x = pad(x, widths, constant_values=cval)
        elif size > 1:
            x = pad(x, widths, mode=_PADDING[mode])
    return x
