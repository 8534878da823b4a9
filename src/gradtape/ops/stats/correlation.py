"""The correlation of paired observations."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import absolute
from gradtape.ops.arrays.axes import along
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.exponential import sqrt
from gradtape.ops.reduce import floats, mean as mean_over, sum as sum_over
from gradtape.ops.select import clip, where
from gradtape.ops.shape import broadcast_arrays
from gradtape.ops.special.incomplete_beta import betainc
from gradtape.ops.stats.base import known_or_nan
from gradtape.ops.which import all as all_of
from gradtape.typing import ArrayLike


class PearsonResult(NamedTuple):
    """A correlation coefficient, and the probability of one as far from 0 without correlation."""

    statistic: Any
    pvalue: Any


def pearsonr(
    x: ArrayLike, y: ArrayLike, *, alternative: str = "two-sided", axis: int | None = 0
) -> PearsonResult:
    """The correlation coefficient of Pearson of paired observations, and its p-value.

    Both are differentiable, and NaN where all observations of one side are equal.

    Args:
        x: The first of each pair.
        y: The second of each pair.
        alternative: Which coefficients the p-value counts: "two-sided", "greater" or "less".
        axis: The axis of the pairs; None takes all elements.

    Raises:
        ArgumentError: There is no such alternative.
        ShapeError: There are fewer than two pairs.

    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    >>> gt.grad(lambda x: gt.scipy.stats.pearsonr(x, y).statistic)(x)
    array([-0.25,  0.5 , -0.25])
    """
    check_choice("pearsonr", ("two-sided", "greater", "less"), alternative=alternative)
    x, y = (floats(as_array(one)) for one in (x, y))
    if axis is None:
        (x, axis), (y, _) = along("pearsonr", x, None), along("pearsonr", y, None)
    x, y = broadcast_arrays(x, y)
    _, axis = along("pearsonr", x, axis)
    n = x.shape[axis]
    if n < 2:
        raise ShapeError(f"pearsonr: got {n} pairs along axis {axis}, expected at least 2")
    known = ~(_constant(x, axis) | _constant(y, axis))
    x, y = (_normalized(one, axis) for one in (x, y))
    r = sum_over(x * y, axis)
    r = r + stop_gradient(clip(r, -1.0, 1.0) - r)  # which only rounding has moved out
    dtype = r.dtype
    return PearsonResult(
        known_or_nan(known, r, dtype), known_or_nan(known, _pvalue(r, n, alternative), dtype)
    )


def _constant(x: Any, axis: int) -> Any:
    first = x[(slice(None),) * axis + (slice(0, 1),)]
    return all_of(stop_gradient(x) == stop_gradient(first), axis)


def _normalized(x: Any, axis: int) -> Any:
    away = x - mean_over(x, axis, keepdims=True)
    square = sum_over(away * away, axis, keepdims=True)
    return away / sqrt(where(square > 0, square, 1.0))


def _pvalue(r: Any, n: int, alternative: str) -> Any:
    """(1 + r)/2 has a distribution of beta without correlation; of two pairs r is ±1."""
    if n == 2:
        return 0.0 * r + 1.0
    shape = n / 2 - 1
    if alternative == "two-sided":
        return 2 * betainc(shape, shape, 0.5 * (1 - absolute(r)))
    return betainc(shape, shape, 0.5 * (1 - r if alternative == "greater" else 1 + r))
