"""Samples of products, with zeros among the factors."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, DTypeError
from opcases.case import At, OpCase, Raises, draw, with_torch

ONE_ZERO = np.array([2.0, 0.0, 3.0, -1.0, 0.5])
TWO_ZEROS = np.array([0.0, 2.0, 3.0, 0.0, 0.5, 4.0, 1.5])
SOME_ZEROS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.5], [0.0, 4.0, 3.0]])
DIVIDED = "the infinite product divided by the factor; ours multiplies the others"

SAMPLES = [
    OpCase(
        gt.prod,
        (draw(2, 3),),
        np.prod,
        ops=("prod", "product_of_others"),
        dtypes=(np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128),
        at=[
            At((np.array([2.0, 0.0, 3.0]),), (np.array([0.0, 6.0, 0.0]),)),
            At((np.array([0.0, 0.0, 3.0]),), (np.array([0.0, 0.0, 0.0]),)),
            At((3.0,), (1.0,)),
            At((np.array([np.inf, 0.0]),), (np.array([0.0, np.inf]),)),
            At((np.array([np.inf, 2.0]),), (np.array([2.0, np.inf]),), {}, DIVIDED),
            At((np.array([1e200, 2e200]),), (np.array([2e200, 1e200]),), {}, DIVIDED),
        ],
        raises=[
            Raises((draw(2), 1), AxisError, "prod: got axis 1"),
            Raises((draw(2),), DTypeError, "prod: got where= of float64", {"where": draw(2)}),
        ],
    ),
    OpCase(gt.prod, (draw(2, 3), 0), np.prod, label="axis"),
    OpCase(gt.prod, (draw(2, 3, 2), (0, -1)), np.prod, {"keepdims": True}, label="axes"),
    OpCase(gt.prod, (draw(2, 3, 2), (2, 0)), np.prod, label="axes-swapped"),
    OpCase(gt.prod, (draw(),), np.prod, label="scalar"),
    OpCase(gt.prod, (draw(0, 2),), np.prod, label="of-nothing"),
    OpCase(gt.prod, (draw(0, 2), 1), np.prod, label="empty"),
    OpCase(gt.prod, (ONE_ZERO,), np.prod, label="one-zero"),
    OpCase(gt.prod, (TWO_ZEROS,), np.prod, label="two-zeros"),
    OpCase(gt.prod, (SOME_ZEROS, 0), np.prod, label="some-zeros"),
    OpCase(gt.prod, (draw(9, low=0.5),), np.prod, label="odd-number"),
]


def torch_prod(torch: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """PyTorch's takes one axis."""
    if axis is None:
        return torch.prod(x)
    for one in sorted(np.atleast_1d(axis) % x.ndim, reverse=True):
        x = torch.prod(x, int(one), keepdim=keepdims)
    return x


TORCH = {"prod": torch_prod}

CASES = with_torch(TORCH, SAMPLES)

NOT_NATIVE = {"product_of_others": "each element needs all others"}
