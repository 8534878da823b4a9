"""Samples of padding."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.int32)


def padded(label: str, *args: Any, op: str = "pad", **params: Any) -> OpCase:
    """A case of pad by NumPy's own."""
    return OpCase(gt.pad, args, np.pad, params, ops=(op,), label=label, dtypes=DTYPES)


SAMPLES = [
    OpCase(
        gt.pad,
        (draw(2, 3), ((1, 0), (2, 1))),
        np.pad,
        ops=("pad", "crop"),
        dtypes=(np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128),
        raises=[
            Raises((draw(2), -1), ArgumentError, "pad: got pad_width -1"),
            Raises((draw(2), 1.5), ArgumentError, "expected integers"),
            Raises((draw(2), (1, 2, 3)), ShapeError, "pad: got pad_width"),
            Raises((draw(2), 1, "average"), UnsupportedError, "mode 'average', .*mean"),
            Raises((draw(2), 1, lambda *_: None), UnsupportedError, "a function as mode"),
            Raises((draw(2), 1, "mean"), ArgumentError, "end_values=.*ramp", {"end_values": 1}),
            Raises((draw(2), 1, "mean"), ArgumentError, "stat_length=0", {"stat_length": 0}),
            Raises((draw(2), 1, "reflect"), ArgumentError, "even", {"reflect_type": "up"}),
            Raises((draw(0), 1, "edge"), ShapeError, "axis of size 0"),
            Raises((draw(0), 1, "maximum"), ShapeError, "axis of size 0"),
            Raises((draw(2), {1: 1}), AxisError, "pad: got axis 1"),
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
    padded("dict", draw(2, 3), {-1: (1, 0)}),
    padded("odd", draw(3, 4), ((1, 2), (3, 1)), op="gather", mode="reflect", reflect_type="odd"),
    padded("odd-far", draw(3), (8, 9), op="gather", mode="reflect", reflect_type="odd"),
    padded("odd-one", draw(1, 2), 2, op="gather", mode="reflect", reflect_type="odd"),
    padded("symmetric-odd", draw(3), (8, 9), op="gather", mode="symmetric", reflect_type="odd"),
    padded("ramp", draw(2, 3), ((1, 2), (0, 3)), op="concatenate", mode="linear_ramp"),
    padded("ramp-to", draw(3), 2, op="concatenate", mode="linear_ramp", end_values=(-1.0, 2.0)),
    padded("maximum", draw(2, 3), ((1, 2), (0, 1)), op="max", mode="maximum"),
    padded("minimum", draw(4), 1, op="min", mode="minimum", stat_length=2),
    padded("mean", draw(2, 3), 1, op="mean", mode="mean", stat_length=((1, 2), (9, 2))),
    padded("median", draw(4), (2, 1), op="concatenate", mode="median"),
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


# Modes and options that PyTorch does not have.
WITHOUT = "dict odd odd-far odd-one symmetric-odd ramp ramp-to maximum minimum mean median"

TORCH = {
    "pad": torch_pad,
    "pad-values": None,
    "pad-symmetric": None,
    "pad-wrap-around": None,
    **dict.fromkeys(f"pad-{label}" for label in WITHOUT.split()),
}

CASES = with_torch(TORCH, SAMPLES)
