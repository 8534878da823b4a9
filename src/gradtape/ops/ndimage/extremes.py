"""The largest and the smallest element of a window that goes along with every element."""

from __future__ import annotations

from typing import Any

from gradtape.ops.arguments import normalize_axes, normalize_axis
from gradtape.ops.ndimage.windows import (
    neighbours,
    per_axis,
    real_floating,
    refuse_output,
    window_of,
)
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.typing import Array, ArrayLike, Axis

_REDUCE = {"maximum": max_of, "minimum": min_of}


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
    x = real_floating(name, input)
    axes = (normalize_axis(axis, len(x.shape), name),)
    window = window_of(name, size, None, 1)
    return _REDUCE[name[:7]](neighbours(name, x, window, axes, mode, cval, origin), axis=0)


def _over(
    name: str, input: ArrayLike, size: Any, footprint: Any, output: Any, mode: Any, cval: Any,
    origin: Any, axes: Axis,
) -> Array:  # fmt: skip
    refuse_output(name, output)
    x = real_floating(name, input)
    chosen = normalize_axes(axes, len(x.shape), name)
    if footprint is not None or size is None:
        window = window_of(name, size, footprint, len(chosen))
        return _REDUCE[name[:7]](neighbours(name, x, window, chosen, mode, cval, origin), axis=0)
    given = {"size": size, "mode": mode, "origin": origin}
    options = (per_axis(name, what, value, len(chosen)) for what, value in given.items())
    # A box is one window along each axis after the other.
    for axis, one, beyond, moved in zip(chosen, *options, strict=True):
        x = _along(name, x, one, axis, None, beyond, cval, moved)
    return x


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
    return _over("maximum_filter", input, size, footprint, output, mode, cval, origin, axes)


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
    return _over("minimum_filter", input, size, footprint, output, mode, cval, origin, axes)
