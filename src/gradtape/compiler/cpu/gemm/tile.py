"""Register-tiled loops for matrix products of static sizes.

A tile of C stays in registers while the loop runs over k: every step loads the vectors of one row
of B, and each of them is multiplied by as many elements of A as the tile has rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gradtape.compiler.cpu.llvm.builder import I64, Builder, Type, Value
from gradtape.compiler.cpu.llvm.halves import HALVES, from_half
from gradtape.compiler.cpu.llvm.link import Cpu

_UNROLLED = 32  # about how many multiply-adds the body of the loop over k has
_HIGHEST = 12  # rows of a tile: more would make the code longer but no faster
_WIDEST = 12  # vectors of a tile, likewise
IN_FLIGHT = 8  # this many independent sums keep the multipliers busy


class Block(NamedTuple):
    """A product C = op(A)·op(B) on parts of row-major arrays.

    Attributes:
        scalar: float or double, in which it is computed.
        m: Rows of C.
        n: Columns of C.
        k: Length of the sums.
        transpose_a: A is stored k×m, not m×k.
        transpose_b: B is stored n×k, not k×n.
        lda: Elements from one row of A, as it is stored, to the next.
        ldb: The same for B.
        ldc: The same for C.
        stored: The elements of A and B in memory: float, double, bfloat16 or float16. A `pair` is
            two of bfloat16 that follow each other along k, which then counts pairs.
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
    stored: tuple[str, str]

    @property
    def pairs(self) -> bool:
        """Whether two products are added at a time, by instructions for that."""
        return self.stored[0] == PAIR

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return 4 if self.scalar == "float" else 8


class Array(NamedTuple):
    """A place in an array: its address, and the elements there."""

    address: Value
    element: str


# In registers and copies of B, two numbers of bfloat16 are one integer.
PAIR = "pair"
_MEMORY = {**dict.fromkeys(HALVES, "i16"), PAIR: "i32"}

# Where A, B and C are.
Operands = tuple[Array, Array, Array]


def moved(b: Builder, array: Array, index: Value) -> Array:
    """The place of the element this much further on."""
    type = _MEMORY.get(array.element, array.element)
    return Array(b.element(array.address, index, type), array.element)


class Extent(NamedTuple):
    """The number of rows or columns of C in a block.

    Attributes:
        size: The number; a value if blocks are not all alike. All but the last of them are
            multiples of the number done at once.
        whole: The number in all of C.
    """

    size: int | Value
    whole: int


class Steps(NamedTuple):
    """The part of the sums that a slice does.

    Attributes:
        depth: Steps of a chain.
        whole: The number of chains.
        rest: Steps of the last, shorter chain.
        ends: Whether that chain is in this slice.
        first: Whether this slice is the first.
    """

    depth: int
    whole: int | Value
    rest: int
    ends: bool | Value
    first: bool | Value


class Tile(NamedTuple):
    """The part of C that is computed at once: some rows, and some vectors of each."""

    rows: int
    vectors: int


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
        # One masked vector; without masks, repeatedly the largest power of two that fits.
        lanes = 1 << ((rest - 1).bit_length() if masks else rest.bit_length() - 1)
        active = min(rest, lanes)
        cut.append(Piece(offset, lanes, active))
        offset, rest = offset + active, rest - active
    return cut


def ways_of(sums: int) -> int:
    """The number of partial sums of each element of a small tile, which take turns along k."""
    return max(1, IN_FLIGHT // sums)


def cycles(tile: Tile, m: int, vectors: int, k: int) -> float:
    """The approximate number of cycles for m rows of `vectors` vectors of C in such tiles."""
    total = 0.0
    for high, times_m in ((tile.rows, m // tile.rows), (m % tile.rows, 1)):
        for wide, times_n in ((tile.vectors, vectors // tile.vectors), (vectors % tile.vectors, 1)):
            if high and wide:
                # Two multiply-adds or about 1.3 loads in a cycle, but four cycles until a sum can
                # be used again; a load costs a little in any case.
                size, loads = high * wide, high + wide
                step = max(size / 2, loads / 1.3, 4 / ways_of(size)) + 0.05 * loads
                total += times_m * times_n * (k * step + 10)
    return total


def vectors_of(columns: int, block: Block, cpu: Cpu) -> int:
    """The number of vectors that columns make up."""
    return -(-columns * block.itemsize // cpu.vector_bytes)


def best_tile(block: Block, cpu: Cpu) -> Tile:
    """The tile with which a product is estimated to be fastest."""
    vectors = vectors_of(block.n, block, cpu)
    # Besides the sums, registers hold an element of A, and a row of B if it is used again.
    registers = cpu.vector_registers
    widths = range(1, min(vectors, _WIDEST) + 1)
    heights = [max((registers - 1) // wide - 1, wide <= registers - 4) for wide in widths]
    tiles = [
        Tile(min(block.m, high, _HIGHEST), wide)
        for wide, high in zip(widths, heights, strict=True)
        if high
    ]
    return min(tiles, key=lambda tile: (cycles(tile, block.m, vectors, block.k), tile))


class TileWriter:
    """Writes tiles of products with B in rows along n."""

    def __init__(self, b: Builder, block: Block, cpu: Cpu) -> None:
        self.b = b
        self.block = block
        self.width = cpu.vector_bytes // block.itemsize
        self.masks = cpu.masks
        self.ldb = block.ldb  # from one row of B to the next where tiles read it

    # ---- addresses, vectors ----------------------------------------------------------------

    def at(self, array: Array, index: int | Value, stride: int = 1) -> Array:
        """The place of element index·stride."""
        if isinstance(index, int):
            if index * stride == 0:
                return array
            offset = self.b.const(I64, index * stride)
        else:
            offset = index if stride == 1 else self.b.mul(index, stride)
        return moved(self.b, array, offset)

    def type(self, lanes: int) -> Type:
        """A vector of elements."""
        return Type(self.block.scalar, lanes)

    def zero(self, lanes: int) -> Value:
        """A vector of zeros."""
        return self.b.const(self.type(lanes), 0.0)

    def load(self, array: Array, piece: Piece) -> Value:
        """Load a piece; masked-off lanes are zero."""
        value = self.read(array, piece)
        return from_half(self.b, value, array.element) if array.element in HALVES else value

    def read(self, array: Array, piece: Piece) -> Value:
        """The same without converting it."""
        type = Type(_MEMORY.get(array.element, self.block.scalar), piece.lanes)
        if piece.active == piece.lanes:
            return self.b.load(array.address, type)
        return self.b.masked_load(array.address, type, self._mask(piece))

    def one(self, array: Array) -> Value:
        """Load an element."""
        return self.load(array, Piece(0, 1, 1))

    def store(self, value: Value, array: Array, piece: Piece) -> None:
        """Store a piece of C; memory of masked-off lanes is not touched."""
        if piece.active == piece.lanes:
            self.b.store(value, array.address)
        else:
            self.b.masked_store(value, array.address, self._mask(piece))

    def _mask(self, piece: Piece) -> Value:
        inside = [lane < piece.active for lane in range(piece.lanes)]
        return self.b.lanes_const(Type("i1", piece.lanes), inside)

    @contextmanager
    def repeated(self, count: int | Value) -> Iterator[Value | int]:
        """A loop, or just its body if that runs once."""
        if count == 1:
            yield 0
        else:
            with self.b.loop(count) as number:
                yield number

    def divided(self, extent: Extent, unit: int, body: Callable[[int | Value, int], None]) -> None:
        """Call `body(number, size)` for every unit of an extent, and for the rest at its end."""
        size, rest = extent.size, extent.whole % unit
        if isinstance(size, int):
            count: int | Value = size // unit
        else:
            count = self.b.udiv(size, unit)
        if count != 0:
            with self.repeated(count) as number:
                body(number, unit)
        if not rest:
            return
        if isinstance(size, int):
            body(count, rest)
            return
        left = self.b.urem(size, unit)
        with self.b.only_if(self.b.icmp("ne", left, 0)):
            body(count, rest)

    # ---- a tile ----------------------------------------------------------------------------

    def along(self, steps: Steps, body: Callable[[int | Value, int, bool | Value], None]) -> None:
        """Call `body(number, steps, first)` for every chain."""
        b = self.b
        with self.repeated(steps.whole) as number:
            first = steps.first
            if first is not False and not isinstance(number, int):
                begins = b.icmp("eq", number, 0)
                first = begins if isinstance(first, bool) else b.and_(first, begins)
            body(number, steps.depth, first)
        if not steps.rest:
            return
        if isinstance(steps.ends, bool):
            body(steps.whole, steps.rest, False)
            return
        with b.only_if(steps.ends):
            body(steps.whole, steps.rest, False)

    def write_tile(
        self, operands: Operands, steps: Steps, rows: int, columns: Sequence[Piece]
    ) -> None:
        """Store a tile of the product, or add it in a slice that is not the first."""
        a, b, c = operands
        places = [
            (self.at(c, row * self.block.ldc + piece.offset), piece)
            for row in range(rows)
            for piece in columns
        ]

        def chain(number: int | Value, k: int, first: bool | Value) -> None:
            at_a = self.at(a, number, steps.depth * self.along_a)
            at_b = self.at(b, number, steps.depth * self.ldb)
            sums = self._sums(at_a, at_b, k, rows, columns)
            for total, (place, piece) in zip(sums, places, strict=True):
                self.store(self._added(total, place, piece, first), place, piece)

        self.along(steps, chain)

    def _added(self, total: Value, place: Array, piece: Piece, first: bool | Value) -> Value:
        """The total added to what is stored already, unless these are the first steps."""
        if first is True:
            return total
        before = self.load(place, piece)
        if first is not False:
            before = self.b.select(first, self.zero(piece.lanes), before)
        return self.b.fadd(before, total)

    @property
    def along_a(self) -> int:
        """Elements of A from one step along the sums to the next."""
        return self.block.lda if self.block.transpose_a else 1

    def _sums(self, a: Array, b: Array, k: int, rows: int, columns: Sequence[Piece]) -> list[Value]:
        """The first k steps of all sums of a tile."""
        size = rows * len(columns)
        ways = min(ways_of(size), k)
        sums = [self.zero(piece.lanes) for _ in range(ways * rows) for piece in columns]
        unrolled = ways * max(1, _UNROLLED // (ways * size))
        whole = k // unrolled
        if whole > 1:
            with self.b.loop(whole, sums) as turn:
                at_a = self.at(a, turn, unrolled * self.along_a)
                at_b = self.at(b, turn, unrolled * self.ldb)
                self._steps(at_a, at_b, range(unrolled), rows, columns, sums)
        done = whole * unrolled if whole > 1 else 0
        self._steps(a, b, range(done, k), rows, columns, sums)
        while len(sums) > size:
            sums[-2 * size : -size] = map(self.b.fadd, sums[-2 * size : -size], sums[-size:])
            del sums[-size:]
        return sums

    def _steps(
        self,
        a: Array,
        b: Array,
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
                self.load(self.at(b, p * self.ldb + piece.offset), piece) for piece in columns
            ]
            for row in range(rows):
                place = p * block.lda + row if block.transpose_a else row * block.lda + p
                factor = self.one(self.at(a, place))
                first = (p % ways * rows + row) * len(columns)
                for number, vector in enumerate(vectors, first):
                    spread = self.b.splat(factor, vector.type.lanes)
                    sums[number] = self._added_product(sums[number], spread, vector)

    def _added_product(self, total: Value, x: Value, y: Value) -> Value:
        """A sum and a product, or both products of pairs."""
        if not self.block.pairs:
            return self.b.fma(x, y, total)
        bits = x.type.lanes * x.type.bits
        name = f"llvm.x86.avx512bf16.dpbf16ps.{bits}"
        self.b.module.declare(name, total.type, [total.type, x.type, y.type])
        return self.b.instruction(total.type, f"call {total.type} @{name}({total}, {x}, {y})")
