"""Functions for matrix products: blocks of C as chunks of the thread pool.

`split_of` says how a product is cut; here that becomes code. The function stores its pointers where
the chunks find them and runs the chunks; a chunk finds its block from its number and computes it,
by the loops of `panels` or `dots`.
"""

from __future__ import annotations

from typing import NamedTuple

from gradtape.compiler.cpu.gemm.dots import DotWriter
from gradtape.compiler.cpu.gemm.form import TileForm
from gradtape.compiler.cpu.gemm.panels import PanelWriter
from gradtape.compiler.cpu.gemm.split import Split, split_of
from gradtape.compiler.cpu.gemm.tile import Array, Block, Extent, Operands, moved, pieces
from gradtape.compiler.cpu.llvm.builder import I64, NULL, PTR, VOID, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.link import Cpu
from gradtape.compiler.cpu.llvm.scratch import take_scratch

_A, _B, _C, _WORK, _STATUS = (Value(PTR, f"%{name}") for name in ("a", "b", "c", "work", "status"))


class BatchedBlock(NamedTuple):
    """A batch of products of the same size.

    Attributes:
        block: One of them, on whole arrays.
        batch: The number of products.
        strides: Elements from one A, B and C to the next.
        order: The first parameters of the function: "bac" if A is given second.
    """

    block: Block
    batch: int
    strides: tuple[int, int, int]
    order: str

    @property
    def parameters(self) -> str:
        """The parameters of its function, as IR."""
        return ", ".join(f"ptr %{name}" for name in (*self.order, "work", "status"))


def work_bytes(product: BatchedBlock, cpu: Cpu) -> int:
    """The bytes that the function of a product needs for partial results."""
    block, split = product.block, split_of(product.block, product.batch, cpu)
    return split.parts * block.m * block.n * block.itemsize if split.parts > 1 else 0


def define(module: Module, name: str, product: BatchedBlock, cpu: Cpu) -> None:
    """Define `void name(ptr a, ptr b, ptr c, ptr work, ptr status)`."""
    if min(product.block.m, product.block.n, product.block.k, product.batch) <= 0:
        _define_zeros(module, name, product)
        return
    split = split_of(product.block, product.batch, cpu)
    if split.chunks(product.batch) == 1 and product.batch == 1:
        block = product.block
        head = f"define void @{name}({_noalias(product.parameters)})"
        b = Builder(module)
        size = TileForm.of(block, cpu).scratch(block)
        room = take_scratch(b, size, _STATUS) if size else NULL
        _write_block(b, block, cpu, room, (block.m, block.n))
        b.emit("ret void")
        module.define(b.function(f"{head} nounwind {_width(cpu)}"))
        return
    _Writer(module, name, product, split, cpu).define()


def _define_zeros(module: Module, name: str, product: BatchedBlock) -> None:
    """Define the function for empty sums, which give zeros."""
    b, block = Builder(module), product.block
    if product.batch > 0:
        module.declare("llvm.memset.p0.i64", "void", [PTR, "i8", "i64", "i1 immarg"])
        with b.loop(product.batch) as number:
            offset = b.mul(number, product.strides[2])
            place = b.element(_C, offset, block.scalar)
            size = block.m * block.n * block.itemsize
            b.emit(f"call void @llvm.memset.p0.i64({place}, i8 0, i64 {size}, i1 false)")
    b.emit("ret void")
    module.define(b.function(f"define void @{name}({product.parameters}) nounwind"))


def _arrays(addresses: tuple[Value, Value, Value], block: Block) -> Operands:
    a, b, c = addresses
    return Array(a, block.stored[0]), Array(b, block.stored[1]), Array(c, block.scalar)


def _noalias(parameters: str) -> str:
    return parameters.replace("ptr", "ptr noalias")


def _width(cpu: Cpu) -> str:
    bits = cpu.vector_bytes * 8
    return f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


def _write_block(
    b: Builder, block: Block, cpu: Cpu, room: Value, size: tuple[int | Value, int | Value]
) -> None:
    """Write the code of a block of `size` rows and columns that begins at the pointers."""
    form = TileForm.of(block, cpu)
    operands = _arrays((_A, _B, _C), block)
    rows, columns = Extent(size[0], block.m), Extent(size[1], block.n)
    if form.dots:
        DotWriter(b, block, cpu).write(operands, form.columns, columns)
    else:
        PanelWriter(b, block, form, cpu, room).write(operands, rows, columns)


class _Writer:
    """Writes the functions of one product."""

    def __init__(
        self, module: Module, name: str, product: BatchedBlock, split: Split, cpu: Cpu
    ) -> None:
        self.module = module
        self.name = name
        self.product = product
        self.split = split
        self.cpu = cpu
        self.b = Builder(module)
        self.room = NULL

    def define(self) -> None:
        """Define the function itself, the chunks it runs, and the blocks these compute."""
        self._define_block("block", self.split.depth)
        if self._rest != self.split.depth:
            self._define_block("rest", self._rest)
        self._define_chunk()
        self._define_function()

    @property
    def _rest(self) -> int:
        """The length of the last part of the sums."""
        return self.product.block.k - (self.split.parts - 1) * self.split.depth

    def _block_of(self, k: int) -> Block:
        """The product with sums of another length."""
        return self.product.block._replace(k=k)

    def _define_block(self, name: str, k: int) -> None:
        b, split, block = Builder(self.module), self.split, self._block_of(k)
        rows: int | Value = block.m if split.down == 1 else Value(I64, "%rows")
        columns: int | Value = block.n if split.across == 1 else Value(I64, "%columns")
        _write_block(b, block, self.cpu, Value(PTR, "%room"), (rows, columns))
        b.emit("ret void")
        parameters = _noalias("ptr %a, ptr %b, ptr %c, i64 %rows, i64 %columns, ptr %room")
        head = f"define internal void @{self.name}_{name}({parameters})"
        self.module.define(b.function(f"{head} nounwind {_width(self.cpu)}"))

    # ---- the function ----------------------------------------------------------------------

    def _define_function(self) -> None:
        self.b = b = Builder(self.module)
        split = self.split
        context = b.alloca(PTR, 4)
        results = _WORK if split.parts > 1 else _C
        for number, pointer in enumerate((_A, _B, results, _STATUS)):
            b.store(pointer, b.element(context, number, "ptr"))
        chunks = split.chunks(self.product.batch)
        if chunks == 1:
            b.emit(f"call void @{self.name}_chunk({context}, i64 0)")
        else:
            run = "gt_parallel_long" if split.long else "gt_parallel"
            b.call(run, VOID, Value(PTR, f"@{self.name}_chunk"), context, b.const(I64, chunks))
        if split.parts > 1:
            self._add_up(results, _C)
        b.emit("ret void")
        head = f"define void @{self.name}({self.product.parameters}) nounwind"
        self.module.define(b.function(head))

    def _add_up(self, results: Value, c: Value) -> None:
        """C = Σ parts, in their order."""
        b, block = self.b, self.product.block
        size = block.m * block.n
        width = self.cpu.vector_bytes // block.itemsize
        for piece in pieces(size % width, width, masks=False):
            offset = b.const(I64, size - size % width + piece.offset)
            self._add_up_at(results, c, offset, piece.lanes)
        if size >= width:
            with b.loop(size // width) as number:
                self._add_up_at(results, c, b.mul(number, width), width)

    def _add_up_at(self, results: Value, c: Value, offset: Value, lanes: int) -> None:
        b, block = self.b, self.product.block
        type, size = Type(block.scalar, lanes), block.m * block.n
        start = b.element(results, offset, block.scalar)
        total = [b.load(start, type)]
        with b.loop(self.split.parts - 1, total) as number:
            place = b.mul(b.add(number, 1), size)
            total[0] = b.fadd(total[0], b.load(b.element(start, place, block.scalar), type))
        b.store(total[0], b.element(c, offset, block.scalar))

    # ---- a chunk ---------------------------------------------------------------------------

    def _define_chunk(self) -> None:
        self.b = b = Builder(self.module)
        split, batch = self.split, self.product.batch
        context, chunk = Value(PTR, "%context"), Value(I64, "%chunk")
        places = [b.element(context, number, "ptr") for number in range(4)]
        addresses = b.load(places[0], PTR), b.load(places[1], PTR), b.load(places[2], PTR)
        operands = _arrays(addresses, self.product.block)
        self._take_room(b.load(places[3], PTR))
        blocks = split.down * split.across
        if split.together > 1:
            self._several(operands, chunk)
        elif split.parts > 1:
            self._part(operands, chunk)
        elif batch > 1:
            self._block(self._item(operands, b.udiv(chunk, blocks)), b.urem(chunk, blocks))
        else:
            self._block(operands, chunk)
        b.emit("ret void")
        head = f"define internal void @{self.name}_chunk(ptr %context, i64 %chunk) nounwind"
        self.module.define(b.function(head))

    def _take_room(self, status: Value) -> None:
        """Get the memory that blocks compute in."""
        size = max(
            TileForm.of(block, self.cpu).scratch(block)
            for block in map(self._block_of, {self.split.depth, self._rest})
        )
        if size:
            self.room = take_scratch(self.b, size, status)

    def _call(self, name: str, operands: Operands, rows: Value, columns: Value) -> None:
        given = (*(array.address for array in operands), rows, columns, self.room)
        self.b.emit(f"call void @{self.name}_{name}({', '.join(map(str, given))})")

    def _move(self, array: Array, index: Value, stride: int) -> Array:
        return moved(self.b, array, self.b.mul(index, stride))

    def _item(self, operands: Operands, item: Value) -> Operands:
        """The operands of one product of the batch."""
        (a, b, c), (over_a, over_b, over_c) = operands, self.product.strides
        return self._move(a, item, over_a), self._move(b, item, over_b), self._move(c, item, over_c)

    def _several(self, operands: Operands, chunk: Value) -> None:
        """Products one after the other, up to the end of the batch."""
        b, together = self.b, self.split.together
        first = b.mul(chunk, together)
        with b.loop(together) as number:
            item = b.add(first, number)
            with b.only_if(b.icmp("ult", item, self.product.batch)):
                self._block(self._item(operands, item), b.const(I64, 0))

    def _part(self, operands: Operands, chunk: Value) -> None:
        """Compute the part of all sums with this number."""
        (a, b, c), split, block = operands, self.split, self.product.block
        along_a = block.lda if block.transpose_a else 1
        along_b = 1 if block.transpose_b else block.ldb
        a = self._move(a, chunk, split.depth * along_a)
        b = self._move(b, chunk, split.depth * along_b)
        c = self._move(c, chunk, block.m * block.n)
        size = self.b.const(I64, block.m), self.b.const(I64, block.n)
        if block.k == split.parts * split.depth:
            self._call("block", (a, b, c), *size)
            return
        last = self.b.icmp("eq", chunk, split.parts - 1)
        with self.b.only_if(self.b.xor(last, 1)):
            self._call("block", (a, b, c), *size)
        with self.b.only_if(last):
            self._call("rest", (a, b, c), *size)

    def _block(self, operands: Operands, place: Value) -> None:
        """A block of C, or all of it."""
        (a, b, c), split, block = operands, self.split, self.product.block
        row, column = self.b.udiv(place, split.across), self.b.urem(place, split.across)
        top, rows = self._range(row, block.m, split.rows, split.down)
        left, columns = self._range(column, block.n, split.columns, split.across)
        if split.down * split.across > 1:
            a = self._move(a, top, 1 if block.transpose_a else block.lda)
            b = self._move(b, left, block.ldb if block.transpose_b else 1)
            c = self._move(self._move(c, top, block.ldc), left, 1)
        self._call("block", (a, b, c), rows, columns)

    def _range(self, number: Value, size: int, unit: int, count: int) -> tuple[Value, Value]:
        """Start and length of a block, as `split.sizes` has them."""
        b = self.b
        if count == 1:
            return b.const(I64, 0), b.const(I64, size)
        units = -(-size // unit)

        def start_of(number: Value) -> Value:
            return b.mul(b.udiv(b.mul(number, units), count), unit)

        start, following = start_of(number), b.add(number, 1)
        last = b.icmp("eq", following, count)
        stop = b.select(last, b.const(I64, size), start_of(following))
        return start, b.sub(stop, start)
