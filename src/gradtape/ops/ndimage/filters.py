"""Linear filters of images: sums over a window around every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.cast import astype
from gradtape.ops.ndimage.windows import (
    ALONG,
    FILTERS,
    floating,
    members,
    surrounded,
    turned_origins,
)
from gradtape.ops.shape import moveaxis
from gradtape.ops.shared_options import options
from gradtape.ops.signal.direct import convolve_over, turned
from gradtape.typing import Array, ArrayLike, Axis


def _weights(name: str, weights: ArrayLike, x: Array, ndim: int) -> Array:
    weights = as_array(weights)
    if len(weights.shape) != ndim or 0 in weights.shape:
        raise ShapeError(
            f"{name}: got weights of shape {weights.shape}, expected {ndim} axes that are not empty"
        )
    # Weights are as precise as the image, and complex if they are.
    kind = np.result_type(x.dtype, np.complex64) if weights.dtype.kind == "c" else x.dtype
    kind = kind if weights.dtype.kind == "c" else np.empty(0, kind).real.dtype
    return astype(weights, kind, copy=False)


@options(ALONG)
def _along(
    name: str,
    input: ArrayLike,
    /,
    weights: ArrayLike,
    axis: int = -1,
    *,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """{what} along one axis, differentiable in both.

    Args:
        weights: The weights; the middle one is for the element itself.

    Raises:
        AxisError: There is no such axis.
        DTypeError: The array is not floating.
        ShapeError: Weights do not have one axis.
        ArgumentError: `mode` or `origin` is something else.

    correlate1d:
    >>> gt.scipy.ndimage.correlate1d(np.array([1.0, 2.0, 4.0]), np.array([-1.0, 0.0, 1.0]))
    array([1., 3., 2.])

    convolve1d:
    >>> gt.scipy.ndimage.convolve1d(np.array([1.0, 2.0, 4.0]), np.array([-1.0, 0.0, 1.0]))
    array([-1., -3., -2.])
    """
    return _over(name, input, weights, mode=mode, cval=cval, origin=origin, axes=(axis,))


correlate1d, convolve1d = members(
    _along,
    {"correlate1d": "Sums of neighbours times weights", "convolve1d": "Convolution with weights"},
)


@options(FILTERS)
def _over(
    name: str,
    input: ArrayLike,
    /,
    weights: ArrayLike,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    axes: Axis = None,
) -> Array:
    """{what}, differentiable in both.

    Args:
        weights: The weights: an array of as many axes.

    Raises:
        DTypeError: The array is not floating.
        ShapeError: Weights do not have as many axes.
        ArgumentError: `mode` or `origin` is something else.

    correlate:
    >>> gt.scipy.ndimage.correlate(np.eye(2), np.ones((3, 3)), mode="constant")
    array([[2., 2.],
           [2., 2.]])

    convolve:
    >>> gt.scipy.ndimage.convolve(np.eye(2), np.ones((1, 3)), mode="constant")
    array([[1., 1.],
           [1., 1.]])
    """
    x = floating(name, input)
    chosen = normalize_axes(axes, len(x.shape), name)
    kernel = _weights(name, weights, x, len(chosen))
    if name in ("convolve", "convolve1d"):
        origin = turned_origins(name, origin, kernel.shape)
    else:
        kernel = turned(kernel, len(chosen))
    x = surrounded(name, x, chosen, kernel.shape, mode, cval, origin)
    last = tuple(range(-len(chosen), 0))
    out = convolve_over(moveaxis(x, chosen, last), kernel, ndim=len(chosen), full=False)
    return moveaxis(out, last, chosen)


correlate, convolve = members(
    _over,
    {
        "correlate": "Sums of neighbours times weights",
        "convolve": "Convolution of an image with weights",
    },
)
