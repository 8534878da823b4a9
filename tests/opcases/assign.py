"""Cases of item assignment."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import DTypeError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

BASIC = ("setitem", "getitem")
ARRAYS = ("setitem_at", "last_writes", "gather")
MASK = np.array([[True, False], [True, True]])
REPEATED = np.array([2, 0, -1, 2])


def write(x: Any, value: Any, index: Any) -> Any:
    out = x.copy()
    out[index] = value
    return out


def writing(label: str, x: Any, value: Any, index: Any, **extra: Any) -> OpCase:
    ops = extra.pop("ops", BASIC)
    return OpCase(gt.setitem, (x, value), write, {"index": index}, ops, label=label, **extra)


SAMPLES: list[OpCase] = [
    writing(
        "number",
        draw(3),
        draw(seed=1),
        1,
        at=[At((np.ones(3), np.array(2.0)), (np.array([1.0, 1.0, 0.0]), 1.0), {"index": -1})],
        raises=[
            Raises((np.ones(3), 1.0), IndexingError, "setitem: got index 3", {"index": 3}),
            Raises((np.ones(3), np.ones(2)), ShapeError, r"broadcasts to \(\)", {"index": 0}),
            Raises(
                (np.ones(3), 1j), DTypeError, "dtype complex128, expected float64", {"index": 0}
            ),
        ],
    ),
    writing("broadcast", draw(3, 4), draw(2, 1, seed=1), (slice(1, None), slice(None, None, 2))),
    writing("more axes", draw(3, 2), draw(1, 2, seed=1), 0),
    writing("empty", draw(3), draw(1, seed=1), slice(2, 1)),
    writing("all", draw(2, 2), draw(2, seed=1), ...),
    writing("constant", draw(3), 2.5, slice(1, None), ops=("setitem",)),
    writing("0-d", draw(), draw(seed=1), ()),
    writing(
        "repeated",
        draw(4),
        draw(4, seed=1),
        REPEATED,
        ops=ARRAYS,
        at=[
            At(
                (np.ones(3), np.ones(3)),
                (np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])),
                {"index": np.array([1, 2, 1])},
            )
        ],
    ),
    writing("columns", draw(2, 3), draw(4, seed=1), (slice(None), REPEATED), ops=ARRAYS),
    writing("mask", draw(2, 2), draw(seed=1), MASK, ops=("where",)),
    writing("mask values", draw(2, 2), draw(3, seed=1), MASK, ops=ARRAYS),
    OpCase(
        gt.setitem,
        (draw(4, 2), draw(4, 2, seed=1), REPEATED),
        write,
        ops=ARRAYS,
        label="places",
    ),
    writing("constant places", draw(4), 1.5, REPEATED, ops=("setitem_at",)),
]


def torch_write(torch: Any, x: Any, value: Any, index: Any) -> Any:
    out = x.clone()
    out[index] = value
    return out


# At repeated places PyTorch gives the gradient to all values, those written over as well.
REPEATING = ("repeated", "columns", "places")
TORCH = {"setitem": torch_write, **{f"setitem-{label}": None for label in REPEATING}}

CASES = with_torch(TORCH, SAMPLES)
