"""Convolutions as matrix products of columns, the form in which they are compiled.

All windows are written side by side, as the columns of a matrix with a row for each channel and
place in a window. A convolution is the weights times this matrix, the gradient of the weights the
cotangent times its transpose, so a training step lays it out once. Samples and places of windows
are the long axis of all three products.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import linear
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError
from gradtape.ops.arguments import Batch
from gradtape.ops.cast import astype
from gradtape.ops.inspection import result_type
from gradtape.ops.lowered import both, read_or
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.conv_depthwise import depthwise, depthwise_input, depthwise_weight
from gradtape.ops.nn.conv_kernels import Geometry, along_axes, by_flipped_weights, is_depthwise
from gradtape.ops.nn.windows import Sizes, Windows, joint_parts
from gradtape.ops.shape import reshape, swapaxes, transpose

AllWindows = tuple[Windows, ...]

# Elements of a matrix of columns, at most: larger ones leave the cache, and memory is scarce.
_MOST_COLUMNS = 1 << 22
# Places in a window that are added up one by one in the transpose, at most.
_MOST_TAPS = 64

# ---- columns ------------------------------------------------------------------------------------


def _columns_forward(xp: Any, x: Any, windows: AllWindows) -> Any:
    out = xp.zeros(_columns_shape(x.shape, windows), x.dtype)
    channels = x.swapaxes(0, 1)
    for tap, into, of in joint_parts(windows):
        out[(slice(None), *tap, slice(None), *into)] = channels[(..., *of)]
    return out


def _images_forward(xp: Any, columns: Any, windows: AllWindows) -> Any:
    samples = columns.shape[1 + len(windows)]
    out = xp.zeros((columns.shape[0], samples, *(w.size for w in windows)), columns.dtype)
    for tap, into, of in joint_parts(windows):
        out[(..., *of)] += columns[(slice(None), *tap, slice(None), *into)]
    return out.swapaxes(0, 1)


def _columns_shape(shape: Sequence[int], windows: AllWindows) -> tuple[int, ...]:
    kernel, counts = window_sizes(windows)
    return (shape[1], *kernel, shape[0], *counts)


def window_sizes(windows: AllWindows) -> tuple[Sizes, Sizes]:
    """How many places a window has along each axis, and how many windows there are."""
    return tuple(w.kernel for w in windows), tuple(w.number for w in windows)


def _column_element(i: Sequence[Scalar], x: Reader, windows: AllWindows) -> Scalar:
    rank = len(windows)
    channel, taps, sample, places = i[0], i[1 : rank + 1], i[rank + 1], i[rank + 2 :]
    seen, inside = [], None
    for w, tap, place in zip(windows, taps, places, strict=True):
        at = place * w.stride + tap * w.dilation - w.before
        last = (w.number - 1) * w.stride + (w.kernel - 1) * w.dilation - w.before
        inside = both(
            inside, at >= 0 if w.before > 0 else None, at < w.size if last >= w.size else None
        )
        seen.append(at)
    return read_or(0, x, [sample, channel, *seen], inside)


def _image_element(i: Sequence[Scalar], columns: Reader, windows: AllWindows) -> Scalar:
    sample, channel, *places = i
    if math.prod(w.kernel for w in windows) > _MOST_TAPS:
        raise UnsupportedError("convolution: no native code for the transpose of so large windows")
    terms = []
    for tap, _, _ in joint_parts(windows):
        at, inside = [], None
        for w, t, place in zip(windows, tap, places, strict=True):
            shift = place + (w.before - t * w.dilation)
            count = shift // w.stride if w.stride > 1 else shift
            whole = shift % w.stride == 0 if w.stride > 1 else None
            inside = both(inside, whole, shift >= 0, count < w.number)
            at.append(count)
        terms.append(read_or(0, columns, [channel, *tap, sample, *at], inside))
    return functools.reduce(operator.add, terms)


def _batch_columns(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    """More channels."""
    x = move_batch_axis(args[0], axes[0], 1)
    samples, size, channels, *sizes = x.shape
    out = call(op, (reshape(x, (samples, size * channels, *sizes)),), params)
    return reshape(out, (size, channels, *out.shape[1:])), 0


def _batch_images(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    columns = move_batch_axis(args[0], axes[0])
    size, channels, *rest = columns.shape
    out = call(op, (reshape(columns, (size * channels, *rest)),), params)
    return reshape(out, (out.shape[0], size, channels, *out.shape[2:])), 1


# Windows of (samples, channels, …) as (channels, *kernel, samples, *counts); transpose: each is
# added where its window was
window_columns: Callable[..., Any] = linear(
    "window_columns",
    _columns_forward,
    lambda ct, _out, _x, windows: window_images(ct, windows=windows),
    infer=lambda x, windows: Aval(_columns_shape(x.shape, windows), x.dtype),
    batch=_batch_columns,
    lower=Elements(_column_element, often=True),
)
window_images: Callable[..., Any] = linear(
    "window_images",
    _images_forward,
    lambda ct, _out, _columns, windows: window_columns(ct, windows=windows),
    infer=lambda columns, windows: Aval(
        (columns.shape[1 + len(windows)], columns.shape[0], *(w.size for w in windows)),
        columns.dtype,
    ),
    batch=_batch_images,
    lower=Elements(_image_element, often=True),
)


# ---- the three products -------------------------------------------------------------------------


def _prepared(x: Any, w: Any, channels: int, windows: AllWindows) -> tuple[Any, Any]:
    """Both arrays in one dtype.

    Raises:
        UnsupportedError: The products of columns would be slow, or take much memory.
    """
    dtype = result_type(x, w)
    elements = math.prod(w.kernel * w.number for w in windows) * channels * x.shape[0]
    if dtype.kind == "c" or not 0 < elements <= _MOST_COLUMNS or 0 in (*x.shape, *w.shape):
        raise UnsupportedError("convolution: no native code for these numbers or sizes")
    return astype(x, dtype, copy=False), astype(w, dtype, copy=False)


def conv_by_columns(x: Any, w: Any, **geometry: Any) -> Any:
    """`conv` as the weights times the columns of `x`."""
    shape, sizes, kernel = Geometry(**geometry), x.shape[2:], w.shape[2:]
    counts = shape.counts(sizes, kernel)
    windows = along_axes(sizes, counts, kernel, shape)
    x, w = _prepared(x, w, x.shape[1], windows)
    if is_depthwise(shape.groups, x.shape[1], w.shape[0]):
        return depthwise(x, w, windows)
    out = _times(w, window_columns(x, windows=windows), shape.groups)
    return swapaxes(reshape(out, (w.shape[0], x.shape[0], *counts)), 0, 1)


def _times(w: Any, columns: Any, groups: int) -> Any:
    """Weights times columns, of each group."""
    terms = math.prod(w.shape[1:])
    long = math.prod(columns.shape) // (terms * groups)
    if groups == 1:
        return matmul(reshape(w, (w.shape[0], terms)), reshape(columns, (terms, long)))
    own = reshape(w, (groups, w.shape[0] // groups, terms))
    return matmul(own, reshape(columns, (groups, terms, long)))


def conv_weight_by_columns(x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    """`conv_weight` as the rows of `y` times the columns of `x`."""
    shape = Geometry(**geometry)
    groups, windows = shape.groups, along_axes(x.shape[2:], y.shape[2:], kernel, shape)
    x, y = _prepared(x, y, x.shape[1], windows)
    if is_depthwise(groups, x.shape[1], y.shape[1]):
        return depthwise_weight(x, y, windows)
    columns = window_columns(x, windows=windows)
    long = y.shape[0] * math.prod(y.shape[2:])
    rows, terms = swapaxes(y, 0, 1), x.shape[1] // groups * math.prod(kernel)
    if groups == 1:
        out = matmul(
            reshape(rows, (y.shape[1], long)), transpose(reshape(columns, (terms, long)), (1, 0))
        )
    else:
        split = reshape(columns, (groups, terms, long))
        out = matmul(
            reshape(rows, (groups, y.shape[1] // groups, long)), transpose(split, (0, 2, 1))
        )
    return reshape(out, (y.shape[1], x.shape[1] // groups, *kernel))


def conv_input_by_columns(y: Any, w: Any, sizes: Sizes, **geometry: Any) -> Any:
    """`conv_input`: with a stride of 1 a convolution, else columns that are added up."""
    shape = Geometry(**geometry)
    if set(shape.stride) == {1}:
        return by_flipped_weights(conv_by_columns, y, w, sizes, shape)
    kernel, groups, channels = w.shape[2:], shape.groups, w.shape[1] * shape.groups
    windows = along_axes(sizes, y.shape[2:], kernel, shape)
    y, w = _prepared(y, w, channels, windows)
    if is_depthwise(groups, channels, y.shape[1]) and set(shape.dilation) == {1}:
        return depthwise_input(y, w, windows)
    long = y.shape[0] * math.prod(y.shape[2:])
    rows = reshape(swapaxes(y, 0, 1), (groups, y.shape[1] // groups, long))
    columns = matmul(transpose(reshape(w, (groups, y.shape[1] // groups, -1)), (0, 2, 1)), rows)
    wide = (channels, *kernel, y.shape[0], *y.shape[2:])
    return window_images(reshape(columns, wide), windows=windows)


# ---- when it pays -------------------------------------------------------------------------------

# Products of numbers from which on a kernel saves more time than a call of it takes.
_HEAVY = 1 << 17


def is_heavy_conv(x: Any, w: Any, *_bias: Any, **_geometry: Any) -> bool:
    """Whether `conv` or `conv_input` is much work for arrays of NumPy's."""
    return type(x) is np.ndarray and w.size * (x.size // (x.shape[1] or 1)) >= _HEAVY


def is_heavy_weight(x: Any, y: Any, kernel: Sizes, groups: int, **_geometry: Any) -> bool:
    """Whether `conv_weight` is much work for arrays of NumPy's."""
    return type(y) is np.ndarray and y.size * math.prod(kernel) * x.shape[1] // groups >= _HEAVY


CONV = Composite(conv_by_columns)
CONV_INPUT = Composite(conv_input_by_columns)
CONV_WEIGHT = Composite(conv_weight_by_columns)
