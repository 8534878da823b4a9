"""Functions for matrix products: blocks of C as chunks of the thread pool.

`plan` says how a product is cut; here that becomes code. The function stores its three pointers
where the chunks find them and runs these; a chunk finds its block from its number and computes it,
by the loops of `tile` or by a call of BLAS.
"""

from __future__ import annotations

from typing import NamedTuple

from gradtape.compiler.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.llvm.link import Target
from gradtape.compiler.runtime.split import Split, plan
from gradtape.compiler.runtime.tile import Block, loop, pieces
from gradtape.compiler.runtime.tile_block import define_product

_Operands = tuple[Value, Value, Value]


class Product(NamedTuple):
    """A batch of products of the same size.

    Attributes:
        block: One of them, on whole arrays.
        batch: How many.
        strides: Elements from one A, B and C to the next.
        order: The parameters of the function: "bac" if A is given second.
    """

    block: Block
    batch: int
    strides: tuple[int, int, int]
    order: str


def define(module: Module, name: str, product: Product, target: Target) -> None:
    """Define `void name(ptr, ptr, ptr)` for a product none of whose sizes is zero."""
    split = plan(product.block, product.batch, target)
    if split.chunks(product.batch) == 1 and product.batch == 1 and not split.blas:
        define_product(module, f"define void @{name}", product.block, target, product.order)
        return
    _Writer(module, name, product, split, target).define()


class _Writer:
    """Writes the functions of one product."""

    def __init__(
        self, module: Module, name: str, product: Product, split: Split, target: Target
    ) -> None:
        self.module = module
        self.name = name
        self.product = product
        self.split = split
        self.target = target
        self.b = Builder(module)

    def define(self) -> None:
        """The function itself, the chunk it runs, the blocks which that computes."""
        split, block = self.split, self.product.block
        # Loops of `tile` have static sizes: where the last block is smaller, all are made alike
        # by letting it overlap the one before, which computes the same bits there.
        size = block._replace(m=split.rows, n=split.columns, k=split.depth)
        if split.blas:
            self._define_blas_block()
        else:
            define_product(
                self.module, f"define internal void @{self.name}_block", size, self.target
            )
        rest = block.k - (split.parts - 1) * split.depth
        if rest != split.depth:
            head = f"define internal void @{self.name}_rest"
            define_product(self.module, head, size._replace(k=rest), self.target)
        self._define_chunk()
        self._define_function()

    # ---- the function ----------------------------------------------------------------------

    def _define_function(self) -> None:
        self.b = b = Builder(self.module)
        split, block = self.split, self.product.block
        context = b.instruction(PTR, "alloca [3 x ptr], align 8")
        c = results = Value(PTR, "%c")
        if split.parts > 1:
            count = split.parts * block.m * block.n
            results = b.instruction(PTR, f"alloca {block.scalar}, i64 {count}, align 64")
        for number, pointer in enumerate((Value(PTR, "%a"), Value(PTR, "%b"), results)):
            b.store(pointer, b.element(context, b.const(I64, number), "ptr"))
        if split.blas:
            b.emit("call void @gt_blas_enter()")
        chunks = split.chunks(self.product.batch)
        if chunks == 1:
            b.emit(f"call void @{self.name}_chunk({context}, i64 0)")
        else:
            run = "gt_parallel_long" if split.long else "gt_parallel"
            self.module.declare(run, "void", [PTR, PTR, I64])
            b.emit(f"call void @{run}(ptr @{self.name}_chunk, {context}, i64 {chunks})")
        if split.blas:
            b.emit("call void @gt_blas_leave()")
        if split.parts > 1:
            self._add_up(results, c)
        b.emit("ret void")
        parameters = ", ".join(f"ptr %{letter}" for letter in self.product.order)
        self.module.define(b.function(f"define void @{self.name}({parameters}) nounwind"))

    def _add_up(self, results: Value, c: Value) -> None:
        """C = Σ parts, in their order."""
        b, block = self.b, self.product.block
        size = block.m * block.n
        width = self.target.vector_bytes // block.itemsize
        for piece in pieces(size % width, width, masks=False):
            self._add_up_at(
                results, c, b.const(I64, size - size % width + piece.offset), piece.lanes
            )
        if size >= width:
            with loop(b, size // width, []) as number:
                self._add_up_at(results, c, b.mul(number, b.const(I64, width)), width)

    def _add_up_at(self, results: Value, c: Value, offset: Value, lanes: int) -> None:
        b, block = self.b, self.product.block
        type, size = Type(block.scalar, lanes), block.m * block.n
        start = b.element(results, offset, block.scalar)
        total = [b.load(start, type)]
        with loop(b, self.split.parts - 1, total) as number:
            place = b.mul(b.add(number, b.const(I64, 1)), b.const(I64, size))
            total[0] = b.fadd(total[0], b.load(b.element(start, place, block.scalar), type))
        b.store(total[0], b.element(c, offset, block.scalar))

    # ---- a chunk ---------------------------------------------------------------------------

    def _define_chunk(self) -> None:
        self.b = b = Builder(self.module)
        split, batch = self.split, self.product.batch
        context, chunk = Value(PTR, "%context"), Value(I64, "%chunk")
        places = [b.element(context, b.const(I64, number), "ptr") for number in range(3)]
        operands = b.load(places[0], PTR), b.load(places[1], PTR), b.load(places[2], PTR)
        blocks = split.down * split.across
        if split.together > 1:
            self._several(operands, chunk)
        elif split.parts > 1:
            self._part(operands, chunk)
        elif batch > 1:
            item = self._item(operands, self._quotient(chunk, blocks))
            self._block(item, self._remainder(chunk, blocks))
        else:
            self._block(operands, chunk)
        b.emit("ret void")
        head = f"define internal void @{self.name}_chunk(ptr %context, i64 %chunk) nounwind"
        self.module.define(b.function(head))

    def _quotient(self, x: Value, divisor: int) -> Value:
        return self.b.instruction(I64, f"udiv {x}, {divisor}")

    def _remainder(self, x: Value, divisor: int) -> Value:
        return self.b.instruction(I64, f"urem {x}, {divisor}")

    def _move(self, pointer: Value, index: Value, stride: int) -> Value:
        offset = self.b.mul(index, self.b.const(I64, stride))
        return self.b.element(pointer, offset, self.product.block.scalar)

    def _item(self, operands: _Operands, item: Value) -> _Operands:
        """The operands of one product of the batch."""
        (a, b, c), (over_a, over_b, over_c) = operands, self.product.strides
        return self._move(a, item, over_a), self._move(b, item, over_b), self._move(c, item, over_c)

    def _several(self, operands: _Operands, chunk: Value) -> None:
        """Products one after the other, up to the end of the batch."""
        builder, together = self.b, self.split.together
        first = builder.mul(chunk, builder.const(I64, together))
        body, end = builder.new_block("body"), builder.new_block("end")
        with loop(builder, together, []) as number:
            item = builder.add(first, number)
            inside = builder.icmp("ult", item, builder.const(I64, self.product.batch))
            builder.branch_if(inside, body, end)
            builder.start(body)
            self._block(self._item(operands, item), builder.const(I64, 0))
            builder.branch(end)
            builder.start(end)

    def _part(self, operands: _Operands, chunk: Value) -> None:
        """The part of all sums with this number."""
        (a, b, c), split, block = operands, self.split, self.product.block
        along_a = block.lda if block.transpose_a else 1
        along_b = 1 if block.transpose_b else block.ldb
        a = self._move(a, chunk, split.depth * along_a)
        b = self._move(b, chunk, split.depth * along_b)
        c = self._move(c, chunk, block.m * block.n)
        if block.k == split.parts * split.depth:
            self.b.emit(f"call void @{self.name}_block({a}, {b}, {c})")
            return
        full, rest, end = (self.b.new_block(hint) for hint in ("full", "rest", "end"))
        last = self.b.icmp("eq", chunk, self.b.const(I64, split.parts - 1))
        self.b.branch_if(last, rest, full)
        for label, name in ((full, "block"), (rest, "rest")):
            self.b.start(label)
            self.b.emit(f"call void @{self.name}_{name}({a}, {b}, {c})")
            self.b.branch(end)
        self.b.start(end)

    def _block(self, operands: _Operands, place: Value) -> None:
        """A block of C, or all of it."""
        (a, b, c), split, block = operands, self.split, self.product.block
        top, rows = self._range(self._quotient(place, split.across), split.rows, block.m)
        left, columns = self._range(self._remainder(place, split.across), split.columns, block.n)
        if split.down * split.across > 1:
            a = self._move(a, top, 1 if block.transpose_a else block.lda)
            b = self._move(b, left, block.ldb if block.transpose_b else 1)
            c = self._move(self._move(c, top, block.ldc), left, 1)
        size = f", {rows}, {columns}" if split.blas else ""
        self.b.emit(f"call void @{self.name}_block({a}, {b}, {c}{size})")

    def _range(self, number: Value, size: int, whole: int) -> tuple[Value, Value]:
        """Start and length of a block; the last one begins earlier, or is shorter for BLAS."""
        b = self.b
        start = b.mul(number, b.const(I64, size))
        if self.split.blas:
            left = b.sub(b.const(I64, whole), start)
            smaller = b.icmp("ult", left, b.const(I64, size))
            return start, b.select(smaller, left, b.const(I64, size))
        latest = b.const(I64, whole - size)
        early = b.icmp("ult", start, latest)
        return b.select(early, start, latest), b.const(I64, size)

    # ---- BLAS ------------------------------------------------------------------------------

    def _define_blas_block(self) -> None:
        """BLAS stores columns: it is asked for Cᵀ = op(B)ᵀ·op(A)ᵀ, all by addresses."""
        self.b = b = Builder(self.module)
        block = self.product.block
        routine = "gt_sgemm" if block.scalar == "float" else "gt_dgemm"
        self.module.declare("gt_blas_enter", "void", [])
        self.module.declare("gt_blas_leave", "void", [])
        self.module.declare(routine, "void", [PTR] * 13)
        sizes = [b.convert("trunc", Value(I64, name), "i32") for name in ("%columns", "%rows")]
        sizes += [b.const(Type("i32"), size) for size in (block.k, block.ldb, block.lda, block.ldc)]
        n, m, k, ldb, lda, ldc = map(self._stored, sizes)
        one, zero = (self._stored(b.const(Type(block.scalar), number)) for number in (1.0, 0.0))
        left, right = (
            self._stored(b.const(Type("i8"), ord("T" if transposed else "N")))
            for transposed in (block.transpose_b, block.transpose_a)
        )
        operands = (left, right, n, m, k, one, "ptr %b", ldb, "ptr %a", lda, zero, "ptr %c", ldc)
        b.emit(f"call void @{routine}({', '.join(map(str, operands))})")
        b.emit("ret void")
        parameters = "ptr %a, ptr %b, ptr %c, i64 %rows, i64 %columns"
        head = f"define internal void @{self.name}_block({parameters}) nounwind"
        self.module.define(b.function(head))

    def _stored(self, value: Value) -> Value:
        place = self.b.instruction(PTR, f"alloca {value.type}")
        self.b.store(value, place)
        return place
