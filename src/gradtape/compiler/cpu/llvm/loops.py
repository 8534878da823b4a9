"""A loop nest as a function of LLVM IR: `void name(ptr buffers, i64 chunk)`.

One axis is done in vectors: the last reduced axis if it is the last of all, whose lanes are
combined at the end; otherwise the last axis that is not reduced, whose lanes are separate elements.
Where its size is not a multiple of the lanes, the last vector begins earlier and does some elements
again; those it would accumulate twice are masked.

Reductions over axes other than the last go through memory in order too: with the last axis
innermost, they accumulate into a row of results that stays in the cache.

Floating-point numbers are not added up one after the other for long: a loop is done in blocks,
whose sums are added up in the same way. So rounding errors grow with the number of levels, not with
the length of a sum or the lanes of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradtape.compiler.cpu.llvm.builder import I64, PTR, Type, Value
from gradtape.compiler.cpu.llvm.instructions import (
    combine,
    memory_type,
    register_type,
)
from gradtape.compiler.cpu.llvm.scratch import take_rooms
from gradtape.compiler.cpu.llvm.values import Values
from gradtape.compiler.cpu.schedule import blocks
from gradtape.compiler.kernel import (
    Accumulator,
    Axis,
    Buffer,
    Stage,
    Statement,
    Store,
    walk,
)
from gradtape.core.promotion import BOOL
from gradtape.core.scalar import Scalar


class Loops(Values):
    """Writes one kernel, as a function of a table of addresses and the number of a part."""

    def write(self) -> None:
        """Append the function to the module."""
        b = self._b
        for buffer in self._kernel.buffers:
            if buffer.kind != "scratch":
                self._pointers[buffer] = b.load(self._entry(self._table.slots[buffer]), PTR)
        codes = (code for code in self._table.codes.values() if isinstance(code, Scalar))
        for part in (*self._kernel.expressions, *codes):
            if part.name == "parameter":
                self._value(part)  # here, rather than in each step of a loop
        self._take_rooms()
        self._watch_conditions()
        self._outer_loops(0)
        self._report_conditions()
        b.emit("ret void")
        head = f"define internal void @{self._kernel.name}(ptr %buffers, i64 %chunk)"
        b.module.define(b.function(f"{head} {ATTRIBUTES}"))

    # ---- its own memory --------------------------------------------------------------------

    def _take_rooms(self) -> None:
        """Find memory for everything that is kept between statements."""
        wanted: dict[object, tuple[Type, int]] = {}
        for buffer in self._kernel.buffers:
            if buffer.kind == "scratch":
                type = memory_type(buffer.dtype, self._lanes if self._rows_in_lanes else 1)
                wanted[buffer] = type, max(buffer.size, 1)
        for stage in self._kernel.stages:
            levels = sum(map(len, blocks(self._kernel, stage, self._schedule).values()))
            for target in stage.targets:
                type, count = self._accumulator_type(target), 1
                if self._columns:
                    type, count = Type(type.scalar), self._kernel.outer[-1].size
                for level in range(levels + 1 if target.sums_floats else 1):
                    wanted[target, level] = type, count
        for condition in self._conditions():
            for scalar in ("i1", "i64"):
                wanted[condition, scalar] = Type(scalar, self._lanes if condition[1] else 1), 1
        self._rooms = take_rooms(self._b, wanted, self._status)
        self._pointers.update(
            (buffer, place) for buffer, place in self._rooms.items() if isinstance(buffer, Buffer)
        )

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
        targets = stage.targets
        self._begin(targets)
        self._inner_loops(stage, 0)
        for target in targets:
            self._finish(target)
        for statement in stage.outer:
            self._perform(statement)

    def _column_stage(self, stage: Stage, last: Axis) -> None:
        """A stage whose results are accumulated in a row: the last axis is the innermost loop."""

        def end() -> None:
            for target in stage.targets:
                value = self._b.load(self._accumulator(target), self._accumulator_type(target))
                self._scopes[-1][target] = value
            for statement in stage.outer:
                self._perform(statement)

        self._begin(stage.targets)
        self._inner_loops(stage, 0)
        self._loop(last, end)

    def _begin(self, targets: Sequence[Accumulator]) -> None:
        """Start results from the identity of their operation."""

        def start() -> None:
            for target in targets:
                value = self._b.const(self._accumulator_type(target), target.start)
                self._b.store(value, self._accumulator(target))

        self._over_row(start)

    def _over_row(self, body: Callable[[], None]) -> None:
        """Run `body` for all results that are accumulated at the same time."""
        if self._columns:
            self._exact_loop(self._kernel.outer[-1], body)
        else:
            body()

    def _accumulator_type(self, target: Accumulator) -> Type:
        return register_type(target.dtype, 1 if self._vector_axis is None else self._lanes)

    def _accumulator(self, target: Accumulator, outside: int = 0) -> Value:
        """The address where a result is accumulated, or `outside` levels further out."""
        level = self._level - outside if target.sums_floats else 0
        slot = self._rooms[target, level]
        if not self._columns:
            return slot
        index = self._index[self._kernel.outer[-1]]
        return self._b.element(slot, index, register_type(target.dtype))

    def _inner_loops(self, stage: Stage, depth: int) -> None:
        inner: tuple[Axis, ...] = self._kernel.inner
        outside = len(self._kernel.outer)
        if self._columns:
            inner, outside = (*inner, self._kernel.outer[-1]), outside - 1
        if any(axis.size == 0 for axis in inner[depth:]):
            return  # elements read before the loop might not exist
        self._hoist(stage.inner, outside + depth)
        if depth < len(inner):
            axis, targets = inner[depth], [t for t in stage.targets if t.sums_floats]
            sizes = blocks(self._kernel, stage, self._schedule).get(axis, ())
            self._exact_loop(axis, lambda: self._inner_loops(stage, depth + 1), sizes, targets)
            return
        for statement in stage.inner:
            self._perform(statement)

    # ---- sums in blocks --------------------------------------------------------------------

    def _in_blocks(
        self,
        start: Value,
        stop: Value,
        sizes: Sequence[int],
        targets: Sequence[Accumulator],
        steps: Callable[[Value, Value], None],
    ) -> None:
        """Run `steps(start, stop)` for each block of the innermost kind, and add up their sums."""
        if not sizes:
            steps(start, stop)
            return
        b = self._b

        def block(first: Value) -> None:
            end = b.add(first, sizes[0])
            end = b.select(b.icmp("slt", end, stop), end, stop)
            self._level += 1
            self._begin(targets)
            self._in_blocks(first, end, sizes[1:], targets, steps)
            self._over_row(lambda: self._add_block(targets))
            self._level -= 1

        self._counted(start, stop, sizes[0], block)

    def _add_block(self, targets: Sequence[Accumulator]) -> None:
        """Add the sums of a block to those of the level around it."""
        for target in targets:
            value = self._b.load(self._accumulator(target), self._accumulator_type(target))
            self._combine(target, self._accumulator(target, 1), value)

    def _hoist(self, statements: Sequence[Statement], level: int) -> None:
        """Compute the values that do not change in the loops to come."""
        seen: set[int] = set()
        for statement in statements:
            for part in (p for whole in statement.expressions for p in walk(whole, seen)):
                if self._levels[id(part)] <= level and part.name not in ("constant", "axis"):
                    self._value(part)

    def _loop(self, axis: Axis, body: Callable[[], None]) -> None:
        """Run `body` for each step (or vector) of an axis."""
        if axis.size != 0:
            self._steps(axis, *self._range(axis), body)

    def _exact_loop(
        self,
        axis: Axis,
        body: Callable[[], None],
        sizes: Sequence[int] = (),
        targets: Sequence[Accumulator] = (),
    ) -> None:
        """Run `body` for each step of a nonempty axis, where no element may count twice.

        Args:
            axis: The axis; threads do not share it.
            body: The body of the loop.
            sizes: The steps of a block, at each level of blocks.
            targets: The accumulators whose sums are taken in blocks.
        """
        step = self._lanes if axis is self._vector_axis else 1
        # If the last vector has code of its own, the others do without a mask.
        peeled = self._schedule.peeled
        stop = axis.size - axis.size % step if peeled else axis.size

        def steps(start: Value, stop: Value) -> None:
            self._steps(axis, start, stop, body, whole=peeled)

        sizes = [size * step for size in sizes]
        self._in_blocks(Value(I64, "0"), Value(I64, str(stop)), sizes, targets, steps)
        if stop != axis.size:
            self._scopes.append({})
            self._at(axis, Value(I64, str(stop)), body)
            self._scopes.pop()

    def _steps(
        self, axis: Axis, start: Value, stop: Value, body: Callable[[], None], whole: bool = False
    ) -> None:
        """Run `body` for each step of a nonempty part of an axis."""
        step = self._lanes if axis is self._vector_axis else 1
        self._counted(start, stop, step, lambda index: self._at(axis, index, body, whole))

    def _at(self, axis: Axis, index: Value, body: Callable[[], None], whole: bool = False) -> None:
        """Run `body` for a step; a vector that would go beyond the end begins earlier."""
        b, mask = self._b, self._mask
        step = self._lanes if axis is self._vector_axis else 1
        if axis.size % step != 0 and not whole:
            last = Value(I64, str(axis.size - step))
            place = b.select(b.icmp("slt", index, last), index, last)
            if axis.reduced or self._columns or self._kernel.serial:
                self._mask = self._fresh_lanes(index, place)
            index = place
        self._index[axis] = index
        body()
        self._mask = mask

    def _counted(self, start: Value, stop: Value, step: int, body: Callable[[Value], None]) -> None:
        """Run `body(counter)` from start while the counter is below stop, at least once."""
        with self._b.loop(stop, start=start, step=step) as counter:
            self._scopes.append({})
            body(counter)
            self._scopes.pop()

    def _range(self, axis: Axis) -> tuple[Value, Value]:
        """The start and stop of a loop: its whole range, or that of the chunk."""
        b = self._b
        if self._schedule.axis is not axis:
            return Value(I64, "0"), Value(I64, str(axis.size))
        size = Value(I64, str(self._schedule.block))
        start = b.mul(Value(I64, "%chunk"), size)
        end, stop = b.add(start, size), Value(I64, str(axis.size))
        return start, b.select(b.icmp("slt", end, stop), end, stop)

    def _fresh_lanes(self, index: Value, place: Value) -> Value:
        """A mask of the lanes that have not been done yet, of a vector that began earlier."""
        b, lanes = self._b, self._lanes
        numbers = b.lanes_const(Type("i64", lanes), range(lanes))
        return b.icmp("sge", numbers, b.splat(b.sub(index, place), lanes))

    # ---- statements ------------------------------------------------------------------------

    def _perform(self, statement: Statement) -> None:
        if isinstance(statement, Store):
            self._store(statement)
            return
        target = statement.target
        self._combine(target, self._accumulator(target), self._in_lanes(statement.value))

    def _combine(self, target: Accumulator, slot: Value, value: Value) -> None:
        b = self._b
        old = b.load(slot, self._accumulator_type(target))
        new = combine(b, target.combine, old, value, target.dtype)
        if self._mask is not None:
            new = b.select(self._mask, new, old)
        b.store(new, slot)

    def _finish(self, target: Accumulator) -> None:
        """The result of a reduction, its lanes combined if they are parts of one."""
        b = self._b
        vector = self._vector_axis
        lanes = self._lanes if vector is not None else 1
        value = b.load(self._accumulator(target), self._accumulator_type(target))
        while vector is not None and vector.reduced and lanes > 1:
            lanes //= 2
            halves = range(lanes), range(lanes, 2 * lanes)
            low, high = (b.lanes_of(value, value, half) for half in halves)
            value = combine(b, target.combine, low, high, target.dtype)
        self._scopes[-1][target] = value

    def _store(self, statement: Store) -> None:
        b, place = self._b, statement.place
        value = self._value(statement.value)
        step = self._lane_step(place)
        if step:
            value = self._in_lanes(statement.value)
        if place.buffer.dtype == BOOL:
            value = b.convert("zext", value, "i8")
        more = None if statement.further is None else self._value(statement.further)
        address = self._address(place, more)
        if self._kernel.serial:
            assert step == (value.type.lanes > 1)  # elements of a vector are adjacent
            self._store_in_order(value, address, adds=statement.adds)
        elif step in (0, 1) or self._lanes == 1:
            b.store(value, address)
        else:
            every = b.const(Type("i1", self._lanes), 1)
            b.masked_store(value, self._lane_addresses(place, address, step), every)

    def _store_in_order(self, value: Value, address: Value, *, adds: bool) -> None:
        """Write or add an element, or a vector of them; masked elements are not touched."""
        b, type = self._b, value.type
        mask = self._mask if type.lanes > 1 else None
        if adds:
            old = b.load(address, type) if mask is None else b.masked_load(address, type, mask)
            # Never fused with a product: sums are those of eager code.
            value = b.exact_fadd(old, value) if type.is_float else b.add(old, value)
        if mask is None:
            b.store(value, address)
        else:
            b.masked_store(value, address, mask)


ATTRIBUTES = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
