"""What a memory profiler says: checkpoints, samples, and tables by op and by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradtape.graph.text import short_line
from gradtape.tools.memory_journal import Journal, Phase, Place


class MemoryCheckpoint(NamedTuple):
    """Memory when `record_checkpoint` was called.

    Attributes:
        name: The name it was given.
        time: Seconds since profiling began.
        bytes: In use, above what was in use when profiling began.
        peak: The most that was in use until then.
        waiting: Kept by gradtape for the next call, and used by nobody.
        held: By place, the bytes of its results that are still there.
    """

    name: str
    time: float
    bytes: int
    peak: int
    waiting: int
    held: dict[Place, int]


class MemorySample(NamedTuple):
    """One point of the timeline: memory after an op.

    Attributes:
        time: Seconds since profiling began.
        bytes: In use, above what was in use when profiling began.
        op: The name of the op; of a compiled function, its name.
        line: The line of the user's code that called it.
        phase: "forward", or "backward" for its derivative rules.
    """

    time: float
    bytes: int
    op: str
    line: str
    phase: Phase


class MemoryUse(NamedTuple):
    """What an op, or a line of code, did to memory.

    Attributes:
        op: The name of the op; "" in a table by line.
        line: The line of the user's code; "" in a table by op.
        phase: "forward", or "backward" for derivative rules.
        calls: How often it ran.
        allocated: All bytes that were taken, also for temporaries.
        held: Bytes of its results that are still there.
        at_peak: Its part of the peak: bytes of its results that were there when the most memory was
            in use; for the op that was running then, also what it had taken itself.
    """

    op: str
    line: str
    phase: Phase
    calls: int
    allocated: int
    held: int
    at_peak: int


HEADER = "{:>12}  {:>12}  {:>12}  {:>7}  {}"


def table_row(use: MemoryUse) -> str:
    """A line of a table, under `HEADER`."""
    name = use.op or short_line(use.line) or "?"
    amounts = map(amount, (use.at_peak, use.held, use.allocated))
    what = name if use.phase == "forward" else f"{name}, backward"
    return HEADER.format(*amounts, use.calls, what)


def amount(count: int) -> str:
    """Bytes in a unit that fits: megabytes are 10⁶ bytes."""
    size = abs(count)
    for unit, least in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= least:
            return f"{count / least:9.2f} {unit}"
    return f"{count:10d} B"


def table(journal: Journal, key: Callable[[Place], tuple[str, str, Phase]]) -> list[MemoryUse]:
    """The tallies of all places, added up for those with the same op, line and phase in `key`."""
    rows: dict[tuple[str, str, Phase], list[int]] = {}
    for place, tally in list(journal.tallies.items()):
        row = rows.setdefault(key(place), [0, 0, 0, 0])
        numbers = tally.calls, tally.allocated, tally.held, journal.at_peak.get(place, 0)
        row[:] = [old + new for old, new in zip(row, numbers, strict=True)]
    uses = [MemoryUse(*names, *numbers) for names, numbers in rows.items()]
    return sorted(uses, key=lambda use: (use.at_peak, use.allocated), reverse=True)


def unnumbered(name: str) -> str:
    """A name without its numbers: "step 12" is another "step 11"."""
    return re.sub(r"\d+", "#", name)


def growing(checkpoints: Iterable[MemoryCheckpoint]) -> set[Place]:
    """Places of which more bytes were held at each of the last three checkpoints of a name."""
    by_name: dict[str, list[MemoryCheckpoint]] = {}
    for checkpoint in checkpoints:
        by_name.setdefault(unnumbered(checkpoint.name), []).append(checkpoint)
    found: set[Place] = set()
    for series in by_name.values():
        if len(series) >= 3:
            first, second, third = (checkpoint.held for checkpoint in series[-3:])
            found |= {
                place
                for place, held in third.items()
                if first.get(place, 0) < second.get(place, 0) < held
            }
    return found
