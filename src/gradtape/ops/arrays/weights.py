"""Averages, and weights that belong to the axes of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import elementwise
from gradtape.core.lowering import Elements
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.arrays.known import like
from gradtape.ops.cast import astype
from gradtape.ops.inspection import result_type
from gradtape.ops.reduce import Axes, count_over, mean_over, sum_over
from gradtape.ops.shape import broadcast_to, reshape, transpose
from gradtape.typing import Array, ArrayLike, Axis


def weights_beside(name: str, weights: ArrayLike, x: Any, axes: Axes | None) -> Any:
    """Weights in a shape that broadcasts against `x`.

    They have the shape of `x`, or that of the axes they belong to, in the order these were named.
    """
    weights = as_array(weights)
    if weights.shape == x.shape:
        return weights
    if axes is None or weights.shape != tuple(x.shape[axis] for axis in axes):
        raise ShapeError(
            f"{name}: got weights of shape {weights.shape} for shape {x.shape} and axes {axes}, "
            "expected the same shape, or that of the axes"
        )
    weights = transpose(weights, np.argsort(axes).tolist())
    return reshape(weights, tuple(n if a in axes else 1 for a, n in enumerate(x.shape)))


def _checked(xp: Any, total: Any) -> Any:
    if (total == 0).any():
        raise ArgumentError("average: got weights that add up to 0, expected another sum")
    return xp.positive(total)


# d total = d total
@elementwise(_checked, lambda ct, _out, _total: ct, lower=Elements(lambda i, total: total(*i)))
def nonzero_total(total: ArrayLike, /) -> Array:
    """A sum of weights, checked to be a valid divisor."""


def average(
    x: ArrayLike,
    /,
    axis: Axis = None,
    weights: ArrayLike = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean of the elements, over all or the given axes.

    Args:
        x: What to average.
        axis: One or several axes; None takes all of them.
        weights: One for each element, or for each place along the axes; None for equal ones.
        returned: Whether to return the sum of the weights as well.
        keepdims: Whether the reduced axes stay, with size 1.

    Raises:
        ShapeError: The weights do not fit.
        AxisError: There is no such axis.
        ArgumentError: The weights add up to 0. A compiled function gives NaN or infinity there.

    >>> gt.average(np.array([1.0, 2.0]), weights=np.array([1.0, 3.0]))
    np.float64(1.75)
    """
    x = as_array(x)
    axes, keepdims = normalize_axes(axis, len(x.shape), "average"), bool(keepdims)
    if weights is None:
        mean = mean_over(x, axis=axes, keepdims=keepdims)
        if not returned:
            return mean
        return mean, like(mean, np.full(mean.shape, count_over(x.shape, axes), mean.dtype)[()])
    weights = weights_beside("average", weights, x, None if axis is None else axes)
    whole = x.dtype.kind in "biu"
    dtype = result_type(x.dtype, weights.dtype, *([np.float64] if whole else []))
    weights = astype(broadcast_to(weights, x.shape), dtype, copy=False)
    total = nonzero_total(sum_over(weights, axis=axes, keepdims=keepdims))
    products = astype(x, dtype, copy=False) * weights
    mean = sum_over(products, axis=axes, keepdims=keepdims) / total
    return (mean, total) if returned else mean
