"""What the options of pooling say: windows along each spatial axis, checked."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.nn.windows import Windows, per_axis


def pool_windows(
    name: str,
    sizes: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Windows, ...]:
    """Windows of the options that pooling functions have; a stride of None is the kernel's size."""
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
    # One more for what is left over, unless it would begin in the padding at the end.
    if ceil_mode and room % stride and number * stride < size + pad:
        number += 1
    if number < 1:
        raise ShapeError(
            f"{name}: got {size} elements along an axis, {2 * pad} of padding, and windows over "
            f"{reach}, expected room for a window"
        )
    return Windows(size, number, kernel, stride, pad, dilation)
