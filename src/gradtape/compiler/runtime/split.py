"""How a matrix product is done: by whom, and cut into which chunks.

All of it follows from the sizes and the CPU. The number of threads decides only who runs a chunk,
so that the bits of a result do not depend on it.
"""

from __future__ import annotations

from typing import NamedTuple

from gradtape.compiler.llvm.link import Target
from gradtape.compiler.runtime.tile import Block, tile_cost
from gradtape.compiler.runtime.tile_block import copies

# Work is counted in multiply-adds; a core does some 50 in a nanosecond.
_CHUNK = 2**19  # least work of a chunk
_LARGE_CHUNK = 2**22  # if there are more than _FEW chunks
_FEW = 16
_MOST = 256
_LONG = 2**24  # from here on, threads are woken at once

# Bytes that stay in a cache next to the core while they are used again and again.
_CACHED = 512 * 2**10
_SCRATCH = 256 * 2**10  # for a copy of B, on the stack
_FEW_ROWS = 64  # B is then read so few times that packing it, as BLAS does, costs more

# Where C is small and the sums are longer than this, threads share the sums rather than C.
_LONG_SUM = 4096
_PARTIAL = 128 * 2**10  # bytes of partial results, on the stack


class Split(NamedTuple):
    """The chunks of a product.

    Attributes:
        blas: Whether blocks are computed by BLAS; otherwise by loops written for their size.
        rows: Rows of a block of C.
        columns: Columns of a block of C.
        depth: Length of the part of the sums that a block does.
        down: Blocks from top to bottom.
        across: Blocks from left to right.
        parts: Blocks one behind the other, whose results are added up.
        together: Products of a batch that one chunk does.
        long: Whether it takes so long that threads should be woken for it at once.
    """

    blas: bool
    rows: int
    columns: int
    depth: int
    down: int = 1
    across: int = 1
    parts: int = 1
    together: int = 1
    long: bool = False

    def chunks(self, batch: int) -> int:
        """How many there are."""
        return self.down * self.across * self.parts * -(-batch // self.together)


def plan(block: Block, batch: int, target: Target) -> Split:
    """How to do `batch` products of this size, all of which is above zero."""
    m, n, k = block.m, block.n, block.k
    # Where little is computed with what is read, memory sets the pace: a byte costs as much.
    work = max(m * n * k, (m * k + k * n + m * n) * block.itemsize)
    long = work * batch >= _LONG
    if batch == 1 and (parts := _parts(block, work)) > 1:
        depth = -(-k // parts)
        return Split(False, m, n, depth, parts=-(-k // depth), long=long)
    whole = Split(not _suits_tiles(block, block), m, n, k, long=long)
    if work * batch < 2 * _CHUNK:
        return whole._replace(together=batch)
    if work < _CHUNK:
        some = max(_CHUNK, work * batch // _MOST)
        return whole._replace(together=min(batch, -(-some // work)))
    chunks = _chunks(work * batch) // batch
    return whole if chunks < 2 else _grid(whole, block, chunks, target)


def _suits_tiles(part: Block, whole: Block) -> bool:
    """Whether loops of our own do a block of C better than BLAS would."""
    if copies(part):
        return part.k * part.n * part.itemsize <= _SCRATCH
    small = whole.k * whole.n * whole.itemsize <= _CACHED
    return small or whole.m <= _FEW_ROWS


def _chunks(work: int) -> int:
    """A number of chunks, a power of two."""
    wanted = max(min(work // _CHUNK, _FEW), min(work // _LARGE_CHUNK, _MOST), 1)
    return 1 << (wanted.bit_length() - 1)


def _parts(block: Block, work: int) -> int:
    """In how many parts to add up long sums; for C so small that it cannot be cut well."""
    if block.k <= _LONG_SUM:
        return 1
    room = _PARTIAL // (block.m * block.n * block.itemsize)
    return min(_chunks(work), room, block.k // (_LONG_SUM // 2))


def _grid(whole: Split, block: Block, chunks: int, target: Target) -> Split:
    """Cut C into about so many blocks, all alike, in the way that is estimated to be fastest."""
    width = target.vector_bytes // block.itemsize
    best, least = whole, float("inf")
    sizes = {
        (
            min(block.m, _up(-(-block.m // 2**exponent), high)),
            min(block.n, _up(-(-block.n * 2**exponent // chunks), wide)),
        )
        for exponent in range(chunks.bit_length())
        for high in (4, 6, 24)
        for wide in (width, 4 * width)
    }
    for rows, columns in sorted(sizes):
        down, across = -(-block.m // rows), -(-block.n // columns)
        part = block._replace(m=rows, n=columns)
        blas = not _suits_tiles(part, block)
        cost = down * across * tile_cost(part, target)[0] * _imbalance(down * across)
        # Copying what is read takes as long as some rows or columns of the result.
        if blas or copies(part):
            cost *= 1 + 8 / rows + (8 / columns if blas else 0)
        if cost < least:
            split = whole._replace(blas=blas, rows=rows, columns=columns, down=down, across=across)
            best, least = split, cost
    return best


def _imbalance(chunks: int) -> float:
    """By how much chunks that are all alike delay the last of some threads, on average."""
    threads = (1, 2, 4, 8)
    return sum(-(-chunks // some) * some / chunks for some in threads) / len(threads)


def _up(number: int, unit: int) -> int:
    """The next multiple of the unit."""
    return -(-number // unit) * unit
