"""Orthogonal matrices and truncated normal numbers, from normal and uniform ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.locks import load
from gradtape.ops.checks import check_positive
from gradtape.ops.erf import ndtr

# Families of ops that are loaded by the first draw that needs them.
_QR, _NORMAL = "gradtape.ops.linalg.qr", "gradtape.ops.special.normal"


def orthogonal_from(
    name: str, draw: Callable[[tuple[int, int]], Any], shape: tuple[int, ...], outputs_first: bool
) -> Any:
    """Weights with orthonormal rows or columns, whichever are fewer.

    Args:
        name: The name of the function.
        draw: Gives normal numbers of a shape.
        shape: The shape of the weights.
        outputs_first: Whether the first axis is outputs; if not, the last one is.

    Raises:
        ArgumentError: There are less than two axes.
    """
    if len(shape) < 2:
        raise ArgumentError(f"{name}: got shape {shape}, expected two axes or more")
    outputs = shape[0] if outputs_first else shape[-1]
    inputs = math.prod(shape) // outputs if outputs else 0
    most, least = max(outputs, inputs), min(outputs, inputs)
    if not least:
        return np.zeros(shape)
    found: Any = load(_QR).qr(np.asarray(draw((most, least)), np.float64))
    # With the signs of R's diagonal, all orthogonal matrices are equally likely.
    q = found.Q * np.copysign(1.0, np.diagonal(found.R))
    tall = (outputs if outputs_first else inputs) == most
    return (q if tall else q.T).reshape(shape)


def truncated_from(
    name: str, draw: Callable[[], Any], mean: float, std: float, low: float, high: float
) -> Any:
    """Normal numbers of an interval, by the inverse of the distribution function.

    Args:
        name: The name of the function.
        draw: Gives uniform numbers from 0 to 1.
        mean: The mean of the normal distribution.
        std: Its standard deviation.
        low: The lower end.
        high: The upper end.

    Raises:
        ArgumentError: `std` is not positive, or the interval is empty or too far from the mean.
    """
    check_positive(name, std=std)
    first, last = (low - mean) / std, (high - mean) / std
    # Above the mean, probabilities are near 1 and lose digits; they are mirrored to the other side.
    sign = -1.0 if first > 0 else 1.0
    ends = sorted((sign * first, sign * last))
    below, upto = (float(p) for p in ndtr(np.array(ends)))
    if not low < high or not below < upto:
        raise ArgumentError(
            f"{name}: got an interval from {low} to {high} with mean {mean} and std {std}, "
            "expected one in which there are normal numbers"
        )
    numbers = np.asarray(
        load(_NORMAL).ndtri(below + (upto - below) * np.asarray(draw(), np.float64))
    )
    return np.clip(mean + std * sign * numbers, low, high)
