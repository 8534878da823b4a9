"""Samples of what holds up to each place along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import AxisError, DTypeError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

REAL = (np.float64, np.float32, np.float16, np.int8, np.bool_)
DTYPES = (np.float64, np.float32, np.int8, np.complex128)
ROWS = draw(2, 4)
NAN, INF = np.nan, np.inf
MAX = ("cumulative_max", "extreme_holders")
MIN = ("cumulative_min", "extreme_holders")


def largest(x: Any, axis: int | None = None) -> Any:
    return np.maximum.accumulate(x.ravel() if axis is None else x, 0 if axis is None else axis)


def smallest(x: Any, axis: int | None = None) -> Any:
    return np.minimum.accumulate(x.ravel() if axis is None else x, 0 if axis is None else axis)


def with_holders(accumulate: Any) -> Any:
    def function(x: Any, axis: int) -> Any:
        values = accumulate(x, axis)
        lanes, held = np.moveaxis(x, axis, -1), np.moveaxis(values, axis, -1)
        where = np.empty(lanes.shape, np.intp)
        for place in np.ndindex(lanes.shape):
            row, k = place[:-1], place[-1]
            same = (lanes[row] == held[place]) | np.isnan(lanes[row] + 0.0)
            where[place] = np.flatnonzero(same[: k + 1])[-1]
        return values, np.moveaxis(where, -1, axis)

    return function


EXTREMES = [
    OpCase(
        gt.cumulative_max,
        (ROWS, 1),
        largest,
        ops=MAX,
        dtypes=REAL,
        torch=lambda torch, x, axis: torch.cummax(x, axis).values,
        at=[
            At(([1.0, 2.0, 2.0, 0.0], 0), ([1.0, 1.0, 2.0, 0.0],)),
            At(([1.0, NAN, 3.0, NAN], 0), ([1.0, 2.0, 0.0, 1.0],)),
            At(([-INF, 1.0, INF], 0), ([1.0, 1.0, 1.0],)),
        ],
        raises=[
            Raises((ROWS, 2), AxisError, "cumulative_max: got axis 2"),
            Raises((ROWS + 1j,), DTypeError, "cumulative_max: got complex128"),
        ],
    ),
    OpCase(gt.cumulative_max, (draw(2, 3),), largest, ops=MAX, label="flat"),
    OpCase(gt.cumulative_max, (draw(2, 0), 1), largest, ops=MAX, label="empty"),
    OpCase(
        gt.cumulative_min,
        (draw(4, 2), 0),
        smallest,
        ops=MIN,
        dtypes=REAL,
        torch=lambda torch, x, axis: torch.cummin(x, axis).values,
        at=[At(([2.0, 1.0, 1.0, 3.0], 0), ([1.0, 1.0, 2.0, 0.0],))],
        raises=[Raises((ROWS, 2), AxisError, "cumulative_min: got axis 2")],
    ),
    OpCase(
        gt.cummax,
        (draw(2, 4), 1),
        with_holders(largest),
        ops=("extreme_holders", "gather"),
        dtypes=REAL[:-1],
        torch=lambda torch, x, axis: tuple(torch.cummax(x, axis)),
        at=[At(([1.0, 2.0, 2.0, 0.0], 0), ([1.0, 1.0, 2.0, 0.0],))],
        raises=[Raises((ROWS, 2), AxisError, "cummax: got axis 2")],
    ),
    OpCase(
        gt.cummin,
        (draw(3, 2), 0),
        with_holders(smallest),
        ops=("extreme_holders", "gather"),
        torch=lambda torch, x, axis: tuple(torch.cummin(x, axis)),
        raises=[Raises((ROWS + 1j, 0), DTypeError, "cummin: got complex128")],
    ),
]


def before_numpy_2_1(op: str) -> Callable[..., Any]:
    """What `np.cumulative_sum` and `np.cumulative_prod` do, for a NumPy that has neither."""

    def ref(x: Any, *, axis: int = 0, include_initial: bool = False, **options: Any) -> Any:
        out = getattr(np, op)(x, axis, **options)
        if not include_initial:
            return out
        first = np.take(out, [0], axis) * 0 + (op == "cumprod")
        return np.concatenate([first, out], axis)

    return ref


def from_initial(name: str, op: str) -> list[OpCase]:
    function = getattr(gt, name)
    ref = getattr(np, name) if hasattr(np, name) else before_numpy_2_1(op)
    return [
        OpCase(
            function,
            (draw(3),),
            ref,
            ops=(op,),
            dtypes=DTYPES,
            raises=[
                Raises((ROWS,), ShapeError, f"{name}: got shape"),
                Raises((ROWS,), AxisError, f"{name}: got axis 2", {"axis": 2}),
                Raises((draw(3),), UnsupportedError, "got out=", {"out": np.ones(3)}),
            ],
        ),
        OpCase(
            function,
            (ROWS,),
            ref,
            {"axis": 1, "include_initial": True},
            ops=(op, "concatenate"),
            dtypes=DTYPES,
            label="initial",
        ),
    ]


# ---- logcumsumexp -------------------------------------------------------------------------------


def logcumsumexp(x: Any, axis: int) -> Any:
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    return np.logaddexp.accumulate(x, axis)


LOGS = [
    OpCase(
        gt.logcumsumexp,
        (draw(2, 4), 1),
        logcumsumexp,
        ops=("logcumsumexp", "recurrence"),
        dtypes=REAL,
        torch="logcumsumexp",
        at=[At(([1000.0, 1000.0], 0), ([1.5, 0.5],)), At(([0.0, -1000.0], 0), ([2.0, 0.0],))],
        raises=[
            Raises((ROWS, 2), AxisError, "logcumsumexp: got axis 2"),
            Raises((ROWS + 1j, 0), DTypeError, "logcumsumexp: got complex128"),
        ],
    ),
    OpCase(
        gt.logcumsumexp,
        (draw(3, 2), 0),
        logcumsumexp,
        label="axis",
        torch="logcumsumexp",
    ),
    OpCase(
        gt.logcumsumexp,
        (np.array([-INF, -INF, 0.0, -INF]), 0),
        logcumsumexp,
        differences=False,
        label="nothing",
        at=[At(([-INF, -INF, 0.0, -INF], 0), ([0.0, 0.0, 2.0, 0.0],))],
    ),
    OpCase(gt.logcumsumexp, (draw(2, 0), 1), logcumsumexp, label="empty"),
]

CASES = [
    *EXTREMES,
    *from_initial("cumulative_sum", "cumsum"),
    *from_initial("cumulative_prod", "cumprod"),
    *LOGS,
]

NOT_NATIVE = dict.fromkeys(
    ["cumulative_max", "cumulative_min", "extreme_holders", "logcumsumexp"],
    "each place needs the one before it, by more than a sum or product",
)
