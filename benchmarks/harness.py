"""Interleaved timing: contenders take turns in short blocks of one process, ratios are per block.

Machines drift (frequency, neighbours), so a time on its own says little. In each block every
contender has one turn of about `Settings.turn_seconds`, the order alternating from block to block;
a ratio is formed inside a block, where both sides met the same machine. The median over the blocks
is reported, with the 10th and 90th percentile as spread. All calls of a turn count: taking the
fastest of several short runs would favour the side whose single call is short.

The clock is the processor time of this process. Every side computes in one thread and waits for
nothing, so on an idle machine that is the time on the wall; on a shared one it leaves out what
other processes took.

The cyclic garbage collector stays on during timing, on every side: what it costs is part of what a
library costs. It is run to its end before each measurement, so that no side pays for the garbage
of another.
"""

import gc
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gradtape.tools.timing import calls_that_fill, sampled_in_turns

Samples = dict[str, list[float]]
CLOCK = time.process_time


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to measure: blocks per comparison, seconds per turn."""

    blocks: int = 41
    turn_seconds: float = 0.02
    rounds: int = 7
    """Rounds of what is timed call by call: slow work, and work with a set-up of its own."""
    processes: Mapping[int, int] = field(default_factory=lambda: {2: 3, 1: 2})
    """For each number of threads of the compiled benchmarks, how many fresh processes every side
    gets, one after the other. With one thread they hardly differ."""
    turns: int = 4
    """Turns of each of these processes."""

    @classmethod
    def quick(cls) -> "Settings":
        """Enough to see that everything runs; the figures are rough."""
        return cls(blocks=5, turn_seconds=0.005, rounds=2, processes={2: 1}, turns=3)


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison: its name and the work of one call.

    `work` is a function or, for work below a microsecond, a statement (no function call is added
    to it) whose names are looked up in `names`.
    """

    name: str
    work: str | Callable[[], object]
    names: Mapping[str, object] = field(default_factory=dict)

    def timer(self) -> timeit.Timer:
        """Return a timer that leaves the garbage collector on, unlike timeit's default."""
        names = {**self.names, "gc": gc}
        return timeit.Timer(self.work, "gc.enable()", timer=CLOCK, globals=names)


def measure(contenders: Sequence[Contender], settings: Settings) -> Samples:
    """Time contenders in interleaved blocks.

    Args:
        contenders: The sides, each with a name of its own.
        settings: How long to measure.

    Returns:
        For each contender the seconds per call, one figure per block.
    """
    loops = {c.name: c.timer().timeit for c in contenders}
    calls = {name: calls_that_fill(loop, settings.turn_seconds) for name, loop in loops.items()}
    return sampled_in_turns(loops, calls, settings.blocks)


def time_once(work: Callable[[], object]) -> float:
    """Time one call, the collector on and run beforehand."""
    gc.collect()
    start = CLOCK()
    work()
    return CLOCK() - start
