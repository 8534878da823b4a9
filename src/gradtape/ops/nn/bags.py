"""Bags of embeddings: sums, means and maxima over several rows of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import general
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.gather import as_indices, take_along_axis
from gradtape.ops.index import getitem
from gradtape.ops.nn.embedding import add_rows, read_rows, row_number, table_of
from gradtape.ops.nn.known import known_values
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import clip, mask, where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike


def _winners_forward(xp: Any, rows: Any, starts: Any) -> Any:
    """The places of the largest elements of each bag, along axis −2; −1 for bags without rows."""
    if rows.ndim > 2:
        parts = [
            _winners_forward(xp, rows[k], starts[k] if starts.ndim > 1 else starts)
            for k in range(rows.shape[0])
        ]
        return xp.stack(parts)
    n, bags = rows.shape[0], starts.shape[0]
    filled = xp.append(starts[1:], n) > starts
    out = xp.full((bags, rows.shape[1]), -1, np.int64)
    if n and filled.any():
        begin = starts[filled]
        largest = xp.maximum.reduceat(rows, begin, axis=0)
        # A NaN is the largest of its bag.
        per_row = largest[xp.searchsorted(begin, xp.arange(n), side="right") - 1]
        hits = (rows == per_row) | (rows != rows)
        places = xp.where(hits, xp.arange(n)[:, None], n)
        out[filled] = xp.minimum.reduceat(places, begin, axis=0)
    return out


_winners = general(
    "bag_winners",
    _winners_forward,
    infer=lambda rows, starts: Aval(
        (*rows.shape[:-2], starts.shape[-1], rows.shape[-1]), np.dtype(np.int64)
    ),
)


def _starts(
    name: str, indices: Any, offsets: ArrayLike | None, include_last: bool
) -> tuple[Any, Any]:
    """All indices along one axis, and where in it each bag begins."""
    if len(indices.shape) == 2:
        if offsets is not None:
            raise ArgumentError(
                f"{name}: got offsets with rows that are bags; leave the offsets out"
            )
        bags, size = indices.shape
        return reshape(indices, (bags * size,)), np.arange(bags) * size
    if len(indices.shape) != 1 or offsets is None:
        raise ShapeError(
            f"{name}: got numbers of shape {indices.shape}, expected (bags, size), or one axis and "
            "offsets"
        )
    starts = as_indices(offsets, name)
    check_axes(name, starts, 1, what="offsets")
    _check_offsets(name, starts, indices.shape[0], include_last)
    return indices, getitem(starts, slice(0, -1)) if include_last else starts


def _check_offsets(name: str, offsets: Any, count: int, include_last: bool) -> None:
    """Raise for offsets at which bags cannot begin, if the values can be read yet."""
    raw = known_values(offsets)
    if raw is None or raw.shape != offsets.shape or not raw.size:
        return
    rising = raw[0] == 0 and bool((raw[1:] >= raw[:-1]).all())
    if not rising or (raw[-1] != count if include_last else raw[-1] > count):
        raise ArgumentError(
            f"{name}: got offsets {raw.tolist()} for {count} numbers, expected them in order, the "
            f"first at 0 and {'the last at' if include_last else 'all of them up to'} {count}"
        )


def embedding_bag(
    x: ArrayLike,
    /,
    weight: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    mode: str = "mean",
    per_sample_weights: ArrayLike | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """Sums, means or maxima of rows of a table, bag by bag.

    Args:
        x: The numbers of rows: of shape (bags, size), or along one axis with `offsets`.
        weight: The table.
        offsets: Where each bag begins, the first at 0.
        mode: "sum", "mean" or "max"; a bag without rows gives 0.
        per_sample_weights: The factor of each row, for "sum" only.
        include_last_offset: Whether the last of `offsets` is the end of the last bag.
        padding_idx: A row that does not count.

    Returns:
        An array of shape (bags, size of a row).

    Raises:
        IndexingError: There is no such row, or a number is not an integer.
        ShapeError: The shapes do not fit.
        ArgumentError: There is no such mode, options do not go together, or offsets are not in
            order.

    >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 8.0]])
    >>> gt.nn.embedding_bag(np.array([0, 1, 2]), table, np.array([0, 2]), mode="sum")
    array([[4., 6.],
           [5., 8.]])
    """
    name = "embedding_bag"
    weight = table_of(name, weight)
    check_choice(name, ("sum", "mean", "max"), mode=mode)
    given = as_indices(x, name)
    indices, starts = _starts(name, given, offsets, include_last_offset)
    skip = row_number(name, padding_idx, weight.shape[0])
    rows = read_rows(weight, indices, skip=skip)
    if per_sample_weights is not None:
        factors = as_array(per_sample_weights)
        if mode != "sum" or factors.shape != given.shape:
            raise ArgumentError(
                f"{name}: got weights of shape {factors.shape} and mode={mode!r}, expected "
                f'mode="sum" and shape {given.shape}'
            )
        rows = rows * reshape(factors, (*indices.shape, 1))
    valid = None if skip is None else indices != skip
    if mode == "max":
        return _largest(rows, starts, valid)
    return _summed(rows, starts, valid, mode == "mean")


def _summed(rows: Any, starts: Any, valid: Any, mean: bool) -> Any:
    n, bags = rows.shape[0], starts.shape[0]
    numbers = searchsorted(starts, np.arange(n), side="right") - 1
    out = add_rows(rows, numbers, count=bags, skip=None)
    if not mean:
        return out
    ones = np.ones(n, rows.dtype) if valid is None else astype(valid, rows.dtype)
    counts = add_rows(ones, numbers, count=bags, skip=None)
    return out / reshape(clip(counts, 1.0), (bags, 1))


def _largest(rows: Any, starts: Any, valid: Any) -> Any:
    if valid is not None:
        rows = where(reshape(valid, (*valid.shape, 1)), rows, -math.inf)
    if not rows.shape[0]:
        return sum_of(rows, 0, keepdims=True) + np.zeros((starts.shape[0], 1), rows.dtype)
    places = _winners(rows, starts)
    found = take_along_axis(rows, where(places < 0, 0, places), 0)
    return mask(found, (places >= 0) & (found != -math.inf))
