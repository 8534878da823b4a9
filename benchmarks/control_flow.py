"""Loops with their gradients: what they keep in memory, then what they take, against the peers."""

from collections.abc import Iterator

from benchmarks import compiled, loop_memory
from benchmarks.harness import Settings
from benchmarks.result import NotRun, Row


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Measure the memory of loops, then time them."""
    yield from loop_memory.run(settings)
    yield from compiled.run_control_flow(settings)
