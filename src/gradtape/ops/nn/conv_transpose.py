"""Transposed convolutions over one to three axes, as `torch.nn.functional` has them."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.nn.conv import biased, checked_bias
from gradtape.ops.nn.conv_products import conv_input
from gradtape.ops.nn.windows import Sizes, per_axis, with_samples, without_samples
from gradtape.typing import Array, ArrayLike

_conv_input_bias = biased("conv_input_bias", conv_input)


def _check(name: str, x: Array, w: Array, rank: int, groups: int) -> None:
    if len(w.shape) != rank + 2 or 0 in w.shape[2:]:
        raise ShapeError(
            f"{name}: got weights of shape {w.shape}, expected (input channels, output channels "
            f"/ groups, and {rank} sizes of windows, not 0)"
        )
    if groups < 1 or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise ShapeError(
            f"{name}: got {x.shape[1]} input channels, weights of shape {w.shape} and {groups} "
            "groups, expected weights of shape (input channels, output channels / groups, …) and "
            "input channels that the groups divide"
        )


def _transposed(
    name: str,
    rank: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Array:
    x, added = with_samples(name, x, rank)
    weight = as_array(weight)
    stride = per_axis(name, "stride", stride, rank)
    dilation = per_axis(name, "dilation", dilation, rank)
    padding = per_axis(name, "padding", padding, rank, least=0)
    more = per_axis(name, "output_padding", output_padding, rank, least=0)
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise ArgumentError(
            f"{name}: got output_padding={output_padding!r}, expected less than the stride "
            f"{stride} or the dilation {dilation}"
        )
    _check(name, x, weight, rank, groups)
    axes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, more, strict=True)
    sizes = tuple((n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, d, m in axes)
    if any(size < 1 for size in sizes):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {weight.shape} with padding {padding}, which "
            f"leaves sizes {sizes}, expected at least 1; pad less"
        )
    bias = checked_bias(name, bias, weight.shape[1] * groups)
    geometry = {
        "sizes": sizes,
        "stride": stride,
        # What is added to the result no window of the convolution back sees.
        "padding": tuple((p, p - m) for p, m in zip(padding, more, strict=True)),
        "dilation": dilation,
        "groups": groups,
    }
    if bias is None:
        return without_samples(conv_input(x, weight, **geometry), added)
    return without_samples(_conv_input_bias(x, weight, bias, **geometry), added)


def conv_transpose1d(
    x: ArrayLike,
    /,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sizes = 1,
    padding: int | Sizes = 0,
    output_padding: int | Sizes = 0,
    groups: int = 1,
    dilation: int | Sizes = 1,
) -> Array:
    """The transpose of `conv1d`: every element adds a multiple of the weights to its window.

    Args:
        x: Of shape (samples, channels, length), or the same without samples.
        weight: Of shape (input channels, output channels / groups, and the kernel's sizes).
        bias: A number to add to each output channel.
        stride: The distance of the windows of elements beside each other.
        padding: How many elements are cut off at both ends of the result.
        output_padding: How many are left after all at the end; less than the stride.
        groups: Into how many groups the channels fall, each by itself.
        dilation: The distance of the elements of a window.

    Raises:
        ShapeError: The shapes do not fit together, or nothing is left of the result.
        ArgumentError: An option has a value that has no meaning.

    >>> gt.nn.conv_transpose1d(np.array([[1.0, 2.0]]), np.array([[[1.0, 10.0]]]), stride=2)
    array([[ 1., 10.,  2., 20.]])
    """
    return _transposed(
        "conv_transpose1d",
        1,
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose2d(
    x: ArrayLike,
    /,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sizes = 1,
    padding: int | Sizes = 0,
    output_padding: int | Sizes = 0,
    groups: int = 1,
    dilation: int | Sizes = 1,
) -> Array:
    """The transpose of `conv2d`: every element adds a multiple of the weights to its window.

    Args:
        x: Of shape (samples, channels, height, width), or the same without samples.
        weight: Of shape (input channels, output channels / groups, and the kernel's sizes).
        bias: A number to add to each output channel.
        stride: The distance of the windows of elements beside each other.
        padding: How many elements are cut off at both ends of the result.
        output_padding: How many are left after all at the end; less than the stride.
        groups: Into how many groups the channels fall, each by itself.
        dilation: The distance of the elements of a window.

    Raises:
        ShapeError: The shapes do not fit together, or nothing is left of the result.
        ArgumentError: An option has a value that has no meaning.

    >>> x = np.ones((1, 3, 4, 4))
    >>> gt.nn.conv_transpose2d(x, np.ones((3, 2, 2, 2)), stride=2).shape
    (1, 2, 8, 8)
    """
    return _transposed(
        "conv_transpose2d",
        2,
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )


def conv_transpose3d(
    x: ArrayLike,
    /,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sizes = 1,
    padding: int | Sizes = 0,
    output_padding: int | Sizes = 0,
    groups: int = 1,
    dilation: int | Sizes = 1,
) -> Array:
    """The transpose of `conv3d`: every element adds a multiple of the weights to its window.

    Args:
        x: Of shape (samples, channels, depth, height, width), or the same without samples.
        weight: Of shape (input channels, output channels / groups, and the kernel's sizes).
        bias: A number to add to each output channel.
        stride: The distance of the windows of elements beside each other.
        padding: How many elements are cut off at both ends of the result.
        output_padding: How many are left after all at the end; less than the stride.
        groups: Into how many groups the channels fall, each by itself.
        dilation: The distance of the elements of a window.

    Raises:
        ShapeError: The shapes do not fit together, or nothing is left of the result.
        ArgumentError: An option has a value that has no meaning.

    >>> x = np.ones((1, 2, 3, 3, 3))
    >>> gt.nn.conv_transpose3d(x, np.ones((2, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """
    return _transposed(
        "conv_transpose3d",
        3,
        x,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
    )
