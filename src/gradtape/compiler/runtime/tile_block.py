"""A block of a matrix product, in the way that suits its sizes and what is transposed.

B as it lies: `tile`. B transposed, so that its rows run along k: with few rows of C, a tile is a
number of dot products, whose vectors of partial sums are added up across their lanes at the end;
with many, B is transposed into a scratch buffer first. If B is part of a wider matrix and used for
many rows, it is copied as well: rows far apart compete for the same places in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradtape.compiler.llvm.builder import PTR, Builder, Module, Value
from gradtape.compiler.llvm.link import Target
from gradtape.compiler.runtime.tile import Block, Piece, TileWriter, loop, pieces

_DOT_ROWS = 4  # with more rows of C than this, transposing B is cheaper than summing across lanes
_PACKED_ROWS = 96  # from here on, copying B costs little
_SIDE = 8  # of the squares that are transposed in registers


def copies(block: Block) -> bool:
    """Whether B is copied into a scratch buffer, on the stack."""
    if block.transpose_b:
        return block.transpose_a or block.m > _DOT_ROWS
    return block.ldb > block.n and block.m >= _PACKED_ROWS


def define_product(
    module: Module, head: str, block: Block, target: Target, order: str = "abc"
) -> None:
    """Define a function for a block; C must not overlap A or B.

    Args:
        module: Where to define it.
        head: What comes before its parameters: `define internal void @name`.
        block: The product.
        target: The CPU.
        order: The order of its parameters, all of them pointers.
    """
    b = Builder(module)
    writer = _Writer(b, block, target)
    writer.product(*(Value(PTR, f"%{letter}") for letter in "abc"))
    b.emit("ret void")
    bits = target.vector_bytes * 8
    width = f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
    parameters = ", ".join(f"ptr noalias %{letter}" for letter in order)
    module.define(b.function(f"{head}({parameters}) nounwind {width}"))


class _Writer(TileWriter):
    """Writes the body of a product."""

    def product(self, a: Value, b: Value, c: Value) -> None:
        """All of C, in the way that suits the sizes."""
        block = self.block
        if block.k == 0:
            self.zeros(c)
        elif copies(block):
            size = block.k * block.n
            scratch = self.b.instruction(PTR, f"alloca {block.scalar}, i64 {size}, align 64")
            if block.transpose_b:
                self._transpose(b, scratch)
            else:
                self._copy_rows(b, scratch)
            self.block = block._replace(transpose_b=False, ldb=block.n)
            self.outer_products(a, scratch, c)
        elif block.transpose_b:
            self._dots(a, b, c)
        else:
            self.outer_products(a, b, c)

    # ---- copies of B -----------------------------------------------------------------------

    def _copy_rows(self, b: Value, scratch: Value) -> None:
        block = self.block
        with self.repeated(block.k) as row:
            source, place = self.at(b, row, block.ldb), self.at(scratch, row, block.n)
            for piece in pieces(block.n, self.width, self.masks):
                vector = self.load(self.at(source, piece.offset), piece)
                self.store(vector, self.at(place, piece.offset), piece)

    def _transpose(self, b: Value, scratch: Value) -> None:
        """Rows along n, by squares, and by elements at the edges."""
        block = self.block
        high, wide = block.n // _SIDE, block.k // _SIDE
        if high and wide:
            with self.repeated(high) as row, self.repeated(wide) as column:
                source = self.at(self.at(b, row, _SIDE * block.ldb), column, _SIDE)
                place = self.at(self.at(scratch, column, _SIDE * block.n), row, _SIDE)
                lines = [
                    self.b.load(self.at(source, line, block.ldb), self.type(_SIDE))
                    for line in range(_SIDE)
                ]
                for line, vector in enumerate(self._swap(lines)):
                    self.b.store(vector, self.at(place, line, block.n))
        self._copy(b, scratch, range(high * _SIDE), range(wide * _SIDE, block.k))
        self._copy(b, scratch, range(high * _SIDE, block.n), range(block.k))

    def _copy(self, b: Value, scratch: Value, rows: range, columns: range) -> None:
        if not rows or not columns:
            return
        block = self.block
        source = self.at(b, rows.start * block.ldb + columns.start)
        place = self.at(scratch, columns.start * block.n + rows.start)
        with self.repeated(len(rows)) as row, self.repeated(len(columns)) as column:
            one = self.b.load(self.at(self.at(source, row, block.ldb), column), self.type(1))
            self.b.store(one, self.at(self.at(place, column, block.n), row))

    def _swap(self, lines: list[Value]) -> list[Value]:
        """Transpose a square: quarters off the diagonal change places, in ever smaller squares."""
        side = len(lines)
        half = side // 2
        while half:
            low = [lane if not lane & half else side + lane - half for lane in range(side)]
            high = [lane + half if not lane & half else side + lane for lane in range(side)]
            for first in (line for line in range(side) if not line & half):
                x, y = lines[first], lines[first + half]
                lines[first] = self._shuffle(x, y, low)
                lines[first + half] = self._shuffle(x, y, high)
            half //= 2
        return lines

    def _shuffle(self, x: Value, y: Value, lanes: Sequence[int]) -> Value:
        """Lanes of x followed by y, picked by number; a single one, of x, as a scalar."""
        if len(lanes) == 1:
            return self.b.instruction(self.type(1), f"extractelement {x}, i64 {lanes[0]}")
        picked = ", ".join(f"i32 {lane}" for lane in lanes)
        text = f"shufflevector {x}, {y}, <{len(lanes)} x i32> <{picked}>"
        return self.b.instruction(self.type(len(lanes)), text)

    # ---- dot products ----------------------------------------------------------------------

    def _dots(self, a: Value, b: Value, c: Value) -> None:
        """C[i, j] = Σ A[i, p]·B[j, p], all rows of C at once, columns in groups."""
        block = self.block
        lanes = min(self.width, 1 << (block.k - 1).bit_length())
        together = min(8 if block.m == 1 else 4, lanes)
        whole = block.n // together
        if whole:
            with self.repeated(whole) as group:
                at_b = self.at(b, group, together * block.ldb)
                self._dot_tile(a, at_b, self.at(c, group, together), together, lanes)
        first = whole * together
        while first < block.n:
            together = 1 << ((block.n - first).bit_length() - 1)
            self._dot_tile(a, self.at(b, first * block.ldb), self.at(c, first), together, lanes)
            first += together

    def _dot_tile(self, a: Value, b: Value, c: Value, columns: int, lanes: int) -> None:
        block = self.block
        sums = [self.zero(lanes)] * (block.m * columns)
        whole, rest = divmod(block.k, lanes)
        if whole > 1:
            with loop(self.b, whole, sums) as turn:
                self._dot_step(self.at(a, turn, lanes), self.at(b, turn, lanes), lanes, sums)
        elif whole:
            self._dot_step(a, b, lanes, sums)
        if rest:
            done = whole * lanes
            self._dot_step(self.at(a, done), self.at(b, done), rest, sums)
        for row in range(block.m):
            total = self._across(sums[row * columns : (row + 1) * columns])
            self.b.store(total, self.at(c, row, block.ldc))

    def _dot_step(self, a: Value, b: Value, active: int, sums: list[Value]) -> None:
        """A vector along k of every row of A and of B: all products of the two."""
        block, lanes = self.block, sums[0].type.lanes
        columns = len(sums) // block.m
        right = [self._part(self.at(b, row, block.ldb), active, lanes) for row in range(columns)]
        for row in range(block.m):
            left = self._part(self.at(a, row, block.lda), active, lanes)
            for number, vector in enumerate(right, row * columns):
                sums[number] = self.b.fma(left, vector, sums[number])

    def _part(self, pointer: Value, active: int, lanes: int) -> Value:
        """The next `active` elements, and zeros."""
        if active == lanes or self.masks:
            return self.load(pointer, Piece(0, lanes, active))
        type, part = self.type(lanes), "zeroinitializer"
        for lane in range(active):
            one = self.b.load(self.at(pointer, lane), self.type(1))
            part = self.b.instruction(type, f"insertelement {type} {part}, {one}, i64 {lane}").text
        return Value(type, part)

    def _across(self, vectors: list[Value]) -> Value:
        """The sum over the lanes of each vector, as one vector of so many lanes."""
        while (lanes := vectors[0].type.lanes) > len(vectors):
            low, high = range(lanes // 2), range(lanes // 2, lanes)
            vectors = [
                self.b.fadd(self._shuffle(x, x, low), self._shuffle(x, x, high)) for x in vectors
            ]
        even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
        while len(vectors) > 1:
            vectors = [
                self.b.fadd(self._shuffle(x, y, even), self._shuffle(x, y, odd))
                for x, y in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]
