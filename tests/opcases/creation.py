"""Samples for `gradtape.ops.creation`; what makes tensors of arrays is in `test_creation.py`."""

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError
from opcases.case import OpCase, Raises, draw

_THROUGH = ("reshape", "broadcast_to", "copy")


def meshgrid(torch: Any, *arrays: Any, indexing: str = "xy", copy: bool = True) -> Any:
    """PyTorch's, which has NumPy's other form by default."""
    return torch.meshgrid(*arrays, indexing=indexing)


CASES = [
    OpCase(
        gt.meshgrid,
        (draw(3), draw(2)),
        np.meshgrid,
        ops=_THROUGH,
        torch=meshgrid,
        raises=[Raises((draw(3), draw(2)), ArgumentError, "indexing='no'", {"indexing": "no"})],
    ),
    OpCase(
        gt.meshgrid,
        (draw(3), draw(2), draw(4)),
        np.meshgrid,
        {"indexing": "ij", "copy": False},
        ops=("reshape", "broadcast_to"),
        label="ij",
        torch=meshgrid,
    ),
    OpCase(
        gt.meshgrid,
        (draw(3), draw(2)),
        np.meshgrid,
        {"sparse": True},
        ops=("reshape", "copy"),
        label="sparse",
    ),
    OpCase(gt.meshgrid, (draw(3),), np.meshgrid, ops=_THROUGH, label="one", torch=meshgrid),
]
