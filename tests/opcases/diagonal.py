"""Samples of diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, ShapeError
from opcases.case import OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128)

SAMPLES = [
    OpCase(
        gt.diagonal,
        (draw(3, 4),),
        np.diagonal,
        ops=("diagonal", "diagonal_embed"),
        dtypes=DTYPES,
        raises=[
            Raises((draw(3),), AxisError, "diagonal: got shape.*two axes"),
            Raises((draw(3, 3), 0, 0, 2), AxisError, "diagonal: got axis 2"),
            Raises((draw(3, 3), 0, 1, -1), AxisError, "got axis 1 twice"),
        ],
    ),
    OpCase(gt.diagonal, (draw(3, 4), 2), np.diagonal, label="above"),
    OpCase(gt.diagonal, (draw(3, 4), -1), np.diagonal, label="below"),
    OpCase(gt.diagonal, (draw(3, 4), 5), np.diagonal, label="outside"),
    OpCase(gt.diagonal, (draw(2, 3, 4), 1, -1, 0), np.diagonal, label="axes"),
    OpCase(
        gt.diag,
        (draw(3),),
        np.diag,
        ops=("diagonal_embed",),
        dtypes=DTYPES,
        raises=[Raises((draw(2, 2, 2),), ShapeError, "diag: got shape.*diagonal")],
    ),
    OpCase(gt.diag, (draw(3), -2), np.diag, ops=("diagonal_embed",), label="below"),
    OpCase(gt.diag, (draw(3, 4), 1), np.diag, ops=("diagonal",), label="matrix"),
    OpCase(gt.trace, (draw(3, 4),), np.trace, ops=("diagonal", "sum"), dtypes=DTYPES),
    OpCase(gt.trace, (draw(3, 4, 2), 1, 2, 1), np.trace, ops=("diagonal", "sum"), label="axes"),
    OpCase(
        gt.tril,
        (draw(3, 4),),
        np.tril,
        dtypes=DTYPES,
        raises=[Raises((np.array(1.0),), ShapeError, r"tril: got shape \(\)")],
    ),
    OpCase(gt.tril, (draw(2, 3, 3), -1), np.tril, label="batch"),
    OpCase(gt.tril, (draw(3),), np.tril, label="vector"),
    OpCase(gt.triu, (draw(3, 4), 1), np.triu, dtypes=DTYPES),
    OpCase(gt.triu, (draw(2, 3, 3),), np.triu, label="batch"),
]


def trace(torch: Any, x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """PyTorch's own is for matrices only."""
    return torch.diagonal(x, offset, axis1, axis2).sum(-1)


TORCH = {
    "diagonal": "diagonal",
    "diag": "diag",
    "trace": trace,
    "tril": "tril",
    "triu": "triu",
    "tril-vector": None,
}

CASES = with_torch(TORCH, SAMPLES)
