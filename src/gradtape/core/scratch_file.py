"""A file without a name, for arrays that would not fit into memory.

It is deleted as soon as it is made, or by the system when it is closed, so nothing of it is left
however the process ends. Its space is reserved before it is written: a full disk is an error then,
and not a signal that ends the process when a mapped page is read later.

Ranges of it are written once, mapped into memory to be read, and used again once nothing refers to
them. Finalizers and signal handlers may give ranges back and take others at any time, also while
this thread is in the middle of taking one. So free ranges are in a dict, out of which one step
takes each: whoever gets it owns it.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
import weakref
from typing import Any

import numpy as np

from gradtape.locks import held_at_fork

# Maps begin at multiples of this.
_STEP = mmap.ALLOCATIONGRANULARITY
# The end of a file that can grow.
_OPEN_END = 1 << 62
# What a file system says that cannot reserve space.
_CANNOT_RESERVE = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}

# Held while ranges are taken and mapped, for all files; forks wait for it.
LOCK = held_at_fork(None)


class _Forks:
    """How many times this process forked, and its ancestors before it was made.

    Attributes:
        count: The number.
    """

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        """Count a fork."""
        self.count += 1


_forks = _Forks()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_forks.add, after_in_child=_forks.add)


class ScratchFile:
    """A file without a name.

    Args:
        folder: Where it takes its space; None for the system's folder for temporary files.

    Raises:
        OSError: It cannot be made.

    Attributes:
        size: The bytes that it takes on the disk.
    """

    def __init__(self, folder: str | None) -> None:
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by `finalize`
        weakref.finalize(self, file.close)
        self.size = 0
        self._number = file.fileno()
        self._made_at = _forks.count
        self._free = {0: _OPEN_END}  # ends of free ranges, by their beginnings

    @property
    def is_shared(self) -> bool:
        """Whether another process may read it: neither of them may write to it any more.

        Either could use a range again that the other one still reads.
        """
        return self._made_at != _forks.count

    def take(self, length: int) -> Range | None:
        """A range to write to; None if this thread is in the middle of taking one.

        Raises:
            OSError: There is no space for it. Nothing has changed then.
        """
        size = -(-length // _STEP) * _STEP
        with LOCK:
            start, end = self._fitting(size)
            if start == end:
                return None
            rest = start
            try:
                self._reserve(start + size)
                rest += size
            finally:
                if rest < end:
                    self._free[rest] = end
            return Range(self, start, length)

    def give_back(self, start: int, end: int) -> None:
        """Make a range free again; in one step, as finalizers call it."""
        self._free[start] = end

    def _fitting(self, size: int) -> tuple[int, int]:
        """Take the smallest free range of at least this size; an empty one if there is none."""
        taken = [
            (start, end)
            for start in self._free.copy()
            if (end := self._free.pop(start, 0))  # unless a signal handler was faster
        ]
        joined: list[tuple[int, int]] = []
        for start, end in sorted(taken):
            if joined and joined[-1][1] == start:
                start, _ = joined.pop()
            joined.append((start, end))
        found = min(
            [each for each in joined if each[1] - each[0] >= size],
            key=lambda each: each[1] - each[0],
            default=(0, 0),
        )
        self._free.update([each for each in joined if each != found])
        return found

    def _reserve(self, end: int) -> None:
        """Let the file take space up to a place."""
        if end <= self.size:
            return
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._number, self.size, end - self.size)
            except OSError as error:
                if error.errno not in _CANNOT_RESERVE:
                    with contextlib.suppress(OSError):  # some of it may have been reserved
                        os.ftruncate(self._number, self.size)
                    raise
        self.size = end

    def write(self, data: memoryview, place: int) -> None:
        """Write bytes to a place."""
        while data:
            if hasattr(os, "pwrite"):
                written = os.pwrite(self._number, data, place)
            else:
                with LOCK:
                    os.lseek(self._number, place, os.SEEK_SET)
                    written = os.write(self._number, data)
            data, place = data[written:], place + written

    def map(self, start: int, length: int) -> _Map:
        """Map bytes into memory, to be read."""
        return _Map(self._number, length, access=mmap.ACCESS_READ, offset=start)


class Range:
    """A part of a file, which is free again when nothing refers to it or its memory.

    Args:
        file: The file.
        start: Where it begins.
        length: The number of its bytes.
    """

    __slots__ = ("__weakref__", "_file", "_length", "_mapped", "_start")

    def __init__(self, file: ScratchFile, start: int, length: int) -> None:
        self._file = file
        self._start = start
        self._length = length
        self._mapped: weakref.ref[Any] | None = None

    def __del__(self) -> None:
        self._file.give_back(self._start, self._start + -(-self._length // _STEP) * _STEP)

    def write(self, data: memoryview) -> None:
        """Write all of its bytes.

        Raises:
            OSError: They could not be written.
        """
        self._file.write(data, self._start)

    def mapped(self) -> Any:
        """Its bytes as an array that cannot be written to, mapped into memory.

        It is at the same address for all as long as one of them holds it.

        Raises:
            OSError: It cannot be mapped.
        """
        with LOCK:
            array = None if self._mapped is None else self._mapped()
            if array is None:
                memory = self._file.map(self._start, self._length)
                memory.range = self
                array = np.frombuffer(memory, np.uint8)
                self._mapped = weakref.ref(array)
            return array


class _Map(mmap.mmap):
    """Mapped memory that keeps its range from being used again.

    Attributes:
        range: The range.
    """

    range: Range


def range_of(array: Any) -> Range | None:
    """The range that an array was mapped from; None for other arrays."""
    memory = array.base
    if isinstance(memory, memoryview):
        memory = memory.obj
    return memory.range if isinstance(memory, _Map) else None
