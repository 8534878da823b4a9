"""Samples of losses with a margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
X, Y, Z = draw(3, 2), draw(3, 2, seed=1), draw(3, 2, seed=2)
SIGNS = np.array([1, -1, 1])
PAIR_SIGNS = np.array([[1, -1], [-1, 1], [1, 1]])
P = draw(2, 3, low=0.1, high=0.9)
CERTAIN = np.array([[1, 0, 1], [0, 0, 1]])


def case(function: Any, *args: Any, **kwargs: Any) -> OpCase:
    return OpCase(function, *args, torch=f"nn.functional.{function.__name__}", **kwargs)


def bad(function: Any, *args: Any) -> Raises:
    return Raises(
        args, ArgumentError, f"{function.__name__}: got reduction='max'", {"reduction": "max"}
    )


def reduced(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / losses.size


# ---- pairs --------------------------------------------------------------------------------------


def soft_margin_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    return reduced(np.logaddexp(0, -y.astype(x.dtype) * x), reduction)


def hinge(x: Any, y: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    losses = np.where(y == 1, x, np.maximum(0, margin - x))
    return reduced(losses, reduction)


def margin_ranking(x: Any, y: Any, t: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    return reduced(np.maximum(0, margin - t * (x - y)), reduction)


def cosines(x: Any, y: Any) -> Any:
    return (x * y).sum(-1) / np.sqrt(((x * x).sum(-1) + 1e-12) * ((y * y).sum(-1) + 1e-12))


def cosine_embedding(x: Any, y: Any, t: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    c = cosines(x, y)
    return reduced(np.where(t == 1, 1 - c, np.maximum(0, c - margin)), reduction)


def contrastive(x: Any, y: Any, t: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    d = np.linalg.norm(x - y, axis=-1)
    return reduced(t * d**2 + (1 - t) * np.maximum(0, margin - d) ** 2, reduction)


def distance(x: Any, y: Any, p: float) -> Any:
    return np.linalg.norm(x - y + 1e-6, p, -1)


def triplet(
    a: Any,
    b: Any,
    c: Any,
    margin: float = 1.0,
    p: float = 2.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    far = distance(a, c, p)
    far = np.minimum(far, distance(b, c, p)) if swap else far
    return reduced(np.maximum(0, margin + distance(a, b, p) - far), reduction)


PAIRS = [
    OpCase(
        nn.soft_margin_loss,
        (X, Y),
        soft_margin_loss,
        ops=("softplus",),
        raises=[bad(nn.soft_margin_loss, X, Y)],
        at=[At((np.array([1e3, -1e3]), np.array([-1, -1])), ([0.5, 0.0],))],
    ),
    OpCase(
        nn.soft_margin_loss,
        (X, PAIR_SIGNS),
        soft_margin_loss,
        {"reduction": "none"},
        ops=("softplus",),
        label="signs",
        torch=lambda torch, x, y, **params: torch.nn.functional.soft_margin_loss(
            x, y.double(), **params
        ),
    ),
    OpCase(
        nn.hinge_loss,
        (X, PAIR_SIGNS),
        lambda x, y, margin: np.maximum(0, margin - y.astype(x.dtype) * x).mean(),
        {"margin": 0.75},
        ops=("relu",),
        at=[At((np.array([1.0, 2.0, 0.5]), np.array([1, -1, 1])), ([0.0, 1 / 3, -1 / 3],))],
        raises=[bad(nn.hinge_loss, X, Y)],
    ),
    case(
        nn.hinge_embedding_loss,
        (X, PAIR_SIGNS),
        hinge,
        {"margin": 0.75, "reduction": "none"},
        ops=("clip",),
        at=[At((np.array([1.0, 2.0, 0.5]), np.array([-1, -1, 1])), ([-1 / 3, 0, 1 / 3],))],
        raises=[bad(nn.hinge_embedding_loss, X, X)],
    ),
    case(
        nn.margin_ranking_loss,
        (X, Y, Z),
        margin_ranking,
        {"margin": 0.5},
        ops=("clip",),
        at=[At(([1.0], [1.0], [1.0]), ([-1.0], [1.0], [0.0]))],
        raises=[bad(nn.margin_ranking_loss, X, Y, Z)],
    ),
    case(
        nn.cosine_embedding_loss,
        (X, Y, SIGNS),
        cosine_embedding,
        {"margin": -0.9},
        ops=("sqrt",),
        rtol=64,
        at=[
            At(
                (np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([1])),
                ([[-6e5, -8e5]], [[0.0, 0.0]]),
                unlike_torch="PyTorch has its 1e-12 in single precision",
            )
        ],
        raises=[
            bad(nn.cosine_embedding_loss, X, Y, SIGNS),
            Raises((X, draw(3), SIGNS), ShapeError, "cosine_embedding_loss: got shapes"),
        ],
    ),
    OpCase(
        nn.contrastive_loss,
        (X, Y, np.array([1, 0, 0], np.float16)),
        contrastive,
        {"margin": 3.0},
        ops=("vector_norm",),
        at=[
            At(
                (np.zeros((1, 2)), np.zeros((1, 2)), np.array([1])),
                (np.zeros((1, 2)), np.zeros((1, 2))),
            )
        ],
        raises=[bad(nn.contrastive_loss, X, Y, SIGNS)],
    ),
    case(
        nn.triplet_margin_loss,
        (X, Y, Z),
        triplet,
        {"margin": 2.0},
        ops=("vector_norm",),
        raises=[bad(nn.triplet_margin_loss, X, Y, Z)],
    ),
    case(
        nn.triplet_margin_loss,
        (X, Y, Z),
        triplet,
        {"p": 3.0, "swap": True, "reduction": "none", "margin": 2.0},
        ops=("vector_norm",),
        rtol=64,
        label="swap",
    ),
]

# ---- classes ------------------------------------------------------------------------------------

SCORES, LABELS = draw(3, 4), np.array([2, 0, 3])
SEVERAL = np.array([[3, 0, -1, 1], [1, -1, 0, 0], [-1, 2, 1, 0]])


def multi_margin(
    x: Any, y: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    rows, labels = np.atleast_2d(x), np.atleast_1d(y)
    own = np.take_along_axis(rows, labels[:, None], 1)
    lacking = np.maximum(0, margin - own + rows) ** p
    np.put_along_axis(lacking, labels[:, None], 0, 1)
    losses = lacking.sum(1) / rows.shape[1]
    losses = losses if weight is None else losses * weight.astype(x.dtype)[labels]
    return reduced(losses.reshape(y.shape), reduction)


def multilabel_margin(x: Any, y: Any, reduction: str = "mean") -> Any:
    losses = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(y), strict=True):
        stop = list(labels).index(-1)
        others = [i for i in range(len(row)) if i not in labels[:stop]]
        lacking = [max(0, 1 - (row[j] - row[i])) for j in labels[:stop] for i in others]
        losses.append(sum(lacking, row.dtype.type(0)) / len(row))
    return reduced(np.array(losses, x.dtype).reshape(y.shape[:-1]), reduction)


def multilabel_soft(x: Any, y: Any, weight: Any = 1, reduction: str = "mean") -> Any:
    log = scipy.special.log_expit
    losses = -(y * log(x) + (1 - y) * log(-x)) * weight
    return reduced(losses.mean(-1).astype(x.dtype), reduction)


def torch_multi_margin(torch: Any, x: Any, y: Any, weight: Any, **params: Any) -> Any:
    weight = torch.tensor(weight, dtype=torch.float64)
    return torch.nn.functional.multi_margin_loss(x, y, weight=weight, **params)


CLASSES = [
    case(
        nn.multi_margin_loss,
        (SCORES, LABELS),
        multi_margin,
        ops=("class_hits", "relu"),
        at=[At((np.array([[1.0, 1.0]]), np.array([0])), ([[0.0, 0.0]],), {"margin": 0.0})],
        raises=[
            bad(nn.multi_margin_loss, SCORES, LABELS),
            Raises((SCORES, LABELS, 3), ArgumentError, "multi_margin_loss: got p=3"),
            Raises((SCORES, LABELS[:2]), ShapeError, "multi_margin_loss: got target of shape"),
            Raises((SCORES, LABELS + 1), IndexingError, "got class 4"),
        ],
    ),
    OpCase(
        nn.multi_margin_loss,
        (SCORES, LABELS),
        multi_margin,
        {"p": 2, "margin": 0.5, "weight": np.array([1, 2, 3, 4], np.float16), "reduction": "sum"},
        ops=("class_hits",),
        label="weight",
        torch=torch_multi_margin,
    ),
    case(
        nn.multi_margin_loss,
        (SCORES[0], np.array(1)),
        multi_margin,
        ops=("class_hits",),
        label="one",
    ),
    case(
        nn.multilabel_margin_loss,
        (SCORES, SEVERAL),
        multilabel_margin,
        {"reduction": "none"},
        ops=("class_hits", "relu"),
        fixed=(1,),
        raises=[
            bad(nn.multilabel_margin_loss, SCORES, SEVERAL),
            Raises((SCORES, SEVERAL + 1), IndexingError, "got class 4"),
            Raises((SCORES, LABELS), ShapeError, "multilabel_margin_loss: got target of shape"),
        ],
    ),
    case(
        nn.multilabel_margin_loss,
        (SCORES[0], SEVERAL[0]),
        multilabel_margin,
        ops=("class_hits",),
        fixed=(1,),
        label="one",
    ),
    OpCase(
        nn.multilabel_soft_margin_loss,
        (P, CERTAIN),
        multilabel_soft,
        {"weight": np.array([1, 2, 3], np.float16)},
        ops=("log_sigmoid",),
        rtol=64,
        raises=[bad(nn.multilabel_soft_margin_loss, P, P)],
        torch=lambda torch, x, y, weight: torch.nn.functional.multilabel_soft_margin_loss(
            x, y.double(), torch.tensor(weight, dtype=torch.float64)
        ),
    ),
]

CASES = [*PAIRS, *CLASSES]
