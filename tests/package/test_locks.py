"""Locks, values that are made once, and what a fork waits for."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradtape import locks
from gradtape.core.recent import Recent
from gradtape.locks import Once, apart, guard, held_at_fork, loading, once

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
# Newer Pythons warn of what is tested here.
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
LONG = 60.0  # seconds; what takes that long hangs


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Begin in as many threads at the same time; fail if one of them hangs or raises."""
    barrier = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def begin(n: int) -> None:
        try:
            barrier.wait(LONG)
            results[n] = works[n]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(n,), daemon=True) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def in_child(check: Callable[[], bool]) -> None:
    """Fork, and fail unless the check holds in the child, within some seconds."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


class Working:
    """A thread that is in the middle of something until it is told to go on."""

    def __init__(self, work: Callable[[Callable[[], None]], Any]) -> None:
        self._reached, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=work, args=(self._pause,), daemon=True)

    def _pause(self) -> None:
        self._reached.set()
        assert self._go_on.wait(LONG)

    def go_on(self) -> None:
        self._go_on.set()

    def __enter__(self) -> Working:
        self._thread.start()
        assert self._reached.wait(LONG)
        return self

    def __exit__(self, *_error: object) -> None:
        self.go_on()
        self._thread.join(LONG)
        assert not self._thread.is_alive()


# ---- what is made once --------------------------------------------------------------------------


def test_one_thread_makes_what_all_get() -> None:
    made: list[object] = []

    @once
    def slowly(_key: int) -> object:
        made.append(object())
        time.sleep(0.02)
        return made[-1]

    results = in_threads(*[lambda: slowly(1)] * 8)
    assert len(made) == 1
    assert all(result is made[0] for result in results)
    assert slowly(1) is made[0]
    assert slowly(2) is made[1]


def test_an_error_is_for_the_one_who_asked() -> None:
    values, calls = Once[int](), iter(range(10))

    def make() -> int:
        time.sleep(0.005)
        if (call := next(calls)) < 2:
            raise ValueError(call)
        return call

    def ask() -> int | str:
        try:
            return values.find("key", make)
        except ValueError as error:
            return str(error)

    assert sorted(in_threads(*[ask] * 4), key=str) == ["0", "1", 2, 2]
    assert values.find("key", make) == 2


def test_making_a_value_may_ask_for_it() -> None:
    values = Once[str]()
    result = in_threads(lambda: values.find(1, lambda: "outer " + values.find(1, lambda: "inner")))
    assert result == ["inner"] == [values.find(1, lambda: "later")]


def test_threads_that_make_what_the_other_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 2 * LONG)
    values, both = Once[str](), threading.Barrier(2)

    def make(own: str, other: str) -> str:
        both.wait(LONG)
        return values.find(own, lambda: met() and values.find(other, lambda: other) and own)

    def met() -> bool:
        return both.wait(LONG) >= 0

    assert in_threads(lambda: make("a", "b"), lambda: make("b", "a")) == ["a", "b"]


def test_who_makes_it_waits_for_who_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 0.1)
    values, owned = Once[str](), threading.Lock()

    def make(pause: Callable[[], None]) -> str:
        pause()
        with owned:  # as `__del__` of something of the user's may do
            return "late"

    owned.acquire()
    with Working(lambda pause: values.find("key", lambda: make(pause))) as other:
        other.go_on()
        assert values.find("key", lambda: "own") == "own"
        owned.release()
    assert values.find("key", lambda: "third") == "own"


@needs_fork
@forks
def test_a_child_makes_anew_what_a_thread_of_its_parent_was_making(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 2 * LONG)
    values = Once[str]()

    def make(pause: Callable[[], None]) -> str:
        pause()
        return "parent"

    with Working(lambda pause: values.find("key", lambda: make(pause))):
        in_child(lambda: values.find("key", lambda: "child") == "child")
    assert values.find("key", lambda: "late") == "parent"


@needs_fork
@forks
def test_a_child_that_was_forked_while_waiting() -> None:
    # By a signal handler: the child goes on waiting for a thread that it does not have.
    values, pids = Once[str](), list[int]()

    def make(pause: Callable[[], None]) -> str:
        pause()
        return "parent"

    def handler(_number: int, _frame: Any) -> None:
        pids.append(os.fork())
        if pids[0]:
            other.go_on()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with Working(lambda pause: values.find("key", lambda: make(pause))) as other:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            found = values.find("key", lambda: "own")
            if pids == [0]:
                os._exit(0 if found == "own" else 3)
    finally:
        if pids == [0]:
            os._exit(4)
        signal.signal(signal.SIGALRM, before)
    assert found == "parent"
    assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 0


# ---- what signals do not interrupt ---------------------------------------------------------------

needs_timers = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="no interval timers here"
)


def free(lock: Any) -> bool:
    """Whether another thread can have a lock."""
    taken = in_threads(lambda: lock.acquire(timeout=0.2) and (lock.release() or True))
    return bool(taken[0])


def test_errands_give_results_and_errors() -> None:
    lock = threading.RLock()
    assert apart(lambda: threading.current_thread() is threading.main_thread(), lock) is False
    assert apart(lambda: free(lock), lock) is False
    with pytest.raises(ZeroDivisionError):
        apart(lambda: 1 // 0, lock)
    assert free(lock)


def test_errands_are_done_here_by_who_holds_the_lock() -> None:
    lock = threading.RLock()
    with lock:
        assert apart(lambda: threading.current_thread() is threading.main_thread(), lock)
    assert in_threads(lambda: apart(threading.current_thread, lock).ident == threading.get_ident())


@pytest.mark.parametrize("why", ["small stacks", "no threads"])
def test_errands_are_done_here_where_threads_do_not_suit(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any) -> None:
        raise RuntimeError("can't start new thread")

    if why == "no threads":
        monkeypatch.setattr(locks, "start_new_thread", fail)
    else:
        monkeypatch.setattr(threading, "stack_size", lambda: 256 << 10)
    assert apart(threading.current_thread, threading.RLock()) is threading.main_thread()


@needs_timers
def test_interrupted_errands_end() -> None:
    def handler(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    def work() -> None:
        began.set()
        assert proceed.wait(LONG)
        ended.set()

    began, proceed, ended = threading.Event(), threading.Event(), threading.Event()
    lock = threading.RLock()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            apart(work, lock)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert began.wait(LONG)
    assert not ended.is_set()
    proceed.set()
    assert ended.wait(LONG)
    assert free(lock)


@needs_fork
@needs_timers
@forks
def test_a_child_does_the_errand_that_its_parent_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    proceed = threading.Event()
    start = locks.start_new_thread

    def late(work: Callable[[], None], _args: Any) -> None:
        start(lambda: proceed.wait(LONG) and work(), ())

    def handler(_number: int, _frame: Any) -> None:
        pids.append(os.fork())
        proceed.set()

    monkeypatch.setattr(locks, "start_new_thread", late)
    own, before = os.getpid(), signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        found = apart(os.getpid, guard)
        if pids == [0]:
            os._exit(0 if found == os.getpid() else 3)
    finally:
        if pids == [0]:
            os._exit(4)
        signal.signal(signal.SIGALRM, before)
    assert found == own
    assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 0


# ---- forks --------------------------------------------------------------------------------------


def held(lock: Any, pause: Callable[[], None]) -> None:
    with lock:
        pause()


@needs_fork
@forks
@pytest.mark.parametrize("of_another_package", [False, True])
def test_a_fork_waits_for_locks(of_another_package: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks._forks, "_locks", locks._forks._locks)  # and back again
    lock = held_at_fork(threading.RLock()) if of_another_package else guard
    with Working(lambda pause: held(lock, pause)) as other:
        threading.Timer(0.05, other.go_on).start()
        in_child(lambda: lock.acquire(timeout=1) and guard.acquire(timeout=1))
    in_threads(lambda: held(lock, lambda: None))  # nor does the parent keep it


@needs_fork
@forks
def test_a_fork_takes_locks_in_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks._forks, "_locks", locks._forks._locks)
    first, second = held_at_fork(None), held_at_fork(None)  # which are waited for in this order
    done = threading.Event()

    def work(one: Any, other: Any) -> None:
        while not done.is_set():
            with one:
                time.sleep(0.001)
                other.acquire()
                other.release()
            time.sleep(0.003)

    def fork() -> None:
        try:
            for _ in range(5):
                in_child(lambda: True)
        finally:
            done.set()

    in_threads(lambda: work(first, second), lambda: work(first, guard), fork)


@needs_fork
@forks
@pytest.mark.parametrize("by_us", [True, False])
def test_a_fork_waits_for_modules_that_are_loaded(
    by_us: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"slow_module_of_a_test_{by_us}"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(locks, "_PATIENCE", 2 * LONG)
    text = (
        "import threading, time\nthreading.current_thread().pause()\ntime.sleep(0.02)\nready = True"
    )
    (tmp_path / f"{name}.py").write_text(text)
    if not by_us:
        monkeypatch.setattr(locks, "_LOADED_IN_PARTS", {name})

    def load(pause: Callable[[], None]) -> None:
        threading.current_thread().pause = pause  # type: ignore[attr-defined]
        locks.load(name) if by_us else importlib.import_module(name)

    with Working(load) as other:
        other.go_on()
        in_child(lambda: importlib.import_module(name).ready)
    del sys.modules[name]
    assert not locks._forks.loaders


@needs_fork
@forks
def test_a_child_loads_what_a_thread_of_its_parent_was_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fork does not wait for ever for what is loaded.
    name = "endless_module_of_a_test"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(locks, "_PATIENCE", 0.1)
    monkeypatch.setattr(locks, "_LOADED_IN_PARTS", {name})
    text = "import threading\nthreading.current_thread().pause()\nready = True"
    (tmp_path / f"{name}.py").write_text(text)

    def load(pause: Callable[[], None]) -> None:
        threading.current_thread().pause = pause  # type: ignore[attr-defined]
        importlib.import_module(name)

    def loads() -> bool:
        threading.current_thread().pause = lambda: None  # type: ignore[attr-defined]
        return bool(importlib.import_module(name).ready)

    with Working(load) as other:
        in_child(loads)
        other.go_on()
    assert sys.modules.pop(name).ready


def test_modules_that_are_half_loaded() -> None:
    with loading() as first:
        with loading() as second:
            assert (first, second) == (False, True)
        assert in_threads(lambda: loading().__enter__()) == [False]
    with loading() as third:
        assert not third
    locks._forks.loaders.clear()  # of the thread that never left


# ---- values that were used last -----------------------------------------------------------------


class Asking:
    """A key that looks into the dict it is a key of, when it is compared."""

    asked = 0

    def __init__(self, recent: Recent[int]) -> None:
        self.recent = recent

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        Asking.asked += 1
        if Asking.asked <= 20:  # Python begins a search again if that changes the dict
            self.recent.put(Asking(self.recent), 0, most=3)
            # Another thread uses it, too, and is not kept waiting.
            in_threads(lambda: self.recent.put("key", 1, most=3))
        return self is other


def test_keys_that_use_the_dict() -> None:
    recent: Recent[int] = Recent()
    for n in range(4):
        assert in_threads(lambda n=n: recent.put(Asking(recent), n, most=3)) == [n]
    assert Asking.asked >= 20
    assert len(recent) <= 4


def test_the_first_value_stays_unless_it_is_outdated() -> None:
    recent: Recent[str] = Recent()
    assert recent.put("key", "a", most=5) == "a"
    assert recent.put("key", "b", most=5) == "a"
    assert recent.put("key", "c", most=5, instead="b") == "a"
    assert recent.put("key", "d", most=5, instead="a") == "d"
    assert recent.get("key") == "d"
    assert recent.get("other") is None
