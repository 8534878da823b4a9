"""Log-likelihoods of the parameter of a power transform, for normally distributed results."""

from __future__ import annotations

from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.arithmetic import absolute, sign
from gradtape.ops.cast import stop_gradient
from gradtape.ops.exponential import exp, log, log1p
from gradtape.ops.moments import var as var_over
from gradtape.ops.reduce import (
    count_over,
    floats,
    max as max_over,
    min as min_over,
    sum as sum_over,
)
from gradtape.ops.select import where
from gradtape.ops.special.elementary import boxcox, boxcox1p
from gradtape.typing import Array, ArrayLike, Axis


def boxcox_llf(lmb: ArrayLike, data: ArrayLike, *, axis: Axis = 0, keepdims: bool = False) -> Array:
    """The logarithm of the likelihood of the parameter of Box and Cox.

    Args:
        lmb: The parameter.
        data: The observations, greater than 0.
        axis: One or several axes; None takes all of them.
        keepdims: Whether the reduced axes stay, with size 1.

    >>> gt.grad(gt.scipy.stats.boxcox_llf)(0.0, np.array([1.0, 2.0, 6.0])).round(12)
    np.float64(-0.297293816383)
    """
    data = floats(as_array(data))
    n = count_over(data.shape, normalize_axes(axis, len(data.shape), "boxcox_llf"))
    logs, lmb = log(data), as_array(lmb)
    # In units c of the largest or the smallest one no power overflows: the variance is that of
    # boxcox(x/c), times c^(2λ).
    unit = stop_gradient(
        where(lmb > 0, max_over(logs, axis, keepdims=True), min_over(logs, axis, keepdims=True))
    )
    spread = var_over(boxcox(exp(logs - unit), lmb), axis, keepdims=keepdims)
    unit = sum_over(unit, axis, keepdims=keepdims)  # over axes of size 1
    total = sum_over(logs, axis, keepdims=keepdims)
    return (lmb - 1) * total - n * (lmb * unit + 0.5 * log(spread))


def yeojohnson_llf(
    lmb: ArrayLike, data: ArrayLike, *, axis: Axis = 0, keepdims: bool = False
) -> Array:
    """The logarithm of the likelihood of the parameter of Yeo and Johnson.

    Args:
        lmb: The parameter.
        data: The observations.
        axis: One or several axes; None takes all of them.
        keepdims: Whether the reduced axes stay, with size 1.

    >>> gt.scipy.stats.yeojohnson_llf(gt.tensor(1.0), np.array([-1.0, 2.0, 6.0]))
    tensor(-3.16026077)
    """
    data = floats(as_array(data))
    n = count_over(data.shape, normalize_axes(axis, len(data.shape), "yeojohnson_llf"))
    lmb = as_array(lmb)
    below = data < 0
    powers = where(
        below,
        -boxcox1p(where(below, -data, 0.0), 2 - lmb),
        boxcox1p(where(below, 0.0, data), lmb),
    )
    spread = var_over(powers, axis, keepdims=keepdims)
    total = sum_over(sign(data) * log1p(absolute(data)), axis, keepdims=keepdims)
    return (lmb - 1) * total - 0.5 * n * log(spread)
