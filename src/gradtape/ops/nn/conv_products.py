"""Convolutions over one to three axes: three products, each the derivative of the others.

All three come from one form that is linear in each of its arrays, the sum of `y·conv(x, w)`: `conv`
is the factor of `y`, `conv_input` that of `x` and `conv_weight` that of `w`. The derivative of one
of them by an array is another one, so derivatives of every order consist of these three.
A transposed convolution is `conv_input`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_as_samples, move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import multilinear
from gradtape.core.lowering import Reader, Terms
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar, where
from gradtape.ops.arguments import Batch
from gradtape.ops.cast import conj_if_complex
from gradtape.ops.lowered import within
from gradtape.ops.nn.conv_columns import (
    CONV,
    CONV_INPUT,
    CONV_WEIGHT,
    is_heavy_conv,
    is_heavy_weight,
)
from gradtape.ops.nn.conv_kernels import (
    conv_by_kernels,
    conv_forward,
    conv_input_by_kernels,
    conv_input_forward,
    conv_weight_by_kernels,
    conv_weight_forward,
    conv_weights_by_kernels,
    conv_weights_forward,
)
from gradtape.ops.nn.windows import Pads, Sizes, window_counts
from gradtape.ops.shape import moveaxis, reshape

# ---- shapes -------------------------------------------------------------------------------------


def _infer_conv(
    x: Aval, w: Aval, stride: Sizes, padding: Pads, dilation: Sizes, groups: int
) -> Aval:
    counts = window_counts(x.shape[2:], w.shape[2:], stride, padding, dilation)
    return Aval((x.shape[0], w.shape[0], *counts), np.result_type(x.dtype, w.dtype))


def _infer_input(y: Aval, w: Aval, sizes: Sizes, groups: int, **_geometry: Any) -> Aval:
    shape = (y.shape[0], w.shape[1] * groups, *sizes)
    return Aval(shape, np.result_type(y.dtype, w.dtype))


def _infer_weight(x: Aval, y: Aval, kernel: Sizes, groups: int, **_geometry: Any) -> Aval:
    shape = (y.shape[1], x.shape[1] // groups, *kernel)
    return Aval(shape, np.result_type(x.dtype, y.dtype))


def _infer_weights(x: Aval, y: Aval, **params: Any) -> Aval:
    of_pair = _infer_weight(Aval(x.shape[1:], x.dtype), Aval(y.shape[1:], y.dtype), **params)
    return Aval((x.shape[0], *of_pair.shape), of_pair.dtype)


# ---- rules --------------------------------------------------------------------------------------


# transpose of x ↦ conv(x, w): conv_input(ct, w̄)
def _conv_by_input(ct: Any, _out: Any, _x: Any, w: Any, **geometry: Any) -> Any:
    return conv_input(ct, conj_if_complex(w), sizes=_x.shape[2:], **geometry)


# transpose of w ↦ conv(x, w): conv_weight(x̄, ct)
def _conv_by_weight(ct: Any, _out: Any, x: Any, _w: Any, **geometry: Any) -> Any:
    return conv_weight(conj_if_complex(x), ct, kernel=_w.shape[2:], **geometry)


# transpose of y ↦ conv_input(y, w): conv(ct, w̄)
def _input_by_output(ct: Any, _out: Any, _y: Any, w: Any, sizes: Sizes, **geometry: Any) -> Any:
    return conv(ct, conj_if_complex(w), **geometry)


# transpose of w ↦ conv_input(y, w): conv_weight(ct, ȳ)
def _input_by_weight(ct: Any, _out: Any, y: Any, _w: Any, sizes: Sizes, **geometry: Any) -> Any:
    return conv_weight(ct, conj_if_complex(y), kernel=_w.shape[2:], **geometry)


# transpose of x ↦ conv_weight(x, y): conv_input(ȳ, ct)
def _weight_by_input(ct: Any, _out: Any, _x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    return conv_input(conj_if_complex(y), ct, sizes=_x.shape[2:], **geometry)


# transpose of y ↦ conv_weight(x, y): conv(x̄, ct)
def _weight_by_output(ct: Any, _out: Any, x: Any, _y: Any, kernel: Sizes, **geometry: Any) -> Any:
    return conv(conj_if_complex(x), ct, **geometry)


# transposes of conv_weights: the same for each pair
def _weights_by_input(ct: Any, _out: Any, _x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    params = {"sizes": _x.shape[3:], **geometry}
    return _of_pairs(conv_input, conj_if_complex(y), ct, params)


def _weights_by_output(ct: Any, _out: Any, x: Any, _y: Any, kernel: Sizes, **geometry: Any) -> Any:
    return _of_pairs(conv, conj_if_complex(x), ct, geometry)


def _of_pairs(product: Any, x: Any, w: Any, params: dict[str, Any]) -> Any:
    return _as_groups(product.op, (x, w), (0, 0), (1, 0), 1, params)[0]


# ---- terms --------------------------------------------------------------------------------------


def _conv_term(
    i: Sequence[Scalar],
    k: Sequence[Scalar],
    x: Reader,
    w: Reader,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int,
) -> Scalar:
    (n, o, *at), (c, *tap) = i, k
    group = o // (w.aval.shape[0] // groups)
    steps = zip(at, tap, stride, padding, dilation, strict=True)
    places = [a * s + t * d - before for a, t, s, (before, _), d in steps]
    product = w(o, c, *tap) * x(n, group * w.aval.shape[1] + c, *places)
    return where(within(places, x.aval.shape[2:]), product, 0)


def _input_term(
    i: Sequence[Scalar],
    k: Sequence[Scalar],
    y: Reader,
    w: Reader,
    sizes: Sizes,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int,
) -> Scalar:
    (n, channel, *at), (o, *tap) = i, k
    each, own = w.aval.shape[0] // groups, w.aval.shape[1]
    out = channel // own * each + o
    steps = zip(at, tap, stride, padding, dilation, strict=True)
    shifts = [(a + before - t * d, s) for a, t, s, (before, _), d in steps]
    whole = functools.reduce(operator.and_, [shift % s == 0 for shift, s in shifts])
    places = [shift // s for shift, s in shifts]
    product = w(out, channel % own, *tap) * y(n, out, *places)
    return where(whole & within(places, y.aval.shape[2:]), product, 0)


def _weight_term(
    i: Sequence[Scalar],
    k: Sequence[Scalar],
    x: Reader,
    y: Reader,
    kernel: Sizes,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int,
) -> Scalar:
    lead = len(i) - len(kernel) - 2  # the axis of pairs, which `conv_weights` has
    pair, (o, c, *tap), (n, *at) = i[:lead], i[lead:], k
    of_group, outs = (a.aval.shape[lead + 1] // groups for a in (x, y))
    steps = zip(at, tap, stride, padding, dilation, strict=True)
    places = [a * s + t * d - before for a, t, s, (before, _), d in steps]
    product = y(*pair, n, o, *at) * x(*pair, n, o // outs * of_group + c, *places)
    return where(within(places, x.aval.shape[lead + 2 :]), product, 0)


_CONV = Terms(lambda _x, w, **_geometry: w.shape[1:], _conv_term)
_INPUT = Terms(lambda _y, w, groups, **_geometry: (w.shape[0] // groups, *w.shape[2:]), _input_term)
_WEIGHT = Terms(
    lambda _x, y, kernel, **_geometry: (y.shape[-len(kernel) - 2], *y.shape[-len(kernel) :]),
    _weight_term,
)


# ---- batching -----------------------------------------------------------------------------------
#
# If both arrays are batched, the batch becomes more groups of channels, or pairs. If only one is,
# its batch becomes samples, or stands beside the channels that the other array does not have.


def _into(x: Any, axis: int, groups: int, at: int) -> Any:
    """`x` with its batch among the channels at `at`: (…, g, batch, channels of a group, …)."""
    x = move_batch_axis(x, axis, at)
    size, channels = x.shape[at : at + 2]
    split = reshape(x, (*x.shape[: at + 1], groups, channels // groups, *x.shape[at + 2 :]))
    return reshape(
        moveaxis(split, at, at + 1), (*x.shape[:at], size * channels, *x.shape[at + 2 :])
    )


def _out_of(x: Any, size: int, groups: int, at: int) -> Batch:
    """The batch taken out of the channels at `at` again."""
    own = x.shape[at] // (size * groups)
    split = reshape(x, (*x.shape[:at], groups, size, own, *x.shape[at + 1 :]))
    split = moveaxis(split, at + 1, 0)
    return reshape(split, (size, *x.shape[:at], groups * own, *x.shape[at + 1 :])), 0


def _as_samples(op: Op, x: Any, axis: int, w: Any, params: dict[str, Any]) -> Batch:
    """Turn the batch of the first array into samples."""
    x = move_batch_axis(x, axis)
    out = call(op, (reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), w), params)
    return reshape(out, (*x.shape[:2], *out.shape[1:])), 0


def _as_groups(op: Op, arrays: Any, axes: Any, places: Any, at: int, params: Any) -> Batch:
    """Turn the batch of both arrays into groups: channels at `places`, the result's at `at`."""
    size = arrays[0].shape[axes[0]]
    joined = [
        _into(array, axis, 1, place)
        for array, axis, place in zip(arrays, axes, places, strict=True)
    ]
    return _out_of(call(op, joined, {**params, "groups": size * params["groups"]}), size, 1, at)


def _batch_conv(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    (x, w), (axis, axis2), groups = args, axes, params["groups"]
    if axis2 is None:
        return _as_samples(op, x, axis, w, params)
    if axis is None:
        # Beside the channels of the result, which `conv_input` finds along the other axis.
        joined = _into(w, axis2, 1, 1) if "sizes" in params else _into(w, axis2, groups, 0)
        return _out_of(call(op, (x, joined), params), w.shape[axis2], groups, 1)
    return _as_groups(op, args, axes, (1, 0), 1, params)


def _batch_weight(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    if None in axes:
        return _beside(op, axes, args, params, 0)
    return conv_weights(*map(move_batch_axis, args, axes), **params), 0


def _batch_weights(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    """The same for pairs: more of them."""
    if None in axes:
        return _beside(op, axes, args, params, 1)
    return batch_as_samples(op, axes, args, params)


def _beside(op: Op, axes: Any, args: Any, params: dict[str, Any], first: int) -> Batch:
    """Put the batch of one array beside its channels; `first` axes are before its samples."""
    (x, y), (axis, axis2), groups = args, axes, params["groups"]
    if axis2 is None:
        out = call(op, (_into(x, axis, groups, first + 1), y), params)
        return _out_of(out, x.shape[axis], 1, first + 1)
    out = call(op, (x, _into(y, axis2, groups, first + 1)), params)
    return _out_of(out, y.shape[axis2], groups, first)


# ---- the ops ------------------------------------------------------------------------------------

# out[n, o] = Σ over c and the places i of a window: w[o, c, i]·x[n, c, stride·at + dilation·i]
conv: Callable[..., Any] = multilinear(
    "conv",
    conv_forward,
    _conv_by_input,
    _conv_by_weight,
    infer=_infer_conv,
    batch=_batch_conv,
    kind="contraction",
    reads=_CONV,
    samples=1,
    lower=CONV,
    heavy=is_heavy_conv,
    composed=conv_by_kernels,
)

conv_input: Callable[..., Any] = multilinear(
    "conv_input",
    conv_input_forward,
    _input_by_output,
    _input_by_weight,
    infer=_infer_input,
    batch=_batch_conv,
    kind="contraction",
    reads=_INPUT,
    samples=1,
    lower=CONV_INPUT,
    heavy=is_heavy_conv,
    composed=functools.partial(conv_input_by_kernels, conv),
)

conv_weight: Callable[..., Any] = multilinear(
    "conv_weight",
    conv_weight_forward,
    _weight_by_input,
    _weight_by_output,
    infer=_infer_weight,
    batch=_batch_weight,
    kind="contraction",
    reads=_WEIGHT,
    samples=2,
    sums_samples=True,
    lower=CONV_WEIGHT,
    heavy=is_heavy_weight,
    composed=conv_weight_by_kernels,
)

# conv_weight of each pair of arrays along the first axis
conv_weights: Callable[..., Any] = multilinear(
    "conv_weights",
    conv_weights_forward,
    _weights_by_input,
    _weights_by_output,
    infer=_infer_weights,
    batch=_batch_weights,
    kind="contraction",
    reads=_WEIGHT,
    composed=conv_weights_by_kernels,
)
