"""Samples of the losses of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw

nn = gt.nn
X = draw(3, 4)
LABELS = np.array([2, 0, 3])
SOME = np.array([2, -100, 3])
WEIGHT = np.array([0.5, 1.0, 1.5, 2.0], np.float16)  # not differentiated by PyTorch
SHARES = scipy.special.softmax(draw(3, 4, seed=1), 1)


def with_weight(torch: Any, params: dict[str, Any]) -> dict[str, Any]:
    if params.get("weight") is None:
        return params
    return params | {"weight": torch.tensor(params["weight"], dtype=torch.float64)}


def torch_cross_entropy(torch: Any, x: Any, target: Any, **params: Any) -> Any:
    return torch.nn.functional.cross_entropy(x, target, **with_weight(torch, params))


def torch_nll_loss(torch: Any, x: Any, target: Any, **params: Any) -> Any:
    return torch.nn.functional.nll_loss(x, target, **with_weight(torch, params))


def rows(x: Any) -> Any:
    """With the classes last, and all samples along one axis."""
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]) if x.ndim > 1 else x[None]


def averaged(losses: Any, counts: Any, shape: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses.reshape(shape)
    total = losses.sum()
    return total if reduction == "sum" else total / counts.sum().astype(losses.dtype)


def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    logits = rows(x)
    classes = logits.shape[1]
    weights = np.ones(classes, x.dtype) if weight is None else weight.astype(x.dtype)
    if target.shape == x.shape:
        shares, counts = rows(target), np.ones(len(logits))
        valid, shape = counts > 0, np.moveaxis(x, 1, -1).shape[:-1]
    else:
        flat, shape = target.reshape(-1), target.shape
        valid = flat != ignore_index
        shares = np.eye(classes, dtype=x.dtype)[np.where(valid, flat, 0)]
        counts = weights[np.where(valid, flat, 0)] * valid
    shares = (1 - label_smoothing) * shares + label_smoothing / classes
    losses = -(weights * shares * scipy.special.log_softmax(logits, 1)).sum(1) * valid
    return averaged(losses.astype(x.dtype), counts, shape, reduction)


def nll_loss(
    x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    values, flat = rows(x), target.reshape(-1)
    weights = np.ones(values.shape[1], x.dtype) if weight is None else weight.astype(x.dtype)
    valid = flat != ignore_index
    named = np.where(valid, flat, 0)
    counts = weights[named] * valid
    losses = -np.take_along_axis(values, named[:, None], 1)[:, 0] * counts
    return averaged(losses, counts, target.shape, reduction)


BAD = [
    Raises((X, np.array([0, 1, 4])), IndexingError, ": got class 4, expected one from 0"),
    Raises((X, np.array([0, 1, -1])), IndexingError, ": got class -1, expected one from 0"),
    Raises((X, LABELS.astype(float)), IndexingError, ": got classes of dtype float64, .*logits"),
    Raises((X, np.array([0, 1])), ShapeError, ": got classes of shape .2,., expected .3,."),
    Raises((X, LABELS[:, None]), ShapeError, ": got .*3, 1., expected .3,.; use reshape"),
    Raises((np.ones((2, 5, 3)), np.zeros((2, 5), int)), ShapeError, "along axis 1 .*moveaxis"),
    Raises((X, LABELS), ArgumentError, ": got reduction='max'", {"reduction": "max"}),
    Raises((X, LABELS), ShapeError, ": got weight of shape", {"weight": np.ones(3)}),
]
# The right class far ahead, far behind, and a tie.
FAR = np.array([[1e3, -1e3], [1e3, -1e3], [5.0, 5.0]])


def case(function: Any, *args: Any, **kwargs: Any) -> OpCase:
    name = function.__name__
    kwargs.setdefault("ops", ("sparse_cross_entropy", "class_slopes"))
    torch = {"cross_entropy": torch_cross_entropy, "nll_loss": torch_nll_loss}[name]
    return OpCase(function, *args, torch=torch, **kwargs)


NUMBERED = [
    case(
        nn.cross_entropy,
        (X, LABELS),
        cross_entropy,
        ops=("mean_cross_entropy", "mean_class_slopes"),
        at=[
            At(
                (FAR, np.array([0, 1, 0])),
                (np.array([[0.0, 0.0], [1.0, -1.0], [-0.5, 0.5]]),),
                {"reduction": "sum"},
            ),
            At((X, np.full(3, -100)), (np.zeros((3, 4)),)),
        ],
        raises=[
            *BAD,
            Raises((X, LABELS), ArgumentError, "got label_smoothing=2", {"label_smoothing": 2}),
            Raises((X, np.ones((3, 4), int)), DTypeError, "cross_entropy: got a target of int64"),
        ],
    ),
    case(
        nn.cross_entropy,
        (X[0], np.array(2)),
        cross_entropy,
        ops=("mean_cross_entropy",),
        label="one",
    ),
    case(
        nn.cross_entropy,
        (draw(2, 3, 2), np.array([[0, 1], [-100, 2]])),
        cross_entropy,
        {"label_smoothing": 0.1},
        ops=("mean_cross_entropy", "mean_class_slopes"),
        label="mean",
    ),
    case(
        nn.cross_entropy,
        (X, SOME),
        cross_entropy,
        {"label_smoothing": 0.2, "reduction": "none"},
        label="smooth",
    ),
    case(
        nn.cross_entropy,
        (X, np.array([1, 0, 1])),
        cross_entropy,
        {"weight": WEIGHT, "ignore_index": 1},
        label="weight",
    ),
    case(
        nn.cross_entropy,
        (X, SOME),
        cross_entropy,
        {"weight": WEIGHT, "label_smoothing": 0.2},
        ops=("dense_cross_entropy", "class_hits"),
        label="weight-smooth",
        # Nothing counts: the mean is NaN, and has no gradient, as in PyTorch.
        at=[
            At(
                (X, np.full(3, -100)),
                (np.zeros(X.shape),),
                {"weight": WEIGHT, "label_smoothing": 0.2},
            )
        ],
    ),
    case(
        nn.cross_entropy,
        (draw(2, 3, 2), np.array([[0, 1], [-100, 2]])),
        cross_entropy,
        {"reduction": "sum"},
        label="places",
    ),
    case(
        nn.cross_entropy,
        (draw(0, 3), np.zeros(0, int)),
        cross_entropy,
        {"reduction": "sum"},
        label="empty",
    ),
]

DENSE = [
    case(
        nn.cross_entropy,
        (X, SHARES),
        cross_entropy,
        ops=("dense_cross_entropy",),
        label="shares",
        at=[
            At(
                (FAR[1:], np.array([[0.0, 1.0], [0.5, 0.5]])),
                (np.array([[1.0, -1.0], [0.0, 0.0]]), [[0.0, 2000.0], [np.log(2), np.log(2)]]),
                {"reduction": "sum"},
            )
        ],
    ),
    case(
        nn.cross_entropy,
        (draw(2, 3, 2), draw(2, 3, 2, low=0.0)),
        cross_entropy,
        {"weight": WEIGHT[:3], "label_smoothing": 0.2, "reduction": "none"},
        ops=("dense_cross_entropy",),
        label="shares-places",
    ),
    OpCase(
        nn.softmax_cross_entropy,
        (X, SHARES),
        lambda x, t: cross_entropy(x, t, reduction="none"),
        ops=("dense_cross_entropy",),
        raises=[
            Raises((X, X[0]), ShapeError, "softmax_cross_entropy: got logits of shape .3, 4. and")
        ],
        torch=lambda torch, x, t: torch.nn.functional.cross_entropy(x, t, reduction="none"),
    ),
    OpCase(
        nn.sparse_softmax_cross_entropy,
        (X, LABELS),
        lambda x, t: cross_entropy(x, t, reduction="none"),
        ops=("sparse_cross_entropy",),
        raises=BAD[:3],
        torch=lambda torch, x, t: torch.nn.functional.cross_entropy(x, t, reduction="none"),
    ),
    OpCase(
        nn.sparse_softmax_cross_entropy,
        (draw(2, 2, 3), np.array([[0, 1], [2, 2]])),
        lambda x, t: cross_entropy(np.moveaxis(x, -1, 1), t, reduction="none"),
        ops=("sparse_cross_entropy",),
        label="places",
    ),
]

LOGARITHMS = [
    case(
        nn.nll_loss,
        (X, SOME),
        nll_loss,
        ops=("pick_class", "put_class"),
        at=[At((X, np.full(3, -100)), (np.zeros((3, 4)),))],
        raises=BAD,
    ),
    case(
        nn.nll_loss,
        (X, SOME),
        nll_loss,
        {"weight": WEIGHT, "reduction": "none"},
        ops=("pick_class",),
        label="weight",
    ),
    case(
        nn.nll_loss,
        (draw(2, 3, 2), np.array([[0, 1], [1, 2]])),
        nll_loss,
        {"ignore_index": 1},
        ops=("pick_class",),
        label="places",
    ),
    case(
        nn.nll_loss,
        (draw(0, 3), np.zeros(0, int)),
        nll_loss,
        {"reduction": "sum"},
        ops=("pick_class",),
        label="empty",
    ),
]

CASES = [*NUMBERED, *DENSE, *LOGARITHMS]
