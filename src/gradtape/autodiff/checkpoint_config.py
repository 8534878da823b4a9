"""What a checkpointing tape keeps: `CheckpointConfig` and its strategies.

Each strategy is a policy for the records of one tape (`core.recomputable.RecordPolicy`): it decides
which results are kept in the forward pass, and which are retained when the backward pass replays a
stretch of records.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradtape.core.recomputable import Recomputable, RecordPolicy
from gradtape.errors import ArgumentError, a_type

# Blocks of all tapes are numbered, so that no two of them are taken for one.
next_block = itertools.count(1).__next__


class CheckpointStrategy(enum.Enum):
    """Which results a checkpointing tape keeps.

    Attributes:
        Selective: Those of expensive ops.
        Block: Those that the next block of records needs.
        Full: None; the backward pass halves the tape again and again, for the least memory.
        Auto: As many as fit into a budget, those that are dear for their size.

    >>> gt.CheckpointStrategy.Block
    <CheckpointStrategy.Block: 'block'>
    """

    Selective = "selective"
    Block = "block"
    Full = "full"
    Auto = "auto"


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Which results a tape keeps for the backward pass; the others are computed again.

    Gradients are the same, bit for bit. Nothing has to be wrapped in functions, and functions that
    were recorded are not called again: their ops are.

    Args:
        strategy: A member of `gt.CheckpointStrategy`; None to keep everything that rules read.
        checkpoint_every_n: With `Block`, the number of records in a block; if not given, blocks
            grow by one record each, so that n records make about √(2n) blocks. With `Selective`,
            the result of every n-th expensive op is kept; of each one if not given.
        min_compute_cost: From how many operations on elements an op is expensive.
        memory_budget_mb: With `Auto`, the megabytes (of 10⁶ bytes) that kept results, recomputed
            ones and cotangents may take together.

    Raises:
        ArgumentError: The strategy is none, or a number is negative or missing.

    >>> config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Block, checkpoint_every_n=10)
    >>> tape = gt.GradientTape(checkpoint=config)
    >>> x = h = tape.watch(gt.ones(3))
    >>> for _ in range(100):
    ...     h = gt.sin(h)
    >>> tape.gradient(gt.sum(h), x).shape
    (3,)
    """

    strategy: CheckpointStrategy | None = None
    checkpoint_every_n: int | None = None
    min_compute_cost: float = 0
    memory_budget_mb: float | None = None

    def __post_init__(self) -> None:
        if not (self.strategy is None or isinstance(self.strategy, CheckpointStrategy)):
            names = ", ".join(f"gt.CheckpointStrategy.{each.name}" for each in CheckpointStrategy)
            raise ArgumentError(
                f"CheckpointConfig: got {self.strategy!r} for strategy, expected None or one of "
                f"{names}"
            )
        n = self.checkpoint_every_n
        if n is not None and (type(n) is not int or n < 1):
            raise ArgumentError(
                f"CheckpointConfig: got {n!r} for checkpoint_every_n, expected a number of records "
                "from 1 on"
            )
        _check_amount("min_compute_cost", self.min_compute_cost, "a number of operations")
        if self.memory_budget_mb is not None:
            _check_amount("memory_budget_mb", self.memory_budget_mb, "megabytes")
        budgeted = self.strategy is CheckpointStrategy.Auto
        if budgeted != (self.memory_budget_mb is not None):
            need = "needs memory_budget_mb" if budgeted else "takes no memory_budget_mb"
            raise ArgumentError(
                f"CheckpointConfig: {self.strategy} {need}; a budget is for "
                "gt.CheckpointStrategy.Auto"
            )

    def policy(self) -> RecordPolicy | None:
        """The policy for the records of one tape; None to keep what rules read."""
        match self.strategy:
            case None:
                return None
            case CheckpointStrategy.Selective:
                return Selective(self.min_compute_cost, self.checkpoint_every_n or 1)
            case CheckpointStrategy.Block:
                return Blocks(self.checkpoint_every_n)
            case CheckpointStrategy.Full:
                return Full()
            case _:
                raise NotImplementedError


def _check_amount(name: str, value: object, what: str) -> None:
    """Raise if something is not a finite number from 0 on."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        got = repr(value) if number else a_type(value)
        raise ArgumentError(f"CheckpointConfig: got {got} for {name}, expected {what}, 0 or more")


# ---- strategies ---------------------------------------------------------------------------------


class KeepNothing:
    """Base of policies: keeps no result but those that other blocks read."""

    def __init__(self) -> None:
        self.block = next_block()

    def again(self, known: dict[Any, Any]) -> Any:
        """The policy for another run of the same function.

        Args:
            known: The policies made so far for that run, by the first ones.
        """
        if self not in known:
            known[self] = self._fresh(known)
        return known[self]

    def _fresh(self, known: dict[Any, Any]) -> KeepNothing:
        return type(self)()

    def chooses(self, name: str, result: Any) -> bool:
        """Whether a backward pass of a compiled function keeps a result, given the op's name."""
        return False

    def keeps(self, record: Recomputable) -> bool:
        return False

    def pinned(self, record: Recomputable) -> None:
        """Nothing to count."""

    def freed(self, record: Recomputable) -> None:
        """Nothing to count."""

    def retained(
        self, stretch: Sequence[Recomputable], held: int
    ) -> frozenset[Recomputable] | None:
        return None


class Selective(KeepNothing):
    """Keeps every n-th result that takes long to compute."""

    def __init__(self, least_cost: float, every: int) -> None:
        super().__init__()
        self._least_cost, self._every, self._seen = least_cost, every, 0

    def _fresh(self, known: dict[Any, Any]) -> Selective:
        return Selective(self._least_cost, self._every)

    def keeps(self, record: Recomputable) -> bool:
        if record.op.aliases or record.cost < self._least_cost:
            return False
        self._seen += 1
        return self._seen % self._every == 0


class Blocks(KeepNothing):
    """Begins a new block after some records, and keeps what it reads of those before it."""

    def __init__(self, every: int | None) -> None:
        super().__init__()
        self._every, self._seen, self._length = every, 0, every or 1

    def _fresh(self, known: dict[Any, Any]) -> Blocks:
        return Blocks(self._every)

    def keeps(self, record: Recomputable) -> bool:
        self._seen += 1
        if self._seen == self._length:
            self._seen = 0
            self._length += self._every is None
            self.block = next_block()
        return False


class Full(KeepNothing):
    """Keeps nothing, and replays by halves."""

    def retained(
        self, stretch: Sequence[Recomputable], held: int
    ) -> frozenset[Recomputable] | None:
        return _halving(stretch)


def _halving(stretch: Sequence[Recomputable]) -> frozenset[Recomputable]:
    """What the second half of a stretch reads of the first, of that half likewise, and so on."""
    place = {record: n for n, record in enumerate(stretch)}
    last = [0] * len(stretch)  # the last reader of each result
    for n, record in enumerate(stretch):
        for source in record.sources():
            if source is not None and source[0] in place:
                last[place[source[0]]] = n
    retained: set[Recomputable] = set()
    cut = len(stretch) // 2
    while cut < len(stretch) - 1:
        retained.update(stretch[n] for n in range(cut) if last[n] >= cut)
        cut += max(1, (len(stretch) - cut) // 2)
    return frozenset(retained)
