"""Quantiles and percentiles."""

from __future__ import annotations

from typing import Any

from gradtape.ops.arguments import as_array, refuse
from gradtape.ops.arrays.order_statistics import quantile_of
from gradtape.typing import Array, ArrayLike, Axis


def _is_weak(q: Any) -> bool:
    return type(q) in (int, float)


def quantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike = None,
) -> Array:
    """The element that a share q of the sorted elements lies before, or one between two of them.

    It has a gradient with respect to the elements, and with respect to q for methods that go
    between elements. Where q names an element, it is the slope towards the next one.

    Args:
        x: Where to look.
        q: Shares from 0 to 1, in an array of up to two axes, which come first in the result.
            Others raise; in compiled code they give NaN.
        axis: One or several axes; None takes all of them.
        out: Only None: use the result.
        overwrite_input: Whether `x` may be overwritten, which it never is.
        method: What to do between elements, by NumPy's names: "linear" by default.
        keepdims: Whether the reduced axes stay, with size 1.
        weights: How much each element counts, for method "inverted_cdf" only.

    Raises:
        ArgumentError: q is out of range, there is no such method, or it takes no weights.
        DTypeError: `x` is complex.
        ShapeError: There are no elements, or the weights do not fit.
        AxisError: There is no such axis.

    >>> gt.quantile(np.array([3.0, 1.0, 7.0, 2.0]), 0.25)
    np.float64(1.75)
    """
    refuse("quantile", {"out": out})
    share = as_array(q)
    return quantile_of("quantile", x, share, axis, method, keepdims, weights, False, _is_weak(q))


def percentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike = None,
) -> Array:
    """A quantile with `q` from 0 to 100, options as of `quantile`.

    Raises:
        ArgumentError: q is out of range, there is no such method, or it takes no weights.
        DTypeError: `x` is complex.
        ShapeError: There are no elements, or the weights do not fit.
        AxisError: There is no such axis.

    >>> gt.percentile(np.array([3.0, 1.0, 7.0, 2.0]), 25)
    np.float64(1.75)
    """
    refuse("percentile", {"out": out})
    share = as_array(q) / 100
    return quantile_of("percentile", x, share, axis, method, keepdims, weights, False, _is_weak(q))


def nanquantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike = None,
) -> Array:
    """A quantile of the elements that are not NaN, options as of `quantile`.

    It is NaN where all of them are; NaN has a gradient of 0.

    Raises:
        ArgumentError: q is out of range, there is no such method, or it takes no weights.
        DTypeError: `x` is complex.
        ShapeError: The weights do not fit.
        AxisError: There is no such axis.

    >>> gt.nanquantile(np.array([3.0, 1.0, np.nan]), 0.25)
    np.float64(1.5)
    """
    refuse("nanquantile", {"out": out})
    share = as_array(q)
    return quantile_of("nanquantile", x, share, axis, method, keepdims, weights, True, _is_weak(q))


def nanpercentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike = None,
) -> Array:
    """A `nanquantile` with `q` from 0 to 100, options as of `quantile`.

    Raises:
        ArgumentError: q is out of range, there is no such method, or it takes no weights.
        DTypeError: `x` is complex.
        ShapeError: The weights do not fit.
        AxisError: There is no such axis.

    >>> gt.nanpercentile(np.array([3.0, 1.0, np.nan]), 25)
    np.float64(1.5)
    """
    refuse("nanpercentile", {"out": out})
    share = as_array(q) / 100
    return quantile_of(
        "nanpercentile", x, share, axis, method, keepdims, weights, True, _is_weak(q)
    )
