"""What losses have in common: how the losses of single elements become one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import broadcast_sizes
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.inspection import result_type
from gradtape.ops.reduce import sum as sum_of
from gradtape.typing import ArrayLike


def floating(*arrays: ArrayLike) -> list[Any]:
    """Arguments of a loss as arrays of floats; integers become floats of what is beside them."""
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
        raise ShapeError(f"{name}: came shapes {shapes}; needed ones that broadcast") from error


def check_reduction(name: str, reduction: str, *more: str) -> None:
    """Raise for a reduction there is not."""
    if reduction not in ("none", "mean", "sum", *more):
        choices = ", ".join(f'"{choice}"' for choice in ("none", "mean", *more))
        raise ArgumentError(f'{name}: came reduction={reduction!r}; needed {choices} or "sum"')


def reduced(losses: Any, reduction: str) -> Any:
    """All losses as they are, their sum, or their mean."""
    if reduction == "none":
        return losses
    total = sum_of(losses)
    return total if reduction == "sum" else total / math.prod(losses.shape)


def weighted(name: str, losses: Any, weight: ArrayLike | None) -> Any:
    """Losses times what they count."""
    if weight is None:
        return losses
    weight = as_array(weight)
    check_broadcast(name, losses, weight)
    return losses * weight
