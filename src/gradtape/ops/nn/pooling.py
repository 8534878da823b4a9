"""Turn the options of pooling functions into windows along each spatial axis, and check them."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError
from gradtape.ops.nn.windows import Windows, windows_of

# The options that pooling functions share, and the errors that all of them raise.
POOLING = {
    "x": "Of shape (samples, channels, {sizes}), or the same without samples.",
    "kernel_size": "How many elements a window has along each axis: a number, or one per axis.",
    "stride": "The distance between neighbouring windows; None takes the size of the window.",
    "padding": "How many zeros are added at both ends; at most half of the window.",
    "dilation": "The distance between the elements that a window sees.",
    "ceil_mode": "Whether the elements left over at the end make one more, smaller window.",
    "return_indices": "Whether to return `(values, indices)`, with the places of the elements in "
    "the flattened spatial axes.",
}
POOLING_ERRORS = {
    "ShapeError": "The array has other axes, or no window fits.",
    "ArgumentError": "An option has a value that has no meaning.",
}


def pool_windows(
    name: str,
    sizes: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Windows, ...]:
    """Windows from the options of pooling functions; a stride of None is the kernel's size."""
    stride = kernel_size if stride is None else stride
    windows = windows_of(name, sizes, kernel_size, stride, padding, dilation)
    return tuple(_pooling(name, w, ceil_mode) for w in windows)


def _pooling(name: str, w: Windows, ceil_mode: bool) -> Windows:
    """Windows with little padding, and with `ceil_mode` one more for the elements left over."""
    reach = w.dilation * (w.kernel - 1) + 1
    if w.before > reach // 2:
        raise ArgumentError(
            f"{name}: got padding={w.before} and windows over {reach}, expected at most half"
        )
    left_over = (w.size + 2 * w.before - reach) % w.stride
    # None begins in the padding at the end.
    if ceil_mode and left_over and w.number * w.stride < w.size + w.before:
        return w._replace(number=w.number + 1)
    return w
