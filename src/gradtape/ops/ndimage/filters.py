"""Linear filters of images: sums over a window, which goes along with every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import answers
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.ndimage.interpolation import floating
from gradtape.ops.ndimage.prefilter import refuse_output
from gradtape.ops.ndimage.windows import chosen_axes, per_axis, surrounded
from gradtape.ops.shape import moveaxis
from gradtape.ops.signal.direct import convolve_over, turned
from gradtape.typing import Array, ArrayLike, Axis

# ---- along one axis -----------------------------------------------------------------------------


def _weights(name: str, weights: ArrayLike, x: Array, ndim: int) -> Array:
    weights = as_array(weights)
    if len(weights.shape) != ndim or 0 in weights.shape:
        raise ShapeError(
            f"{name}: came weights of shape {weights.shape}; needed {ndim} axes that are not empty"
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


@answers("scipy.ndimage.correlate1d")
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


@answers("scipy.ndimage.convolve1d")
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
    chosen = chosen_axes(name, len(x.shape), axes)
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


@answers("scipy.ndimage.correlate")
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


@answers("scipy.ndimage.convolve")
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


# ---- smoothing ----------------------------------------------------------------------------------


def _gaussian(sigma: float, order: int, radius: int) -> Any:
    """The weights of a Gaussian, or of a derivative of it, turned around for a correlation."""
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (x / sigma) ** 2)
    weights /= weights.sum()
    # The derivatives of exp(−x²/2σ²) are Hermite's polynomials of x/σ times it.
    series = np.zeros(order + 1)
    series[order] = (-1.0 / sigma) ** order
    return (np.polynomial.hermite_e.hermeval(x / sigma, series) * weights)[::-1]


@answers("scipy.ndimage.gaussian_filter1d")
def gaussian_filter1d(
    input: ArrayLike,
    /,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Array:
    """The array smoothed along one axis by a Gaussian, or its smoothed derivative.

    Args:
        input: The array.
        sigma: The standard deviation, in elements.
        axis: Along which axis.
        order: Which derivative of the Gaussian is taken.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, as for `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        truncate: After how many standard deviations the window ends.
        radius: After how many elements instead.

    Raises:
        AxisError: There is no such axis.
        DTypeError: The array is not floating.

    >>> gt.ndimage.gaussian_filter1d(np.array([0.0, 1.0, 0.0]), 1.0, radius=1)
    array([0.27406862, 0.45186276, 0.27406862])
    """
    reach = int(truncate * float(sigma) + 0.5) if radius is None else radius
    kernel = _gaussian(float(sigma), order, reach)
    return correlate1d(input, kernel, axis, output, mode, cval)


def _sigmas(name: str, x: Array, sigma: Any, axes: Axis) -> tuple[tuple[int, ...], list[Any]]:
    chosen = chosen_axes(name, len(x.shape), axes)
    return chosen, per_axis(name, "sigma", sigma, len(chosen))


@answers("scipy.ndimage.gaussian_filter")
def gaussian_filter(
    input: ArrayLike,
    /,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Axis = None,
) -> Array:
    """The array smoothed by a Gaussian over all axes, or its smoothed derivative.

    Args:
        input: The array.
        sigma: The standard deviation in elements, for all axes or for each.
        order: Which derivative of the Gaussian is taken, likewise.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, likewise; see `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        truncate: After how many standard deviations the window ends.
        radius: After how many elements instead, for all axes or for each.
        axes: Over which axes; None takes all of them.

    Raises:
        DTypeError: The array is not floating.

    >>> gt.ndimage.gaussian_filter(np.ones((2, 2)), 1.0)
    array([[1., 1.],
           [1., 1.]])
    """
    name = "gaussian_filter"
    refuse_output(name, output)
    x = floating(name, input)
    chosen, sigmas = _sigmas(name, x, sigma, axes)
    options = (
        per_axis(name, what, value, len(chosen))
        for what, value in (("order", order), ("mode", mode), ("radius", radius))
    )
    for axis, one, *rest in zip(chosen, sigmas, *options, strict=True):
        if one > 1e-15:
            nth, beyond, reach = rest
            x = gaussian_filter1d(x, one, axis, nth, None, beyond, cval, truncate, radius=reach)
    return x


@answers("scipy.ndimage.uniform_filter1d")
def uniform_filter1d(
    input: ArrayLike,
    /,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The mean of neighbours along one axis, with the options of `gt.ndimage.correlate1d`.

    Args:
        input: The array.
        size: Of how many neighbours.
        axis: Along which axis.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends.
        cval: The number for "constant".
        origin: By how many elements the window is moved.

    >>> gt.ndimage.uniform_filter1d(np.array([3.0, 0.0, 6.0]), 3)
    array([2., 3., 4.])
    """
    return correlate1d(input, np.full(size, 1.0 / size), axis, output, mode, cval, origin)


@answers("scipy.ndimage.uniform_filter")
def uniform_filter(
    input: ArrayLike,
    /,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Axis = None,
) -> Array:
    """The mean of neighbours over all axes.

    Args:
        input: The array.
        size: The size of the window, for all axes or for each.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, likewise; see `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        origin: By how many elements the window is moved, likewise.
        axes: Over which axes; None takes all of them.

    >>> gt.ndimage.uniform_filter(np.ones((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """
    name = "uniform_filter"
    refuse_output(name, output)
    x = floating(name, input)
    chosen = chosen_axes(name, len(x.shape), axes)
    options = (
        per_axis(name, what, value, len(chosen))
        for what, value in (("size", size), ("mode", mode), ("origin", origin))
    )
    for axis, one, beyond, moved in zip(chosen, *options, strict=True):
        x = uniform_filter1d(x, one, axis, None, beyond, cval, moved)
    return x
