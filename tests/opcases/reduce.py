"""Samples of sums, means and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128)
REAL = (np.float64, np.float32, np.float16, np.int8, np.bool_)


def bad(name: str) -> list[Raises]:
    """What every reduction refuses."""
    x = draw(2, 3)
    return [
        Raises((x, 2), AxisError, f"{name}: came axis 2 for an array of 2 axes"),
        Raises((x, (0, -2)), AxisError, f"{name}: came axis.*twice"),
        Raises((x,), UnsupportedError, f"{name}: came out=", {"out": np.ones(())}),
        Raises((x,), UnsupportedError, f"{name}: came where=", {"where": x > 0}),
        Raises((x,), UnsupportedError, f"{name}: came initial=", {"initial": 1.0}),
    ]


def along(function: Any, ref: Any) -> list[OpCase]:
    """A reduction over all kinds of axes."""
    return [
        OpCase(function, (draw(2, 3), 0), ref, label="axis"),
        OpCase(function, (draw(2, 3, 2), (0, -1)), ref, label="axes"),
        OpCase(function, (draw(2, 3),), ref, {"keepdims": True}, label="keepdims"),
        OpCase(function, (draw(2, 3), -1), ref, {"keepdims": True}, label="axis-keepdims"),
        OpCase(function, (draw(2, 3), ()), ref, label="no-axes"),
        OpCase(function, (draw(),), ref, label="scalar"),
        OpCase(function, (draw(3, 2).T, 1), ref, label="strided"),
        OpCase(function, (draw(0, 2), 1), ref, label="empty"),
    ]


LARGE, COUNT = draw(5000), np.arange(6, dtype=np.int8)

SUM = [
    OpCase(gt.sum, (draw(2, 3),), np.sum, ops=("sum", "spread"), dtypes=DTYPES, raises=bad("sum")),
    *along(gt.sum, np.sum),
    OpCase(gt.sum, (draw(0, 2),), np.sum, label="of-nothing"),
    OpCase(gt.sum, (LARGE,), np.sum, label="large", second_order=False, batched=False, rtol=99),
    OpCase(gt.sum, (COUNT,), np.sum, {"dtype": np.float32}, label="dtype", differentiable=False),
    OpCase(np.add.reduce, (draw(2, 3),), np.add.reduce, ops=("sum",)),
    OpCase(np.add.reduce, (draw(2, 3), -1), np.add.reduce, ops=("sum",), label="axis"),
]

MEAN = [
    OpCase(gt.mean, (draw(2, 3),), np.mean, dtypes=DTYPES, raises=bad("mean")),
    *along(gt.mean, np.mean),
    OpCase(gt.mean, (COUNT,), np.mean, {"dtype": np.float32}, label="dtype", differentiable=False),
]

MAX = [
    OpCase(
        gt.max,
        (draw(2, 3),),
        np.max,
        ops=("max", "extreme_shares"),
        dtypes=REAL,
        at=[
            At((np.array([1.0, 3.0, 3.0]),), (np.array([0.0, 0.5, 0.5]),)),
            At(
                (np.array([[1.0, 1.0], [1.0, 0.0]]),),
                (np.array([[0.5, 1.0], [0.5, 0.0]]),),
                {"axis": 0},
            ),
            At((np.array([np.inf, np.inf, 0.0]),), (np.array([0.5, 0.5, 0.0]),)),
            At((np.array([-np.inf, -np.inf]),), (np.array([0.5, 0.5]),)),
        ],
        raises=[*bad("max"), Raises((draw(0),), ShapeError, "max: came float64.*no identity")],
    ),
    *along(gt.max, np.max),
    OpCase(np.amax, (draw(2, 3), 0), np.amax, ops=("max",)),
    OpCase(np.maximum.reduce, (draw(2, 3),), np.maximum.reduce, ops=("max",), label="maximum"),
]

MIN = [
    OpCase(
        gt.min,
        (draw(2, 3),),
        np.min,
        ops=("min", "extreme_shares"),
        dtypes=REAL,
        at=[At((np.array([3.0, 1.0, 1.0, 1.0]),), (np.array([0.0, 1 / 3, 1 / 3, 1 / 3]),))],
        raises=[*bad("min"), Raises((draw(0),), ShapeError, "min: came float64.*no identity")],
    ),
    *along(gt.min, np.min),
    OpCase(np.amin, (draw(2, 3), 0), np.amin, ops=("min",)),
]

CASES = [*SUM, *MEAN, *MAX, *MIN]
