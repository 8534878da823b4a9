"""Samples of distances and angles of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
X, Y = draw(3, 2), draw(3, 2, seed=1)


def cosine_similarity(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    x, y = np.broadcast_arrays(x, y)
    lengths = (np.maximum(np.linalg.norm(z, axis=dim), x.dtype.type(eps)) for z in (x, y))
    return (x * y).sum(dim) / next(lengths) / next(lengths)


def pairwise_distance(
    x: Any, y: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    return np.linalg.norm(x - y + eps, p, -1, keepdims=keepdim)


def cdist(x: Any, y: Any, p: float = 2.0) -> Any:
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def ref_cdist(x: Any, y: Any) -> Any:
    return scipy.spatial.distance.cdist(x, y).astype(x.dtype)


ANGLES = [
    OpCase(
        nn.cosine_similarity,
        (X, Y),
        cosine_similarity,
        at=[
            At(([[0.0, 0.0]], [[3.0, 4.0]]), ([[6e7, 8e7]], [[0.0, 0.0]])),
            At(([[3e-9, 4e-9]], [[1.0, 0.0]]), ([[82e6, -24e6]], [[0.0, 0.4]])),
        ],
        raises=[
            Raises((X, draw(3)), ShapeError, "cosine_similarity: got shapes .3, 2., .3,."),
            Raises((draw(3), draw(3)), AxisError, "cosine_similarity: got axis 1"),
        ],
        torch="nn.functional.cosine_similarity",
    ),
    OpCase(
        nn.cosine_similarity,
        (draw(2, 3, 2), draw(2, 1, 2)),
        cosine_similarity,
        {"dim": 0},
        label="broadcast",
        torch="nn.functional.cosine_similarity",
    ),
]

DISTANCES = [
    OpCase(
        nn.pairwise_distance,
        (X, Y),
        pairwise_distance,
        ops=("vector_norm",),
        raises=[Raises((X, draw(3)), ShapeError, "pairwise_distance: got shapes .3, 2., .3,.")],
        at=[At(([[1.0, 1.0]], [[1.0, 1.0]]), ([[0.5**0.5] * 2], [[-(0.5**0.5)] * 2]))],
        torch="nn.functional.pairwise_distance",
    ),
    OpCase(
        nn.pairwise_distance,
        (X, Y),
        pairwise_distance,
        {"p": 3.0, "keepdim": True},
        ops=("vector_norm",),
        label="p",
        rtol=64,
        torch="nn.functional.pairwise_distance",
    ),
    OpCase(
        nn.cdist,
        (X, draw(2, 2, seed=2)),
        ref_cdist,
        at=[At((np.ones((2, 2)), np.ones((1, 2))), (np.zeros((2, 2)), np.zeros((1, 2))))],
        raises=[
            Raises((X, draw(2, 3)), ShapeError, "cdist: got shapes .3, 2. and .2, 3."),
            Raises((draw(2, 3, 2), draw(3, 3, 2)), ShapeError, "cdist: .*leading axes that broad"),
            Raises((X, Y, -1.0), ArgumentError, "cdist: got p=-1"),
        ],
        torch="cdist",
    ),
    OpCase(nn.cdist, (draw(2, 1, 3, 2), draw(2, 2, 2)), cdist, label="stack", torch="cdist"),
    OpCase(nn.cdist, (draw(0, 2), draw(2, 2)), cdist, label="empty", torch="cdist"),
    OpCase(nn.cdist, (X, Y), cdist, {"p": 1.0}, ops=("abs",), label="one", torch="cdist"),
    OpCase(nn.cdist, (X, Y), cdist, {"p": np.inf}, ops=("abs",), label="inf", torch="cdist"),
    OpCase(
        nn.cdist,
        (X, Y),
        cdist,
        {"p": 3.5},
        ops=("vector_norm",),
        rtol=64,
        label="p",
        at=[At((np.ones((2, 2)), np.ones((1, 2))), (np.zeros((2, 2)), np.zeros((1, 2))))],
        torch="cdist",
    ),
]

CASES = [*ANGLES, *DISTANCES]
