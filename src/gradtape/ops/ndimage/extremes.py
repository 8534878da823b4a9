"""The largest and the smallest element of a window around every element."""

from __future__ import annotations

import functools
from typing import Any

from gradtape.ops.arguments import normalize_axes, normalize_axis
from gradtape.ops.ndimage.windows import (
    ALONG,
    FILTERS,
    along_each,
    members,
    neighbours,
    real_floating,
    window_of,
)
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

_REDUCE = {"maximum": max_of, "minimum": min_of}


@options(ALONG)
def _along(
    name: str,
    input: ArrayLike,
    /,
    size: int,
    axis: int = -1,
    *,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The {what} of neighbours along one axis; equal ones share the gradient.

    maximum_filter1d:
    >>> gt.ndimage.maximum_filter1d(np.array([1.0, 2.0, 0.0, 0.0]), 3)
    array([2., 2., 2., 0.])

    minimum_filter1d:
    >>> gt.ndimage.minimum_filter1d(np.array([1.0, 2.0, 3.0]), 3)
    array([1., 1., 2.])
    """
    x = real_floating(name, input)
    axes = (normalize_axis(axis, len(x.shape), name),)
    window = window_of(name, size, None, 1)
    return _REDUCE[name[:7]](neighbours(name, x, window, axes, mode, cval, origin), axis=0)


@options(FILTERS)
def _over(
    name: str,
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    axes: Axis = None,
) -> Array:
    """The {what} of neighbours; equal ones share the gradient.

    maximum_filter:
    >>> gt.ndimage.maximum_filter(np.eye(3), size=2)
    array([[1., 1., 0.],
           [1., 1., 1.],
           [0., 1., 1.]])

    minimum_filter:
    >>> gt.ndimage.minimum_filter(np.ones((2, 2)), size=2)
    array([[1., 1.],
           [1., 1.]])
    """
    x = real_floating(name, input)
    if footprint is not None or size is None:
        chosen = normalize_axes(axes, len(x.shape), name)
        window = window_of(name, size, footprint, len(chosen))
        return _REDUCE[name[:7]](neighbours(name, x, window, chosen, mode, cval, origin), axis=0)
    # A box is one window along each axis after the other.
    along_one = functools.partial(_along, name, cval=cval)
    return along_each(name, x, axes, along_one, size=size, mode=mode, origin=origin)


maximum_filter1d, minimum_filter1d = members(
    _along, {"maximum_filter1d": "largest", "minimum_filter1d": "smallest"}
)
maximum_filter, minimum_filter = members(
    _over, {"maximum_filter": "largest", "minimum_filter": "smallest"}
)
