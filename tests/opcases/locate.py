"""Cases of one-hot vectors; nonzero and its relatives are no ops."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import IndexingError
from opcases.case import OpCase, Raises, with_torch


def one_hot(indices: Any, num_classes: int, dtype: Any = np.float64) -> Any:
    return np.eye(num_classes, dtype=dtype)[indices]


SAMPLES: list[OpCase] = [
    OpCase(
        gt.one_hot,
        (np.array([[2, 0], [1, 1]]),),
        one_hot,
        {"num_classes": 3},
        differentiable=False,
        raises=[
            Raises((np.array([3]),), IndexingError, "got class 3, expected", {"num_classes": 3}),
            Raises((np.array([-1]),), IndexingError, "got class -1", {"num_classes": 3}),
            Raises((np.array([0.0]),), IndexingError, "dtype float64", {"num_classes": 3}),
        ],
    ),
    OpCase(
        gt.one_hot,
        (np.array(1),),
        one_hot,
        {"num_classes": 2, "dtype": np.float32},
        differentiable=False,
        label="0-d",
    ),
]

TORCH = {
    "one_hot": lambda torch, x, num_classes, dtype=None: torch.nn.functional.one_hot(
        x, num_classes
    ),
}

CASES = with_torch(TORCH, SAMPLES)
