"""Processes with threads, forks, signals and finalizers: nothing crashes, hangs or is lost."""

from __future__ import annotations

import contextvars
import ctypes
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import thread_jobs
from gradtape.compiler.cpu.llvm import link
from gradtape.compiler.cpu.llvm.link import Library, compile_module

LONG = 60.0  # seconds; what takes that long hangs
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
needs_timers = pytest.mark.skipif(sys.platform == "win32", reason="no timers on this system")


def run(program: str, how_much: float) -> None:
    script = Path(thread_jobs.__file__)
    done = subprocess.run(
        [sys.executable, str(script), program, str(how_much)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    told = f"{done.stdout.strip()}\n{done.stderr}"
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", ""), told


def finishes(work: Callable[[], Any]) -> Any:
    """What a function returns; a failure if it waits for itself."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive(), "it hangs"
    return results[0]


@needs_fork
def test_threads_that_begin_with_the_same() -> None:
    run("first", 1)


@needs_fork
@pytest.mark.slow
def test_threads_that_begin_with_the_same_often() -> None:
    run("first", 20)


@needs_fork
def test_children_of_a_process_whose_threads_work() -> None:
    run("forks", 2)


@needs_fork
@pytest.mark.slow
def test_many_children_of_a_process_whose_threads_work() -> None:
    run("forks", 40)


@needs_timers
def test_signal_handlers_do_what_they_interrupt() -> None:
    run("signals", 0.04)


@needs_timers
@pytest.mark.slow
def test_signal_handlers_do_what_they_interrupt_for_long() -> None:
    run("signals", 5)


# ---- code of users in the middle of ours --------------------------------------------------------


class Unit:
    """A static argument that calls the compiled function when it is hashed or compared."""

    compiled: Any = None
    calls = 0
    depth = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def _use(self) -> None:
        if Unit.depth or Unit.compiled is None:
            return
        Unit.depth += 1
        try:
            Unit.calls += 1
            np.testing.assert_array_equal(Unit.compiled(np.ones(3), Unit("m")), np.full(3, 2.0))
            # Also one of another form, which is to be put where the search goes on.
            Unit.compiled(np.ones(1 + Unit.calls % 30), Unit("m"))
        finally:
            Unit.depth -= 1

    def __hash__(self) -> int:
        self._use()
        return 7  # the same for all, so that they have to be compared

    def __eq__(self, other: object) -> bool:
        self._use()
        return isinstance(other, Unit) and other.name == self.name


@pytest.fixture
def units() -> Iterator[Any]:
    Unit.compiled = gt.jit(lambda x, unit: x * 2.0, static_argnums=1)
    yield Unit.compiled
    Unit.compiled = None


def test_static_arguments_that_call_the_compiled_function(units: Any) -> None:
    def calls() -> list[Any]:
        return [units(np.ones(3), Unit(name)) for name in "mkmsm" * 2]

    for result in finishes(calls):
        np.testing.assert_array_equal(result, np.full(3, 2.0))
    assert Unit.calls > 5


def test_a_static_argument_that_waits_for_another_thread() -> None:
    class Waiting:
        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            finishes(lambda: compiled(np.ones(4), 5))
            return isinstance(other, Waiting)

    compiled = gt.jit(lambda x, unit: x * 2.0, static_argnums=1)
    for _ in range(3):
        result = finishes(lambda: compiled(np.ones(3), Waiting()))
        np.testing.assert_array_equal(result, np.full(3, 2.0))


class Ghost:
    """Is found by the garbage collector only, and then does some work."""

    def __init__(self, work: Callable[[int], None], found: list[str]) -> None:
        self.work, self.found, self.cycle = work, found, self

    def __del__(self) -> None:
        try:
            # In a context of its own: what it interrupts may be a function that is traced, or, in
            # Python 3.11, the change of a context variable, which must not be changed meanwhile.
            contextvars.Context().run(self.work, 1_000 + len(self.found))
            self.found.append("")
        except BaseException as error:
            self.found.append(repr(error))


@pytest.mark.parametrize("kind", thread_jobs.KINDS, ids=lambda kind: kind.__name__)
def test_finalizers_do_what_they_interrupt(kind: Callable[[int], None]) -> None:
    found: list[str] = []

    def work() -> None:
        kind(0)  # modules are loaded
        for n in range(8):
            Ghost(kind, found)
            kind(n)

    before = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    try:
        finishes(work)
    finally:
        gc.set_threshold(*before)
        gc.collect()
    assert len(found) == 8
    assert set(found) == {""}


# ---- libraries ----------------------------------------------------------------------------------

NUMBER = "define i64 @number() { ret i64 42 }"


def test_a_function_keeps_its_library() -> None:
    function = Library(compile_module(NUMBER), {}, ["number"]).function(
        "number", ctypes.CFUNCTYPE(ctypes.c_int64)
    )
    gc.collect()
    assert function() == 42


def test_a_library_that_outlives_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python empties modules when a process ends; an error in `__del__` would be a failure here.
    library = Library(compile_module(NUMBER), {}, ["number"])
    for name in list(vars(link)):
        if not name.startswith("__"):
            monkeypatch.setattr(link, name, None)
    del library
    gc.collect()


def test_llvmlite_has_the_lock_that_forks_wait_for() -> None:
    lock = link.llvm().ffi.lib._lock._lock
    assert not lock._is_owned()
    assert link._calling_llvm(lock._is_owned)
