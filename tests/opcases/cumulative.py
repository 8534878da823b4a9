"""Samples of cumulative sums and products."""

from __future__ import annotations

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128)

CASES = [
    OpCase(
        gt.cumsum,
        (draw(5),),
        np.cumsum,
        dtypes=DTYPES,
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
        at=[At((np.array([2.0, 0.0, 3.0]),), (np.array([1.0, 8.0, 0.0]),))],
        raises=[Raises((draw(2), 1), AxisError, "cumprod: came axis 1")],
    ),
    OpCase(gt.cumprod, (draw(2, 3),), np.cumprod, label="flat"),
    OpCase(gt.cumprod, (draw(3, 2), 0), np.cumprod, label="axis"),
    OpCase(gt.cumprod, (np.array([2.0, 0.0, 3.0, 0.0, 4.0]),), np.cumprod, label="zeros"),
    OpCase(gt.cumprod, (draw(1),), np.cumprod, label="one"),
    OpCase(gt.cumprod, (draw(2, 0), 1), np.cumprod, label="empty"),
]
