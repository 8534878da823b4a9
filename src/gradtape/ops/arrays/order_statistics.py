"""Medians and quantiles: the elements at places of the sorted array, or between them.

The places depend on the number of elements and on q; the elements at them are found by a
partition, or by a full sort where the places differ from row to row. Rows are along the last
axis. A row with a NaN gives NaN, unless NaN is left out.
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
from gradtape.ops.arrays.search import search_lanes
from gradtape.ops.arrays.select_k import argpartition_last
from gradtape.ops.arrays.sort import INDEX, argsort
from gradtape.ops.arrays.weights import weights_beside
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.comparison import isnan, logical_not
from gradtape.ops.cumulative import cumsum
from gradtape.ops.gather import take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.like import full_like
from gradtape.ops.reduce import Axes, keep_axes, reduced_shape, sum as sum_of
from gradtape.ops.rounding import ceil, floor, rint
from gradtape.ops.select import clip, maximum, where
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.typing import Array, ArrayLike, Axis

# (alpha, beta) of the place n·q + alpha + q·(1 − alpha − beta) − 1 between two elements.
_BETWEEN = {
    "linear": (1.0, 1.0),  # which is (n − 1)·q
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_STEPS = ("averaged_inverted_cdf", "midpoint")
_SINGLE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_METHODS = (*_BETWEEN, *_STEPS, *_SINGLE)


# ---- rows ---------------------------------------------------------------------------------------


def rows_of(x: Any, axes: Axes) -> Any:
    """The axes as one last axis."""
    kept = reduced_shape(x.shape, axes, False)
    moved = moveaxis(x, axes, tuple(range(-len(axes), 0)))
    return reshape(moved, (*kept, math.prod(x.shape[axis] for axis in axes)))


def unrows(values: Any, shape: tuple[int, ...], axes: Axes, q: Any, keepdims: bool) -> Any:
    """Results for each of q, along the last axis of rows, reshaped so that the axes of q lead."""
    rest = keep_axes(shape, axes) if keepdims else reduced_shape(shape, axes, False)
    out = reshape(moveaxis(values, -1, 0), (*q, *rest))
    return out[()] if isinstance(out, np.ndarray) else out


def _last(x: Any) -> Any:
    return x[..., x.shape[-1] - 1 :]


def count_numbers(x: Any) -> Any:
    """How many elements of each row are not NaN, along a last axis of size 1."""
    return sum_of(logical_not(isnan(x)), -1, keepdims=True)


def at_places(x: Any, places: Any, ignore_nan: bool) -> Any:
    """The elements at places of the sorted rows; places may differ from row to row."""
    if isinstance(places, np.ndarray) and places.ndim == 1:
        last = x.shape[-1] - 1
        order = argpartition_last(x, kth=tuple(int(k) for k in np.unique([*places, last])))
    else:
        order = argsort(x)
    places = reshape(places, (1,) * (len(x.shape) - len(places.shape)) + places.shape)
    chosen = take_along_axis(order, places, -1)
    if x.dtype.kind in "fcV" and not ignore_nan:
        largest = _last(order)
        chosen = where(isnan(take_along_axis(x, largest, -1)), largest, chosen)
    return take_along_axis(x, chosen, -1)


# ---- quantiles ----------------------------------------------------------------------------------


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
    elif method == "averaged_inverted_cdf":
        place = n * q - 1
    else:
        alpha, beta = _BETWEEN[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    below = floor(place)
    first = clip(below, 0, maximum(n - 2, 0))
    if method in _BETWEEN:
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
    reached = reached / _last(reached)
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


def quantile_of(
    name: str, x: ArrayLike, q: Any, axis: Axis, method: str, keepdims: bool, weights: Any,
    ignore_nan: bool, weak: bool,
) -> Array:  # fmt: skip
    """The result of `quantile` and its relatives; `weak` if q was a Python number."""
    x = as_array(x)
    _check(name, x, q, method, weights)
    axes, ignore_nan = normalize_axes(axis, len(x.shape), name), ignore_nan and x.dtype.kind in "fV"
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
