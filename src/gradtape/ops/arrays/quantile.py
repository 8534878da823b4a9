"""Quantiles and percentiles: the elements at places of the sorted array, or between them.

The places depend on the number of elements and on q.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.define import elementwise
from gradtape.core.lowering import Composite
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, normalize_axes, real_only
from gradtape.ops.arrays.known import values_if_known
from gradtape.ops.arrays.order_statistics import at_places, count_numbers, last_of, rows_of, unrows
from gradtape.ops.arrays.search import search_lanes
from gradtape.ops.arrays.sort import INDEX, argsort
from gradtape.ops.arrays.weights import weights_beside
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.comparison import isnan
from gradtape.ops.cumulative import cumsum
from gradtape.ops.family import member
from gradtape.ops.gather import take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.like import full_like
from gradtape.ops.reduce import NO_AXIS, REDUCTIONS
from gradtape.ops.rounding import ceil, floor, rint
from gradtape.ops.select import clip, maximum, where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

# (alpha, beta) of the place n·q + alpha + q·(1 − alpha − beta) − 1 between two elements.
_BETWEEN = {
    "linear": (1.0, 1.0),  # which is (n − 1)·q
    "interpolated_inverted_cdf": (0.0, 1.0),
    "averaged_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
# Methods that go to an element, or half-way to the next one.
_STEPS = ("averaged_inverted_cdf", "midpoint")
_SINGLE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_METHODS = (*_BETWEEN, "midpoint", *_SINGLE)


# ---- places -------------------------------------------------------------------------------------


def _blend_composition(x: Any, y: Any, share: Any, choose: Any = where) -> Any:
    change = y - x
    near = choose(share >= 0.5, y - change * (1 - share), x + change * share)
    # The difference of infinities is NaN, so it is not used.
    return choose((share <= 0) | (x == y), x, choose(share >= 1, y, near))


def _blend_forward(xp: Any, x: Any, y: Any, share: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return _blend_composition(x, y, share, xp.where)


# d(x + s·(y − x)) = (1 − s)·dx + s·dy + (y − x)·ds
@elementwise(
    _blend_forward,
    lambda ct, _out, _x, _y, share: ct * (1 - share),
    lambda ct, _out, _x, _y, share: ct * share,
    lambda ct, _out, x, y, _share: ct * (y - x),
    lower=Composite(_blend_composition),
)
def blend(x: ArrayLike, y: ArrayLike, share: ArrayLike, /) -> Array:
    """The number at a share of the way from `x` to `y`, exact at both ends."""


def _single_place(method: str, n: Any, q: Any) -> Any:
    """Methods that choose one element: its place."""
    if method in ("lower", "higher", "nearest"):
        return {"lower": floor, "higher": ceil, "nearest": rint}[method]((n - 1) * q)
    if method == "inverted_cdf":
        return maximum(ceil(n * q - 1), 0)
    # The nearest one; of two, the even one (counted from 1).
    place = n * q - 1.5
    below = floor(place)
    stay = (place == below) & (below % 2 == 1)
    return maximum(where(stay, below, below + 1), 0)


def _between_places(method: str, n: Any, q: Any) -> tuple[Any, Any]:
    """Methods that go between two elements: the first one, and the share of the second."""
    if method in ("linear", "midpoint"):
        place = (n - 1) * q
    else:
        alpha, beta = _BETWEEN[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    below = floor(place)
    first = clip(below, 0, maximum(n - 2, 0))
    if method not in _STEPS:
        return first, clip(place - first, 0, 1)
    whole = place == below
    share = where(whole, 0.0, 0.5) if method == "midpoint" else where(whole, 0.5, 1.0)
    share = where(place < 0, 0.0, where(place >= n - 1, 1.0, share))
    return first, astype(share, place.dtype, copy=False)


def _weighted_place(rows: Any, weights: Any, q: Any, ignore_nan: bool) -> Any:
    """The place of the first element at which a share q of the weights is reached."""
    weights = broadcast_to(weights, rows.shape)
    if ignore_nan:
        weights = where(isnan(rows), 0, weights)
    reached = cumsum(take_along_axis(weights, argsort(rows), -1), -1, np.float64)
    reached = reached / last_of(reached)
    if q.dtype.kind == "f":
        reached = astype(reached, q.dtype, copy=False)
    # Elements without weight at the start are skipped.
    reached = where(reached == 0, -1.0, reached)
    sought = broadcast_to(q, (*rows.shape[:-1], *q.shape))
    place = search_lanes(reached, sought, side="left", lanes=len(rows.shape) - 1)
    return clip(place, 0, rows.shape[-1] - 1)


def _quantile_of_rows(
    rows: Any, q: Any, method: str, weights: Any, weak: bool, ignore_nan: bool
) -> Any:
    """The quantiles of every row, along the last axis."""
    n = count_numbers(rows) if ignore_nan else np.array([rows.shape[-1]])
    if q.dtype.kind == "f":
        n = astype(n, q.dtype)
    if weights is not None:
        place = stop_gradient(_weighted_place(rows, weights, q, ignore_nan))
        return at_places(rows, place, ignore_nan)
    if method in _SINGLE or (method == "linear" and q.dtype.kind in "iu"):
        place = q * (n - 1) if method == "linear" else _single_place(method, n, q)
        return at_places(rows, astype(maximum(place, 0), INDEX), ignore_nan)
    first, share = _between_places(method, n, q)
    second = clip(first + 1, 0, maximum(n - 1, 0))
    pairs = at_places(rows, astype(concatenate([first, second], -1), INDEX), ignore_nan)
    count = q.shape[0]
    if weak and rows.dtype.kind in "fV":
        share = astype(share, rows.dtype, copy=False)
    return blend(pairs[..., :count], pairs[..., count:], share)


def _check(name: str, x: Any, q: Any, method: str, weights: Any) -> None:
    real_only(name, x)
    check_choice(name, _METHODS, method=method)
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(
            f'{name}: got weights= and method={method!r}, expected method="inverted_cdf"'
        )
    check_axes(name, q, most=2, what="q")
    shares = values_if_known(q)
    if shares is not None and not ((shares >= 0) & (shares <= 1)).all():
        whole = "100" if "percentile" in name else "1"
        raise ArgumentError(f"{name}: got q outside of the range, expected q from 0 to {whole}")
    if not isinstance(weights, Tensor | None) and not (np.asarray(weights) >= 0).all():
        raise ArgumentError(f"{name}: got negative weights, expected weights from 0 on")


# ---- public functions ---------------------------------------------------------------------------


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
    x, weak, q = as_array(x), type(q) in (int, float), as_array(q)
    q = q / 100 if name.endswith("percentile") else q
    ignore_nan = name.startswith("nan") and x.dtype.kind in "fV"
    _check(name, x, q, method, weights)
    axes = normalize_axes(axis, len(x.shape), name)
    rows, flat = rows_of(x, axes), reshape(q, (-1,))
    if rows.shape[-1] == 0:
        if not ignore_nan:
            raise ShapeError(f"{name}: got shape {x.shape}, expected elements along axes {axes}")
        nothing = full_like(x, math.nan, shape=(*rows.shape[:-1], *flat.shape))
        return unrows(nothing, x.shape, axes, q.shape, keepdims)
    if weights is not None:
        weights = weights_beside(name, weights, x, None if axis is None else axes)
        weights = rows_of(broadcast_to(weights, x.shape), axes)
    inside = (flat >= 0) & (flat <= 1)  # may only be known when the function runs
    flat = where(inside, flat, 0) if isinstance(q, Tensor) else flat
    out = _quantile_of_rows(rows, flat, method, weights, weak, ignore_nan)
    if ignore_nan:
        out = where(count_numbers(rows) == 0, math.nan, out)
    if isinstance(q, Tensor) and out.dtype.kind in "fV":
        out = where(inside, out, math.nan)
    return unrows(out, x.shape, axes, q.shape, keepdims)


_ALL, _NUMBERS = "elements", "elements that are not NaN"
quantile = member("quantile", _quantile, what=_ALL, whole="1")
percentile = member("percentile", _quantile, what=_ALL, whole="100")
nanquantile = member("nanquantile", _quantile, what=_NUMBERS, whole="1")
nanpercentile = member("nanpercentile", _quantile, what=_NUMBERS, whole="100")
