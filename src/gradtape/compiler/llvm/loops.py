"""A loop nest as a function of LLVM IR: `void name(ptr buffers, i64 chunk)`.

One axis is done in vectors: the last reduced axis if it is the last of all, whose lanes are combined
at the end, else the last axis that is not reduced, whose lanes are elements of their own. Where its
size is no multiple of the lanes, the last vector begins earlier and does some elements again; what
it would accumulate twice is masked.

Reductions over other axes than the last go through memory in order as well: with the last axis
innermost, they accumulate into a row of results that stays in the cache.

An expression stands in the outermost loop that it can: its depth is that of the innermost axis it
depends on. What does not depend on the vector axis is computed once, as a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Kernel,
    Place,
    Stage,
    Statement,
    Store,
    identity,
    walk,
)
from gradtape.compiler.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.llvm.instructions import (
    combine,
    instruction,
    memory_type,
    register_type,
)
from gradtape.compiler.schedule import Schedule
from gradtape.core.promotion import BOOL, DType
from gradtape.core.scalar import Scalar


class Loops:
    """Writes one kernel.

    Args:
        module: Where the function goes.
        kernel: What it does.
        schedule: How it is run.
        slots: The position of each buffer's address in the table the function is given.
    """

    def __init__(
        self,
        module: Module,
        kernel: Kernel,
        schedule: Schedule,
        slots: Mapping[Buffer, int],
    ) -> None:
        self._b = Builder(module)
        self._kernel = kernel
        self._schedule = schedule
        self._lanes = schedule.lanes
        self._vector_axis = schedule.vector
        self._columns = schedule.columns
        order = (*kernel.outer, *kernel.inner)
        if self._columns:
            order = (*kernel.outer[:-1], *kernel.inner, kernel.outer[-1])
        self._depth = {axis: n + 1 for n, axis in enumerate(order)}
        # Whether lanes are points of their own, each with its own row of scratch memory.
        self._rows_in_lanes = self._vector_axis is not None and not self._vector_axis.reduced
        self._index: dict[Axis, Value] = {}
        self._pointers: dict[Buffer, Value] = {}
        self._accumulators: dict[Accumulator, Value] = {}
        self._levels: dict[int, int] = {}  # depth of each expression, by identity
        self._lane_dependent: dict[int, bool] = {}
        # One dict of what is computed per open loop, by what computes it.
        self._scopes: list[dict[object, Value]] = [{}]
        self._mask: Value | None = None
        self._slots = slots
        self._depend()

    def write(self) -> None:
        """Append the function to the module."""
        b = self._b
        for buffer in self._kernel.buffers:
            if buffer.kind == "scratch":
                type = memory_type(buffer.dtype, self._lanes if self._rows_in_lanes else 1)
                self._pointers[buffer] = b.alloca(type, max(buffer.size, 1))
            else:
                slot = Value(I64, str(self._slots[buffer]))
                address = b.element(Value(PTR, "%buffers"), slot, "ptr")
                self._pointers[buffer] = b.load(address, PTR)
        for statement in self._kernel.statements():
            if isinstance(statement, Accumulate):
                target = statement.target
                type, count = self._accumulator_type(target), 1
                if self._columns:
                    type, count = Type(type.scalar), self._kernel.outer[-1].size
                self._accumulators[target] = b.alloca(type, count)
        self._outer_loops(0)
        b.emit("ret void")
        head = f"define internal void @{self._kernel.name}(ptr %buffers, i64 %chunk)"
        b.module.define(b.function(f"{head} {ATTRIBUTES}"))

    # ---- what depends on what --------------------------------------------------------------

    def _depend(self) -> None:
        """Find the depth of every expression, and whether its lanes differ."""
        outer = len(self._kernel.outer)
        for part in self._kernel.expressions:
            level = max((self._levels[id(arg)] for arg in part.args), default=0)
            varies = any(self._lane_dependent[id(arg)] for arg in part.args)
            if part.name == "axis":
                level, varies = self._depth[part.extra], part.extra is self._vector_axis
            elif part.name == "load":
                axes = [axis for axis, _ in part.extra.steps]
                level = max([level, *(self._depth[axis] for axis in axes)])
                varies = varies or self._vector_axis in axes
                varies = varies or (self._rows_in_lanes and part.extra.buffer.kind == "scratch")
            elif part.name == "reduced":
                level = len(self._depth) if self._columns else outer
                vector = self._vector_axis
                varies = vector is not None and not vector.reduced
            self._levels[id(part)] = level
            self._lane_dependent[id(part)] = varies

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
        number = identity(target.combine, target.dtype)
        return self._b.const(self._accumulator_type(target), number)

    def _inner_loops(self, statements: Sequence[Statement], depth: int) -> None:
        inner: tuple[Axis, ...] = self._kernel.inner
        outside = len(self._kernel.outer)
        if self._columns:
            inner, outside = (*inner, self._kernel.outer[-1]), outside - 1
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
            for part in walk(statement.value, seen):
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
            if axis.reduced or self._columns:
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
        address = self._address(place)
        if step in (0, 1):
            b.store(value, address)
        else:
            self._scatter(value, self._lane_addresses(place, address, step))

    # ---- expressions -----------------------------------------------------------------------

    def _in_lanes(self, part: Scalar) -> Value:
        """The value of an expression in every lane."""
        value = self._value(part)
        if self._vector_axis is None or value.type.lanes == self._lanes:
            return value
        if part.name == "constant":
            return self._b.const(register_type(part.dtype, self._lanes), part.extra)
        key = ("lanes", value.text)
        wide = self._known(key)
        if wide is None:
            wide = self._scopes[-1][key] = self._b.splat(value, self._lanes)
        return wide

    def _value(self, part: Scalar) -> Value:
        """The value of an expression: a scalar if it is the same in all lanes."""
        known = self._known(id(part))
        pending = [part] if known is None else []
        while pending:
            last = pending[-1]
            missing = [arg for arg in last.args if self._known(id(arg)) is None]
            if missing:
                pending += missing
            else:
                pending.pop()
                known = self._known(id(last)) or self._computed(last)
        assert known is not None
        return known

    def _known(self, key: object) -> Value | None:
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        return None

    def _computed(self, part: Scalar) -> Value:
        """Write what computes an expression whose parts are computed."""
        arguments = [self._known(id(arg)) for arg in part.args]
        # Equal expressions made in different places are one.
        key = (part.name, part.dtype.str, part.extra, *(arg.text for arg in arguments))  # type: ignore[union-attr]
        value = self._known(key)
        if value is None:
            value = self._written(part, arguments)  # type: ignore[arg-type]
        self._scopes[-1][key] = self._scopes[-1][id(part)] = value
        return value

    def _written(self, part: Scalar, arguments: list[Value]) -> Value:
        b = self._b
        if part.name == "constant":
            return b.const(register_type(part.dtype), part.extra)
        if part.name == "reduced":
            result = self._known(part.extra)
            assert result is not None  # its stage is done
            return result
        if part.name == "axis":
            if part.extra is not self._vector_axis:
                return self._index[part.extra]
            lanes = self._lanes
            numbers = b.lanes_const(Type("i64", lanes), range(lanes))
            return b.add(b.splat(self._index[part.extra], lanes), numbers)
        if part.name == "load":
            return self._load(part, arguments)
        if part.name == "gather":
            return self._gather(part, arguments)
        if not self._lane_dependent[id(part)]:
            return instruction(b, part, arguments)
        return instruction(b, part, [self._in_lanes(arg) for arg in part.args])

    # ---- memory ----------------------------------------------------------------------------

    def _address(self, place: Place) -> Value:
        """The address of the element at the current indices (of the first lane)."""
        b = self._b
        total = Value(I64, str(place.offset))
        for axis, step in place.steps:
            index = self._index[axis]
            term = index if step == 1 else b.mul(index, Value(I64, str(step)))
            total = term if total.text == "0" else b.add(total, term)
        buffer = place.buffer
        lanes = self._lanes if self._rows_in_lanes and buffer.kind == "scratch" else 1
        return b.element(self._pointers[buffer], total, memory_type(buffer.dtype, lanes))

    def _lane_addresses(self, place: Place, address: Value, step: int) -> Value:
        b, lanes = self._b, self._lanes
        numbers = b.lanes_const(Type("i64", lanes), [n * step for n in range(lanes)])
        return b.element(address, numbers, memory_type(place.buffer.dtype).scalar)

    def _load(self, part: Scalar, guard: Sequence[Value]) -> Value:
        b, place = self._b, part.extra
        vector = self._vector_axis
        step = 0 if vector is None else place.step(vector)
        if self._rows_in_lanes and place.buffer.kind == "scratch":
            step = 1
        address = self._address(place)
        if self._lanes == 1 or not self._lane_dependent[id(part)]:
            return self._scalar_load(part.dtype, address, guard)
        type = memory_type(part.dtype, self._lanes)
        if step == 1 and not guard:
            return self._bit(b.load(address, type), part)
        addresses = self._lane_addresses(place, address, step)
        if step == 1:
            return self._bit(self._masked("load", type, address, guard[0]), part)
        return self._bit(self._masked("gather", type, addresses, *guard), part)

    def _scalar_load(self, dtype: DType, address: Value, guard: Sequence[Value]) -> Value:
        b = self._b
        type = memory_type(dtype)
        if guard:
            # Where nothing may be read, something harmless is read instead.
            harmless = b.alloca(Type("i64"))
            address = b.instruction(PTR, f"select {guard[0]}, {address}, {harmless}")
        value = b.load(address, type)
        return b.icmp("ne", value, b.const(type, 0)) if dtype == BOOL else value

    def _gather(self, part: Scalar, arguments: Sequence[Value]) -> Value:
        b, buffer = self._b, part.extra
        index, *guard = arguments
        addresses = b.element(self._pointers[buffer], index, memory_type(buffer.dtype).scalar)
        if self._lanes == 1 or not self._lane_dependent[id(part)]:
            return self._scalar_load(part.dtype, addresses, guard)
        lanes = self._lanes
        if addresses.type.lanes != lanes:
            addresses = b.splat(addresses, lanes)
        type = memory_type(part.dtype, lanes)
        return self._bit(self._masked("gather", type, addresses, *guard), part)

    def _bit(self, value: Value, part: Scalar) -> Value:
        b = self._b
        return b.icmp("ne", value, b.const(value.type, 0)) if part.dtype == BOOL else value

    def _masked(self, how: str, type: Type, address: Value, guard: Value | None = None) -> Value:
        """Load lanes where a guard holds; elsewhere they are 0."""
        b, lanes = self._b, type.lanes
        mask = b.const(Type("i1", lanes), 1) if guard is None else guard
        if mask.type.lanes != lanes:
            mask = b.splat(mask, lanes)
        align = max(type.bits // 8, 1)
        pointer = f"v{lanes}p0" if how == "gather" else "p0"
        name = f"llvm.masked.{how}.{type.suffix}.{pointer}"
        b.module.declare(name, type, [address.type, "i32", Type("i1", lanes), type])
        return b.instruction(
            type,
            f"call {type} @{name}({address}, i32 {align}, {mask}, {type} zeroinitializer)",
        )

    def _scatter(self, value: Value, addresses: Value) -> None:
        b, type = self._b, value.type
        if type.lanes == 1:
            b.store(value, addresses)
            return
        name = f"llvm.masked.scatter.{type.suffix}.v{type.lanes}p0"
        mask = b.const(Type("i1", type.lanes), 1)
        b.module.declare(name, "void", [type, addresses.type, "i32", mask.type])
        b.emit(f"call void @{name}({value}, {addresses}, i32 {max(type.bits // 8, 1)}, {mask})")


ATTRIBUTES = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
