"""Putting items together to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError, a_type


def collate(items: Sequence[Any]) -> Any:
    """Put items together to a batch: arrays and numbers are stacked, strings are listed.

    Args:
        items: Arrays, tensors, numbers, strings, or containers of them that are all alike.

    Returns:
        The containers of an item, with arrays that have one more axis, the first.

    Raises:
        ArgumentError: A tensor requires a gradient.
        DTypeError: Some items have text where others have numbers, or something is neither.
        ShapeError: Arrays differ in shape, or containers in structure.

    >>> gt.data.collate([{"x": np.zeros(2), "label": 3}, {"x": np.ones(2), "label": 4}])
    {'x': array([[0., 0.],
           [1., 1.]]), 'label': array([3, 4])}
    """
    if all(item is None for item in items):
        raise DTypeError(
            "collate: got None for each item of the batch, expected arrays, numbers or text; is a "
            "return missing in __getitem__?"
        )
    flat = [containers.flatten(item) for item in items]
    structure = flat[0][1]
    for number, (_, other) in enumerate(flat):
        if other != structure:
            raise ShapeError(
                f"collate: items 0 and {number} of the batch differ, {_described(items[0])} and "
                f"{_described(items[number])}; give the loader a collate= of your own"
            )
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return containers.unflatten(structure, [_stacked(column) for column in columns])


def _described(item: Any) -> str:
    """An item in words: "a dict of 'x', 'y'", "a tuple of 2"."""
    if isinstance(item, dict):
        return f"a dict of {', '.join(map(repr, item))}"
    return f"{a_type(item)} of {len(item)}" if isinstance(item, list | tuple) else a_type(item)


def _stacked(column: Sequence[Any]) -> Any:
    first = column[0]
    texts = [isinstance(one, str | bytes) for one in column]
    if all(texts):
        return list(column)
    if any(texts):
        other = texts.index(not texts[0])
        raise DTypeError(
            f"collate: items 0 and {other} of the batch are {a_type(first)} and "
            f"{a_type(column[other])}, expected arrays or numbers in all of them, or text"
        )
    if isinstance(first, Tensor):
        if any(one.requires_grad for one in column):
            raise ArgumentError(
                "collate: an item has a tensor that requires a gradient, which the batch would "
                "not pass on; use detach(), or give the loader a collate= of your own"
            )
        return Tensor(_stacked([one.detach().numpy() for one in column]))
    arrays = [np.asarray(one) for one in column]
    for number, array in enumerate(arrays):
        if array.dtype.kind == "O":
            raise DTypeError(
                f"collate: got {a_type(column[number])} in item {number} of the batch, expected "
                "arrays, numbers or text; give the loader a collate= of your own"
            )
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"collate: items 0 and {number} of the batch have shapes {arrays[0].shape} and "
                f"{array.shape}, expected equal ones; pad them, or give the loader a collate= of "
                "your own"
            )
    return np.stack(arrays)
