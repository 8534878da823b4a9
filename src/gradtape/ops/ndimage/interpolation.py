"""Arrays interpolated: at coordinates, moved, zoomed, rotated, by any affine map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.define import added
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, as_shape, normalize_axis
from gradtape.ops.cast import astype, copy as copy_of
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.ndimage.prefilter import check_spline, spline_filter1d
from gradtape.ops.ndimage.sample import sample
from gradtape.ops.ndimage.windows import floating
from gradtape.ops.pad_modes import pad
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.ops.shared_options import options
from gradtape.ops.trigonometric import cos, deg2rad, sin
from gradtape.typing import Array, ArrayLike

# How far an array is continued for the modes whose spline has no rule for its ends.
_MARGIN = 12
_SPLINES = {
    "input": "The array.",
    "order": "The degree of the spline, from 0 to 5.",
    "mode": 'What lies beyond the ends: "constant", "grid-constant", "nearest", "mirror", '
    '"reflect" ("grid-mirror"), "wrap", "grid-wrap", as in SciPy.',
    "cval": 'The number beyond the ends for "constant" and "grid-constant", which may be a tensor.',
    "prefilter": "Whether the coefficients of the spline are computed; False takes the elements "
    "for them.",
}
_ERRORS = {
    "DTypeError": "The array is not floating.",
    "ArgumentError": "`order` or `mode` is something else.",
}


def _at(
    name: str, x: Array, coordinates: Any, order: int, mode: str, cval: Any,
    prefilter: bool,
) -> Array:  # fmt: skip
    """The spline through an array, at coordinates whose first axis is that of its last axes.

    Over the axes before, it is a stack of arrays, each with a spline of its own.
    """
    check_spline(name, order, mode)
    if isinstance(cval, Tensor | np.ndarray):
        # The result is linear in the array and the number around it together.
        rest = (coordinates, order, mode)
        share = _at(name, np.zeros(x.shape, x.dtype), *rest, 1.0, prefilter)
        return _at(name, x, *rest, 0.0, prefilter) + astype(cval, x.dtype, copy=False) * share
    if coordinates.dtype.kind not in "fiu" or len(x.shape) == 0:
        raise DTypeError(
            f"{name}: got {x.dtype}{list(x.shape)} and coordinates of {coordinates.dtype}, "
            "expected at least one axis, and real coordinates"
        )
    coordinates = astype(coordinates, np.float64, copy=False)
    ndim, shape, dtype = coordinates.shape[0], coordinates.shape[1:], x.dtype
    lead = x.shape[: len(x.shape) - ndim]
    if 0 in x.shape[len(lead) :]:
        raise ShapeError(f"{name}: got shape {x.shape}, expected elements to interpolate")
    if prefilter and order > 1:
        if mode in ("nearest", "grid-constant"):
            fill = {"mode": "edge"} if mode == "nearest" else {"constant_values": cval}
            widths = [(0, 0)] * len(lead) + [(_MARGIN, _MARGIN)] * ndim
            x, coordinates = pad(x, widths, **fill), coordinates + _MARGIN
        for axis in range(len(lead), len(x.shape)):
            x = spline_filter1d(x, order, axis, mode=mode)
    places = reshape(coordinates, (ndim, math.prod(shape)))
    out = sample(x, places, order=order, mode=mode, cval=cval, derivative=(0,) * ndim)
    return astype(reshape(out, (*lead, *shape)), dtype, copy=False)


@options(_SPLINES, raises=_ERRORS)
def map_coordinates(
    input: ArrayLike,
    /,
    coordinates: ArrayLike,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The values of an array at coordinates between its elements, by a spline through them.

    It is differentiable in the array and in the coordinates. Where a spline of order 0 or 1 has no
    derivative in the coordinates, at elements, the one on the right is taken; of order 0 it is 0.

    Args:
        coordinates: One coordinate for each axis of the array, along a first axis; the others are
            those of the result.

    Raises:
        ShapeError: There is not one coordinate for each axis.

    >>> x = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> gt.scipy.ndimage.map_coordinates(x, np.array([[0.5], [0.5]]), order=1)
    array([1.5])
    """
    x, places = floating("map_coordinates", input), as_array(coordinates)
    if len(places.shape) < 2 or places.shape[0] != len(x.shape):
        raise ShapeError(
            f"map_coordinates: got an array of shape {x.shape} and coordinates of shape "
            f"{places.shape}, expected a first axis of {len(x.shape)} and at least one more"
        )
    return _at("map_coordinates", x, places, order, mode, cval, prefilter)


def _grid(shape: Sequence[int]) -> Sequence[Any]:
    """The index along each axis of every element, in arrays that broadcast."""
    indices = (np.arange(n, dtype=np.float64) for n in shape)
    return np.meshgrid(*indices, indexing="ij", sparse=True)


def _stacked(rows: Sequence[Any], shape: Sequence[int]) -> Any:
    """Coordinates that broadcast, one for each axis, as one array."""
    return stack([broadcast_to(row, tuple(shape)) for row in rows])


def _number_per_axis(name: str, what: str, value: Any, ndim: int) -> Any:
    """One number for all axes, or one for each."""
    value = as_array(value)
    if value.shape not in ((), (ndim,)):
        raise ShapeError(
            f"{name}: got {what} of shape {value.shape}, expected a number, or one for each of "
            f"{ndim} axes"
        )
    return broadcast_to(value, (ndim,))


@options(_SPLINES, raises=_ERRORS)
def shift(
    input: ArrayLike,
    /,
    shift: Any,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array moved by any distance, differentiable in the distance as well.

    Args:
        shift: How far, for all axes or for each of them.

    Raises:
        ShapeError: There is not one distance for each axis.

    >>> gt.scipy.ndimage.shift(np.array([1.0, 2.0, 4.0]), 0.5, order=1)
    array([0. , 1.5, 3. ])
    """
    x = floating("shift", input)
    distances = _number_per_axis("shift", "shift", shift, len(x.shape))
    rows = [places - distance for places, distance in zip(_grid(x.shape), distances, strict=True)]
    return _at("shift", x, _stacked(rows, x.shape), order, mode, cval, prefilter)


@options(_SPLINES, raises=_ERRORS)
def zoom(
    input: ArrayLike,
    /,
    zoom: Any,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    grid_mode: bool = False,
) -> Array:
    """The array with more or fewer elements along its axes.

    Args:
        zoom: By which factor, for all axes or for each; sizes are rounded.
        grid_mode: Whether elements are areas, whose outer edges stay in place, and not points; of
            these the first and the last one stay.

    Raises:
        ShapeError: There is not one factor for each axis.

    >>> gt.scipy.ndimage.zoom(np.array([1.0, 2.0, 4.0]), 5 / 3, order=1)
    array([1. , 1.5, 2. , 3. , 4. ])
    """
    x = floating("zoom", input)
    if isinstance(zoom, Tensor):
        zoom = zoom.tolist()  # numbers that decide a shape have no derivative
    factors = np.asarray(_number_per_axis("zoom", "zoom", zoom, len(x.shape))).tolist()
    shape = [round(n * factor) for n, factor in zip(x.shape, factors, strict=True)]
    rows = []
    for places, n, m in zip(_grid(shape), x.shape, shape, strict=True):
        if grid_mode:
            rows.append((places + 0.5) * (n / m if m else 1.0) - 0.5)
        else:
            rows.append(places * ((n - 1) / (m - 1) if m != 1 else 1.0))
    if all(factor == 1 for factor in factors) and prefilter:
        return copy_of(x)
    return _at("zoom", x, _stacked(rows, shape), order, mode, cval, prefilter)


@options(_SPLINES, raises=_ERRORS)
def affine_transform(
    input: ArrayLike,
    /,
    matrix: ArrayLike,
    offset: Any = 0.0,
    output_shape: Any = None,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array under an affine map of its coordinates, differentiable in the map as well.

    The element of the result at index i is the value of the array at `matrix @ i + offset`.

    Args:
        matrix: One row per axis; also a vector for a diagonal matrix, or a matrix with the offset
            as a further column, which may have a further row.
        offset: What is added, for all axes or for each; not used if the matrix has it.
        output_shape: The shape of the result; that of the array if it is None.

    Raises:
        ShapeError: The matrix or the offset does not fit.

    >>> gt.scipy.ndimage.affine_transform(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]), order=1)
    array([[1., 0.],
           [0., 1.]])
    """
    x, matrix = floating("affine_transform", input), as_array(matrix)
    ndim = len(x.shape)
    shape = x.shape if output_shape is None else as_shape(output_shape, "affine_transform")
    if matrix.shape in ((ndim, ndim + 1), (ndim + 1, ndim + 1)):
        offset = getitem(matrix, (slice(0, ndim), ndim))
    elif matrix.shape not in ((ndim, ndim), (ndim,)) or len(shape) != ndim:
        raise ShapeError(
            f"affine_transform: got an array of shape {x.shape}, a matrix of shape {matrix.shape} "
            f"and output_shape {shape}, expected {ndim} rows and columns, and as many axes"
        )
    moved = _number_per_axis("affine_transform", "offset", offset, ndim)
    grid = _grid(shape)
    rows = []
    for axis in range(ndim):
        if len(matrix.shape) == 1:
            terms = [matrix[axis] * grid[axis]]
        else:
            terms = [matrix[axis, other] * grid[other] for other in range(ndim)]
        # In the order of SciPy: at the ends, the last bit decides whether a point is inside.
        rows.append(added(*terms, moved[axis]))
    return _at("affine_transform", x, _stacked(rows, shape), order, mode, cval, prefilter)


@options(_SPLINES, raises=_ERRORS)
def rotate(
    input: ArrayLike,
    /,
    angle: Any,
    axes: Sequence[int] = (1, 0),
    reshape: bool = True,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array rotated in the plane of two axes.

    Args:
        angle: By how many degrees; without `reshape` it is differentiable in it.
        axes: The two axes.
        reshape: Whether to enlarge the shape so that all of the array is inside.

    Raises:
        AxisError: There is no such axis.
        ArgumentError: There are not two different axes, or `order` or `mode` is something else.
        UnsupportedError: The angle is a tensor, and the shape would depend on it.

    >>> np.round(gt.scipy.ndimage.rotate(np.array([[1.0, 2.0], [3.0, 4.0]]), 90, order=1), 12)
    array([[2., 4.],
           [1., 3.]])
    """
    x = floating("rotate", input)
    plane = sorted({normalize_axis(axis, len(x.shape), "rotate") for axis in axes})
    if len(axes) != 2 or len(plane) != 2:
        raise ArgumentError(f"rotate: got axes={axes}, expected two different ones")
    if reshape and isinstance(angle, Tensor):
        raise UnsupportedError(
            "rotate: got a tensor as angle with reshape=True; the shape cannot depend on it; give "
            "reshape=False, or float(angle)"
        )
    c, s = _turn(angle)
    sizes = [x.shape[axis] for axis in plane]
    new = sizes
    if reshape:
        corners = np.array([[0, 0, *sizes[:1] * 2], [0, sizes[1], 0, sizes[1]]])
        new = (np.ptp(np.array([[c, s], [-s, c]]) @ corners, axis=1) + 0.5).astype(int).tolist()
    first, second = _grid(new)
    middle, target = ([(n - 1) / 2 for n in own] for own in (sizes, new))
    rows = [
        c * first + s * second + (middle[0] - (c * target[0] + s * target[1])),
        -s * first + c * second + (middle[1] - (-s * target[0] + c * target[1])),
    ]
    # Each plane by itself: along other axes nothing is interpolated.
    planes = moveaxis(x, plane, (-2, -1))
    out = _at("rotate", planes, _stacked(rows, new), order, mode, cval, prefilter)
    return moveaxis(out, (-2, -1), plane)


def _turn(angle: Any) -> tuple[Any, Any]:
    """Cosine and sine of degrees, exact at right angles where the angle is a number."""
    if isinstance(angle, Tensor | np.ndarray):
        return cos(deg2rad(angle)), sin(deg2rad(angle))
    import scipy.special

    return float(scipy.special.cosdg(angle)), float(scipy.special.sindg(angle))
