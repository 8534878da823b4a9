"""The element of some rank in a window around every element: extremes, medians and others."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.ops.arguments import normalize_axes
from gradtape.ops.arrays.select_k import kthvalue
from gradtape.ops.ndimage.windows import (
    ALONG,
    FILTERS,
    along_each,
    floating,
    members,
    neighbours,
    real_floating,
    window_of,
)
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

# Which rank to take of so many elements, from the smallest, which is 0.
_RANKS: dict[str, Callable[[int], int]] = {
    "minimum": lambda count: 0,
    "median": lambda count: count // 2,
    "maximum": lambda count: count - 1,
}


def _ranked(
    name: str, input: ArrayLike, rank_of: Callable[[int], int], size: Any, footprint: Any,
    mode: Any, cval: Any, origin: Any, axes: Axis,
) -> Array:  # fmt: skip
    """The filter whose rank follows from the number of elements in a window.

    Equal elements share the gradient if they are the smallest or largest, else one gets it.
    """
    x = real_floating(name, input)
    chosen = normalize_axes(axes, len(x.shape), name)
    window = window_of(name, size, footprint, len(chosen))
    count = int(window.sum())
    rank = rank_of(count)
    if not 0 <= rank < count:
        raise ArgumentError(f"{name}: got a rank of {rank} for a window of {count} elements")
    found = neighbours(name, x, window, chosen, mode, cval, origin)
    if 0 < rank < count - 1:
        return kthvalue(found, rank + 1, axis=0).values
    return min_of(found, axis=0) if rank == 0 else max_of(found, axis=0)


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
    >>> gt.scipy.ndimage.maximum_filter1d(np.array([1.0, 2.0, 0.0, 0.0]), 3)
    array([2., 2., 2., 0.])

    minimum_filter1d:
    >>> gt.scipy.ndimage.minimum_filter1d(np.array([1.0, 2.0, 3.0]), 3)
    array([1., 1., 2.])
    """
    rank_of = _RANKS[name.partition("_")[0]]
    return _ranked(name, input, rank_of, size, None, mode, cval, origin, (axis,))


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
    """The {what}.

    maximum_filter:
    >>> gt.scipy.ndimage.maximum_filter(np.eye(3), size=2)
    array([[1., 1., 0.],
           [1., 1., 1.],
           [0., 1., 1.]])

    minimum_filter:
    >>> gt.scipy.ndimage.minimum_filter(np.ones((2, 2)), size=2)
    array([[1., 1.],
           [1., 1.]])

    median_filter:
    >>> gt.scipy.ndimage.median_filter(np.array([1.0, 9.0, 2.0, 3.0]), 3)
    array([1., 2., 3., 3.])
    """
    kind = name.partition("_")[0]
    if footprint is not None or size is None or kind == "median":
        return _ranked(name, input, _RANKS[kind], size, footprint, mode, cval, origin, axes)
    # The extreme of a box is that along one axis after the other.
    along_one = functools.partial(_along, name, cval=cval)
    x = real_floating(name, input)
    return along_each(name, x, axes, along_one, size=size, mode=mode, origin=origin)


maximum_filter1d, minimum_filter1d = members(
    _along, {"maximum_filter1d": "largest", "minimum_filter1d": "smallest"}
)
maximum_filter, minimum_filter, median_filter = members(
    _over,
    {
        "maximum_filter": "largest of neighbours; equal ones share the gradient",
        "minimum_filter": "smallest of neighbours; equal ones share the gradient",
        "median_filter": "median of the neighbours of each element; of an even number, the upper "
        "middle one",
    },
)


@options(FILTERS)
def rank_filter(
    input: ArrayLike,
    /,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    axes: Axis = None,
) -> Array:
    """The neighbour of some rank of each element; of equal ones, one gets the gradient.

    Args:
        rank: Which one, from the smallest; negative numbers count from the largest.

    Raises:
        ArgumentError: There is no window, or it has no such rank.
        DTypeError: The array is not floating.

    >>> gt.scipy.ndimage.rank_filter(np.array([1.0, 5.0, 2.0, 4.0]), 1, size=3)
    array([1., 2., 4., 4.])
    """
    rank = operator.index(rank)
    options = (size, footprint, mode, cval, origin, axes)
    return _ranked("rank_filter", input, lambda n: rank + n if rank < 0 else rank, *options)


@options(FILTERS)
def percentile_filter(
    input: ArrayLike,
    /,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    axes: Axis = None,
) -> Array:
    """A percentile of the neighbours of each element, which is one of them.

    Args:
        percentile: Which one, from 0 to 100; negative numbers count from 100.

    >>> gt.scipy.ndimage.percentile_filter(np.array([1.0, 9.0, 2.0, 3.0]), 20, size=3)
    array([1., 1., 2., 2.])
    """
    share = float(percentile)
    share = share + 100 if share < 0 else share
    if not 0 <= share <= 100:
        raise ArgumentError(f"percentile_filter: got {percentile}, expected one from -100 to 100")

    def rank_of(count: int) -> int:
        return count - 1 if share == 100 else int(count * share / 100)

    options = (size, footprint, mode, cval, origin, axes)
    return _ranked("percentile_filter", input, rank_of, *options)


@options(FILTERS)
def vectorized_filter(
    input: ArrayLike,
    /,
    function: Callable[..., Any],
    *,
    size: Any = None,
    footprint: Any = None,
    mode: Any = "reflect",
    cval: Any = None,
    origin: Any = None,
    axes: Axis = None,
) -> Array:
    """A function of the neighbours of each element, differentiable if the function is.

    Args:
        function: Called once as `function(neighbours, axis=...)`, with the neighbours along the
            last axis, or over the last axes if `size` has several, which it reduces: `np.mean`,
            `gt.logsumexp`, one of your own.
        cval: The number for "constant"; 0 if it is None.
        origin: By how many elements the window is moved, for all axes or for each; 0 if it is None.

    Raises:
        UnsupportedError: The mode is "grid-mirror", which is ambiguous.

    >>> gt.scipy.ndimage.vectorized_filter(np.array([1.0, 5.0, 3.0]), np.ptp, size=3)
    array([4., 4., 2.])
    """
    name = "vectorized_filter"
    if mode == "grid-mirror":
        raise UnsupportedError(
            f"{name}: got mode='grid-mirror', which is 'mirror' in this function of SciPy and "
            "'reflect' in all others; expected one of these two"
        )
    x = floating(name, input)
    chosen = normalize_axes(axes, len(x.shape), name)
    window = window_of(name, size, footprint, len(chosen))
    cval, origin = 0.0 if cval is None else cval, 0 if origin is None else origin
    found = moveaxis(neighbours(name, x, window, chosen, mode, cval, origin), 0, -1)
    if footprint is not None:
        return function(found, axis=-1)
    found = reshape(found, (*found.shape[:-1], *window.shape))
    return function(found, axis=tuple(range(-len(chosen), 0)))
