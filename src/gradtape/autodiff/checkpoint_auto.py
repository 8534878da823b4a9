"""`Auto`: as little recomputation as a memory budget allows.

Eager code is decided upon while it runs, by `schedules.online`: results are kept until the budget
is full, then those that are cheap for their size go first, and of equally dear ones the oldest.
When the backward pass comes to a stretch of dropped results, all is known, and `schedules.auto`
plans its replay for the room that is left by then.

In a trace nothing takes memory yet. Everything is kept until the backward walk begins, and then the
whole list is planned at once.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.checkpoint_items import item_of, items_of, planned
from gradtape.autodiff.checkpoint_strategies import CheckpointReport, Expensive, KeepNothing
from gradtape.autodiff.schedules.auto import Auto as Planner
from gradtape.autodiff.schedules.describe import describe
from gradtape.autodiff.schedules.item import Item, last_uses
from gradtape.autodiff.schedules.online import Online
from gradtape.autodiff.schedules.room import minimum
from gradtape.core.finite import is_traced
from gradtape.core.ownership import other_references
from gradtape.core.recomputable import Recomputable, Restored
from gradtape.errors import BudgetError

# Planning must not take longer than what it saves. A trace is planned once.
_QUICK, _THOROUGH = Planner(stages=32, units=128, compare=0), Planner()
# Besides results that are kept, an op and its rule need room for so many of the largest: what is
# computed, its cotangent, those of two operands. They need it for so many of their own at least.
_WORKING, _LEAST = 4, 2
# A result that is used so many records after it was made is worth more than its cost says.
_FAR = 64
# When so many records have died, and more than are alive, the others are counted anew.
_MANY_DEAD = 1000


class Auto(KeepNothing):
    """Keeps what is worth it within a number of bytes.

    Args:
        budget: The bytes for kept and restored results and for cotangents.
        expensive: Which results may be kept in eager code; all of them if not given.
        plans: Where to put a description of each plan that is made for a trace.
    """

    def __init__(
        self, budget: int, expensive: Expensive | None = None, plans: list[str] | None = None
    ) -> None:
        super().__init__()
        self._budget = budget
        self._expensive = Expensive() if expensive is None else expensive
        self._plans: list[str] = [] if plans is None else plans
        self._largest = 0
        self._online = Online(budget)
        self._numbered: list[weakref.ref[Recomputable]] = []
        # How many of these have died, and the numbers of those that did since it was looked. They
        # may die at any time, also while a number is given.
        self._dead = 0
        self._dying: deque[int] = deque()
        # Dropped results that somebody else still holds, with their bytes.
        self._outside: list[tuple[weakref.ref[Any], int]] = []
        self._walking = False  # whether a backward pass has begun since the last record
        # What earlier backward passes found kept: results, bytes; and the first number after them.
        self._settled = (0, 0, 0)
        # The numbers of the records that the last one used: their results may be of no more use.
        self._used: list[int] = []
        # Records of a trace, until a walk begins.
        self._traced: list[weakref.ref[Recomputable]] = []

    def _fresh(self, known: dict[Any, Any]) -> Auto:
        return Auto(self._budget, self._expensive.again(), self._plans)

    @property
    def plan(self) -> str:
        return self._plans[-1] if self._plans else super().plan

    @property
    def report(self) -> CheckpointReport:
        if self._walking:
            return super().report
        self._forget_dead()
        kept, kept_bytes, first = self._settled
        sizes = [self._size(place) for place in self._online.retained if place >= first]
        return super().report._replace(kept=kept + len(sizes), kept_bytes=kept_bytes + sum(sizes))

    def _size(self, place: int) -> int:
        record = self._numbered[place]()
        return 0 if record is None else record.size

    # ---- forward -----------------------------------------------------------------------------

    def _decides(self, record: Recomputable, out: Any) -> bool:
        self._walking = False
        traced = any(map(is_traced, out if isinstance(out, tuple) else (out,)))
        outside = 0 if traced else self._held_outside()
        self._check(_LEAST * record.size + outside, record.op.name, outside)
        self._largest = max(self._largest, record.size)
        if traced:
            self._traced.append(weakref.ref(record))
            return True
        self._forget_dead()
        if self._dead > max(_MANY_DEAD, len(self._numbered) // 2):
            self._count_anew()
        self._drop_unread()
        self._online.budget = max(0, self._budget - self._working - outside)
        if not self._number(record):
            return False
        if record.size and not self._expensive(record):
            self._online.drop(record.place)
            return False
        return True

    def _drop_unread(self) -> None:
        """Drop operands of the last op that no rule reads and nobody holds, as other tapes do.

        They would only save recomputation of what was computed from them, and the next result can
        use their memory while it is in the cache.
        """
        used, self._used = self._used, []
        for place in used:
            record = self._numbered[place]()
            if record is None or record.read or type(record.out) is not np.ndarray:
                continue
            if other_references((record.out,)) == 0:
                for number in self._online.drop(place):
                    self._drop(number)

    @property
    def _working(self) -> int:
        """The bytes that are left for an op and its rule."""
        return _WORKING * self._largest

    def _held_outside(self) -> int:
        """The bytes of dropped results that somebody else still holds."""
        self._outside = [(array, size) for array, size in self._outside if array() is not None]
        return sum([size for _, size in self._outside])

    def _number(self, record: Recomputable) -> bool:
        """Give a record a number, and drop results that no longer fit; False if it is its own."""
        record.place = place = len(self._numbered)
        # It holds neither the record nor the policy.
        gone = self._dying
        self._numbered.append(weakref.ref(record, lambda _: gone.append(place)))
        sources = [source[0] for source in record.sources if source]
        # What had to be kept, or was freed, has no number.
        own = [source for source in sources if source.policy is self and source.place >= 0]
        for source in own:
            if place - source.place > _FAR:
                self._online.touch(source.place)
        self._used = [source.place for source in own]
        dropped = self._online.add(item_of(record, {each: each.place for each in own}))
        for number in dropped:
            self._drop(number)
        return place not in dropped

    def _drop(self, number: int) -> None:
        """Let a record drop its result, and see whether it is gone."""
        record = self._numbered[number]()
        if record is None:
            return
        out, size = record.out, record.size
        if size and type(out) is np.ndarray:
            array = weakref.ref(out)
            record.drop()
            del out
            if array() is not None:
                self._outside.append((array, size))
        else:
            record.drop()

    def _forget_dead(self) -> None:
        """Count what records held that have died as free."""
        while self._dying:
            self._online.drop(self._dying.popleft())
            self._dead += 1

    def _count_anew(self) -> None:
        """Number the records that are alive, so that others are forgotten."""
        alive = [record for ref in self._numbered if (record := ref()) is not None]
        settled = sum(0 <= record.place < self._settled[2] for record in alive)
        self._settled = (*self._settled[:2], settled)
        self._online = Online(self._online.budget)
        self._numbered, self._dying, self._dead, self._used = [], deque(), 0, []
        for record in alive:
            if record.place >= 0:  # it was not freed
                there = record.is_there(None)
                self._number(record)
                if not there:
                    self._online.drop(record.place)

    def _check(self, needed: int, what: str, outside: int = 0) -> None:
        """Raise if more is needed than there may be.

        Raises:
            BudgetError: It is.
        """
        if needed > self._budget:
            held = f", {outside / 1e6:.3g} MB of it for earlier results in use" if outside else ""
            raise BudgetError(
                f"memory_budget_mb={self._budget / 1e6:g} cannot be met: {what} needs at least "
                f"{_rounded_up(needed / 1e6):.3g} MB{held} at this point; give it more, or make "
                "arrays smaller"
            )

    # ---- backward ----------------------------------------------------------------------------

    def freed(self, record: Recomputable) -> None:
        self._online.drop(record.place)
        record.place = -1

    def visited(self, record: Recomputable) -> None:
        if not self._walking:
            report, self._walking = self.report, True
            self._kept, self._kept_bytes = report.kept, report.kept_bytes
            self._settled = (report.kept, report.kept_bytes, len(self._numbered))
        if self._traced:
            # Only what can still be walked has to be planned.
            records = [traced for ref in self._traced if (traced := ref()) is not None]
            self._traced = []
            self._plan_trace(records)

    def _plan_trace(self, records: Sequence[Recomputable]) -> None:
        """Let the records of a trace drop what its plan does not keep."""
        items = items_of(records)
        waiting, least = _most_waiting(items), minimum(items)
        self._check(least + waiting + _LEAST * self._largest, "the traced function")
        room = max(least, self._budget - waiting - self._working)
        plan = _THOROUGH.retained(items, room)
        names = [each.op.name for each in records]
        self._plans[:] = ["\n".join(describe(items, plan, names, room=room))]
        for place, each in enumerate(records):
            if place not in plan:
                each.drop()

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        self._forget_dead()
        items = items_of(stretch)
        other = restored.cotangents() + self._held_outside() + self._online.bytes + restored.held
        room, least = self._budget - other - self._working, minimum(items)
        if least > room:
            if restored.let_go() or self._let_go(least - room):
                restored.changed = True
                return None  # it is asked again, for more records
            own = max([item.bytes for item in items])
            self._check(least + other + _WORKING * own, "the backward pass")
        return planned(_QUICK, stretch, max(least, room))

    def _let_go(self, needed: int) -> bool:
        """Drop kept results to get some bytes; returns whether there were any."""
        before = self._online.bytes
        self._online.budget = max(0, before - needed)
        for number in self._online.shrink():
            self._drop(number)
        return self._online.bytes < before


def _rounded_up(number: float) -> float:
    """The next number of three digits, so that it suffices as it is shown."""
    unit: float = 10.0 ** (math.floor(math.log10(number)) - 2)
    return math.ceil(number / unit) * unit


def _most_waiting(items: Sequence[Item]) -> int:
    """The most bytes of cotangents that wait at a time, besides those of one op.

    While an item is visited, those of older results wait that newer items have used.
    """
    last = last_uses(items)
    change = [0] * (len(items) + 1)
    for place, item in enumerate(items):
        if last[place] > place + 1:
            change[place + 1] += item.bytes
            change[last[place]] -= item.bytes
    return max(itertools.accumulate(change), default=0)
