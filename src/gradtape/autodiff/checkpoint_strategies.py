"""The strategies of checkpointing tapes: policies for the records of one tape.

A policy (`core.recomputable.RecordPolicy`) decides which results are kept in the forward pass, and
which are retained when the backward pass replays a stretch of records.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape.autodiff.checkpoint_items import planned
from gradtape.autodiff.schedules.fixed import Bisection, Segments
from gradtape.core.offload import Store
from gradtape.core.recomputable import Recomputable, Restored

# Blocks of all tapes are numbered, so that no two of them are taken for one.
next_block = itertools.count(1).__next__


# Stretches of so many records are replayed in parts, of which only one is there at a time.
_LONG = 16


class CheckpointReport(NamedTuple):
    """What a checkpointing tape did so far.

    Attributes:
        records: How many ops it has recorded.
        bytes: The bytes of their results, without views.
        kept: How many results it decided to keep, or had to.
        kept_bytes: Their bytes.
        recomputed: How many ops were computed again by backward passes.
        share: The estimated cost of these, as a fraction of the cost of all that was recorded.
    """

    records: int
    bytes: int
    kept: int
    kept_bytes: int
    recomputed: int
    share: float

    def __str__(self) -> str:
        return (
            f"kept {self.kept} of {self.records} results, {self.kept_bytes / 1e6:.1f} of "
            f"{self.bytes / 1e6:.1f} MB; computed {self.recomputed} again, about "
            f"{self.share:.0%} of the forward pass"
        )


# ---- strategies ---------------------------------------------------------------------------------


class KeepNothing:
    """Base of policies: keeps no result but those that other blocks read.

    Attributes:
        store: Where large results that are kept go; None if they stay in memory.
    """

    store: Store | None = None

    is_one_checkpoint = False

    def __init__(self) -> None:
        self.block = next_block()
        self._records = self._bytes = self._kept = self._kept_bytes = self._recomputed = 0
        self._cost = self._cost_again = 0.0

    @property
    def report(self) -> CheckpointReport:
        """What happened so far."""
        return CheckpointReport(
            self._records,
            self._bytes,
            self._kept,
            self._kept_bytes,
            self._recomputed,
            self._cost_again / self._cost if self._cost else 0.0,
        )

    @property
    def plan(self) -> str:
        """What is kept and computed again, as text."""
        return str(self.report)

    def again(self, known: dict[Any, Any]) -> Any:
        """The policy for another run of the same function.

        Args:
            known: The policies made so far for that run, by the first ones.
        """
        if self not in known:
            known[self] = fresh = self._fresh(known)
            fresh.store = self.store and self.store.another()
        return known[self]

    def _fresh(self, known: dict[Any, Any]) -> KeepNothing:
        return type(self)()

    def chooses(self, name: str, result: Any) -> bool:
        """Whether a backward pass of a compiled function keeps a result, given the op's name."""
        return False

    def keeps(self, record: Recomputable, out: Any) -> bool:
        self._records += 1
        self._bytes += record.size
        self._cost += record.cost
        kept = self._decides(record, out)
        if kept:
            self.pinned(record)
        return kept

    def _decides(self, record: Recomputable, out: Any) -> bool:
        """Whether to keep a result."""
        return False

    def pinned(self, record: Recomputable) -> None:
        self._kept += 1
        self._kept_bytes += record.size

    def freed(self, record: Recomputable) -> None:
        """Do nothing: what was kept still counts."""

    def visited(self, record: Recomputable) -> None:
        """Do nothing: everything was decided in the forward pass."""

    def replayed(self, record: Recomputable) -> None:
        self._recomputed += 1
        self._cost_again += record.cost

    def labelled(self, out: Any) -> Any:
        return out

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        return None  # all that rules read


class Expensive:
    """Chooses results that take long to compute, every n-th of them.

    Args:
        least_cost: From how many operations on elements on.
        every: Of how many such results one is chosen.
    """

    def __init__(self, least_cost: float = 0, every: int = 1) -> None:
        self._least_cost, self._every, self._seen = least_cost, every, 0

    def again(self) -> Expensive:
        """One that begins to count anew."""
        return Expensive(self._least_cost, self._every)

    def __call__(self, record: Recomputable) -> bool:
        if record.op.aliases or record.cost < self._least_cost:
            return False
        self._seen += 1
        return self._seen % self._every == 0


class Selective(KeepNothing):
    """Keeps expensive results."""

    def __init__(self, expensive: Expensive) -> None:
        super().__init__()
        self._expensive = expensive

    def _fresh(self, known: dict[Any, Any]) -> Selective:
        return Selective(self._expensive.again())

    def _decides(self, record: Recomputable, out: Any) -> bool:
        return self._expensive(record)

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        # Where no result on the way is expensive, a stretch may be as long as the tape.
        if len(stretch) < _LONG:
            return None
        return planned(Segments.square_root(len(stretch)), stretch)


class Blocks(KeepNothing):
    """Begins a new block after some records, and keeps what it reads of those before it."""

    def __init__(self, every: int | None) -> None:
        super().__init__()
        self._every, self._seen, self._length = every, 0, every or 1

    def _fresh(self, known: dict[Any, Any]) -> Blocks:
        return Blocks(self._every)

    def _decides(self, record: Recomputable, out: Any) -> bool:
        self._seen += 1
        if self._seen == self._length:
            self._seen = 0
            self._length += self._every is None
            self.block = next_block()
        return False


class Full(KeepNothing):
    """Keeps nothing, and replays by halves."""

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        return planned(Bisection(), stretch)
