"""Shared by all losses: argument checks, and the reduction of losses of elements to one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import broadcast_sizes
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.cast import astype
from gradtape.ops.inspection import result_type
from gradtape.ops.nn.known import known_values
from gradtape.ops.reduce import sum as sum_of
from gradtape.typing import ArrayLike

# The options that losses share, and the errors that all of them raise.
LOSSES = {
    "x": "What was predicted.",
    "target": "What it should have been: an array of the same shape, or one number.",
    "reduction": '"mean", "sum", or "none" for each loss by itself.',
}
LOSS_ERRORS = {
    "ShapeError": "The shapes do not fit.",
    "ArgumentError": "There is no such reduction.",
}


def floating(*arrays: ArrayLike) -> list[Any]:
    """Arguments of a loss as float arrays; integers take the dtype of the others."""
    given = [as_array(x) for x in arrays]
    kinds = [x.dtype for x in given if x.dtype.kind not in "biu"]
    dtype = result_type(*kinds) if kinds else np.float64
    return [astype(x, dtype) if x.dtype.kind in "biu" else x for x in given]


def check_broadcast(name: str, *arrays: Any) -> None:
    """Raise unless arrays broadcast together."""
    try:
        broadcast_sizes(*(x.shape for x in arrays))
    except ShapeError as error:
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(f"{name}: got shapes {shapes}, expected ones that broadcast") from error


def check_same(name: str, x: Any, target: Any) -> None:
    """Raise unless two arrays have the same shape; a target without axes is for all elements.

    A prediction (n, 1) against targets (n,) would broadcast to all pairs, which is never meant.
    """
    if target.shape not in ((), x.shape):
        raise ShapeError(
            f"{name}: got shapes {x.shape} and {target.shape}, expected the same; reshape one of "
            "them, or repeat it with broadcast_to if that is meant"
        )


def check_real_loss(name: str, *arrays: Any) -> None:
    """Raise for complex numbers, which have no order."""
    for x in arrays:
        real_only(name, x)


def check_probabilities(name: str, x: Any, what: str) -> None:
    """Raise for values outside of [0, 1], if they can be read yet; NaN passes."""
    raw = known_values(x)
    if raw is None or raw.dtype.kind not in "iuf" or not raw.size:
        return
    low, high = raw.min(), raw.max()
    if low < 0 or high > 1:
        raise ArgumentError(
            f"{name}: got {what} of {low if low < 0 else high}, expected numbers from 0 to 1; of "
            "logits use gt.nn.binary_cross_entropy_with_logits"
        )


def check_vectors(name: str, *arrays: Any) -> None:
    """Raise unless arrays of vectors have equally many axes and broadcast together."""
    if len({len(x.shape) for x in arrays}) > 1:
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(
            f"{name}: got shapes {shapes}, expected as many axes, the last one that of vectors; "
            "reshape them"
        )
    check_broadcast(name, *arrays)


def check_beside(name: str, what: str, given: Any, shape: tuple[int, ...]) -> None:
    """Raise unless an array, such as weights, broadcasts to the shape of losses."""
    try:
        fits = broadcast_sizes(given.shape, shape) == shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{name}: got {what} of shape {given.shape}, expected one that broadcasts to {shape}"
        )


def check_reduction(name: str, reduction: str, *more: str) -> None:
    """Raise for an unknown reduction name."""
    if reduction not in ("none", "mean", "sum", *more):
        choices = ", ".join(f'"{choice}"' for choice in ("none", "mean", *more))
        raise ArgumentError(f'{name}: got reduction={reduction!r}, expected {choices} or "sum"')


def reduced(losses: Any, reduction: str) -> Any:
    """All losses as they are, their sum, or their mean."""
    if reduction == "none":
        return losses
    total = sum_of(losses)
    return total if reduction == "sum" else total / math.prod(losses.shape)


def weighted(name: str, losses: Any, weight: ArrayLike | None) -> Any:
    """Losses times their weights."""
    if weight is None:
        return losses
    weight = as_array(weight)
    check_beside(name, "a weight", weight, losses.shape)
    return losses * weight
