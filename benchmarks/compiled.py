"""Compiled functions against jax.jit, torch.compile, PyTorch and NumPy.

Every side runs in a process of its own: the thread pools of several libraries in one process spin
against each other. The processes of a case live side by side and take turns, so that a ratio is
formed of two turns that met the same machine. How fast threads are differs from process to
process (it depends on which core a thread wakes up on), so everything is done again with fresh
processes, and the spread is that over all of them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.compiled_cases import (
    CHAIN,
    COMPILE_TIME,
    CONTROL_FLOW,
    ROW_WISE,
    SMALL,
    TRAINING,
    Case,
)
from benchmarks.harness import Settings
from benchmarks.report import quantity
from benchmarks.result import OURS, NotRun, Row
from benchmarks.worker import Worker
from gradtape.tools.statistics import Spread, median

PEERS = {
    "numpy": "NumPy",
    "jax": "jax.jit",
    "jax-sync": "jax.jit, synchronous dispatch",
    "jax-numpy": "jax.jit, NumPy arrays in and out",
    "torch": "PyTorch eager",
    "torch-compile": "torch.compile",
    "torch-lstm": "PyTorch, nn.LSTM",
    "c": "C, cc -O3 -march=native",
}
WORKER = "benchmarks.compiled_worker"
LEAST_BATCHES = 3

Results = Iterator[Row | NotRun]


def run_chain(settings: Settings) -> Results:
    """Time a chain of elementwise functions at several sizes."""
    return _run(CHAIN, settings)


def run_small(settings: Settings) -> Results:
    """Time functions so small that the call is what counts."""
    return _run(SMALL, settings)


def run_row_wise(settings: Settings) -> Results:
    """Time softmax and layer norm with their gradients."""
    return _run(ROW_WISE, settings)


def run_training(settings: Settings) -> Results:
    """Time a step of training a classifier."""
    return _run(TRAINING, settings)


def run_control_flow(settings: Settings) -> Results:
    """Time loops with their gradients."""
    return _run(CONTROL_FLOW, settings)


def run_compile_time(settings: Settings) -> Results:
    """Time the compilation of that step, each time in a fresh process with no cache on disk."""
    sides = [OURS, *COMPILE_TIME.bars]
    request = {"do": "first", "case": COMPILE_TIME.name}

    def measure(tally: Tally) -> None:
        sides.reverse()
        for side in sides:
            with tempfile.TemporaryDirectory() as empty:
                env = {
                    "GRADTAPE_CACHE": "0",
                    "JAX_ENABLE_COMPILATION_CACHE": "false",
                    "TORCHINDUCTOR_CACHE_DIR": empty,
                }
                with Worker(WORKER, side, tally.threads, env) as worker:
                    tally.add(COMPILE_TIME, side, worker.ask(request))

    return _results([COMPILE_TIME], settings, measure)


def _run(cases: Sequence[Case], settings: Settings) -> Results:
    """Time all sides of some cases; only the first of several processes compiles all anew."""
    with tempfile.TemporaryDirectory() as cache:
        env = {"TORCHINDUCTOR_CACHE_DIR": cache}
        yield from _results(cases, settings, lambda tally: _round(cases, tally, settings, env))


def _results(
    cases: Sequence[Case], settings: Settings, measure: Callable[[Tally], None]
) -> Results:
    """Measure with every number of threads, several times over, and make the rows."""
    cores = len(os.sched_getaffinity(0))
    failures: list[str] = []
    for threads, processes in settings.processes.items():
        if threads > cores:
            for case in cases:
                yield NotRun(case.name, f"{threads} threads", f"there are only {cores} cores")
            continue
        tally = Tally(threads)
        for _ in range(processes):
            measure(tally)
        yield from tally.results(cases)
        failures += [f"{label}: {why}" for label, why in tally.failures()]
    if failures:
        raise RuntimeError("; ".join(failures))


def _round(cases: Sequence[Case], tally: Tally, settings: Settings, env: Mapping[str, str]) -> None:
    """Go through the cases once with a fresh process for every side."""
    sides = [OURS, *dict.fromkeys(side for case in cases for side in case.bars)]
    turn = {"do": "turn", "seconds": settings.turn_seconds, "least": LEAST_BATCHES}
    with ExitStack() as stack:
        workers = {s: stack.enter_context(Worker(WORKER, s, tally.threads, env)) for s in sides}
        for case in cases:
            order = [side for side in (OURS, *case.bars) if tally.runs(case, side)]
            for side in order:
                workers[side].send({"do": "prepare", "case": case.name})
            for side in order:
                tally.add(case, side, workers[side].receive())
            for _ in range(settings.turns):
                order = [side for side in reversed(order) if tally.runs(case, side)]
                for side in order:
                    tally.add(case, side, workers[side].ask(turn))


class Tally:
    """Collects the answers for one number of threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.seconds: dict[tuple[str, str], list[float]] = {}
        self.unavailable: dict[tuple[str, str], str] = {}
        self.failed: dict[tuple[str, str], str] = {}

    def add(self, case: Case, side: str, answer: Mapping[str, Any]) -> None:
        """Enter an answer of a side."""
        key = case.name, side
        if "batches" in answer:
            self.seconds.setdefault(key, []).append(median(answer["batches"]))
        if "seconds" in answer:
            self.seconds.setdefault(key, []).append(answer["seconds"])
        if "unavailable" in answer:
            self.unavailable[key] = answer["unavailable"]
        if "failed" in answer:
            self.failed[key] = answer["failed"]

    def runs(self, case: Case, side: str) -> bool:
        """Whether a side has neither failed at a case nor found that it cannot run."""
        key = case.name, side
        return key not in self.failed and key not in self.unavailable

    def results(self, cases: Sequence[Case]) -> Results:
        """Make the rows: one per case and peer, or why there is none."""
        for case in cases:
            if not self.runs(case, OURS):
                if why := self.unavailable.get((case.name, OURS)):
                    yield NotRun(
                        self._label(case), OURS, f"{why} (the others: {self._times(case)})"
                    )
                continue
            for side, bar in case.bars.items():
                if self.runs(case, side):
                    yield self._row(case, side, bar)
                elif why := self.unavailable.get((case.name, side)):
                    yield NotRun(self._label(case), PEERS[side], why)

    def failures(self) -> Iterator[tuple[str, str]]:
        """Say which sides failed at what, and how."""
        for (case, side), why in self.failed.items():
            yield f"{case}, {self._threads()}, {side}", why

    def _row(self, case: Case, side: str, bar: float | None) -> Row:
        ours, theirs = self.seconds[case.name, OURS], self.seconds[case.name, side]
        return Row(
            name=case.name,
            what=case.what,
            ours=Spread.of(ours).median,
            peer_name=PEERS[side],
            peer=Spread.of(theirs).median,
            ratio=Spread.of_ratio(theirs, ours),
            bar=bar,
            speedup=True,
            threads=self.threads,
        )

    def _label(self, case: Case) -> str:
        return f"{case.name}, {self._threads()}"

    def _threads(self) -> str:
        return "1 thread" if self.threads == 1 else f"{self.threads} threads"

    def _times(self, case: Case) -> str:
        medians = {
            PEERS[side]: Spread.of(self.seconds[case.name, side]).median
            for side in case.bars
            if self.runs(case, side)
        }
        return "; ".join(f"{name} {quantity(t, 's')}" for name, t in medians.items())
