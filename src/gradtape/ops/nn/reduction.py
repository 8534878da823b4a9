"""Shared by all losses: argument checks, and the reduction of losses of elements to one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_broadcasts, check_choice, common_shape
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


_REDUCTIONS = ("none", "mean", "sum")


def check_same(name: str, x: Any, *targets: Any) -> None:
    """Raise unless arrays have the same shape; a target without axes is for all elements.

    A prediction (n, 1) against targets (n,) would broadcast to all pairs, which is never meant.
    """
    for target in targets:
        if target.shape not in ((), x.shape):
            raise ShapeError(
                f"{name}: got shapes {x.shape} and {target.shape}, expected the same; reshape one "
                "of them, or repeat it with broadcast_to if that is meant"
            )


def floating(*arrays: ArrayLike) -> list[Any]:
    """Arguments of a loss as float arrays; integers take the dtype of the others.

    16 bits would round them: beside float16 and bfloat16 they are float32. Truth values are exact.
    """
    given = [as_array(x) for x in arrays]
    kinds = [x.dtype for x in given if x.dtype.kind not in "biu"]
    if len(kinds) == len(given):
        return given
    dtype = np.dtype(result_type(*kinds) if kinds else np.float64)
    exact = {"b": dtype, "i": dtype, "u": dtype}
    if dtype.itemsize == 2:
        exact |= dict.fromkeys("iu", np.dtype(np.float32))
    return [astype(x, exact.get(x.dtype.kind, x.dtype), copy=False) for x in given]


def prepared(
    name: str,
    reduction: str,
    *arrays: ArrayLike,
    check: Callable[..., None] | None = check_same,
    real: bool = True,
) -> list[Any]:
    """Arguments of a loss as float arrays, checked.

    Args:
        name: The name of the loss.
        reduction: Its option of this name, which is checked as well.
        *arrays: The arguments.
        check: What to check of their shapes, `check(name, *arrays)`.
        real: Whether complex numbers are refused, which have no order.
    """
    if reduction not in _REDUCTIONS:
        check_reduction(name, reduction)
    given = floating(*arrays)
    if real:
        for x in given:
            real_only(name, x)
    if check is not None:
        check(name, *given)
    return given


def check_values(name: str, what: str, x: Any, most: float, instead: str = "") -> None:
    """Raise for values below 0 or above a limit, if they can be read yet; NaN passes."""
    raw = known_values(x)
    if raw is None or raw.dtype.kind not in "iuf" or not raw.size:
        return
    low, high = raw.min(), raw.max()
    if low < 0 or high > most:
        raise ArgumentError(
            f"{name}: got {what} of {low if low < 0 else high}, expected numbers from 0 to {most}"
            f"{instead}"
        )


def check_vectors(name: str, *arrays: Any) -> None:
    """Raise unless arrays of vectors have equally many axes and broadcast together."""
    if len({len(x.shape) for x in arrays}) > 1:
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ShapeError(
            f"{name}: got shapes {shapes}, expected as many axes, the last one that of vectors; "
            "reshape them"
        )
    common_shape(name, *arrays)


def check_reduction(name: str, reduction: str, *more: str) -> None:
    """Raise for an unknown reduction name."""
    check_choice(name, (*_REDUCTIONS, *more), reduction=reduction)


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
    check_broadcasts(name, losses.shape, weight=weight)
    return losses * weight
