"""Memory: what budgets, checkpoints and released tapes save, and whether loops leave any behind.

Every peak is measured twice: by how much resident memory rises, as the system sees it, and by how
much allocated memory does, as the allocator sees it (tracemalloc for Python and NumPy, the profiler
for PyTorch). What compiled code and libraries take for themselves is in the first figure alone, and
so is memory that is kept for the next call.
"""

from collections.abc import Iterator

import gradtape as gt
from benchmarks import memory_budgets, memory_flat, memory_schedules, memory_steps
from benchmarks.harness import Settings
from benchmarks.result import NotRun, Row
from gradtape.tools.peak_memory import PEAK_RESET

PARTS = (memory_budgets.run, memory_schedules.run, memory_steps.run, memory_flat.run)


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Measure all of it."""
    if not PEAK_RESET.exists():
        yield NotRun("memory", gt.__name__, f"{PEAK_RESET} is needed, which is Linux's")
        return
    for part in PARTS:
        yield from part(settings)
