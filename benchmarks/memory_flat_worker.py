"""Measures a loop: `python -m benchmarks.memory_flat_worker LOOP KIND FIRST LAST`.

Memory is measured after the first and after the last iteration: "resident" as the system sees it,
or "allocated" as tracemalloc does, whose own tables are resident too.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.memory_loops import LOOPS, GoOn

T = TypeVar("T")


def measured(run: Callable[[GoOn], None], at: Sequence[int], measure: Callable[[], T]) -> list[T]:
    """Run a loop and measure after the given numbers of iterations.

    Args:
        run: The loop; it ends with the last measurement.
        at: The numbers, in ascending order.
        measure: What to measure; garbage is collected before.

    Returns:
        One result per number.
    """
    found: list[T] = []
    count = -1

    def go_on() -> bool:
        nonlocal count
        count += 1
        if count in at:
            gc.collect()
            found.append(measure())
        return count < at[-1]

    run(go_on)
    return found


def resident() -> int:
    """Return the bytes of this process that are in memory, as Linux counts them."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main(name: str, kind: str, *at: str) -> None:
    """Measure one loop and print the figures."""
    if kind == "allocated":
        tracemalloc.start()
    figures = {
        "resident": resident,
        "allocated": lambda: tracemalloc.get_traced_memory()[0],
    }
    print(json.dumps(measured(LOOPS[name].run, [int(n) for n in at], figures[kind])))


if __name__ == "__main__":
    main(*sys.argv[1:])
