"""Medians and Wiener's filter under the names of `scipy.signal`, with zeros beyond the ends."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.checks import check_axes
from gradtape.ops.ndimage.ranks import rank_filter
from gradtape.ops.ndimage.windows import per_axis, real_floating
from gradtape.ops.reduce import mean
from gradtape.ops.select import where
from gradtape.ops.signal.convolution import correlate
from gradtape.typing import Array, ArrayLike


def _odd_sizes(name: str, sizes: Any, ndim: int) -> list[int]:
    found = [operator.index(n) for n in per_axis(name, "kernel_size", sizes, ndim)]
    if any(n % 2 == 0 or n < 1 for n in found):
        raise ArgumentError(f"{name}: got a window of {sizes}, expected odd sizes")
    return found


def order_filter(a: ArrayLike, /, domain: ArrayLike, rank: int) -> Array:
    """The neighbour of some rank of each element, with zeros around the array.

    Args:
        a: The array.
        domain: Which neighbours count: an array of as many axes, of odd sizes, where it is not 0.
        rank: Which one, from the smallest, which is 0.

    Raises:
        ArgumentError: A size is even, or there are not so many neighbours.

    >>> gt.scipy.signal.order_filter(np.array([1.0, 5.0, 2.0, 4.0]), np.ones(3), 0)
    array([0., 1., 2., 0.])
    """
    x, window = real_floating("order_filter", a), np.asarray(domain) != 0
    if window.ndim != len(x.shape):
        raise ShapeError(
            f"order_filter: got a domain of shape {window.shape} for an array of shape {x.shape}, "
            "expected as many axes"
        )
    _odd_sizes("order_filter", window.shape, len(x.shape))
    return rank_filter(x, rank, footprint=window, mode="constant")


def medfilt(volume: ArrayLike, /, kernel_size: Any = None) -> Array:
    """The median of the neighbours of each element, with zeros around the array.

    Args:
        volume: The array.
        kernel_size: The size of the window, for all axes or for each, odd; 3 if it is None.

    Raises:
        ArgumentError: A size is even.
        DTypeError: The array is not floating.

    >>> gt.scipy.signal.medfilt(np.array([1.0, 9.0, 2.0, 3.0]))
    array([1., 2., 3., 2.])
    """
    x = real_floating("medfilt", volume)
    sizes = _odd_sizes("medfilt", 3 if kernel_size is None else kernel_size, len(x.shape))
    return rank_filter(x, math.prod(sizes) // 2, size=sizes, mode="constant")


def medfilt2d(input: ArrayLike, /, kernel_size: Any = 3) -> Array:
    """`gt.scipy.signal.medfilt` of a matrix.

    Args:
        input: The matrix.
        kernel_size: The size of the window, for both axes or for each, odd.

    >>> gt.scipy.signal.medfilt2d(np.ones((3, 3)))
    array([[0., 1., 0.],
           [1., 1., 1.],
           [0., 1., 0.]])
    """
    x = real_floating("medfilt2d", input)
    check_axes("medfilt2d", x, 2, instead="use medfilt")
    return medfilt(x, kernel_size)


def wiener(im: ArrayLike, /, mysize: Any = None, noise: Any = None) -> Array:
    """Wiener's filter: the mean of neighbours where only noise varies, else nearer the element.

    Args:
        im: The array.
        mysize: The size of the window, for all axes or for each; 3 if it is None.
        noise: The power of the noise, which may be a tensor; the mean of the variances of all
            windows if it is None.

    Raises:
        DTypeError: The array is not floating and real.

    >>> gt.scipy.signal.wiener(np.array([1.0, 1.0, 7.0, 1.0, 1.0])).round(4)
    array([0.6667, 2.2222, 4.5556, 2.2222, 0.6667])
    """
    x = real_floating("wiener", im)
    sizes = per_axis("wiener", "mysize", 3 if mysize is None else mysize, len(x.shape))
    window = np.full(sizes, 1 / math.prod(sizes), x.dtype)
    means = correlate(x, window, "same")
    variances = correlate(x * x, window, "same") - means * means
    noise = mean(variances) if noise is None else noise
    only_noise = variances < noise
    kept = 1 - noise / where(only_noise, 1.0, variances)
    return where(only_noise, means, means + (x - means) * kept)
