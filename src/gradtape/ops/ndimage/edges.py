"""Image filters that show edges: differences, also of a smoothed image."""

from __future__ import annotations

from typing import Any

from gradtape.core.define import added
from gradtape.errors import ShapeError
from gradtape.ops.arguments import normalize_axes, normalize_axis
from gradtape.ops.exponential import sqrt
from gradtape.ops.ndimage.filters import correlate1d
from gradtape.ops.ndimage.smoothing import gaussian_filter
from gradtape.ops.ndimage.windows import FILTERS, floating, members, per_axis
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

_SMOOTHED_BY = {"sobel": [1.0, 2.0, 1.0], "prewitt": [1.0, 1.0, 1.0]}


@options(FILTERS)
def _edges(
    name: str, input: ArrayLike, /, axis: int = -1, *, mode: Any = "reflect", cval: Any = 0.0
) -> Array:
    """{what} along the others.

    Args:
        axis: The axis along which to take differences.

    sobel:
    >>> gt.scipy.ndimage.sobel(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 2.])

    prewitt:
    >>> gt.scipy.ndimage.prewitt(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 2.])
    """
    x = floating(name, input)
    axis = normalize_axis(axis, len(x.shape), name)
    modes = per_axis(name, "mode", mode, len(x.shape))
    x = correlate1d(x, [-1.0, 0.0, 1.0], axis, mode=modes[axis], cval=cval)
    for other in range(len(x.shape)):
        if other != axis:
            x = correlate1d(x, _SMOOTHED_BY[name], other, mode=modes[other], cval=cval)
    return x


sobel, prewitt = members(
    _edges,
    {
        "sobel": "Sobel's filter: differences along one axis, smoothed by 1, 2, 1",
        "prewitt": "Prewitt's filter: differences along one axis, summed over neighbours",
    },
)


@options(FILTERS)
def laplace(
    input: ArrayLike,
    /,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    axes: Axis = None,
) -> Array:
    """The sum of the second differences along all axes.

    >>> gt.scipy.ndimage.laplace(np.array([1.0, 2.0, 4.0]))
    array([ 1.,  1., -2.])
    """
    x = floating("laplace", input)
    chosen = _some_axes("laplace", x, axes)
    modes = per_axis("laplace", "mode", mode, len(chosen))
    seconds = (
        correlate1d(x, [1.0, -2.0, 1.0], axis, mode=beyond, cval=cval)
        for axis, beyond in zip(chosen, modes, strict=True)
    )
    return added(*seconds)


def _some_axes(name: str, x: Array, axes: Axis) -> tuple[int, ...]:
    chosen = normalize_axes(axes, len(x.shape), name)
    if not chosen:
        raise ShapeError(
            f"{name}: got shape {x.shape} with axes={axes}, expected at least one axis"
        )
    return chosen


def _derivatives(
    name: str, input: ArrayLike, order: int, mode: Any, axes: Axis, everywhere: bool, **rest: Any
) -> list[Array]:
    """The smoothed derivative of some order along each of the axes, by SciPy's use of its options.

    The mode for an axis is used along all axes for the derivative along this one; and the gradient
    is smoothed along all axes, `everywhere`, whatever `axes` says.
    """
    x = floating(name, input)
    chosen = _some_axes(name, x, axes)
    modes = per_axis(name, "mode", mode, len(chosen))
    over = tuple(range(len(x.shape))) if everywhere else chosen
    found = []
    for axis, beyond in zip(chosen, modes, strict=True):
        orders = [order if other == axis else 0 for other in over]
        found.append(gaussian_filter(x, order=orders, mode=beyond, axes=over, **rest))
    return found


@options(FILTERS)
def gaussian_laplace(
    input: ArrayLike,
    /,
    sigma: Any,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    axes: Axis = None,
    **kwargs: Any,
) -> Array:
    """The Laplacian of the smoothed array: the sum of second derivatives of a Gaussian filter.

    Args:
        **kwargs: Further options of `gt.scipy.ndimage.gaussian_filter`.

    >>> np.round(gt.scipy.ndimage.gaussian_laplace(np.array([0.0, 1.0, 0.0]), 1.0, radius=1), 3)
    array([ 0.   , -0.452,  0.   ])
    """
    options = {"sigma": sigma, "cval": cval, **kwargs}
    return added(*_derivatives("gaussian_laplace", input, 2, mode, axes, False, **options))


@options(FILTERS)
def gaussian_gradient_magnitude(
    input: ArrayLike,
    /,
    sigma: Any,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    axes: Axis = None,
    **kwargs: Any,
) -> Array:
    """The length of the gradient of the smoothed array; its derivative is NaN where that is 0.

    Args:
        **kwargs: Further options of `gt.scipy.ndimage.gaussian_filter`.

    >>> gt.scipy.ndimage.gaussian_gradient_magnitude(np.ones(2), 1.0).round(12)
    array([0., 0.])
    """
    name = "gaussian_gradient_magnitude"
    options = {"sigma": sigma, "cval": cval, **kwargs}
    parts = _derivatives(name, input, 1, mode, axes, True, **options)
    return sqrt(added(*(part * part for part in parts)))
