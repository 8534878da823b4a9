"""Samples of where, maximum, minimum and clip."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.select import clip_above, clip_below, mask
from opcases.case import At, OpCase, Raises, draw, with_torch

inf, nan = np.inf, np.nan
X, Y = draw(2, 3), draw(2, 3, seed=1)
CONDITION = np.array([[True, False, True], [False, False, True]])
REAL = (np.float64, np.float32, np.float16, np.int8)
ALL = (*REAL, np.complex64)


def array(*values: float) -> Any:
    return np.array(values, np.float64)


WHERE = [
    OpCase(
        gt.where,
        (CONDITION, X, Y),
        np.where,
        elementwise=True,
        dtypes=ALL,
        ops=("where", "mask"),
        at=[
            At((array(1.0, nan) > 0, array(1, 2), array(3, 4)), (array(1, 0), array(0, 1))),
            At(
                (array(0.0, 2.0), array(1, nan), array(nan, 4)),
                (array(0, 0), array(0, 1), array(1, 0)),
            ),
        ],
        raises=[
            Raises((CONDITION, X), ArgumentError, "where: got x without y"),
            Raises((CONDITION, draw(2), Y), ShapeError, "where: got bool"),
        ],
    ),
    OpCase(gt.where, (CONDITION, X, 0.0), np.where, label="number"),
    OpCase(gt.where, (CONDITION, 1, X), np.where, label="number-first"),
    OpCase(gt.where, (True, X, Y), np.where, label="constant"),
    OpCase(gt.where, (np.array([0, 1, 2]), X, Y), np.where, label="whole"),
    OpCase(
        mask,
        (X, CONDITION),
        lambda x, condition: np.where(condition, x, 0),
        elementwise=True,
        dtypes=ALL,
        at=[At((array(nan, inf, -0.0), np.array([False, False, True])), (array(0, 0, 1),))],
    ),
]

EXTREMES = [
    OpCase(
        gt.maximum,
        (X, Y),
        np.maximum,
        elementwise=True,
        dtypes=REAL,
        at=[
            At((array(1, 2, 3), array(1, 1, 4)), (array(0.5, 1, 0), array(0.5, 0, 1))),
            At((array(inf, -inf), array(inf, inf)), (array(0.5, 0), array(0.5, 1))),
            At((array(nan, 1), array(1, nan)), (array(1, 1), array(1, 1))),
            At((array(0, -1, 1), 0.0), (array(0.5, 0, 1), 1.5)),
            At((array(0, -1, 1), 0), (array(0.5, 0, 1),)),
        ],
        raises=[Raises((draw(2), draw(3)), ShapeError, "maximum: got")],
    ),
    OpCase(
        gt.minimum,
        (X, Y),
        np.minimum,
        elementwise=True,
        dtypes=REAL,
        at=[
            At((array(1, 2, 3), array(1, 1, 4)), (array(0.5, 0, 1), array(0.5, 1, 0))),
            At((array(inf, -inf), array(inf, inf)), (array(0.5, 1), array(0.5, 0))),
            At((array(nan, 1), array(1, nan)), (array(1, 1), array(1, 1))),
            At((0, array(0, -1, 1)), (array(0.5, 1, 0),)),
        ],
        raises=[Raises((draw(2), draw(3)), ShapeError, "minimum: got")],
    ),
    OpCase(
        gt.fmax,
        (X, Y),
        np.fmax,
        elementwise=True,
        at=[
            At((array(1, 2, 3), array(1, 1, 4)), (array(1, 1, 0), array(0, 0, 1))),
            At((array(nan, 1), array(1, nan)), (array(0, 1), array(1, 0))),
        ],
    ),
    OpCase(
        gt.fmin,
        (X, Y),
        np.fmin,
        elementwise=True,
        at=[
            At((array(1, 2, 3), array(1, 1, 4)), (array(1, 0, 1), array(0, 1, 0))),
            At((array(nan, 1), array(1, nan)), (array(0, 1), array(1, 0))),
        ],
    ),
]

POINTS = array(-2, -1, 0.5, 1, 3, nan)
CLIP = [
    OpCase(
        gt.clip,
        (X, -1.0, 1),
        np.clip,
        dtypes=REAL,
        at=[
            At((POINTS, -1.0, 1.0), (array(0, 1, 1, 1, 0, 0), array(1), array(1))),
            At((POINTS, -1, 1), (array(0, 1, 1, 1, 0, 0),)),
            At((POINTS, -1), (array(0, 1, 1, 1, 1, 0),)),
            At((POINTS, None, 1), (array(1, 1, 1, 1, 0, 0),)),
            At((POINTS[:5], array(1), array(0)), (np.zeros(5), array(0), array(5))),
        ],
        raises=[
            Raises((X, 0.0), ArgumentError, "clip: a bound got twice", {"a_min": 0.0}),
            Raises((X, draw(2)), ShapeError, "clip_below: got"),
        ],
    ),
    OpCase(gt.clip, (X, None, 0.5), np.clip, label="above"),
    OpCase(gt.clip, (X, -0.5, None), np.clip, label="below"),
    OpCase(gt.clip, (X,), np.clip, {"a_min": -0.5, "a_max": 0.5}, label="keywords"),
    *(
        # NumPy 2.0 does not take these yet.
        [OpCase(gt.clip, (X,), np.clip, {"min": -0.5, "max": 0.5}, label="other-keywords")]
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0"
        else []
    ),
    OpCase(gt.clip, (X, Y - 1, Y + 1), np.clip, ops=("clip_below", "clip_above"), label="arrays"),
    OpCase(clip_below, (X, Y), np.maximum, elementwise=True),
    OpCase(clip_above, (X, Y), np.minimum, elementwise=True),
    OpCase(gt.clip, (X, None, Y), np.clip, ops=("clip_above",), label="array-above"),
    OpCase(gt.clip, (X, Y, None), np.clip, ops=("clip_below",), label="array-below"),
    OpCase(gt.clip, (np.array([1, 5]), 0.5, 2), np.clip, label="whole", differentiable=False),
]

DIRTY = array(1, nan, inf, -inf)
CLEAN = [
    OpCase(
        gt.nan_to_num,
        (X,),
        np.nan_to_num,
        elementwise=True,
        dtypes=REAL,
        at=[At((DIRTY,), (array(1, 0, 0, 0),))],
    ),
    OpCase(
        gt.nan_to_num,
        (array(1, 2),),
        np.nan_to_num,
        {"nan": 1.0, "posinf": 2.0, "neginf": 3.0},
        label="values",
    ),
]


def torch_clip(torch: Any, x: Any, low: Any = None, high: Any = None, **bounds: Any) -> Any:
    """PyTorch's takes two arrays or two numbers, and at least one of them."""
    low = bounds.get("a_min", bounds.get("min", low))
    high = bounds.get("a_max", bounds.get("max", high))
    if torch.is_tensor(low) or torch.is_tensor(high):
        low, high = (y if y is None else torch.as_tensor(y) for y in (low, high))
    return torch.clip(x, low, high)


def pair(name: str) -> Any:
    """PyTorch's function of two arrays, which takes no numbers."""
    return lambda torch, *args: getattr(torch, name)(*map(torch.as_tensor, args))


TORCH = {
    "where": lambda torch, condition, x, y: torch.where(torch.as_tensor(condition).bool(), x, y),
    "mask": lambda torch, x, condition: torch.where(condition, x, 0.0),
    **{name: pair(name) for name in ("maximum", "minimum", "fmax", "fmin")},
    "clip": torch_clip,
    "clip_below": lambda torch, x, low: torch.clip(x, min=low),
    "clip_above": lambda torch, x, high: torch.clip(x, max=high),
    "nan_to_num": "nan_to_num",
}

CASES: list[OpCase] = with_torch(TORCH, [*WHERE, *EXTREMES, *CLIP, *CLEAN])
