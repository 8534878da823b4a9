"""`Auto`: as little recomputation as a memory budget allows.

Eager code is decided upon while it runs, by `schedules.online`: results are kept until the budget
is full, then those that are cheap for their size go first, and of equally dear ones the oldest.
When the backward pass comes to a stretch of dropped results, all is known, and `schedules.auto`
plans its replay for the room that is left by then.

In a trace nothing takes memory yet. Everything is kept until the backward walk begins, and then the
whole list is planned at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from gradtape.autodiff.checkpoint_strategies import CheckpointReport, KeepNothing
from gradtape.autodiff.schedules.auto import Auto as Planner
from gradtape.autodiff.schedules.describe import describe
from gradtape.autodiff.schedules.item import Item
from gradtape.autodiff.schedules.online import Online
from gradtape.autodiff.schedules.room import minimum
from gradtape.core.finite import is_traced
from gradtape.core.recomputable import Recomputable
from gradtape.errors import BudgetError

# Besides results, an op and its rule need room for so many of the largest: what is computed, its
# cotangent, those of two operands.
_WORKING = 4
# A result that is used so many records after it was made is worth more than its cost says.
_FAR = 64
# When so many records have died, and more than are alive, the others are counted anew.
_MANY_DEAD = 1000


class Auto(KeepNothing):
    """Keeps what is worth it within a number of bytes.

    Args:
        budget: The bytes for kept and restored results and for cotangents.
        plans: Where to put a description of each plan that is made for a trace.
    """

    def __init__(self, budget: int, plans: list[str] | None = None) -> None:
        super().__init__()
        self._budget = budget
        self._plans: list[str] = [] if plans is None else plans
        self._largest = 0
        self._online = Online(budget)
        self._numbered: list[weakref.ref[Recomputable]] = []
        self._dead = 0
        self._freed = 0  # bytes of kept results whose records were freed
        # Records of a trace, until a walk begins.
        self._traced: list[Recomputable] = []

    def _fresh(self, known: dict[Any, Any]) -> Auto:
        return Auto(self._budget, self._plans)

    @property
    def plan(self) -> str:
        return self._plans[-1] if self._plans else super().plan

    @property
    def report(self) -> CheckpointReport:
        return super().report._replace(
            kept=len(self._online.retained), kept_bytes=self._online.bytes
        )

    # ---- forward -----------------------------------------------------------------------------

    def _decides(self, record: Recomputable, out: Any) -> bool:
        if record.size > self._largest:
            self._largest = record.size
            what = f"{record.op.name}, whose result takes {record.size / 1e6:.3g} MB,"
            self._check(_WORKING * record.size, what)
            self._online.budget = self._budget - _WORKING * self._largest
        if any(map(is_traced, out if isinstance(out, tuple) else (out,))):
            self._traced.append(record)
            return True
        if self._dead > max(_MANY_DEAD, len(self._numbered) // 2):
            self._count_anew()
        return self._number(record)

    def _number(self, record: Recomputable) -> bool:
        """Give a record a number, and drop results that no longer fit; False if it is its own."""
        record.place = place = len(self._numbered)
        self._numbered.append(weakref.ref(record, self._died))
        kept = True
        own = [source[0] for source in record.sources() if source and source[0].policy is self]
        for source in own:
            if place - source.place > _FAR:
                self._online.touch(source.place)
        for number in self._online.add(_item(record, {each: each.place for each in own})):
            kept = kept and number != place
            older = self._numbered[number]()
            if older is not None:
                older.drop()
        return kept

    def _died(self, _reference: object) -> None:
        self._dead += 1

    def _count_anew(self) -> None:
        """Number the records that are alive, so that others are forgotten."""
        alive = [record for ref in self._numbered if (record := ref()) is not None]
        self._online = Online(self._online.budget)
        self._numbered, self._dead, self._freed = [], 0, 0
        for record in alive:
            there = record.is_there(None)
            if not self._number(record) or not there:
                record.drop()

    def _check(self, needed: int, what: str) -> None:
        """Raise if more is needed than there may be.

        Raises:
            BudgetError: It is.
        """
        if needed > self._budget:
            raise BudgetError(
                f"memory_budget_mb={self._budget / 1e6:g} cannot be met: {what} needs at least "
                f"{needed / 1e6:.3g} MB; give it that, or make arrays smaller"
            )

    # ---- backward ----------------------------------------------------------------------------

    def freed(self, record: Recomputable) -> None:
        if record.place in self._online.retained:
            self._freed += record.size

    def visited(self, record: Recomputable) -> None:
        if self._traced:
            records, self._traced = self._traced, []
            items = _items(records)
            room = self._budget - _WORKING * self._largest
            self._check(minimum(items) + _WORKING * self._largest, "the traced function")
            plan = Planner().retained(items, room)
            names = [each.op.name for each in records]
            self._plans[:] = ["\n".join(describe(items, plan, names, room=room))]
            for place, each in enumerate(records):
                if place not in plan:
                    each.drop()

    def _retained(
        self, stretch: Sequence[Recomputable], held: int
    ) -> frozenset[Recomputable] | None:
        items = _items(stretch)
        other = self._online.bytes - self._freed + held
        room = self._budget - _WORKING * self._largest - other
        plan = Planner().retained(items, room)
        return frozenset([stretch[place] for place in plan])


def _items(records: Sequence[Recomputable]) -> list[Item]:
    """Records as the planner sees them."""
    places = {record: place for place, record in enumerate(records)}
    return [_item(record, places) for record in records]


def _item(record: Recomputable, places: dict[Recomputable, int]) -> Item:
    """A record as the planner sees it, given the numbers of those it reads."""
    own, *reads = record.reads
    sources = record.sources()
    inputs = [places[s[0]] for s in sources if s is not None and s[0] in places]
    read = [
        places[source[0]]
        for source, is_read in zip(sources, reads, strict=True)
        if source is not None and is_read and source[0] in places
    ]
    if own:
        read.append(places.get(record, record.place))
    return Item(record.cost, record.size, tuple(inputs), tuple(read), free=record.op.aliases)
