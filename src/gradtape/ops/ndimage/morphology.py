"""Grey-scale morphology: extremes of windows, raised by a structure, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.cast import astype
from gradtape.ops.index import getitem
from gradtape.ops.ndimage.windows import (
    neighbours,
    per_axis,
    real_floating,
    refuse_output,
    window_of,
)
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.shape import reshape
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
        # A window that is turned around has another middle if its size is even.
        origins = zip(per_axis(name, "origin", origin, len(chosen)), window.shape, strict=True)
        origin = [-one - (n % 2 == 0) for one, n in origins]
    found = neighbours(name, x, window, chosen, mode, cval, origin)
    if structure is not None:
        raised = getitem(structure, tuple(np.nonzero(window)))
        raised = astype(reshape(raised, (-1,) + (1,) * len(x.shape)), x.dtype, copy=False)
        found = found + raised if dilate else found - raised
    return max_of(found, axis=0) if dilate else min_of(found, axis=0)


def _steps(
    name: str, input: ArrayLike, kinds: str, size: Any, footprint: Any, structure: Any,
    output: Any, *options: Any,
) -> list[Array]:  # fmt: skip
    """The array, and what becomes of it by each of the kinds, "d" or "e", one after the other."""
    refuse_output(name, output)
    x = real_floating(name, input)
    steps = [x]
    for kind in kinds:
        x = _extreme(name, x, kind == "d", size, footprint, structure, *options)
        steps.append(x)
    return steps


def grey_erosion(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The smallest of neighbours less the structure; equal ones share the gradient.

    Args:
        input: The array.
        size: The size of the window, for all axes or for each.
        footprint: Which elements of a window count, instead of `size`.
        structure: What is taken off the neighbours: an array as large as the window, which may be
            a tensor.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each.
        cval: The number for "constant".
        origin: By how many elements the window is moved, likewise.
        axes: Over which axes; None takes all of them.

    Raises:
        ArgumentError: There is no window.
        ShapeError: The structure does not fit.
        DTypeError: The array is not floating.

    >>> gt.ndimage.grey_erosion(np.array([3.0, 1.0, 2.0, 5.0]), 3)
    array([1., 1., 1., 2.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    return _steps("grey_erosion", input, "e", *options)[-1]


def grey_dilation(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The largest of neighbours plus the structure, with the options of `gt.ndimage.grey_erosion`.

    Args:
        input: The array.
        size: The size of the window, for all axes or for each.
        footprint: Which elements of a window count, turned around, instead of `size`.
        structure: What is added to the neighbours, turned around.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each.
        cval: The number for "constant".
        origin: By how many elements the window is moved, likewise.
        axes: Over which axes; None takes all of them.

    >>> gt.ndimage.grey_dilation(np.array([3.0, 1.0, 2.0, 5.0]), 3)
    array([3., 3., 5., 5.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    return _steps("grey_dilation", input, "d", *options)[-1]


def grey_opening(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """Erosion, then dilation: what is bright and small goes.

    Args:
        input: The array.
        size: The size of the window, and so on, as for `gt.ndimage.grey_erosion`.
        footprint: Which elements of a window count.
        structure: What neighbours are raised by.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.
        axes: Over which axes.

    >>> gt.ndimage.grey_opening(np.array([1.0, 1.0, 5.0, 1.0, 1.0]), 2)
    array([1., 1., 1., 1., 1.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    return _steps("grey_opening", input, "ed", *options)[-1]


def grey_closing(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """Dilation, then erosion: what is dark and small goes.

    Args:
        input: The array.
        size: The size of the window, and so on, as for `gt.ndimage.grey_erosion`.
        footprint: Which elements of a window count.
        structure: What neighbours are raised by.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.
        axes: Over which axes.

    >>> gt.ndimage.grey_closing(np.array([5.0, 5.0, 1.0, 5.0, 5.0]), 2)
    array([5., 5., 5., 5., 5.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    return _steps("grey_closing", input, "de", *options)[-1]


def white_tophat(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The array less its opening: what is bright and small.

    Args:
        input: The array.
        size: The size of the window, and so on, as for `gt.ndimage.grey_erosion`.
        footprint: Which elements of a window count.
        structure: What neighbours are raised by.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.
        axes: Over which axes.

    >>> gt.ndimage.white_tophat(np.array([1.0, 1.0, 5.0, 1.0, 1.0]), 2)
    array([0., 0., 4., 0., 0.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    x, _, opened = _steps("white_tophat", input, "ed", *options)
    return x - opened


def black_tophat(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The closing of an array less itself: what is dark and small.

    Args:
        input: The array.
        size: The size of the window, and so on, as for `gt.ndimage.grey_erosion`.
        footprint: Which elements of a window count.
        structure: What neighbours are raised by.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.
        axes: Over which axes.

    >>> gt.ndimage.black_tophat(np.array([5.0, 5.0, 1.0, 5.0, 5.0]), 2)
    array([0., 0., 4., 0., 0.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    x, _, closed = _steps("black_tophat", input, "de", *options)
    return closed - x


def morphological_gradient(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """Dilation less erosion: edges, and how high they are.

    Args:
        input: The array.
        size: The size of the window, and so on, as for `gt.ndimage.grey_erosion`.
        footprint: Which elements of a window count.
        structure: What neighbours are raised by.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.
        axes: Over which axes.

    >>> gt.ndimage.morphological_gradient(np.array([1.0, 1.0, 5.0, 5.0]), 3)
    array([0., 4., 4., 0.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    smaller, larger = (_steps("morphological_gradient", input, k, *options)[-1] for k in "ed")
    return larger - smaller


def morphological_laplace(
    input: ArrayLike,
    /,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """Dilation plus erosion less twice the array.

    Args:
        input: The array.
        size: The size of the window, and so on, as for `gt.ndimage.grey_erosion`.
        footprint: Which elements of a window count.
        structure: What neighbours are raised by.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.
        axes: Over which axes.

    >>> gt.ndimage.morphological_laplace(np.array([1.0, 1.0, 5.0, 5.0]), 3)
    array([ 0.,  4., -4.,  0.])
    """
    options = (size, footprint, structure, output, mode, cval, origin, axes)
    name = "morphological_laplace"
    (x, smaller), (_, larger) = (_steps(name, input, kind, *options) for kind in "ed")
    return larger + smaller - 2 * x
