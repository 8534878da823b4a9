"""Samples of reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

REAL = (np.float64, np.float32, np.float16, np.int8)
DTYPES = (*REAL, np.complex128)
FLOATS = (np.float64, np.float32, np.float16, np.complex128)
NUMBERS = draw(2, 3)
NAN, INF = np.nan, np.inf
HOLES = np.array([[1.0, NAN, -0.5], [NAN, 2.0, 3.0]])
TAKEN = np.array([[True, False, True], [True, True, True]])


def cases(function: Any, ref: Any, ops: tuple[str, ...], at: list[At], **more: Any) -> list[OpCase]:
    """A reduction of numbers, and of numbers among which there is NaN."""
    name = function.__name__
    bad = [
        Raises((NUMBERS, 2), AxisError, f"{name}: got axis 2"),
        Raises((NUMBERS,), UnsupportedError, f"{name}: got out=", {"out": np.ones(())}),
    ]
    torch = more.pop("torch", None)
    return [
        OpCase(function, (NUMBERS,), ref, ops=ops, dtypes=more.get("dtypes", DTYPES), raises=bad),
        OpCase(function, (NUMBERS, 1), ref, {"keepdims": True}, ops, label="keepdims"),
        OpCase(
            function,
            (HOLES, 0),
            ref,
            ops=ops,
            label="holes",
            dtypes=tuple(d for d in more.get("dtypes", FLOATS) if d is not np.int8),
            differences=False,
            torch=torch,
        ),
        OpCase(function, (HOLES,), ref, ops=ops, label="all", differences=False, at=at),
    ]


REDUCTIONS = [
    *cases(
        gt.nansum,
        np.nansum,
        ("mask", "sum"),
        [At(([1.0, NAN],), ([1.0, 0.0],)), At(([NAN, NAN],), ([0.0, 0.0],))],
        torch="nansum",
    ),
    *cases(
        gt.nanprod,
        np.nanprod,
        ("where", "prod"),
        [At(([3.0, NAN, 2.0],), ([2.0, 0.0, 3.0],)), At(([NAN, NAN],), ([0.0, 0.0],))],
    ),
    *cases(
        gt.nanmean,
        np.nanmean,
        ("mask", "sum", "divide"),
        [At(([1.0, NAN, 3.0],), ([0.5, 0.0, 0.5],)), At(([NAN, NAN],), ([0.0, 0.0],))],
        torch="nanmean",
    ),
    *cases(
        gt.nanvar,
        np.nanvar,
        ("mask", "sum", "divide"),
        [
            At(([1.0, NAN, 3.0],), ([-1.0, 0.0, 1.0],)),
            At(([1.0, NAN, 3.0],), ([-2.0, 0.0, 2.0],), {"correction": 1}),
            At(([2.0, NAN],), ([0.0, 0.0],)),
        ],
    ),
    *cases(
        gt.nanstd,
        np.nanstd,
        ("mask", "sqrt"),
        [
            At(([1.0, NAN, 3.0],), ([-0.5, 0.0, 0.5],)),
            At(([2.0, NAN, 2.0],), ([0.0, 0.0, 0.0],)),
        ],
    ),
    *cases(
        gt.nanmax,
        np.nanmax,
        ("nanmax", "nan_extreme_shares"),
        [
            At(([1.0, NAN, 3.0],), ([0.0, 0.0, 1.0],)),
            At(([3.0, NAN, 3.0],), ([0.5, 0.0, 0.5],)),
            At(([-INF, NAN],), ([1.0, 0.0],)),
            At(([NAN, NAN],), ([0.0, 0.0],)),
        ],
        dtypes=REAL,
    ),
    *cases(
        gt.nanmin,
        np.nanmin,
        ("nanmin", "nan_extreme_shares"),
        [
            At(([1.0, NAN, 3.0],), ([1.0, 0.0, 0.0],)),
            At(([INF, NAN],), ([1.0, 0.0],)),
            At(([NAN, NAN],), ([0.0, 0.0],)),
        ],
        dtypes=REAL,
    ),
]

MORE = [
    OpCase(
        gt.nanvar,
        (NUMBERS, 1),
        np.nanvar,
        {"ddof": 1},
        ops=("sum",),
        label="ddof",
        raises=[Raises((HOLES,), ArgumentError, "nanvar: got ddof=", {"ddof": 1, "correction": 1})],
    ),
    OpCase(gt.nanstd, (NUMBERS, 0), np.nanstd, {"correction": 1}, ("sum",), label="correction"),
    OpCase(gt.nanmax, (NUMBERS.T, (0, 1)), np.nanmax, label="axes"),
    OpCase(gt.nanmean, (NUMBERS, 0), np.nanmean, {"where": TAKEN}, ("sum",), label="where"),
    OpCase(gt.nanvar, (NUMBERS, 0), np.nanvar, {"where": TAKEN}, ("sum",), label="where"),
    OpCase(gt.nanprod, (NUMBERS, 1), np.nanprod, {"where": TAKEN}, ("prod",), label="where"),
    OpCase(
        gt.nanmax,
        (NUMBERS, 1),
        np.nanmax,
        {"where": TAKEN, "initial": -0.5},
        ("fmax",),
        label="where",
        raises=[Raises((NUMBERS,), ShapeError, "nanmax: got where=", {"where": TAKEN})],
    ),
    OpCase(
        gt.nanmin,
        (draw(0, 2), 1),
        np.nanmin,
        label="empty",
        raises=[Raises((draw(0),), ShapeError, "nanmin: got float64")],
    ),
    OpCase(gt.nancumsum, (NUMBERS, 1), np.nancumsum, ops=("mask", "cumsum"), dtypes=DTYPES),
    OpCase(
        gt.nancumsum,
        (HOLES,),
        np.nancumsum,
        ops=("mask", "cumsum"),
        label="holes",
        differences=False,
        at=[At(([1.0, NAN, 3.0],), ([3.0, 0.0, 1.0],))],
        raises=[Raises((HOLES,), UnsupportedError, "got out=", {"out": np.ones(6)})],
    ),
    OpCase(gt.nancumprod, (NUMBERS, 1), np.nancumprod, ops=("where", "cumprod"), dtypes=DTYPES),
    OpCase(
        gt.nancumprod,
        (HOLES, 0),
        np.nancumprod,
        ops=("where", "cumprod"),
        label="holes",
        differences=False,
        at=[At(([2.0, NAN, 3.0],), ([5.0, 0.0, 2.0],))],
        raises=[Raises((HOLES,), UnsupportedError, "got out=", {"out": np.ones(6)})],
    ),
]


def positions(function: Any, ref: Any) -> list[OpCase]:
    name = function.__name__
    bad = [
        Raises(([[NAN, NAN]],), ArgumentError, f"{name}: got nothing but NaN"),
        Raises((NUMBERS, 2), AxisError, f"{name}: got axis 2"),
        Raises((NUMBERS,), UnsupportedError, f"{name}: got out=", {"out": np.ones(())}),
    ]
    return [
        OpCase(function, (NUMBERS, 1), ref, differentiable=False, dtypes=REAL, raises=bad),
        OpCase(function, (HOLES, 0), ref, differentiable=False, label="holes"),
        OpCase(function, (HOLES,), ref, {"keepdims": True}, differentiable=False, label="keepdims"),
    ]


CASES = [
    *REDUCTIONS,
    *MORE,
    *positions(gt.nanargmax, np.nanargmax),
    *positions(gt.nanargmin, np.nanargmin),
]

NOT_NATIVE = dict.fromkeys(["nanargmax", "nanargmin"], "raises where there is nothing but NaN")
