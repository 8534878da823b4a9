"""A program of one side: what one call is, as statements, and how calls are checked and timed.

Statements are timed as `timeit` does it, in a loop with nothing else in it. The clock is that on
the wall: with more than one thread, processor time is no measure of what a user waits for. A turn
is cut into batches of calls, the first of them to wake threads and caches; the median over the
other batches counts, so that what another process took now and then does not. The process that
asked for the turn forms it: this one may run an earlier gradtape, which has no statistics.
"""

import gc
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.agreement import assert_agree

BATCH_SECONDS = 0.003
STEPS = 20
"""Steps of a training program per timed statement; the last one of them is waited for."""
CHECKED_STEPS = 3


class UnavailableError(Exception):
    """A side cannot run here; the message says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """The statements of one side.

    A program without a `start` computes the same `call` again and again. A training program sets
    its variables in `start` (not timed, run before every batch, so that no side trains for longer
    than another and into denormal numbers), changes them in `call` and waits in `wait` after
    `STEPS` calls.
    """

    call: str
    names: Mapping[str, object]
    start: str = ""
    wait: str = ""
    result: str = ""
    """An expression of what was computed; empty where that is the value of `call` itself."""
    leaf: Callable[[Any], np.ndarray] = np.asarray
    """Turns an array of this library into one of NumPy."""

    @property
    def calls(self) -> int:
        """Number of calls in the timed statement."""
        return STEPS if self.start else 1

    def timer(self) -> timeit.Timer:
        """Return a timer of `calls` calls that leaves the garbage collector on."""
        statement = self.call
        if self.start:
            statement = f"for _ in range({STEPS}): {self.call}\n{self.wait or 'pass'}"
        setup = f"gc.enable()\n{self.start}"
        names = {**self.names, "gc": gc}
        return timeit.Timer(statement, setup, timer=time.perf_counter, globals=names)

    def results(self) -> list[np.ndarray]:
        """Return what a few calls compute, in NumPy's arrays."""
        names = dict(self.names)
        exec(self.start, names)
        if self.start:
            for _ in range(CHECKED_STEPS):
                exec(self.call, names)
        found: list[Any] = []
        _flatten(eval(self.result or self.call, names), found)
        return [self.leaf(array) for array in found]

    def first_calls(self) -> tuple[float, float]:
        """Return the seconds of the first call and of the third, each until it has finished.

        The second one may be compiled, too: results that come back may be of another form.
        """
        names = dict(self.names)
        exec(self.start, names)
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            exec(f"{self.call}\n{self.wait}", names)
            seconds.append(time.perf_counter() - begin)
        return seconds[0], seconds[2]


def _flatten(value: Any, found: list[Any]) -> None:
    """Collect the arrays of nested tuples, lists and dicts, those in the order of keys."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if not isinstance(value, tuple | list):
        found.append(value)
        return
    for part in value:
        _flatten(part, found)


class Clock:
    """Times a program in turns."""

    def __init__(self, program: Program) -> None:
        self._timer = program.timer()
        self._calls = program.calls
        self._loops = 1
        while (spent := self._timer.timeit(self._loops)) < BATCH_SECONDS:
            ahead = int(self._loops * BATCH_SECONDS / max(spent, 1e-9)) + 1
            self._loops = max(2 * self._loops, min(10 * self._loops, ahead))
        self._loops = max(1, round(self._loops * BATCH_SECONDS / spent))

    def turn(self, seconds: float, least: int) -> list[float]:
        """Return the seconds of a call in each of the batches that fill `seconds`.

        Args:
            seconds: How long to measure.
            least: The least number of batches, for calls that are slower than that.
        """
        gc.collect()
        self._timer.timeit(self._loops)
        batches: list[float] = []
        while len(batches) < least or sum(batches) < seconds:
            batches.append(self._timer.timeit(self._loops))
        return [batch / (self._loops * self._calls) for batch in batches]


def check(name: str, results: list[np.ndarray], reference: list[np.ndarray], rtol: float) -> None:
    """Raise AssertionError unless all results agree with the reference."""
    if len(results) != len(reference):
        raise AssertionError(f"{name}: {len(results)} arrays against {len(reference)}")
    for i, (ours, exact) in enumerate(zip(results, reference, strict=True)):
        assert_agree(f"{name}, result {i}", ours, exact, rtol=rtol, floor=0.0)
