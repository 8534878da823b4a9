"""Losses for rare classes, overlapping regions, quantiles, and learning from another network."""

from __future__ import annotations

from typing import Any

from gradtape.ops.activation import sigmoid
from gradtape.ops.checks import check_axes, check_between, check_positive, check_same_shape
from gradtape.ops.family import member
from gradtape.ops.nn.cross_entropy import cross_entropy
from gradtape.ops.nn.likelihoods import log_divergence
from gradtape.ops.nn.losses import logits_entropy
from gradtape.ops.nn.reduction import LOSS_ERRORS, LOSSES, prepared, reduced
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import maximum
from gradtape.ops.shared_options import options
from gradtape.ops.softmax import log_softmax
from gradtape.typing import Array, ArrayLike


@options(LOSSES, raises=LOSS_ERRORS)
def sigmoid_focal_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "none",
) -> Array:
    """Cross entropy of two classes in which well-classified elements count little.

    Args:
        x: The logits of the first class.
        target: Which class it is, 1 or 0, or a probability; of the same shape, or one number.
        alpha: How much the first class counts, and the second one the rest of 1; negative for no
            difference.
        gamma: The power of the probability of the wrong class that each loss is multiplied with.

    >>> gt.nn.sigmoid_focal_loss(np.array([0.0, 1000.0]), np.array([1.0, 1.0]))
    array([0.0433217, 0.       ])
    """
    return _focal("sigmoid_focal_loss", x, target, alpha, gamma, reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def focal_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "mean",
) -> Array:
    """The mean of `sigmoid_focal_loss`.

    Args:
        x: The logits of the first class.
        target: Which class it is, 1 or 0, or a probability; of the same shape, or one number.
        alpha: How much the first class counts, and the second one the rest of 1; negative for no
            difference.
        gamma: The power of the probability of the wrong class that each loss is multiplied with.

    >>> gt.nn.focal_loss(np.array([0.0, 1000.0]), np.array([1.0, 1.0]))
    np.float64(0.0216608...)
    """
    return _focal("focal_loss", x, target, alpha, gamma, reduction)


def _focal(name: str, x: Any, target: Any, alpha: float, gamma: float, reduction: str) -> Any:
    x, target = prepared(name, reduction, x, target)
    wrong = sigmoid(x) * (1 - target) + sigmoid(-x) * target
    losses = logits_entropy(x, target) * wrong**gamma
    if alpha >= 0:
        losses = losses * (alpha * target + (1 - alpha) * (1 - target))
    return reduced(losses, reduction)


# ---- regions ------------------------------------------------------------------------------------


@options(LOSSES, raises=LOSS_ERRORS)
def _overlap_loss(
    name: str,
    x: ArrayLike,
    target: ArrayLike,
    /,
    smooth: float = 1.0,
    reduction: str = "mean",
) -> Array:
    """1 − {share} of two regions.

    Args:
        x: The probability of each place to belong to the region; samples along the first axis,
            unless it is the only one.
        target: Whether it does, 1 or 0.
        smooth: Added above and below, so that empty regions are alike.

    dice_loss:
    >>> gt.nn.dice_loss(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]), smooth=0.0)
    np.float64(0.333...)

    iou_loss:
    >>> gt.nn.iou_loss(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]), smooth=0.0)
    np.float64(0.5)
    """
    x, target = prepared(name, reduction, x, target, check=None)
    check_same_shape(name, x=x, target=target)
    axes = tuple(range(min(1, len(x.shape) - 1), len(x.shape)))
    both, sizes = sum_of(x * target, axes), sum_of(x, axes) + sum_of(target, axes)
    above, below = (2 * both, sizes) if name == "dice_loss" else (both, sizes - both)
    return reduced(1 - (above + smooth) / (below + smooth), reduction)


dice_loss = member("dice_loss", _overlap_loss, share="2·overlap/(sum of sizes)")
iou_loss = member("iou_loss", _overlap_loss, share="overlap/union")


# ---- quantiles, and other networks --------------------------------------------------------------


@options(LOSSES, raises=LOSS_ERRORS)
def quantile_loss(
    x: ArrayLike, target: ArrayLike, /, quantile: float = 0.5, reduction: str = "mean"
) -> Array:
    """Differences, weighted so that a quantile of the target is the best prediction.

    Args:
        quantile: Which quantile is to be predicted; with 0.5 it is half of `l1_loss`.

    Raises:
        ArgumentError: There is no such reduction or quantile.

    >>> gt.nn.quantile_loss(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 0.75, reduction="none")
    array([0.75, 0.25])
    """
    check_between("quantile_loss", 0, 1, quantile=quantile)
    x, target = prepared("quantile_loss", reduction, x, target)
    apart = target - x
    return reduced(maximum(quantile * apart, (quantile - 1) * apart), reduction)


@options(LOSSES, raises=LOSS_ERRORS)
def distillation_loss(
    x: ArrayLike,
    teacher: ArrayLike,
    /,
    target: ArrayLike | None = None,
    temperature: float = 2.0,
    alpha: float = 0.5,
    reduction: str = "mean",
) -> Array:
    """Divergence from the output of another network, plus cross entropy of the right classes.

    Args:
        x: Logits, of shape (samples, classes).
        teacher: The logits of the other network. They have a gradient, too: `detach()` them.
        target: The numbers of the right classes; None to learn from the other network alone.
        temperature: What logits are divided by; the divergence is multiplied with its square.
        alpha: The share of the divergence in the loss, the cross entropy has the rest.

    Raises:
        ArgumentError: There is no such reduction, or the temperature is not positive.

    >>> x = np.array([[1.0, 2.0]])
    >>> gt.nn.distillation_loss(x, x)
    np.float64(0.0)
    """
    name = "distillation_loss"
    check_positive(name, temperature=temperature)
    x, teacher = prepared(name, reduction, x, teacher, check=None)
    check_axes(name, x, 2, instead="give (samples, classes)")
    check_same_shape(name, x=x, teacher=teacher)
    own, other = log_softmax(x / temperature), log_softmax(teacher / temperature)
    losses = temperature**2 * sum_of(log_divergence(own, other), -1)
    if target is not None:
        right = cross_entropy(x, target, reduction="none")
        losses = alpha * losses + (1 - alpha) * right
    return reduced(losses, reduction)
