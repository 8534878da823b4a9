"""Samples of products, with zeros among the factors."""

from __future__ import annotations

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

ONE_ZERO = np.array([2.0, 0.0, 3.0, -1.0, 0.5])
TWO_ZEROS = np.array([0.0, 2.0, 3.0, 0.0, 0.5, 4.0, 1.5])
SOME_ZEROS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.5], [0.0, 4.0, 3.0]])

CASES = [
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
        ],
        raises=[
            Raises((draw(2), 1), AxisError, "prod: came axis 1"),
            Raises((draw(2),), UnsupportedError, "prod: came initial=", {"initial": 2.0}),
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

NOT_NATIVE = {"product_of_others": "each element needs all others"}
