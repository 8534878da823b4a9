"""Shared by image filters: their windows, and how an array continues beyond its edges."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.checks import check_choice, check_least
from gradtape.ops.family import member
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.signal.parts import padded
from gradtape.typing import Array, ArrayLike, Axis

P = ParamSpec("P")
R = TypeVar("R")

# SciPy's name for a continuation beyond the ends -> NumPy's, as in `pad`.
_PADDING = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge"}
_PADDING |= {"wrap": "wrap", "constant": "constant"}
_PADDING |= {"grid-mirror": "symmetric", "grid-wrap": "wrap", "grid-constant": "constant"}

# The options that filters share: over several axes, and along one.
FILTERS = {
    "input": "The array.",
    "size": "The size of the window, for all axes or for each.",
    "footprint": "Which elements of a window count, instead of `size`.",
    "mode": 'What lies beyond the ends, for all axes or for each: "reflect" (mirrored, the last '
    'element twice), "mirror" (once), "nearest" (the last element), "wrap" (the other end), '
    '"constant".',
    "cval": 'The number for "constant".',
    "origin": "By how many elements the window is moved, for all axes or for each.",
    "axes": "Over which axes; None takes all of them.",
    "sigma": "The standard deviation in elements, for all axes or for each.",
}
ALONG = FILTERS | {
    "size": "Of how many neighbours.",
    "axis": "Along which axis.",
    "mode": FILTERS["mode"].replace(", for all axes or for each", ""),
    "origin": "By how many elements the window is moved.",
}


def members(
    declared: Callable[Concatenate[str, P], R], summaries: dict[str, str]
) -> list[Callable[P, R]]:
    """Functions from one declaration, each with a summary of its own.

    Args:
        declared: The function they call, with a name before their own arguments.
        summaries: The text for `{what}` in the docstring, for each name.
    """
    return [member(name, declared, what=what) for name, what in summaries.items()]


def per_axis(name: str, what: str, value: Any, count: int) -> list[Any]:
    """One value for all axes, or one for each, as a list."""
    several = isinstance(value, Sequence) and not isinstance(value, str)
    if not several and not getattr(value, "shape", ()):
        return [value] * count
    if len(value) != count:
        raise ShapeError(
            f"{name}: got {what}={value}, expected one, or one for each of {count} axes"
        )
    return list(value)


def along_each(
    name: str, x: Array, axes: Axis, function: Callable[..., Array], **given: Any
) -> Array:
    """A filter along each of some axes, one after the other.

    Args:
        name: The function, for errors.
        x: The array.
        axes: The axes; None for all of them.
        function: The filter along one axis.
        **given: Its options, for all axes or for each.
    """
    chosen = normalize_axes(axes, len(x.shape), name)
    options = [per_axis(name, what, value, len(chosen)) for what, value in given.items()]
    for axis, *values in zip(chosen, *options, strict=True):
        x = function(x, axis=axis, **dict(zip(given, values, strict=True)))
    return x


def floating(name: str, x: ArrayLike) -> Array:
    """`x` as an array of a dtype that SciPy's functions on images take."""
    x = as_array(x)
    if x.dtype.char not in "fdFD":
        raise DTypeError(
            f"{name}: got {x.dtype}, expected float32 or float64, real or complex; use astype"
        )
    return x


def real_floating(name: str, x: ArrayLike) -> Array:
    """`x` as an array of floating numbers that have an order."""
    x = floating(name, x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers")
    return x


def window_of(name: str, size: Any, footprint: Any, count: int) -> Any:
    """Which elements of a window over `count` axes count, as an array of booleans."""
    if footprint is None:
        if size is None:
            raise ArgumentError(f"{name}: got neither size nor footprint, expected one of them")
        sizes = [operator.index(n) for n in per_axis(name, "size", size, count)]
        check_least(name, 1, size=min(sizes, default=1))
        footprint = np.ones(sizes, bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != count or not footprint.any():
        raise ArgumentError(
            f"{name}: got a footprint of shape {footprint.shape} with {footprint.sum()} elements, "
            f"expected {count} axes and at least one element"
        )
    return footprint


def turned_origins(name: str, origin: Any, sizes: Sequence[int]) -> list[int]:
    """The origins of a reversed window of some sizes; its middle moves where a size is even."""
    origins = per_axis(name, "origin", origin, len(sizes))
    return [-one - (size % 2 == 0) for one, size in zip(origins, sizes, strict=True)]


def surrounded(
    name: str,
    x: Array,
    axes: Sequence[int],
    sizes: Sequence[int],
    mode: Any,
    cval: Any,
    origin: Any,
) -> Array:
    """The array continued along axes, so that a window of the given sizes fits everywhere.

    Args:
        name: The function, for errors.
        x: The array.
        axes: The axes.
        sizes: The size of the window along each of them.
        mode: What lies beyond the ends, of all axes or of each.
        cval: The number for "constant".
        origin: By how much the window is moved, along all axes or along each.
    """
    modes = per_axis(name, "mode", mode, len(axes))
    origins = per_axis(name, "origin", origin, len(axes))
    for axis, size, mode, origin in zip(axes, sizes, modes, origins, strict=True):
        check_choice(name, _PADDING, mode=mode)
        before = size // 2 + operator.index(origin)
        if not 0 <= before < size:
            raise ArgumentError(
                f"{name}: got a window of {size} with origin={origin}, expected an origin inside it"
            )
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = (before, size - 1 - before)
        # If an axis has no elements, no window sees what lies beyond its ends.
        x = padded(x, widths, _PADDING[mode] if x.shape[axis] else "constant", cval)
    return x


def neighbours(
    name: str, x: Array, footprint: Any, axes: Sequence[int], mode: Any, cval: Any, origin: Any
) -> Array:
    """The neighbours of each element, one for each True of a window over some axes.

    They come along a new first axis, in the order of `np.argwhere(footprint)`. `mode` and `origin`
    are given for all axes, or for each.
    """
    around = surrounded(name, x, axes, footprint.shape, mode, cval, origin)
    found = []
    for place in np.argwhere(footprint).tolist():
        index = [slice(None)] * len(x.shape)
        for axis, start in zip(axes, place, strict=True):
            index[axis] = slice(start, start + x.shape[axis])
        found.append(getitem(around, tuple(index)))
    return stack(found)
