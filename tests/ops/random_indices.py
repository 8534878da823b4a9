"""Random arrays with anything NumPy takes as an index of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def integer_arrays(draw: Any, size: int, count: int) -> list[Any]:
    """Integer arrays that broadcast against each other, negative numbers included."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=2, max_side=3))
    if size == 0:
        return [np.zeros((0,), np.intp)] * count
    numbers = st.integers(-size, size - 1)
    return [draw(hnp.arrays(np.intp, shape, elements=numbers)) for shape in shapes.input_shapes]


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """Anything NumPy takes as an index of an array of this shape."""
    first = draw(st.integers(0, len(shape)))
    last = draw(st.integers(first, len(shape)))
    ellipsis = last < len(shape) or draw(st.booleans())
    axes = shape[:first] + shape[last:]  # an Ellipsis stands for those between
    kinds = [draw(st.sampled_from(["slice", "slice", "int", "array", "list"])) for _ in axes]
    sizes = [n for n, kind in zip(axes, kinds, strict=True) if kind in ("array", "list")]
    arrays = iter(draw(integer_arrays(min(sizes), len(sizes))) if sizes else [])
    items: list[Any] = []
    for n, kind in zip(axes, kinds, strict=True):
        if kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
        elif kind in ("array", "list"):
            array = next(arrays)
            items.append(array.tolist() if kind == "list" and array.ndim else array)
        else:
            items.append(draw(st.slices(n)))
    if ellipsis:
        items.insert(first, ...)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    if len(items) == 1 and draw(st.booleans()):
        return items[0]
    return tuple(items)


@st.composite
def masks(draw: Any, shape: tuple[int, ...]) -> Any:
    """A mask over some neighbouring axes, between slices, perhaps beside an integer."""
    before = draw(st.integers(0, len(shape)))
    after = draw(st.integers(before, len(shape)))
    mask = draw(hnp.arrays(np.bool_, shape[before:after]))
    items: list[Any] = [draw(st.slices(n)) for n in shape[:before]]
    items.append(mask)
    if after < len(shape) and shape[after] and draw(st.booleans()):
        items.append(draw(st.integers(0, shape[after] - 1)))
    return tuple(items)


@st.composite
def indexed_arrays(draw: Any) -> tuple[Any, Any]:
    """An array with an index of it."""
    shape = draw(SHAPES)
    x = np.sqrt(np.arange(1, 1 + math.prod(shape))).reshape(shape)
    return x, draw(st.one_of(indices(shape), masks(shape)))


def weights(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))
