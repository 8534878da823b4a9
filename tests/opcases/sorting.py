"""Samples of sorting, searching and selecting."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

DTYPES = (np.float64, np.float32, np.float16, np.int8, np.bool_, np.complex128)
REAL = (np.float64, np.float32, np.float16, np.int8)
TIES = np.array([2.0, 1.0, 2.0, 1.0])
WITH_NAN = np.array([np.nan, 1.0, np.inf, np.nan, -np.inf])
ROWS = draw(2, 4)
LARGE = np.random.default_rng(0).permutation(np.arange(1100.0))
READS = ("gather", "scatter")


def untracked(function: Any, args: tuple[Any, ...], ref: Any, **more: Any) -> OpCase:
    """A case of a function without derivatives."""
    return OpCase(function, args, ref, differentiable=False, **more)


# ---- sort ---------------------------------------------------------------------------------------


def sorted_down(x: Any, axis: int = -1, descending: bool = True) -> Any:
    return np.flip(np.sort(x, axis), axis)


def argsorted_down(x: Any, axis: int = -1, descending: bool = True) -> Any:
    order = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(order, axis)


def stable(x: Any, axis: int | None = -1, **_: Any) -> Any:
    return np.argsort(x, axis, kind="stable")


def torch_sort(torch: Any, x: Any, axis: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=axis, stable=True, descending=descending).values


SORT = [
    OpCase(
        gt.sort,
        (ROWS,),
        np.sort,
        ops=("sort", *READS),
        dtypes=DTYPES,
        torch=torch_sort,
        at=[
            At(([2.0, 1.0, 2.0],), ([1.0, 1.0, 1.0],)),
            At((WITH_NAN,), (np.ones(5),)),
        ],
        raises=[
            Raises((ROWS, 2), AxisError, "sort: got axis 2"),
            Raises((np.array(1.0),), AxisError, "sort: got axis -1"),
            Raises((ROWS,), ArgumentError, "sort: got kind='bubble'", {"kind": "bubble"}),
            Raises((ROWS,), UnsupportedError, "sort: got order=", {"order": ["a"]}),
        ],
    ),
    OpCase(gt.sort, (draw(3, 2, 2), 0), np.sort, label="axis", torch=torch_sort),
    OpCase(gt.sort, (ROWS, None), np.sort, label="flat"),
    OpCase(gt.sort, (draw(2, 0),), np.sort, label="empty"),
    OpCase(gt.sort, (np.array(1.5), None), np.sort, label="0-d"),
    OpCase(gt.sort, (WITH_NAN,), np.sort, {"stable": True}, label="nan", differences=False),
    OpCase(gt.sort, (LARGE,), np.sort, label="large", second_order=False, batched=False),
    OpCase(
        gt.sort,
        (ROWS,),
        sorted_down,
        {"descending": True},
        label="descending",
        dtypes=DTYPES,
        torch=torch_sort,
    ),
    untracked(gt.argsort, (ROWS,), stable, dtypes=DTYPES, torch="argsort"),
    untracked(gt.argsort, (ROWS, 0, "quicksort"), np.argsort, label="axis"),
    untracked(gt.argsort, (ROWS, None), np.argsort, label="flat"),
    untracked(
        gt.argsort,
        (TIES,),
        np.argsort,
        params={"stable": True},
        label="ties",
        torch="argsort",
    ),
    untracked(gt.argsort, (WITH_NAN,), stable, label="nan"),
    untracked(gt.argsort, (np.repeat(draw(600), 2),), stable, label="large", batched=False),
    untracked(
        gt.argsort,
        (np.stack([TIES, TIES[::-1]]), 1),
        argsorted_down,
        params={"descending": True},
        label="descending",
        dtypes=DTYPES,
        torch=lambda torch, x, axis, descending: torch.argsort(
            x, dim=axis, descending=descending, stable=True
        ),
        raises=[Raises((ROWS,), ArgumentError, "argsort: got kind=", {"kind": "bubble"})],
    ),
    OpCase(gt.sort_complex, (ROWS,), np.sort_complex, ops=("sort",), dtypes=DTYPES),
    untracked(
        gt.lexsort,
        ((TIES, np.array([1, 0, 0, 1])),),
        np.lexsort,
        raises=[
            Raises(((),), ShapeError, "lexsort: got no keys"),
            Raises(((TIES, ROWS),), ShapeError, r"lexsort: got \(4,\), \(2, 4\)"),
            Raises(((TIES,), 1), AxisError, "lexsort: got axis 1"),
        ],
    ),
    untracked(gt.lexsort, ((ROWS, ROWS[::-1].round()), 0), np.lexsort, label="axis"),
    untracked(gt.lexsort, (np.stack([TIES, TIES[::-1]]),), np.lexsort, label="array"),
]

# ---- searching ----------------------------------------------------------------------------------

GRID = np.array([-1.0, 0.0, 0.0, 1.0, 2.5])
SOUGHT = np.array([[0.0, 3.0, -2.0], [1.0, 0.5, 2.5]])


SEARCH = [
    untracked(
        gt.searchsorted,
        (GRID, SOUGHT),
        np.searchsorted,
        dtypes=REAL,
        torch="searchsorted",
        raises=[
            Raises((GRID, SOUGHT, "middle"), ArgumentError, "searchsorted: got side='middle'"),
            Raises((SOUGHT, SOUGHT), ShapeError, r"searchsorted: got a of shape \(2, 3\)"),
        ],
    ),
    untracked(
        gt.searchsorted,
        (GRID, SOUGHT),
        np.searchsorted,
        params={"side": "right"},
        label="right",
        dtypes=REAL,
        torch="searchsorted",
    ),
    untracked(
        gt.searchsorted,
        (np.array([-np.inf, 0.0, np.nan]), np.array([np.nan, np.inf, -np.inf, 0.0])),
        np.searchsorted,
        label="nan",
    ),
    untracked(
        gt.searchsorted,
        (np.array([-np.inf, 0.0, np.nan]), np.array([np.nan, np.inf, -np.inf, 0.0])),
        np.searchsorted,
        params={"side": "right"},
        label="nan-right",
    ),
    untracked(
        gt.searchsorted,
        (GRID[::-1].copy(), 0.5, "left", np.arange(4, -1, -1)),
        np.searchsorted,
        label="sorter",
        ops=("searchsorted", "gather"),
    ),
    untracked(gt.searchsorted, (GRID, np.array(0.5)), np.searchsorted, label="0-d"),
    untracked(gt.searchsorted, (draw(0), SOUGHT), np.searchsorted, label="empty"),
    untracked(gt.searchsorted, (np.arange(5), SOUGHT), np.searchsorted, label="mixed"),
    untracked(
        gt.digitize,
        (SOUGHT, GRID),
        np.digitize,
        ops=("searchsorted",),
        dtypes=REAL,
        raises=[
            Raises((SOUGHT, SOUGHT), ShapeError, "digitize: got bins of shape"),
        ],
    ),
    untracked(
        gt.digitize,
        (SOUGHT, GRID[::-1].copy()),
        np.digitize,
        params={"right": True},
        ops=("searchsorted",),
        label="descending",
    ),
    untracked(gt.digitize, (SOUGHT, GRID[:1]), np.digitize, ops=("searchsorted",), label="one"),
    untracked(
        gt.isin,
        (SOUGHT, GRID),
        np.isin,
        ops=("sort", "searchsorted", "equal"),
        dtypes=(*REAL, np.complex128),
        raises=[Raises((SOUGHT, GRID), ArgumentError, "isin: got kind='hash'", {"kind": "hash"})],
        torch="isin",
    ),
    untracked(
        gt.isin,
        (np.append(SOUGHT, np.nan), np.append(GRID, np.nan)),
        np.isin,
        params={"invert": True},
        ops=("sort", "searchsorted", "not_equal"),
        label="invert",
    ),
    untracked(gt.isin, (SOUGHT, draw(0)), np.isin, ops=("not_equal",), label="nothing"),
]

# ---- selecting ----------------------------------------------------------------------------------


def top(x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
    order = argsorted_down(x, axis) if largest else stable(x, axis)
    order = np.take(order, range(k), axis)
    return np.take_along_axis(x, order, axis), order


def kth(x: Any, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    order = np.take(np.argpartition(x, k - 1, axis), [k - 1], axis)
    both = np.take_along_axis(x, order, axis), order
    return both if keepdims else tuple(np.squeeze(part, axis) for part in both)


def torch_kth(torch: Any, x: Any, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    return tuple(torch.kthvalue(x, k, axis, keepdims))


SELECT = [
    OpCase(
        gt.partition,
        (draw(3, 4), 2),
        np.partition,
        ops=("argpartition", *READS),
        dtypes=(np.float64, np.int8, np.complex128),
        raises=[
            Raises((ROWS, 4), ArgumentError, "partition: got kth=4 for an axis of size 4"),
            Raises((ROWS, 1, 2), AxisError, "partition: got axis 2"),
            Raises((ROWS, 1), ArgumentError, "partition: got kind=", {"kind": "sort"}),
        ],
    ),
    OpCase(
        gt.partition,
        (draw(4, 2), [1, -1], 0),
        np.partition,
        ops=("argpartition",),
        dtypes=(np.float64,),
        label="axis",
    ),
    OpCase(
        gt.partition,
        (WITH_NAN, 1, None),
        np.partition,
        ops=("argpartition",),
        differences=False,
        dtypes=(np.float64,),
        label="flat",
    ),
    untracked(
        gt.argpartition,
        (draw(3, 4), (0, 3)),
        np.argpartition,
        raises=[
            Raises((ROWS, -5), ArgumentError, "argpartition: got kth=-5"),
            Raises((ROWS, 1), UnsupportedError, "got order=", {"order": "a"}),
        ],
    ),
    OpCase(
        gt.topk,
        (draw(2, 4), 2),
        top,
        ops=("topk", *READS),
        dtypes=REAL,
        torch=lambda torch, x, k: tuple(torch.topk(x, k)),
        at=[At((WITH_NAN, 2), ([1.0, 0, 0, 1.0, 0],))],
        raises=[
            Raises((ROWS, 5), ArgumentError, "topk: got k=5 for an axis of size 4"),
            Raises((ROWS, 1, 0), ArgumentError, "topk: got axis= and dim=", {"dim": 0}),
        ],
    ),
    OpCase(
        gt.topk,
        (draw(9, 2), 2),
        top,
        {"axis": 0, "largest": False},
        ops=("topk", *READS),
        dtypes=REAL,
        torch=lambda torch, x, k, axis, largest: tuple(torch.topk(x, k, axis, largest)),
        label="smallest",
    ),
    OpCase(
        gt.topk,
        (draw(9), 2),
        top,
        ops=("topk",),
        label="few",
        at=[At((TIES, 3), ([1.0, 1.0, 1.0, 0.0],))],
    ),
    OpCase(
        gt.topk,
        (np.repeat(TIES, 3), 2),
        top,
        ops=("topk",),
        label="few-ties",
        differences=False,
    ),
    OpCase(gt.topk, (draw(3), 0), top, ops=("topk",), label="none"),
    OpCase(
        gt.kthvalue,
        (draw(2, 4), 2),
        kth,
        ops=("argpartition", *READS),
        dtypes=REAL,
        torch=torch_kth,
        raises=[
            Raises((ROWS, 0), ArgumentError, "kthvalue: got k=0 for an axis of size 4"),
            Raises((draw(0), 1), ArgumentError, "kthvalue: got k=1 for an axis of size 0"),
            Raises((np.array(1.0), 1), AxisError, "kthvalue: got axis -1"),
        ],
    ),
    OpCase(
        gt.kthvalue,
        (draw(3, 2), 3, 0),
        kth,
        {"keepdims": True},
        ops=("argpartition",),
        torch=torch_kth,
        label="axis",
    ),
]

CASES = [*SORT, *SEARCH, *SELECT]

NOT_NATIVE = dict.fromkeys(
    ["argsort", "sort", "lexsort", "argpartition", "topk"],
    "what is compared with what depends on the values",
)
