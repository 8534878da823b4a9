"""Samples of losses of rare classes, of regions, of quantiles and of other networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError
from opcases.case import At, OpCase, Raises, draw
from opcases.losses_ranking import CERTAIN, LABELS, SCORES, P, X, Y, bad, reduced

nn = gt.nn
Q = CERTAIN.astype(np.float16)


def focal(x: Any, t: Any, alpha: float = 0.25, gamma: float = 2, reduction: str = "mean") -> Any:
    p = scipy.special.expit(x)
    right = p * t + (1 - p) * (1 - t)
    losses = -np.log(right) * (1 - right) ** gamma
    losses = losses if alpha < 0 else losses * (alpha * t + (1 - alpha) * (1 - t))
    return reduced(losses.astype(x.dtype), reduction)


def dice(x: Any, t: Any, smooth: float = 1.0, reduction: str = "mean") -> Any:
    both = (x * t).sum(1)
    losses = 1 - (2 * both + smooth) / (x.sum(1) + t.sum(1, dtype=x.dtype) + smooth)
    return reduced(losses, reduction)


def iou(x: Any, t: Any, smooth: float = 1.0, reduction: str = "mean") -> Any:
    both = (x * t).sum(1)
    losses = 1 - (both + smooth) / (x.sum(1) + t.sum(1, dtype=x.dtype) - both + smooth)
    return reduced(losses, reduction)


def quantile(x: Any, t: Any, quantile: float = 0.5, reduction: str = "mean") -> Any:
    d = t - x
    return reduced(np.where(d > 0, quantile * d, (quantile - 1) * d), reduction)


def distillation(
    x: Any, teacher: Any, target: Any = None, temperature: float = 2.0, alpha: float = 0.5
) -> Any:
    log = scipy.special.log_softmax
    own, other = log(x / temperature, 1), log(teacher / temperature, 1)
    losses = temperature**2 * (np.exp(other) * (other - own)).sum(1)
    if target is not None:
        right = -np.take_along_axis(log(x, 1), target[:, None], 1)[:, 0]
        losses = alpha * losses + (1 - alpha) * right
    return losses.sum() / losses.size


CASES = [
    OpCase(
        nn.focal_loss,
        (P, CERTAIN),
        focal,
        {"gamma": 1.5},
        ops=("logits_entropy",),
        rtol=64,
        dtypes=(np.float64,),
        raises=[bad(nn.focal_loss, P, P)],
    ),
    OpCase(
        nn.sigmoid_focal_loss,
        (P, CERTAIN),
        focal,
        {"alpha": -1.0, "reduction": "sum"},
        ops=("logits_entropy",),
        rtol=64,
        dtypes=(np.float64,),
        at=[At((np.array([1e3, -1e3]), np.array([1, 0])), ([0.0, 0.0],))],
    ),
    OpCase(
        nn.dice_loss,
        (P, Q),
        dice,
        ops=("divide",),
        raises=[
            bad(nn.dice_loss, P, Q),
            Raises((P, Q[0]), ShapeError, "dice_loss: got x of shape .2, 3. and target"),
        ],
    ),
    OpCase(
        nn.iou_loss,
        (P, Q),
        iou,
        {"smooth": 0.5, "reduction": "none"},
        ops=("divide",),
        raises=[
            bad(nn.iou_loss, P, Q),
            Raises((P, Q[0]), ShapeError, "iou_loss: got x of shape .2, 3. and target"),
        ],
    ),
    OpCase(
        nn.quantile_loss,
        (X, Y),
        quantile,
        {"quantile": 0.9},
        ops=("maximum",),
        raises=[
            bad(nn.quantile_loss, X, Y),
            Raises((X, Y, 2.0), ArgumentError, "quantile_loss: got quantile=2"),
        ],
    ),
    OpCase(
        nn.distillation_loss,
        (SCORES, draw(3, 4, seed=1)),
        distillation,
        ops=("log_divergence",),
        raises=[
            bad(nn.distillation_loss, SCORES, SCORES),
            Raises((SCORES, SCORES[0]), ShapeError, "distillation_loss: got x of shape"),
            Raises((SCORES, SCORES, None, 0), ArgumentError, "distillation_loss: got temper"),
        ],
    ),
    OpCase(
        nn.distillation_loss,
        (SCORES, draw(3, 4, seed=1), LABELS),
        distillation,
        {"alpha": 0.25, "temperature": 3.0},
        ops=("log_divergence", "sparse_cross_entropy"),
        label="target",
    ),
]
