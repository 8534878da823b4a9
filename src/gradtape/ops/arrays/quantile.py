"""Quantiles and percentiles."""

from __future__ import annotations

from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.order_statistics import quantile_of
from gradtape.ops.family import member
from gradtape.ops.reduce import NO_AXIS, REDUCTIONS
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis


@options(REDUCTIONS, raises=NO_AXIS)
def _quantile(
    name: str,
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    *,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    weights: ArrayLike = None,
) -> Array:
    """The element with a share q of the sorted {what} before it.

    `method` says what lies between two of them. It has a gradient with respect to the elements,
    and with respect to q for methods that go between elements. Where q names an element, that is
    the slope towards the next one.

    Args:
        x: Where to look.
        q: Shares from 0 to {whole}, in an array of up to two axes, which come first in the result.
            Others raise; in compiled code they give NaN.
        overwrite_input: Whether `x` may be overwritten; it never is.
        method: What to do between elements, by NumPy's names: "linear" by default.
        weights: How much each element counts, for method "inverted_cdf" only.

    Raises:
        ArgumentError: q is out of range, there is no such method, or it takes no weights.
        DTypeError: `x` is complex.
        ShapeError: There are no elements, or the weights do not fit.

    quantile:
    >>> gt.quantile(np.array([3.0, 1.0, 7.0, 2.0]), 0.25)
    np.float64(1.75)

    percentile:
    >>> gt.percentile(np.array([3.0, 1.0, 7.0, 2.0]), 25)
    np.float64(1.75)

    nanquantile:
    >>> gt.nanquantile(np.array([3.0, 1.0, np.nan]), 0.25)
    np.float64(1.5)

    nanpercentile:
    >>> gt.nanpercentile(np.array([3.0, 1.0, np.nan]), 25)
    np.float64(1.5)
    """
    share, weak = as_array(q), type(q) in (int, float)
    share = share / 100 if name.endswith("percentile") else share
    without_nan = name.startswith("nan")
    return quantile_of(name, x, share, axis, method, keepdims, weights, without_nan, weak)


_ALL, _NUMBERS = "elements", "elements that are not NaN"
quantile = member("quantile", _quantile, what=_ALL, whole="1")
percentile = member("percentile", _quantile, what=_ALL, whole="100")
nanquantile = member("nanquantile", _quantile, what=_NUMBERS, whole="1")
nanpercentile = member("nanpercentile", _quantile, what=_NUMBERS, whole="100")
