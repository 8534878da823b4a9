"""Matrix products of static sizes as register-tiled loops, for what is too small for BLAS.

A tile of C stays in registers while the loop runs over k: every step loads the vectors of one row
of B, and each of them is multiplied by as many elements of A as the tile has rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gradtape.compiler.llvm.builder import I64, PTR, Builder, Type, Value
from gradtape.compiler.llvm.link import Target

_SUM = 512  # steps along k that are added up one after the other, about
_UNROLLED = 32  # multiply-adds in the body of the loop over k, about
_HIGHEST = 12  # rows of a tile: more makes code longer and no faster
_IN_FLIGHT = 8  # sums that are independent of each other keep the multipliers busy


class Block(NamedTuple):
    """A product C = op(A)·op(B) on parts of row-major arrays.

    Attributes:
        scalar: float or double.
        m: Rows of C.
        n: Columns of C.
        k: Length of the sums.
        transpose_a: A is stored k×m, not m×k.
        transpose_b: B is stored n×k, not k×n.
        lda: Elements from one row of A, as it is stored, to the next.
        ldb: The same of B.
        ldc: The same of C.
    """

    scalar: str
    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    lda: int
    ldb: int
    ldc: int

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return 4 if self.scalar == "float" else 8


class Piece(NamedTuple):
    """A vector's worth of columns; lanes beyond `active` are masked off."""

    offset: int
    lanes: int
    active: int


def pieces(n: int, width: int, masks: bool) -> list[Piece]:
    """Cut n columns into vectors of at most `width` lanes, always powers of two."""
    cut = [Piece(offset, width, width) for offset in range(0, n - width + 1, width)]
    offset, rest = len(cut) * width, n % width
    while rest:
        # One masked vector; without masks the largest power of two that fits, again and again.
        lanes = 1 << ((rest - 1).bit_length() if masks else rest.bit_length() - 1)
        active = min(rest, lanes)
        cut.append(Piece(offset, lanes, active))
        offset, rest = offset + active, rest - active
    return cut


def tile_cost(block: Block, target: Target) -> tuple[float, int, int]:
    """The cheapest tile for a block: estimated cycles of the product, rows, vectors."""
    m, vectors = block.m, -(-block.n * block.itemsize // target.vector_bytes)

    def cost(rows: int, across: int) -> float:
        total = 0.0
        for high, times_m in ((rows, m // rows), (m % rows, 1)):
            for wide, times_n in ((across, vectors // across), (vectors % across, 1)):
                if high and wide:
                    # Two multiply-adds or loads in a cycle; a load costs a little in any case.
                    step = max(high * wide, high + wide) / 2 + 0.05 * (high + wide)
                    total += times_m * times_n * (block.k * step + 10)
        return total

    # Besides the sums, registers hold a row of B, an element of A and what comes next.
    registers = 32 if target.vector_bytes == 64 else 16
    heights = ((registers - 2) // across - 1 for across in range(1, vectors + 1))
    shapes = [
        (min(m, high, _HIGHEST), across) for across, high in enumerate(heights, 1) if high > 0
    ]
    return min((cost(*shape), *shape) for shape in shapes)


@contextmanager
def loop(b: Builder, count: int, state: list[Value]) -> Iterator[Value]:
    """Run a body `count` ≥ 1 times with its number; the entries of `state` carry over."""
    before, (head, latch, end) = b.block, (b.new_block(hint) for hint in ("loop", "latch", "end"))
    b.branch(head)
    b.start(head)
    number, following = b.fresh("n"), b.fresh("n")
    b.emit(f"{number} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
    names = [(b.fresh("s"), b.fresh("s")) for _ in state]
    for (name, later), value in zip(names, state, strict=True):
        b.emit(f"{name} = phi {value.type} [ {value.text}, %{before} ], [ {later}, %{latch} ]")
    state[:] = [Value(value.type, name) for (name, _), value in zip(names, state, strict=True)]
    yield Value(I64, number)
    b.branch(latch)
    b.start(latch)
    # A phi names a value that is not computed yet; a cast to the same type gives it that name.
    for (_, later), value in zip(names, state, strict=True):
        b.emit(f"{later} = bitcast {value} to {value.type}")
    b.emit(f"{following} = add i64 {number}, 1")
    more = b.icmp("ult", Value(I64, following), b.const(I64, count))
    b.branch_if(more, head, end)
    b.start(end)


class TileWriter:
    """Writes products with B as it is stored: rows along n."""

    def __init__(self, b: Builder, block: Block, target: Target) -> None:
        self.b = b
        self.block = block
        self.width = target.vector_bytes // block.itemsize
        self.masks = target.vector_bytes >= 32  # narrower CPUs have no masked loads
        self.target = target

    # ---- addresses, vectors ----------------------------------------------------------------

    def at(self, pointer: Value, index: int | Value, stride: int = 1) -> Value:
        """The address of element index·stride."""
        if isinstance(index, int):
            if index * stride == 0:
                return pointer
            offset = self.b.const(I64, index * stride)
        else:
            offset = index if stride == 1 else self.b.mul(index, self.b.const(I64, stride))
        return self.b.element(pointer, offset, self.block.scalar)

    def type(self, lanes: int) -> Type:
        """A vector of elements."""
        return Type(self.block.scalar, lanes)

    def zero(self, lanes: int) -> Value:
        """A vector of zeros."""
        return self.b.const(self.type(lanes), 0.0)

    def load(self, pointer: Value, piece: Piece) -> Value:
        """Load a piece; lanes that are masked off are zero."""
        type = self.type(piece.lanes)
        if piece.active == piece.lanes:
            return self.b.load(pointer, type)
        # The form with an alignment operand is read by every LLVM.
        name, mask = f"llvm.masked.load.{type.suffix}.p0", self._mask(piece)
        self.b.module.declare(name, type, [PTR, "i32 immarg", mask.type, type])
        operands = f"{pointer}, i32 {type.bits // 8}, {mask}, {type} zeroinitializer"
        return self.b.instruction(type, f"call {type} @{name}({operands})")

    def store(self, value: Value, pointer: Value, piece: Piece) -> None:
        """Store a piece; memory of lanes that are masked off is not touched."""
        if piece.active == piece.lanes:
            self.b.store(value, pointer)
            return
        name, mask = f"llvm.masked.store.{value.type.suffix}.p0", self._mask(piece)
        self.b.module.declare(name, "void", [value.type, PTR, "i32 immarg", mask.type])
        self.b.emit(f"call void @{name}({value}, {pointer}, i32 {value.type.bits // 8}, {mask})")

    def _mask(self, piece: Piece) -> Value:
        inside = [lane < piece.active for lane in range(piece.lanes)]
        return self.b.lanes_const(Type("i1", piece.lanes), inside)

    @contextmanager
    def repeated(self, count: int) -> Iterator[Value | int]:
        """A loop, or only its body if that runs once."""
        if count == 1:
            yield 0
        else:
            with loop(self.b, count, []) as number:
                yield number

    # ---- the product -----------------------------------------------------------------------

    def zeros(self, c: Value) -> None:
        """What empty sums give."""
        with self.repeated(self.block.m) as row:
            for piece in pieces(self.block.n, self.width, self.masks):
                place = self.at(self.at(c, row, self.block.ldc), piece.offset)
                self.store(self.zero(piece.lanes), place, piece)

    def outer_products(self, a: Value, b: Value, c: Value) -> None:
        """All of C: columns in groups of vectors, for each of them rows in groups."""
        block = self.block
        columns = pieces(block.n, self.width, self.masks)
        _, rows, across = tile_cost(block, self.target)
        whole = block.n // self.width // across  # groups of full vectors, all alike
        step = across * self.width
        if whole:
            with self.repeated(whole) as group:
                at_b, at_c = self.at(b, group, step), self.at(c, group, step)
                self._rows(a, at_b, at_c, rows, columns[:across])
        if rest := columns[whole * across :]:
            for first in range(0, len(rest), across):
                self._rows(a, b, c, rows, rest[first : first + across])

    def _rows(self, a: Value, b: Value, c: Value, rows: int, columns: Sequence[Piece]) -> None:
        block = self.block
        stride = 1 if block.transpose_a else block.lda
        whole, rest = divmod(block.m, rows)
        with self.repeated(whole) as group:
            at_a, at_c = self.at(a, group, rows * stride), self.at(c, group, rows * block.ldc)
            self._tile(at_a, b, at_c, rows, columns)
        if rest:
            at_a, at_c = self.at(a, whole * rows * stride), self.at(c, whole * rows * block.ldc)
            self._tile(at_a, b, at_c, rest, columns)

    def _tile(self, a: Value, b: Value, c: Value, rows: int, columns: Sequence[Piece]) -> None:
        """A tile of C; long sums in parts of equal length, which keeps rounding errors small."""
        k, places = self.block.k, self._places(c, rows, columns)
        parts = max(1, round(k / _SUM))
        depth, rest = divmod(k, parts)
        if parts == 1:
            for total, place in zip(self._sums(a, b, k, rows, columns), places, strict=True):
                self.store(total, *place)
            return
        # Not in C: another thread may do an overlapping block of it at the same time.
        zeros = [self.zero(piece.lanes) for _, piece in places]
        totals = [self.b.alloca(zero.type) for zero in zeros]
        for zero, total in zip(zeros, totals, strict=True):
            self.b.store(zero, total)
        with loop(self.b, parts, []) as part:
            at_a, at_b = self._along_k(a, b, part, depth)
            self._add(self._sums(at_a, at_b, depth, rows, columns), totals)
        if rest:
            at_a, at_b = self._along_k(a, b, parts, depth)
            self._add(self._sums(at_a, at_b, rest, rows, columns), totals)
        for zero, total, place in zip(zeros, totals, places, strict=True):
            self.store(self.b.load(total, zero.type), *place)

    def _places(self, c: Value, rows: int, columns: Sequence[Piece]) -> list[tuple[Value, Piece]]:
        """Where the vectors of a tile are."""
        return [
            (self.at(c, row * self.block.ldc + piece.offset), piece)
            for row in range(rows)
            for piece in columns
        ]

    def _add(self, sums: Sequence[Value], totals: Sequence[Value]) -> None:
        for part, total in zip(sums, totals, strict=True):
            self.b.store(self.b.fadd(self.b.load(total, part.type), part), total)

    def _along_k(self, a: Value, b: Value, index: int | Value, steps: int) -> tuple[Value, Value]:
        block = self.block
        along_a = block.lda if block.transpose_a else 1
        return self.at(a, index, steps * along_a), self.at(b, index, steps * block.ldb)

    def _sums(self, a: Value, b: Value, k: int, rows: int, columns: Sequence[Piece]) -> list[Value]:
        """The first k steps of all sums of a tile."""
        size = rows * len(columns)
        # A small tile has several sums for each element, which take turns along k.
        ways = max(1, min(_IN_FLIGHT // size, k))
        sums = [self.zero(piece.lanes) for _ in range(ways * rows) for piece in columns]
        unrolled = ways * max(1, _UNROLLED // (ways * size))
        whole = k // unrolled
        if whole > 1:
            with loop(self.b, whole, sums) as turn:
                at_a, at_b = self._along_k(a, b, turn, unrolled)
                self._steps(at_a, at_b, range(unrolled), rows, columns, sums)
        done = whole * unrolled if whole > 1 else 0
        self._steps(a, b, range(done, k), rows, columns, sums)
        while len(sums) > size:
            sums[-2 * size : -size] = map(self.b.fadd, sums[-2 * size : -size], sums[-size:])
            del sums[-size:]
        return sums

    def _steps(
        self,
        a: Value,
        b: Value,
        steps: range,
        rows: int,
        columns: Sequence[Piece],
        sums: list[Value],
    ) -> None:
        """Steps along k: C[i, :] += A[i, p] · B[p, :]."""
        block = self.block
        ways = len(sums) // (rows * len(columns))
        for p in steps:
            vectors = [
                self.load(self.at(b, p * block.ldb + piece.offset), piece) for piece in columns
            ]
            for row in range(rows):
                place = p * block.lda + row if block.transpose_a else row * block.lda + p
                factor = self.b.load(self.at(a, place), self.type(1))
                first = (p % ways * rows + row) * len(columns)
                for number, vector in enumerate(vectors, first):
                    spread = self.b.splat(factor, vector.type.lanes)
                    sums[number] = self.b.fma(spread, vector, sums[number])
