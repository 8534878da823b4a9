"""An element program as a function of LLVM IR: `void name(ptr buffers, i64 chunk)`.

Numbers that loops carry are phis, so they stay in registers. What does not change in a loop is
computed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradtape.compiler.classify import cost_of
from gradtape.compiler.cpu.llvm.builder import I64, NULL, PTR, VOID, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.instructions import memory_type, register_type
from gradtape.compiler.cpu.llvm.loops import ATTRIBUTES
from gradtape.compiler.cpu.llvm.scratch import NO_MEMORY
from gradtape.compiler.cpu.llvm.values import Values
from gradtape.compiler.cpu.parameters import Parameters
from gradtape.compiler.cpu.runtime.entry_tables import INTERRUPTED_STATUS
from gradtape.compiler.cpu.schedule import Schedule
from gradtape.compiler.element_program import (
    Block,
    Carried,
    Choose,
    ElementProgram,
    For,
    GoBack,
    Statement,
    WhileHolds,
    expressions_of,
    longest_steps,
    within,
)
from gradtape.compiler.kernel import Store, walk
from gradtape.core.promotion import BOOL
from gradtape.core.scalar import Scalar

# The number of steps after which a loop looks for signals.
_STEPS_BETWEEN_LOOKS = 1 << 16
# The words of stack that a backward pass fills with states before it allocates memory for them.
_STACK_WORDS = 256
_WORD = 8
# Expressions that are not worth a register outside the loop that needs them.
_NOT_HOISTED = frozenset({"constant", "axis", "variable", "load", "gather", "check", "watch"})


class ElementCode(Values):
    """Writes one program."""

    def __init__(
        self, module: Module, program: ElementProgram, schedule: Schedule, table: Parameters
    ) -> None:
        super().__init__(module, program, schedule, table)  # type: ignore[arg-type]
        self._program = program
        self._exit = self._b.new_block("exit")
        # Where pointers to memory are that is freed at the end.
        self._taken: list[Value] = []
        # The number of steps of the loop that was written last.
        self._steps = Value(I64, "0")

    def write(self) -> None:
        """Append the function to the module."""
        b, program = self._b, self._program
        for buffer in program.buffers:
            self._pointers[buffer] = b.load(self._entry(self._table.slots[buffer]), PTR)
        for buffer in program.locals:
            self._pointers[buffer] = b.alloca(memory_type(buffer.dtype), max(buffer.size, 1))
        for condition in self._conditions():
            for scalar in ("i1", "i64"):
                self._rooms[condition, scalar] = b.alloca(Type(scalar))
        self._watch_conditions()
        self._run(program.statements)
        self._report_conditions()
        b.branch(self._exit)
        b.start(self._exit)
        for place in self._taken:
            b.call("free", VOID, b.load(place, PTR))
        b.emit("ret void")
        head = f"define internal void @{program.name}(ptr %buffers, i64 %chunk)"
        b.module.define(b.function(f"{head} {ATTRIBUTES}"))

    # ---- statements ------------------------------------------------------------------------

    def _run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Store):
                self._put(statement)
            elif isinstance(statement, For):
                self._for(statement)
            elif isinstance(statement, WhileHolds):
                self._while(statement)
            elif isinstance(statement, GoBack):
                self._go_back(statement)
            else:
                self._choose(statement)

    def _put(self, statement: Store) -> None:
        b, place = self._b, statement.place
        value = self._value(statement.value)
        if place.buffer.dtype == BOOL:
            value = b.convert("zext", value, "i8")
        b.store(value, self._address(place))

    def _bind(self, variable: Scalar, value: Value) -> None:
        self._scopes[-1][variable.extra] = value

    def _written(self, part: Scalar, arguments: list[Value]) -> Value:
        if part.name != "variable":
            return super()._written(part, arguments)
        value = self._known(part.extra)
        assert value is not None  # a statement has given it a value
        return value

    def _hoist(self, statement: Statement) -> None:
        """Compute what does not change in a loop, before it."""
        varying: set[int] = set()
        own = {id(buffer) for buffer in self._program.locals}
        seen: set[int] = set()
        for each in within((statement,)):
            for whole in expressions_of(each):
                for part in walk(whole, seen):
                    changes = any(id(arg) in varying for arg in part.args)
                    if part.name == "variable":
                        changes = self._known(part.extra) is None
                    elif part.name == "axis":
                        changes = part.extra not in self._index
                    elif part.name in ("load", "gather"):
                        changes = (
                            changes
                            or id(part.extra.buffer) in own
                            or any(axis not in self._index for axis, _ in part.extra.steps)
                        )
                    elif part.name in ("check", "watch"):
                        changes = True
                    if changes:
                        varying.add(id(part))
                    elif part.name not in _NOT_HOISTED and cost_of((part,)) > 0:
                        self._value(part)

    # ---- loops -----------------------------------------------------------------------------

    def _for(self, statement: For) -> None:
        b, axis = self._b, statement.axis
        start, stop = Value(I64, "0"), Value(I64, str(axis.size))
        if axis is self._schedule.axis:
            size = Value(I64, str(self._schedule.block))
            start = b.mul(Value(I64, "%chunk"), size)
            end = b.add(start, size)
            stop = b.select(b.icmp("slt", end, stop), end, stop)
        self._hoist(statement)
        state = [self._value(each.start) for each in statement.carried]
        with b.loop(stop, state, start=start) as counter:
            self._scopes.append({})
            self._index[axis] = counter
            for each, value in zip(statement.carried, state, strict=True):
                self._bind(each.variable, value)
            self._run(statement.body.statements)
            state[:] = [self._value(each.next) for each in statement.carried]
            inside = longest_steps(statement.body.statements)
            if axis.size * inside >= _STEPS_BETWEEN_LOOKS:
                self._look(counter, inside)
            self._scopes.pop()
            del self._index[axis]
        for each, value in zip(statement.carried, state, strict=True):
            self._bind(each.variable, value)

    def _while(self, statement: WhileHolds) -> None:
        self._hoist(statement)
        starts = [self._value(each.start) for each in statement.carried]
        last = self._looping(
            statement.carried,
            starts,
            statement.condition,
            statement.body,
            lambda _number, _state: None,
        )
        for each, value in zip(statement.carried, last, strict=True):
            self._bind(each.variable, value)

    def _looping(
        self,
        carried: Sequence[Carried],
        starts: Sequence[Value],
        condition: Block | Callable[[Value], Value],
        body: Block,
        visit: Callable[[Value, Sequence[Value]], None],
    ) -> list[Value]:
        """A loop with a condition; returns the state after it.

        Args:
            carried: The numbers that it carries.
            starts: Their first values.
            condition: Whether to go on: a block, or a function of the number of the step.
            body: A step.
            visit: Called with the number of the step and the state, at the beginning of each step.
        """
        b = self._b
        before, head, inside, after = b.block, *map(b.new_block, ("while", "do", "done"))
        b.branch(head)
        b.start(head)
        counter, following = b.fresh("n"), b.fresh("n")
        latch = b.new_block("latch")
        b.emit(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        names = [(b.fresh("s"), b.fresh("s")) for _ in starts]
        for (name, later), value in zip(names, starts, strict=True):
            b.emit(f"{name} = phi {value.type} [ {value.text}, %{before} ], [ {later}, %{latch} ]")
        number = Value(I64, counter)
        state = [Value(value.type, name) for (name, _), value in zip(names, starts, strict=True)]
        self._scopes.append({})
        for each, value in zip(carried, state, strict=True):
            self._bind(each.variable, value)
        if isinstance(condition, Block):
            self._run(condition.statements)
            holds = self._value(condition.results[0])
        else:
            holds = condition(number)
        b.branch_if(holds, inside, after)
        b.start(inside)
        visit(number, state)
        self._run(body.statements)
        new = [self._value(each.next) for each in carried]
        self._look(number)
        b.branch(latch)
        b.start(latch)
        # A phi names a value that is not computed yet; a cast to the same type gives it that name.
        for (_, later), value in zip(names, new, strict=True):
            b.emit(f"{later} = bitcast {value} to {value.type}")
        b.emit(f"{following} = add i64 {counter}, 1")
        b.branch(head)
        self._scopes.pop()
        b.start(after)
        self._steps = number
        return state

    def _look(self, number: Value, inside: int = 1) -> None:
        """Every now and then, look whether a signal has come, and stop then.

        Args:
            number: The number of the step.
            inside: The number of steps that loops in it take.
        """
        b = self._b
        mask = (1 << max(0, _STEPS_BETWEEN_LOOKS.bit_length() - inside.bit_length())) - 1
        due = b.icmp("eq", b.and_(number, mask), mask)
        look, go_on, stop = map(b.new_block, ("look", "go", "stop"))
        b.emit(f"br {due}, label %{look}, label %{go_on}")
        b.start(look)
        status = self._status()
        came = _cold_call(b, "gt_poll", Type("i32"), status)
        b.branch_if(b.icmp("ne", came, 0), stop, go_on)
        b.start(stop)
        b.lower(status, b.const(I64, INTERRUPTED_STATUS))
        b.branch(self._exit)
        b.start(go_on)

    # ---- branches --------------------------------------------------------------------------

    def _choose(self, statement: Choose) -> None:
        b = self._b
        number = self._value(statement.number)
        labels = [b.new_block("branch") for _ in statement.branches]
        end = b.new_block("chosen")
        cases = " ".join(f"{number.type} {n}, label %{label}" for n, label in enumerate(labels))
        b.emit(f"switch {number}, label %{labels[0]} [ {cases} ]")
        incoming: list[list[tuple[Value | str, str]]] = [[] for _ in statement.variables]
        for label, block in zip(labels, statement.branches, strict=True):
            b.start(label)
            self._scopes.append({})
            self._run(block.statements)
            made = [self._value(result) for result in block.results]
            self._scopes.pop()
            for pairs, value in zip(incoming, made, strict=True):
                pairs.append((value, b.block))
            b.branch(end)
        b.start(end)
        for variable, pairs in zip(statement.variables, incoming, strict=True):
            self._bind(variable, b.phi(register_type(variable.dtype), *pairs))

    # ---- backward passes of loops with a condition -----------------------------------------

    def _go_back(self, statement: GoBack) -> None:
        """Run the loop forward and keep states, then go back through them."""
        self._hoist(statement)
        starts = [self._value(each.start) for each in statement.state]
        pulled = [self._value(each.start) for each in statement.pulled]
        kept = _Stack(self, len(statement.state))
        if statement.save == "all":
            self._looping(
                statement.state,
                starts,
                statement.condition,
                statement.body,
                kept.put,
            )
            last = self._back_through(statement, kept, self._steps, pulled)
        else:
            last = self._in_stretches(statement, kept, starts, pulled)
        for each, value in zip(statement.pulled, last, strict=True):
            self._bind(each.variable, value)

    def _back_through(
        self, statement: GoBack, kept: _Stack, count: Value, pulled: Sequence[Value]
    ) -> list[Value]:
        """Pull through states that were kept, the last one first; returns what was carried."""
        b = self._b

        def visit(number: Value, _state: Sequence[Value]) -> None:
            place = b.sub(b.sub(count, number), 1)
            for each, value in zip(statement.state, kept.get(place, statement.state), strict=True):
                self._bind(each.variable, value)

        return self._looping(
            statement.pulled,
            pulled,
            lambda number: b.icmp("slt", number, count),
            statement.pull,
            visit,
        )

    def _in_stretches(
        self, statement: GoBack, kept: _Stack, starts: Sequence[Value], pulled: Sequence[Value]
    ) -> list[Value]:
        """Keep states at a distance; run the stretches between them again, the last one first."""
        b = self._b
        count, stride = b.alloca(I64), b.alloca(I64)
        b.store(b.const(I64, 0), count)
        b.store(b.const(I64, 1), stride)

        def keep(number: Value, state: Sequence[Value]) -> None:
            with b.only_if(self._is_due(number, stride)):
                full = self._is_full(statement, count, stride)
                with b.only_if(full):
                    half = b.lshr(b.add(b.load(count, I64), 1), 1)
                    kept.thin_out(half)
                    b.store(half, count)
                    b.store(b.shl(b.load(stride, I64), 1), stride)
                with b.only_if(self._is_due(number, stride)):
                    place = b.load(count, I64)
                    kept.put(place, state)
                    b.store(b.add(place, 1), count)

        self._looping(statement.state, starts, statement.condition, statement.body, keep)
        steps, stretch = self._steps, _Stack(self, len(statement.state))
        total = b.load(count, I64)
        every = b.load(stride, I64)

        def back(number: Value, state: Sequence[Value]) -> None:
            place = b.sub(b.sub(total, number), 1)
            left = b.sub(steps, b.mul(place, every))
            length = b.select(b.icmp("slt", left, every), left, every)
            self._looping(
                statement.state,
                kept.get(place, statement.state),
                lambda step: b.icmp("slt", step, length),
                statement.body,
                stretch.put,
            )
            last = self._back_through(statement, stretch, length, state)
            for each, value in zip(statement.pulled, last, strict=True):
                self._bind(each.variable, value)

        # What is carried from stretch to stretch is what `back` gives the variables.
        carried = [each._replace(next=each.variable) for each in statement.pulled]
        return self._looping(
            carried, pulled, lambda number: b.icmp("slt", number, total), Block(()), back
        )

    def _is_due(self, number: Value, stride: Value) -> Value:
        """Whether a state is to be kept: strides are powers of two."""
        b = self._b
        return b.icmp("eq", b.and_(number, b.sub(b.load(stride, I64), 1)), 0)

    def _is_full(self, statement: GoBack, count: Value, stride: Value) -> Value:
        """As `is_full` of `graph.while_op`."""
        b = self._b
        if statement.save == "sqrt":
            return b.icmp("sgt", b.load(count, I64), b.shl(b.load(stride, I64), 1))
        return b.icmp("sge", b.load(count, I64), int(statement.save))


class _Stack:
    """States of a loop in memory, one word for each number; it grows as needed."""

    def __init__(self, code: ElementCode, words: int) -> None:
        self._code, self._b, self._words = code, code._b, max(words, 1)
        b = self._b
        first = max(1, _STACK_WORDS // self._words)
        self._near = b.alloca(I64, first * self._words)
        self._data, self._far, self._room = b.alloca(PTR), b.alloca(PTR), b.alloca(I64)
        # In the entry block: a loop around this one goes on with the memory that it has.
        b._entry.append(f"  store {self._near}, {self._data}")
        b._entry.append(f"  store {NULL}, {self._far}")
        b._entry.append(f"  store i64 {first}, {self._room}")
        code._taken.append(self._far)

    def put(self, place: Value, state: Sequence[Value]) -> None:
        """Keep a state."""
        b = self._b
        with b.only_if(b.icmp("sge", place, b.load(self._room, I64))):
            self._grow()
        base = self._base(place)
        for n, value in enumerate(state):
            stored = b.convert("zext", value, "i8") if value.type.scalar == "i1" else value
            b.store(stored, b.element(base, n, "i64"))

    def get(self, place: Value, like: Sequence[Carried]) -> list[Value]:
        """The state that was kept at a place."""
        b, base, found = self._b, self._base(place), []
        for n, each in enumerate(like):
            dtype = each.variable.dtype
            value = b.load(b.element(base, n, "i64"), memory_type(dtype))
            found.append(b.icmp("ne", value, 0) if dtype == BOOL else value)
        return found

    def thin_out(self, count: Value) -> None:
        """Keep every other state, `count` in all, at the front."""
        b = self._b
        size = b.const(I64, _WORD * self._words)
        with b.loop(count) as n:
            source = self._base(b.shl(n, 1))
            b.call("memmove", PTR, self._base(n), source, size)

    def _base(self, place: Value) -> Value:
        b = self._b
        return b.element(b.load(self._data, PTR), b.mul(place, self._words), "i64")

    def _grow(self) -> None:
        b = self._b
        room = b.load(self._room, I64)
        new = b.shl(room, 1)
        old = b.load(self._far, PTR)
        made = _cold_call(b, "realloc", PTR, old, b.mul(new, _WORD * self._words))
        failed, copy, done = map(b.new_block, ("failed", "copy", "grown"))
        moved = b.new_block("moved")
        b.branch_if(b.icmp("eq", made, NULL), failed, done)
        b.start(failed)
        b.lower(self._code._status(), b.const(I64, NO_MEMORY))
        b.branch(self._code._exit)
        b.start(done)
        b.store(made, self._far)
        b.store(made, self._data)
        b.store(new, self._room)
        b.branch_if(b.icmp("eq", old, NULL), copy, moved)
        b.start(copy)
        _cold_call(b, "memmove", PTR, made, self._near, b.mul(room, _WORD * self._words))
        b.branch(moved)
        b.start(moved)


def _cold_call(b: Builder, name: str, result: Type, *args: Value) -> Value:
    """Call a function that is seldom called, in such a way that registers keep what they hold.

    Otherwise what a loop carries would be in memory, as calls may overwrite all vector registers.
    """
    cold = f"{name}_seldom"
    if not b.module.defines(cold):
        inner = Builder(b.module)
        parameters = [Value(arg.type, f"%p{n}") for n, arg in enumerate(args)]
        inner.emit(f"ret {inner.call(name, result, *parameters)}")
        listed = ", ".join(map(str, parameters))
        head = f"define internal preserve_allcc {result} @{cold}({listed}) noinline cold"
        b.module.define(inner.function(head))
    listed = ", ".join(map(str, args))
    return b.instruction(result, f"call preserve_allcc {result} @{cold}({listed})")
