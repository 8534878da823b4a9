"""Padding in the words of `torch.nn.functional.pad`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice
from gradtape.ops.nn.resample import Map, resample
from gradtape.ops.pad import crop, pad_constant
from gradtape.ops.pad_modes import pad as pad_of_numpy
from gradtape.typing import Array, ArrayLike


def pad(
    x: ArrayLike, /, pad: Sequence[int], mode: str = "constant", value: ArrayLike | None = None
) -> Array:
    """The array with elements added at the ends of its last axes.

    `gt.pad` is the same in the words of NumPy.

    Args:
        x: What to pad.
        pad: How many before and after the last axis, then the one before it, and so on; in the
            constant mode, negative numbers cut off.
        mode: What to add: "constant", "reflect" (mirrored without the end), "replicate" (the end),
            "circular" (from the other end).
        value: The constant; None is 0. The result has a gradient by it if it is a tensor.

    Raises:
        ShapeError: There are fewer axes, or an axis is too short for what is added.
        ArgumentError: `pad` is not pairs of integers, or the mode is unknown.

    >>> gt.nn.pad(np.array([[1.0, 2.0, 3.0]]), (1, 2), mode="reflect")
    array([[2., 1., 2., 3., 2., 1.]])
    """
    x = as_array(x)
    pairs = _pairs(pad)
    if len(pairs) > len(x.shape):
        raise ShapeError(
            f"pad: got {len(pairs)} pairs for shape {x.shape}, expected at most one for each axis"
        )
    check_choice("pad", ("constant", "reflect", "replicate", "circular"), mode=mode)
    if mode == "constant":
        return _constant(x, pairs, 0 if value is None else value)
    if value is not None:
        raise ArgumentError(f"pad: got value={value} with mode {mode!r}; leave it out")
    first = len(x.shape) - len(pairs)
    sizes = x.shape[first:]
    maps = tuple(_map(mode, n, *pair) for n, pair in zip(sizes, pairs, strict=True))
    return resample(x, maps=maps, transposed=False)


def _pairs(numbers: Any) -> list[tuple[int, int]]:
    """How much to add before and after each of the last axes, in the order of the axes."""
    try:
        values = [operator.index(number) for number in numbers]
    except TypeError:
        values = [0]
    if len(values) % 2:
        raise ArgumentError(f"pad: got pad={numbers!r}, expected pairs of integers")
    return list(zip(values[::2], values[1::2], strict=True))[::-1]


def _constant(x: Array, pairs: list[tuple[int, int]], value: Any) -> Array:
    every = [(0, 0)] * (len(x.shape) - len(pairs)) + pairs
    cut = tuple((max(-before, 0), max(-after, 0)) for before, after in every)
    added = tuple((max(before, 0), max(after, 0)) for before, after in every)
    left = zip(x.shape, cut, strict=True)
    if any(before + after > n for n, (before, after) in left):
        raise ShapeError(f"pad: got pad {pairs} for shape {x.shape}; it cuts off more than all")
    if any(pair != (0, 0) for pair in cut):
        x = crop(x, widths=cut)
    if isinstance(value, Tensor):
        return pad_of_numpy(x, added, constant_values=value)
    return pad_constant(x, widths=added, fill=value)


def _map(mode: str, size: int, before: int, after: int) -> Map | None:
    if before == after == 0:
        return None
    most = size - 1 if mode == "reflect" else size
    # The end can be repeated any number of times, if there is one.
    too_many = size == 0 if mode == "replicate" else max(before, after) > most
    if too_many or min(before, after) < 0:
        raise ShapeError(
            f"pad: got ({before}, {after}) for an axis of size {size} with mode {mode!r}, expected "
            f"numbers from 0{'' if mode == 'replicate' else f' to {most}'}"
        )
    return Map(mode, size, before + size + after, before)
