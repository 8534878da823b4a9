"""Samples of sums, means and extremes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, DTypeError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128)
REAL = (np.float64, np.float32, np.float16, np.int8, np.bool_)


def bad(name: str) -> list[Raises]:
    """What every reduction refuses."""
    x = draw(2, 3)
    return [
        Raises((x, 2), AxisError, f"{name}: got axis 2 for an array of 2 axes"),
        Raises((x, (0, -2)), AxisError, f"{name}: got axis.*twice"),
        Raises((x,), UnsupportedError, f"{name}: got out=", {"out": np.ones(())}),
        Raises((x,), DTypeError, f"{name}: got where= of float64", {"where": x, "initial": 0.0}),
        Raises((x[0],), ShapeError, f"{name}: got where= of", {"where": x > 0, "initial": 0.0}),
    ]


def without_initial(raises: list[Raises]) -> list[Raises]:
    """The same for a function that has no such option."""
    kept = [
        replace(one, params={k: v for k, v in one.params.items() if k != "initial"})
        for one in raises
    ]
    return [*kept, Raises((draw(2, 3),), UnsupportedError, "got initial=", {"initial": 1.0})]


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
    OpCase(
        gt.sum,
        (draw(2, 3),),
        np.sum,
        ops=("sum", "spread"),
        dtypes=DTYPES,
        at=[At((np.array([np.inf, -np.inf, np.nan, 1e300]),), (np.ones(4),))],
        raises=bad("sum"),
    ),
    *along(gt.sum, np.sum),
    OpCase(gt.sum, (draw(0, 2),), np.sum, label="of-nothing"),
    OpCase(gt.sum, (LARGE,), np.sum, label="large", second_order=False, batched=False, rtol=99),
    OpCase(gt.sum, (COUNT,), np.sum, {"dtype": np.float32}, label="dtype", differentiable=False),
    OpCase(np.add.reduce, (draw(2, 3),), np.add.reduce, ops=("sum",)),
    OpCase(np.add.reduce, (draw(2, 3), -1), np.add.reduce, ops=("sum",), label="axis"),
]

MEAN = [
    OpCase(
        gt.mean,
        (draw(2, 3),),
        np.mean,
        dtypes=DTYPES,
        at=[At((np.array([np.inf, 1.0, np.nan, 1e300]),), (np.full(4, 0.25),))],
        raises=without_initial(bad("mean")),
    ),
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
            At((np.array([np.nan, 1.0]),), (np.array([np.nan, np.nan]),)),
        ],
        raises=[*bad("max"), Raises((draw(0),), ShapeError, "max: got float64.*no identity")],
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
        at=[
            At((np.array([3.0, 1.0, 1.0, 1.0]),), (np.array([0.0, 1 / 3, 1 / 3, 1 / 3]),)),
            At((np.array([-np.inf, 1.0, np.inf]),), (np.array([1.0, 0.0, 0.0]),)),
            At((np.array([1.0, np.nan]),), (np.array([np.nan, np.nan]),)),
        ],
        raises=[*bad("min"), Raises((draw(0),), ShapeError, "min: got float64.*no identity")],
    ),
    *along(gt.min, np.min),
    OpCase(np.amin, (draw(2, 3), 0), np.amin, ops=("min",)),
]


def total(name: str) -> Any:
    """PyTorch's function, with a mean of floats only."""

    def function(
        torch: Any, x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Any:
        return getattr(torch, name)(x if dtype is None else x.double(), axis, keepdims)

    return function


def extreme(name: str) -> Any:
    """PyTorch's function that shares the gradient of ties, for which all axes are none."""

    def function(torch: Any, x: Any, axis: Any = (), keepdims: bool = False) -> Any:
        return getattr(torch, name)(x, axis, keepdims)

    return function


TORCH = {
    **{name: extreme(name) for name in ("amax", "amin")},
    **{name: total(name) for name in ("sum", "mean")},
    "max": extreme("amax"),
    "min": extreme("amin"),
    "reduce": lambda torch, x, axis=0: torch.sum(x, axis),
    "reduce-maximum": lambda torch, x: torch.amax(x, 0),
    # No axes are all axes to PyTorch.
    **{f"{name}-no-axes": None for name in ("sum", "mean", "max", "min")},
}

CASES = with_torch(TORCH, [*SUM, *MEAN, *MAX, *MIN])
