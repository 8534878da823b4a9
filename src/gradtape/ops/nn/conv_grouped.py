"""Convolutions of groups of few channels, by native code in place of matrix products.

With so few columns, matrix products spend most of their time on copies. Here the products of a
window are written out one by one, for many places of an image at once: arrays have their channels
first and are padded already. This is done for large arrays and strides of 1; only these kernels
use the ops.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.evaluate import evaluate
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.ops.join import stack
from gradtape.ops.nn.windows import Sizes, taps
from gradtape.ops.reduce import sum_over
from gradtape.ops.shape import reshape

# Elements of a window, over all channels of a group, that are written out one by one.
_MOST_TERMS = 72
# Bounds for the gradient of weights, which runs one sum for each place in a window at a time.
_MOST_SUMS, _MOST_CHANNELS = 27, 16
# Rows of fewer places do not fill vectors.
_SHORTEST_ROW = 16


def is_direct(x: Any, channels: int, kernel: Sizes, stride: Sizes, groups: int) -> bool:
    """Whether to multiply windows over so many channels of each group one by one.

    Args:
        x: The input, before it is padded.
        channels: How many channels a group has.
        kernel: The sizes of windows.
        stride: By how much they move.
        groups: The number of groups.
    """
    terms = channels * math.prod(kernel)
    return _is_fitting(x, stride, groups) and 0 < terms <= _MOST_TERMS


def is_summed(x: Any, channels: int, kernel: Sizes, stride: Sizes, groups: int) -> bool:
    """Whether the gradient of weights is summed one by one; arguments as for `is_direct`."""
    few = 0 < channels <= _MOST_CHANNELS and math.prod(kernel) <= _MOST_SUMS
    return _is_fitting(x, stride, groups) and few


def _is_fitting(x: Any, stride: Sizes, groups: int) -> bool:
    return (
        type(x) is np.ndarray
        and x.dtype.char in "fd"
        and groups > 1
        and set(stride) == {1}
        and x.shape[-1] >= _SHORTEST_ROW
    )


# ---- on arrays ----------------------------------------------------------------------------------


def _views(x: Any, kernel: Sizes, dilation: Sizes, groups: int) -> Any:
    """All windows as a view: (samples, groups, channels of a group, *counts, *kernel)."""
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    spatial = tuple(range(2, x.ndim))
    seen: Any = np.lib.stride_tricks.sliding_window_view(x, reach, spatial)
    seen = seen[(..., *(slice(None, None, d) for d in dilation))]
    return seen.reshape((x.shape[0], groups, x.shape[1] // groups, *seen.shape[2:]))


def _forward(xp: Any, x: Any, w: Any, dilation: Sizes, groups: int) -> Any:
    seen = _views(x, w.shape[2:], dilation, groups)
    split = w.reshape((groups, w.shape[0] // groups, *w.shape[1:]))
    places, rank = "xyz"[: x.ndim - 2], "abd"[: x.ndim - 2]
    out = xp.einsum(f"ngc{places}{rank},goc{rank}->ngo{places}", seen, split)
    return out.reshape((x.shape[0], w.shape[0], *out.shape[3:]))


def _weight_forward(xp: Any, x: Any, y: Any, kernel: Sizes, dilation: Sizes, groups: int) -> Any:
    seen = _views(x, kernel, dilation, groups)
    split = y.reshape((y.shape[0], groups, y.shape[1] // groups, *y.shape[2:]))
    places, rank = "xyz"[: x.ndim - 2], "abd"[: x.ndim - 2]
    out = xp.einsum(f"ngc{places}{rank},ngo{places}->goc{rank}", seen, split)
    return out.reshape((y.shape[1], *out.shape[2:]))


# ---- one element --------------------------------------------------------------------------------


def _first_channel(output: Any, outputs: int, channels: int, groups: int) -> Any:
    """The first input channel of the group that an output channel is in."""
    own = outputs // groups
    return (output if own == 1 else scalar.floor_divide(output, own)) * channels


def _element(i: Sequence[Any], x: Reader, w: Reader, dilation: Sizes, groups: int) -> Scalar:
    sample, output, *places = i
    outputs, channels, *kernel = w.aval.shape
    first = _first_channel(output, outputs, channels, groups)
    terms = [
        x(sample, first + channel, *_moved(places, tap, dilation)) * w(output, channel, *tap)
        for channel, tap in itertools.product(range(channels), taps(tuple(kernel)))
    ]
    return functools.reduce(operator.add, terms)


def _moved(places: Sequence[Any], tap: Sizes, dilation: Sizes) -> list[Any]:
    return [at + t * d for at, t, d in zip(places, tap, dilation, strict=True)]


def _tap_element(
    i: Sequence[Any], x: Reader, tap: Sizes, dilation: Sizes, groups: int, shape: Sizes
) -> Scalar:
    sample, output, channel, *places = i
    first = _first_channel(output, shape[1], x.aval.shape[1] // groups, groups)
    return x(sample, first + channel, *_moved(places, tap, dilation))


def _infer_tap(x: Aval, tap: Sizes, dilation: Sizes, groups: int, shape: Sizes) -> Aval:
    return Aval((*shape[:2], x.shape[1] // groups, *shape[2:]), x.dtype)


def _tap_forward(xp: Any, x: Any, tap: Sizes, dilation: Sizes, groups: int, shape: Sizes) -> Any:
    ends = zip(tap, dilation, shape[2:], strict=True)
    part = x[(..., *(slice(t * d, t * d + n) for t, d, n in ends))]
    split = part.reshape((shape[0], groups, x.shape[1] // groups, *shape[2:]))
    return split.repeat(shape[1] // groups, axis=1)


# The elements that the windows of each output channel see at one tap, in all channels of its group.
_AT_TAP = Op("group_at_tap", _tap_forward, _infer_tap, lower=Elements(_tap_element))


def _weight_composition(x: Any, y: Any, kernel: Sizes, dilation: Sizes, groups: int) -> Any:
    shape = y.shape
    beside = reshape(y, (*shape[:2], 1, *shape[2:]))
    over = (0, *range(3, len(shape) + 1))
    params = {"dilation": dilation, "groups": groups, "shape": shape}
    sums = [
        sum_over(call(_AT_TAP, (x,), {"tap": tap, **params}) * beside, axis=over, keepdims=False)
        for tap in taps(kernel)
    ]
    return reshape(stack(sums, 2), (shape[1], x.shape[1] // groups, *kernel))


# ---- the products -------------------------------------------------------------------------------


def _infer(x: Aval, w: Aval, dilation: Sizes, groups: int) -> Aval:
    sizes = zip(x.shape[2:], w.shape[2:], dilation, strict=True)
    return Aval((x.shape[0], w.shape[0], *(n - d * (k - 1) for n, k, d in sizes)), x.dtype)


_CONV = Op(
    "grouped",
    _forward,
    _infer,
    kind="planewise",
    lower=Elements(_element, often=True),
)
_WEIGHT = Op(
    "grouped_weight",
    _weight_forward,
    lambda x, y, kernel, dilation, groups: Aval(
        (y.shape[1], x.shape[1] // groups, *kernel), x.dtype
    ),
    kind="planewise",
    lower=Composite(_weight_composition),
)


def grouped(x: Any, w: Any, dilation: Sizes, groups: int) -> Any:
    """Windows of the padded (samples, channels, …), which has its elements in order."""
    return evaluate(_CONV, (x, w), {"dilation": dilation, "groups": groups})


def grouped_weight(x: Any, y: Any, kernel: Sizes, dilation: Sizes, groups: int) -> Any:
    """The transpose of `grouped` in the weights."""
    params = {"kernel": kernel, "dilation": dilation, "groups": groups}
    return evaluate(_WEIGHT, (x, y), params)
