"""The planner for any list: candidates of several kinds, checked and compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from gradtape.autodiff.schedules.fixed import Bisection, Given
from gradtape.autodiff.schedules.item import Item, needed, run_peak, with_views
from gradtape.autodiff.schedules.optimal import solve
from gradtape.autodiff.schedules.revolve import Revolve, recomputations, slots_in
from gradtape.autodiff.schedules.room import least_peak
from gradtape.autodiff.schedules.stages import every_cut, narrow_cuts, stages_of
from gradtape.autodiff.schedules.steps import Outcome, simulate
from gradtape.autodiff.schedules.worth import worth

_LEVELS = 8
# Exchanges in a plan: how many items are played through, and how many results of each side tried.
_TRIED = 20_000
_SWAPPED = 12


@dataclass(frozen=True, slots=True)
class Auto:
    """Plan any list for the least recomputation within the room.

    All that is read is retained if there is room for it. Otherwise the plans compared are

    - results dropped from the cheapest per byte on, until the rest fits;
    - the dynamic programme of `Optimal` on stages between cuts that little crosses, where cheap
      results inside kept stages may be dropped;
    - the same on stages of equal size.

    A plan counts if visits are possible within the room at all after it (`least_peak`). If none
    counts, what crosses the middles is retained, or nothing.

    Attributes:
        stages: How many stages the dynamic programme has at most.
        units: How many units of memory it has at most.
        compare: Lists up to this length have all plans played through. For longer ones the
            dynamic programme or Revolve decides, by their estimates, in time that is linear in the
            length. 0 makes planning quick for lists of any length.
    """

    stages: int = 64
    units: int = 256
    compare: int = 2000

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """The cheapest plan that fits; nothing if none does."""
        every = with_views(items, needed(items))
        if run_peak(items, every) <= room:
            return every
        if room <= 0:
            return frozenset()
        if len(items) > self.compare or (len(items) > self.stages and _all_alike(items)):
            return next(self._candidates_for_long(items, room), frozenset())
        best = _Tried(frozenset(), Outcome((), float("inf"), 0))
        for plan in self._candidates(items, room):
            found = _Tried(plan, simulate(items, room, Given(plan, WholeOrRevolve())))
            if found.outcome.peak <= room and found.outcome.cost < best.outcome.cost:
                best = found
        return _exchanged(items, room, best).plan if best.plan else best.plan

    def _candidates(self, items: Sequence[Item], room: int) -> Iterator[frozenset[int]]:
        """Plans that fit, of all kinds."""
        cuts = [narrow_cuts(items, self.stages)]
        if (even := every_cut(items, self.stages)) != cuts[0]:
            cuts.append(even)
        for places in cuts:
            stages = stages_of(items, places, most_levels=_LEVELS)
            found = solve(items, stages, room, self.units)
            if found.cost < float("inf"):
                yield from _if_it_fits(items, room, found.plan)
        yield from _if_it_fits(items, room, _dropping_cheap(items, room))
        for planner in (Revolve(), Bisection()):
            yield from _if_it_fits(items, room, planner.retained(items, room))

    def _candidates_for_long(self, items: Sequence[Item], room: int) -> Iterator[frozenset[int]]:
        """Plans that fit, found in linear time; the one of least estimated cost comes first."""
        if _all_alike(items):
            plans = [Revolve().retained(items, room)]
        else:
            stages = stages_of(items, narrow_cuts(items, self.stages), most_levels=_LEVELS)
            found = solve(items, stages, room, self.units)
            runs = 1 + recomputations(len(items), slots_in(items, room)) / len(items)
            plans = [found.plan, Revolve().retained(items, room)]
            if runs * sum(item.cost for item in items) < found.cost:
                plans.reverse()
        for plan in (*plans, Bisection().retained(items, room)):
            yield from _if_it_fits(items, room, plan)


def _if_it_fits(items: Sequence[Item], room: int, plan: frozenset[int]) -> Iterator[frozenset[int]]:
    plan = with_views(items, plan)
    if least_peak(items, plan) <= room:
        yield plan


def _all_alike(items: Sequence[Item]) -> bool:
    """Whether a list is a chain of equal items: Revolve is within one or two runs of the best."""
    cost, size = items[0].cost, items[0].bytes
    return all(
        item.cost == cost and item.bytes == size and item.inputs == ((p - 1,) if p else ())
        for p, item in enumerate(items)
    )


def _dropping_cheap(items: Sequence[Item], room: int) -> frozenset[int]:
    """All that is read but the cheapest per byte, as few of these dropped as make it fit."""
    order = list(worth(items))  # without views, which come and go with their bases
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if least_peak(items, frozenset(order[middle:])) <= room:
            high = middle
        else:
            low = middle + 1
    return frozenset(order[low:])


@dataclass(frozen=True, slots=True)
class WholeOrRevolve:
    """Retain all that is read if it fits, else what Revolve says: a quick planner for gaps."""

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """A plan that fits, or nothing."""
        every = with_views(items, needed(items))
        if run_peak(items, every) <= room:
            return every
        return next(_if_it_fits(items, room, Revolve().retained(items, room)), frozenset())


class _Tried(NamedTuple):
    """A plan that was played through."""

    plan: frozenset[int]
    outcome: Outcome


def _exchanged(items: Sequence[Item], room: int, best: _Tried) -> _Tried:
    """Improve a plan by retaining one more result, in place of another one where that is needed.

    What is tried is bounded by the number of items played through.
    """
    prices = worth(items)
    trials = _TRIED // max(1, len(items))
    improved = True
    while improved and trials > 0:
        improved = False
        again = best.outcome.again
        gains = {
            p: again[p] * item.cost / item.bytes
            for p, item in enumerate(items)
            if item.bytes and p not in best.plan and again[p]
        }
        dear = sorted(gains, key=gains.__getitem__, reverse=True)
        cheap = [None, *(p for p in prices if p in best.plan)]
        for out, into in product(cheap[:_SWAPPED], dear[:_SWAPPED]):
            plan = frozenset(p for p in best.plan if p != out and not items[p].free) | {into}
            plan = with_views(items, plan)
            if least_peak(items, plan) > room:
                continue
            trials -= 1
            found = _Tried(plan, simulate(items, room, Given(plan, WholeOrRevolve())))
            if found.outcome.peak <= room and found.outcome.cost < best.outcome.cost:
                best, improved = found, True
                break
            if trials <= 0:
                break
    return best
