"""Turn the options of pooling functions into windows along each spatial axis, and check them."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.nn.windows import Windows, per_axis

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
    rank = len(sizes)
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else per_axis(name, "stride", stride, rank)
    pads = per_axis(name, "padding", padding, rank, least=0)
    dilations = per_axis(name, "dilation", dilation, rank)
    axes = zip(sizes, kernel, strides, pads, dilations, strict=True)
    return tuple(_windows(name, *axis, ceil_mode) for axis in axes)


def _windows(
    name: str, size: int, kernel: int, stride: int, pad: int, dilation: int, ceil_mode: bool
) -> Windows:
    reach = dilation * (kernel - 1) + 1
    if pad > reach // 2:
        raise ArgumentError(
            f"{name}: got padding={pad} and windows over {reach}, expected at most half of that"
        )
    room = size + 2 * pad - reach
    number = room // stride + 1
    # One more for the elements left over, unless it would begin in the padding at the end.
    if ceil_mode and room % stride and number * stride < size + pad:
        number += 1
    if number < 1:
        raise ShapeError(
            f"{name}: got {size} elements along an axis, {2 * pad} of padding, and windows over "
            f"{reach}, expected room for a window"
        )
    return Windows(size, number, kernel, stride, pad, dilation)
