"""A block of a matrix product as panels of tiles.

A panel is a part of C that is one tile wide; its tiles are computed one below the other. Long sums
are done in slices along k, so that rounding errors do not add up along them, and the part of B that
a panel reads stays in the first-level cache. For many rows, it is copied first: rows far apart
compete for the same places in a cache. If B is stored transposed, the copy is not.
"""

from __future__ import annotations

from gradtape.compiler.cpu.gemm.form import TileForm, chains
from gradtape.compiler.cpu.gemm.tile import (
    PAIR,
    Array,
    Block,
    Extent,
    Operands,
    Piece,
    Steps,
    TileWriter,
    pieces,
)
from gradtape.compiler.cpu.llvm.builder import I64, Builder, Value
from gradtape.compiler.cpu.llvm.link import Cpu

_SIDE = 8  # the largest squares that are transposed in registers


class PanelWriter(TileWriter):
    """Writes the code of a block of C.

    Args:
        b: The builder to write with.
        block: The product it is a block of.
        form: How it is computed.
        cpu: The CPU.
        scratch: Memory for the copy of B, if it is copied.
    """

    def __init__(self, b: Builder, block: Block, form: TileForm, cpu: Cpu, scratch: Value) -> None:
        super().__init__(b, block, cpu)
        self.form = form
        self.scratch = Array(scratch, PAIR if block.pairs else block.scalar)
        if form.copies:
            self.ldb = form.columns

    def write(self, operands: Operands, rows: Extent, columns: Extent) -> None:
        """Compute a block, given the start of it in C, of its rows in A and its columns in B."""
        block, cut = self.block, chains(self.block.k)
        along_b = 1 if block.transpose_b else block.ldb
        together = self.form.together(block)
        count = -(-cut.whole // together)

        with self.repeated(count) as number:
            a = self.at(operands[0], number, together * cut.depth * self.along_a)
            b = self.at(operands[1], number, together * cut.depth * along_b)
            self._slice((a, b, operands[2]), self._steps_of(number, count), rows, columns)

    def _steps_of(self, number: int | Value, count: int) -> Steps:
        """The part of the sums that one of `count` slices does."""
        cut, together = chains(self.block.k), self.form.together(self.block)
        if isinstance(number, int):
            return Steps(cut.depth, cut.whole, cut.rest, True, True)
        b, left = self.b, cut.whole - (count - 1) * together
        last = b.icmp("eq", number, count - 1)
        whole: int | Value = together
        if left != together:
            whole = b.select(last, b.const(I64, left), b.const(I64, together))
        return Steps(cut.depth, whole, cut.rest, last, b.icmp("eq", number, 0))

    def _slice(self, operands: Operands, steps: Steps, rows: Extent, columns: Extent) -> None:
        """C = A·B in the first slice, C += A·B in others."""
        (a, b, c), block = operands, self.block
        across_b = block.ldb if block.transpose_b else 1

        def panel(number: int | Value, size: int) -> None:
            at_b = self.at(b, number, self.form.columns * across_b)
            at_c = self.at(c, number, self.form.columns)
            self._panel((a, at_b, at_c), steps, rows, size)

        self.divided(columns, self.form.columns, panel)

    def _panel(self, operands: Operands, steps: Steps, rows: Extent, columns: int) -> None:
        (a, b, c), block, unit = operands, self.block, self.form.tile.rows
        if self.form.copies:
            copy = self._transpose if block.transpose_b else self._copy_rows
            self.along(steps, lambda number, k, _first: copy(b, number, columns, k))
            b = self.scratch
        down_a = 1 if block.transpose_a else block.lda
        across = pieces(columns, self.width, self.masks)

        def tile(number: int | Value, size: int) -> None:
            at_a, at_c = self.at(a, number, unit * down_a), self.at(c, number, unit * block.ldc)
            self.write_tile((at_a, b, at_c), steps, size, across)

        self.divided(rows, unit, tile)

    # ---- copies of B -----------------------------------------------------------------------

    def _copy_rows(self, b: Array, chain: int | Value, columns: int, k: int) -> None:
        """Copy k steps of a chain."""
        depth = chains(self.block.k).depth
        b = self.at(b, chain, depth * self.block.ldb)
        copy = self.at(self.scratch, chain, depth * self.ldb)
        with self.repeated(k) as row:
            source, place = self.at(b, row, self.block.ldb), self.at(copy, row, self.ldb)
            for piece in pieces(columns, self.width, self.masks):
                vector = self._row(self.at(source, piece.offset), piece)
                self.store(vector, self.at(place, piece.offset), piece)

    def _row(self, source: Array, piece: Piece) -> Value:
        """A piece of a row of B; of two rows, in pairs, if these are wanted."""
        if not self.block.pairs:
            return self.load(source, piece)
        rows = (source, self.at(source, self.block.ldb // 2))
        low, high = (self.b.convert("zext", self.read(row, piece), "i32") for row in rows)
        return self.b.or_(low, self.b.shl(high, 16))

    def _transpose(self, b: Array, chain: int | Value, columns: int, k: int) -> None:
        """Copy k steps of a chain as rows along n: by squares, and by elements at the edges."""
        ldb, side = self.block.ldb, min(_SIDE, self.form.columns & -self.form.columns)
        depth = chains(self.block.k).depth
        b, copy = self.at(b, chain, depth), self.at(self.scratch, chain, depth * self.ldb)
        high, wide = columns // side, k // side
        if high and wide:
            with self.repeated(high) as row, self.repeated(wide) as column:
                source = self.at(self.at(b, row, side * ldb), column, side)
                place = self.at(self.at(copy, column, side * self.ldb), row, side)
                whole = Piece(0, side, side)
                lines = [self.load(self.at(source, line, ldb), whole) for line in range(side)]
                for line, vector in enumerate(self.b.transposed(lines)):
                    self.store(vector, self.at(place, line, self.ldb), whole)
        self._copy(b, copy, range(high * side), range(wide * side, k))
        self._copy(b, copy, range(high * side, columns), range(k))

    def _copy(self, b: Array, copy: Array, rows: range, columns: range) -> None:
        if not rows or not columns:
            return
        ldb = self.block.ldb
        source = self.at(b, rows.start * ldb + columns.start)
        place = self.at(copy, columns.start * self.ldb + rows.start)
        with self.repeated(len(rows)) as row, self.repeated(len(columns)) as column:
            one = self.one(self.at(self.at(source, row, ldb), column))
            self.b.store(one, self.at(self.at(place, column, self.ldb), row).address)
