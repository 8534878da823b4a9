"""Cases of writing at places, under the names of PyTorch and TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

ALONG = np.array([[1, 0, -2], [0, 0, 1]])
ROWS = np.array([2, 0, -1, 2])
MASK = np.array([[True, False, True], [False, False, True]])


def written(how: Any) -> Any:
    """The reference of a function that writes along an axis, by what it does to an element."""

    def reference(x: Any, index: Any, src: Any, axis: int) -> Any:
        out = x.copy()
        for place, target in np.ndenumerate(index):
            where = list(place)
            where[axis] = target
            out[tuple(where)] = how(out[tuple(where)], src[place] if np.ndim(src) else src)
        return out

    return reference


def put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = x.copy()
    if accumulate:
        np.add.at(out, indices, values)
    else:
        out[indices] = values
    return out


SAMPLES = [
    OpCase(
        gt.scatter,
        (draw(2, 3), ALONG, draw(2, 3, seed=1)),
        written(lambda old, new: new),
        {"axis": 0},
        ("setitem_at",),
        raises=[
            Raises(
                (np.ones((2, 3)), ALONG, np.ones((1, 3))), ShapeError, "scatter: got", {"axis": 0}
            ),
            Raises((np.ones(2), ROWS, 1.0), IndexingError, "got index 2", {"axis": 0}),
            Raises((np.ones(3), ROWS, 1.0), AxisError, "scatter: got axis 1", {"axis": 1}),
        ],
    ),
    OpCase(
        gt.scatter,
        (draw(3), ROWS[:2], 2.0),
        written(lambda old, new: new),
        {"axis": 0},
        ("setitem_at",),
        label="number",
    ),
    *(
        OpCase(
            function,
            (draw(2, 3), ALONG, draw(2, 3, seed=1)),
            written(how),
            {"axis": 0},
            ("scatter_extreme",),
            at=[
                # A place that three elements share, and one that none is written to.
                At(
                    (np.array([1.0, 5.0]), np.array([0, 0]), np.array([1.0, 1.0])),
                    (np.array([1 / 3, 1.0]), np.array([1 / 3, 1 / 3])),
                    {"axis": 0},
                )
            ],
            raises=[
                Raises(
                    (np.ones(2), ROWS, np.ones(4)), IndexingError, "index 2 for an", {"axis": 0}
                ),
                Raises(
                    (np.ones((2, 3)), ALONG, np.ones((1, 3))), ShapeError, "src of", {"axis": 0}
                ),
            ],
        )
        for function, how in ((gt.scatter_max, np.maximum), (gt.scatter_min, np.minimum))
    ),
    OpCase(
        gt.index_put,
        (draw(3, 2), (ROWS,), draw(4, 2, seed=1)),
        put,
        {"accumulate": True},
        ("scatter",),
        raises=[
            Raises(
                (np.ones((3, 2)), (ROWS,), np.ones(3)),
                ShapeError,
                "index_put: got values of shape",
                {"accumulate": True},
            ),
            Raises((np.ones(3), (np.array([3]),), 1.0), IndexingError, "got index 3"),
        ],
    ),
    OpCase(
        gt.index_put, (draw(3, 2), (ROWS,), draw(2, seed=1)), put, ops=("setitem_at",), label="last"
    ),
    OpCase(
        gt.index_select,
        (draw(2, 3), np.array([2, 2, 0])),
        lambda x, index, axis: np.take(x, index, axis),
        {"axis": 1},
        ("gather",),
        raises=[Raises((np.ones((2, 3)), ALONG), ShapeError, "use gt.take", {"axis": 0})],
    ),
    OpCase(
        gt.masked_fill,
        (draw(2, 3), MASK, 2.0),
        lambda x, mask, value: np.where(mask, value, x),
        ops=("where",),
        fixed=(1,),
        raises=[
            Raises((np.ones(3), MASK, 1.0), ShapeError, "a mask that broadcasts"),
            Raises((np.ones(3), np.ones(3), 1.0), IndexingError, "got a mask of dtype"),
            Raises((np.ones((2, 3)), MASK, np.ones(3)), ShapeError, "one number"),
        ],
    ),
    OpCase(
        gt.boolean_mask,
        (draw(4, 2, 3),),
        lambda x, mask, axis: x[:, mask],
        {"mask": MASK, "axis": 1},
        ("gather",),
        raises=[
            Raises((np.ones((2, 3)),), IndexingError, "dtype float64", {"mask": np.ones(2)}),
            Raises((np.ones((2, 3)),), IndexingError, "got a mask of shape", {"mask": MASK.T}),
        ],
    ),
    OpCase(
        gt.add_n,
        ([draw(2, 3), draw(3, seed=1), 2.0],),
        lambda arrays: sum(arrays[1:], arrays[0]),
        ops=("add",),
        raises=[Raises(([],), ArgumentError, "got no arrays")],
    ),
]


def along(name: str, *reduce: str) -> Any:
    def function(torch: Any, x: Any, index: Any, src: Any, axis: int) -> Any:
        return getattr(torch, name)(x, axis, index % x.shape[axis], src, *reduce)

    return function


TORCH = {
    # PyTorch leaves open which value remains where an index repeats.
    "scatter": None,
    "scatter-number": lambda torch, x, index, src, axis: torch.scatter(
        x, axis, index % x.shape[axis], src
    ),
    "scatter_max": along("scatter_reduce", "amax"),
    "scatter_min": along("scatter_reduce", "amin"),
    "index_put": None,
    "index_select": lambda torch, x, index, axis: torch.index_select(x, axis, index.long()),
    "masked_fill": "masked_fill",
    "boolean_mask": lambda torch, x, mask, axis: x[:, torch.tensor(mask)],
    "add_n": lambda torch, arrays: sum(arrays),
}

CASES = with_torch(TORCH, SAMPLES)
NOT_NATIVE = {"scatter_extreme": "an element may be written to several times"}
