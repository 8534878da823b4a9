"""Where temporaries live: places in one arena, shared by buffers that are not needed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradtape.compiler.kernel import Buffer

# Vectors of the widest kind, and cache lines, begin at multiples of this.
_ALIGNMENT = 64


class Arena:
    """Offsets of buffers in one stretch of memory.

    Attributes:
        offsets: Where each buffer begins.
        size: How many bytes there are in all.
    """

    def __init__(self, steps: Sequence[Sequence[Buffer]]) -> None:
        """Plan memory for steps, given the temporaries that each of them touches."""
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for number, buffers in enumerate(steps):
            for buffer in buffers:
                first.setdefault(buffer, number)
                last[buffer] = number
        self.offsets: dict[Buffer, int] = {}
        # Large ones first: small ones fit into the gaps.
        for buffer in sorted(first, key=lambda b: -b.nbytes):
            self.offsets[buffer] = self._gap(buffer, first, last)
        self.size = max(
            (offset + _rounded(buffer.nbytes) for buffer, offset in self.offsets.items()), default=0
        )

    def _gap(self, buffer: Buffer, first: Mapping[Buffer, int], last: Mapping[Buffer, int]) -> int:
        """The lowest place that is free for as long as the buffer is needed."""
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


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
