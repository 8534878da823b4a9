"""What a checkpointing tape keeps: `CheckpointConfig` and its strategies.

The policies for records that they stand for are in `checkpoint_strategies` and `checkpoint_auto`.
"""

from __future__ import annotations

import enum
import math
import os
from dataclasses import dataclass

from gradtape.autodiff.checkpoint_auto import Auto
from gradtape.autodiff.checkpoint_strategies import Blocks, Expensive, Full, KeepNothing, Selective
from gradtape.core.offload import Store
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
            grow by one record each, so that n records make about √(2n) blocks. With `Selective`
            and `Auto`, only the result of every n-th expensive op is kept; of each one if not
            given.
        min_compute_cost: With `Selective` and `Auto`, from how many operations on elements an op is
            expensive.
        memory_budget_mb: With `Auto`, and optionally `Selective`, the megabytes (of 10⁶ bytes) that
            kept results, recomputed ones and cotangents may take together.
        offload: Whether results that are kept go to disk, if they have a megabyte or more: True for
            a file in the system's folder for temporary files, or the path of another folder. The
            file has no name, and vanishes with the tape or the process, also after a crash.

    Raises:
        ArgumentError: The strategy is none, a number is negative or missing, an option is not for
            the strategy, or `offload` is no folder.

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
    offload: bool | str | os.PathLike[str] = False

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
        elif self.strategy is CheckpointStrategy.Auto:
            raise ArgumentError("CheckpointConfig: CheckpointStrategy.Auto needs memory_budget_mb")
        given = {
            "checkpoint_every_n": n is not None,
            "min_compute_cost": self.min_compute_cost != 0,
            "memory_budget_mb": self.memory_budget_mb is not None,
        }
        for name, is_given in given.items():
            if is_given and self.strategy not in _FOR[name]:
                others = " or ".join(f"gt.{each}" for each in _FOR[name])
                raise ArgumentError(
                    f"CheckpointConfig: strategy {self.strategy} takes no {name}, which is for "
                    f"{others}"
                )
        _check_offload(self.offload, self.strategy)

    def policy(self) -> KeepNothing | None:
        """The policy for the records of one tape; None to keep what rules read."""
        policy = self._policy_of_strategy()
        if policy is not None and self.offload is not False:
            folder = (
                None if self.offload is True else os.path.abspath(os.path.expanduser(self.offload))
            )
            policy.store = Store(folder)
        return policy

    def _policy_of_strategy(self) -> KeepNothing | None:
        match self.strategy:
            case None:
                return None
            case CheckpointStrategy.Block:
                return Blocks(self.checkpoint_every_n)
            case CheckpointStrategy.Full:
                return Full()
        expensive = Expensive(self.min_compute_cost, self.checkpoint_every_n or 1)
        if self.memory_budget_mb is None:
            return Selective(expensive)
        return Auto(int(self.memory_budget_mb * 1e6), expensive)


_SOME = (CheckpointStrategy.Selective, CheckpointStrategy.Auto)
# The strategies that an option is for.
_FOR = {
    "checkpoint_every_n": (CheckpointStrategy.Block, *_SOME),
    "min_compute_cost": _SOME,
    "memory_budget_mb": _SOME,
}


def _check_offload(folder: object, strategy: CheckpointStrategy | None) -> None:
    """Raise if something is neither a bool nor a path, or nothing would ever go there."""
    if not isinstance(folder, bool | str | os.PathLike) or folder == "":
        got = repr(folder) if folder == "" else a_type(folder)
        raise ArgumentError(
            f"CheckpointConfig: got {got} for offload, expected True, False or the path of a folder"
        )
    if not isinstance(folder, bool) and not os.path.isdir(os.path.expanduser(folder)):
        raise ArgumentError(
            f"CheckpointConfig: got {os.fspath(folder)!r} for offload, where there is no folder; "
            "make it first"
        )
    if folder is not False and strategy is None:
        raise ArgumentError(
            f"CheckpointConfig: got offload={folder!r} without a strategy, which decides what to "
            "keep; gt.CheckpointStrategy.Selective keeps all results"
        )


def _check_amount(name: str, value: object, what: str) -> None:
    """Raise if something is not a finite number from 0 on."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        got = repr(value) if number else a_type(value)
        raise ArgumentError(f"CheckpointConfig: got {got} for {name}, expected {what}, 0 or more")
