"""Convolutions over one to three axes, as `torch.nn.functional` has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import added as added_terms, broadcast_tangent, general
from gradtape.core.lowering import Composite, Reader, Terms
from gradtape.core.op import Facts, Op, op_of
from gradtape.core.scalar import Scalar
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import Batch, as_array
from gradtape.ops.checks import check_choice
from gradtape.ops.family import by_rank
from gradtape.ops.nn.conv_products import conv
from gradtape.ops.nn.parameters import parameters
from gradtape.ops.nn.windows import (
    Pads,
    Sizes,
    check_windows,
    per_axis,
    with_samples,
    without_samples,
)
from gradtape.ops.reduce import sum_over
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

# ---- with a bias --------------------------------------------------------------------------------


def _beside_places(bias: Any, rank: int) -> Any:
    """A number for each channel, with an axis of size 1 for each spatial one."""
    return reshape(bias, (*bias.shape, *(1,) * rank))


def _batch_biased(plain: Op, _op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    *arrays, bias = args
    batched = any(axis is not None for axis in axes[:2])
    if batched:
        assert plain.batch is not None
        out, _ = plain.batch(plain, axes[:2], arrays, params)
    else:
        out = call(plain, arrays, params)
    if axes[2] is not None:
        bias = move_batch_axis(bias, axes[2])
        bias = reshape(bias, (bias.shape[0], 1, bias.shape[1]))
    return out + _beside_places(bias, len(out.shape) - 2 - batched), 0


def biased(name: str, product: Callable[..., Any]) -> Callable[..., Any]:
    """Define the op `product(x, w) + bias`, recorded as one."""
    plain: Op = product.op  # type: ignore[attr-defined]

    def evaluate(xp: Any, x: Any, w: Any, bias: Any, **params: Any) -> Any:
        out = plain.evaluate(xp, x, w, **params)
        wide = bias.reshape((-1, *(1,) * (out.ndim - 2)))
        # The product is new: add in place, unless the dtype changes.
        return xp.add(out, wide, out=out) if out.dtype == np.result_type(out, wide) else out + wide

    def infer(x: Aval, w: Aval, bias: Aval, **params: Any) -> Aval:
        out = plain.infer(x, w, **params)
        return Aval(out.shape, np.result_type(out.dtype, bias.dtype))

    # d(p + b) = dp + db, the same db at every place; transpose: the sum over samples and places
    def jvp(tangents: Any, _out: Any, x: Any, w: Any, _bias: Any, **params: Any) -> Any:
        *changes, db = tangents
        assert plain.jvp is not None
        beside = None if db is None else _beside_places(db, len(_out.shape) - 2)
        return broadcast_tangent(
            added_terms(plain.jvp(changes, _out, x, w, **params), beside), _out
        )

    jvp.reads = frozenset()  # type: ignore[attr-defined]

    terms = plain.facts.reads
    assert isinstance(terms, Terms)

    def term(i: Any, k: Any, x: Reader, w: Reader, bias: Reader, **params: Any) -> Scalar:
        return terms.expression(i, k, x, w, **params) + bias(i[1])

    return general(
        name,
        evaluate,
        infer=infer,
        vjps=(
            lambda ct, _out, _x, w, _bias, **params: plain.vjps[0](ct, _out, _x, w, **params),
            lambda ct, _out, x, _w, _bias, **params: plain.vjps[1](ct, _out, x, _w, **params),
            lambda ct, _out, _x, _w, _bias, **params: sum_over(
                ct, axis=(0, *range(2, len(ct.shape))), keepdims=False
            ),
        ),
        jvp=jvp,
        batch=functools.partial(_batch_biased, plain),
        kind="contraction",
        facts=Facts(
            reads=Terms(lambda x, w, _bias, **params: terms.sizes(x, w, **params), term),
            samples=plain.facts.samples,
        ),
        lower=Composite(
            lambda x, w, bias, **params: (
                product(x, w, **params) + _beside_places(bias, len(x.shape) - 2)
            )
        ),
        heavy=plain.heavy,
    )


_conv_bias = biased("conv_bias", conv)
conv_bias_op = op_of(_conv_bias)


# ---- public functions ---------------------------------------------------------------------------


def pads_of(name: str, padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Pads:
    """The numbers of zeros to add before and after each axis."""
    if isinstance(padding, str):
        check_choice(name, ("same", "valid"), padding=padding)
        if padding == "same" and any(s != 1 for s in stride):
            raise ArgumentError(
                f'{name}: got padding="same" and stride={stride}, expected a stride of 1; '
                "give the padding as numbers"
            )
        reach = [
            d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel, strict=True)
        ]
        return tuple((r // 2, r - r // 2) for r in reach)
    return tuple((n, n) for n in per_axis(name, "padding", padding, len(kernel), least=0))


def check_weights(
    name: str, x: Array, w: Array, rank: int, groups: int, *, transposed: bool = False
) -> None:
    """Raise for weights of windows over `rank` axes that do not fit the channels of an array."""
    first, second = ("input", "output") if transposed else ("output", "input")
    expected = f"expected weights ({first} channels, {second} channels / groups, {rank} sizes)"
    if len(w.shape) != rank + 2 or 0 in w.shape[2:]:
        raise ShapeError(f"{name}: got weights of shape {w.shape}, {expected}, none of these 0")
    inputs = w.shape[0] if transposed else w.shape[1] * groups
    if groups < 1 or x.shape[1] != inputs or w.shape[0] % groups:
        last = "; channels come before sizes: np.moveaxis(x, -1, 1)"
        raise ShapeError(
            f"{name}: got {x.shape[1]} input channels, weights of shape {w.shape} and {groups} "
            f"groups, {expected}, and groups that divide the channels"
            f"{last if x.shape[-1] == inputs != x.shape[1] else ''}"
        )


# The options that all convolutions share.
CONVOLUTION = {
    "x": "Of shape (samples, channels, {sizes}), or the same without samples.",
    "bias": "A number to add to each output channel.",
    "groups": "Into how many groups the channels are split; each is convolved by itself.",
}


@options(CONVOLUTION)
def _conv(
    name: str,
    rank: int,
    x: ArrayLike,
    /,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sizes = 1,
    padding: int | Sizes | str = 0,
    dilation: int | Sizes = 1,
    groups: int = 1,
) -> Array:
    """Sums of products of weights with windows that move over {things}: a convolution layer.

    The kernel is not flipped, as everywhere in neural networks.

    Args:
        weight: Of shape (output channels, input channels / groups, and the kernel's sizes).
        stride: By how much a window moves to the next one: a number, or one for each axis.
        padding: How many zeros are added at both ends: a number, or one for each axis; "same"
            keeps the size, "valid" adds none.
        dilation: The distance between elements of a window: a number, or one for each axis.

    Raises:
        ShapeError: The shapes do not fit together, or no window fits.
        ArgumentError: An option has a value that has no meaning.

    1d:
    >>> gt.nn.conv1d(np.array([[1.0, 2.0, 4.0]]), np.array([[[-1.0, 1.0]]]))
    array([[1., 2.]])

    2d:
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> gt.nn.conv2d(x, np.ones((1, 1, 2, 2)))
    array([[[[ 8., 12.],
             [20., 24.]]]])

    3d:
    >>> gt.nn.conv3d(np.ones((1, 2, 4, 4, 4)), np.ones((3, 2, 2, 2, 2)), stride=2).shape
    (1, 3, 2, 2, 2)
    """
    x, added = with_samples(name, x, rank)
    weight = as_array(weight)
    stride = per_axis(name, "stride", stride, rank)
    dilation = per_axis(name, "dilation", dilation, rank)
    kernel = weight.shape[2:] if len(weight.shape) == rank + 2 else (1,) * rank
    pads = pads_of(name, padding, kernel, stride, dilation)
    check_weights(name, x, weight, rank, groups)
    check_windows(name, x.shape[2:], kernel, pads, dilation)
    geometry = {"stride": stride, "padding": pads, "dilation": dilation, "groups": groups}
    (bias,) = parameters(name, weight.shape[:1], bias=bias)
    if bias is None:
        return without_samples(conv(x, weight, **geometry), added)
    return without_samples(_conv_bias(x, weight, bias, **geometry), added)


conv1d, conv2d, conv3d = by_rank("conv", _conv)
