"""Whether loops that go on for long need ever more memory.

Each is run by processes of its own, and its memory is compared after the first iterations and after
all: resident as the system sees it, and allocated as tracemalloc sees it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.harness import Settings
from benchmarks.memory_loops import LOOPS, Loop
from benchmarks.memory_request import answer_of, is_quick
from benchmarks.memory_rows import bytes_row
from benchmarks.result import Row

NAME = "memory of loops"
FIRST, LAST = 1_000, 10_000
QUICK = (100, 500)
LEAST = sys.getsizeof(1)
"""The bytes of the smallest object. A loop that left one behind in each iteration would leak."""
NOISE = {"resident": 1_000_000, "allocated": 200_000}
"""Less than this says nothing: resident memory comes in pages and arenas, and up to 1,000 tapes
that ended wait until their records are looked for (`gradtape.core.release`)."""


def run(settings: Settings) -> Iterator[Row]:
    """Measure every loop, each as a detail, then show the worst."""
    first, last = QUICK if is_quick(settings) else (FIRST, LAST)
    rows: dict[str, dict[str, Row]] = {kind: {} for kind in NOISE}
    for name, loop in LOOPS.items():
        for kind, found in rows.items():
            found[name] = _measured(name, loop, kind, first, last)
            yield found[name]
    for kind, found in rows.items():
        worst = max(found, key=lambda name: found[name].ratio.median)
        what = f"{len(found)} kinds of loops, growth of {kind} memory; worst: {worst}"
        yield replace(found[worst], what=what, detail=False)


def allowed(loop: Loop, kind: str, iterations: int) -> int:
    """Return the bytes by which a loop may grow in so many iterations."""
    return max(NOISE[kind], LEAST * iterations) + loop.kept * iterations


def _measured(name: str, loop: Loop, kind: str, first: int, last: int) -> Row:
    numbers = (str(first), str(last))
    early, late = answer_of("benchmarks.memory_flat_worker", name, kind, *numbers)
    return bytes_row(
        NAME,
        f"iterations {first:,} to {last:,}: {name}, growth of {kind} memory",
        late - early,
        "what is no leak",
        allowed(loop, kind, last - first),
        1.0,
        detail=True,
    )
