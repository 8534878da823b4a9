"""Average, sum and power pooling over one to three axes, as `torch.nn.functional` has them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, DTypeError
from gradtape.ops.cast import astype
from gradtape.ops.nn.pool_sums import lp_pool, pool_average
from gradtape.ops.nn.pooling import pool_windows
from gradtape.ops.nn.windows import Sizes, Windows, with_samples, without_samples
from gradtape.ops.reduce import floats
from gradtape.typing import Array, ArrayLike


def _averaged(
    name: str,
    rank: int,
    x: ArrayLike,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Array:
    x, added = with_samples(name, x, rank)
    x = floats(x)
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override == 0:
        raise ArgumentError(f"{name}: got divisor_override=0, expected another number, or None")
    counts = divisor_override or _counts(windows, count_include_pad)
    if not isinstance(counts, np.ndarray):
        return without_samples(pool_average(x, windows=windows, divide=counts), added)
    sums = pool_average(x, windows=windows, divide=1)
    return without_samples(sums / counts.astype(x.dtype), added)


@functools.lru_cache(maxsize=256)
def _counts(windows: tuple[Windows, ...], count_include_pad: bool) -> Any:
    """How many elements the windows have: a number if it is the same for all, else an array."""
    counts = np.ones(())
    for w in windows:
        start = np.arange(w.number) * w.stride - w.before
        # Padding is as wide on both sides; windows that reach beyond it end there.
        stop = np.minimum(start + w.kernel, w.size + w.before)
        if not count_include_pad:
            start, stop = np.maximum(start, 0), np.minimum(stop, w.size)
        counts = counts[..., None] * (stop - start)
    first = counts.flat[0].item()
    return first if (counts == first).all() else counts


def _summed(
    name: str,
    rank: int,
    x: ArrayLike,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
) -> Array:
    x, added = with_samples(name, x, rank)
    if x.dtype.kind in "biu":
        x = astype(x, np.add.reduce(np.empty(0, x.dtype)).dtype)  # as NumPy's sums
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    return without_samples(pool_average(x, windows=windows, divide=1), added)


def _powers(
    name: str,
    rank: int,
    x: ArrayLike,
    norm_type: float,
    kernel_size: Any,
    stride: Any,
    ceil_mode: bool,
) -> Array:
    x, added = with_samples(name, x, rank)
    x = floats(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers; pool its absolute value")
    if not 0 < norm_type < float("inf"):
        raise ArgumentError(
            f"{name}: got norm_type={norm_type}, expected a number above 0; use "
            f"max_pool{rank}d for the largest element"
        )
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, 0, 1, ceil_mode)
    out = lp_pool(x, windows=windows, p=norm_type)
    counts = _counts(windows, True)
    full = math.prod(w.kernel for w in windows)
    if isinstance(counts, np.ndarray) or counts != full:
        out = out * np.asarray((full / counts) ** (1 / norm_type), x.dtype)
    return without_samples(out, added)


def avg_pool1d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Averages over windows that move over the spatial axes.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: How many zeros are added at both ends; at most half of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        count_include_pad: Whether added zeros count in the average.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.avg_pool1d(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
    array([[2., 6.]])
    """
    return _averaged("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Averages over windows that move over the spatial axes.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: How many zeros are added at both ends; at most half of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        count_include_pad: Whether added zeros count in the average.
        divisor_override: What to divide sums by, instead of their number of elements.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.avg_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]])
    """
    return _averaged(
        "avg_pool2d",
        2,
        x,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def avg_pool3d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Averages over windows that move over the spatial axes.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: How many zeros are added at both ends; at most half of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        count_include_pad: Whether added zeros count in the average.
        divisor_override: What to divide sums by, instead of their number of elements.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.avg_pool3d(np.ones((1, 1, 4, 4, 4)), 2, stride=1).shape
    (1, 1, 3, 3, 3)
    """
    return _averaged(
        "avg_pool3d",
        3,
        x,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def sum_pool1d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
) -> Array:
    """Sums over windows that move over the spatial axes.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: How many zeros are added at both ends; at most half of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.sum_pool1d(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
    array([[ 4., 12.]])
    """
    return _summed("sum_pool1d", 1, x, kernel_size, stride, padding, ceil_mode)


def sum_pool2d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
) -> Array:
    """Sums over windows that move over the spatial axes.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: How many zeros are added at both ends; at most half of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.sum_pool2d(np.ones((1, 4, 4)), 2)
    array([[[4., 4.],
            [4., 4.]]])
    """
    return _summed("sum_pool2d", 2, x, kernel_size, stride, padding, ceil_mode)


def sum_pool3d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    ceil_mode: bool = False,
) -> Array:
    """Sums over windows that move over the spatial axes.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: How many zeros are added at both ends; at most half of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.sum_pool3d(np.ones((1, 1, 2, 2, 2)), 2).item()
    8.0
    """
    return _summed("sum_pool3d", 3, x, kernel_size, stride, padding, ceil_mode)


def lp_pool1d(
    x: ArrayLike,
    /,
    norm_type: float,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    ceil_mode: bool = False,
) -> Array:
    """The p-th root of the sum of p-th powers, over windows that move over the spatial axes.

    Where all elements of a window are 0 there is a kink; the gradient is taken as 0 there.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        norm_type: The power p; odd ones take negative elements as they are.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window, of which
            the mean power stands for what it lacks.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.lp_pool1d(np.array([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    array([[5., 1.]])
    """
    return _powers("lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: ArrayLike,
    /,
    norm_type: float,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    ceil_mode: bool = False,
) -> Array:
    """The p-th root of the sum of p-th powers, over windows that move over the spatial axes.

    Where all elements of a window are 0 there is a kink; the gradient is taken as 0 there.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        norm_type: The power p; odd ones take negative elements as they are.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window, of which
            the mean power stands for what it lacks.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.lp_pool2d(np.ones((1, 4, 4)), 2, 2)
    array([[[2., 2.],
            [2., 2.]]])
    """
    return _powers("lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    x: ArrayLike,
    /,
    norm_type: float,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    ceil_mode: bool = False,
) -> Array:
    """The p-th root of the sum of p-th powers, over windows that move over the spatial axes.

    Where all elements of a window are 0 there is a kink; the gradient is taken as 0 there.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        norm_type: The power p; odd ones take negative elements as they are.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        ceil_mode: Whether what is left over at the end makes one more, smaller window, of which
            the mean power stands for what it lacks.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.lp_pool3d(np.ones((1, 1, 2, 2, 2)), 3, 2).item()
    2.0
    """
    return _powers("lp_pool3d", 3, x, norm_type, kernel_size, stride, ceil_mode)
