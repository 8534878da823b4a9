"""Memory of temporaries: places in one arena, shared by buffers not needed at the same time."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from gradtape.compiler.kernel import Buffer

# Vectors of the widest kind, and cache lines, begin at multiples of this.
_ALIGNMENT = 64
# For more buffers than this, places are found without comparing each with all others.
_MANY = 256
# More bytes than there are.
_ENDLESS = 1 << 62

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
    """Memory to take and give back: a list of gaps in order, the last of which has no end."""

    def __init__(self) -> None:
        self._gaps = [(0, _ENDLESS)]

    def take(self, size: int) -> int:
        """The lowest offset of so much free memory."""
        place = next(n for n, (start, end) in enumerate(self._gaps) if end - start >= size)
        start, end = self._gaps.pop(place)
        if end - start > size:
            self._gaps.insert(place, (start + size, end))
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free some memory again; it is joined with gaps on both sides."""
        if size == 0:
            return
        end = start + size
        place = bisect.bisect(self._gaps, (start,))
        if self._gaps[place][0] == end:
            end = self._gaps.pop(place)[1]
        if place and self._gaps[place - 1][1] == start:
            place -= 1
            start = self._gaps.pop(place)[0]
        self._gaps.insert(place, (start, end))


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
