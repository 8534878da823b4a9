"""Images read at arbitrary places: grid sampling, and grids of affine maps.

Almost everywhere, a small move of a place changes the weights of the elements around it, but not
which elements these are. So weights are computed with derivatives, and indices without.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array, as_shape
from gradtape.ops.arithmetic import absolute, fmod
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.comparison import logical_and, logical_or
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.like import ones_like
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.grid_reads import grid_read
from gradtape.ops.nn.resample import cubic_far, cubic_near
from gradtape.ops.reduce import floats
from gradtape.ops.rounding import floor, round as round_to
from gradtape.ops.select import clip, where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# The numbers of elements that may count for a place, and their weights.
_Shares = list[tuple[Any, Any]]
# Per axis the elements that count for a place: their numbers, their weights (None for 1), and where
# such elements exist.
_Terms = list[tuple[Any, Any, Any]]


# ---- places along one axis ----------------------------------------------------------------------


def _place(x: Any, size: int, align_corners: bool) -> Any:
    """From −1 … 1 to the numbers of elements."""
    if align_corners:
        return (x + 1) * (0.5 * (size - 1))
    return ((x + 1) * size - 1) * 0.5


def _padded(place: Any, size: int, padding: str, align_corners: bool) -> Any:
    """A place outside moved inside, if the padding is by border or reflection."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        if span == 0:
            return place * 0.0
        beyond = absolute(place - low)
        rest = fmod(beyond, span)
        odd = stop_gradient(floor(beyond / span)) % 2 == 1
        place = where(odd, span - rest, rest) + low
    # On an edge as beyond it: no derivative, since there is no element on the other side.
    outside = logical_or(place <= 0, place >= size - 1)
    return where(outside, stop_gradient(clip(place, 0, size - 1)), place)


def _linear_terms(place: Any) -> _Shares:
    left = stop_gradient(floor(place))
    share = place - left
    return [(left, 1 - share), (left + 1, share)]


def _nearest_terms(place: Any) -> _Shares:
    return [(stop_gradient(round_to(place)), None)]


def _cubic_terms(place: Any) -> _Shares:
    left = stop_gradient(floor(place))
    t = place - left
    weights = (cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t))
    return [(left + (k - 1), weight) for k, weight in enumerate(weights)]


_TERMS: dict[str, Callable[[Any], _Shares]] = {
    "bilinear": _linear_terms,
    "nearest": _nearest_terms,
    "bicubic": _cubic_terms,
}


def _axis_terms(x: Any, size: int, mode: str, padding: str, align_corners: bool) -> _Terms:
    """The elements along an axis that count for coordinates `x`."""
    place = _place(x, size, align_corners)
    if mode != "bicubic":
        place = _padded(place, size, padding, align_corners)
    found = []
    for number, weight in _TERMS[mode](place):
        if mode == "bicubic":  # each of its elements by itself
            number = stop_gradient(_padded(number, size, padding, align_corners))
        inside = logical_and(number >= 0, number <= size - 1)
        # NaN reads the element at 0; its weight is NaN.
        index = astype(where(inside, number, 0), np.int64)
        found.append((index, weight, inside))
    return found


# ---- public functions ---------------------------------------------------------------------------


def grid_sample(
    x: ArrayLike,
    /,
    grid: ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """The array read at the places of a grid, also between elements.

    It has derivatives by the array and by the grid.

    Args:
        x: Of shape (samples, channels, height, width), or with depth before height.
        grid: Of shape (samples, new height, new width, 2), or (…, new depth, …, 3): where to read,
            from −1 to 1, the last axis of `x` first.
        mode: "bilinear", "nearest", or "bicubic" for images.
        padding_mode: What is outside: "zeros", the "border", or the "reflection" of the inside.
        align_corners: Whether −1 and 1 are the centers of the outermost elements and not their
            outer edges; None is False.

    Raises:
        ShapeError: The shapes do not fit together.
        ArgumentError: A mode is unknown.
        DTypeError: The grid is not of floating real numbers.

    >>> x = np.array([[[[1.0, 3.0]]]])
    >>> gt.nn.grid_sample(x, np.array([[[[0.0, 0.0]]]]))
    array([[[[2.]]]])
    """
    x, grid = floats(as_array(x)), as_array(grid)
    _check(x, grid, mode, padding_mode)
    sizes = x.shape[2:]
    axes = [
        _axis_terms(_coordinate(grid, axis), size, mode, padding_mode, bool(align_corners))
        for axis, size in enumerate(sizes)
    ]
    places, weights = [], []
    for chosen in itertools.product(*axes):
        place, weight, there = _joined(chosen, sizes)
        # Nothing lies beyond a border; a place that is NaN keeps its weight.
        outside = padding_mode == "zeros" or mode == "nearest"
        places.append(where(there, place, -1) if outside else place)
        weights.append(ones_like(_coordinate(grid, 0)) if weight is None else weight)
    return grid_read(x, stack(places, 1), stack(weights, 1), sizes=tuple(sizes))


def _joined(chosen: Sequence[tuple[Any, Any, Any]], sizes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Combine elements along each axis: place in flattened axes, weight, and where one exists."""
    place, weight, there = chosen[0]
    for (index, share, inside), size in zip(chosen[1:], sizes[1:], strict=True):
        place = place * size + index
        weight = None if weight is None else weight * share
        there = logical_and(there, inside)
    return place, weight, there


def _coordinate(grid: Any, axis: int) -> Any:
    """The coordinates along a spatial axis; grids name the last axis first."""
    return getitem(grid, (..., grid.shape[-1] - 1 - axis))


def _check(x: Any, grid: Any, mode: str, padding_mode: str) -> None:
    rank = len(x.shape) - 2
    modes = ("bilinear", "nearest", *(() if rank == 3 else ("bicubic",)))
    check_choice("grid_sample", modes, mode=mode)
    check_choice("grid_sample", ("zeros", "border", "reflection"), padding_mode=padding_mode)
    fits = len(grid.shape) == rank + 2 and grid.shape[-1] == rank and grid.shape[0] == x.shape[0]
    if rank not in (2, 3) or not fits or 0 in x.shape[2:]:
        raise ShapeError(
            f"grid_sample: got shapes {x.shape} and {grid.shape}, expected (samples, channels, "
            "height, width) and (samples, new height, new width, 2), or both with depth"
        )
    if grid.dtype.kind in "biuc":
        raise DTypeError(f"grid_sample: got a grid of {grid.dtype}, expected floating numbers")


def affine_grid(
    theta: ArrayLike, /, size: Sequence[int], align_corners: bool | None = None
) -> Array:
    """The places that affine maps take the places of images to, for `grid_sample`.

    Args:
        theta: A matrix for each sample, of shape (samples, 2, 3) for images or (samples, 3, 4).
        size: The shape of the images to come: (samples, channels, height, width), or with depth.
        align_corners: Whether −1 and 1 are the centers of the outermost elements and not their
            outer edges; None is False.

    Raises:
        ShapeError: The shapes do not fit together.

    >>> gt.nn.affine_grid(np.array([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
    array([[[[0., 0.],
             [1., 0.]]]])
    """
    theta = floats(as_array(theta))
    sizes = as_shape(tuple(size), "affine_grid")
    rank = len(sizes) - 2
    if rank not in (2, 3) or theta.shape != (sizes[0], rank, rank + 1):
        raise ShapeError(
            f"affine_grid: got shape {theta.shape} and size {sizes}, expected (samples, 2, 3) and "
            "(samples, channels, height, width), or (samples, 3, 4) with depth"
        )
    places = _all_places(sizes[2:], bool(align_corners)).astype(theta.dtype)
    flat = matmul(places.reshape(-1, rank + 1), theta.mT)
    return reshape(flat, (sizes[0], *sizes[2:], rank))


def _all_places(sizes: Sequence[int], align_corners: bool) -> Any:
    """(*sizes, axes + 1): the places of all elements, the last axis first, and a 1."""
    lines = []
    for n in sizes:
        edge = (1.0 if align_corners else 1 - 1 / n) if n > 1 else 0.0
        lines.append(np.linspace(-edge, edge, n))
    mesh = np.meshgrid(*lines, indexing="ij")
    return np.stack([*mesh[::-1], np.ones(sizes)], axis=-1)
