"""Measure the memory of arrays: bytes in use and their peak, read from the allocators.

Counted is what was asked for, by arrays and by temporaries of compiled code:

- blocks that gradtape keeps (`blocks_native`), as long as somebody holds them;
- all other data of NumPy's arrays. NumPy takes them from its default handler (NEP 49), a table of
  four functions. While somebody measures, the table has functions of ours, which count and call
  NumPy's. So every thread is seen, and arrays that were made before are when they are freed;
- CuPy's pool, if CuPy is loaded. It has no peak, so that of what is in use is sampled.

Where NumPy's tables are not known (`native_layout`), `tracemalloc` counts in place of the second:
all that Python allocates, too, and only what was allocated since. The two peaks are then added,
which is at least the peak of both.

Working memory that each thread keeps (`scratch`), and memory of other handlers, is not counted.
"""

from __future__ import annotations

import contextvars
import ctypes
import sys
import tracemalloc
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradtape.compiler.cpu.llvm.link import Library, host_as_it_is
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import blocks, blocks_native, cache
from gradtape.compiler.cpu.runtime.object_layout import c_functions, native_layout
from gradtape.locks import guard, once


class Figures(NamedTuple):
    """What a meter says, in bytes, above what was in use when it started.

    Attributes:
        current: In use now.
        peak: The most that was in use.
        allocated: All that was taken, whether or not it was given back.
    """

    current: int
    peak: int
    allocated: int


class Meter:
    """Measures from its start to its stop; any number of them may run at a time.

    Example:
        >>> from gradtape.compiler.cpu.runtime.allocations import Meter
        >>> meter = Meter()
        >>> meter.start()
        >>> x = np.zeros(1000)
        >>> x = None
        >>> meter.stop()
        >>> meter.figures().current
        0
    """

    def __init__(self) -> None:
        self._start = _Reading(0, 0)
        self._last: _Reading | None = self._start  # None while it runs
        self.high = self.lap_high = 0

    def start(self) -> None:
        """Begin anew, with what is in use now as zero."""
        self.stop()
        self._start = _counters.add(self)
        self._last = None
        self.high = self.lap_high = self._start.in_use

    def stop(self) -> None:
        """Stop; what it says stays as it is."""
        if self._last is None:
            self._last = _counters.remove(self)

    def figures(self) -> Figures:
        """The figures since the start."""
        return self._from_start(self._now(), self.high)

    def lap(self) -> Figures:
        """The figures since the start, but for the peak: that is since the last lap."""
        now = self._now()
        high, self.lap_high = max(self.lap_high, now.in_use), now.in_use
        return self._from_start(now, high)

    def _now(self) -> _Reading:
        return _counters.read() if self._last is None else self._last

    def _from_start(self, now: _Reading, high: int) -> Figures:
        return Figures(
            now.in_use - self._start.in_use,
            max(high, now.in_use) - self._start.in_use,
            now.taken - self._start.taken,
        )


def waiting_bytes() -> int:
    """Memory that gradtape keeps for the next call, and nobody uses."""
    return blocks.kept()


class _Reading(NamedTuple):
    """What the counters say, from an arbitrary zero."""

    in_use: int
    taken: int


class _Source(Protocol):
    """What can be read from one way to count."""

    def open(self) -> None:
        """Begin to count."""
        ...

    def close(self) -> None:
        """Stop counting."""
        ...

    def read(self) -> _Reading:
        """The counters."""
        ...

    def restart_peak(self) -> int:
        """The most that was in use since this was last called."""
        ...


class _Counters:
    """The counters of this process, and the meters that run."""

    def __init__(self) -> None:
        self._meters: tuple[Meter, ...] = ()
        self._device_bytes = 0  # when it was last asked

    def add(self, meter: Meter) -> _Reading:
        """Let a meter have the peaks from now on."""
        source = _source()  # compiles its code first, which takes memory
        with guard:
            if not self._meters:
                source.open()
            self._meters = (*self._meters, meter)
        return self.read()

    def remove(self, meter: Meter) -> _Reading:
        """Stop that; returns the last reading."""
        reading = self.read()
        with guard:
            self._meters = tuple([other for other in self._meters if other is not meter])
            if not self._meters:
                _source().close()
        return reading

    def read(self) -> _Reading:
        """The counters now; all meters get the peak until now."""
        source = _source()
        self._device_bytes = device = _device_bytes(self._device_bytes)
        with guard:
            high = source.restart_peak() + device
            for meter in self._meters:
                meter.high = max(meter.high, high)
                meter.lap_high = max(meter.lap_high, high)
            reading = source.read()
        return _Reading(reading.in_use + device, reading.taken)


_counters = _Counters()


@once
def _source() -> _Source:
    native = _Native()
    counts = native.handler is not None and any(_counts(native) for _ in range(_TRIES))
    return native if counts else _Traced(native)


# Another thread may make an array while it is tried.
_TRIES = 3


def _counts(native: _Native) -> bool:
    """Whether arrays are counted, as nobody promises that handlers are tables to write to."""
    native.open()
    before = native.read().in_use
    array = np.empty(1000)
    there = native.read().in_use - before
    del array
    gone = native.read().in_use - before
    native.close()
    return there == 8000 and gone == 0


# ---- counters in native code --------------------------------------------------------------------

# What stands in for the functions of NumPy's table, which `table` has. Of memory to be resized
# nobody says how large it was; `malloc` knows to within a few bytes.
_FUNCTIONS = NativeSource(
    """
def gt_count(bytes: i64): ...
def malloc_usable_size(data: ptr) -> i64: ...

def gt_table() -> ptr:
    return table

def gt_counted_malloc(context: ptr, bytes: i64) -> ptr:
    data = call(ptr, ptr[table, 0], context, bytes)
    if data:
        gt_count(bytes)
    return data

def gt_counted_calloc(context: ptr, count: i64, size: i64) -> ptr:
    data = call(ptr, ptr[table, 1], context, count, size)
    if data:
        gt_count(count * size)
    return data

def gt_counted_realloc(context: ptr, data: ptr, bytes: i64) -> ptr:
    before = malloc_usable_size(data)
    moved = call(ptr, ptr[table, 2], context, data, bytes)
    if moved:
        gt_count(bytes - before)
    return moved

def gt_counted_free(context: ptr, data: ptr, bytes: i64):
    call(void, ptr[table, 3], context, data, bytes)
    if data:
        gt_count(0 - bytes)
""",
    ir="@table = internal global [4 x ptr] zeroinitializer, align 64\n",
)
_COUNTED = tuple(f"gt_counted_{name}" for name in ("malloc", "calloc", "realloc", "free"))

# A handler: 127 letters of a name, a version, a context, four functions.
_NAME, _VERSION_AT, _FUNCTIONS_AT = b"default_allocator\0", 127, 136


class _Native:
    """The counters of `blocks_native`, and NumPy's table while they count.

    Attributes:
        handler: The address of NumPy's default handler; None if it is not known.
    """

    def __init__(self) -> None:
        addresses = blocks.counters()
        words = ctypes.CFUNCTYPE(ctypes.c_void_p)(addresses["gt_counters"])()
        count = len(blocks_native.COUNTERS)
        self._words = (ctypes.c_int64 * count).from_address(words or 0)
        self.restart_peak: Any = ctypes.PYFUNCTYPE(ctypes.c_int64)(addresses["gt_restart_peak"])
        self.handler = _default_handler()
        if self.handler is not None:
            self._link(addresses["gt_count"], self.handler)

    def _link(self, count: int, handler: int) -> None:
        usable = ctypes.cast(ctypes.CDLL(None).malloc_usable_size, ctypes.c_void_p).value or 0
        imports = {"gt_count": count, "malloc_usable_size": usable}
        code = cache.compiled(_FUNCTIONS, host_as_it_is())
        library = Library(code, imports, ["gt_table", *_COUNTED])
        blocks.immortal(library)  # an array may be on its way through it at any time
        self._table = (ctypes.c_size_t * 4).from_address(handler + _FUNCTIONS_AT)
        self._numpys = tuple(self._table)
        self._ours = tuple([library.address(name) for name in _COUNTED])
        kept = ctypes.CFUNCTYPE(ctypes.c_void_p)(library.address("gt_table"))()
        (ctypes.c_size_t * 4).from_address(kept or 0)[:] = list(self._numpys)

    def open(self) -> None:
        self._words[0] += 1
        self._replace("_numpys", "_ours")

    def close(self) -> None:
        self._replace("_ours", "_numpys")
        self._words[0] -= 1

    def _replace(self, old: str, new: str) -> None:
        """Put functions into NumPy's table, unless somebody else has put others there."""
        if self.handler is not None and tuple(self._table) == getattr(self, old):
            self._table[:] = getattr(self, new)

    def read(self) -> _Reading:
        _, in_use, _, taken = self._words
        return _Reading(in_use, taken)


def _default_handler() -> int | None:
    """The address of NumPy's default handler, a table that can be written to; None if unknown."""
    if native_layout() is None or not hasattr(ctypes.CDLL(None), "malloc_usable_size"):
        return None
    current = ctypes.PYFUNCTYPE(ctypes.py_object)(c_functions()["PyDataMem_GetHandler"])
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    address: int = pointer(contextvars.Context().run(current), b"mem_handler")
    name = ctypes.string_at(address, len(_NAME))
    version = ctypes.c_uint8.from_address(address + _VERSION_AT).value
    return address if (name, version) == (_NAME, 1) else None


class _Traced:
    """What Python's `tracemalloc` counts, besides the counters of blocks.

    Somebody else may be tracing, too: then it is not stopped, but its peak begins anew.
    """

    def __init__(self, native: _Native) -> None:
        self._native = native
        self._started = False
        self._current = self._taken = 0

    def open(self) -> None:
        self._native.open()
        self._started = not tracemalloc.is_tracing()
        if self._started:
            tracemalloc.start(1)
        self._current, _ = tracemalloc.get_traced_memory()

    def close(self) -> None:
        self._native.close()
        if self._started:
            tracemalloc.stop()

    def read(self) -> _Reading:
        in_use, taken = self._native.read()
        return _Reading(in_use + tracemalloc.get_traced_memory()[0], taken + self._taken)

    def restart_peak(self) -> int:
        before = self._current
        self._current, peak = tracemalloc.get_traced_memory()
        self._taken += max(0, peak - before)  # at least that much was taken
        tracemalloc.reset_peak()
        native: int = self._native.restart_peak()
        return native + peak


def _device_bytes(before: int) -> int:
    """What is in use of the pool of CuPy, which is never loaded for that.

    Without a device, and in a forked process, CuPy can neither take memory nor tell: `before`.
    """
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return 0
    try:
        return int(cupy.get_default_memory_pool().used_bytes())
    except cupy.cuda.runtime.CUDARuntimeError:
        return before
