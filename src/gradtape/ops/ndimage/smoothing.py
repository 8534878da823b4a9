"""Smoothing of images by Gaussians, their derivatives, and means over windows."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import check_real
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.checks import check_least
from gradtape.ops.exponential import exp
from gradtape.ops.ndimage.filters import correlate1d
from gradtape.ops.ndimage.windows import ALONG, FILTERS, along_each, floating
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

# As in SciPy, axes with a standard deviation up to this are not smoothed.
_NO_WIDTH = 1e-15


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """The weights of a Gaussian, or of a derivative of it, turned around for a correlation."""
    u = np.arange(-radius, radius + 1) / sigma
    weights = exp(-0.5 * (u * u))
    weights = weights / sum_of(weights)
    # The derivatives of exp(−u²/2) are ± Hermite's polynomials times it, which follow from each
    # other: He₀ = 1, He₁ = u, Heₙ₊₁ = u·Heₙ − n·Heₙ₋₁.
    before, polynomial = 0 * u, 0 * u + 1
    for n in range(order):
        before, polynomial = polynomial, u * polynomial - n * before
    return flip(polynomial * weights * (-1 / sigma) ** order, 0)


def _radius(sigma: Any, truncate: float) -> int:
    width = values_if_known(sigma)
    if width is None:
        raise ArgumentError(
            "gaussian_filter1d: got a standard deviation whose value is not known yet, on which "
            "the size of the window depends, expected radius="
        )
    return int(truncate * float(width) + 0.5)


@options(ALONG)
def gaussian_filter1d(
    input: ArrayLike,
    /,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    *,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    radius: int | None = None,
) -> Array:
    """The array smoothed along one axis by a Gaussian, or its smoothed derivative.

    Args:
        sigma: The standard deviation, in elements; the result is differentiable in a tensor, with
            a window that stays as large as it is.
        order: Which derivative of the Gaussian is taken.
        truncate: After how many standard deviations the window ends.
        radius: After how many elements instead; under `jit` a tensor as `sigma` needs it.

    Raises:
        AxisError: There is no such axis.
        DTypeError: The array is not floating.
        ArgumentError: `radius` or `order` is negative, or depends on a value that is not known.

    >>> gt.scipy.ndimage.gaussian_filter1d(np.array([0.0, 1.0, 0.0]), 1.0, radius=1)
    array([0.27406862, 0.45186276, 0.27406862])
    """
    check_real("gaussian_filter1d", sigma=sigma, truncate=truncate)
    reach = _radius(sigma, truncate) if radius is None else operator.index(radius)
    order = operator.index(order)
    check_least("gaussian_filter1d", 0, radius=reach, order=order)
    weights = _gaussian(sigma, order, reach)
    return correlate1d(input, weights, axis, mode=mode, cval=cval)


@options(FILTERS)
def gaussian_filter(
    input: ArrayLike,
    /,
    sigma: Any,
    order: Any = 0,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    radius: Any = None,
    axes: Axis = None,
) -> Array:
    """The array smoothed by a Gaussian over all axes, or its smoothed derivative.

    Args:
        order: Which derivative of the Gaussian is taken, likewise.
        truncate: After how many standard deviations the window ends.
        radius: After how many elements instead, for all axes or for each.

    Raises:
        DTypeError: The array is not floating.

    >>> gt.scipy.ndimage.gaussian_filter(np.ones((2, 2)), 1.0)
    array([[1., 1.],
           [1., 1.]])
    """

    def along_one(x: Array, sigma: Any, **options: Any) -> Array:
        if not isinstance(sigma, Tensor) and sigma <= _NO_WIDTH:
            return x
        return gaussian_filter1d(x, sigma, cval=cval, truncate=truncate, **options)

    x = floating("gaussian_filter", input)
    given = {"sigma": sigma, "order": order, "mode": mode, "radius": radius}
    return along_each("gaussian_filter", x, axes, along_one, **given)


@options(ALONG)
def uniform_filter1d(
    input: ArrayLike,
    /,
    size: int,
    axis: int = -1,
    *,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Array:
    """The mean of neighbours along one axis.

    >>> gt.scipy.ndimage.uniform_filter1d(np.array([3.0, 0.0, 6.0]), 3)
    array([2., 3., 4.])
    """
    weights = np.full(size, 1.0 / size)
    return correlate1d(input, weights, axis, mode=mode, cval=cval, origin=origin)


@options(FILTERS)
def uniform_filter(
    input: ArrayLike,
    /,
    size: Any = 3,
    *,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    axes: Axis = None,
) -> Array:
    """The mean of neighbours over all axes.

    >>> gt.scipy.ndimage.uniform_filter(np.ones((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """
    x = floating("uniform_filter", input)
    along_one = functools.partial(uniform_filter1d, cval=cval)
    return along_each("uniform_filter", x, axes, along_one, size=size, mode=mode, origin=origin)
