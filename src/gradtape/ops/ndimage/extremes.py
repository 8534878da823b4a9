"""The largest and the smallest element of a window that goes along with every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import answers, functions
from gradtape.errors import ArgumentError, DTypeError
from gradtape.ops.arguments import normalize_axis
from gradtape.ops.join import stack
from gradtape.ops.ndimage.interpolation import floating
from gradtape.ops.ndimage.prefilter import refuse_output
from gradtape.ops.ndimage.windows import chosen_axes, per_axis, surrounded
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.typing import Array, ArrayLike, Axis

_REDUCE = {"maximum": max_of, "minimum": min_of}


def _real(name: str, x: ArrayLike) -> Array:
    x = floating(name, x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: came {x.dtype}; needed real numbers")
    return x


def _extreme(
    name: str,
    x: Array,
    footprint: Any,
    axes: tuple[int, ...],
    modes: Any,
    cval: Any,
    origins: Any,
) -> Array:
    """The extreme over the window of all neighbours that are True in `footprint`."""
    sizes = dict(zip(axes, footprint.shape, strict=True))
    around = surrounded(name, x, sizes, modes, cval, origins)
    neighbours = []
    for place in np.argwhere(footprint).tolist():
        index = [slice(None)] * len(x.shape)
        for axis, start in zip(axes, place, strict=True):
            index[axis] = slice(start, start + x.shape[axis])
        neighbours.append(functions["getitem"](around, tuple(index)))
    if not neighbours:
        raise ArgumentError(f"{name}: came a footprint without any True; needed at least one")
    return _REDUCE[name[:7]](stack(neighbours), axis=0)


def _along(
    name: str,
    input: ArrayLike,
    size: int,
    axis: int,
    output: Any,
    mode: str,
    cval: Any,
    origin: int,
) -> Array:
    refuse_output(name, output)
    x = _real(name, input)
    axes = (normalize_axis(axis, len(x.shape), name),)
    return _extreme(name, x, np.ones(max(size, 0), bool), axes, (mode,), cval, (origin,))


def _over(
    name: str, input: ArrayLike, size: Any, footprint: Any, output: Any, options: Any, cval: Any,
    axes: Axis,
) -> Array:  # fmt: skip
    refuse_output(name, output)
    x = _real(name, input)
    chosen = chosen_axes(name, len(x.shape), axes)
    modes, origins = (per_axis(name, what, value, len(chosen)) for what, value in options.items())
    if footprint is not None:
        footprint = np.asarray(footprint, bool)
        if footprint.ndim != len(chosen):
            raise ArgumentError(
                f"{name}: came a footprint of shape {footprint.shape}; needed {len(chosen)} axes"
            )
        return _extreme(name, x, footprint, chosen, modes, cval, origins)
    if size is None:
        raise ArgumentError(f"{name}: came neither size nor footprint; needed one of them")
    sizes = per_axis(name, "size", size, len(chosen))
    # A box is one window along each axis after the other.
    for axis, one, mode, origin in zip(chosen, sizes, modes, origins, strict=True):
        x = _along(name, x, one, axis, None, mode, cval, origin)
    return x


@answers("scipy.ndimage.maximum_filter1d")
def maximum_filter1d(
    input: ArrayLike,
    /,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The largest of neighbours along one axis; equal ones share the gradient.

    Args:
        input: The array.
        size: Of how many neighbours.
        axis: Along which axis.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, as for `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        origin: By how many elements the window is moved.

    >>> gt.ndimage.maximum_filter1d(np.array([1.0, 2.0, 0.0, 0.0]), 3)
    array([2., 2., 2., 0.])
    """
    return _along("maximum_filter1d", input, size, axis, output, mode, cval, origin)


@answers("scipy.ndimage.minimum_filter1d")
def minimum_filter1d(
    input: ArrayLike,
    /,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The smallest of neighbours along one axis; equal ones share the gradient.

    Args:
        input: The array.
        size: Of how many neighbours.
        axis: Along which axis.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, as for `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        origin: By how many elements the window is moved.

    >>> gt.ndimage.minimum_filter1d(np.array([1.0, 2.0, 3.0]), 3)
    array([1., 1., 2.])
    """
    return _along("minimum_filter1d", input, size, axis, output, mode, cval, origin)


@answers("scipy.ndimage.maximum_filter")
def maximum_filter(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The largest of neighbours; equal ones share the gradient.

    Args:
        input: The array.
        size: The size of the window, for all axes or for each.
        footprint: Which elements of a window count, instead of `size`.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each.
        cval: The number for "constant".
        origin: By how many elements the window is moved, likewise.
        axes: Over which axes; None takes all of them.

    >>> gt.ndimage.maximum_filter(np.eye(3), size=2)
    array([[1., 1., 0.],
           [1., 1., 1.],
           [0., 1., 1.]])
    """
    options = {"mode": mode, "origin": origin}
    return _over("maximum_filter", input, size, footprint, output, options, cval, axes)


@answers("scipy.ndimage.minimum_filter")
def minimum_filter(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The smallest of neighbours; equal ones share the gradient.

    Args:
        input: The array.
        size: The size of the window, for all axes or for each.
        footprint: Which elements of a window count, instead of `size`.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each.
        cval: The number for "constant".
        origin: By how many elements the window is moved, likewise.
        axes: Over which axes; None takes all of them.

    >>> gt.ndimage.minimum_filter(np.ones((2, 2)), size=2)
    array([[1., 1.],
           [1., 1.]])
    """
    options = {"mode": mode, "origin": origin}
    return _over("minimum_filter", input, size, footprint, output, options, cval, axes)
