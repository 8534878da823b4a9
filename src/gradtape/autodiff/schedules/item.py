"""The lists that planners work on, and how long results live in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.float64]  # exact up to 2⁵³


class Item(NamedTuple):
    """One op of a list in topological order; others are named by their positions in the list.

    Attributes:
        cost: Estimated time of running it.
        size: Bytes of its result.
        inputs: Items whose results it reads when it runs. What is not in the list is always there.
        reads: Items, possibly itself, whose results its backward rule reads. None come after it.
        free: Whether its result is a view: it takes no memory of its own, but keeps that of its
            inputs alive.
    """

    cost: float
    size: int
    inputs: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    free: bool = False

    @property
    def bytes(self) -> int:
        """The memory that its result takes."""
        return 0 if self.free else self.size


class Planner(Protocol):
    """Decides which results of a run to retain for the backward visits that follow."""

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """The positions of the results to retain when the whole list is run now.

        Args:
            items: The list. Afterwards its items are visited from the last to the first.
            room: Bytes for all results of the list, those included that are dropped again.
        """
        ...


def with_bases(items: Sequence[Item], positions: Iterable[int]) -> frozenset[int]:
    """Positions and, for views among them, those of the results they are views of."""
    found = set(positions)
    pending = [p for p in found if items[p].free]
    while pending:
        for base in items[pending.pop()].inputs:
            if base not in found:
                found.add(base)
                if items[base].free:
                    pending.append(base)
    return frozenset(found)


def with_views(items: Sequence[Item], positions: Iterable[int]) -> frozenset[int]:
    """Positions with their bases, and all views of these: they take no memory."""
    found = set(with_bases(items, positions))
    for p, item in enumerate(items):
        if item.free and found.issuperset(item.inputs):
            found.add(p)
    return frozenset(found)


def needed(items: Sequence[Item]) -> frozenset[int]:
    """Results that some backward rule reads; with all of them retained nothing is run again."""
    return with_bases(items, {r for item in items for r in item.reads})


def last_uses(items: Sequence[Item], *, by_rules: bool = False) -> list[int]:
    """The last item that reads each result when it runs; the result's own position if none does.

    Args:
        items: The list.
        by_rules: Whether items also count that read it in their backward rules.
    """
    last = list(range(len(items)))
    for p, item in enumerate(items):
        for q in item.inputs:
            last[q] = p
        if by_rules:
            for q in item.reads:
                last[q] = p
    for p in range(len(items) - 1, -1, -1):
        if items[p].free:
            for q in items[p].inputs:
                last[q] = max(last[q], last[p])
    return last


def sizes(items: Sequence[Item]) -> Bytes:
    """The memory that each result takes."""
    return np.array([item.bytes for item in items], np.float64)


def crossing(items: Sequence[Item], cut: int, last: Sequence[int]) -> list[int]:
    """Results before a cut that are read after it; `last` is `last_uses(items, by_rules=True)`."""
    return [p for p in range(cut) if last[p] >= cut]


def crossing_bytes(items: Sequence[Item], last: Sequence[int]) -> Bytes:
    """The bytes of `crossing` for each cut from 0 to the number of items."""
    change = np.zeros(len(items) + 2)
    size = sizes(items)
    np.add.at(change, np.arange(1, len(items) + 1), size)
    np.add.at(change, np.asarray(last, np.intp) + 1, -size)
    return np.asarray(np.cumsum(change)[: len(items) + 1])


def transients(items: Sequence[Item], plan: Collection[int]) -> Bytes:
    """Bytes in memory while each item of a list runs, without those of retained results."""
    size = sizes(items)
    if plan:
        size[np.fromiter(plan, np.intp, len(plan))] = 0
    change = np.zeros(len(items) + 1)
    change[:-1] = size
    np.add.at(change, np.asarray(last_uses(items), np.intp) + 1, -size)
    return np.asarray(np.cumsum(change)[:-1])


def run_peak(items: Sequence[Item], plan: Collection[int]) -> int:
    """The most memory that a run of the list takes while it retains what a plan says."""
    if not items:
        return 0
    kept = np.zeros(len(items))
    if plan:
        where = np.fromiter(plan, np.intp, len(plan))
        kept[where] = sizes(items)[where]
    return int(np.max(np.cumsum(kept) + transients(items, plan)))
