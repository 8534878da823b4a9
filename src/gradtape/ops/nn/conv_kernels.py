"""Convolutions of arrays by matrix products, with channels last.

Each chunk of windows is copied into rows that stay in the cache, and multiplied by the matrix of
all weights: copying costs a tenth of the product. Results are in memory with channels last too,
seen through a transpose, so that a chain of layers is laid out once.

The groups of channels are an axis of matrices: `g` groups of `c` input and `o` output channels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.copies import copy_into
from gradtape.ops.nn.conv_depthwise import depthwise, depthwise_input, depthwise_weight
from gradtape.ops.nn.conv_grouped import grouped, grouped_weight, is_direct, is_summed
from gradtape.ops.nn.windows import Pads, Sizes, Windows, taps, window_counts

# Bytes of windows that are copied at a time: small enough to stay in the cache until multiplied,
# large enough that the threads of the product seldom wait for each other.
_CHUNK = 8 << 20
# Copying fewer channels than this is no faster: groups are then computed together.
_FEW_CHANNELS = 32


# `convolve(x, w, **geometry)`.
Convolve = Callable[..., Any]


class Geometry(NamedTuple):
    """How windows move: per spatial axis, and the number of groups of channels."""

    stride: Sizes
    padding: Pads
    dilation: Sizes
    groups: int

    def counts(self, sizes: Sizes, kernel: Sizes) -> Sizes:
        """How many windows fit along each axis."""
        return window_counts(sizes, kernel, self.stride, self.padding, self.dilation)


# ---- layout -------------------------------------------------------------------------------------


def _working(*arrays: Any) -> tuple[list[Any], np.dtype[Any]]:
    """The arrays in the dtype to compute in, and the dtype of the result."""
    dtype = np.result_type(*arrays)
    work = np.dtype(np.float32) if dtype == np.float16 else dtype
    return [array.astype(work, copy=False) for array in arrays], dtype


def _rows(xp: Any, x: Any, padding: Pads) -> Any:
    """(samples, channels, *spatial) as contiguous (samples, *spatial, channels), padded."""
    return _padded(xp, x.transpose(0, *range(2, x.ndim), 1), 1, padding)


def _padded(xp: Any, x: Any, first: int, padding: Pads) -> Any:
    """A contiguous array with zeros added along its axes from the first spatial one on."""
    if all(pad == (0, 0) for pad in padding):
        return x if x.flags.c_contiguous else _copy(xp, xp.empty(x.shape, x.dtype), x)
    ends = dict(enumerate(padding, start=first))
    pads = [ends.get(axis, (0, 0)) for axis in range(x.ndim)]
    sizes = [n + b + a for n, (b, a) in zip(x.shape, pads, strict=True)]
    out = xp.zeros(sizes, x.dtype)
    # Negative padding cuts off.
    to = [slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(sizes, pads, strict=True)]
    of = [slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, pads, strict=True)]
    if any(part.stop <= part.start for part in (*to, *of)):
        return out  # nothing is left of the images
    _copy(xp, out[tuple(to)], x[tuple(of)])
    return out


def _copy(xp: Any, target: Any, source: Any) -> Any:
    """Copy the source into the target and return it; on all threads if there are many elements."""
    (copy_into if xp is np else xp.copyto)(target, source)
    return target


def _unpadded(xp: Any, rows: Any, padding: Pads) -> Any:
    """Rows without their padding: a part of them, unless some of it is negative."""
    if any(before < 0 or after < 0 for before, after in padding):
        return _rows(xp, _channels_first(rows), tuple((-b, -a) for b, a in padding))
    sizes = zip(rows.shape[1:], padding, strict=False)
    return rows[(slice(None), *(slice(b, n - a) for n, (b, a) in sizes))]


def _channels_first(x: Any) -> Any:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def _windows(xp: Any, x: Any, kernel: Sizes, counts: Sizes, geometry: Geometry) -> Any:
    """A view (g, samples, *counts, *kernel, c) of padded rows: all elements of all windows."""
    n, *steps, channel = x.strides
    c = x.shape[-1] // geometry.groups
    return xp.lib.stride_tricks.as_strided(
        x,
        (geometry.groups, x.shape[0], *counts, *kernel, c),
        (
            c * channel,
            n,
            *(step * s for step, s in zip(steps, geometry.stride, strict=True)),
            *(step * d for step, d in zip(steps, geometry.dilation, strict=True)),
            channel,
        ),
    )


def _matrices(w: Any, groups: int) -> Any:
    """Weights (g·o, c, *kernel) as matrices (g, kernel·c, o)."""
    out, c, *kernel = w.shape
    split = w.reshape((groups, out // groups, c, *kernel))
    return split.transpose(0, *range(3, 3 + len(kernel)), 2, 1).reshape(
        (groups, math.prod(kernel) * c, out // groups)
    )


def _by_group(rows: Any, groups: int) -> Any:
    """(samples, *spatial, g·o) as a view (g, rows, o)."""
    return rows.reshape((-1, groups, rows.shape[-1] // groups)).transpose(1, 0, 2)


def _chunks(shape: tuple[int, ...], rank: int, itemsize: int) -> Iterator[tuple[Any, slice]]:
    """Parts of windows: an index of (samples, first spatial axis) and the range of rows."""
    samples, first, *others = shape[1 : rank + 2]
    per_row = math.prod(others)
    size = shape[0] * per_row * math.prod(shape[rank + 2 :]) * itemsize
    if size * first <= _CHUNK:
        step = max(1, _CHUNK // (size * first))
        for n in range(0, samples, step):
            stop = min(n + step, samples)
            yield (slice(n, stop), slice(None)), slice(n * first * per_row, stop * first * per_row)
        return
    step = max(1, _CHUNK // size)
    for n in range(samples):
        for i in range(0, first, step):
            start, stop = (n * first + i) * per_row, (n * first + min(i + step, first)) * per_row
            yield (slice(n, n + 1), slice(i, i + step)), slice(start, stop)


def _columns(xp: Any, windows: Any, rank: int) -> Iterator[tuple[Any, slice]]:
    """Chunks of windows as matrices (g, rows, kernel·c), with the range of their rows."""
    groups, width = windows.shape[0], math.prod(windows.shape[rank + 2 :])
    if math.prod(windows.shape[rank + 2 : -1]) == 1:
        yield windows.reshape((groups, -1, width)), slice(None)
        return
    buffer = None
    for part, rows in _chunks(windows.shape, rank, windows.itemsize):
        seen = windows[(slice(None), *part)]
        size = (rows.stop - rows.start) * width * groups
        if buffer is None:
            buffer = xp.empty(size, windows.dtype)  # no later one is larger
        columns = _copy(xp, buffer[:size].reshape(seen.shape), seen)
        yield columns.reshape((groups, -1, width)), rows


# ---- the three products -------------------------------------------------------------------------


def conv_forward(xp: Any, x: Any, w: Any, **geometry: Any) -> Any:
    """Every window of `x` times the weights."""
    shape = Geometry(**geometry)
    if is_depthwise(shape.groups, x.shape[1], w.shape[0]):
        sizes, kernel = x.shape[2:], w.shape[2:]
        (x, w), dtype = _working(x, w)
        windows = along_axes(sizes, shape.counts(sizes, kernel), kernel, shape)
        return depthwise(x, w, windows).astype(dtype, copy=False)
    return _by_few_groups(xp, functools.partial(_conv, xp, x), w, shape)


def conv_by_kernels(x: Any, w: Any, **geometry: Any) -> Any:
    """`conv_forward` by ops that have kernels, or `NotImplemented`."""
    shape = Geometry(**geometry)
    if x.dtype != w.dtype or is_depthwise(shape.groups, x.shape[1], w.shape[0]):
        return NotImplemented
    if not is_direct(x, w.shape[1], w.shape[2:], shape.stride, shape.groups):
        return NotImplemented
    return grouped(_padded(np, x, 2, shape.padding), w, shape.dilation, shape.groups)


def _conv(xp: Any, x: Any, w: Any, shape: Geometry) -> Any:
    (x, w), dtype = _working(x, w)
    kernel, rank = w.shape[2:], w.ndim - 2
    counts = shape.counts(x.shape[2:], kernel)
    out = xp.empty((x.shape[0], *counts, w.shape[0]), x.dtype)
    if not (out.size and w.size):
        out.fill(0)
    else:
        windows = _windows(xp, _rows(xp, x, shape.padding), kernel, counts, shape)
        into, matrices = _by_group(out, shape.groups), _matrices(w, shape.groups)
        for columns, rows in _columns(xp, windows, rank):
            xp.matmul(columns, matrices, out=into[:, rows])
    return _channels_first(out).astype(dtype, copy=False)


def conv_input_forward(xp: Any, y: Any, w: Any, sizes: Sizes, **geometry: Any) -> Any:
    """The transpose of `conv_forward` in `x`, which has the spatial `sizes`."""
    shape = Geometry(**geometry)
    if is_depthwise(shape.groups, w.shape[1] * shape.groups, y.shape[1]):
        (y, w), dtype = _working(y, w)
        windows = along_axes(sizes, y.shape[2:], w.shape[2:], shape)
        return depthwise_input(y, w, windows).astype(dtype, copy=False)
    if all(s == 1 for s in shape.stride):
        return by_flipped_weights(functools.partial(conv_forward, xp), y, w, sizes, shape)
    return _by_few_groups(xp, functools.partial(_conv_input, xp, y, sizes), w, shape)


def conv_input_by_kernels(conv: Convolve, y: Any, w: Any, sizes: Sizes, **geometry: Any) -> Any:
    """`conv_input_forward` by convolutions that have kernels, or `NotImplemented`."""
    shape = Geometry(**geometry)
    if is_depthwise(shape.groups, w.shape[1] * shape.groups, y.shape[1]):
        return NotImplemented
    if all(s == 1 for s in shape.stride):
        return by_flipped_weights(conv, y, w, sizes, shape)
    steps = zip(shape.stride, shape.dilation, w.shape[2:], strict=True)
    if all(s == 1 or (d == 1 and s < k) for s, d, k in steps):
        return _by_phases(conv, y, w, sizes, shape)
    return NotImplemented


def _conv_input(xp: Any, y: Any, sizes: Sizes, w: Any, shape: Geometry) -> Any:
    (y, w), dtype = _working(y, w)
    kernel, rank = w.shape[2:], w.ndim - 2
    padded = [n + b + a for n, (b, a) in zip(sizes, shape.padding, strict=True)]
    out = xp.zeros((y.shape[0], *padded, w.shape[1] * shape.groups), y.dtype)
    if out.size and y.size:
        rows = _rows(xp, y, ((0, 0),) * rank)
        windows = _windows(xp, out, kernel, y.shape[2:], shape)
        _add_windows(xp, windows, _by_group(rows, shape.groups), _matrices(w, shape.groups))
    return _channels_first(_unpadded(xp, out, shape.padding)).astype(dtype, copy=False)


def by_flipped_weights(conv: Convolve, y: Any, w: Any, sizes: Sizes, shape: Geometry) -> Any:
    """With a stride of 1 it is a convolution with the reversed weights, which is faster."""
    kernel, groups = w.shape[2:], shape.groups
    reach = [d * (k - 1) for d, k in zip(shape.dilation, kernel, strict=True)]
    before = [r - b for r, (b, _) in zip(reach, shape.padding, strict=True)]
    ends = zip(before, reach, sizes, y.shape[2:], strict=True)
    padding = tuple((b, n + r - m - b) for b, r, n, m in ends)
    split = w.reshape((groups, w.shape[0] // groups, *w.shape[1:])).swapaxes(1, 2)
    split = split[(..., *(slice(None, None, -1),) * len(kernel))]
    flipped = split.reshape((groups * w.shape[1], w.shape[0] // groups, *kernel))
    return conv(y, flipped, **shape._replace(padding=padding)._asdict())


def _by_phases(conv: Convolve, y: Any, w: Any, sizes: Sizes, shape: Geometry) -> Any:
    """Compute every stride-th element from every stride-th weight, by windows that move by 1.

    Along an axis, element i is `place·stride + phase` with the padding before it: the windows at
    `place - m` see it with their weight `phase + m·stride`.
    """
    out: Any = np.zeros((y.shape[0], *sizes, w.shape[1] * shape.groups), np.result_type(y, w))
    axes = zip(shape.stride, shape.padding, sizes, strict=True)
    for chosen in itertools.product(*(_phases(s, before, n) for s, (before, _), n in axes)):
        weights, first, places, counts = zip(*chosen, strict=True)
        part = w[(..., *weights)]
        if not part.size or min(counts) < 1:
            continue
        # The padding makes the windows begin at the first place.
        padding = tuple((f, 0) for f in first)
        own = shape._replace(stride=(1,) * len(sizes), padding=padding)
        found = by_flipped_weights(conv, y, part, counts, own)
        out[(slice(None), *places)] = np.moveaxis(found, 1, -1)
    return _channels_first(out)


def _phases(stride: int, before: int, size: int) -> Iterator[tuple[slice, int, slice, int]]:
    """For each phase its weights, its first place, and which and how many elements it has."""
    for phase in range(stride):
        first = -((phase - before) // stride)
        start = first * stride + phase - before
        count = -((start - size) // stride)
        yield slice(phase, None, stride), first, slice(start, None, stride), count


def _add_windows(xp: Any, windows: Any, y: Any, matrices: Any) -> None:
    """Add y·wᵀ to the windows, one place in them at a time, so that they do not overlap."""
    rank = (windows.ndim - 3) // 2
    back, kernel = matrices.swapaxes(1, 2), windows.shape[rank + 2 : -1]
    for part, rows in _chunks(windows.shape, rank, windows.itemsize):
        into = windows[(slice(None), *part)]
        added = xp.matmul(y[:, rows], back).reshape(into.shape)
        for tap in taps(kernel):
            place = (*(slice(None),) * (rank + 2), *tap)
            into[place] += added[place]


def conv_weight_forward(xp: Any, x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    """The transpose of `conv_forward` in the weights, with windows of the size `kernel`."""
    shape = Geometry(**geometry)
    (x, y), dtype = _working(x, y)
    groups, rank = shape.groups, len(kernel)
    c, o = x.shape[1] // groups, y.shape[1] // groups
    if is_depthwise(groups, x.shape[1], y.shape[1]):
        windows = along_axes(x.shape[2:], y.shape[2:], kernel, shape)
        return depthwise_weight(x, y, windows).astype(dtype, copy=False)
    together = _together(groups, c, kernel)
    if together > 1:
        wide = conv_weight_forward(
            xp, x, y, kernel, **shape._replace(groups=groups // together)._asdict()
        )
        return _own_blocks(xp, wide, groups, together).astype(dtype, copy=False)
    total = xp.zeros((groups, math.prod(kernel) * c, o), x.dtype)
    if total.size and y.size and x.size:
        rows = _rows(xp, y, ((0, 0),) * rank)
        windows = _windows(xp, _rows(xp, x, shape.padding), kernel, y.shape[2:], shape)
        split = _by_group(rows, groups)
        for columns, part in _columns(xp, windows, rank):
            total += xp.matmul(columns.swapaxes(1, 2), split[:, part])
    split = total.reshape((groups, *kernel, c, o))
    ordered = split.transpose(0, rank + 2, rank + 1, *range(1, rank + 1))
    return ordered.reshape((groups * o, c, *kernel)).astype(dtype, copy=False)


def conv_weight_by_kernels(x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    """`conv_weight_forward` by ops that have kernels, or `NotImplemented`."""
    shape = Geometry(**geometry)
    (x, y), dtype = _working(x, y)
    channels = x.shape[1] // shape.groups
    if is_depthwise(shape.groups, x.shape[1], y.shape[1]) or not y.size:
        return NotImplemented
    if not is_summed(x, channels, kernel, shape.stride, shape.groups):
        return NotImplemented
    padded, rows = _padded(np, x, 2, shape.padding), _padded(np, y, 2, ())
    sums = grouped_weight(padded, rows, kernel, shape.dilation, shape.groups)
    return sums.astype(dtype, copy=False)


# ---- the gradient of the weights, for each of many pairs ----------------------------------------


def conv_weights_forward(xp: Any, x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    """`conv_weight_forward` of each pair of arrays along the first axis.

    Groups of channels would do the same. Here only some pairs are laid out at a time, and their
    products are written where they belong: channels stay first.
    """
    shape = Geometry(**geometry)
    groups, c, o = shape.groups, x.shape[2] // shape.groups, y.shape[2] // shape.groups
    if c == o == 1:
        return _by_groups(functools.partial(conv_weight_forward, xp), x, y, kernel, shape)
    (x, y), dtype = _working(x, y)
    size, counts, taps_of = len(x), math.prod(y.shape[3:]), math.prod(kernel)
    out = xp.empty((size, y.shape[2], c, *kernel), x.dtype)
    if not (out.size and x.size and y.size):
        out.fill(0)
        return out.astype(dtype, copy=False)
    into = out.reshape((size, groups, o, c * taps_of))
    # Some pairs with all their channels, or one pair with some.
    of_channel = groups * taps_of * counts * x.itemsize
    pairs = max(1, _CHUNK // (of_channel * c))
    channels = c if pairs > 1 else max(1, min(c, _CHUNK // of_channel))
    for n in range(0, size, pairs):
        for sample in range(x.shape[1]):
            padded = _padded(xp, x[n : n + pairs, sample], 2, shape.padding)
            cts = y[n : n + pairs, sample].reshape((-1, groups, o, counts))
            for first in range(0, c, channels):
                columns = _channel_columns(
                    xp, padded, slice(first, first + channels), kernel, y.shape[3:], shape
                )
                part = into[n : n + pairs, ..., first * taps_of : (first + channels) * taps_of]
                if sample:
                    part += xp.matmul(cts, columns)
                else:
                    xp.matmul(cts, columns, out=part)
    return out.astype(dtype, copy=False)


def _channel_columns(
    xp: Any, x: Any, channels: slice, kernel: Sizes, counts: Sizes, shape: Geometry
) -> Any:
    """Some channels of the windows of padded arrays, as matrices (pairs, g, windows, c·kernel)."""
    split = x.reshape((len(x), shape.groups, -1, *x.shape[2:]))[:, :, channels]
    n, group, channel, *steps = split.strides
    seen = xp.lib.stride_tricks.as_strided(
        split,
        (*split.shape[:3], *kernel, *counts),
        (
            n,
            group,
            channel,
            *(step * d for step, d in zip(steps, shape.dilation, strict=True)),
            *(step * s for step, s in zip(steps, shape.stride, strict=True)),
        ),
    )
    columns = _copy(xp, xp.empty(seen.shape, x.dtype), seen)
    rows = columns.reshape((*split.shape[:2], -1, math.prod(counts)))
    return rows.swapaxes(-1, -2)


def conv_weights_by_kernels(x: Any, y: Any, kernel: Sizes, **geometry: Any) -> Any:
    """`conv_weights_forward` by ops that have kernels, or `NotImplemented`."""
    return _by_groups(conv_weight_by_kernels, x, y, kernel, Geometry(**geometry))


def _by_groups(conv_weight: Convolve, x: Any, y: Any, kernel: Sizes, shape: Geometry) -> Any:
    """The gradients of the weights of all pairs, as those of one pair with more groups."""
    size, samples = x.shape[:2]
    joined = [a.swapaxes(0, 1).reshape((samples, -1, *a.shape[3:])) for a in (x, y)]
    wide = shape._replace(groups=size * shape.groups)
    out = conv_weight(*joined, kernel=kernel, **wide._asdict())
    return out if out is NotImplemented else out.reshape((size, -1, *out.shape[1:]))


# ---- groups of few channels: several are one group, with weights of 0 between them --------------


def _together(groups: int, channels: int, kernel: Sizes) -> int:
    """How many groups to compute as one."""
    most = _FEW_CHANNELS // channels if math.prod(kernel) > 1 and channels else 1
    return max(n for n in range(1, max(most, 1) + 1) if groups % n == 0)


def _by_few_groups(xp: Any, convolve: Callable[..., Any], w: Any, shape: Geometry) -> Any:
    """`convolve(w, shape)`, with several groups computed as one where that is faster."""
    together = _together(shape.groups, w.shape[1], w.shape[2:])
    if together > 1:
        wide = _side_by_side(xp, w, shape.groups, together)
        with np.errstate(invalid="ignore"):
            out = convolve(wide, shape._replace(groups=shape.groups // together))
        if xp.isfinite(out).all():
            return out  # infinity or NaN times 0 would have come from another group
    return convolve(w, shape)


def _side_by_side(xp: Any, w: Any, groups: int, together: int) -> Any:
    """Weights (g·o, c, *kernel) as those of fewer groups (g·o, together·c, *kernel)."""
    out, c, *kernel = w.shape
    split = w.reshape((groups // together, together, out // groups, c, *kernel))
    wide = xp.zeros((*split.shape[:3], together, c, *kernel), w.dtype)
    for n in range(together):
        wide[:, n, :, n] = split[:, n]
    return wide.reshape((out, together * c, *kernel))


def _own_blocks(xp: Any, wide: Any, groups: int, together: int) -> Any:
    """The inverse of `_side_by_side`."""
    out, many, *kernel = wide.shape
    c = many // together
    split = wide.reshape((groups // together, together, out // groups, together, c, *kernel))
    own = xp.stack([split[:, n, :, n] for n in range(together)], 1)
    return own.reshape((out, c, *kernel))


# ---- one channel in, one channel out ------------------------------------------------------------


def is_depthwise(groups: int, channels: int, outputs: int) -> bool:
    """Whether each channel is convolved by itself, with weights of its own."""
    return groups > 1 and channels == outputs == groups


def along_axes(sizes: Sizes, counts: Sizes, kernel: Sizes, shape: Geometry) -> tuple[Windows, ...]:
    """The windows along each axis."""
    axes = zip(sizes, counts, kernel, shape.stride, shape.padding, shape.dilation, strict=True)
    return tuple(Windows(n, count, k, s, before, d) for n, count, k, s, (before, _), d in axes)
