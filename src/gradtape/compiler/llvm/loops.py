"""A loop nest as a function of LLVM IR: `void name(ptr buffers, i64 chunk)`.

One axis is done in vectors: the last reduced axis if it is the last of all, whose lanes are
combined at the end, else the last axis that is not reduced, whose lanes are elements of their own.
Where its size is no multiple of the lanes, the last vector begins earlier and does some elements
again; what it would accumulate twice is masked.

Reductions over other axes than the last go through memory in order as well: with the last axis
innermost, they accumulate into a row of results that stays in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Stage,
    Statement,
    Store,
    walk,
)
from gradtape.compiler.llvm.builder import I64, PTR, Type, Value
from gradtape.compiler.llvm.instructions import (
    combine,
    memory_type,
    register_type,
)
from gradtape.compiler.llvm.values import Values
from gradtape.core.promotion import BOOL
from gradtape.core.scalar import Scalar


class Loops(Values):
    """Writes one kernel, as a function of a table of addresses and the number of a part."""

    def write(self) -> None:
        """Append the function to the module."""
        b = self._b
        for buffer in self._kernel.buffers:
            if buffer.kind == "scratch":
                type = memory_type(buffer.dtype, self._lanes if self._rows_in_lanes else 1)
                self._pointers[buffer] = b.alloca(type, max(buffer.size, 1))
            else:
                self._pointers[buffer] = b.load(self._entry(self._table.slots[buffer]), PTR)
        codes = (code for code in self._table.codes.values() if isinstance(code, Scalar))
        for part in (*self._kernel.expressions, *codes):
            if part.name == "parameter":
                self._value(part)  # here, and not in each step of a loop
        for statement in self._kernel.statements():
            if isinstance(statement, Accumulate):
                target = statement.target
                type, count = self._accumulator_type(target), 1
                if self._columns:
                    type, count = Type(type.scalar), self._kernel.outer[-1].size
                self._accumulators[target] = b.alloca(type, count)
        self._watch_conditions()
        self._outer_loops(0)
        self._report_conditions()
        b.emit("ret void")
        head = f"define internal void @{self._kernel.name}(ptr %buffers, i64 %chunk)"
        b.module.define(b.function(f"{head} {ATTRIBUTES}"))

    # ---- loops -----------------------------------------------------------------------------

    def _outer_loops(self, depth: int) -> None:
        outer = self._kernel.outer
        if self._columns and depth == len(outer) - 1:
            self._column_stage(self._kernel.stages[0], outer[-1])
            return
        if depth < len(outer):
            self._loop(outer[depth], lambda: self._outer_loops(depth + 1))
            return
        for stage in self._kernel.stages:
            self._stage(stage)

    def _stage(self, stage: Stage) -> None:
        targets = [s.target for s in stage.inner if isinstance(s, Accumulate)]
        for target in targets:
            self._b.store(self._start(target), self._accumulators[target])
        self._inner_loops(stage.inner, 0)
        for target in targets:
            self._finish(target)
        for statement in stage.outer:
            self._perform(statement)

    def _column_stage(self, stage: Stage, last: Axis) -> None:
        """A stage whose results are accumulated in a row: loops over the last axis are inside."""
        targets = [s.target for s in stage.inner if isinstance(s, Accumulate)]

        def begin() -> None:
            for target in targets:
                self._b.store(self._start(target), self._accumulator(target))

        def end() -> None:
            for target in targets:
                value = self._b.load(self._accumulator(target), self._accumulator_type(target))
                self._scopes[-1][target] = value
            for statement in stage.outer:
                self._perform(statement)

        self._loop(last, begin)
        self._inner_loops(stage.inner, 0)
        self._loop(last, end)

    def _accumulator_type(self, target: Accumulator) -> Type:
        return register_type(target.dtype, 1 if self._vector_axis is None else self._lanes)

    def _accumulator(self, target: Accumulator) -> Value:
        """Where a result is accumulated."""
        slot = self._accumulators[target]
        if not self._columns:
            return slot
        index = self._index[self._kernel.outer[-1]]
        return self._b.element(slot, index, register_type(target.dtype))

    def _start(self, target: Accumulator) -> Value:
        """What a result starts from."""
        return self._b.const(self._accumulator_type(target), target.start)

    def _inner_loops(self, statements: Sequence[Statement], depth: int) -> None:
        inner: tuple[Axis, ...] = self._kernel.inner
        outside = len(self._kernel.outer)
        if self._columns:
            inner, outside = (*inner, self._kernel.outer[-1]), outside - 1
        if any(axis.size == 0 for axis in inner[depth:]):
            return  # what would be read before the loop may not be there
        self._hoist(statements, outside + depth)
        if depth < len(inner):
            self._loop(inner[depth], lambda: self._inner_loops(statements, depth + 1))
            return
        for statement in statements:
            self._perform(statement)

    def _hoist(self, statements: Sequence[Statement], level: int) -> None:
        """Compute what does not change in the loops to come."""
        seen: set[int] = set()
        for statement in statements:
            for part in (p for whole in statement.expressions for p in walk(whole, seen)):
                if self._levels[id(part)] <= level and part.name not in ("constant", "axis"):
                    self._value(part)

    def _loop(self, axis: Axis, body: Callable[[], None]) -> None:
        """Run `body` for each step (or vector) of an axis."""
        if axis.size == 0:
            return
        b = self._b
        vector = axis is self._vector_axis
        step = self._lanes if vector else 1
        start, stop = self._range(axis)
        ragged = vector and axis.size % step != 0
        head, done = b.new_block("loop"), b.new_block("done")
        before = b.block
        b.branch(head)
        b.start(head)
        counter, following = b.fresh("i"), b.fresh("n")
        back = b.new_block("back")
        b.emit(f"{counter} = phi i64 [ {start.text}, %{before} ], [ {following}, %{back} ]")
        index = Value(I64, counter)
        self._scopes.append({})
        mask = self._mask
        if ragged:
            last = Value(I64, str(axis.size - step))
            place = b.select(b.icmp("slt", index, last), index, last)
            if axis.reduced or self._columns or self._kernel.ordered:
                self._mask = self._fresh_lanes(index, place)
            index = place
        self._index[axis] = index
        body()
        self._scopes.pop()
        self._mask = mask
        b.branch(back)
        b.start(back)
        b.emit(f"{following} = add i64 {counter}, {step}")
        more = b.icmp("slt", Value(I64, following), stop)
        b.branch_if(more, head, done)
        b.start(done)

    def _range(self, axis: Axis) -> tuple[Value, Value]:
        """Where a loop starts and stops: its whole range, or that of the chunk."""
        b = self._b
        if self._schedule.axis is not axis:
            return Value(I64, "0"), Value(I64, str(axis.size))
        size = Value(I64, str(self._schedule.block))
        start = b.mul(Value(I64, "%chunk"), size)
        end, stop = b.add(start, size), Value(I64, str(axis.size))
        return start, b.select(b.icmp("slt", end, stop), end, stop)

    def _fresh_lanes(self, index: Value, place: Value) -> Value:
        """Which lanes of a vector that began earlier have not been done yet."""
        b, lanes = self._b, self._lanes
        numbers = b.lanes_const(Type("i64", lanes), range(lanes))
        return b.icmp("sge", numbers, b.splat(b.sub(index, place), lanes))

    # ---- statements ------------------------------------------------------------------------

    def _perform(self, statement: Statement) -> None:
        if isinstance(statement, Store):
            self._store(statement)
            return
        b, target = self._b, statement.target
        slot = self._accumulator(target)
        old = b.load(slot, self._accumulator_type(target))
        new = combine(b, target.combine, old, self._in_lanes(statement.value), target.dtype)
        if self._mask is not None:
            new = b.select(self._mask, new, old)
        b.store(new, slot)

    def _finish(self, target: Accumulator) -> None:
        """The result of a reduction, its lanes combined if they are parts of one."""
        b = self._b
        vector = self._vector_axis
        lanes = self._lanes if vector is not None else 1
        value = b.load(self._accumulators[target], self._accumulator_type(target))
        while vector is not None and vector.reduced and lanes > 1:
            lanes //= 2
            low, high = (self._half(value, lanes, start) for start in (0, lanes))
            value = combine(b, target.combine, low, high, target.dtype)
        self._scopes[-1][target] = value

    def _half(self, value: Value, lanes: int, start: int) -> Value:
        b, type = self._b, Type(value.type.scalar, lanes)
        if lanes == 1:
            return b.instruction(type, f"extractelement {value}, i64 {start}")
        order = ", ".join(f"i32 {start + n}" for n in range(lanes))
        return b.instruction(
            type, f"shufflevector {value}, {value.type} poison, <{lanes} x i32> <{order}>"
        )

    def _store(self, statement: Store) -> None:
        b, place = self._b, statement.place
        value = self._value(statement.value)
        vector = self._vector_axis
        step = 0 if vector is None else place.step(vector)
        if self._rows_in_lanes and place.buffer.kind == "scratch":
            step = 1
        if step:
            value = self._in_lanes(statement.value)
        if place.buffer.dtype == BOOL:
            value = b.convert("zext", value, "i8")
        more = None if statement.further is None else self._value(statement.further)
        address = self._address(place, more)
        if self._kernel.ordered:
            assert step == (value.type.lanes > 1)  # elements of a vector lie side by side
            self._store_in_order(value, address, adds=statement.adds)
        elif step in (0, 1):
            b.store(value, address)
        else:
            self._scatter(value, self._lane_addresses(place, address, step))

    def _store_in_order(self, value: Value, address: Value, *, adds: bool) -> None:
        """Write or add an element, or a vector of them; those of others are not touched."""
        b, type = self._b, value.type
        mask = self._mask if type.lanes > 1 else None
        if adds:
            masked = mask is not None
            old = self._masked("load", type, address, mask) if masked else b.load(address, type)
            # Never as one instruction with a product: sums are those of eager code.
            value = b.exact_fadd(old, value) if type.is_float else b.add(old, value)
        if mask is None:
            b.store(value, address)
            return
        name = f"llvm.masked.store.{type.suffix}.p0"
        b.module.declare(name, "void", [type, PTR, "i32", mask.type])
        b.emit(f"call void @{name}({value}, {address}, i32 {max(type.bits // 8, 1)}, {mask})")


ATTRIBUTES = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
