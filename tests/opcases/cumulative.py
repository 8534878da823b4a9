"""Samples of cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128)

SAMPLES = [
    OpCase(
        gt.cumsum,
        (draw(5),),
        np.cumsum,
        dtypes=DTYPES,
        at=[At((np.array([np.inf, -np.inf, np.nan, 1e300]),), (np.array([4.0, 3.0, 2.0, 1.0]),))],
        raises=[
            Raises((draw(2), 1), AxisError, "cumsum: came axis 1"),
            Raises((draw(2),), UnsupportedError, "cumsum: came out=", {"out": np.ones(2)}),
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
        raises=[Raises((draw(2), 1), AxisError, "cumprod: came axis 1")],
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

CASES = with_torch(TORCH, SAMPLES)
