"""Samples of flip, roll, tile, repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from opcases.case import OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128)


def made_of(function: Any, ref: Any, args: tuple[Any, ...], *ops: str, **more: Any) -> OpCase:
    """A case of a function that other ops make up."""
    return OpCase(function, args, ref, ops=ops, **more)


FLIP = [
    OpCase(
        gt.flip,
        (draw(2, 3),),
        np.flip,
        dtypes=DTYPES,
        raises=[Raises((draw(2), 1), AxisError, "flip: got axis 1")],
    ),
    OpCase(gt.flip, (draw(2, 3), -1), np.flip, label="axis"),
    OpCase(gt.flip, (draw(2, 3, 2), (0, 2)), np.flip, label="axes"),
    made_of(gt.flipud, np.flipud, (draw(2, 3),), "flip"),
    made_of(
        gt.fliplr,
        np.fliplr,
        (draw(2, 3),),
        "flip",
        raises=[Raises((draw(2),), AxisError, "flip: got axis 1")],
    ),
    made_of(
        gt.rot90,
        np.rot90,
        (draw(2, 3),),
        "flip",
        "transpose",
        raises=[Raises((draw(2, 3), 1, (0,)), AxisError, "rot90: got axes.*two")],
    ),
    made_of(gt.rot90, np.rot90, (draw(2, 3), 2), "flip", label="half"),
    made_of(gt.rot90, np.rot90, (draw(2, 3), -1), "flip", "transpose", label="back"),
    made_of(gt.rot90, np.rot90, (draw(2, 3, 4), 3, (2, 0)), "flip", "transpose", label="axes"),
]

ROLL = [
    OpCase(
        gt.roll,
        (draw(5), 2),
        np.roll,
        dtypes=DTYPES,
        raises=[
            Raises((draw(2), 1, 1), AxisError, "roll: got axis 1"),
            Raises((draw(2), ((1, 1),), 0), ArgumentError, "roll: got shift"),
        ],
    ),
    OpCase(gt.roll, (draw(5), -7), np.roll, label="around"),
    OpCase(gt.roll, (draw(2, 3), 1), np.roll, label="flat"),
    OpCase(gt.roll, (draw(2, 3), 1, -1), np.roll, label="axis"),
    OpCase(gt.roll, (draw(2, 3), (1, 2), (0, 1)), np.roll, label="axes"),
    OpCase(gt.roll, (draw(2, 3), 1, (0, 1)), np.roll, label="same"),
    OpCase(gt.roll, (draw(5), (1, 2), 0), np.roll, label="twice"),
    OpCase(gt.roll, (draw(0, 3), 1, 0), np.roll, label="empty"),
]

REPEAT = [
    OpCase(gt.tile, (draw(2, 3), (2, 1)), np.tile, dtypes=DTYPES),
    OpCase(gt.tile, (draw(3), 2), np.tile, label="number"),
    OpCase(gt.tile, (draw(3), (2, 1, 2)), np.tile, label="more-axes"),
    OpCase(gt.tile, (draw(2, 3), 2), np.tile, label="fewer-axes"),
    OpCase(gt.tile, (draw(), (2, 2)), np.tile, label="scalar"),
    OpCase(gt.tile, (draw(3), 0), np.tile, label="empty"),
    OpCase(
        gt.repeat,
        (draw(2, 3), 2, 1),
        np.repeat,
        dtypes=DTYPES,
        raises=[
            Raises((draw(2), 1, 1), AxisError, "repeat: got axis 1"),
            Raises((draw(2), -1), ArgumentError, "repeat: got repeats=-1"),
            Raises((draw(3), [1, 2], 0), ShapeError, r"repeat: got \(2,\) repeats"),
        ],
    ),
    OpCase(gt.repeat, (draw(2, 3), 2), np.repeat, label="flat"),
    OpCase(gt.repeat, (draw(2, 3), 3, -2), np.repeat, label="negative"),
    OpCase(gt.repeat, (draw(2, 3), 0, 0), np.repeat, label="empty"),
    OpCase(gt.repeat, (draw(2, 3), [1, 0, 2], 1), np.repeat, ops=("gather",), label="each"),
    OpCase(gt.repeat, (draw(2, 3), [2], 1), np.repeat, label="one-in-list"),
]


def torch_flip(torch: Any, x: Any, axis: Any = None) -> Any:
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis)))


def torch_roll(torch: Any, x: Any, shift: Any, axis: Any = None) -> Any:
    """PyTorch's takes as many shifts as axes."""
    if axis is None:
        return torch.roll(x, shift)
    shifts, axes = np.broadcast_arrays(shift, axis)
    return torch.roll(x, shifts.ravel().tolist(), axes.ravel().tolist())


def torch_repeat(torch: Any, x: Any, repeats: Any, axis: int | None = None) -> Any:
    repeats = torch.tensor(repeats) if isinstance(repeats, list) else repeats
    return torch.repeat_interleave(x, repeats, axis)


TORCH = {
    "flip": torch_flip,
    "flipud": "flipud",
    "fliplr": "fliplr",
    "rot90": "rot90",
    "roll": torch_roll,
    "tile": lambda torch, x, reps: torch.tile(x, tuple(np.atleast_1d(reps))),
    "repeat": torch_repeat,
}

CASES = with_torch(TORCH, [*FLIP, *ROLL, *REPEAT])
