"""The elements at places of the sorted array, which medians and quantiles are made of.

They are found by a partition, or by a full sort where the places differ from row to row. Rows are
along the last axis. A row with a NaN gives NaN, unless NaN is left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.ops.arrays.select_k import argpartition_last
from gradtape.ops.arrays.sort import argsort
from gradtape.ops.comparison import isnan, logical_not
from gradtape.ops.gather import take_along_axis
from gradtape.ops.reduce import Axes, keep_axes, reduced_shape, sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import moveaxis, reshape


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


def last_of(x: Any) -> Any:
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
        largest = last_of(order)
        chosen = where(isnan(take_along_axis(x, largest, -1)), largest, chosen)
    return take_along_axis(x, chosen, -1)
