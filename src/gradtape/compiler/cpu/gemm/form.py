"""The form in which our own loops compute a matrix product."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradtape.compiler.cpu.gemm.tile import Block, Tile, best_tile
from gradtape.compiler.cpu.llvm.link import Cpu

_CHAIN, _LONG_CHAIN = 256, 1024  # about how many steps are added up one after the other
COPIED_STEPS = 1024  # about how many steps along k of B are copied at a time
_MOST_COPIED = 256 * 2**10  # bytes, at most
_DOT_ROWS = 4  # with more rows of C than this, transposing B is cheaper than summing across lanes
_COPIED_ROWS = 96  # from here on, copying B costs little


class Chains(NamedTuple):
    """How sums are cut: `whole` chains of `depth` steps, and one of the rest if there is any."""

    depth: int
    whole: int
    rest: int


def chains(steps: int) -> Chains:
    """Cut a loop of at least one step into chains, of equal length if that is possible.

    Rounding errors add up along a chain and then over the chains, rather than over all steps.
    """
    about = min(max(_CHAIN, math.isqrt(steps)), _LONG_CHAIN)
    count = max(1, round(steps / about))
    count = next((n for n in range(count, count + count // 3 + 1) if steps % n == 0), count)
    depth = -(-steps // count)
    return Chains(depth, *divmod(steps, depth))


class TileForm(NamedTuple):
    """How blocks of a product are computed.

    Attributes:
        tile: The part of C that is computed at once.
        columns: The columns of a tile; blocks begin at multiples of it, and of its rows.
        dots: Whether dot products are used.
        copies: Whether B is copied.
    """

    tile: Tile
    columns: int
    dots: bool
    copies: bool

    @classmethod
    def of(cls, block: Block, cpu: Cpu) -> TileForm:
        """The form that suits a product."""
        width = cpu.vector_bytes // block.itemsize
        if block.transpose_b and not (block.transpose_a or block.pairs) and block.m <= _DOT_ROWS:
            together = min(8 if block.m == 1 else 4, dot_lanes(block.k, width))
            return cls(Tile(block.m, together), together, True, False)
        tile = best_tile(block, cpu)
        columns = tile.vectors * width
        copies = block.transpose_b or block.pairs or (block.m >= _COPIED_ROWS and block.n > columns)
        return cls(tile, columns, False, copies)

    def together(self, block: Block) -> int:
        """The number of chains a tile does before the next tile begins."""
        cut = chains(block.k)
        if not self.copies:
            # The part of B that a tile reads is read again by the tile below, if there is one.
            return 1 if block.m > self.tile.rows else cut.whole
        steps = min(COPIED_STEPS, _MOST_COPIED // (self.columns * block.itemsize))
        return min(max(1, steps // cut.depth), cut.whole)

    def scratch(self, block: Block) -> int:
        """Bytes for the copy of B: the part that a panel reads in a slice."""
        if not self.copies:
            return 0
        cut = chains(block.k)
        return (self.together(block) * cut.depth + cut.rest) * self.columns * block.itemsize


def dot_lanes(k: int, width: int) -> int:
    """The number of elements along k that a dot product takes at once."""
    return min(width, 1 << (k - 1).bit_length())
