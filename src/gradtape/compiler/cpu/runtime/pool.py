"""The threads of compiled code: one pool per process, made when a job first needs it.

Generated code calls `void gt_parallel(ptr body, ptr context, i64 chunks)`, which runs
`body(context, chunk)` for every chunk once, on up to `get_num_threads()` threads with the caller
among them, and returns when all are done. It wakes sleeping threads if the job, or several that
follow each other closely, turn out to be long enough for that; `gt_parallel_long`, for jobs known
to take long, wakes them at once; `gt_parallel_endless`, for jobs that may not end, looks for
signals while it waits. `pool_native` says how. Callers from several Python threads, calls from
inside a body and child processes after a fork are all fine; a body that forks is not.

Where the system has no futexes (anything other than 64-bit Linux), and where the pool is switched
off, every job runs in its caller's thread.
"""

from __future__ import annotations

import ctypes
import operator
import os

from gradtape import config
from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.runtime import cache, pool_native
from gradtape.core.lazy import lazy
from gradtape.errors import ArgumentError
from gradtape.locks import Once

_SETTER = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class _Pool:
    """The pool of this process: the number of threads, and the native code once it is needed."""

    def __init__(self) -> None:
        self._set = 0  # by the user; 0 until then
        self._code: Once[Library] = Once()

    @property
    def library(self) -> Library | None:
        """The native code, if it has been loaded."""
        return self._code.made.get("pool")

    def ready(self) -> Library:
        """The native code; this starts no thread."""
        library = self.library
        if library is None:
            library = self._code.find("pool", _linked)
            self._use_wanted(library)
        return library

    def _use_wanted(self, library: Library) -> None:
        use, used = library.function("gt_pool_threads", _SETTER), 0
        while used != self.wanted():  # another thread may set it at the same time
            used = self.wanted()
            use(used)

    def wanted(self) -> int:
        """The number of threads to use, including the caller's."""
        return self._set or self._usable if config.uses("pool") else 1

    @lazy
    def _usable(self) -> int:
        return min(_usable_cpus(), pool_native.MAX_THREADS)

    def set_wanted(self, threads: int) -> None:
        """Use this many threads from now on."""
        self._set = threads
        if self.library is not None:
            self._use_wanted(self.library)

    def after_fork(self) -> None:
        """Reset in the child: it has no workers, and no job of another thread will ever end."""
        if self.library is not None:
            self.library.function("gt_pool_reset", ctypes.CFUNCTYPE(None))()


def _linked() -> Library:
    return Library(
        cache.compiled(pool_native.source(threads=config.uses("pool"))), {}, pool_native.EXPORTS
    )


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_pool = _Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.after_fork)


def parallel_address() -> int:
    """The address of `gt_parallel`; its threads start with the first job that can use them."""
    return _pool.ready().address("gt_parallel")


def imports() -> dict[str, int]:
    """The symbols that generated code may refer to, for `Library(imports=…)`."""
    library = _pool.ready()
    names = ("gt_parallel", "gt_parallel_long", "gt_parallel_endless")
    return {name: library.address(name) for name in names}


def set_num_threads(threads: int) -> None:
    """Set the number of threads that compiled functions use.

    It may be changed at any time; jobs that are running keep the threads they have. Results do not
    depend on it, bit for bit. With `GRADTAPE_WITHOUT=pool` in the environment nothing is changed.

    Args:
        threads: The number, including the calling one; 1 means that no other is used.

    Raises:
        ArgumentError: If it is not an integer from 1 to 1024.

    Example:
        >>> from gradtape.compiler.cpu.runtime.pool import get_num_threads, set_num_threads
        >>> before = get_num_threads()
        >>> set_num_threads(2)
        >>> get_num_threads()
        2
        >>> set_num_threads(before)
    """
    try:
        number = operator.index(threads)
    except TypeError:
        number = 0
    if isinstance(threads, bool) or not 1 <= number <= pool_native.MAX_THREADS:
        raise ArgumentError(
            f"set_num_threads: got {threads!r}, expected an integer from 1 to "
            f"{pool_native.MAX_THREADS}; pass 1 for a single thread"
        )
    _pool.set_wanted(number)


def get_num_threads() -> int:
    """Return the number of threads that compiled functions use, including the calling one.

    Returns:
        The number that `set_num_threads` set last; before that, the number of CPUs this process may
        use. It is 1 if the threads are switched off by `GRADTAPE_WITHOUT=pool`.

    Example:
        >>> from gradtape.compiler.cpu.runtime.pool import get_num_threads
        >>> get_num_threads() >= 1
        True
    """
    return _pool.wanted()
