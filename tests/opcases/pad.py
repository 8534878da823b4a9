"""Samples of padding."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw, with_torch


def padded(label: str, *args: Any, op: str = "pad", **params: Any) -> OpCase:
    """A case of pad by NumPy's own."""
    return OpCase(gt.pad, args, np.pad, params, ops=(op,), label=label)


SAMPLES = [
    OpCase(
        gt.pad,
        (draw(2, 3), ((1, 0), (2, 1))),
        np.pad,
        ops=("pad", "crop"),
        dtypes=(np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128),
        raises=[
            Raises((draw(2), -1), ArgumentError, "pad: came pad_width -1"),
            Raises((draw(2), 1.5), ArgumentError, "needed integers"),
            Raises((draw(2), (1, 2, 3)), ShapeError, "pad: came pad_width"),
            Raises((draw(2), 1, "mean"), UnsupportedError, "mode 'mean'"),
            Raises((draw(2), 1, "linear_ramp"), UnsupportedError, "end_val", {"end_values": 1}),
            Raises((draw(0), 1, "edge"), ShapeError, "axis of size 0"),
        ],
    ),
    padded("number", draw(2, 3), 1),
    padded("pair", draw(2, 3), (0, 2)),
    padded("nothing", draw(2, 3), 0),
    padded("scalar", draw(), 0),
    padded("empty", draw(0, 2), 1),
    padded("value", draw(2, 3), 1, constant_values=2.5),
    padded("values", draw(2, 3), 1, constant_values=((1.0, 2.0), (3.0, 4.0))),
    padded("edge", draw(2, 3), ((1, 2), (0, 1)), op="gather", mode="edge"),
    padded("reflect", draw(3, 4), ((1, 2), (3, 1)), op="gather", mode="reflect"),
    padded("symmetric", draw(3, 4), 2, op="gather", mode="symmetric"),
    padded("wrap", draw(3, 4), 2, op="gather", mode="wrap"),
    padded("wrap-around", draw(3), 7, op="gather", mode="wrap"),
]


MODES = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}


def torch_pad(
    torch: Any, x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0
) -> Any:
    """PyTorch's pads the last axis first, and other than by a number only below two axes."""
    widths = np.broadcast_to(pad_width, (x.ndim, 2))[::-1].ravel().tolist()
    if mode == "constant":
        return torch.nn.functional.pad(x, widths, value=constant_values)
    padded = torch.nn.functional.pad(x[None, None], widths, mode=MODES[mode])
    return padded[0, 0]


TORCH = {
    "pad": torch_pad,
    "pad-values": None,
    "pad-symmetric": None,
    "pad-wrap-around": None,
}

CASES = with_torch(TORCH, SAMPLES)
