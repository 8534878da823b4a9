"""How much room a plan takes at least, without playing it through."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gradtape.autodiff.schedules.item import (
    Bytes,
    Item,
    last_uses,
    run_peak,
    sizes,
    transients,
    with_bases,
)


def minimum(items: Sequence[Item]) -> int:
    """The least room for visiting a list: the peak if nothing is ever retained.

    Args:
        items: The list.

    Returns:
        Bytes. With that much room `Auto` finds a plan; it is slow, as all is run again and again.

    >>> minimum([Item(1.0, 8, (i - 1,) if i else (), (i,)) for i in range(9)])
    16
    """
    return least_peak(items, frozenset())


def least_peak(items: Sequence[Item], plan: Collection[int]) -> int:
    """A bound for the peak of a list, if later replays of its gaps retain nothing.

    A replay for a visit takes what is retained up to there, what the first run had in memory over
    the same stretch, and the results for the visit that were dropped earlier in that run. Takes
    O(n log n).

    Args:
        items: The list.
        plan: What the run retains, views with their bases.
    """
    if not items:
        return 0
    kept = frozenset(plan)
    size, last = sizes(items), last_uses(items)
    running = transients(items, kept)
    start = _starts(items, kept)
    held = np.zeros(len(items))
    if kept:
        where = np.fromiter(kept, np.intp, len(kept))
        held[where] = size[where]
        running[where] = 0
    held = np.cumsum(held)
    most = _RangeMaximum(running)
    peak = float(run_peak(items, kept))
    for visit, item in enumerate(items):
        wanted = [r for r in item.reads if r not in kept]
        if not wanted:
            continue
        wanted = sorted(with_bases(items, wanted) - kept, key=last.__getitem__)
        end = len(items) - 1 if visit == len(items) - 1 else max(wanted)
        here = most(min(start[r] for r in wanted), end)
        dropped = 0.0
        for r in wanted:
            if last[r] < end:
                dropped += size[r]
                here = max(here, dropped + most(last[r] + 1, end))
        peak = max(peak, held[visit] + here)
    return int(peak)


def _starts(items: Sequence[Item], kept: Collection[int]) -> list[int]:
    """The first item that has to be run to have each result."""
    start = list(range(len(items)))
    for p, item in enumerate(items):
        for q in item.inputs:
            if q not in kept and start[q] < start[p]:
                start[p] = start[q]
    return start


class _RangeMaximum:
    """The maximum of any stretch of an array, in constant time: a table for powers of two."""

    def __init__(self, values: Bytes) -> None:
        self._table = [values]
        width = 1
        while 2 * width <= len(values):
            row = self._table[-1]
            self._table.append(np.maximum(row[:-width], row[width:]))
            width *= 2

    def __call__(self, first: int, last: int) -> float:
        level = (last - first + 1).bit_length() - 1
        row = self._table[level]
        return max(float(row[first]), float(row[last + 1 - (1 << level)]))
