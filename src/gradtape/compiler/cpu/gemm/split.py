"""How a matrix product is cut into chunks.

It depends on the sizes and the CPU only. The number of threads decides just which thread runs a
chunk, so the bits of a result do not depend on it. No two chunks have an element in common.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from gradtape.compiler.cpu.gemm.form import COPIED_STEPS, TileForm
from gradtape.compiler.cpu.gemm.tile import Block, cycles, vectors_of
from gradtape.compiler.cpu.llvm.link import Cpu

# Work is counted in multiply-adds; a core does some 50 in a nanosecond.
_CHUNK = 2**19  # least work of a chunk
_LARGE_CHUNK = 2**22  # if there are more than _FEW chunks
_FEW = 16
_MOST = 256
_LONG = 2**24  # from this much work on, threads are woken at once

_NEAR = 4 * 2**20  # bytes of A that stay near enough to be read again

# Where C is small and sums are long, threads share the sums rather than C.
_SHORTEST_PART = 2048
_PARTIAL = 2**20  # bytes of partial results


class Split(NamedTuple):
    """The chunks of a product.

    Attributes:
        rows: Blocks of C begin at multiples of this many rows.
        columns: Blocks of C begin at multiples of this many columns.
        depth: Length of the part of the sums that a block does.
        down: Number of blocks from top to bottom.
        across: Number of blocks from left to right.
        parts: Number of parts of the sums, whose results are added up.
        together: Products of a batch that one chunk does.
        long: Whether it takes so long that threads should be woken for it at once.
    """

    rows: int
    columns: int
    depth: int
    down: int = 1
    across: int = 1
    parts: int = 1
    together: int = 1
    long: bool = False

    def chunks(self, batch: int) -> int:
        """The number of chunks."""
        return self.down * self.across * self.parts * -(-batch // self.together)


def split_of(block: Block, batch: int, cpu: Cpu) -> Split:
    """How to do `batch` products of this size; all sizes are above zero."""
    m, n, k = block.m, block.n, block.k
    # With little arithmetic per byte, memory sets the pace: a byte costs as much as an operation.
    work = max(m * n * k, (m * k + k * n + m * n) * block.itemsize)
    form = TileForm.of(block, cpu)
    whole = Split(form.tile.rows, form.columns, k, long=work * batch >= _LONG)
    if work * batch < 2 * _CHUNK:
        return whole._replace(together=batch)
    if work < _CHUNK:
        some = max(_CHUNK, work * batch // _MOST)
        return whole._replace(together=min(batch, -(-some // work)))
    chunks = _chunks(work * batch) // batch
    if chunks < 2:
        return whole
    splits = _grids(whole, block, chunks) + (_parts(whole, block, chunks) if batch == 1 else [])
    costs = _Costs(block, form, cpu)
    return min(splits, key=lambda split: (costs.of(split), split))


def _chunks(work: int) -> int:
    """A number of chunks, a power of two."""
    wanted = max(min(work // _CHUNK, _FEW), min(work // _LARGE_CHUNK, _MOST), 1)
    return 1 << (wanted.bit_length() - 1)


def _grids(whole: Split, block: Block, chunks: int) -> list[Split]:
    """Ways to cut C into about this many blocks."""
    return [
        whole._replace(
            down=min(max(block.m // whole.rows, 1), 2**exponent),
            across=min(max(block.n // whole.columns, 1), chunks // 2**exponent),
        )
        for exponent in range(chunks.bit_length())
    ]


def _parts(whole: Split, block: Block, chunks: int) -> list[Split]:
    """Ways to cut long sums into at most this many parts."""
    room = _PARTIAL // (block.m * block.n * block.itemsize)
    most = min(chunks, room, block.k // _SHORTEST_PART)
    depths = {-(-block.k // parts) for parts in (2**n for n in range(1, most.bit_length()))}
    return [whole._replace(depth=depth, parts=-(-block.k // depth)) for depth in sorted(depths)]


class _Costs(NamedTuple):
    """Estimates how long products take, in cycles."""

    block: Block
    form: TileForm
    cpu: Cpu

    def of(self, split: Split) -> float:
        """The cost of all chunks, on one thread and on several."""
        block = self.block
        heights = Counter(sizes(block.m, split.rows, split.down))
        widths = Counter(sizes(block.n, split.columns, split.across))
        count = split.down * split.across * split.parts
        times = [
            (self._time(rows, columns, split.depth), down * across * split.parts)
            for rows, down in heights.items()
            for columns, across in widths.items()
        ]
        mean, longest = sum(time * number for time, number in times) / count, max(times)[0]
        # Partial results are added up by one thread, a vector in a cycle or so.
        vectors = block.m * vectors_of(block.n, block, self.cpu)
        end = split.parts * vectors if split.parts > 1 else 0
        return sum(n * (max(-(-count // n) * mean, longest) + end) for n in (1, 2, 4, 8, 16))

    def _time(self, rows: int, columns: int, k: int) -> float:
        """The time of a block."""
        block = self.block
        time = cycles(self.form.tile, rows, vectors_of(columns, block, self.cpu), k)
        # Copying B takes as long as some rows of the result; if the part of A is too large, each
        # panel reads it again from further away.
        if self.form.copies:
            time *= 1 + 12 / rows
        return time * (1.1 if rows * min(k, COPIED_STEPS) * block.itemsize > _NEAR else 1)


def sizes(size: int, unit: int, count: int) -> list[int]:
    """The sizes of `count` blocks that begin at multiples of a unit, as even as possible.

    If there are at least as many whole units as blocks, every block has one.
    """
    units = -(-size // unit)
    starts = [number * units // count * unit for number in range(count)]
    return [stop - start for start, stop in zip(starts, [*starts[1:], size], strict=True)]
