"""Memory of temporaries: places in one arena, shared by buffers not needed at the same time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from gradtape.compiler.kernel import Buffer

# Vectors of the widest kind, and cache lines, begin at multiples of this.
_ALIGNMENT = 64
# For more buffers than this, places are found without comparing each with all others.
_MANY = 256
# The number of gaps of about the right size that are tried.
_TRIED = 16

# The number of a step, for each buffer.
_Steps = Mapping[Buffer, int]


class Arena:
    """Offsets of buffers in one stretch of memory.

    Attributes:
        offsets: The offset of each buffer.
        size: The number of bytes in all.
    """

    def __init__(self, steps: Sequence[Sequence[Buffer]]) -> None:
        """Plan memory for steps, given the temporaries that each of them uses."""
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for number, buffers in enumerate(steps):
            for buffer in buffers:
                first.setdefault(buffer, number)
                last[buffer] = number
        self.offsets: dict[Buffer, int] = {}
        if len(first) > _MANY:
            self._sweep(steps, first, last)
        else:
            # Large ones first: small ones fit into the gaps.
            for buffer in sorted(first, key=lambda b: -b.nbytes):
                self.offsets[buffer] = self._gap(buffer, first, last)
        self.size = max(
            (offset + _rounded(buffer.nbytes) for buffer, offset in self.offsets.items()), default=0
        )

    def _gap(self, buffer: Buffer, first: _Steps, last: _Steps) -> int:
        """The lowest place that is free while the buffer is needed."""
        taken = sorted(
            (offset, offset + _rounded(other.nbytes))
            for other, offset in self.offsets.items()
            if first[other] <= last[buffer] and first[buffer] <= last[other]
        )
        place = 0
        for start, end in taken:
            if start - place >= _rounded(buffer.nbytes):
                break
            place = max(place, end)
        return place

    def _sweep(self, steps: Sequence[Sequence[Buffer]], first: _Steps, last: _Steps) -> None:
        """Take and give back memory step by step, as the program itself would."""
        memory = _Memory()
        for number, buffers in enumerate(steps):
            touched = sorted(dict.fromkeys(buffers), key=lambda b: -b.nbytes)
            for buffer in touched:
                if first[buffer] == number:
                    self.offsets[buffer] = memory.take(_rounded(buffer.nbytes))
            for buffer in touched:
                if last[buffer] == number:
                    memory.give_back(self.offsets[buffer], _rounded(buffer.nbytes))


class _Memory:
    """Memory to take and give back; both take about constant time, however much there is.

    Gaps are kept by the number of bits of their sizes: one of a larger class certainly fits.
    """

    def __init__(self) -> None:
        self._end = 0
        # Offsets of gaps, in the order in which they were made.
        self._classes: dict[int, dict[int, None]] = {}
        self._sizes: dict[int, int] = {}
        self._starts: dict[int, int] = {}  # by where they end

    def take(self, size: int) -> int:
        """The offset of some free memory."""
        if size == 0:
            return 0
        own = size.bit_length()
        alike = itertools.islice(self._classes.get(own, ()), _TRIED)
        start = next((start for start in alike if self._sizes[start] >= size), None)
        if start is None:
            larger = (kind for kind, gaps in self._classes.items() if kind > own and gaps)
            kind = min(larger, default=None)
            start = None if kind is None else next(iter(self._classes[kind]))
        if start is None:
            self._end += size
            return self._end - size
        rest = self._remove(start) - size
        if rest:
            self._add(start + size, rest)
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free some memory again; it is joined with gaps on both sides."""
        if size == 0:
            return
        end = start + size
        if end in self._sizes:
            end += self._remove(end)
        if start in self._starts:
            start = self._starts[start]
            self._remove(start)
        if end == self._end:
            self._end = start
        else:
            self._add(start, end - start)

    def _add(self, start: int, size: int) -> None:
        self._classes.setdefault(size.bit_length(), {})[start] = None
        self._sizes[start] = size
        self._starts[start + size] = start

    def _remove(self, start: int) -> int:
        size = self._sizes.pop(start)
        del self._classes[size.bit_length()][start]
        del self._starts[start + size]
        return size


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
