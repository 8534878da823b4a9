"""Means of powers: geometric, harmonic and general ones, with slopes at observations of 0."""

from __future__ import annotations

import math
from typing import Any

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, as_number, normalize_axes
from gradtape.ops.arithmetic import power
from gradtape.ops.arrays.weights import average, weights_beside
from gradtape.ops.exponential import exp, log
from gradtape.ops.product import prod
from gradtape.ops.reduce import (
    count_over,
    floats,
    max as max_over,
    min as min_over,
    sum as sum_over,
)
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to
from gradtape.ops.stats.base import known_or_nan
from gradtape.typing import Array, ArrayLike, Axis


def gmean(
    a: ArrayLike, axis: Axis = 0, *, weights: ArrayLike = None, keepdims: bool = False
) -> Array:
    """The geometric mean: the exponential of the mean of logarithms.

    Args:
        a: The observations, at least 0.
        axis: One or several axes; None takes all of them.
        weights: How much each observation counts.
        keepdims: Whether the reduced axes stay, with size 1.

    >>> gt.scipy.stats.gmean(gt.tensor([1.0, 4.0]))
    tensor(2.)
    """
    a = floats(as_array(a))
    smallest = min_over(a, axis, keepdims=True)
    zero = smallest == 0
    # The logarithm has no slope at 0, but the product has one, which may be infinite.
    near = prod(power(where(zero, a, 1.0), _shares(a, axis, weights)), axis, keepdims=keepdims)
    logs = average(log(where(zero, 1.0, a)), axis, weights, keepdims=keepdims)
    return where(min_over(a, axis, keepdims=keepdims) == 0, near, exp(logs))


def hmean(
    a: ArrayLike, axis: Axis = 0, *, weights: ArrayLike = None, keepdims: bool = False
) -> Array:
    """The harmonic mean: the inverse of the mean of inverses.

    Args:
        a: The observations, at least 0; others give NaN.
        axis: One or several axes; None takes all of them.
        weights: How much each observation counts.
        keepdims: Whether the reduced axes stay, with size 1.

    >>> gt.scipy.stats.hmean(gt.tensor([1.0, 3.0]))
    tensor(1.5)
    """
    return pmean(a, -1, axis=axis, weights=weights, keepdims=keepdims)


def pmean(
    a: ArrayLike,
    p: float,
    *,
    axis: Axis = 0,
    weights: ArrayLike = None,
    keepdims: bool = False,
) -> Array:
    """The mean of powers, to the inverse power; the geometric mean for the power 0.

    Args:
        a: The observations, at least 0; others give NaN.
        p: The power, a number.
        axis: One or several axes; None takes all of them.
        weights: How much each observation counts.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        ArgumentError: The power is infinite or NaN.

    >>> gt.scipy.stats.pmean(gt.tensor([1.0, 7.0]), 2)
    tensor(5.)
    """
    p = as_number(p, "pmean", "p")
    if not math.isfinite(p):
        raise ArgumentError(f"pmean: got p={p}, expected a finite number; take gt.max or gt.min")
    if p == 0:
        return gmean(a, axis, weights=weights, keepdims=keepdims)
    a = floats(as_array(a))
    smallest = min_over(a, axis, keepdims=True)
    known = min_over(a, axis, keepdims=keepdims) >= 0
    valid = where(smallest >= 0, a, 1.0)
    if p > 0:
        # All zeros have no slope that could be given; of large powers it would be 0·∞.
        top = max_over(valid, axis, keepdims=True)
        mean = average(power(where(top > 0, valid, 1.0), p), axis, weights, keepdims=keepdims)
        some = max_over(valid, axis, keepdims=keepdims) > 0
        nothing = average(valid, axis, weights, keepdims=keepdims)
        return known_or_nan(known, where(some, power(mean, 1 / p), nothing), a.dtype)
    # With a zero among them the mean is 0, and grows in proportion to that.
    zero = smallest == 0
    mean = average(power(where(zero, 1.0, valid), p), axis, weights, keepdims=keepdims)
    share = average(where(zero, a == 0, 1.0) * 1.0, axis, weights, keepdims=keepdims)
    near = min_over(a, axis, keepdims=keepdims) * power(share, 1 / p)
    at_zero = min_over(a, axis, keepdims=keepdims) == 0
    return known_or_nan(known, where(at_zero, near, power(mean, 1 / p)), a.dtype)


def _shares(a: Any, axis: Axis, weights: Any) -> Any:
    """The weights, adding up to 1 along the axes."""
    axes = normalize_axes(axis, len(a.shape), "gmean")
    if weights is None:
        return 1.0 / count_over(a.shape, axes)
    weights = weights_beside("gmean", weights, a, None if axis is None else axes)
    return weights / sum_over(broadcast_to(weights, a.shape), axis, keepdims=True)
