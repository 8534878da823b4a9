"""The process of one state of gradtape: `python -m benchmarks.before_worker SIDE`."""

from typing import Any

import gradtape as gt
from benchmarks import THREADS
from benchmarks.before_cases import PROGRAMS
from benchmarks.compiled_program import Clock
from benchmarks.worker import answer_requests


class Side:
    """Answers the requests of one side; one program is in hand at a time."""

    def __init__(self, _key: str) -> None:
        gt.set_num_threads(THREADS)
        self._clock: Clock | None = None

    def prepare(self, name: str) -> dict[str, Any]:
        """Make a program; its first calls find out how long one takes."""
        self._clock = None  # gives the memory of the last one back
        self._clock = Clock(PROGRAMS[name]())
        return {}

    def turn(self, seconds: float, least: int) -> dict[str, Any]:
        """Time the program that was prepared."""
        assert self._clock is not None
        return {"batches": self._clock.turn(seconds, least)}


if __name__ == "__main__":
    answer_requests(Side)
