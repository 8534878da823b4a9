"""Samples of resizing, of padding in PyTorch's words, and of pixels that move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw

F = gt.nn.functional


# ---- resizing -----------------------------------------------------------------------------------


def cubic(t: float) -> float:
    """The kernel of cubic convolution, with a = −0.75."""
    t, a = abs(t), -0.75
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def weights(mode: str, size: int, count: int, step: float, corners: bool) -> Any:
    """How much each element of an axis counts for each element of the resized one."""
    matrix = np.zeros((count, size))
    for i in range(count):
        if mode == "area":
            start, stop = i * size // count, -(-(i + 1) * size // count)
            matrix[i, start:stop] = 1 / (stop - start)
            continue
        place = i * step if corners else (i + 0.5) * step - 0.5
        if mode == "nearest":
            matrix[i, min(int(i * step + 1e-6), size - 1)] = 1
        elif mode == "nearest-exact":
            matrix[i, min(int((i + 0.5) * step + 1e-6), size - 1)] = 1
        elif mode == "bicubic":
            for j in range(math.floor(place) - 1, math.floor(place) + 3):
                matrix[i, min(max(j, 0), size - 1)] += cubic(place - j)
        else:
            place = min(max(place, 0), size - 1)
            for j in range(size):
                matrix[i, j] = max(0, 1 - abs(place - j))
    return matrix


def resized(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    """Resizing by matrices of weights."""
    old = x.shape[2:]
    factors = scale_factor if isinstance(scale_factor, Sequence) else [scale_factor] * len(old)
    for axis, n in enumerate(old, start=2):
        factor = factors[axis - 2]
        if size is None:
            count = math.floor(n * factor)
        else:
            count = size[axis - 2] if isinstance(size, tuple) else size
        step = n / count if size is not None or recompute_scale_factor else 1 / factor
        if (mode == "nearest" and x.ndim == 4 and count in (n, 2 * n)) or (
            mode == "linear" and count == n
        ):
            step = n / count
        if align_corners:
            step = (n - 1) / (count - 1) if count > 1 else 0
        matrix = weights(mode, n, count, step, bool(align_corners))
        work = x.astype(np.float32) if x.dtype == np.float16 else x
        x = np.moveaxis(np.moveaxis(work, axis, -1) @ matrix.T, -1, axis).astype(x.dtype)
    return x


def resizing(label: str, x: Any, **params: Any) -> OpCase:
    """A case of resizing."""
    names = ("size", "scale_factor", "mode", "align_corners", "recompute_scale_factor")
    options = {name: params.pop(name) for name in names if name in params}
    return OpCase(
        F.interpolate,
        (x,),
        resized,
        options,
        params.pop("ops", ("resample",)),
        label=label,
        torch="nn.functional.interpolate",
        **params,
    )


LINE, IMAGE = draw(1, 2, 5), draw(1, 1, 3, 4)
BILINEAR: dict[str, Any] = {"mode": "bilinear", "align_corners": False}
RESIZE = [
    resizing(
        "nearest",
        LINE,
        size=7,
        dtypes=(np.float64, np.float32, np.float16),
        raises=[
            Raises((LINE,), ArgumentError, "either size= or scale_factor="),
            Raises((LINE, 3, 2.0), ArgumentError, "either size= or scale_factor="),
            Raises((LINE, 3), ArgumentError, "mode='linar'", {"mode": "linar"}),
            Raises((LINE, 3), ShapeError, "and 2 spatial axes", {"mode": "bilinear"}),
            Raises((LINE, 3), ArgumentError, "leave it out", {"align_corners": False}),
            Raises((LINE, 3), UnsupportedError, "interpolate: got antialias=", {"antialias": True}),
            Raises((LINE, 3), ArgumentError, "recompute", {"recompute_scale_factor": True}),
            Raises((LINE, 0), ArgumentError, "size=0"),
            Raises((LINE, None, -1.0), ArgumentError, "scale_factor=-1"),
            Raises((LINE, None, 0.1), ShapeError, "leaves none"),
            Raises((LINE[..., :0], 3), ShapeError, "expected at least one element"),
        ],
    ),
    resizing("nearest-factor", IMAGE, scale_factor=2),
    resizing("nearest-factors", IMAGE, scale_factor=(1.5, 0.6)),
    resizing("nearest-kept", draw(1, 1, 5, 4), scale_factor=(2.1, 1.1)),
    resizing("linear-kept", LINE, scale_factor=1.1, mode="linear"),
    resizing("nearest-smaller", IMAGE, size=(2, 3)),
    resizing("nearest-volume", draw(1, 1, 2, 3, 2), size=(3, 2, 4)),
    resizing("nearest-exact", IMAGE, size=(5, 3), mode="nearest-exact"),
    resizing("nearest-exact-factor", LINE, scale_factor=1.7, mode="nearest-exact"),
    resizing("linear", LINE, size=8, mode="linear"),
    resizing("linear-corners", LINE, size=8, mode="linear", align_corners=True),
    resizing("linear-factor", LINE, scale_factor=1.7, mode="linear"),
    resizing(
        "linear-recomputed", LINE, scale_factor=1.7, mode="linear", recompute_scale_factor=True
    ),
    resizing(
        "bilinear", IMAGE, size=(5, 3), dtypes=(np.float64, np.float32, np.float16), **BILINEAR
    ),
    resizing("bilinear-corners", IMAGE, size=(2, 6), mode="bilinear", align_corners=True),
    resizing("bilinear-one", IMAGE, size=1, mode="bilinear", align_corners=True),
    resizing("bilinear-same", IMAGE, size=(3, 6), **BILINEAR),
    resizing("bicubic", IMAGE, size=(5, 3), mode="bicubic", rtol=64),
    resizing("bicubic-corners", IMAGE, size=(4, 6), mode="bicubic", align_corners=True, rtol=64),
    resizing("bicubic-factor", IMAGE, scale_factor=1.6, mode="bicubic", rtol=64),
    resizing("trilinear", draw(1, 1, 2, 3, 2), size=(3, 2, 4), mode="trilinear"),
    resizing("area", IMAGE, size=(2, 3), mode="area"),
    OpCase(
        F.interpolate,
        (LINE + 1j * draw(1, 2, 5, seed=1),),
        resized,
        {"size": 3, "mode": "linear"},
        ("resample",),
        dtypes=(np.complex128,),
        label="complex",
    ),
    OpCase(
        F.interpolate,
        (np.arange(4).reshape(1, 1, 4), 6),
        lambda x, size: np.array([[[0, 0, 1, 2, 2, 3]]]),
        ops=("resample",),
        label="integers",
        differentiable=False,
    ),
    OpCase(
        F.interpolate,
        (np.arange(2).reshape(1, 1, 2), 3),
        lambda x, size, **_: np.array([[[0.0, 0.5, 1.0]]]),
        {"mode": "linear", "align_corners": True},
        ("resample",),
        label="integers-linear",
        differentiable=False,
    ),
]

# ---- padding ------------------------------------------------------------------------------------

NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(x: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    cut = tuple(
        slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, widths, strict=True)
    )
    x, widths = x[cut], [(max(b, 0), max(a, 0)) for b, a in widths]
    if mode == "constant":
        return np.pad(x, widths, constant_values=value or 0)
    return np.pad(x, widths, mode=NUMPY[mode])


def padding(
    label: str, x: Any, pad: Any, *args: Any, ops: Any = ("resample",), **more: Any
) -> OpCase:
    """A case of padding."""
    return OpCase(
        F.pad,
        (x, pad, *args),
        padded,
        ops=ops,
        label=f"last-{label}",
        torch="nn.functional.pad",
        **more,
    )


PAD = [
    padding(
        "constant",
        draw(2, 3),
        (1, 2, 0, 1),
        ops=("pad", "crop"),
        dtypes=(np.float64, np.float32, np.int64),
        raises=[
            Raises((LINE, (1, 2, 3)), ArgumentError, r"pad=\(1, 2, 3\)"),
            Raises((LINE, (1.5, 2)), ArgumentError, "expected pairs of integers"),
            Raises((LINE, 3), ArgumentError, "expected pairs of integers"),
            Raises((LINE, (1,) * 8), ShapeError, "got 4 pairs for shape"),
            Raises((LINE, (1, 1), "edge"), ArgumentError, "mode='edge'"),
            Raises((LINE, (1, 1), "reflect", 1.0), ArgumentError, "value=1.0 with mode"),
            Raises((LINE, (1, 5), "reflect"), ShapeError, "axis of size 5.*from 0 to 4"),
            Raises((LINE, (6, 0), "circular"), ShapeError, "from 0 to 5"),
            Raises((LINE, (-1, 0), "replicate"), ShapeError, "expected numbers from 0"),
            Raises((LINE[..., :0], (1, 0), "replicate"), ShapeError, "axis of size 0"),
            Raises((LINE, (-3, -3)), ShapeError, "cuts off more than all"),
        ],
    ),
    padding("value", draw(2, 3), (1, 2), "constant", 1.5, ops=("pad",)),
    padding("negative", draw(3, 4), (-1, 2, 1, -1), ops=("pad", "crop")),
    padding("reflect", IMAGE, (3, 1, 2, 0), "reflect", dtypes=(np.float64, np.float32, np.int64)),
    padding("reflect-one", LINE[0, 0, None], (4, 4), "reflect"),
    padding("replicate", IMAGE, (3, 1, 0, 5), "replicate"),
    padding("circular", IMAGE, (4, 1, 2, 3), "circular"),
]

# ---- pixels that move ---------------------------------------------------------------------------


def shuffled(x: Any, r: int) -> Any:
    out = np.empty((*x.shape[:-3], x.shape[-3] // r**2, x.shape[-2] * r, x.shape[-1] * r), x.dtype)
    for i in range(r):
        for j in range(r):
            out[..., i::r, j::r] = x[..., i * r + j :: r**2, :, :]
    return out


def unshuffled(x: Any, r: int) -> Any:
    parts = [x[..., i::r, j::r] for i in range(r) for j in range(r)]
    stacked = np.stack(parts, axis=-3)
    return stacked.reshape((*x.shape[:-3], -1, *parts[0].shape[-2:]))


MOVED = ("pixel_shuffle",)
PIXELS = [
    OpCase(
        F.pixel_shuffle,
        (draw(2, 8, 2, 3), 2),
        shuffled,
        ops=MOVED,
        torch="nn.functional.pixel_shuffle",
        raises=[
            Raises((draw(3, 2, 2), 2), ShapeError, "channels that 4 divides"),
            Raises((draw(4, 2), 2), ShapeError, r"expected \(…, channels, height, width\)"),
            Raises((draw(4, 2, 2), 0), ArgumentError, "an integer from 1 on"),
            Raises((draw(4, 2, 2), 1.5), ArgumentError, "an integer from 1 on"),
        ],
    ),
    OpCase(
        F.pixel_unshuffle,
        (draw(2, 4, 6), 2),
        unshuffled,
        ops=MOVED,
        torch="nn.functional.pixel_unshuffle",
        raises=[Raises((draw(1, 4, 5), 2), ShapeError, "width that 2 divides")],
    ),
]

# ---- windows as columns -------------------------------------------------------------------------


def columns(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    k, d, p, s = (
        (v, v) if isinstance(v, int) else v for v in (kernel_size, dilation, padding, stride)
    )
    single = x.ndim == 3
    x = np.pad(x[None] if single else x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    counts = [(x.shape[2 + i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in (0, 1)]
    found = [
        x[:, :, i * s[0] : i * s[0] + d[0] * k[0] : d[0], j * s[1] : j * s[1] + d[1] * k[1] : d[1]]
        for i in range(counts[0])
        for j in range(counts[1])
    ]
    rows = x.shape[1] * k[0] * k[1]
    out = np.stack([part[:, :, : k[0], : k[1]].reshape(len(x), rows) for part in found], axis=-1)
    return out[0] if single else out


def added(x: Any, output_size: Any, *args: Any, **params: Any) -> Any:
    """The transpose of `columns`, by its matrix."""
    kernel = args[0]
    channels = x.shape[-2] // (kernel[0] * kernel[1])
    shape = (channels, *output_size)
    basis = np.eye(math.prod(shape)).reshape(-1, *shape)
    matrix = columns(basis, *args, **params).reshape(len(basis), -1)
    flat = x.reshape(*x.shape[:-2], -1)
    return (flat @ matrix.T).reshape(*x.shape[:-2], *shape).astype(x.dtype)


BOTH = ("window_columns", "window_images")
COLUMNS = [
    OpCase(
        F.unfold,
        (draw(2, 2, 3, 4), (2, 3)),
        columns,
        {"padding": (1, 0), "stride": (2, 1)},
        BOTH,
        dtypes=(np.float64, np.float32, np.int64, np.complex128),
        torch="nn.functional.unfold",
        raises=[
            Raises((draw(2, 3), 2), ShapeError, r"unfold: got shape \(2, 3\)"),
            Raises((draw(1, 2, 3), 3), ShapeError, "unfold: got 2 elements along an axis"),
        ],
    ),
    OpCase(
        F.unfold,
        (draw(1, 5, 3), 2),
        columns,
        {"dilation": (3, 1), "padding": 2},
        BOTH,
        label="dilated",
        torch="nn.functional.unfold",
    ),
    OpCase(
        F.fold,
        (draw(2, 8, 6), (3, 4), (2, 2)),
        added,
        {},
        BOTH,
        torch="nn.functional.fold",
        raises=[
            Raises((draw(7, 6), (3, 4), (2, 2)), ShapeError, "fold: got shape"),
            Raises((draw(8, 5), (3, 4), (2, 2)), ShapeError, r"channels · 4, 6\)"),
            Raises((draw(8), (3, 4), (2, 2)), ShapeError, "fold: got shape"),
        ],
    ),
    OpCase(
        F.fold,
        (draw(4, 4), (4, 3), (2, 2)),
        added,
        {"stride": (2, 2), "padding": (0, 1)},
        BOTH,
        label="padded",
        torch="nn.functional.fold",
    ),
]

CASES = [*RESIZE, *PAD, *PIXELS, *COLUMNS]
