"""Linear filters of images: sums over a window, which goes along with every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.ndimage.windows import floating, per_axis, refuse_output, surrounded
from gradtape.ops.shape import moveaxis
from gradtape.ops.signal.direct import convolve_over, turned
from gradtape.typing import Array, ArrayLike, Axis

# ---- along one axis -----------------------------------------------------------------------------


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


def _filtered(
    name: str, x: Array, kernel: Array, axis: int, mode: str, cval: Any, origin: int
) -> Array:
    """The convolution with a kernel along one axis."""
    axis = normalize_axis(axis, len(x.shape), name)
    x = surrounded(name, x, {axis: kernel.shape[0]}, (mode,), cval, (origin,))
    return moveaxis(convolve_over(moveaxis(x, axis, -1), kernel, ndim=1, full=False), -1, axis)


def correlate1d(
    input: ArrayLike,
    /,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """Sums of neighbours along one axis times weights, differentiable in both.

    Args:
        input: The array.
        weights: Those of the neighbours, of which the middle one is the element itself.
        axis: Along which axis.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends: "reflect" (mirrored, the last element twice), "mirror"
            (once), "nearest" (the last element), "wrap" (the other end), "constant".
        cval: The number for "constant".
        origin: By how many elements the window is moved.

    Raises:
        AxisError: There is no such axis.
        DTypeError: The array is not floating.
        ShapeError: Weights do not have one axis.
        ArgumentError: `mode` or `origin` is something else.

    >>> gt.ndimage.correlate1d(np.array([1.0, 2.0, 4.0]), np.array([-1.0, 0.0, 1.0]))
    array([1., 3., 2.])
    """
    refuse_output("correlate1d", output)
    x = floating("correlate1d", input)
    kernel = turned(_weights("correlate1d", weights, x, 1), 1)
    return _filtered("correlate1d", x, kernel, axis, mode, cval, origin)


def convolve1d(
    input: ArrayLike,
    /,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """Convolution with weights along one axis, with the options of `gt.ndimage.correlate1d`.

    Args:
        input: The array.
        weights: The weights.
        axis: Along which axis.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.

    >>> gt.ndimage.convolve1d(np.array([1.0, 2.0, 4.0]), np.array([-1.0, 0.0, 1.0]))
    array([-1., -3., -2.])
    """
    refuse_output("convolve1d", output)
    x = floating("convolve1d", input)
    kernel = _weights("convolve1d", weights, x, 1)
    return _filtered("convolve1d", x, kernel, axis, mode, cval, _turned_origin(kernel, 0, origin))


def _turned_origin(weights: Array, axis: int, origin: Any) -> Any:
    """The origin of a window that is turned around, whose middle is another if its size is even."""
    return -origin - (weights.shape[axis] % 2 == 0)


# ---- over several axes --------------------------------------------------------------------------


def _over(
    name: str, x: Array, weights: Array, mode: Any, cval: Any, origin: Any, axes: Axis, turn: bool
) -> Array:
    """The convolution with a kernel over axes; of a correlation it comes turned around."""
    chosen = normalize_axes(axes, len(x.shape), name)
    kernel = _weights(name, weights, x, len(chosen))
    origins = per_axis(name, "origin", origin, len(chosen))
    if turn:
        kernel = turned(kernel, len(chosen)) if chosen else kernel
    else:
        origins = [_turned_origin(kernel, i, one) for i, one in enumerate(origins)]
    modes = per_axis(name, "mode", mode, len(chosen))
    sizes = dict(zip(chosen, kernel.shape, strict=True))
    x = surrounded(name, x, sizes, modes, cval, origins)
    last = tuple(range(-len(chosen), 0))
    out = convolve_over(moveaxis(x, chosen, last), kernel, ndim=len(chosen), full=False)
    return moveaxis(out, last, chosen)


def correlate(
    input: ArrayLike,
    /,
    weights: ArrayLike,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """Sums of neighbours times weights, differentiable in both.

    Args:
        input: The array.
        weights: Those of the neighbours: an array of as many axes.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each, as for
            `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        origin: By how many elements the window is moved, for all axes or for each.
        axes: Over which axes; None takes all of them.

    Raises:
        DTypeError: The array is not floating.
        ShapeError: Weights do not have as many axes.
        ArgumentError: `mode` or `origin` is something else.

    >>> gt.ndimage.correlate(np.eye(2), np.ones((3, 3)), mode="constant")
    array([[2., 2.],
           [2., 2.]])
    """
    refuse_output("correlate", output)
    x = floating("correlate", input)
    return _over("correlate", x, weights, mode, cval, origin, axes, True)


def convolve(
    input: ArrayLike,
    /,
    weights: ArrayLike,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """Convolution of an image with weights, with the options of `gt.ndimage.correlate`.

    Args:
        input: The array.
        weights: An array of as many axes.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each.
        cval: The number for "constant".
        origin: By how many elements the window is moved, for all axes or for each.
        axes: Over which axes; None takes all of them.

    >>> gt.ndimage.convolve(np.eye(2), np.ones((1, 3)), mode="constant")
    array([[1., 1.],
           [1., 1.]])
    """
    refuse_output("convolve", output)
    x = floating("convolve", input)
    return _over("convolve", x, weights, mode, cval, origin, axes, False)
