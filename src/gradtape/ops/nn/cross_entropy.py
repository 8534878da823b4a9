"""Losses of classes: cross entropy from logits, and from logarithms of probabilities."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from gradtape.ops.arguments import as_array, as_integer
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes, check_between, check_same_shape, check_shape
from gradtape.ops.gather import as_indices, take
from gradtape.ops.nn.classes import (
    NOTHING,
    check_classes,
    class_hits,
    dense_cross_entropy,
    mean_cross_entropy,
    pick_class,
    sparse_cross_entropy,
)
from gradtape.ops.nn.reduction import LOSS_ERRORS, LOSSES, check_reduction, floating, reduced
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import mask, where
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

_IGNORED = -100


def _classes_last(name: str, x: Any) -> Any:
    """Logits with the axis of classes last: it is axis 1, or the only one."""
    if x.dtype.kind == "c" or not x.shape:
        raise ShapeError(f"{name}: got {x.dtype} of shape {x.shape}, expected real (…, classes, …)")
    return moveaxis(x, 1, -1) if len(x.shape) > 2 else x


def _labels(name: str, target: Any, logits: Any) -> Any:
    """Numbers of classes, of the shape of logits without their axis of classes, the last."""
    dtype = getattr(target, "dtype", None)
    if dtype is not None and dtype.kind not in "iu":
        raise IndexingError(
            f"{name}: got classes of dtype {dtype}, expected integers; use astype(int) if they are "
            "whole numbers, and give the logits first"
        )
    target = as_indices(target, name)
    got, shape = target.shape, logits.shape[:-1]
    if got == shape:
        return target
    advice = ""
    if got in ((*shape, 1), (1, *shape)):
        advice = f"; use reshape({shape})"
    elif len(shape) > 1 and got == (shape[0], *shape[2:], logits.shape[-1]):
        advice = "; classes are along axis 1 of the logits: np.moveaxis(logits, -1, 1)"
    raise ShapeError(f"{name}: got classes of shape {got}, expected {shape}{advice}")


def class_weights(name: str, weight: ArrayLike | None, x: Any) -> Any:
    """A weight for each class of logits, as floats of their dtype; None if none are given."""
    if weight is None:
        return None
    weight = as_array(weight)
    check_shape(name, x.shape[-1:], weight=weight)
    return astype(weight, x.dtype, copy=False)


def _averaged(losses: Any, counts: Any, reduction: str) -> Any:
    """Losses reduced; a mean leaves ignored samples out and is weighted."""
    if reduction != "mean":
        return reduced(losses, reduction)
    return sum_of(losses) / astype(sum_of(counts), losses.dtype, copy=False)


def _counts(target: Any, weight: Any, ignore_index: int) -> Any:
    """The weight of each sample: that of its class, 0 if it is ignored."""
    valid = target != ignore_index
    if weight is None:
        return valid
    # Negative classes do not count from the end: they are made as wrong as too large ones.
    named = where(target < 0, weight.shape[0], target)
    return mask(take(weight, where(valid, named, 0), 0), valid)


# ---- logits -------------------------------------------------------------------------------------


@options(LOSSES, raises=LOSS_ERRORS)
def cross_entropy(
    x: ArrayLike,
    target: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    ignore_index: int = _IGNORED,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """Cross entropy of classes, given their logits.

    Args:
        x: Logits, of shape (classes,), (samples, classes) or (samples, classes, …).
        target: The numbers of the right classes, of the shape of `x` without its axis of classes;
            or probabilities of all classes, of the shape of `x`.
        weight: How much each class counts; a mean is then divided by the sum of weights.
        ignore_index: The class number of samples to ignore.
        reduction: "mean", "sum", or "none" for the losses of all samples. If all samples are
            ignored, the mean is NaN.
        label_smoothing: The share, from 0 to 1, of the target that is spread over all classes.

    Raises:
        IndexingError: There is no such class.
        ArgumentError: There is no such reduction, the share is not between 0 and 1, or the target
            is probabilities and there is an `ignore_index`.
        DTypeError: The target has the shape of the logits, and is not of floats.

    >>> x = np.array([[0.0, 0.0], [1000.0, 0.0]])
    >>> gt.nn.cross_entropy(x, np.array([1, 0]), reduction="none")
    array([0.69314718, 0.        ])
    """
    name = "cross_entropy"
    check_reduction(name, reduction)
    check_between(name, 0, 1, label_smoothing=label_smoothing)
    (given,) = floating(x)
    ignore_index = as_integer(ignore_index, name, "ignore_index")
    logits, target = _classes_last(name, given), as_array(target)
    weight = class_weights(name, weight, logits)
    if target.shape == given.shape and given.shape != ():
        if ignore_index >= 0:
            raise ArgumentError(
                f"{name}: got ignore_index={ignore_index} with a target of the shape of the "
                "logits, which is probabilities; leave it out, and give what does not count 0"
            )
        return _by_probabilities(name, logits, target, weight, reduction, label_smoothing)
    target = _labels(name, target, logits)
    classes, axis = logits.shape[-1], len(logits.shape) - 1
    check_classes(name, target, classes, ignore_index)
    wide, smoothing = reshape(target, (*target.shape, 1)), float(label_smoothing)
    if reduction == "mean" and weight is None:
        return mean_cross_entropy(logits, wide, ignore_index=ignore_index, smoothing=smoothing)
    counts = _counts(target, weight, ignore_index)
    if weight is not None and label_smoothing:
        spread = label_smoothing / classes * weight
        hits = class_hits(target, classes=classes, ignore_index=ignore_index)
        own = (1 - label_smoothing) * reshape(counts, (*counts.shape, 1))
        shares = astype(spread + own * hits, logits.dtype, copy=False)
        # Masked once more: if nothing counts the mean is NaN, but ignored samples have gradient 0.
        losses = mask(dense_cross_entropy(logits, shares, axis=axis), target != ignore_index)
        return _averaged(losses, counts, reduction)
    losses = sparse_cross_entropy(
        logits, wide, axis=axis, ignore_index=ignore_index, smoothing=smoothing
    )
    return _averaged(losses if weight is None else losses * counts, counts, reduction)


def _by_probabilities(
    name: str, logits: Any, target: Any, weight: Any, reduction: str, smoothing: float
) -> Any:
    if target.dtype.kind in "biuc":
        raise DTypeError(
            f"{name}: got a target of {target.dtype} with the shape of the logits, expected "
            "probabilities, or classes without the axis of classes"
        )
    target = _classes_last(name, target)
    if smoothing:
        target = (1 - smoothing) * target + smoothing / logits.shape[-1]
    target = target if weight is None else target * weight
    losses = dense_cross_entropy(logits, target, axis=len(logits.shape) - 1)
    return reduced(losses, reduction)


def sparse_softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike, /) -> Array:
    """Cross entropy for each sample, of logits along the last axis and the numbers of classes.

    Args:
        logits: Of shape (…, classes).
        labels: The numbers of the right classes, of shape (…).

    Raises:
        IndexingError: There is no such class.
        ShapeError: The shapes do not fit.

    >>> gt.nn.sparse_softmax_cross_entropy(np.zeros((2, 4)), np.array([0, 3]))
    array([1.38629436, 1.38629436])
    """
    name = "sparse_softmax_cross_entropy"
    (logits,) = floating(logits)
    labels = _labels(name, as_array(labels), logits)
    check_classes(name, labels, logits.shape[-1], NOTHING)
    labels, axis = reshape(labels, (*labels.shape, 1)), len(logits.shape) - 1
    return sparse_cross_entropy(logits, labels, axis=axis, ignore_index=NOTHING, smoothing=0.0)


def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike, /) -> Array:
    """Cross entropy for each sample, of logits and probabilities along the last axis.

    Args:
        logits: Of shape (…, classes).
        labels: The probabilities of all classes, of the same shape.

    Raises:
        ShapeError: The shapes differ.

    >>> gt.nn.softmax_cross_entropy(np.zeros((1, 2)), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    x, target = floating(logits, labels)
    check_axes("softmax_cross_entropy", x, least=1)
    check_same_shape("softmax_cross_entropy", logits=x, labels=target)
    return dense_cross_entropy(x, target, axis=len(x.shape) - 1)


# ---- logarithms of probabilities ----------------------------------------------------------------


@options(LOSSES, raises=LOSS_ERRORS)
def nll_loss(
    x: ArrayLike,
    target: ArrayLike,
    /,
    weight: ArrayLike | None = None,
    ignore_index: int = _IGNORED,
    reduction: str = "mean",
) -> Array:
    """Negative logarithms of the probabilities of the right classes.

    Args:
        x: Logarithms of probabilities, of shape (classes,), (samples, classes) or (samples,
            classes, …).
        target: The numbers of the right classes, of the shape of `x` without its axis of classes.
        weight: How much each class counts; a mean is then divided by the sum of weights.
        ignore_index: The class number of samples to ignore.
        reduction: "mean", "sum", or "none" for the losses of all samples. If all samples are
            ignored, the mean is NaN.

    Raises:
        IndexingError: There is no such class.

    >>> gt.nn.nll_loss(np.log([[0.5, 0.5], [0.25, 0.75]]), np.array([1, 0]), reduction="none")
    array([0.69314718, 1.38629436])
    """
    check_reduction("nll_loss", reduction)
    x = _classes_last("nll_loss", *floating(x))
    target = _labels("nll_loss", as_array(target), x)
    weight = class_weights("nll_loss", weight, x)
    check_classes("nll_loss", target, x.shape[-1], ignore_index)
    chosen = pick_class(x, reshape(target, (*target.shape, 1)), ignore_index=ignore_index)
    losses = -reshape(chosen, target.shape)
    counts = _counts(target, weight, ignore_index)
    return _averaged(losses if weight is None else losses * counts, counts, reduction)
