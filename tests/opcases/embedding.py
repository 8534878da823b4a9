"""Samples of embeddings, of bags of them, and of linear layers."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, IndexingError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
TABLE = draw(4, 2)
ROWS = np.array([[1, 3, 1], [0, 2, 3]])
FLAT, STARTS = np.array([1, 3, 1, 0, 2]), np.array([0, 2, 2, 3])


EMBEDDING = [
    OpCase(
        nn.embedding,
        (ROWS, TABLE),
        lambda x, table: table[x],
        ops=("read_rows", "add_rows"),
        dtypes=(np.float64, np.float32, np.float16),
        raises=[
            Raises((np.array([4]), TABLE), IndexingError, "embedding: got index 4, expected"),
            Raises((np.array([-1]), TABLE), IndexingError, "embedding: got index -1, expected"),
            Raises((np.array([0.5]), TABLE), IndexingError, "embedding: got an index of dtype"),
            Raises((ROWS, TABLE[0]), ShapeError, "embedding: got a table of shape .2,."),
            Raises((ROWS, TABLE), UnsupportedError, "embedding: got max_norm=", {"max_norm": 1.0}),
            Raises((ROWS, TABLE), UnsupportedError, "embedding: got sparse", {"sparse": True}),
            Raises((ROWS, TABLE), IndexingError, "got padding_idx=4", {"padding_idx": 4}),
        ],
        torch="nn.functional.embedding",
    ),
    OpCase(
        nn.embedding,
        (ROWS, TABLE),
        lambda x, table, padding_idx: table[x],
        {"padding_idx": -1},
        ops=("read_rows", "add_rows"),
        differences=False,
        label="padding",
        at=[
            At(
                (np.array([0, 1, 1]), np.ones((3, 1))),
                ([[1.0], [0.0], [0.0]],),
                {"padding_idx": 1},
            )
        ],
        torch="nn.functional.embedding",
    ),
    OpCase(
        nn.embedding,
        (np.zeros((0, 2), int), TABLE),
        lambda x, table: table[x],
        ops=("read_rows",),
        label="empty",
        torch="nn.functional.embedding",
    ),
]

# ---- bags ---------------------------------------------------------------------------------------


def bags_of(x: Any, offsets: Any) -> Any:
    return list(x) if offsets is None else np.split(x, offsets[1:])


def embedding_bag(
    x: Any,
    table: Any,
    offsets: Any = None,
    mode: str = "mean",
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    offsets = offsets[:-1] if include_last_offset else offsets
    out = []
    factors = np.ones(x.shape) if per_sample_weights is None else per_sample_weights
    for bag, weights in zip(bags_of(x, offsets), bags_of(factors, offsets), strict=True):
        keep = np.ones(len(bag), bool) if padding_idx is None else bag != padding_idx
        rows = table[bag[keep]] * weights[keep][:, None].astype(table.dtype)
        if not len(rows):
            out.append(np.zeros(table.shape[1], table.dtype))
        else:
            out.append({"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, 0))
    return np.array(out, table.dtype)


def weighted_bag(x: Any, table: Any, weights: Any) -> Any:
    return nn.embedding_bag(x, table, mode="sum", per_sample_weights=weights)


def bag(*args: Any, **kwargs: Any) -> OpCase:
    return OpCase(
        nn.embedding_bag, *args, embedding_bag, torch="nn.functional.embedding_bag", **kwargs
    )


BAGS = [
    bag(
        (ROWS, TABLE),
        ops=("read_rows", "add_rows"),
        raises=[
            Raises((ROWS, TABLE, STARTS), ArgumentError, "embedding_bag: got offsets with"),
            Raises((FLAT, TABLE), ShapeError, "embedding_bag: got numbers of shape .5,."),
            Raises((ROWS, TABLE), ArgumentError, "got mode='min'", {"mode": "min"}),
            Raises(
                (ROWS, TABLE),
                ArgumentError,
                "embedding_bag: got weights of shape",
                {"per_sample_weights": np.ones((2, 3))},
            ),
            Raises((ROWS + 2, TABLE), IndexingError, "got index 5"),
        ],
    ),
    bag(
        (FLAT, TABLE, STARTS),
        params={"mode": "sum", "padding_idx": 3},
        ops=("read_rows", "add_rows"),
        fixed=(0, 2),
        label="sum",
    ),
    bag(
        (FLAT, TABLE, np.append(STARTS, 5)),
        params={"padding_idx": 1, "include_last_offset": True},
        ops=("read_rows", "add_rows"),
        fixed=(0, 2),
        label="mean",
    ),
    bag(
        (FLAT, TABLE, STARTS),
        params={"mode": "max"},
        ops=("bag_winners",),
        fixed=(2,),
        label="max",
    ),
    bag(
        (ROWS, TABLE),
        params={"mode": "max", "padding_idx": 3},
        ops=("bag_winners",),
        label="max-padding",
    ),
    OpCase(
        weighted_bag,
        (ROWS, TABLE, draw(2, 3)),
        lambda x, table, weights: embedding_bag(x, table, None, "sum", weights),
        ops=("add_rows",),
        torch=lambda torch, x, table, weights: torch.nn.functional.embedding_bag(
            x, table, mode="sum", per_sample_weights=weights
        ),
    ),
]

# ---- linear layers ------------------------------------------------------------------------------


def linear(x: Any, weight: Any, bias: Any = 0) -> Any:
    return x @ weight.T + bias


def bilinear(x: Any, y: Any, weight: Any, bias: Any = 0) -> Any:
    return np.einsum("...i,kij,...j->...k", x, weight, y) + bias


LINEAR = [
    OpCase(
        nn.linear,
        (draw(3, 4), draw(2, 4), draw(2)),
        linear,
        dtypes=(np.float64, np.float32, np.complex128),
        raises=[
            Raises((draw(3), draw(2, 4)), ShapeError, "linear: got shapes .3,. and .2, 4."),
            Raises((draw(4), draw(2, 4), draw(4)), ShapeError, "linear: got bias of shape"),
        ],
        torch="nn.functional.linear",
    ),
    OpCase(
        nn.linear,
        (draw(2, 2, 3), draw(2, 3), draw(2)),
        linear,
        label="stack",
        torch="nn.functional.linear",
    ),
    OpCase(
        nn.linear, (draw(3), draw(2, 3), draw(2)), linear, label="one", torch="nn.functional.linear"
    ),
    OpCase(
        nn.linear,
        (draw(0, 3), draw(2, 3), draw(2)),
        linear,
        label="empty",
        torch="nn.functional.linear",
    ),
    OpCase(
        nn.linear,
        (draw(2, 3), draw(2, 3)),
        linear,
        ops=("matmul",),
        label="no-bias",
        torch="nn.functional.linear",
    ),
    OpCase(
        nn.linear,
        (draw(2, 3), draw(3), draw()),
        linear,
        ops=("matmul",),
        label="single",
        torch=lambda torch, x, weight, bias: torch.nn.functional.linear(x, weight) + bias,
    ),
    OpCase(
        nn.bilinear,
        (draw(2, 3), draw(2, 2), draw(2, 3, 2), draw(2)),
        bilinear,
        ops=("einsum",),
        rtol=64,
        raises=[
            Raises((draw(2, 3), draw(2, 2), draw(2, 2, 3)), ShapeError, "bilinear: got shapes"),
            Raises((draw(2, 3), draw(2, 2), draw(2, 3, 2), draw(3)), ShapeError, "got bias of"),
        ],
        torch="nn.functional.bilinear",
    ),
    OpCase(
        nn.bilinear,
        (draw(3), draw(2), draw(2, 3, 2)),
        bilinear,
        ops=("einsum",),
        rtol=64,
        label="one",
        torch="nn.functional.bilinear",
    ),
]

CASES = [*EMBEDDING, *BAGS, *LINEAR]

NOT_NATIVE = {"bag_winners": "the bags begin where values say"}
