"""Samples of splitting."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from opcases.case import OpCase, Raises, draw, with_torch


def made_of(function: Any, ref: Any, args: tuple[Any, ...], *ops: str, **more: Any) -> OpCase:
    """A case of a function that other ops make up."""
    return OpCase(function, args, ref, ops=ops, **more)


def middle_of_split(x: Any) -> Any:
    """One of several parts: the cotangents of the others are zeros."""
    return np.split(x, 3)[1]


def chunks(x: Any, count: int, axis: int = 0) -> list[Any]:
    """What `chunk` does, with slices."""
    size = -(-x.shape[axis] // count)
    starts = range(0, x.shape[axis], size)
    return [np.take(x, range(i, min(i + size, x.shape[axis])), axis) for i in starts]


SAMPLES = [
    OpCase(
        gt.split,
        (draw(6), 3),
        np.split,
        dtypes=(np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128),
        raises=[
            Raises((draw(7), 3), ShapeError, "split: got shape.*divisor of 7.*array_split"),
            Raises((draw(6), 0), ArgumentError, "split: got indices_or_sections=0"),
            Raises((draw(6), 2, 1), AxisError, "split: got axis 1"),
        ],
    ),
    OpCase(gt.split, (draw(2, 6), 2, -1), np.split, label="axis"),
    OpCase(gt.split, (draw(6), [1, 3]), np.split, label="places"),
    OpCase(gt.split, (draw(6), (2, 2, -1, 9)), np.split, label="odd-places"),
    OpCase(gt.split, (draw(6), [4, 2]), np.split, ops=("crop",), label="back"),
    OpCase(gt.split, (draw(6), 1), np.split, ops=("crop",), label="one"),
    made_of(middle_of_split, middle_of_split, (draw(6, 2),), "split", "concatenate"),
    made_of(gt.array_split, np.array_split, (draw(7), 3), "split"),
    made_of(gt.array_split, np.array_split, (draw(2, 3), 5, 1), "split", label="more-than-places"),
    made_of(
        gt.chunk,
        chunks,
        (draw(5), 3),
        "split",
        raises=[Raises((draw(5), 0), ArgumentError, "chunk: got chunks=0")],
    ),
    made_of(gt.chunk, chunks, (draw(2, 5), 4, 1), "split", label="axis"),
]

TORCH = {
    "split": "tensor_split",
    "array_split": "tensor_split",
    "middle_of_split": lambda torch, x: torch.tensor_split(x, 3)[1],
    "chunk": "chunk",
}

CASES = with_torch(TORCH, SAMPLES)
