"""Samples of rounding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

X = draw(2, 3)
DTYPES = (np.float64, np.float32, np.float16, np.int8)
HALVES = np.array([-1.5, -0.5, -0.0, 0.0, 0.5, 1.5, np.inf, np.nan])
FLAT = [At((HALVES,), (np.zeros(8),))]


def fix(x: Any) -> Any:
    """`np.fix`, which is deprecated since NumPy 2.5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.fix(x)


SAMPLES: list[OpCase] = [
    *(
        OpCase(getattr(gt, name), (X,), getattr(np, name), elementwise=True, dtypes=DTYPES, at=FLAT)
        for name in ("floor", "ceil", "trunc", "rint")
    ),
    OpCase(gt.trunc, (X,), fix, label="fix"),
    OpCase(gt.round, (X,), np.round, elementwise=True, dtypes=DTYPES, at=FLAT),
    OpCase(gt.round, (X, 1), np.round, label="decimals"),
    OpCase(gt.round, (100 * X,), np.around, {"decimals": -1}, label="tens"),
    OpCase(
        gt.copysign,
        (X, draw(2, 3, seed=1)),
        np.copysign,
        elementwise=True,
        at=[
            At(
                (np.array([0.0, 1.0, -1.0, -0.0, 2.0]), np.array([-1.0, -1.0, -1.0, 0.0, 0.0])),
                (np.array([0, -1, 1, 0, 1]), np.zeros(5)),
            ),
        ],
        raises=[Raises((draw(2), draw(3)), ShapeError, "copysign: got")],
    ),
]

TORCH = {
    **{name: name for name in ("floor", "ceil", "trunc", "copysign")},
    "rint": "round",
    "round": lambda torch, x, decimals=0: torch.round(x, decimals=decimals),
}

CASES = with_torch(TORCH, SAMPLES)

ULPS = {"rint": 0, "copysign": 0, "round": 0}
