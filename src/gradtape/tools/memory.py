"""`GradientMemoryProfiler`: what arrays occupy, when, and which op and line of code made them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gradtape.compiler.cpu.runtime.allocations import Meter, waiting_bytes
from gradtape.core.state import using_mode
from gradtape.errors import ArgumentError, ContextError, TapeError, a_type
from gradtape.tools.leaks import LeakReport, find_leaks
from gradtape.tools.memory_figures import (
    HEADER,
    MemoryCheckpoint,
    MemorySample,
    MemoryUse,
    amount,
    growing,
    table,
    table_row,
    unnumbered,
)
from gradtape.tools.memory_journal import Journal, Watch
from gradtape.tools.memory_view import chrome_trace, page, write


class GradientMemoryProfiler:
    """Measures the memory of arrays: in use, at its peak, by op, by line, over time.

    Figures are read from the allocators, and are bytes above what was in use when profiling began.
    They count NumPy's arrays, gradtape's blocks, temporaries of compiled functions and CuPy's pool,
    in all threads. Several profilers may run at a time, each from its own start. One that is no
    longer referred to stops.

    >>> x = gt.tensor(np.ones((256, 1024)), requires_grad=True)
    >>> with gt.GradientMemoryProfiler() as profiler:
    ...     profiler.record_checkpoint("before")
    ...     y = x * 2.0
    ...     profiler.record_checkpoint("after")
    >>> profiler.get_memory_delta("before", "after")
    2097152
    """

    def __init__(self) -> None:
        self._meter = Meter()
        self._journal: Journal | None = None
        self._by_op = False
        self._checkpoints: list[MemoryCheckpoint] = []
        self._names: set[str] = set()
        self._leave: Callable[..., None] | None = None
        self._stop: weakref.finalize[Any, Any] | None = None

    # ---- from start to stop ----------------------------------------------------------------

    def start_profiling(self, *, ops: bool = True) -> None:
        """Begin to measure, with what is in use now as zero; what was measured before is dropped.

        Args:
            ops: Whether each op is measured by itself, for `by_op`, `by_line`, the timeline and
                `detect_leaks`. This concerns the ops of this thread or task, and costs some
                microseconds for each. Without it, nothing is done differently than otherwise.
        """
        self.stop_profiling()
        self._meter = Meter()
        self._journal = Journal(self._meter)
        self._checkpoints, self._names = [], set()
        self._by_op = ops
        self._meter.start()
        self._stop = weakref.finalize(self, self._meter.stop)
        self._stop.atexit = False
        if ops:
            scope = using_mode(Watch(self._journal))
            # A `with` statement does the same. The state forgets the scope when nobody has its
            # exit any more, so profiling stops with the profiler.
            self._leave = scope.__exit__
            scope.__enter__()

    def stop_profiling(self) -> None:
        """Stop measuring; the figures stay as they are."""
        if self._stop is not None:
            self._stop()
        leave, self._leave = self._leave, None
        if leave is not None:
            with suppress(ContextError):  # started in another thread, which finds it gone
                leave()

    def __enter__(self) -> GradientMemoryProfiler:
        self.start_profiling()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop_profiling()

    def _started(self, what: str, *, ops: bool = False) -> Journal:
        if self._journal is None:
            raise TapeError(f"{what}: nothing was measured yet; call start_profiling() first")
        if ops and not self._by_op:
            raise TapeError(
                f"{what}: ops were not measured, as profiling was started with ops=False; leave "
                "that out"
            )
        return self._journal

    # ---- totals ----------------------------------------------------------------------------

    def peak_bytes(self) -> int:
        """The most bytes that were in use at a time since the start."""
        self._started("peak_bytes")
        return self._meter.figures().peak

    def current_bytes(self) -> int:
        """The bytes in use now; negative if more was freed than allocated since the start."""
        self._started("current_bytes")
        return self._meter.figures().current

    def allocated_bytes(self) -> int:
        """All bytes that were allocated since the start, whether or not they were freed."""
        self._started("allocated_bytes")
        return self._meter.figures().allocated

    def waiting_bytes(self) -> int:
        """Memory that gradtape keeps for the next call; it is not in use, and not in the others."""
        return waiting_bytes()

    # ---- checkpoints -----------------------------------------------------------------------

    def record_checkpoint(self, name: str) -> None:
        """Note the memory in use, to be compared by `get_memory_delta`.

        Args:
            name: What to call it. A name that comes again, also with another number in it, begins
                another iteration for `detect_leaks`; `get_memory_delta` takes the last one.

        Raises:
            ArgumentError: The name is not a string.
            TapeError: Profiling was not started.
        """
        journal = self._started("record_checkpoint")
        if not isinstance(name, str):
            raise ArgumentError(f"record_checkpoint: got {a_type(name)}, expected a name, a string")
        journal.pass_is_over()
        if unnumbered(name) in self._names:
            journal.iteration += 1
        self._names.add(unnumbered(name))
        current, peak, _ = self._meter.figures()
        held = {place: tally.held for place, tally in list(journal.tallies.items()) if tally.held}
        self._checkpoints.append(
            MemoryCheckpoint(name, journal.clock(), current, peak, waiting_bytes(), held)
        )

    def checkpoints(self) -> list[MemoryCheckpoint]:
        """All checkpoints, in the order they were recorded."""
        return list(self._checkpoints)

    def get_memory_delta(self, a: str, b: str) -> int:
        """How many more bytes were in use at checkpoint `b` than at checkpoint `a`.

        Args:
            a: The name of a checkpoint.
            b: The name of another one.

        Raises:
            ArgumentError: There is no such checkpoint.
        """
        return self._checkpoint(b).bytes - self._checkpoint(a).bytes

    def _checkpoint(self, name: str) -> MemoryCheckpoint:
        for checkpoint in reversed(self._checkpoints):
            if checkpoint.name == name:
                return checkpoint
        names = ", ".join(dict.fromkeys(repr(checkpoint.name) for checkpoint in self._checkpoints))
        raise ArgumentError(
            f"get_memory_delta: got {name!r}, expected the name of a checkpoint: "
            f"{names or 'none was recorded; call record_checkpoint(name)'}"
        )

    # ---- by op, by line, over time ---------------------------------------------------------

    def by_op(self) -> list[MemoryUse]:
        """What each op did, forward and backward apart, the largest part of the peak first.

        A compiled function is one op.

        Raises:
            TapeError: Profiling was not started, or without ops.
        """
        journal = self._started("by_op", ops=True)
        return table(journal, lambda place: (place.op, "", place.phase))

    def by_line(self) -> list[MemoryUse]:
        """What each line of the user's code did; rules count for the line that called their op.

        Raises:
            TapeError: Profiling was not started, or without ops.
        """
        journal = self._started("by_line", ops=True)
        return table(journal, lambda place: ("", place.line, place.phase))

    def timeline(self) -> list[MemorySample]:
        """Memory after each op; of very many ops, some are left out.

        Raises:
            TapeError: Profiling was not started, or without ops.
        """
        samples = self._started("timeline", ops=True).samples
        return [
            MemorySample(s.end, s.bytes, s.place.op, s.place.line, s.place.phase) for s in samples
        ]

    def report(self, *, rows: int = 10) -> str:
        """The figures as text: totals, checkpoints, ops and lines.

        Args:
            rows: How many ops, lines and checkpoints to list at most.
        """
        journal = self._started("report")
        current, peak, allocated = self._meter.figures()
        lines = [
            f"peak      {amount(peak)}",
            f"in use    {amount(current)}",
            f"allocated {amount(allocated)}",
            f"waiting   {amount(waiting_bytes())}",
        ]
        if self._checkpoints:
            lines += ["", f"{'in use':>12}  checkpoint"]
            lines += [f"{amount(c.bytes)}  {c.name}" for c in self._checkpoints[-rows:]]
        if self._by_op:
            outside = peak - sum(journal.at_peak.values())
            for title, uses in (("op", self.by_op()), ("line", self.by_line())):
                lines += ["", HEADER.format("at peak", "held", "allocated", "calls", title)]
                lines += [table_row(use) for use in uses[:rows]]
                lines += [f"{amount(outside)}  outside of ops"] if outside > 0 else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return repr(self) if self._journal is None else self.report()

    def __repr__(self) -> str:
        if self._journal is None:
            return "<GradientMemoryProfiler, not started>"
        running = self._stop is not None and self._stop.alive
        peak = amount(self.peak_bytes()).strip()
        return f"<GradientMemoryProfiler, {'running' if running else 'stopped'}, peak {peak}>"

    # ---- leaks and files -------------------------------------------------------------------

    def detect_leaks(self) -> LeakReport:
        """Find results that are kept alive longer than they are of use, and say by what.

        An iteration ends with a backward pass, or with a checkpoint whose name was there before.
        Suspicious are

        - a tensor with history whose line has run again in a later iteration, unless a current
          result was computed from it: `losses.append(loss)`;
        - a tensor whose history reaches back over three backward passes or more: a weight that was
          updated outside of `no_grad`;
        - other arrays of a line of which more and more bytes were held at each of the last three
          checkpoints of a name.

        Parameters, gradients and results of the current iteration are none of these.

        Raises:
            TapeError: Profiling was not started, or without ops.
        """
        journal = self._started("detect_leaks", ops=True)
        journal.pass_is_over()
        return find_leaks(journal, growing(self._checkpoints))

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline in the trace format of Chrome, for Perfetto or chrome://tracing.

        Args:
            path: The file to write; it is replaced as a whole.

        Raises:
            OSError: The file cannot be written.
            TapeError: Profiling was not started, or without ops.
        """
        journal = self._started("export_chrome_trace", ops=True)
        write(path, chrome_trace(journal, self._checkpoints))

    def export_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page with a plot of memory over time by op, and tables by op and by line.

        The page is one file without references to others, and makes no connections.

        Args:
            path: The file to write; it is replaced as a whole.

        Raises:
            OSError: The file cannot be written.
            TapeError: Profiling was not started, or without ops.
        """
        journal = self._started("export_html", ops=True)
        totals = {**self._meter.figures()._asdict(), "waiting": waiting_bytes()}
        write(path, page(journal, self._checkpoints, totals, self.by_op(), self.by_line()))
