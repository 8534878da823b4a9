"""Samples of convolutions, transposed convolutions and windows laid out as columns."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.nn.conv_columns import window_columns, window_images
from gradtape.ops.nn.conv_products import conv_weights
from gradtape.ops.nn.windows import Windows
from opcases.case import At, OpCase, Raises, draw

NOT_NATIVE = {"conv_weights": "the gradients of single samples are laid out by NumPy"}


def numbers(value: Any, rank: int) -> tuple[int, ...]:
    return (value,) * rank if isinstance(value, int) else tuple(value) * (rank // len(value))


def correlate(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """A convolution element by element, in the words of its definition."""
    rank = weight.ndim - 2
    dtype = np.result_type(x, weight) if bias is None else np.result_type(x, weight, bias)
    half = dtype == np.float16
    single = x.ndim == rank + 1
    x = (x[None] if single else x).astype(np.float32 if half else dtype)
    stride, dilation, kernel = numbers(stride, rank), numbers(dilation, rank), weight.shape[2:]
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if padding == "same":
        widths = [(r // 2, r - r // 2) for r in reach]
    else:
        widths = [(n, n) for n in numbers(0 if padding == "valid" else padding, rank)]
    x = np.pad(x, [(0, 0), (0, 0), *widths])
    counts = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    c, o = weight.shape[1], weight.shape[0] // groups
    out = np.zeros((x.shape[0], weight.shape[0], *counts), x.dtype)
    for place in itertools.product(*map(range, counts)):
        window = tuple(
            slice(s * at, s * at + r + 1, d)
            for s, at, r, d in zip(stride, place, reach, dilation, strict=True)
        )
        for g in range(groups):
            seen = x[(slice(None), slice(g * c, (g + 1) * c), *window)]
            seen = seen.reshape(x.shape[0], c * math.prod(kernel))
            rows = weight[g * o : (g + 1) * o].reshape(o, seen.shape[1]).astype(x.dtype)
            out[(slice(None), slice(g * o, (g + 1) * o), *place)] = seen @ rows.T
    out = out.astype(np.result_type(dtype) if not half else np.float16)
    if bias is not None:
        out = (out + bias.reshape(-1, *(1,) * rank)).astype(dtype)
    return out[0] if single else out


def spread(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """A transposed convolution element by element: each adds its multiple of the weights."""
    rank = weight.ndim - 2
    single = x.ndim == rank + 1
    x = x[None] if single else x
    stride, dilation, padding = (numbers(v, rank) for v in (stride, dilation, padding))
    more, kernel = numbers(output_padding, rank), weight.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + m
        for n, s, d, k, m in zip(x.shape[2:], stride, dilation, kernel, more, strict=True)
    ]
    i, o = weight.shape[0] // groups, weight.shape[1]
    out = np.zeros((x.shape[0], o * groups, *full), np.result_type(x, weight))
    for place in itertools.product(*map(range, x.shape[2:])):
        window = tuple(
            slice(s * at, s * at + d * (k - 1) + 1, d)
            for s, at, d, k in zip(stride, place, dilation, kernel, strict=True)
        )
        for g in range(groups):
            seen = x[(slice(None), slice(g * i, (g + 1) * i), *place)]
            part = (seen @ weight[g * i : (g + 1) * i].reshape(i, -1)).reshape(-1, o, *kernel)
            out[(slice(None), slice(g * o, (g + 1) * o), *window)] += part
    cut = tuple(slice(p, n - p) for p, n in zip(padding, full, strict=True))
    out = out[(slice(None), slice(None), *cut)]
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * rank)
    return out[0] if single else out


THREE = ("conv", "conv_input", "conv_weight")
F = gt.nn.functional


def convolution(
    rank: int, label: str, x: tuple[int, ...], w: tuple[int, ...], bias: bool = False, **more: Any
) -> OpCase:
    """A case of a convolution, of arrays of these shapes."""
    params = {
        name: more.pop(name) for name in ("stride", "padding", "dilation", "groups") if name in more
    }
    args = [draw(*x), draw(*w, seed=1)] + [draw(w[0], seed=2)] * bias
    ops = ("conv_bias", *THREE) if bias else THREE
    return OpCase(
        getattr(F, f"conv{rank}d"),
        tuple(args),
        correlate,
        params,
        more.pop("ops", ops),
        label=label,
        **{"torch": f"nn.functional.conv{rank}d", **more},
    )


ONES, WIDE = np.ones((1, 1, 3, 3)), np.ones((2, 4, 5))
CONV = [
    convolution(
        2,
        "",
        (2, 2, 4, 3),
        (3, 2, 2, 2),
        dtypes=(np.float64, np.float32, np.float16, np.int64, np.complex128),
        rtol=64,
        at=[
            At(
                (ONES, np.ones((1, 1, 2, 2))),
                (
                    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]],
                    [[[[4.0, 4.0], [4.0, 4.0]]]],
                ),
            )
        ],
        raises=[
            Raises((ONES[0, 0], ONES), ShapeError, r"conv2d: got shape \(3, 3\), expected \(samp"),
            Raises((ONES, ONES[0]), ShapeError, r"conv2d: got weights of shape \(1, 3, 3\)"),
            Raises((ONES, np.ones((1, 2, 3, 3))), ShapeError, "got 1 input channels, weights of"),
            Raises(
                (np.ones((2, 8, 8, 1)), np.ones((4, 1, 3, 3))), ShapeError, "channels come before"
            ),
            Raises((ONES, ONES), ShapeError, "and 0 groups", {"groups": 0}),
            Raises((ONES, np.ones((1, 1, 4, 4))), ShapeError, "expected room for a window"),
            Raises((ONES, ONES), ShapeError, "windows over 5", {"dilation": 2}),
            Raises((ONES, ONES, np.ones(2)), ShapeError, r"bias of shape \(2,\)"),
            Raises((ONES, ONES), ArgumentError, "stride=0", {"stride": 0}),
            Raises((ONES, ONES), ArgumentError, "stride=1.5", {"stride": 1.5}),
            Raises((ONES, ONES), ArgumentError, r"stride=\(1, 1, 1\)", {"stride": (1, 1, 1)}),
            Raises((ONES, ONES), ArgumentError, "padding=-1", {"padding": -1}),
            Raises((ONES, ONES), ArgumentError, "padding='full'", {"padding": "full"}),
            Raises((ONES, ONES), ArgumentError, "a stride of 1", {"padding": "same", "stride": 2}),
        ],
    ),
    convolution(
        2,
        "bias",
        (2, 2, 4, 3),
        (3, 2, 2, 2),
        bias=True,
        padding=(1, 0),
        stride=(1, 2),
        dtypes=(np.float64, np.float32, np.float16, np.complex128),
        rtol=64,
    ),
    convolution(2, "strided", (1, 2, 5, 6), (2, 2, 3, 2), stride=(2, 3), padding=(1, 2)),
    convolution(2, "dilated", (1, 1, 5, 6), (2, 1, 2, 3), dilation=(3, 2), padding=1),
    convolution(2, "same", (1, 2, 3, 4), (1, 2, 1, 3), padding="same", dilation=(1, 2)),
    # PyTorch warns where the two sides differ.
    convolution(2, "same-uneven", (1, 2, 3, 4), (1, 2, 2, 4), padding="same", torch=None),
    convolution(2, "valid", (1, 1, 3, 3), (1, 1, 2, 2), padding="valid", bias=True),
    convolution(2, "grouped", (1, 4, 3, 4), (6, 2, 2, 2), groups=2, stride=(2, 1), padding=1),
    convolution(2, "depthwise", (2, 3, 3, 4), (3, 1, 2, 2), groups=3, padding=1),
    convolution(2, "depthwise-strided", (1, 2, 4, 4), (2, 1, 2, 2), groups=2, stride=2, padding=1),
    convolution(2, "depthwise-twice", (1, 2, 3, 3), (4, 1, 2, 2), groups=2),
    convolution(2, "pointwise", (2, 3, 2, 2), (2, 3, 1, 1)),
    convolution(2, "pointwise-strided", (1, 2, 3, 3), (2, 2, 1, 1), stride=2),
    convolution(2, "far-padded", (1, 1, 2, 2), (1, 1, 2, 1), padding=(3, 1)),
    convolution(2, "unseen-ends", (1, 1, 6, 5), (1, 1, 1, 2), stride=(4, 3)),
    convolution(2, "one-sample", (2, 3, 3), (1, 2, 2, 2), bias=True),
    convolution(2, "no-samples", (0, 2, 3, 3), (1, 2, 2, 2), bias=True),
    convolution(2, "no-channels", (1, 0, 3, 3), (2, 0, 2, 2), torch=None),
    convolution(
        1,
        "",
        (2, 2, 5),
        (3, 2, 3),
        padding=1,
        raises=[Raises((WIDE, ONES[0]), ShapeError, "conv1d: got 4 input ch")],
    ),
    convolution(1, "bias", (2, 5), (3, 2, 2), bias=True, stride=2, padding="valid"),
    convolution(3, "", (1, 2, 3, 2, 3), (2, 2, 2, 2, 2), padding=(1, 0, 0), stride=(1, 1, 2)),
    convolution(
        3, "bias", (1, 2, 2, 2, 3), (2, 1, 1, 2, 2), bias=True, groups=2, dilation=(1, 1, 2)
    ),
    OpCase(
        F.conv2d,
        (draw(3, 4, 2, 1).transpose(2, 3, 0, 1), draw(2, 2, 1, 2).T),
        correlate,
        ops=THREE,
        label="transposed",
    ),
    OpCase(
        F.conv1d,
        (draw(1, 2, 4) + 1j * draw(1, 2, 4, seed=2), draw(1, 2, 2) + 1j * draw(1, 2, 2, seed=1)),
        correlate,
        ops=THREE,
        label="complex",
        torch="nn.functional.conv1d",
    ),
]


def transposed(
    rank: int, label: str, x: tuple[int, ...], w: tuple[int, ...], bias: bool = False, **more: Any
) -> OpCase:
    """A case of a transposed convolution, of arrays of these shapes."""
    names = ("stride", "padding", "output_padding", "groups", "dilation")
    params = {name: more.pop(name) for name in names if name in more}
    channels = w[1] * params.get("groups", 1)
    args = [draw(*x), draw(*w, seed=1)] + [draw(channels, seed=2)] * bias
    return OpCase(
        getattr(F, f"conv_transpose{rank}d"),
        tuple(args),
        spread,
        params,
        ("conv_input_bias", *THREE) if bias else THREE,
        label=label,
        torch=f"nn.functional.conv_transpose{rank}d",
        **more,
    )


TRANSPOSED = [
    transposed(
        2,
        "",
        (2, 2, 2, 3),
        (2, 3, 2, 2),
        raises=[
            Raises((ONES, ONES), ArgumentError, "output_padding=1", {"output_padding": 1}),
            Raises((ONES, np.ones((2, 1, 2, 2))), ShapeError, "got 1 input channels, weights"),
            Raises((ONES, ONES[0]), ShapeError, "got weights of shape"),
            Raises((ONES, ONES), ShapeError, r"leaves sizes \(-1, -1\)", {"padding": 3}),
            Raises((ONES, ONES, np.ones(3)), ShapeError, "got bias of shape .3,., expected .1,."),
        ],
    ),
    transposed(2, "bias", (2, 2, 2, 3), (2, 3, 2, 2), bias=True, stride=2),
    transposed(
        2,
        "strided",
        (1, 2, 2, 3),
        (2, 1, 3, 2),
        stride=(2, 3),
        padding=(1, 0),
        output_padding=(1, 2),
    ),
    transposed(
        2, "dilated", (1, 1, 3, 2), (1, 2, 2, 2), dilation=(3, 2), padding=1, output_padding=(2, 1)
    ),
    transposed(2, "grouped", (1, 4, 2, 2), (4, 2, 2, 2), groups=2, stride=2, padding=1),
    transposed(2, "depthwise", (1, 2, 2, 3), (2, 1, 2, 2), groups=2, stride=2, bias=True),
    transposed(2, "cropped", (1, 1, 4, 4), (1, 1, 2, 2), padding=2),
    transposed(2, "gaps", (1, 1, 2, 2), (1, 1, 1, 1), stride=3),
    transposed(1, "", (2, 2, 3), (2, 1, 3), stride=2, padding=1),
    transposed(1, "bias", (2, 3), (2, 2, 2), bias=True),
    transposed(3, "", (1, 1, 2, 2, 2), (1, 2, 2, 1, 2), stride=(1, 2, 1)),
    transposed(3, "bias", (1, 2, 2, 1, 2), (2, 1, 2, 2, 2), bias=True, groups=2, stride=2),
]

# ---- weights of pairs ---------------------------------------------------------------------------


def weights_of_pairs(x: Any, y: Any, kernel: Any = (2, 2), **geometry: Any) -> Any:
    """The gradient by weights of each image by itself, as `vmap` asks for it."""
    rank = len(kernel)
    full = {"stride": (1,) * rank, "padding": ((0, 0),) * rank, "dilation": (1,) * rank}
    return conv_weights(x, y, kernel=kernel, **full | {"groups": 1} | geometry)


def sums_of_pairs(
    x: Any,
    y: Any,
    kernel: Any = (2, 2),
    stride: Any = (1, 1),
    padding: Any = ((0, 0), (0, 0)),
    dilation: Any = (1, 1),
    groups: int = 1,
) -> Any:
    """The same in the words of its definition."""
    c, o = x.shape[2] // groups, y.shape[2] // groups
    x = np.pad(x, [(0, 0)] * 3 + list(padding))
    dtype = np.result_type(x, y)
    out = np.zeros((len(x), y.shape[2], c, *kernel), np.float32 if dtype == np.float16 else dtype)
    for tap in itertools.product(*map(range, kernel)):
        window = tuple(
            slice(d * t, d * t + s * n, s)
            for d, t, s, n in zip(dilation, tap, stride, y.shape[3:], strict=True)
        )
        for channel in range(y.shape[2]):
            first = channel // o * c
            seen = x[(slice(None), slice(None), slice(first, first + c), *window)]
            sums = np.einsum("bnhw,bnchw->bc", y[:, :, channel], seen)
            out[(slice(None), channel, slice(None), *tap)] = sums
    return out.astype(dtype)


PAIRS = [
    OpCase(
        weights_of_pairs,
        (draw(3, 2, 2, 4, 3), draw(3, 2, 3, 3, 2, seed=1)),
        sums_of_pairs,
        ops=("conv_weights",),
        dtypes=(np.float64, np.float32, np.float16, np.int64, np.complex128),
        rtol=64,
    ),
    OpCase(
        weights_of_pairs,
        (draw(2, 1, 4, 5, 6), draw(2, 1, 6, 3, 2, seed=1)),
        sums_of_pairs,
        {
            "kernel": (3, 2),
            "stride": (2, 3),
            "padding": ((1, 1), (0, 1)),
            "dilation": (1, 2),
            "groups": 2,
        },
        ops=("conv_weights",),
        rtol=64,
        label="groups",
    ),
    OpCase(
        weights_of_pairs,
        (draw(2, 1, 1, 4, 3), draw(2, 1, 1, 3, 2, seed=1)),
        sums_of_pairs,
        ops=("conv_weights",),
        rtol=64,
        label="depthwise",
    ),
]


def columns(x: Any, windows: Any) -> Any:
    """What each window sees, one element after the other."""
    kernel, counts = [w.kernel for w in windows], [w.number for w in windows]
    out = np.zeros((x.shape[1], *kernel, x.shape[0], *counts), x.dtype)
    for channel, *tap_sample_place in np.ndindex(out.shape):
        tap, (sample, *place) = tap_sample_place[: len(kernel)], tap_sample_place[len(kernel) :]
        at = [
            p * w.stride + t * w.dilation - w.before
            for w, t, p in zip(windows, tap, place, strict=True)
        ]
        if all(0 <= a < w.size for a, w in zip(at, windows, strict=True)):
            out[(channel, *tap_sample_place)] = x[(sample, channel, *at)]
    return out


def images(x: Any, windows: Any) -> Any:
    """The transpose of `columns`: what it gives for each element alone, times the columns."""
    shape = (x.shape[1 + len(windows)], x.shape[0], *(w.size for w in windows))
    each = np.eye(math.prod(shape), dtype=x.dtype).reshape(-1, *shape)
    return np.array([(columns(one, windows) * x).sum() for one in each], x.dtype).reshape(shape)


PADDED = (Windows(4, 3, 3, 2, 2, 1), Windows(3, 2, 2, 1, 0, 1))
CROPPED = (Windows(5, 2, 2, 1, -1, 2),)


def columns_of(x: Any, windows: Any) -> Any:
    return window_columns(x, windows=windows)


def images_of(x: Any, windows: Any) -> Any:
    return window_images(x, windows=windows)


COLUMNS = [
    OpCase(function, (x,), ref, {"windows": windows}, ops, label=label)
    for function, ref, ops, shapes in (
        (columns_of, columns, ("window_columns",), ((2, 2, 4, 3), (2, 1, 5))),
        (images_of, images, ("window_images",), ((2, 3, 2, 2, 3, 2), (1, 2, 2, 2))),
    )
    for x, windows, label in zip(
        [draw(*shape) for shape in shapes],
        (PADDED, CROPPED),
        ("", "cropped"),
        strict=True,
    )
]

CASES = [*CONV, *TRANSPOSED, *PAIRS, *COLUMNS]
