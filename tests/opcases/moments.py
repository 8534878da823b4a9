"""Samples of variance and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.complex128)
FAR = draw(5) + 100


def cases(function: Any, ref: Any) -> list[OpCase]:
    """What both are tried on."""
    name = function.__name__
    return [
        OpCase(function, (draw(2, 3), 0), ref, label="axis"),
        OpCase(function, (draw(2, 3, 2), (0, -1)), ref, {"keepdims": True}, label="axes"),
        OpCase(function, (draw(2, 3), -1), ref, {"ddof": 1}, label="ddof"),
        OpCase(function, (draw(4),), ref, {"correction": 0.5}, label="correction"),
        OpCase(function, (draw(3, 2).T, 1), ref, label="strided"),
        OpCase(function, (draw(2, 3), 0), ref, {"mean": draw(1, 3)}, ("sum",), label="mean"),
        OpCase(
            function,
            (FAR,),
            ref,
            label="far-from-zero",
            rtol=64,
            raises=[
                Raises((FAR, 1), AxisError, f"{name}: got axis 1"),
                Raises((FAR,), UnsupportedError, f"{name}: got out=", {"out": FAR}),
                Raises((FAR,), ArgumentError, f"{name}: got ddof", {"ddof": 1, "correction": 1}),
            ],
        ),
    ]


SAMPLES = [
    OpCase(
        gt.var,
        (draw(2, 3),),
        np.var,
        dtypes=DTYPES,
        at=[
            At((np.array([2.0, 2.0, 2.0]),), (np.array([0.0, 0.0, 0.0]),)),
            At((5.0,), (0.0,)),
            At((np.array([1.0]),), (np.array([np.nan]),), {"ddof": 1}),
            At((np.array([np.inf, 1.0]),), (np.array([np.nan, -np.inf]),)),
            At((np.array([1e150, -1e150]),), (np.array([1e150, -1e150]),)),
            At((np.array([1e200, 1e200]),), (np.zeros(2),)),
        ],
    ),
    *cases(gt.var, np.var),
    OpCase(
        gt.std,
        (draw(2, 3),),
        np.std,
        ops=("std", "divide_or_zero"),
        dtypes=DTYPES,
        at=[
            At((np.array([2.0, 2.0, 2.0]),), (np.array([0.0, 0.0, 0.0]),)),
            At(
                (np.array([[2.0, 2.0], [0.0, 2.0]]),),
                (np.array([[0.0, 0.0], [-0.5, 0.5]]),),
                {"axis": 1},
            ),
            At((5.0,), (0.0,)),
            At((np.array([1e-310, 1e-310]),), (np.zeros(2),)),
            At((np.array([1e150, -1e150]),), (np.array([0.5, -0.5]),)),
            At((np.array([np.nan, 1.0]),), (np.array([np.nan, np.nan]),)),
        ],
    ),
    *cases(gt.std, np.std),
]


def moment(name: str) -> Any:
    """PyTorch's function, which is corrected by 1 unless told otherwise."""

    def function(torch: Any, x: Any, axis: Any = None, *, keepdims: bool = False, **by: Any) -> Any:
        correction = by.get("ddof", by.get("correction", 0))
        return getattr(torch, name)(x, axis, correction=correction, keepdim=keepdims)

    return function


TORCH = {"var": moment("var"), "std": moment("std"), "var-mean": None, "std-mean": None}

CASES = with_torch(TORCH, SAMPLES)
