"""Windows laid out as columns, and columns added back at the places of their windows."""

from __future__ import annotations

import math

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.nn.conv_columns import window_columns, window_images, window_sizes
from gradtape.ops.nn.windows import (
    Sizes,
    per_axis,
    windows_of,
    with_samples,
    without_samples,
)
from gradtape.ops.shape import moveaxis, reshape
from gradtape.typing import Array, ArrayLike


def unfold(
    x: ArrayLike,
    /,
    kernel_size: int | Sizes,
    dilation: int | Sizes = 1,
    padding: int | Sizes = 0,
    stride: int | Sizes = 1,
) -> Array:
    """All windows of images, each as a column (im2col).

    Args:
        x: Of shape (samples, channels, height, width), or (channels, height, width).
        kernel_size: The height and width of the windows, or one number for both.
        dilation: The distance between the elements that a window sees.
        padding: How many zeros are added at both ends.
        stride: By how much a window moves to the next one.

    Returns:
        Of shape (samples, channels · kernel height · kernel width, number of windows).

    Raises:
        ShapeError: The array has other axes, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.unfold(np.arange(6.0).reshape(1, 2, 3), 2)
    array([[0., 1.],
           [1., 2.],
           [3., 4.],
           [4., 5.]])
    """
    x, added = with_samples("unfold", x, 2)
    windows = windows_of("unfold", x.shape[2:], kernel_size, stride, padding, dilation)
    columns = moveaxis(window_columns(x, windows=windows), 3, 0)
    rows, places = (math.prod(numbers) for numbers in window_sizes(windows))
    return without_samples(reshape(columns, (x.shape[0], x.shape[1] * rows, places)), added)


def fold(
    x: ArrayLike,
    /,
    output_size: int | Sizes,
    kernel_size: int | Sizes,
    dilation: int | Sizes = 1,
    padding: int | Sizes = 0,
    stride: int | Sizes = 1,
) -> Array:
    """Columns added up at the places of their windows (col2im).

    Args:
        x: Of shape (samples, channels · kernel height · kernel width, number of windows), or the
            same without samples.
        output_size: The height and width of the images.
        kernel_size: The height and width of the windows, as of `unfold`.
        dilation: The distance between the elements of a window.
        padding: By how much windows begin before the images and end after them.
        stride: By how much a window moves to the next one.

    Returns:
        Images, of shape (samples, channels, height, width).

    Raises:
        ShapeError: The shape is not that of columns of such windows.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.fold(np.ones((4, 2)), (2, 3), 2)
    array([[[1., 2., 1.],
            [1., 2., 1.]]])
    """
    x = as_array(x)
    sizes = per_axis("fold", "output_size", output_size, 2)
    windows = windows_of("fold", sizes, kernel_size, stride, padding, dilation)
    rows, columns = (math.prod(numbers) for numbers in window_sizes(windows))
    if len(x.shape) not in (2, 3) or x.shape[-2] % rows or x.shape[-1] != columns:
        raise ShapeError(
            f"fold: got shape {x.shape}, expected (samples, channels · {rows}, {columns}) for "
            "these windows, or the same without samples"
        )
    added = len(x.shape) == 2
    x = reshape(x, (1, *x.shape)) if added else x
    kernel, counts = window_sizes(windows)
    split = reshape(x, (x.shape[0], x.shape[1] // rows, *kernel, *counts))
    return without_samples(window_images(moveaxis(split, 0, 3), windows=windows), added)
