"""What ops do to memory: a mode that measures each op, and the journal it keeps.

Each op of the forward pass, and the rules of each record in the backward pass, are measured by the
allocator's counters before and after. Results are followed by weak references, so the journal knows
which op's results are still there, at every moment, and keeps nothing alive.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from gradtape.compiler.cpu.runtime.allocations import Figures, Meter
from gradtape.core.level import Node
from gradtape.core.lines import user_line
from gradtape.core.op import Op
from gradtape.core.record import Output, Record
from gradtape.core.state import Proceed
from gradtape.core.tensor import Tensor

Phase = Literal["forward", "backward"]
# With more samples than this, of two neighbours only the one with the higher peak is kept.
_MOST_SAMPLES = 1 << 15


class Place(NamedTuple):
    """An op at a line of the user's code; `line` is where it was called, also for its rules."""

    op: str
    phase: Phase
    line: str


class Tally:
    """What one place did.

    Attributes:
        calls: How often it ran.
        allocated: All bytes it took, also for temporaries.
        held: Bytes of its results that are still there.
        iteration: The iteration in which it ran last, see `Journal`.
    """

    __slots__ = ("allocated", "calls", "held", "iteration")

    def __init__(self) -> None:
        self.calls = self.allocated = self.held = self.iteration = 0


class Made(NamedTuple):
    """Where and when something was made."""

    place: Place
    iteration: int
    passes: int


class Sample(NamedTuple):
    """Memory after an op.

    Attributes:
        begin: When the op began, in seconds since profiling did.
        end: When it was done.
        bytes: In use afterwards.
        peak: The most that was in use meanwhile.
        place: What ran.
        held: By place, what is held by its results, where that has changed since the last sample.
    """

    begin: float
    end: float
    bytes: int
    peak: int
    place: Place
    held: dict[Place, int]


class Journal:
    """What happened since profiling began.

    An *iteration* ends with a backward pass, or with a checkpoint whose name was there before.

    Attributes:
        meter: The counters.
        tallies: What each place did.
        samples: Memory over time.
        records: Where records were made, as long as they exist.
        arrays: Results that still exist, by the id of the array: a reference, and where it is from.
        at_peak: By place, what was held when the most memory was in use; the op that ran then also
            with what it took itself.
        iteration: The number of the iteration.
        passes: How many backward passes are done.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.began = time.perf_counter()
        self.tallies: dict[Place, Tally] = {}
        self.samples: list[Sample] = []
        self.records: weakref.WeakKeyDictionary[Node, Made] = weakref.WeakKeyDictionary()
        self.arrays: dict[int, tuple[weakref.ref[Any], Made]] = {}
        self.at_peak: dict[Place, int] = {}
        self.iteration = self.passes = 0
        self._peak = 0
        self._pulling = False
        self._changed: dict[Place, int] = {}
        self._running = _Running()

    def clock(self) -> float:
        """Seconds since profiling began."""
        return time.perf_counter() - self.began

    # ---- around an op ----------------------------------------------------------------------

    def measured(self, op: str, phase: Phase, line: str, run: Callable[[], Any]) -> _Step:
        """Run something, and add up what it did to memory."""
        running = self._running
        outer = running.step
        if outer is not None:
            phase = outer.place.phase if outer.place.phase == "backward" else phase
        step = _Step(Place(op, phase, line), self.clock(), self._lap(outer))
        running.step = step
        try:
            step.result = run()
        finally:
            running.step = outer
            self._done(step, outer)
        return step

    def _lap(self, step: _Step | None) -> Figures:
        """Read the counters; a new peak is of the step that runs."""
        figures = self.meter.lap()
        if figures.peak > self._peak:
            self._peak = figures.peak
            held = {place: tally.held for place, tally in list(self.tallies.items()) if tally.held}
            if step is not None:
                own = max(0, figures.peak - step.before.current)
                held[step.place] = held.get(step.place, 0) + own
            self.at_peak = held
        return figures

    def _done(self, step: _Step, outer: _Step | None) -> None:
        after = self._lap(step)
        total = after.allocated - step.before.allocated
        step.allocated, step.peak = total, max(step.peak, after.peak)
        tally = self.tallies.setdefault(step.place, Tally())
        tally.calls += 1
        tally.allocated += total - step.inner
        tally.iteration = self.iteration
        if outer is not None:
            outer.inner += total
            outer.peak = max(outer.peak, step.peak)
        step.after = after.current

    def sample(self, step: _Step) -> None:
        """Note how much memory is in use after a step."""
        changed, self._changed = self._changed, {}
        self.samples.append(
            Sample(step.begin, self.clock(), step.after, step.peak, step.place, changed)
        )
        if len(self.samples) > _MOST_SAMPLES:
            pairs = zip(self.samples[::2], self.samples[1::2], strict=False)
            self.samples[: len(self.samples) // 2 * 2] = [_higher(*pair) for pair in pairs]

    # ---- what came out ---------------------------------------------------------------------

    def follow(self, array: Any, made: Made, most: int) -> None:
        """Count an array as held by what made it, until it is freed.

        Args:
            array: The array; nothing is done if it is none, or followed already.
            made: What made it.
            most: The bytes that were taken. A larger array was there before.
        """
        array = owner(array)
        if array is None or id(array) in self.arrays or array.nbytes > most:
            return
        key, size, place = id(array), array.nbytes, made.place

        def freed(_reference: Any) -> None:
            self.arrays.pop(key, None)
            self._hold(place, -size)

        self.arrays[key] = weakref.ref(array, freed), made
        self._hold(place, size)

    def _hold(self, place: Place, size: int) -> None:
        tally = self.tallies.setdefault(place, Tally())
        tally.held += size
        self._changed[place] = tally.held

    def made(self, place: Place) -> Made:
        """The place with the time."""
        return Made(place, self.iteration, self.passes)

    # ---- iterations ------------------------------------------------------------------------

    def pulling(self) -> None:
        """Note that a backward pass is under way."""
        self._pulling = True

    def pass_is_over(self) -> None:
        """Note that no backward pass is under way."""
        if self._pulling and self._running.step is None:
            self._pulling = False
            self.passes += 1
            self.iteration += 1


class _Running(threading.local):
    """The step that a thread is in."""

    def __init__(self) -> None:
        self.step: _Step | None = None


class _Step:
    """Something that is being measured; `inner` bytes were taken by steps inside of it."""

    __slots__ = ("after", "allocated", "before", "begin", "inner", "peak", "place", "result")

    def __init__(self, place: Place, begin: float, before: Figures) -> None:
        self.place = place
        self.begin = begin
        self.before = before
        self.after = self.peak = before.current
        self.inner = self.allocated = 0
        self.result: Any = None


def _higher(one: Sample, other: Sample) -> Sample:
    """One sample in place of two."""
    kept = max(one, other, key=lambda sample: sample.peak)
    return kept._replace(begin=one.begin, end=other.end, held=one.held | other.held)


def owner(value: Any) -> Any:
    """The array whose memory a value is in; None if it is no array of NumPy's."""
    while isinstance(value, Tensor):
        value = value.value
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value if isinstance(value, np.ndarray) else None


def kept_values(node: Any) -> Iterator[Any]:
    """The values that a record keeps."""
    if isinstance(node, Output):
        node = node.parent
    for value in (getattr(node, "out", None), *(getattr(node, "inputs", None) or ())):
        yield from value if isinstance(value, tuple) else (value,)


class Watch:
    """The mode that fills a journal."""

    kind = "observing"

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Measure an op, and follow its results."""
        journal = self.journal
        journal.pass_is_over()
        step = journal.measured(op.name, "forward", user_line(), lambda: proceed(op, args, params))
        result, step.result = step.result, None
        made = journal.made(step.place)
        given = {id(owner(arg)) for arg in args}
        for value in result if isinstance(result, tuple) else (result,):
            node = value.record if isinstance(value, Tensor) else None
            if id(owner(value)) not in given:
                journal.follow(value, made, step.allocated)
            if isinstance(node, Record):
                journal.records.setdefault(node, made)
                for kept in kept_values(node):
                    if id(owner(kept)) not in given:
                        journal.follow(kept, made, step.allocated)
        journal.sample(step)
        return result

    def pull(self, record: Record, proceed: Callable[[], list[Any]]) -> list[Any]:
        """Measure the rules of a record, and follow the cotangents."""
        journal = self.journal
        if isinstance(record, Output):
            return proceed()  # it passes its cotangent on to the record of the op
        journal.pulling()
        known = journal.records.get(record)
        line = user_line() if known is None else known.place.line
        step = journal.measured(_name(record), "backward", line, proceed)
        given: list[Any] = step.result
        step.result = None
        made = journal.made(step.place)
        for value in given:
            for part in value if isinstance(value, list) else (value,):
                journal.follow(part, made, step.allocated)
        journal.sample(step)
        return given


def _name(record: Record) -> str:
    op = getattr(record, "op", None)  # a constant has none
    return "constant" if op is None else str(op.name)
