"""Finding elements in sorted arrays, and in sets of values. Nothing here has a derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core import promotion, scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import general
from gradtape.core.lowering import Elements, Reader
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import Batch, as_array, real_only
from gradtape.ops.arrays.sort import INDEX, comparable, sort
from gradtape.ops.checks import check_axes, check_choice, check_same_shape
from gradtape.ops.comparison import equal, logical_not, not_equal
from gradtape.ops.gather import take
from gradtape.ops.rearrange import flip
from gradtape.ops.select import minimum, where
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike

# ---- searchsorted -------------------------------------------------------------------------------


def _search_forward(xp: Any, a: Any, v: Any, side: str, lanes: int) -> Any:
    a, v = comparable(a), comparable(v)
    if not lanes:
        return xp.searchsorted(a, v, side)
    out = xp.empty(v.shape, INDEX)
    for lane in np.ndindex(a.shape[:lanes]):
        out[lane] = xp.searchsorted(a[lane], v[lane], side)
    return out


def _before(x: Scalar, y: Scalar) -> Scalar:
    """Whether x comes before y in sorted order, where NaN comes last."""
    before: Scalar = x < y
    if not scalar.is_float(x):
        return before
    return before | (scalar.isnan(y) & ~scalar.isnan(x))


def _search_element(i: Sequence[Any], a: Reader, v: Reader, side: str, lanes: int) -> Scalar:
    """A binary search in steps that are known, as the size of the array is."""
    n = a.aval.shape[-1]
    dtype = np.promote_types(a.aval.dtype, v.aval.dtype)
    sought = scalar.convert(v(*i), dtype)
    found = scalar.constant(0, promotion.INT64)
    for step in reversed([1 << k for k in range(n.bit_length())]):
        further = found + step
        inside = further <= n
        other = scalar.convert(a(*i[:lanes], further - 1, inside=inside), dtype)
        passed = _before(other, sought) if side == "left" else ~_before(sought, other)
        found = scalar.where(inside & passed, further, found)
    return found


def _batch_search(op: Op, axes: Any, args: Any, params: dict[str, Any]) -> Batch:
    (a, v), (a_axis, v_axis), lanes = args, axes, params["lanes"]
    if a_axis is None and not lanes:
        return call(op, args, params), v_axis
    size = a.shape[a_axis] if v_axis is None else v.shape[v_axis]
    a, v = (
        broadcast_to(x, (size, *np.shape(x))) if axis is None else move_batch_axis(x, axis)
        for x, axis in ((a, a_axis), (v, v_axis))
    )
    return call(op, (a, v), {**params, "lanes": lanes + 1}), 0


# The first `lanes` axes of both arrays number independent searches.
search_lanes = general(
    "searchsorted",
    _search_forward,
    infer=lambda a, v, side, lanes: Aval(v.shape, INDEX),
    batch=_batch_search,
    lower=Elements(_search_element),
)


def searchsorted(
    a: ArrayLike, v: ArrayLike, /, side: str = "left", sorter: ArrayLike = None
) -> Array:
    """Where elements would have to be put into a sorted array to keep it sorted.

    Args:
        a: The sorted array, of one axis.
        v: The elements to find a place for.
        side: The place before those that are equal ("left"), or after them ("right").
        sorter: The indices that sort `a`, if it is not sorted.

    Raises:
        ArgumentError: `side` is something else.
        ShapeError: `a` has not one axis.

    >>> gt.searchsorted(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0]))
    array([0, 1])
    """
    check_choice("searchsorted", ("left", "right"), side=side)
    a, v = as_array(a), as_array(v)
    check_axes("searchsorted", a, 1, what="a", instead="use gt.vmap")
    if sorter is not None:
        sorter = as_array(sorter)
        check_same_shape("searchsorted", sorter=sorter, a=a)
        a = take(a, sorter)
    return search_lanes(a, v, side=side, lanes=0)


def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Array:
    """The numbers of the bins in which elements lie; bin i is from `bins[i - 1]` to `bins[i]`.

    Args:
        x: The elements.
        bins: Where the bins end, in ascending or descending order.
        right: Whether a bin holds its upper end, and not its lower one.

    Raises:
        ShapeError: `bins` has not one axis.
        ArgumentError: `bins` is in no order.
        DTypeError: The elements are complex.

    >>> gt.digitize(np.array([0.5, 1.5, 9.0]), np.array([0.0, 1.0, 2.0]))
    array([1, 2, 3])
    """
    x, bins = real_only("digitize", as_array(x)), as_array(bins)
    check_axes("digitize", bins, 1, what="bins")
    side = "left" if right else "right"
    if isinstance(bins, np.ndarray):
        if (bins[1:] >= bins[:-1]).all():
            return searchsorted(bins, x, side)
        if (bins[1:] <= bins[:-1]).all():
            return bins.size - searchsorted(bins[::-1], x, side)
        raise ArgumentError("digitize: got bins in no order, expected ascending or descending ones")
    ascending = searchsorted(bins, x, side)
    if bins.shape[0] < 2:
        return ascending
    # The order may only be known when the function runs.
    descending = bins.shape[0] - searchsorted(flip(bins), x, side)
    return where(bins[0] <= bins[-1], ascending, descending)


# ---- isin ---------------------------------------------------------------------------------------


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    /,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Array:
    """Whether each element is among others; NaN is among none.

    Args:
        element: The elements to look for, in an array of any shape.
        test_elements: The others.
        assume_unique: Whether no element repeats; has no effect.
        invert: Whether to return the opposite.
        kind: NumPy's name for a way of searching, "sort" or "table"; has no effect.

    Raises:
        ArgumentError: `kind` is something else.

    >>> gt.isin(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0]))
    array([ True, False,  True])
    """
    check_choice("isin", (None, "sort", "table"), kind=kind)
    element, others = as_array(element), sort(as_array(test_elements), axis=None)
    n = others.shape[0]
    if n == 0:
        nowhere = not_equal(element, element) & False
        return logical_not(nowhere) if invert else nowhere
    place = minimum(searchsorted(others, element), n - 1)
    return (not_equal if invert else equal)(take(others, place), element)
