"""Filters of images that show edges: differences, also those of a smoothed image."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ShapeError
from gradtape.ops.arguments import normalize_axes, normalize_axis
from gradtape.ops.exponential import sqrt
from gradtape.ops.ndimage.filters import correlate1d
from gradtape.ops.ndimage.smoothing import gaussian_filter
from gradtape.ops.ndimage.windows import floating, per_axis, refuse_output
from gradtape.typing import Array, ArrayLike, Axis


def _edges(
    name: str, input: ArrayLike, axis: int, smooth: list[float], output: Any, mode: Any, cval: Any
) -> Array:
    """Differences along one axis, smoothed along the others."""
    refuse_output(name, output)
    x = floating(name, input)
    axis = normalize_axis(axis, len(x.shape), name)
    modes = per_axis(name, "mode", mode, len(x.shape))
    x = correlate1d(x, [-1.0, 0.0, 1.0], axis, None, modes[axis], cval)
    for other in range(len(x.shape)):
        if other != axis:
            x = correlate1d(x, smooth, other, None, modes[other], cval)
    return x


def sobel(
    input: ArrayLike, /, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Array:
    """Sobel's filter: differences along one axis, smoothed by 1, 2, 1 along the others.

    Args:
        input: The array.
        axis: Along which axis the differences are.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each, as for
            `gt.ndimage.correlate1d`.
        cval: The number for "constant".

    >>> gt.ndimage.sobel(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 2.])
    """
    return _edges("sobel", input, axis, [1.0, 2.0, 1.0], output, mode, cval)


def prewitt(
    input: ArrayLike, /, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Array:
    """Prewitt's filter: differences along one axis, summed over neighbours along the others.

    Args:
        input: The array.
        axis: Along which axis the differences are.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each, as for
            `gt.ndimage.correlate1d`.
        cval: The number for "constant".

    >>> gt.ndimage.prewitt(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 2.])
    """
    return _edges("prewitt", input, axis, [1.0, 1.0, 1.0], output, mode, cval)


def laplace(
    input: ArrayLike,
    /,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Axis = None,
) -> Array:
    """The sum of the second differences along all axes.

    Args:
        input: The array.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, for all axes or for each, as for
            `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        axes: Along which axes; None takes all of them.

    >>> gt.ndimage.laplace(np.array([1.0, 2.0, 4.0]))
    array([ 1.,  1., -2.])
    """
    refuse_output("laplace", output)
    x = floating("laplace", input)
    chosen = _some_axes("laplace", x, axes)
    modes = per_axis("laplace", "mode", mode, len(chosen))
    return _sum(
        correlate1d(x, [1.0, -2.0, 1.0], axis, None, beyond, cval)
        for axis, beyond in zip(chosen, modes, strict=True)
    )


def _some_axes(name: str, x: Array, axes: Axis) -> tuple[int, ...]:
    chosen = normalize_axes(axes, len(x.shape), name)
    if not chosen:
        raise ShapeError(
            f"{name}: got shape {x.shape} with axes={axes}, expected at least one axis"
        )
    return chosen


def _sum(terms: Any) -> Any:
    first, *rest = terms
    return sum(rest, first)


def _derivatives(
    name: str, input: ArrayLike, sigma: Any, order: int, mode: Any, cval: Any, axes: Axis, rest: Any
) -> list[Array]:
    """The smoothed derivative of some order along each of the axes."""
    x = floating(name, input)
    chosen = _some_axes(name, x, axes)
    orders = [[order if other == axis else 0 for other in chosen] for axis in chosen]
    return [
        gaussian_filter(x, sigma, orders[i], None, mode, cval, axes=chosen, **rest)
        for i in range(len(chosen))
    ]


def gaussian_laplace(
    input: ArrayLike,
    /,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Axis = None,
    **kwargs: Any,
) -> Array:
    """The Laplacian of the smoothed array: the sum of second derivatives of a Gaussian filter.

    Args:
        input: The array.
        sigma: The standard deviation in elements, for all axes or for each.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, likewise; see `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        axes: Along which axes; None takes all of them.
        **kwargs: Further options of `gt.ndimage.gaussian_filter`.

    >>> np.round(gt.ndimage.gaussian_laplace(np.array([0.0, 1.0, 0.0]), 1.0, radius=1), 3)
    array([ 0.   , -0.452,  0.   ])
    """
    refuse_output("gaussian_laplace", output)
    return _sum(_derivatives("gaussian_laplace", input, sigma, 2, mode, cval, axes, kwargs))


def gaussian_gradient_magnitude(
    input: ArrayLike,
    /,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Axis = None,
    **kwargs: Any,
) -> Array:
    """The length of the gradient of the smoothed array; its derivative is NaN where that is 0.

    Args:
        input: The array.
        sigma: The standard deviation in elements, for all axes or for each.
        output: An option of SciPy, which raises.
        mode: What lies beyond the ends, likewise; see `gt.ndimage.correlate1d`.
        cval: The number for "constant".
        axes: Along which axes; None takes all of them.
        **kwargs: Further options of `gt.ndimage.gaussian_filter`.

    >>> gt.ndimage.gaussian_gradient_magnitude(np.ones(2), 1.0).round(12)
    array([0., 0.])
    """
    name = "gaussian_gradient_magnitude"
    refuse_output(name, output)
    parts = _derivatives(name, input, sigma, 1, mode, cval, axes, kwargs)
    return sqrt(_sum(part * part for part in parts))
