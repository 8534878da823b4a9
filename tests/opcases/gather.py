"""Cases of reading and adding at places given by integer arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

PAIR = ("gather", "scatter")
REPEATED = np.array([2, 0, -1, 2])
ROWS, COLUMNS = np.array([[0], [-1]]), np.array([0, 2, 2])
MASK = np.array([[True, False, True], [False, False, True]])
ALONG = np.array([[1, 0, -2], [0, 0, 1]])


def read(x: Any, index: Any) -> Any:
    return x[index]


def reading(label: str, x: Any, index: Any, **extra: Any) -> OpCase:
    ops = extra.pop("ops", PAIR)
    return OpCase(gt.getitem, (x, index), read, ops=ops, label=label, **extra)


def gather(x: Any, index: Any, axis: int) -> Any:
    crop = [slice(None) if d == axis % x.ndim else slice(n) for d, n in enumerate(index.shape)]
    return np.take_along_axis(x[tuple(crop)], index, axis)


def scatter_add(x: Any, index: Any, src: Any, axis: int) -> Any:
    out = x.copy()
    for place, target in np.ndenumerate(index):
        where = list(place)
        where[axis] = target
        out[tuple(where)] += src[place]
    return out


def index_add(x: Any, index: Any, src: Any, axis: int) -> Any:
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(src, axis, 0))
    return out


SMALL = [  # integers that cannot hold the size of the axis
    *(
        reading(f"{kind}", draw(3, 300), (np.array([1, 0]), np.array([5, top], kind)))
        for kind, top in (("int8", -2), ("uint8", 255))
    ),
    reading("rows-int8", draw(300, 33), np.array([3, -1], np.int8), second_order=False),
    *(
        OpCase(
            gt.take,
            (draw(300, 1), np.array([5, 127, -128], np.int8), 0),
            np.take,
            params={"mode": mode},
            ops=PAIR,
            label=f"int8-{mode}",
        )
        for mode in ("wrap", "clip", "raise")
    ),
]

SAMPLES: list[OpCase] = [
    *SMALL,
    reading(
        "repeated",
        draw(3),
        REPEATED,
        at=[At((np.arange(3.0), np.array([1, 1, -1])), (np.array([0.0, 2.0, 1.0]),))],
        raises=[
            Raises((np.ones(3), np.array([1, 3])), IndexingError, "index 3 for an axis of size 3"),
            Raises((np.ones(3), np.array([1, -4])), IndexingError, "expected one from -3 to 2"),
            Raises(
                (np.ones(3), np.array([1.0])), IndexingError, "dtype float64, expected integers"
            ),
        ],
    ),
    reading("rows", draw(3, 2), REPEATED),
    reading("outer", draw(2, 3, 2), (ROWS, COLUMNS)),
    reading("0-d array", draw(3, 2), np.array(1), ops=("getitem",)),
    reading("columns", draw(2, 3), (slice(None), REPEATED)),
    reading("apart", draw(3, 2, 3), (REPEATED, slice(None, None, -1), REPEATED)),
    reading("beside a number", draw(2, 3, 2), (0, slice(None), np.array([1, 1, 0]))),
    OpCase(
        gt.getitem,
        (draw(4, 2, 3, 2),),
        read,
        {"index": (slice(1, 3), MASK, None, 1)},
        PAIR,
        label="mask",
    ),
    OpCase(gt.getitem, (draw(2, 3),), read, {"index": []}, PAIR, label="empty list"),
    OpCase(
        gt.take,
        (draw(3, 2), REPEATED),
        np.take,
        ops=PAIR,
        label="flat",
        raises=[
            Raises((np.ones(3), np.array([3])), IndexingError, "got index 3"),
            Raises((np.ones(3), np.array([True])), IndexingError, "take: got an index of dtype"),
            Raises((np.ones(3), REPEATED), ArgumentError, "mode='last'", {"mode": "last"}),
            Raises((np.ones(3), REPEATED), AxisError, "take: got axis 1", {"axis": 1}),
        ],
    ),
    OpCase(gt.take, (draw(2, 3, 2), ROWS), np.take, {"axis": 1}, PAIR, label="axis"),
    OpCase(gt.take, (draw(2, 3), np.array(1)), np.take, {"axis": -1}, PAIR, label="number"),
    OpCase(gt.take, (draw(3), np.array([-4, 4])), np.take, {"mode": "wrap"}, PAIR, label="wrap"),
    OpCase(gt.take, (draw(3), np.array([-4, 4])), np.take, {"mode": "clip"}, PAIR, label="clip"),
    OpCase(
        gt.take_along_axis,
        (draw(2, 3), ALONG),
        np.take_along_axis,
        {"axis": 0},
        PAIR,
        raises=[
            Raises((np.ones(3), ALONG), ShapeError, "take_along_axis: got indices of shape"),
            Raises((np.ones((2, 3)), ALONG + 2), IndexingError, "got index 3", {"axis": -1}),
        ],
    ),
    OpCase(
        gt.take_along_axis,
        (draw(2, 3), np.array([[-1], [0]])),
        np.take_along_axis,
        {"axis": 1},
        PAIR,
        label="broadcast",
    ),
    OpCase(
        gt.take_along_axis,
        (draw(2, 3), REPEATED),
        np.take_along_axis,
        {"axis": None},
        PAIR,
        label="flat",
    ),
    OpCase(
        gt.gather,
        (draw(2, 4), ALONG),
        gather,
        {"axis": 0},
        PAIR,
        at=[
            At(
                (np.ones((2, 2)), np.array([[1, 0]])),
                (np.array([[0.0, 1.0], [1.0, 0.0]]),),
                {"axis": 0},
            )
        ],
        raises=[
            Raises((np.ones((2, 2)), ALONG), ShapeError, "at most 2 along axis 1", {"axis": 0}),
            Raises((np.ones(2), ALONG), ShapeError, "expected as many axes", {"axis": 0}),
        ],
    ),
    OpCase(gt.gather, (draw(3, 2), ALONG.T), gather, {"axis": -1}, PAIR, label="last"),
    OpCase(
        gt.scatter_add,
        (draw(2, 3), ALONG, draw(2, 3, seed=1)),
        scatter_add,
        {"axis": 0},
        ("scatter", "gather", "add"),
        raises=[
            Raises(
                (np.ones((2, 3)), ALONG, np.ones((1, 3))),
                ShapeError,
                "src of shape .*expected at most 1 along axis 0",
                {"axis": 0},
            ),
            Raises(
                (np.ones((2, 3)), ALONG + 1, np.ones((2, 3))),
                IndexingError,
                "got index 2 for an axis of size 2",
                {"axis": 0},
            ),
        ],
    ),
    OpCase(
        gt.scatter_add,
        (draw(2, 5), ALONG[:, :2], draw(3, 3, seed=1)),
        scatter_add,
        {"axis": 1},
        PAIR,
        label="cropped",
    ),
    OpCase(
        gt.index_add,
        (draw(3, 2), REPEATED, draw(4, 2, seed=1)),
        index_add,
        {"axis": 0},
        PAIR,
        raises=[
            Raises(
                (np.ones((3, 2)), REPEATED, np.ones((3, 2))),
                ShapeError,
                "index_add: got x",
                {"axis": 0},
            ),
        ],
    ),
    OpCase(
        gt.index_add,
        (draw(2, 3), REPEATED, draw(2, 4, seed=1)),
        index_add,
        {"axis": -1},
        PAIR,
        label="last",
    ),
]


def whole(torch: Any, index: Any) -> Any:
    """An index as PyTorch takes it: integers of 64 bits, or a mask."""
    if isinstance(index, tuple):
        return tuple(whole(torch, part) for part in index)
    if isinstance(index, np.ndarray):
        index = torch.tensor(index)
    return index.long() if torch.is_tensor(index) and index.dtype != torch.bool else index


def taken(torch: Any, x: Any, index: Any, axis: int | None = None, mode: str = "raise") -> Any:
    if axis is None:
        return torch.take(x, index.long())
    return x[(slice(None),) * (axis % x.ndim) + (index.long(),)]


def along(name: str) -> Any:
    """PyTorch's function of places along an axis, which takes no negative ones."""

    def function(torch: Any, x: Any, index: Any, *src: Any, axis: int | None) -> Any:
        x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
        return getattr(torch, name)(x, axis, index % x.shape[axis], *src)

    return function


TORCH = {
    "getitem": lambda torch, x, index: x[whole(torch, index)],
    "getitem-apart": None,  # a negative step
    # A number between arrays is one of them to NumPy, and taken first by PyTorch.
    **dict.fromkeys(("getitem-beside a number", "getitem-mask")),
    "take": taken,
    **dict.fromkeys(("take-wrap", "take-clip", "take-int8-wrap", "take-int8-clip")),
    "take_along_axis": lambda torch, x, index, axis: torch.take_along_dim(
        x, index % (x.numel() if axis is None else x.shape[axis]), axis
    ),
    "gather": along("gather"),
    "scatter_add": along("scatter_add"),
    "scatter_add-cropped": None,  # PyTorch has no gradient of a source larger than its places
    "index_add": along("index_add"),
}

CASES = with_torch(TORCH, SAMPLES)
