"""Transposed convolutions over one to three axes, as `torch.nn.functional` has them."""

from __future__ import annotations

from gradtape.core.op import op_of
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.family import by_rank
from gradtape.ops.nn.conv import CONVOLUTION, biased, check_weights
from gradtape.ops.nn.conv_products import conv_input
from gradtape.ops.nn.parameters import parameters
from gradtape.ops.nn.windows import Sizes, per_axis, with_samples, without_samples
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

_conv_input_bias = biased("conv_input_bias", conv_input)
conv_input_bias_op = op_of(_conv_input_bias)


@options(CONVOLUTION)
def _conv_transpose(
    name: str,
    rank: int,
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
    """The transpose of `conv{rank}d`: every element adds a multiple of the weights to its window.

    Args:
        weight: Of shape (input channels, output channels / groups, and the kernel's sizes).
        stride: The distance between the windows of neighbouring elements.
        padding: How many elements are cut off at both ends of the result.
        output_padding: How many of those at the end are kept after all; less than the stride.
        dilation: The distance between the elements of a window.

    Raises:
        ShapeError: The shapes do not fit together, or nothing is left of the result.
        ArgumentError: An option has a value that has no meaning.

    1d:
    >>> gt.nn.conv_transpose1d(np.array([[1.0, 2.0]]), np.array([[[1.0, 10.0]]]), stride=2)
    array([[ 1., 10.,  2., 20.]])

    2d:
    >>> x = np.ones((1, 3, 4, 4))
    >>> gt.nn.conv_transpose2d(x, np.ones((3, 2, 2, 2)), stride=2).shape
    (1, 2, 8, 8)

    3d:
    >>> x = np.ones((1, 2, 3, 3, 3))
    >>> gt.nn.conv_transpose3d(x, np.ones((2, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """
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
    check_weights(name, x, weight, rank, groups, transposed=True)
    axes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, more, strict=True)
    sizes = tuple((n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, d, m in axes)
    if any(size < 1 for size in sizes):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {weight.shape} with padding {padding}, which "
            f"leaves sizes {sizes}, expected at least 1; pad less"
        )
    (bias,) = parameters(name, (weight.shape[1] * groups,), bias=bias)
    geometry = {
        "sizes": sizes,
        "stride": stride,
        # No window of the convolution back sees the elements that output_padding adds.
        "padding": tuple((p, p - m) for p, m in zip(padding, more, strict=True)),
        "dilation": dilation,
        "groups": groups,
    }
    if bias is None:
        return without_samples(conv_input(x, weight, **geometry), added)
    return without_samples(_conv_input_bias(x, weight, bias, **geometry), added)


conv_transpose1d, conv_transpose2d, conv_transpose3d = by_rank("conv_transpose", _conv_transpose)
