"""Play a planner through: every run, drop and visit of a forward and a backward run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from gradtape.autodiff.schedules.item import Item, Planner, last_uses, run_peak, with_bases


class Step(NamedTuple):
    """One step of a schedule: run an item, drop its result, or visit it in the backward run."""

    kind: Literal["run", "drop", "visit"]
    position: int


class Outcome(NamedTuple):
    """What a planner came to on a list.

    Attributes:
        again: How often each item was run again, the first run not counted.
        cost: The cost of these runs.
        peak: The most bytes that results took at any time.
    """

    again: tuple[int, ...]
    cost: float
    peak: int


class _Demand(NamedTuple):
    """What a visit asks for: items to run, also as a list of their own, in which `wanted` is."""

    positions: Sequence[int]
    part: Sequence[Item]
    wanted: frozenset[int]

    def fits(self, room: int) -> bool:
        return run_peak(self.part, self.wanted) <= room


class _State:
    """A list in the middle of its backward run."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.held: set[int] = set()
        self.bytes = 0
        self.consumers: list[list[int]] = [[] for _ in items]
        self.readers: list[list[int]] = [[] for _ in items]
        for p, item in enumerate(items):
            for q in item.inputs:
                self.consumers[q].append(p)
            for q in item.reads:
                self.readers[q].append(p)
        # The last visit, in the order of the backward run, that may ask for a result.
        self.until = [min(readers, default=len(items)) for readers in self.readers]
        for p in range(len(items) - 1, -1, -1):
            for q in items[p].inputs:
                self.until[q] = min(self.until[q], self.until[p])

    def hold(self, position: int) -> None:
        self.held.add(position)
        self.bytes += self.items[position].bytes

    def let_go(self, position: int) -> Step:
        self.held.remove(position)
        self.bytes -= self.items[position].bytes
        return Step("drop", position)

    def dispensable(self, visit: int) -> list[int]:
        """The newer half of the held results, at first of those that a visit does not read."""
        read = with_bases(self.items, self.items[visit].reads)
        found = sorted(self.held - read) or sorted(self.held)
        return found[len(found) // 2 :]

    def demand(self, visit: int) -> _Demand:
        """What has to be run before a visit: missing results and their missing ancestors.

        The first visit comes right after the first run, so it asks for everything.
        """
        items = self.items
        if visit == len(items) - 1:
            wanted = with_bases(items, items[visit].reads)
            return _Demand(range(len(items)), items, wanted)
        found = {r for r in items[visit].reads if r not in self.held}
        pending = list(found)
        while pending:
            for q in items[pending.pop()].inputs:
                if q not in found and q not in self.held:
                    found.add(q)
                    pending.append(q)
        positions = sorted(found)
        part = self.part(positions, visit)
        read = [k for k, p in enumerate(positions) if p in items[visit].reads]
        return _Demand(positions, part, with_bases(part, read))

    def part(self, positions: Sequence[int], visit: int) -> list[Item]:
        """Some items as a list of their own, for the visits from `visit` on.

        What the visit reads counts as read by the last item of the part, whose visit comes next. A
        result that later visits of items outside the part need, to read it or to run something
        missing, counts as read by its own item: it is needed up to there.
        """
        place = {p: k for k, p in enumerate(positions)}
        found = []
        for p in positions:
            item = self.items[p]
            reads = {place[r] for r in item.reads if r in place}
            if any(h <= visit and h not in place for h in self.readers[p]) or any(
                c not in place and c not in self.held and self.until[c] < visit
                for c in self.consumers[p]
            ):
                reads.add(place[p])
            inputs = tuple(place[q] for q in item.inputs if q in place)
            if p == positions[-1]:
                reads.update(place[r] for r in self.items[visit].reads if r in place)
            found.append(item._replace(inputs=inputs, reads=tuple(sorted(reads))))
        return found


def steps(items: Sequence[Item], room: int, planner: Planner) -> Iterator[Step]:
    """The steps of running a list forward and then visiting it backward.

    A visit that asks for missing results runs them again, with all missing results that they
    depend on, and asks the planner what to retain of this run. If the room does not suffice for
    this, retained results are let go first.

    Args:
        items: The list.
        room: Bytes for all results. The steps go over it if the planner does.
        planner: Decides what each run retains.

    Yields:
        Runs, drops and visits in order. A result is dropped once its own item was visited, if not
        before.
    """
    state = _State(items)
    for visit in range(len(items) - 1, -1, -1):
        demand = state.demand(visit)
        fleeting: list[int] = []
        if demand.positions:
            while not demand.fits(room - state.bytes) and (old := state.dispensable(visit)):
                for p in reversed(old):
                    yield state.let_go(p)
                demand = state.demand(visit)
            plan = with_bases(demand.part, planner.retained(demand.part, room - state.bytes))
            fleeting = [demand.positions[k] for k in demand.wanted - plan]
            yield from _run(state, demand, plan)
        yield Step("visit", visit)
        if visit in state.held and visit not in fleeting:
            fleeting.append(visit)
        for p in sorted(fleeting, reverse=True):
            yield state.let_go(p)


def _run(state: _State, demand: _Demand, plan: frozenset[int]) -> Iterator[Step]:
    """Run what is missing; what is neither retained nor wanted goes after its last use."""
    staying = plan | demand.wanted
    dying: list[list[int]] = [[] for _ in demand.part]
    for k, last in enumerate(last_uses(demand.part)):
        if k not in staying:
            dying[last].append(k)
    for k, p in enumerate(demand.positions):
        state.hold(p)
        yield Step("run", p)
        for dead in reversed(dying[k]):  # views before their bases
            yield state.let_go(demand.positions[dead])


def simulate(items: Sequence[Item], room: int, planner: Planner) -> Outcome:
    """Count what a planner comes to on a list: runs, cost and peak of memory.

    Args:
        items: The list.
        room: Bytes for all results, told to the planner.
        planner: The planner.

    Returns:
        The counts. Nothing is estimated; the memory of cotangents is the caller's to add.

    >>> from gradtape.autodiff.schedules.fixed import Segments
    >>> chain = [Item(1.0, 8, (i - 1,) if i else (), (i,)) for i in range(9)]
    >>> simulate(chain, 72, Segments(3))
    Outcome(again=(1, 1, 0, 1, 1, 0, 0, 0, 0), cost=4.0, peak=40)
    """
    runs = [0] * len(items)
    now = peak = 0
    for kind, p in steps(items, room, planner):
        if kind == "run":
            runs[p] += 1
            now += items[p].bytes
            peak = max(peak, now)
        elif kind == "drop":
            now -= items[p].bytes
    again = tuple(count - 1 for count in runs)
    cost = sum(count * item.cost for count, item in zip(again, items, strict=True))
    return Outcome(again, float(cost), peak)
