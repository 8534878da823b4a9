"""Cases of reading with basic indices."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import IndexingError
from opcases.case import At, OpCase, Raises, draw, with_torch

PAIR = ("getitem", "put")


def read(x: Any, index: Any) -> Any:
    return x[index]


def reading(label: str, index: Any, *shape: int, **extra: Any) -> OpCase:
    return OpCase(
        gt.getitem, (draw(*shape),), read, {"index": index}, ops=PAIR, label=label, **extra
    )


SAMPLES: list[OpCase] = [
    reading(
        "number",
        1,
        3,
        at=[At((np.arange(3.0),), (np.array([0.0, 0.0, 1.0]),), {"index": -1})],
        raises=[
            Raises((np.ones(3),), IndexingError, "got index 3 on axis 0 of shape", {"index": 3}),
            Raises((np.ones(3),), IndexingError, "got indices for 2 axes", {"index": (0, 0)}),
            Raises((np.ones(3),), IndexingError, "dtype float64, expected int", {"index": 1.0}),
            Raises((np.float64(1.0),), IndexingError, "expected at most 0", {"index": 0}),
        ],
    ),
    reading("numbers", (1, -2), 2, 3),
    reading("row", 1, 3, 2),
    reading("slice", slice(1, None), 4),
    reading("steps", (slice(None, None, -1), slice(0, 5, 2)), 3, 4),
    reading("empty", slice(2, 1), 3, 2),
    reading("new axes", (None, slice(1, 3), None, 0), 4, 2),
    reading("ellipsis", (0, ..., slice(None, -1), None), 2, 2, 3),
    reading("0-d", (), *()),
    reading("0-d to 1-d", (None, ...), *()),
    reading("numpy number", np.int64(-1), 3, 2),
]

TORCH = {
    "getitem": lambda torch, x, index: x[index],
    "getitem-steps": None,  # PyTorch has no negative ones
}

CASES = with_torch(TORCH, SAMPLES)
