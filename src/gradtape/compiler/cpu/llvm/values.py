"""The values in the loops of a kernel: the instruction that computes each of them, and its place.

An expression is computed in the outermost loop possible: its depth is that of the innermost axis it
depends on. Expressions that do not depend on the vector axis are computed once, as scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradtape.compiler.cpu.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.instructions import (
    instruction,
    memory_type,
    number_of,
    register_type,
)
from gradtape.compiler.cpu.parameters import Parameters
from gradtape.compiler.cpu.runtime.entry_tables import UNSETTLED_STATUS
from gradtape.compiler.cpu.schedule import Schedule
from gradtape.compiler.kernel import Axis, Buffer, Failure, Kernel, Place
from gradtape.core.promotion import BOOL
from gradtape.core.scalar import Scalar

# The width of registers for watched values: narrow, so that few registers are taken.
_WATCHED_BITS = 256


class Values:
    """Writes the values of one kernel; `Loops` writes the loops around them.

    Args:
        module: The module to write to.
        kernel: The kernel to write.
        schedule: How it is run.
        table: The contents of the table that the function is given.
    """

    def __init__(
        self,
        module: Module,
        kernel: Kernel,
        schedule: Schedule,
        table: Parameters,
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
        # Whether lanes are separate points, each with its own row of scratch memory.
        self._rows_in_lanes = self._vector_axis is not None and not self._vector_axis.reduced
        self._index: dict[Axis, Value] = {}
        self._pointers: dict[Buffer, Value] = {}
        self._levels: dict[int, int] = {}  # depth of each expression, by identity
        self._lane_dependent: dict[int, bool] = {}
        # One dict per open loop, with the values computed there by what computes them.
        self._scopes: list[dict[object, Value]] = [{}]
        self._mask: Value | None = None
        self._level = 0  # of sums in blocks
        self._table = table
        # Memory of the function: for accumulators, by level of their sums; for conditions, whether
        # one has failed so far (i1) and for which number (i64), in each lane.
        self._rooms: dict[object, Value] = {}
        # For each watched value a sum of 0·x, which is NaN once a value was not finite.
        self._watched: dict[int, tuple[Value, Type]] = {}
        self._depend()

    # ---- dependencies ----------------------------------------------------------------------

    def _depend(self) -> None:
        """Find the depth of every expression, and whether its lanes differ."""
        outer = len(self._kernel.outer)
        for part in self._kernel.expressions:
            level = max((self._levels[id(arg)] for arg in part.args), default=0)
            varies = any(self._lane_dependent[id(arg)] for arg in part.args)
            if part.name == "axis":
                level, varies = self._depth[part.extra], part.extra is self._vector_axis
            elif part.name in ("load", "gather"):
                axes = [axis for axis, _ in part.extra.steps]
                level = max([level, *(self._depth[axis] for axis in axes)])
                varies = varies or self._vector_axis in axes
                varies = varies or (self._rows_in_lanes and part.extra.buffer.kind == "scratch")
            elif part.name == "reduced":
                level = len(self._depth) if self._columns else outer
                vector = self._vector_axis
                varies = vector is not None and not vector.reduced
            elif part.name == "running":
                level = len(self._depth) + 1  # never before the statement that needs it
            self._levels[id(part)] = level
            self._lane_dependent[id(part)] = varies

    # ---- expressions -----------------------------------------------------------------------

    def _in_lanes(self, part: Scalar) -> Value:
        """The value of an expression in every lane."""
        value = self._value(part)
        if self._vector_axis is None or value.type.lanes == self._lanes:
            return value
        if part.name == "constant":
            return self._b.const(register_type(part.dtype, self._lanes), number_of(part))
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
        """Write the instruction for an expression whose parts are computed."""
        arguments = [self._known(id(arg)) for arg in part.args]
        # Equal expressions made in different places are merged. The key has dtypes, as registers do
        # not show whether integers are signed, and constants as text, as 0.0 equals -0.0.
        kinds = tuple(arg.dtype.str for arg in part.args)
        extra = repr(part.extra) if part.name == "constant" else part.extra
        key = (part.name, part.dtype.str, extra, kinds, *(arg.text for arg in arguments))  # type: ignore[union-attr]
        value = self._known(key)
        if value is None:
            value = self._written(part, arguments)  # type: ignore[arg-type]
        self._scopes[-1][key] = self._scopes[-1][id(part)] = value
        return value

    def _written(self, part: Scalar, arguments: list[Value]) -> Value:
        b = self._b
        if part.name == "constant":
            return b.const(register_type(part.dtype), number_of(part))
        if part.name == "parameter":
            return self._bit(b.load(self._entry(part.extra), memory_type(part.dtype)), part)
        if part.name == "reduced":
            result = self._known(part.extra)
            assert result is not None  # its stage is done
            return result
        if part.name == "running":
            return b.load(self._rooms[part.extra, 0], register_type(part.dtype))
        if part.name == "axis":
            axis: Axis = part.extra
            if axis is not self._vector_axis:
                return self._index[axis]
            lanes = self._lanes
            numbers = b.lanes_const(Type("i64", lanes), range(lanes))
            return b.add(b.splat(self._index[axis], lanes), numbers)
        if part.name == "load":
            return self._load(part, arguments)
        if part.name == "gather":
            return self._gather(part, arguments)
        if part.name == "check":
            return self._check(part, arguments)
        if part.name == "watch":
            return self._watch(part, arguments)
        if not self._lane_dependent[id(part)]:
            return instruction(b, part, arguments)
        return instruction(b, part, [self._in_lanes(arg) for arg in part.args])

    def _entry(self, slot: int) -> Value:
        """The address of an entry in the table that the function is given."""
        return self._b.element(Value(PTR, "%buffers"), slot, "ptr")

    # ---- conditions that have to hold ------------------------------------------------------

    def _conditions(self) -> list[tuple[Failure, bool]]:
        """The conditions to check, and whether each is checked in every lane."""
        parts = [part for part in self._kernel.expressions if part.name == "check"]
        return list(dict.fromkeys((p.extra, self._lane_dependent[id(p)]) for p in parts))

    def _watch_conditions(self) -> None:
        """Note that no condition has failed yet."""
        b = self._b
        for condition in self._conditions():
            lanes = self._lanes if condition[1] else 1
            flag, given = (self._rooms[condition, scalar] for scalar in ("i1", "i64"))
            b.store(b.const(Type("i1", lanes), 0), flag)
            b.store(b.const(Type("i64", lanes), 0), given)
        for part in self._kernel.expressions:
            if part.name == "watch":
                wide = self._lane_dependent[id(part)]
                type = register_type(part.dtype, self._lanes if wide else 1)
                while type.lanes * type.bits > _WATCHED_BITS:
                    type = Type(type.scalar, type.lanes // 2)
                total = b.alloca(type)
                b.store(b.const(type, 0), total)
                self._watched[id(part)] = total, type

    def _check(self, part: Scalar, arguments: Sequence[Value]) -> Value:
        """The value, or 0 where its condition does not hold; the failure is noted."""
        b, wide = self._b, self._lane_dependent[id(part)]
        value, holds, given, *guard = map(self._in_lanes, part.args) if wide else arguments
        wrong = b.xor(holds, 1)
        for valid in guard:
            wrong = b.and_(wrong, valid)
        flag, first = (self._rooms[(part.extra, wide), scalar] for scalar in ("i1", "i64"))
        before = b.load(flag, wrong.type)
        known = b.load(first, given.type)
        b.store(b.select(before, known, given), first)
        b.store(b.or_(before, wrong), flag)
        return b.select(holds, value, b.const(value.type, 0))

    def _watch(self, part: Scalar, arguments: Sequence[Value]) -> Value:
        """The value; it is noted if it is not finite."""
        b, wide = self._b, self._lane_dependent[id(part)]
        value, *guard = map(self._in_lanes, part.args) if wide else arguments
        total, type = self._watched[id(part)]
        seen = value
        for valid in guard:
            seen = b.select(valid, seen, b.const(value.type, 0))
        zero, sum = b.const(type, 0), b.bits(b.load(total, type))
        for start in range(0, seen.type.lanes, type.lanes):
            lanes = range(start, start + type.lanes)
            piece = seen if seen.type == type else b.lanes_of(seen, seen, lanes)
            # 0·x is ±0, or NaN, whose bits survive being or'ed with others.
            sum = b.or_(sum, b.bits(b.exact_fmul(piece, zero)))
        b.store(b.from_bits(sum), total)
        return value

    def _report_conditions(self) -> None:
        """Set the status to the smallest code of a failure, with the number that failed."""
        b = self._b
        for total, type in self._watched.values():
            sum = b.load(total, type)
            with b.only_if(b.any(b.fcmp("uno", sum, sum))):
                b.lower(self._status(), b.const(I64, UNSETTLED_STATUS))
        for failure, wide in self._conditions():
            flag, given = (self._rooms[(failure, wide), scalar] for scalar in ("i1", "i64"))
            lanes = self._lanes if wide else 1
            failed = b.load(flag, Type("i1", lanes))
            # Several may have the same code: its value must be known in the blocks of all of them.
            known = self._table.codes[failure]
            code = self._value(known) if isinstance(known, Scalar) else Value(I64, str(known))
            with b.only_if(b.any(failed)):
                status = self._status()
                number = _first_of(b, b.load(given, Type("i64", lanes)), failed)
                place = b.element(status, code, I64)
                b.store(number, place, "monotonic")
                b.lower(status, code)

    def _status(self) -> Value:
        """The address of the code of the first failure."""
        return self._b.load(self._entry(self._table.status), PTR)

    # ---- memory ----------------------------------------------------------------------------

    def _address(self, place: Place, more: Value | None = None) -> Value:
        """The address of the element at the current indices (of the first lane)."""
        b = self._b
        total = Value(I64, str(place.offset)) if more is None else more
        if more is not None and place.offset:
            total = b.add(total, place.offset)
        for axis, step in place.steps:
            index = self._index[axis]
            term = index if step == 1 else b.mul(index, step)
            total = term if total.text == "0" else b.add(total, term)
        buffer = place.buffer
        lanes = self._lanes if self._rows_in_lanes and buffer.kind == "scratch" else 1
        return b.element(self._pointers[buffer], total, memory_type(buffer.dtype, lanes))

    def _lane_step(self, place: Place) -> int:
        """Elements from one lane to the next."""
        if self._rows_in_lanes and place.buffer.kind == "scratch":
            return 1
        return 0 if self._vector_axis is None else place.step(self._vector_axis)

    def _lane_addresses(self, place: Place, address: Value, step: int) -> Value:
        b, lanes = self._b, self._lanes
        numbers = b.lanes_const(Type("i64", lanes), [n * step for n in range(lanes)])
        return b.element(address, numbers, memory_type(place.buffer.dtype).scalar)

    def _load(self, part: Scalar, guard: Sequence[Value], more: Value | None = None) -> Value:
        """Read at a place, or `more` elements further on."""
        b, place = self._b, part.extra
        step, address = self._lane_step(place), self._address(place, more)
        if self._lanes == 1 or not self._lane_dependent[id(part)]:
            return self._scalar_load(part, address, guard)
        type = memory_type(part.dtype, self._lanes)
        if step == 1 and not guard:
            return self._bit(b.load(address, type), part)
        if step in (2, -1) and not guard:
            return self._bit(self._apart(address, step, type), part)
        addresses = self._lane_addresses(place, address, step)
        if step == 1:
            # Loading no lane from an unmapped address is correct, but as slow as a fault.
            harmless = b.spare(type)
            reads = b.any(guard[0])
            address = b.instruction(PTR, f"select {reads}, {address}, {harmless}")
            return self._bit(self._masked(type, address, guard[0]), part)
        return self._bit(self._masked(type, addresses, *guard), part)

    def _apart(self, address: Value, step: int, type: Type) -> Value:
        """Load every second element, or elements in reverse, as rows that are shuffled.

        A gather takes several times as long. Only elements between the first and the last one are
        read.
        """
        b, lanes = self._b, type.lanes
        if step == -1:
            first = second = b.load(b.element(address, 1 - lanes, type.scalar), type)
            chosen = [lanes - 1 - n for n in range(lanes)]
        else:
            first = b.load(address, type)
            second = b.load(b.element(address, lanes - 1, type.scalar), type)
            chosen = [2 * n if 2 * n < lanes else 2 * n + 1 for n in range(lanes)]
        return b.lanes_of(first, second, chosen)

    def _scalar_load(self, part: Scalar, address: Value, guard: Sequence[Value]) -> Value:
        b = self._b
        if guard:
            # Where nothing may be read, read something harmless instead.
            harmless = b.spare(Type("i64"))
            address = b.instruction(PTR, f"select {guard[0]}, {address}, {harmless}")
        return self._bit(b.load(address, memory_type(part.dtype)), part)

    def _gather(self, part: Scalar, arguments: Sequence[Value]) -> Value:
        """Read at a computed index, which is the same for all lanes or differs in each."""
        b, place = self._b, part.extra
        more, *guard = arguments
        if more.type.lanes == 1:
            return self._load(part, guard, more)
        step = 0 if self._vector_axis is None else place.step(self._vector_axis)
        type = memory_type(part.dtype, self._lanes)
        if step == 0 and not guard and (times := self._repeated(part.args[0])):
            return self._bit(self._each_repeated(place, more, times, type), part)
        addresses = self._lane_addresses(place, self._address(place), step)
        addresses = b.element(addresses, more, memory_type(place.buffer.dtype).scalar)
        return self._bit(self._masked(type, addresses, *guard), part)

    def _repeated(self, index: Scalar) -> int:
        """How many neighbouring lanes read the same element, each such group the next one; else 0.

        That is so for `axis // k` with a `k` that divides the lanes and the size of the axis, since
        vectors then begin at multiples of it.
        """
        axis, lanes = self._vector_axis, self._lanes
        moving = [arg for arg in index.args if self._lane_dependent[id(arg)]]
        if index.name == "add" and len(moving) == 1:
            return self._repeated(moving[0])
        if index.name != "floor_divide" or axis is None:
            return 0
        number, by = index.args
        if number.name != "axis" or number.extra is not axis or by.name != "constant":
            return 0
        times = int(by.extra)
        fits = 1 < times <= lanes and lanes % times == 0 and axis.size % times == 0
        return times if fits else 0

    def _each_repeated(self, place: Place, more: Value, times: int, type: Type) -> Value:
        """Load a row of elements, so many for all lanes, and repeat each of them."""
        b, lanes = self._b, type.lanes
        first = b.instruction(I64, f"extractelement {more}, {b.const(I64, 0)}")
        row = b.load(self._address(place, first), Type(type.scalar, lanes // times))
        if times == lanes:
            return b.splat(row, lanes)
        return b.lanes_of(row, row, [n // times for n in range(lanes)])

    def _bit(self, value: Value, part: Scalar) -> Value:
        b = self._b
        return b.icmp("ne", value, 0) if part.dtype == BOOL else value

    def _masked(self, type: Type, address: Value, guard: Value | None = None) -> Value:
        """Load lanes where a guard holds; elsewhere they are 0."""
        b, lanes = self._b, type.lanes
        mask = b.const(Type("i1", lanes), 1) if guard is None else guard
        if mask.type.lanes != lanes:
            mask = b.splat(mask, lanes)
        return b.masked_load(address, type, mask)


def _first_of(b: Builder, x: Value, condition: Value) -> Value:
    """The value in the first lane where a condition holds."""
    lanes = condition.type.lanes
    if lanes == 1:
        return x
    bits = Type(f"i{lanes}")
    mask = b.instruction(bits, f"bitcast {condition} to {bits}")
    name = f"llvm.cttz.i{lanes}"
    b.module.declare(name, bits, [bits, "i1"])
    lane = b.instruction(bits, f"call {bits} @{name}({mask}, i1 true)")
    return b.instruction(Type(x.type.scalar), f"extractelement {x}, {lane}")
