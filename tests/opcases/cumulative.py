"""Samples of cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, UnsupportedError
from gradtape.ops.recurrence import recurrence
from opcases.case import At, OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128)


def one_by_one(x: Any, factor: Any, axis: int, reverse: bool) -> Any:
    step = -1 if reverse else 1
    x, factor = (np.moveaxis(v, axis, 0)[::step] for v in (x, factor))
    out = x.copy()
    for k in range(1, len(x)):
        out[k] += factor[k] * out[k - 1]
    return np.moveaxis(out[::step], 0, axis)


RECURRENCES = [
    OpCase(
        recurrence,
        (draw(2, 3), draw(2, 3, seed=1)),
        one_by_one,
        {"axis": 1, "reverse": False},
        ops=("recurrence",),
        label="recurrence",
    ),
    OpCase(
        recurrence,
        (draw(3, 2), draw(3, 2, seed=1)),
        one_by_one,
        {"axis": 0, "reverse": True},
        ops=("recurrence",),
        label="from the end",
    ),
    OpCase(
        recurrence,
        (draw(3) + 1j * draw(3, seed=1), draw(3, seed=2) + 1j * draw(3, seed=3)),
        one_by_one,
        {"axis": 0, "reverse": False},
        ops=("recurrence",),
        label="complex",
        dtypes=(np.complex128,),
    ),
    OpCase(
        recurrence,
        (draw(100), draw(100, seed=1, high=0.9)),
        one_by_one,
        {"axis": 0, "reverse": True},
        ops=("recurrence",),
        label="blocks",
        second_order=False,
        batched=False,
        rtol=4096,
    ),
]

SAMPLES = [
    OpCase(
        gt.cumsum,
        (draw(5),),
        np.cumsum,
        dtypes=DTYPES,
        at=[At((np.array([np.inf, -np.inf, np.nan, 1e300]),), (np.array([4.0, 3.0, 2.0, 1.0]),))],
        raises=[
            Raises((draw(2), 1), AxisError, "cumsum: got axis 1"),
            Raises((draw(2),), UnsupportedError, "cumsum: got out=", {"out": np.ones(2)}),
        ],
    ),
    OpCase(gt.cumsum, (draw(2, 3),), np.cumsum, label="flat"),
    OpCase(gt.cumsum, (draw(2, 3), -1), np.cumsum, label="axis"),
    OpCase(gt.cumsum, (draw(2, 0), 1), np.cumsum, label="empty"),
    OpCase(
        gt.cumsum,
        (np.arange(3),),
        np.cumsum,
        {"dtype": np.float32},
        label="dtype",
        differentiable=False,
    ),
    OpCase(np.add.accumulate, (draw(2, 3),), np.add.accumulate, ops=("cumsum",)),
    OpCase(
        gt.cumprod,
        (draw(5),),
        np.cumprod,
        dtypes=DTYPES,
        at=[
            At((np.array([2.0, 0.0, 3.0]),), (np.array([1.0, 8.0, 0.0]),)),
            At((np.array([1000.0, -1000.0]),), (np.array([-999.0, 1000.0]),)),
            At(
                (np.array([np.inf, 2.0]),),
                (np.array([3.0, np.inf]),),
                unlike_torch="nan from inf/inf; ours does not divide by the factor again",
            ),
        ],
        raises=[Raises((draw(2), 1), AxisError, "cumprod: got axis 1")],
    ),
    OpCase(gt.cumprod, (draw(2, 3),), np.cumprod, label="flat"),
    OpCase(gt.cumprod, (draw(3, 2), 0), np.cumprod, label="axis"),
    OpCase(gt.cumprod, (np.array([2.0, 0.0, 3.0, 0.0, 4.0]),), np.cumprod, label="zeros"),
    OpCase(gt.cumprod, (draw(1),), np.cumprod, label="one"),
    OpCase(gt.cumprod, (draw(2, 0), 1), np.cumprod, label="empty"),
]


def cumulative(name: str) -> Any:
    """PyTorch's function, which needs an axis."""

    def function(torch: Any, x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
        return getattr(torch, name)(x, axis)

    return function


TORCH = {
    "cumsum": cumulative("cumsum"),
    "cumprod": cumulative("cumprod"),
    "accumulate": lambda torch, x: torch.cumsum(x, 0),
}

CASES = [*with_torch(TORCH, SAMPLES), *RECURRENCES]
