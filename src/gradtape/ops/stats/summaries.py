"""Summaries of observations along axes: moments, shapes, spreads, standard scores."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.arithmetic import absolute, power
from gradtape.ops.arrays.median import median
from gradtape.ops.arrays.quantile import percentile
from gradtape.ops.cast import stop_gradient
from gradtape.ops.exponential import log
from gradtape.ops.inspection import finfo
from gradtape.ops.moments import root, std as std_over, var as var_over
from gradtape.ops.reduce import count_over, floats, mean as mean_over, sum as sum_over
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.ops.shared_options import options
from gradtape.ops.stats.base import known_or_nan
from gradtape.typing import Array, ArrayLike, Axis

# The spread of the standard normal distribution, by which spreads are divided.
_QUARTILES_OF_NORMAL = 1.3489795003921634
_DEVIATION_OF_NORMAL = 0.6744897501960817
# What the arguments mean that several of these functions take.
_SHARED = {
    "a": "The observations.",
    "limits": "A lower and an upper one, None for no limit.",
    "inclusive": "Whether observations equal to the lower and to the upper limit count.",
    "axis": "One or several axes; None takes all of them.",
    "bias": "Whether to leave out the correction for few observations.",
    "ddof": "The squares are divided by their number less this.",
    "keepdims": "Whether the reduced axes stay, with size 1.",
}


# ---- moments ------------------------------------------------------------------------------------


@options(_SHARED)
def moment(
    a: ArrayLike,
    order: int = 1,
    axis: Axis = 0,
    *,
    center: ArrayLike = None,
    keepdims: bool = False,
) -> Array:
    """The mean of a power of the distances from the mean, or from `center`.

    Args:
        order: The power.
        center: What distances are taken from; the mean if it is not given.

    Raises:
        ArgumentError: The order is not a whole number of at least 0.

    >>> gt.scipy.stats.moment(gt.tensor([1.0, 2.0, 6.0]), order=2)
    tensor(4.66666667)
    """
    a = floats(as_array(a))
    order = _order(order)
    if center is not None:
        return mean_over(power(a - center, order), axis, keepdims=keepdims)
    if order < 2:  # exactly, and not up to rounding
        return mean_over(a * 0.0 + (1.0 - order), axis, keepdims=keepdims)
    return mean_over(power(_centered(a, axis), order), axis, keepdims=keepdims)


def _order(order: Any) -> int:
    try:
        whole = operator.index(order)
    except TypeError:
        whole = -1
    if whole < 0:
        raise ArgumentError(
            f"moment: got order={order!r}, expected a whole number of at least 0; call it once for "
            "each of several orders"
        )
    return whole


def _centered(a: Any, axis: Axis) -> Any:
    return a - mean_over(a, axis, keepdims=True)


@options(_SHARED)
def skew(a: ArrayLike, axis: Axis = 0, bias: bool = True, *, keepdims: bool = False) -> Array:
    """The skewness: the third central moment over the second to the power of 1.5.

    It is NaN where all observations are equal.

    >>> gt.grad(gt.scipy.stats.skew)(np.array([1.0, 2.0, 6.0])).round(12)
    array([ 0.18894288, -0.2361786 ,  0.04723572])
    """
    a = floats(as_array(a))
    n, second, known = _spread(a, axis, keepdims)
    third = moment(a, 3, axis, keepdims=keepdims)
    value = third / power(where(known, second, 1.0), 1.5)
    if not bias and n > 2:
        value = value * (math.sqrt(n * (n - 1.0)) / (n - 2.0))
    return known_or_nan(known, value, a.dtype)


@options(_SHARED)
def kurtosis(
    a: ArrayLike,
    axis: Axis = 0,
    fisher: bool = True,
    bias: bool = True,
    *,
    keepdims: bool = False,
) -> Array:
    """The kurtosis: the fourth central moment over the square of the second.

    It is NaN where all observations are equal.

    Args:
        fisher: Whether to subtract 3, that of the normal distribution.

    >>> gt.scipy.stats.kurtosis(gt.tensor([1.0, 2.0, 6.0, 3.0]))
    tensor(-1.)
    """
    a = floats(as_array(a))
    n, second, known = _spread(a, axis, keepdims)
    value = moment(a, 4, axis, keepdims=keepdims) / where(known, second, 1.0) ** 2
    if not bias and n > 3:
        value = ((n * n - 1.0) * value - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0
    return known_or_nan(known, value - 3.0 if fisher else value, a.dtype)


def _spread(a: Any, axis: Axis, keepdims: bool) -> tuple[int, Any, Any]:
    """How many observations there are, their second moment, and whether it is not 0."""
    n = count_over(a.shape, normalize_axes(axis, len(a.shape), "skew"))
    second = moment(a, 2, axis, keepdims=keepdims)
    rounding = finfo(a.dtype).eps * mean_over(a, axis, keepdims=keepdims)
    return n, second, stop_gradient(second > rounding * rounding)


# ---- spreads ------------------------------------------------------------------------------------


@options(_SHARED)
def sem(a: ArrayLike, axis: Axis = 0, ddof: int = 1, *, keepdims: bool = False) -> Array:
    """The standard error of the mean: the standard deviation over the root of their number.

    >>> gt.scipy.stats.sem(gt.tensor([1.0, 3.0]))
    tensor(1.)
    """
    a = as_array(a)
    n = count_over(a.shape, normalize_axes(axis, len(a.shape), "sem"))
    return std_over(a, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(n)


@options(_SHARED)
def variation(a: ArrayLike, axis: Axis = 0, ddof: int = 0, *, keepdims: bool = False) -> Array:
    """The coefficient of variation: the standard deviation over the mean.

    >>> gt.scipy.stats.variation(gt.tensor([1.0, 3.0]))
    tensor(0.5)
    """
    a = as_array(a)
    spread = std_over(a, axis, ddof=ddof, keepdims=keepdims)
    return spread / mean_over(a, axis, keepdims=keepdims)


@options(_SHARED)
def iqr(
    x: ArrayLike,
    axis: Axis = None,
    rng: Sequence[float] = (25, 75),
    scale: float | str = 1.0,
    *,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Array:
    """The distance of two percentiles: of the quartiles.

    Args:
        x: The observations.
        rng: The two percentiles.
        scale: What to divide by; "normal" for the distance of the standard normal distribution.
        interpolation: What a percentile is between two observations, by NumPy's names.

    Raises:
        ArgumentError: There is no such scale, or a percentile is out of range.

    >>> gt.scipy.stats.iqr(gt.tensor([1.0, 2.0, 4.0, 8.0, 16.0]))
    tensor(6.)
    """
    low, high = sorted(rng)
    upper, lower = (
        percentile(x, q, axis, method=interpolation, keepdims=keepdims) for q in (high, low)
    )
    return (upper - lower) / _unit("iqr", scale, _QUARTILES_OF_NORMAL)


@options(_SHARED)
def median_abs_deviation(
    x: ArrayLike,
    axis: Axis = 0,
    center: Callable[..., Any] | None = None,
    scale: float | str = 1.0,
    *,
    keepdims: bool = False,
) -> Array:
    """The median of the distances from the median.

    Args:
        x: The observations.
        center: A function of an array and an axis to take distances from; the median by default.
        scale: What to divide by; "normal" for the deviation of the standard normal distribution.

    Raises:
        ArgumentError: There is no such scale.

    >>> gt.scipy.stats.median_abs_deviation(gt.tensor([1.0, 2.0, 4.0, 8.0, 16.0]))
    tensor(3.)
    """
    x = as_array(x)
    axes = normalize_axes(axis, len(x.shape), "median_abs_deviation")
    middle = (center or median)(x, axis=axis)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    distance = median(absolute(x - reshape(middle, kept)), axis, keepdims=keepdims)
    return distance / _unit("median_abs_deviation", scale, _DEVIATION_OF_NORMAL)


def _unit(name: str, scale: Any, of_normal: float) -> Any:
    if not isinstance(scale, str):
        return scale
    if scale.lower() != "normal":
        raise ArgumentError(f"{name}: got scale={scale!r}, expected a number or 'normal'")
    return of_normal


# ---- between limits -----------------------------------------------------------------------------


@options(_SHARED)
def tmean(
    a: ArrayLike,
    limits: Sequence[float | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = None,
    *,
    keepdims: bool = False,
) -> Array:
    """The mean of the observations between two limits; NaN if there are none.

    >>> gt.scipy.stats.tmean(gt.tensor([1.0, 2.0, 4.0, 100.0]), (None, 10))
    tensor(2.33333333)
    """
    a = floats(as_array(a))
    inside = _between(a, limits, inclusive)
    mean, n = _mean_inside(a, inside, axis, keepdims)
    return known_or_nan(n > 0, mean, a.dtype)


@options(_SHARED)
def tvar(
    a: ArrayLike,
    limits: Sequence[float | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = 0,
    ddof: int = 1,
    *,
    keepdims: bool = False,
) -> Array:
    """The variance of the observations between two limits; NaN if there are too few.

    >>> gt.scipy.stats.tvar(gt.tensor([1.0, 3.0, 100.0]), (None, 10))
    tensor(2.)
    """
    a = floats(as_array(a))
    if limits is None:
        return var_over(a, axis, ddof=ddof, keepdims=keepdims)
    inside = _between(a, limits, inclusive)
    mean, _ = _mean_inside(a, inside, axis, True)
    away = where(inside, a - mean, 0.0)
    freedom = sum_over(inside, axis, keepdims=keepdims) - ddof
    total = sum_over(away * away, axis, keepdims=keepdims)
    return known_or_nan(freedom > 0, total / where(freedom > 0, freedom, 1), a.dtype)


@options(_SHARED)
def tstd(
    a: ArrayLike,
    limits: Sequence[float | None] | None = None,
    inclusive: tuple[bool, bool] = (True, True),
    axis: Axis = 0,
    ddof: int = 1,
    *,
    keepdims: bool = False,
) -> Array:
    """The standard deviation of the observations between two limits; arguments as of `tvar`.

    >>> gt.scipy.stats.tstd(gt.tensor([1.0, 3.0, 5.0, 100.0]), (None, 10))
    tensor(2.)
    """
    return root(tvar(a, limits, inclusive, axis, ddof, keepdims=keepdims))


def _between(a: Any, limits: Any, inclusive: Any) -> Any:
    low, high = (None, None) if limits is None else limits
    inside = a == a
    if low is not None:
        inside = inside & (a >= low if inclusive[0] else a > low)
    if high is not None:
        inside = inside & (a <= high if inclusive[1] else a < high)
    return inside | (a != a)  # NaN spreads


def _mean_inside(a: Any, inside: Any, axis: Axis, keepdims: bool) -> tuple[Any, Any]:
    n = sum_over(inside, axis, keepdims=keepdims)
    total = sum_over(where(inside, a, 0.0), axis, keepdims=keepdims)
    return total / where(n > 0, n, 1), n


# ---- standard scores ----------------------------------------------------------------------------


@options(_SHARED)
def zscore(a: ArrayLike, axis: Axis = 0, ddof: int = 0) -> Array:
    """Distances from the mean in standard deviations; NaN where all observations are equal.

    >>> gt.scipy.stats.zscore(gt.tensor([1.0, 2.0, 3.0]))
    tensor([-1.22474487,  0.        ,  1.22474487])
    """
    a = floats(as_array(a))
    mean, spread = _mean_and_spread(a, axis, ddof)
    known = stop_gradient(spread > absolute(finfo(a.dtype).eps * mean))
    return known_or_nan(known, (a - mean) / where(known, spread, 1.0), a.dtype)


@options(_SHARED)
def zmap(scores: ArrayLike, compare: ArrayLike, axis: Axis = 0, ddof: int = 0) -> Array:
    """Distances from the mean of other observations, in their standard deviations.

    Args:
        scores: What to measure.
        compare: The observations to measure by.
        axis: One or several axes of `compare`; None takes all of them.

    >>> gt.scipy.stats.zmap(gt.tensor([2.0, 4.0]), np.array([1.0, 2.0, 3.0]))
    tensor([0.        , 2.44948974])
    """
    if scores is compare:
        return zscore(scores, axis, ddof)
    mean, spread = _mean_and_spread(as_array(compare), axis, ddof)
    return (as_array(scores) - mean) / spread


@options(_SHARED)
def gzscore(a: ArrayLike, *, axis: Axis = 0, ddof: int = 0) -> Array:
    """Standard scores of logarithms.

    Args:
        a: The observations, greater than 0.

    >>> gt.scipy.stats.gzscore(gt.tensor([1.0, 10.0, 100.0]))
    tensor([-1.22474487,  0.        ,  1.22474487])
    """
    return zscore(log(as_array(a)), axis, ddof)


def _mean_and_spread(a: Any, axis: Axis, ddof: int) -> tuple[Any, Any]:
    return (
        mean_over(a, axis, keepdims=True),
        std_over(a, axis, ddof=ddof, keepdims=True),
    )
