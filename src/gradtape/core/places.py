"""Several basic indices combined into one: `x[a][b]` is `x[composed(x.shape, [a, b])]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Per axis of the array: the position or positions taken; None for a new axis.
_Entry = int | range | None
_FULL = slice(None)


def composed(shape: Sequence[int], indices: Sequence[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The one basic index equivalent to applying several in turn.

    Args:
        shape: The shape of the array that the first index applies to.
        indices: Integers, slices, None and Ellipsis, in bounds.

    Returns:
        None if nothing is taken and no index of the array can express that.
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
    """The items of an index expanded to one for each of `count` axes, and None for new axes."""
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
