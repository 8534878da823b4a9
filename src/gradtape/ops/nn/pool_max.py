"""Pooling by the largest or smallest element, over one to three axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.nn.pool_extremes import pool_indices
from gradtape.ops.nn.pool_gradients import pool_extreme
from gradtape.ops.nn.pooling import pool_windows
from gradtape.ops.nn.windows import Sizes, Windows, with_samples, without_samples
from gradtape.typing import ArrayLike


def _pooled(
    name: str,
    rank: int,
    x: ArrayLike,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    x, added = with_samples(name, x, rank)
    windows = pool_windows(name, x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    for w in windows:
        if w.dilation > 1:
            _check_seen(name, w)
    return pool_by_extreme(name, x, added, windows, return_indices)


def pool_by_extreme(name: str, x: Any, added: bool, windows: Any, return_indices: bool) -> Any:
    """The largest elements of windows ("min" in the name: the smallest), and where they stand."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: got {x.dtype}, expected real numbers, which have an order")
    params = {"windows": windows, "largest": not name.startswith("min")}
    out = without_samples(pool_extreme(x, **params), added)
    if not return_indices:
        return out
    return out, without_samples(pool_indices(x, **params), added)


def _check_seen(name: str, w: Windows) -> None:
    """Raise if dilated windows jump over all elements."""
    seen = np.zeros(w.number, bool)
    for part in w.parts():
        seen[part.into] = True
    if not seen.all():
        raise ShapeError(
            f"{name}: got {w.size} elements along an axis, and windows of {w.kernel} with "
            f"dilation {w.dilation} that see none of them, expected less dilation or padding"
        )


def max_pool1d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: By how much windows may begin before the array and end behind it.
        dilation: The distance of the elements that a window sees.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        return_indices: Whether to return `(values, indices)`, with the places of the elements in
            the flattened spatial axes.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.max_pool1d(np.array([[1.0, 3.0, 7.0, 5.0]]), 2)
    array([[3., 7.]])
    """
    return _pooled(
        "max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool2d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: By how much windows may begin before the array and end behind it.
        dilation: The distance of the elements that a window sees.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        return_indices: Whether to return `(values, indices)`, with the places of the elements in
            the flattened spatial axes.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> values, indices = gt.nn.max_pool2d(np.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)
    >>> values
    array([[[ 5.,  7.],
            [13., 15.]]])
    >>> indices
    array([[[ 5,  7],
            [13, 15]]])
    """
    return _pooled(
        "max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def max_pool3d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: By how much windows may begin before the array and end behind it.
        dilation: The distance of the elements that a window sees.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        return_indices: Whether to return `(values, indices)`, with the places of the elements in
            the flattened spatial axes.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.max_pool3d(np.ones((1, 1, 4, 4, 4)), 2, stride=1).shape
    (1, 1, 3, 3, 3)
    """
    return _pooled(
        "max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def min_pool1d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The smallest elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: By how much windows may begin before the array and end behind it.
        dilation: The distance of the elements that a window sees.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        return_indices: Whether to return `(values, indices)`, with the places of the elements in
            the flattened spatial axes.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.min_pool1d(np.array([[1.0, 3.0, 7.0, 5.0]]), 2)
    array([[1., 5.]])
    """
    return _pooled(
        "min_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def min_pool2d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The smallest elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: By how much windows may begin before the array and end behind it.
        dilation: The distance of the elements that a window sees.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        return_indices: Whether to return `(values, indices)`, with the places of the elements in
            the flattened spatial axes.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.min_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 0.,  2.],
            [ 8., 10.]]])
    """
    return _pooled(
        "min_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def min_pool3d(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    stride: int | Sizes | None = None,
    padding: int | Sizes = 0,
    dilation: int | Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The smallest elements of windows that move over the spatial axes.

    Of elements that are equal, the first one gets the gradient. A NaN in a window is its result.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        kernel_size: How many elements a window has along each axis: a number, or one per axis.
        stride: By how much a window moves to the next one; None takes the size of the window.
        padding: By how much windows may begin before the array and end behind it.
        dilation: The distance of the elements that a window sees.
        ceil_mode: Whether what is left over at the end makes one more, smaller window.
        return_indices: Whether to return `(values, indices)`, with the places of the elements in
            the flattened spatial axes.

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.
        DTypeError: The numbers are complex.

    >>> gt.nn.min_pool3d(np.ones((1, 1, 4, 4, 4)), 2, stride=1).shape
    (1, 1, 3, 3, 3)
    """
    return _pooled(
        "min_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )
