"""Samples of reductions that tell which or how many."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, ShapeError, UnsupportedError
from gradtape.ops.which import numbers_along
from opcases.case import OpCase, Raises, draw, with_torch

REAL = (np.float64, np.float32, np.float16, np.int8, np.bool_)
SPARSE = np.array([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0]])


def untracked(function: Any, args: tuple[Any, ...], ref: Any, **more: Any) -> OpCase:
    """A case of a function without derivatives."""
    return OpCase(function, args, ref, differentiable=False, **more)


def cases(function: Any, ref: Any, x: Any, **more: Any) -> list[OpCase]:
    """What all of them are tried on."""
    name = function.__name__
    bad = [
        Raises((x, 2), AxisError, f"{name}: got axis 2"),
        Raises((x,), UnsupportedError, f"{name}: got out=", {"out": np.ones(())}),
    ]
    return [
        untracked(function, (x,), ref, dtypes=REAL, raises=bad, **more),
        untracked(function, (x, 0), ref, label="axis", **more),
        untracked(function, (x, -1), ref, params={"keepdims": True}, label="keepdims", **more),
        untracked(function, (x,), ref, params={"keepdims": True}, label="all-keepdims", **more),
    ]


SAMPLES = [
    *cases(gt.argmax, np.argmax, draw(2, 3)),
    untracked(
        gt.argmax,
        (np.array([1.0, 3.0, 3.0]),),
        np.argmax,
        label="tie",
        raises=[Raises((draw(0),), ShapeError, "argmax: got float64")],
    ),
    *cases(gt.argmin, np.argmin, draw(2, 3)),
    untracked(
        numbers_along,
        (draw(2, 3),),
        lambda x, axis: np.indices(x.shape)[axis],
        params={"axis": 1},
        ops=("numbers_along",),
        dtypes=REAL,
        label="numbers_along",
    ),
    *cases(gt.any, np.any, SPARSE),
    untracked(gt.any, (SPARSE, (0, 1)), np.any, label="axes"),
    untracked(gt.any, (draw(0),), np.any, label="empty"),
    *cases(gt.all, np.all, SPARSE),
    untracked(gt.all, (draw(0, 2), 0), np.all, label="empty"),
    untracked(gt.count_nonzero, (SPARSE,), np.count_nonzero, ops=("not_equal", "sum"), dtypes=REAL),
    untracked(
        gt.count_nonzero,
        (SPARSE, 1),
        np.count_nonzero,
        params={"keepdims": True},
        ops=("not_equal", "sum"),
        label="axis",
    ),
]

TORCH = {
    "argmax": "argmax",
    "argmin": "argmin",
    "any": "any",
    "all": "all",
    "count_nonzero": lambda torch, x, axis=None, keepdims=False: torch.sum(x != 0, axis, keepdims),
}

CASES = with_torch(TORCH, SAMPLES)
