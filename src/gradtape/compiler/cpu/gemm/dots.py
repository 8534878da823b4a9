"""A block of a matrix product as dot products: C[i, j] = Σ A[i, p]·B[j, p], for few rows.

A tile is all rows and some columns of C, with a vector of partial sums for each element; these are
added up across their lanes at the end.
"""

from __future__ import annotations

from gradtape.compiler.cpu.gemm.form import chains, dot_lanes
from gradtape.compiler.cpu.gemm.tile import Array, Extent, Operands, Piece, TileWriter, ways_of
from gradtape.compiler.cpu.llvm.builder import Value


class DotWriter(TileWriter):
    """Writes the code of a block of C."""

    def write(self, operands: Operands, together: int, columns: Extent) -> None:
        """Compute some columns, given their start in C and B.

        Args:
            operands: Where A is, and the block in B and C.
            together: The number of columns to do at once.
            columns: The number of columns in all.
        """
        a, b, c = operands

        def tiles(number: int | Value, size: int) -> None:
            at_b, at_c = self.at(b, number, together * self.ldb), self.at(c, number, together)
            while size:
                some = 1 << (size.bit_length() - 1)
                self._tile((a, at_b, at_c), some)
                at_b, at_c, size = self.at(at_b, some, self.ldb), self.at(at_c, some), size - some

        self.divided(columns, together, tiles)

    def _tile(self, operands: Operands, columns: int) -> None:
        block, lanes = self.block, dot_lanes(self.block.k, self.width)
        (a, b, c), size = operands, block.m * columns
        steps, rest = divmod(block.k, lanes)
        ways = max(1, min(ways_of(size), steps))
        sums = self._turns(a, b, [self.zero(lanes)] * (ways * size), steps // ways, columns)
        for step in range(steps // ways * ways, steps):
            self._step(self.at(a, step * lanes), self.at(b, step * lanes), lanes, sums, columns)
        if rest:
            self._step(self.at(a, steps * lanes), self.at(b, steps * lanes), rest, sums, columns)
        while len(sums) > size:
            sums[-2 * size : -size] = map(self.b.fadd, sums[-2 * size : -size], sums[-size:])
            del sums[-size:]
        for row in range(block.m):
            total = self._across(sums[row * columns : (row + 1) * columns])
            self.b.store(total, self.at(c, row, block.ldc).address)

    def _turns(
        self, a: Array, b: Array, zeros: list[Value], turns: int, columns: int
    ) -> list[Value]:
        """Add `turns` vectors along k to each of an element's sums, which take turns."""
        sums = list(zeros)
        if not turns:
            return sums
        cut = chains(turns)
        if (cut.whole, cut.rest) == (1, 0):
            self._turn_loop(a, b, sums, turns, columns)
            return sums
        step = len(sums) // (self.block.m * columns) * sums[0].type.lanes
        with self.b.loop(cut.whole, sums) as number:
            part = list(zeros)
            at_a, at_b = (self.at(x, number, cut.depth * step) for x in (a, b))
            self._turn_loop(at_a, at_b, part, cut.depth, columns)
            sums[:] = map(self.b.fadd, sums, part)
        if cut.rest:
            part = list(zeros)
            at_a, at_b = (self.at(x, cut.whole * cut.depth * step) for x in (a, b))
            self._turn_loop(at_a, at_b, part, cut.rest, columns)
            sums[:] = map(self.b.fadd, sums, part)
        return sums

    def _turn_loop(self, a: Array, b: Array, sums: list[Value], turns: int, columns: int) -> None:
        size, lanes = self.block.m * columns, sums[0].type.lanes
        ways = len(sums) // size
        with self.b.loop(turns, sums) as turn:
            first = self.b.mul(turn, ways * lanes)
            for way in range(ways):
                at_a, at_b = (self.at(self.at(x, first), way * lanes) for x in (a, b))
                part = sums[way * size : (way + 1) * size]
                self._step(at_a, at_b, lanes, part, columns)
                sums[way * size : (way + 1) * size] = part

    def _step(self, a: Array, b: Array, active: int, sums: list[Value], columns: int) -> None:
        """A vector along k of every row of A and of B: all products of the two."""
        block, lanes = self.block, sums[0].type.lanes
        right = [self._part(self.at(b, row, block.ldb), active, lanes) for row in range(columns)]
        for row in range(block.m):
            left = self._part(self.at(a, row, block.lda), active, lanes)
            for number, vector in enumerate(right, row * columns):
                sums[number] = self.b.fma(left, vector, sums[number])

    def _part(self, array: Array, active: int, lanes: int) -> Value:
        """The next `active` elements, and zeros."""
        if active == lanes or self.masks:
            return self.load(array, Piece(0, lanes, active))
        type, part = self.type(lanes), "zeroinitializer"
        for lane in range(active):
            one = self.one(self.at(array, lane))
            part = self.b.instruction(type, f"insertelement {type} {part}, {one}, i64 {lane}").text
        return Value(type, part)

    def _across(self, vectors: list[Value]) -> Value:
        """The sum over the lanes of each vector, as one vector with a lane for each."""
        while (lanes := vectors[0].type.lanes) > len(vectors):
            low, high = range(lanes // 2), range(lanes // 2, lanes)
            vectors = [
                self.b.fadd(self.b.lanes_of(x, x, low), self.b.lanes_of(x, x, high))
                for x in vectors
            ]
        even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
        while len(vectors) > 1:
            vectors = [
                self.b.fadd(self.b.lanes_of(x, y, even), self.b.lanes_of(x, y, odd))
                for x, y in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]
