"""Threads and forks: the locks of the package, and values that are made once in a process.

A child process has the one thread that forked. A lock that another thread held at that moment is
never released in the child, and what that thread was about to change stays half changed. So a fork
waits until nobody holds a lock of this module, and the child finds them free and what they guard
whole. Locks of other kinds are not used in the package; a test looks for them.

Code of users runs in the middle of ours: a signal handler or `__del__` anywhere, `__eq__` of a key
in every dict. It may call us again, or wait for another thread that does. Therefore

- locks can be taken again by the thread that holds them;
- `guard`, the one for all that is changed by several threads, is held for a few steps that call
  nothing: neither methods of keys nor anything that could free an object;
- what takes long, such as compiling, is done by one thread while others wait for its result
  (`Once`), but nobody waits for ever: who must not wait, or has waited long enough, does it itself;
- what must not end half way when a signal handler raises is done by a thread that handles no
  signals (`apart`).
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")

# How long to wait for a thread before assuming that it waits for this one, in seconds; and how
# long to wait at a time before checking again.
_PATIENCE = 10.0
_TURN = 0.05
# Packages whose functions load more modules when they are first called.
_LOADED_IN_PARTS = {"numpy", "scipy", "optree", "opt_einsum", "ml_dtypes"}


class Lock(Protocol):
    """A lock that a fork can wait for; it must be reentrant."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, or say after a while that somebody else holds it."""
        ...

    def release(self) -> None:
        """Let others have it, if this thread has not taken it more than once."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(self, *error: Any) -> None: ...


class _Forks:
    """The state that a fork waits for.

    Attributes:
        guard: See above.
        generation: How many forks there were between the first process and this one.
        loaders: How many modules each thread is in the middle of loading.
    """

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.generation = 0
        self.loaders: dict[int, int] = {}
        # The guard is the last one: others may be held for long, and it is wanted meanwhile.
        self._locks: tuple[Lock, ...] = (self.guard,)
        self._held = _Held()

    def hold(self, lock: Lock | None) -> Lock:
        """Make forks wait until nobody holds a lock: a new one, or one of another package."""
        lock = threading.RLock() if lock is None else lock
        with self.guard:
            self._locks = (lock, *self._locks)
        return lock

    def others(self) -> tuple[Lock, ...]:
        """The locks besides the guard."""
        return self._locks[:-1]

    def before(self) -> None:
        """Take all locks, at a moment when no other thread is loading modules."""
        until = time.monotonic() + _PATIENCE
        # Python goes on if this is interrupted: what was taken until then is released afterwards.
        taken: list[Lock] = []
        self._held.forks.append(taken)
        while True:
            while self._others_load() and time.monotonic() < until:
                time.sleep(0.001)
            if self._take_all(taken) and (not self._others_load() or time.monotonic() > until):
                return
            _release(taken)

    def _take_all(self, taken: list[Lock]) -> bool:
        # Wait for none of them for long: its holder may want one that is already taken.
        locks = self._locks
        for lock in locks:
            if not lock.acquire(timeout=_TURN):
                return False
            taken.append(lock)
        return locks is self._locks

    def _others_load(self) -> bool:
        others = any(thread != threading.get_ident() for thread in self.loaders)
        return others or bool(_half_loaded())

    def after_in_parent(self) -> None:
        """Go on."""
        _release(self._held.forks.pop())

    def after_in_child(self) -> None:
        """Go on as the only thread there is."""
        self.generation += 1
        own = threading.get_ident()
        self.loaders = {thread: n for thread, n in self.loaders.items() if thread == own}
        for name in _half_loaded():
            _forget(name)
        self.after_in_parent()


class _Held(threading.local):
    """The locks that a thread holds for each fork it is in the middle of."""

    def __init__(self) -> None:
        self.forks: list[list[Lock]] = []


# Locks of modules that are being loaded. Not a public name: without it, forks wait for what is
# loaded by us.
_module_locks: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})


def _half_loaded() -> set[str]:
    """Modules that other threads are loading: functions of NumPy and SciPy load parts, too."""
    own = threading.get_ident()
    return {
        name
        for name, lock in tuple(_module_locks.items())
        if name.partition(".")[0] in _LOADED_IN_PARTS and getattr(lock(), "owner", None) != own
    }


def _forget(name: str) -> None:
    """Let a module be loaded anew in a child, as the thread that was loading it does not exist.

    Importing it would wait for that thread forever.
    """
    _module_locks.pop(name, None)
    specification = getattr(sys.modules.get(name), "__spec__", None)
    if getattr(specification, "_initializing", False):
        del sys.modules[name]


def _release(taken: list[Lock]) -> None:
    while taken:
        taken.pop().release()


_forks = _Forks()
guard = _forks.guard
held_at_fork = _forks.hold

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forks.before,
        after_in_parent=_forks.after_in_parent,
        after_in_child=_forks.after_in_child,
    )


@contextmanager
def loading() -> Iterator[bool]:
    """Load modules in a block: forks in other threads wait for its end.

    The child would find the modules half loaded, and Python would wait in it for the thread that
    was loading them.

    Yields:
        Whether this thread is in the middle of loading modules already, which are half loaded.
    """
    own = threading.get_ident()
    with guard:
        depth = _forks.loaders[own] if own in _forks.loaders else 0  # noqa: SIM401 - calls nothing
        _forks.loaders[own] = depth + 1
    try:
        # This module asks Python to call it before and after each fork. Loaded while a fork waits,
        # it would be called after it only, and complain; so it is loaded now.
        importlib.import_module("concurrent.futures.thread")
        yield depth > 0
    finally:
        with guard:
            if depth:
                _forks.loaders[own] = depth
            elif own in _forks.loaders:
                del _forks.loaders[own]


def load(name: str) -> ModuleType:
    """A module that not every program uses, by its name."""
    with loading():
        return importlib.import_module(name)


# ---- what signals do not interrupt --------------------------------------------------------------

# Threads with smaller stacks, which users can set, are not used for work that recurses.
_ENOUGH_STACK = 1 << 20


class _Errand(Generic[T]):
    """Something to be done with a lock held, by this thread or by another one."""

    def __init__(self, work: Callable[[], T], lock: Lock) -> None:
        self._work = work
        self._lock = lock
        self._generation = _forks.generation
        self._outcome: Callable[[], T] | None = None
        self._running = threading.Lock()  # only ever waited for in turns
        self._running.acquire()

    def here(self) -> T:
        """Do it in this thread."""
        self._lock.acquire()
        try:
            return self._work()
        finally:
            self._lock.release()

    def there(self) -> None:
        """Do it for another thread."""
        try:
            result = self.here()
            self._outcome = lambda: result
        except BaseException as error:
            self._outcome = functools.partial(_raise, error)
        finally:
            self._running.release()

    def wait(self) -> T:
        """Wait for the other thread; return its result or raise its error."""
        while not self._running.acquire(timeout=_TURN):
            # In a child that a signal handler forked, the other thread does not exist.
            if self._generation != _forks.generation:
                return self.here()
        assert self._outcome is not None
        return self._outcome()


def _raise(error: BaseException) -> Any:
    raise error


def apart(work: Callable[[], T], lock: Lock) -> T:
    """Do something with a lock held, to its end even if a signal handler raises meanwhile.

    Python runs signal handlers in the main thread, between any two steps of what it is doing, so
    another thread does it for the main one. If a handler raises, as Ctrl-C does, the main thread
    goes on at once, and what the other one computes is dropped.

    >>> gt.locks.apart(lambda: 2 + 3, gt.locks.guard)
    5
    """
    errand = _Errand(work, lock)
    if threading.current_thread() is not threading.main_thread() or _is_owned(lock):
        return errand.here()
    if 0 < threading.stack_size() < _ENOUGH_STACK:
        return errand.here()
    try:
        start_new_thread(errand.there, ())
    except RuntimeError:  # no more threads can be had, or the process ends
        return errand.here()
    return errand.wait()


def _is_owned(lock: Lock) -> bool:
    """Whether this thread holds a lock, so that it must not wait for another that needs it."""
    # Not a public name, but conditions of `threading` are built on it.
    owned: Callable[[], bool] = getattr(lock, "_is_owned", lambda: False)
    return owned()


@atexit.register
def _wait_for_errands() -> None:
    """Let threads that nobody waits for any more finish before the code they call is unloaded."""
    for lock in _forks.others():
        if lock.acquire(timeout=_PATIENCE):
            lock.release()


# ---- what is made once --------------------------------------------------------------------------


class _Maker:
    """A thread that makes values, or waits for one.

    Attributes:
        waits_for: What it waits for now.
    """

    waits_for: _Claim | None = None

    def must_not_wait(self, claim: _Claim) -> bool:
        """Whether the thread that works on a claim waits for this thread, or is this thread."""
        found: _Claim | None = claim
        while found is not None:
            if found.maker is self:
                return True
            found = found.maker.waits_for
        return False


class _Thread(threading.local):
    """The state of each thread."""

    def __init__(self) -> None:
        self.maker = _Maker()


_thread = _Thread()


class _Claim:
    """A note that a thread is making a value.

    Attributes:
        maker: The thread.
        working: Held by it until it is done; only ever waited for in turns.
    """

    __slots__ = ("maker", "working")

    def __init__(self, maker: _Maker) -> None:
        self.maker = maker
        self.working = threading.Lock()
        self.working.acquire()

    def wait(self, waiter: _Maker) -> None:
        """Wait for a turn, or until it is done."""
        before, waiter.waits_for = waiter.waits_for, self
        try:
            if not waiter.must_not_wait(self) and self.working.acquire(timeout=_TURN):
                self.working.release()
        finally:
            waiter.waits_for = before


class Once(Generic[T]):
    """Values by keys, each made when it is first asked for, by one thread; the others wait for it.

    All get the same value, also those that could not wait and made one themselves: the first one
    finished stays, and others are dropped. If making it raises, the caller gets the error, and the
    next caller tries again. In a child process, values that threads of the parent were making are
    made anew.

    Attributes:
        made: The values; nothing is ever taken out.

    >>> squares = gt.locks.Once()
    >>> squares.find(3, lambda: 9), squares.find(3, lambda: 1 / 0)
    (9, 9)
    """

    def __init__(self) -> None:
        self.made: dict[Hashable, T] = {}
        self._claims: dict[Hashable, _Claim] = {}

    def find(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key."""
        # No lock: dicts change in one step, and comparing keys may run code of users.
        until = time.monotonic() + _PATIENCE
        while key not in self.made:
            own = _Claim(_thread.maker)
            claimed = (_forks.generation, key)
            claim = self._claims.setdefault(claimed, own)
            if claim is own:
                self._make(key, make, claimed, own)
            elif own.maker.must_not_wait(claim) or time.monotonic() > until:
                self.made.setdefault(key, make())
            else:
                claim.wait(own.maker)
        return self.made[key]

    def _make(self, key: Hashable, make: Callable[[], T], claimed: Hashable, claim: _Claim) -> None:
        try:
            if key not in self.made:  # another thread may just have finished
                self.made.setdefault(key, make())
        finally:
            try:
                self._claims.pop(claimed, None)
            finally:
                claim.working.release()


_NOTHING: Any = object()


def once(function: Callable[..., T]) -> Callable[..., T]:
    """Let a function of hashable arguments compute once for each; see `Once`, also for `made`.

    `functools.cache` lets threads that call at the same time compute the same thing, and gives each
    its own: that will not do for values that own memory, or have to be the same for all.

    >>> @gt.locks.once
    ... def table(size):
    ...     return [0.0] * size
    >>> table(3) is table(3)
    True
    """
    values: Once[T] = Once()
    made = values.made

    @functools.wraps(function)
    def find(*key: Any) -> T:
        value = made.get(key, _NOTHING)
        return values.find(key, lambda: function(*key)) if value is _NOTHING else value

    find.made = made  # type: ignore[attr-defined]
    return find
