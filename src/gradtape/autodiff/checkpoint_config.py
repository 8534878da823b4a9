"""What a checkpointing tape keeps: `CheckpointConfig` and its strategies.

The policies for records that they stand for are in `checkpoint_strategies` and `checkpoint_auto`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from gradtape.autodiff.checkpoint_auto import Auto
from gradtape.autodiff.checkpoint_strategies import Blocks, Full, KeepNothing, Selective
from gradtape.errors import ArgumentError, a_type


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
    were recorded are not called again: their ops are. So NumPy arrays that were used must not be
    written to before the backward pass, which may read any of them (`gt.detect_writes` finds that).

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

    def policy(self) -> KeepNothing | None:
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
            case CheckpointStrategy.Auto:
                assert self.memory_budget_mb is not None  # checked above
                return Auto(int(self.memory_budget_mb * 1e6))


def _check_amount(name: str, value: object, what: str) -> None:
    """Raise if something is not a finite number from 0 on."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        got = repr(value) if number else a_type(value)
        raise ArgumentError(f"CheckpointConfig: got {got} for {name}, expected {what}, 0 or more")
