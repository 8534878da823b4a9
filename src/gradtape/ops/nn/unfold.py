"""Windows laid out as columns, and columns added back at the places of their windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_as_samples
from gradtape.core.define import linear
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.nn.windows import (
    Sizes,
    Windows,
    joint_parts,
    per_axis,
    windows_of,
    with_samples,
    without_samples,
)
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

AllWindows = tuple[Windows, ...]


def _counts(windows: AllWindows) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(w.kernel for w in windows), tuple(w.number for w in windows)


def _unfold_forward(xp: Any, x: Any, windows: AllWindows) -> Any:
    kernel, counts = _counts(windows)
    samples, channels = x.shape[:2]
    out = xp.zeros((samples, channels, *kernel, *counts), x.dtype)
    for tap, into, of in joint_parts(windows):
        out[(slice(None), slice(None), *tap, *into)] = x[(..., *of)]
    return out.reshape((samples, channels * math.prod(kernel), math.prod(counts)))


def _fold_forward(xp: Any, x: Any, windows: AllWindows) -> Any:
    kernel, counts = _counts(windows)
    samples, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    columns = x.reshape((samples, channels, *kernel, *counts))
    out = xp.zeros((samples, channels, *(w.size for w in windows)), x.dtype)
    for tap, into, of in joint_parts(windows):
        part = out[(..., *of)]
        part += columns[(slice(None), slice(None), *tap, *into)]
    return out


def _infer_unfold(x: Aval, windows: AllWindows) -> Aval:
    kernel, counts = _counts(windows)
    return Aval((x.shape[0], x.shape[1] * math.prod(kernel), math.prod(counts)), x.dtype)


def _infer_fold(x: Aval, windows: AllWindows) -> Aval:
    channels = x.shape[1] // math.prod(_counts(windows)[0])
    return Aval((x.shape[0], channels, *(w.size for w in windows)), x.dtype)


# Every window is copied; transpose: every column is added where its window was
_unfold: Callable[..., Any] = linear(
    "unfold",
    _unfold_forward,
    lambda ct, _out, _x, windows: _fold(ct, windows=windows),
    infer=_infer_unfold,
    batch=batch_as_samples,
)

_fold: Callable[..., Any] = linear(
    "fold",
    _fold_forward,
    lambda ct, _out, _x, windows: _unfold(ct, windows=windows),
    infer=_infer_fold,
    batch=batch_as_samples,
)


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
    return without_samples(_unfold(x, windows=windows), added)


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
    rows, columns = (math.prod(numbers) for numbers in _counts(windows))
    if len(x.shape) not in (2, 3) or x.shape[-2] % rows or x.shape[-1] != columns:
        raise ShapeError(
            f"fold: got shape {x.shape}, expected (samples, channels · {rows}, {columns}) for "
            "these windows, or the same without samples"
        )
    added = len(x.shape) == 2
    x = reshape(x, (1, *x.shape)) if added else x
    return without_samples(_fold(x, windows=windows), added)
