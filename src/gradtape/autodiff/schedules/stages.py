"""A list as a chain of stages, with all that the dynamic programme asks of it.

A stage is a stretch of the list. Between stages, what crosses the cut is retained or not as a
whole. Inside a stage that is kept, cheap results may be dropped all the same: its levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gradtape.autodiff.schedules.item import (
    Bytes,
    Item,
    crossing_bytes,
    last_uses,
    needed,
    run_peak,
    sizes,
)
from gradtape.autodiff.schedules.worth import levels as dropped_at_levels, recomputation_costs

# A cut is taken if what crosses it is at most so many times what crosses the best cut near by.
_TOLERANCE = 1.25


class Level(NamedTuple):
    """One way of keeping a stage.

    Attributes:
        kept: What it retains, with all that crosses the end of the stage.
        bytes: The bytes of it.
        again: The cost of having the rest again when the stage is visited.
        need: The bytes to run the stage so, and to visit it.
    """

    kept: frozenset[int]
    bytes: float
    again: float
    need: float


@dataclass(frozen=True, slots=True)
class Stages:
    """A chain of L stages; in states of the programme, all that crosses the first cut is held.

    Attributes:
        cuts: L + 1 positions, from 0 to the number of items.
        last: The last item that reads each result, in a rule or when it runs.
        cost: The cost of running each stage.
        inner: The cost of running it when all that crosses its end is there.
        crossing: `[s, e]`: bytes from stages s … e−1 that cross the cut before stage e.
        running: `[s, k]`: the peak of running stage k, without results from before stage s.
        held: `[s, t]`: bytes of `crossing[s, t + 1]` that are still there when a visit of stage t,
            or one after it, first asks for a result that is not.
        levels: The levels of each stage.
    """

    cuts: list[int]
    last: list[int]
    cost: Bytes
    inner: Bytes
    crossing: Bytes
    running: Bytes
    held: Bytes
    levels: list[list[Level]]

    def crossing_results(self, first: int, end: int) -> list[int]:
        """The results of stages first … end−1 that cross the cut before stage `end`."""
        cut = self.cuts[end]
        return [p for p in range(self.cuts[first], cut) if self.last[p] >= cut]


def every_cut(items: Sequence[Item], most: int) -> list[int]:
    """Cuts between groups of about equal cost and size; between all items if they are few."""
    if len(items) <= most:
        return list(range(len(items) + 1))
    size = sizes(items)
    cost = np.array([item.cost for item in items])
    share = 0.5 + size / (size.mean() or 1) + cost / (cost.mean() or 1)
    places = np.searchsorted(np.cumsum(share), np.linspace(0, share.sum(), most + 1)[1:-1])
    return [0, *np.unique(np.clip(places, 1, len(items) - 1)).tolist(), len(items)]


def narrow_cuts(items: Sequence[Item], most: int) -> list[int]:
    """Cuts that little crosses, compared with others near by."""
    if len(items) < 2:
        return [0, len(items)]
    crossing = crossing_bytes(items, last_uses(items, by_rules=True))[1:-1]
    reach = max(1, len(items) // 24)
    padded = np.pad(crossing, reach, constant_values=np.inf)
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).min(axis=1)
    narrow = np.flatnonzero(crossing <= _TOLERANCE * near) + 1
    if len(narrow) >= most:
        wanted = np.asarray(every_cut(items, most)[1:-1])
        narrow = np.unique(narrow[np.searchsorted(narrow[:-1], wanted)])
    return [0, *narrow.tolist(), len(items)]


def stages_of(items: Sequence[Item], cuts: list[int], *, most_levels: int = 1) -> Stages:
    """Measure the stages between some cuts.

    Args:
        items: The list.
        cuts: Positions from 0 to the number of items.
        most_levels: How many levels a stage has at most; the first keeps all that is read.
    """
    last = last_uses(items, by_rules=True)
    every = needed(items)
    drops = dropped_at_levels(items, most_levels)
    costs = np.array([item.cost for item in items])
    cost = np.add.reduceat(costs, cuts[:-1])
    crossing = _crossing(items, cuts, last)
    again = recomputation_costs(items, every)
    inner, levels, held = cost.copy(), [], np.zeros((len(cost), len(cost)))
    for s, (start, end) in enumerate(pairwise(cuts)):
        out = frozenset(p for p in range(start, end) if last[p] >= end)
        read = every.intersection(range(start, end))
        levels.append(_levels(items, start, end, out, read, drops, again))
        if s + 1 < len(cost):
            inner[s] = _inner_cost(items, start, out, read - out)
            demand = _first_demand(items, start, end, out)
            own = sum(items[p].bytes for p in out if p <= demand)
            skips = crossing[: s + 1, s + 1] - crossing[s, s + 1]
            held[: s + 1, s] = own + skips
    return Stages(cuts, last, cost, inner, crossing, _running(items, cuts), held, levels)


def _crossing(items: Sequence[Item], cuts: list[int], last: Sequence[int]) -> Bytes:
    count = len(cuts) - 1
    stage = np.repeat(np.arange(count), np.diff(cuts))
    ends = stage[np.asarray(last, np.intp)]
    change = np.zeros((count, count + 2))
    size = sizes(items)
    np.add.at(change, (stage, stage + 1), size)
    np.add.at(change, (stage, ends + 1), -size)
    alone = np.cumsum(change, axis=1)[:, : count + 1]  # from one stage, across each cut
    return np.asarray(np.cumsum(alone[::-1], axis=0)[::-1])


def _running(items: Sequence[Item], cuts: list[int]) -> Bytes:
    count = len(cuts) - 1
    size = sizes(items)
    after = np.asarray(last_uses(items), np.intp) + 1
    found = np.zeros((count, count))
    for s, start in enumerate(cuts[:-1]):
        change = np.zeros(len(items) + 1)
        change[start:-1] = size[start:]
        np.subtract.at(change, after[start:], size[start:])
        found[s] = np.maximum.reduceat(np.cumsum(change)[:-1], cuts[:-1])
    return found


def _levels(
    items: Sequence[Item],
    start: int,
    end: int,
    out: frozenset[int],
    read: frozenset[int],
    drops: Sequence[frozenset[int]],
    again: Bytes,
) -> list[Level]:
    own = [
        item._replace(inputs=tuple(q - start for q in item.inputs if q >= start), reads=())
        for item in items[start:end]
    ]
    found: list[Level] = []
    for drop in drops:
        dropped = (read & drop) - out
        # Views come and go with their bases.
        kept = frozenset(p for p in (read - dropped) | out if not items[p].free)
        if found and kept == found[-1].kept:
            continue
        total = sum(items[p].bytes for p in kept)
        need = run_peak(own, frozenset(p - start for p in kept))
        replay = 2 * max((items[p].bytes for p in dropped), default=0)
        cost = float(sum(again[p] for p in dropped))
        found.append(Level(kept, total, cost, max(need, total + replay)))
    return found


def _inner_cost(
    items: Sequence[Item], start: int, out: frozenset[int], wanted: frozenset[int]
) -> float:
    """The cost of having some results of a stage, if those that cross its end are there."""
    found, pending = set(wanted), list(wanted)
    while pending:
        for q in items[pending.pop()].inputs:
            if q >= start and q not in out and q not in found:
                found.add(q)
                pending.append(q)
    return sum(items[p].cost for p in found)


def _first_demand(items: Sequence[Item], start: int, end: int, out: frozenset[int]) -> int:
    """The first visit of a stage that reads what is not among `out`; −1 if none does."""
    for visit in range(end - 1, start - 1, -1):
        if not out.issuperset(items[visit].reads):
            return visit
    return -1
