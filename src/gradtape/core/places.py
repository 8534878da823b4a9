"""Basic indices one after the other as one: `x[a][b]` is `x[composed(x.shape, [a, b])]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Per axis of the array: the number or the numbers that are taken; None for an axis that is new.
_Entry = int | range | None
_FULL = slice(None)


def composed(shape: Sequence[int], indices: Sequence[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The basic index that takes what several take, each from what the one before has taken.

    Args:
        shape: The shape of what the first one is for.
        indices: Integers, slices, None and Ellipsis, in bounds.

    Returns:
        None if nothing is taken, where no index of the array says so.
    """
    entries: list[_Entry] = [range(size) for size in shape]
    for index in indices:
        narrowed = _narrowed(entries, index)
        if narrowed is None:
            return None
        entries = narrowed
    return tuple(_slice(entry) if isinstance(entry, range) else entry for entry in entries)


def _narrowed(entries: list[_Entry], index: tuple[Any, ...]) -> list[_Entry] | None:
    items = iter(_for_all(index, sum(type(entry) is not int for entry in entries)))
    result: list[_Entry] = []
    for entry in entries:
        if type(entry) is int:
            result.append(entry)
            continue
        item = next(items)
        while item is None:
            result.append(None)
            item = next(items)
        if isinstance(entry, range):
            result.append(entry[item])
        elif isinstance(item, slice):
            if not range(1)[item]:
                return None
            result.append(None)
    return result + list(items)


def _for_all(index: tuple[Any, ...], count: int) -> list[Any]:
    """The items of an index with one for each of `count` axes, and None for new ones."""
    used = sum(item is not None and item is not Ellipsis for item in index)
    rest = [_FULL] * (count - used)
    for place, item in enumerate(index):
        if item is Ellipsis:
            return [*index[:place], *rest, *index[place + 1 :]]
    return [*index, *rest]


def _slice(taken: range) -> slice:
    if not taken:
        return slice(0, 0)
    stop = taken[-1] + (1 if taken.step > 0 else -1)
    return slice(taken.start, None if stop < 0 else stop, taken.step)
