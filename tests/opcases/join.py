"""Samples of joining."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128)


def made_of(function: Any, ref: Any, args: tuple[Any, ...], *ops: str, **more: Any) -> OpCase:
    """A case of a function that other ops make up."""
    return OpCase(function, args, ref, ops=ops, **more)


def many(x: Any) -> Any:
    """More arrays than are joined at a time."""
    return np.concatenate([x, *np.stack([x * i for i in range(300)]), *[x] * 300])


VECTORS = [draw(2), draw(3, seed=1)]
MATRICES = [draw(2, 3), draw(2, 3, seed=1)]

CONCATENATE = [
    OpCase(
        gt.concatenate,
        (VECTORS,),
        np.concatenate,
        ops=("concatenate", "crop"),
        dtypes=DTYPES,
        raises=[
            Raises((MATRICES, 2), AxisError, "concatenate: got axis 2"),
            Raises(([draw(2, 3), draw(3, 2)],), ShapeError, "concatenate: got float64"),
            Raises(([draw(2, 3), draw(3)],), ShapeError, "same number of axes.*stack"),
            Raises(([],), ShapeError, "concatenate: got no arrays"),
            Raises(([np.array(1.0)],), AxisError, "axis 0 for an array of 0 axes"),
            Raises((VECTORS,), UnsupportedError, "got out=", {"out": np.ones(5)}),
        ],
    ),
    OpCase(gt.concatenate, (MATRICES, 1), np.concatenate, label="axis"),
    OpCase(gt.concatenate, ([draw(2, 3, 1), draw(2, 3, 4)], -1), np.concatenate, label="last"),
    OpCase(gt.concatenate, ([draw(2, 3), draw(2)], None), np.concatenate, label="flat"),
    OpCase(gt.concatenate, ([draw(2), draw(0), draw(3)],), np.concatenate, label="empty"),
    OpCase(gt.concatenate, ([draw(3)],), np.concatenate, label="one"),
    OpCase(
        gt.concatenate, ([draw(2), np.arange(3)],), np.concatenate, label="integers", dtypes=[float]
    ),
    OpCase(
        gt.concatenate,
        (VECTORS,),
        np.concatenate,
        params={"dtype": np.float64},
        label="dtype",
    ),
    OpCase(gt.concatenate, (draw(3, 2),), np.concatenate, label="rows"),
    made_of(many, many, (draw(2),), "concatenate", "stack"),
]

STACK = [
    OpCase(
        gt.stack,
        (MATRICES,),
        np.stack,
        dtypes=DTYPES,
        raises=[
            Raises((VECTORS,), ShapeError, "stack: got float64"),
            Raises((MATRICES, 3), AxisError, "stack: got axis 3"),
            Raises(([],), ShapeError, "stack: got no arrays"),
        ],
    ),
    OpCase(gt.stack, (MATRICES, 1), np.stack, label="axis"),
    OpCase(gt.stack, (MATRICES, -1), np.stack, label="last"),
    OpCase(gt.stack, ([draw(), draw(seed=1)],), np.stack, label="scalars"),
    made_of(gt.vstack, np.vstack, ([draw(3), draw(2, 3)],), "concatenate"),
    made_of(gt.hstack, np.hstack, (VECTORS,), "concatenate"),
    made_of(gt.hstack, np.hstack, (MATRICES,), "concatenate", label="matrices"),
    made_of(gt.hstack, np.hstack, ([draw(), draw(2)],), "concatenate", label="scalar"),
    made_of(gt.dstack, np.dstack, (MATRICES,), "concatenate"),
    made_of(gt.column_stack, np.column_stack, ([draw(2), draw(2, 3)],), "concatenate"),
]


def torch_concatenate(torch: Any, arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    if axis is None:
        return torch.cat([x.reshape(-1) for x in arrays])
    return torch.cat(tuple(arrays), axis)


NAMES = ("stack", "vstack", "hstack", "dstack", "column_stack")
TORCH = {"concatenate": torch_concatenate, **{name: name for name in NAMES}}

CASES = with_torch(TORCH, [*CONCATENATE, *STACK])
