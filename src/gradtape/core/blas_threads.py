"""Hold BLAS and LAPACK to one thread: their results depend on the number of threads.

OpenBLAS and its like divide a product or a factorisation among their threads, and what is added up
in which order depends on how many there are; some routines are altogether different for one thread.
The number is a setting of the process. It is 1 while any thread is inside `on_one_thread`, and then
what it was before. Threads outside are slower meanwhile.

The libraries are found through the modules of NumPy and SciPy that are linked with them. (The
package threadpoolctl finds them, too, but lets one thread set the number, and ignores the others.)
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from gradtape.locks import held_at_fork, load, once

T = TypeVar("T")

_lock = held_at_fork(None)
# Modules that are linked with the libraries; wheels of NumPy and of SciPy have one each.
_LINKED = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
# What sets and gets the number of threads: of OpenBLAS, MKL, BLIS and FlexiBLAS.
_AFFIXES = itertools.product(("scipy_", ""), ("64_", "_64", ""))
_NAMES = (
    *((f"{a}openblas_set_num_threads{b}", f"{a}openblas_get_num_threads{b}") for a, b in _AFFIXES),
    ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads"),
    ("bli_thread_set_num_threads", "bli_thread_get_num_threads"),
    ("flexiblas_set_num_threads", "flexiblas_get_num_threads"),
)
# OpenMP's have a number for each thread, which OpenBLAS goes by if it was built with it.
_OPEN_MP, _OF_OPEN_MP = 2, ("omp_set_num_threads", "omp_get_max_threads")


class Library:
    """The number of threads of one library.

    Args:
        linked: A library that is linked with it.
        names: The functions that set and get the number.

    Attributes:
        set_num_threads: Sets it.
        get_num_threads: Returns it.
        address: Tells libraries apart.
        by_thread: Whether each thread has a number of its own.
    """

    def __init__(self, linked: Any, names: tuple[str, str]) -> None:
        parallel = getattr(linked, names[0].replace("set_num_threads", "get_parallel"), None)
        self.by_thread = parallel is not None and parallel() == _OPEN_MP
        names = _OF_OPEN_MP if self.by_thread else names
        self.set_num_threads, self.get_num_threads = (getattr(linked, name) for name in names)
        self.address = ctypes.cast(self.set_num_threads, ctypes.c_void_p).value


@once
def libraries() -> tuple[Library, ...]:
    """The libraries that NumPy and SciPy compute with; empty if one of them is not known."""
    found: dict[int | None, Library] = {}
    for module in _LINKED:
        # Both, at once: one that is loaded later on would begin with all its threads.
        of_module = list(_libraries_of(load(module)))
        if not of_module:
            return ()
        found |= {library.address: library for library in of_module}
    return tuple(found.values())


def _libraries_of(module: Any) -> Iterator[Library]:
    try:
        linked = ctypes.CDLL(module.__file__)
    except (AttributeError, OSError):
        return
    for names in _NAMES:
        try:
            yield Library(linked, names)
        except AttributeError:
            continue


class _Held:
    """How many calls need one thread, and what the libraries were set to before the first one.

    Attributes:
        count: The number of calls.
        of_all: The libraries whose number is one for the process; None if not known yet.
        before: Their numbers.
        of_thread: The libraries with a number for each thread.
    """

    def __init__(self) -> None:
        self.count = 0
        self.of_all: list[Library] | None = None
        self.before: list[int] = []
        self.of_thread: list[Library] = []

    def find(self) -> list[Library]:
        """The libraries whose number is one for the process."""
        every = libraries()
        self.of_thread = [library for library in every if library.by_thread]
        self.of_all = [library for library in every if not library.by_thread]
        return self.of_all


_held = _Held()


class Claim:
    """Keeps the libraries at one thread; gone with the frame of a call that was interrupted."""

    __slots__ = ("_before", "_taken")

    def __init__(self) -> None:
        self._taken = False
        self._before: list[int] = []

    def take(self) -> None:
        """Begin."""
        of_all = _held.find() if _held.of_all is None else _held.of_all
        with _lock:
            if not _held.count:
                _held.before = _set_to_one(of_all)
            _held.count += 1
            self._taken = True
        if _held.of_thread:
            self._before = _set_to_one(_held.of_thread)

    def leave(self) -> None:
        """End; do nothing if it has ended already."""
        if not self._taken:
            return
        with _lock:
            self._taken = False
            _held.count -= 1
            if not _held.count:
                _set_back(_held.of_all or [], _held.before)
        _set_back(_held.of_thread, self._before)

    __del__ = leave


def _set_to_one(some: list[Library]) -> list[int]:
    before = [library.get_num_threads() for library in some]
    for library in some:
        library.set_num_threads(1)
    return before


def _set_back(some: list[Library], before: list[int]) -> None:
    for library, threads in zip(some, before, strict=False):  # nothing before: it was interrupted
        library.set_num_threads(threads)


def on_one_thread(function: Callable[..., T], *args: Any) -> T:
    """Call a function while BLAS and LAPACK are held to one thread."""
    claim = Claim()
    try:
        claim.take()
        return function(*args)
    finally:
        claim.leave()
