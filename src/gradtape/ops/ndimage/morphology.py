"""Grey-scale morphology: extremes of windows, raised by a structure, and combinations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.cast import astype
from gradtape.ops.index import getitem
from gradtape.ops.ndimage.windows import (
    FILTERS,
    members,
    neighbours,
    real_floating,
    turned_origins,
    window_of,
)
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


def _extreme(
    name: str, x: Array, dilate: bool, size: Any, footprint: Any, structure: Any, mode: Any,
    cval: Any, origin: Any, axes: Axis,
) -> Array:  # fmt: skip
    """The largest x + structure of a turned window, or the smallest x − structure of one."""
    chosen = normalize_axes(axes, len(x.shape), name)
    if structure is not None:
        structure = as_array(structure)
        footprint = np.ones(structure.shape, bool) if footprint is None else footprint
    window = window_of(name, size, footprint, len(chosen))
    if structure is not None and structure.shape != window.shape:
        raise ShapeError(
            f"{name}: got a structure of shape {structure.shape} and a footprint of shape "
            f"{window.shape}, expected the same"
        )
    if dilate:
        window = np.flip(window)
        structure = None if structure is None else flip(structure)
        origin = turned_origins(name, origin, window.shape)
    found = neighbours(name, x, window, chosen, mode, cval, origin)
    if structure is not None:
        raised = getitem(structure, tuple(np.nonzero(window)))
        raised = astype(reshape(raised, (-1,) + (1,) * len(x.shape)), x.dtype, copy=False)
        found = found + raised if dilate else found - raised
    return max_of(found, axis=0) if dilate else min_of(found, axis=0)


# The result for an array x, given erosion and dilation as functions.
_MADE_OF: dict[str, Callable[..., Any]] = {
    "grey_erosion": lambda x, erode, dilate: erode(x),
    "grey_dilation": lambda x, erode, dilate: dilate(x),
    "grey_opening": lambda x, erode, dilate: dilate(erode(x)),
    "grey_closing": lambda x, erode, dilate: erode(dilate(x)),
    "white_tophat": lambda x, erode, dilate: x - dilate(erode(x)),
    "black_tophat": lambda x, erode, dilate: erode(dilate(x)) - x,
    "morphological_gradient": lambda x, erode, dilate: dilate(x) - erode(x),
    "morphological_laplace": lambda x, erode, dilate: dilate(x) + erode(x) - 2 * x,
}


@options(FILTERS)
def _morphology(
    name: str,
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    axes: Axis = None,
) -> Array:
    """{what}.

    Erosion takes the smallest of neighbours less the structure. Dilation takes the largest of
    neighbours plus the structure, with window and structure turned around. Equal ones share the
    gradient.

    Args:
        structure: Subtracted from the neighbours, or added to them: an array as large as the
            window, which may be a tensor.

    Raises:
        ArgumentError: There is no window.
        ShapeError: The structure does not fit.
        DTypeError: The array is not floating.

    grey_erosion:
    >>> gt.scipy.ndimage.grey_erosion(np.array([3.0, 1.0, 2.0, 5.0]), 3)
    array([1., 1., 1., 2.])

    grey_dilation:
    >>> gt.scipy.ndimage.grey_dilation(np.array([3.0, 1.0, 2.0, 5.0]), 3)
    array([3., 3., 5., 5.])

    grey_opening:
    >>> gt.scipy.ndimage.grey_opening(np.array([1.0, 1.0, 5.0, 1.0, 1.0]), 2)
    array([1., 1., 1., 1., 1.])

    grey_closing:
    >>> gt.scipy.ndimage.grey_closing(np.array([5.0, 5.0, 1.0, 5.0, 5.0]), 2)
    array([5., 5., 5., 5., 5.])

    white_tophat:
    >>> gt.scipy.ndimage.white_tophat(np.array([1.0, 1.0, 5.0, 1.0, 1.0]), 2)
    array([0., 0., 4., 0., 0.])

    black_tophat:
    >>> gt.scipy.ndimage.black_tophat(np.array([5.0, 5.0, 1.0, 5.0, 5.0]), 2)
    array([0., 0., 4., 0., 0.])

    morphological_gradient:
    >>> gt.scipy.ndimage.morphological_gradient(np.array([1.0, 1.0, 5.0, 5.0]), 3)
    array([0., 4., 4., 0.])

    morphological_laplace:
    >>> gt.scipy.ndimage.morphological_laplace(np.array([1.0, 1.0, 5.0, 5.0]), 3)
    array([ 0.,  4., -4.,  0.])
    """

    def extreme(dilate: bool, x: Array) -> Array:
        return _extreme(name, x, dilate, size, footprint, structure, mode, cval, origin, axes)

    erode, dilate = functools.partial(extreme, False), functools.partial(extreme, True)
    result: Array = _MADE_OF[name](real_floating(name, input), erode, dilate)
    return result


(
    grey_erosion,
    grey_dilation,
    grey_opening,
    grey_closing,
    white_tophat,
    black_tophat,
    morphological_gradient,
    morphological_laplace,
) = members(
    _morphology,
    {
        "grey_erosion": "The smallest of neighbours, less the structure",
        "grey_dilation": "The largest of neighbours, plus the structure",
        "grey_opening": "Erosion, then dilation: what is bright and small goes",
        "grey_closing": "Dilation, then erosion: what is dark and small goes",
        "white_tophat": "The array less its opening: what is bright and small",
        "black_tophat": "The closing of an array less itself: what is dark and small",
        "morphological_gradient": "Dilation less erosion: edges, and how high they are",
        "morphological_laplace": "Dilation plus erosion less twice the array",
    },
)
