"""Losses element by element: of numbers, of probabilities, of logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise_op
from gradtape.ops.activation import sigmoid, softplus
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import sign
from gradtape.ops.checks import check_broadcasts, check_least, check_positive
from gradtape.ops.exponential import log, log1p
from gradtape.ops.family import member
from gradtape.ops.nn.reduction import (
    LOSS_ERRORS,
    LOSSES,
    check_values,
    prepared,
    reduced,
    weighted,
)
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import clip
from gradtape.ops.shape import broadcast_to
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

# ---- distances of numbers -----------------------------------------------------------------------


def _squared_forward(xp: Any, x: Any, y: Any) -> Any:
    apart = x - y
    return apart * apart


# d(x − y)² = 2·(x − y)·(dx − dy)
squared_error = elementwise_op(
    "squared_error",
    _squared_forward,
    lambda ct, _out, x, y: 2.0 * ct * (x - y),
    lambda ct, _out, x, y: 2.0 * ct * (y - x),
    lower=scalar,
)

# d|x − y| = sign(x − y)·(dx − dy)
absolute_error = elementwise_op(
    "absolute_error",
    lambda xp, x, y: xp.abs(x - y),
    lambda ct, _out, x, y: ct * sign(x - y),
    lambda ct, _out, x, y: ct * sign(y - x),
    lower=scalar,
)


_DISTANCES = {"mse_loss": squared_error, "l1_loss": absolute_error}


@options(LOSSES, raises=LOSS_ERRORS)
def _distance_loss(
    name: str,
    x: ArrayLike,
    target: ArrayLike,
    /,
    reduction: str = "mean",
    weight: ArrayLike | None = None,
) -> Array:
    """{Differences}.

    Args:
        weight: How much each of them counts; a mean is then divided by the sum of weights.

    Raises:
        ShapeError: The shapes differ, or the weight does not broadcast to them.

    mse_loss:
    >>> gt.nn.mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(2.0)

    l1_loss:
    >>> gt.nn.l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(1.0)
    """
    x, target = prepared(name, reduction, x, target, real=name == "mse_loss")
    losses = weighted(name, _DISTANCES[name](x, target), weight)
    if weight is None or reduction != "mean":
        return reduced(losses, reduction)
    return sum_of(losses) / sum_of(broadcast_to(as_array(weight), losses.shape))


mse_loss = member("mse_loss", _distance_loss, Differences="Squared differences")
l1_loss = member(
    "l1_loss",
    _distance_loss,
    Differences="Absolute differences; the gradient is 0 where they are 0",
)


# ---- huber --------------------------------------------------------------------------------------


def _huber_forward(xp: Any, x: Any, y: Any, delta: float, factor: float) -> Any:
    apart = xp.abs(x - y)
    near = xp.minimum(apart, delta)
    return factor * (near * (apart - 0.5 * near))


# ½·d² for d = |x − y| up to δ, a straight line beyond: the slope is x − y clipped to ±δ
_huber = elementwise_op(
    "huber_error",
    _huber_forward,
    lambda ct, _out, x, y, delta, factor: ct * (factor * clip(x - y, -delta, delta)),
    lambda ct, _out, x, y, delta, factor: ct * (factor * clip(y - x, -delta, delta)),
    lower=scalar,
)


@options(LOSSES, raises=LOSS_ERRORS)
def smooth_l1_loss(
    x: ArrayLike, target: ArrayLike, /, reduction: str = "mean", beta: float = 1.0
) -> Array:
    """Absolute differences less beta/2, and squared ones over 2·beta below beta.

    Args:
        beta: Up to which difference it is squared; with 0 it is `l1_loss`.

    Raises:
        ArgumentError: There is no such reduction, or beta is negative.

    >>> gt.nn.smooth_l1_loss(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
    array([0.125, 2.5  ])
    """
    check_least("smooth_l1_loss", 0, beta=beta)
    x, target = prepared("smooth_l1_loss", reduction, x, target)
    if beta == 0:
        return reduced(absolute_error(x, target), reduction)
    return reduced(_huber(x, target, delta=float(beta), factor=1 / beta), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def huber_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: ArrayLike | None = None,
) -> Array:
    """Half of the squared differences up to delta, and straight lines beyond.

    Args:
        delta: Up to which difference it is squared.
        weight: How much the loss of each element counts.

    Raises:
        ArgumentError: There is no such reduction, or delta is not positive.

    >>> gt.nn.huber_loss(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
    array([0.125, 2.5  ])
    """
    check_positive("huber_loss", delta=delta)
    x, target = prepared("huber_loss", reduction, x, target)
    losses = _huber(x, target, delta=float(delta), factor=1.0)
    return reduced(weighted("huber_loss", losses, weight), reduction)


# ---- two classes --------------------------------------------------------------------------------

# Logarithms of probabilities are not below this, so that no loss is infinite.
_LOWEST = -100.0


def _entropy_forward(xp: Any, p: Any, t: Any) -> Any:
    with np.errstate(divide="ignore"):
        logs = xp.maximum(xp.log(p), _LOWEST), xp.maximum(xp.log1p(-p), _LOWEST)
    return logs[1] * t - logs[1] - t * logs[0]


# −t·log p − (1 − t)·log(1 − p): slopes (p − t)/(p·(1 − p)) and log(1 − p) − log p
binary_entropy = elementwise_op(
    "binary_entropy",
    _entropy_forward,
    lambda ct, _out, p, t: ct * (p - t) / clip(p * (1 - p), 1e-12),
    lambda ct, _out, p, _t: ct * (clip(log1p(-p), _LOWEST) - clip(log(p), _LOWEST)),
    lower=scalar,
)

# log(1 + eˣ) − x·t: slopes σ(x) − t and −x
logits_entropy = elementwise_op(
    "logits_entropy",
    lambda xp, x, t: xp.maximum(x, 0) - x * t + xp.log1p(xp.exp(-xp.abs(x))),
    lambda ct, _out, x, t: ct * (sigmoid(x) - t),
    lambda ct, _out, x, _t: -ct * x,
    lower=scalar,
)


@options(LOSSES, raises=LOSS_ERRORS)
def binary_cross_entropy(
    x: ArrayLike,
    target: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
) -> Array:
    """Cross entropy of probabilities of two classes.

    Logarithms are clipped to -100 and above, so that no loss is infinite.

    Args:
        x: The probability of the first class.
        target: Which class it is, 1 or 0, or a probability; of the same shape, or one number.
        weight: How much each element counts.

    Raises:
        ArgumentError: There is no such reduction, or an element is not from 0 to 1; compiled code
            gives NaN for such a probability.

    >>> gt.nn.binary_cross_entropy(np.array([0.5, 0.0]), np.array([1.0, 1.0]), reduction="none")
    array([  0.69314718, 100.        ])
    """
    name = "binary_cross_entropy"
    x, target = prepared(name, reduction, x, target)
    for what, given in (("a probability", x), ("a target", target)):
        check_values(name, what, given, 1, f"; of logits use gt.nn.{name}_with_logits")
    return reduced(weighted(name, binary_entropy(x, target), weight), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def binary_cross_entropy_with_logits(
    x: ArrayLike,
    target: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Array:
    """Cross entropy of two classes, given logits; exact for large ones, too.

    Args:
        x: The logits of the first class.
        target: Which class it is, 1 or 0, or a probability; of the same shape, or one number.
        weight: How much each element counts.
        pos_weight: How much elements of the first class count beside those of the second.

    >>> x = np.array([-1000.0, 0.0, 1000.0])
    >>> gt.nn.binary_cross_entropy_with_logits(x, np.ones(3), reduction="none")
    array([1.00000000e+03, 6.93147181e-01, 0.00000000e+00])
    """
    name = "binary_cross_entropy_with_logits"
    x, target = prepared(name, reduction, x, target)
    if pos_weight is None:
        losses = logits_entropy(x, target)
    else:
        pos_weight = as_array(pos_weight)
        check_broadcasts(name, x.shape, pos_weight=pos_weight)
        losses = (1 - target) * x + (1 + (pos_weight - 1) * target) * softplus(-x)
    return reduced(weighted(name, losses, weight), reduction)


def sigmoid_cross_entropy(logits: ArrayLike, target: ArrayLike, /) -> Array:
    """Cross entropy of two classes for each element, given logits.

    Args:
        logits: The logits of the first class.
        target: Which class it is, 1 or 0, or a probability; of the same shape, or one number.

    Raises:
        ShapeError: The shapes differ.

    >>> gt.nn.sigmoid_cross_entropy(np.array([0.0, 1000.0]), np.array([1.0, 1.0]))
    array([0.69314718, 0.        ])
    """
    return logits_entropy(*prepared("sigmoid_cross_entropy", "none", logits, target))
