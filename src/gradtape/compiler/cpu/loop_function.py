"""The function that runs a loop or branch step by step: `void name(ptr buffers, i64 chunk)`.

Each graph of the loop is a function `i32 graph(ptr inputs, ptr outputs)`. The loop gives it the
addresses of the arrays of this step: carried values take turns between two buffers, and arrays that
it goes through are read and written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gradtape.compiler.array_loop import ArrayLoop
from gradtape.compiler.cpu.llvm.builder import I64, NULL, PTR, VOID, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.instructions import memory_type
from gradtape.compiler.cpu.llvm.scratch import NO_MEMORY
from gradtape.compiler.cpu.parameters import Parameters
from gradtape.compiler.cpu.runtime.entry_tables import INTERRUPTED_STATUS, UNSETTLED_STATUS
from gradtape.compiler.cpu.schedule import Schedule
from gradtape.compiler.kernel import Buffer
from gradtape.graph.ir import Literal
from gradtape.graph.scan_op import Scan, scan_op
from gradtape.graph.switch_op import switch_op
from gradtape.graph.while_op import Save, WhilePull, while_op

# The number of steps after which a loop looks for signals.
_STEPS_BETWEEN_LOOKS = 1 << 10
_I32 = Type("i32")


class LoopFunction:
    """Writes the function of one loop.

    Args:
        module: The module to write to.
        loop: The loop.
        schedule: How it is divided into parts.
        table: The contents of the table that the function is given.
    """

    def __init__(
        self, module: Module, loop: ArrayLoop, schedule: Schedule, table: Parameters
    ) -> None:
        self._b = Builder(module)
        self._loop = loop
        self._schedule = schedule
        self._table = table
        self._exit = self._b.new_block("exit")
        self._taken: list[Value] = []
        self._status = NULL
        # The graphs whose table of codes is written.
        self._coded: set[int] = set()

    def write(self) -> None:
        """Append the function to the module."""
        b, op = self._b, self._loop.node.op
        self._status = b.load(self._slot(self._table.status), PTR)
        if op is scan_op:
            self._scan()
        elif op is switch_op:
            self._switch()
        elif op is while_op:
            self._while()
        else:
            self._while_pull()
        b.branch(self._exit)
        b.start(self._exit)
        for place in self._taken:
            b.call("free", VOID, b.load(place, PTR))
        b.emit("ret void")
        head = f"define internal void @{self._loop.name}(ptr %buffers, i64 %chunk)"
        b.module.define(b.function(head))

    # ---- addresses -------------------------------------------------------------------------

    def _slot(self, number: int) -> Value:
        return self._b.element(Value(PTR, "%buffers"), number, "ptr")

    def _address(self, operand: Buffer | Literal) -> Value:
        """The address of an array; a number is put on the stack."""
        b = self._b
        if isinstance(operand, Buffer):
            return b.load(self._slot(self._table.slots[operand]), PTR)
        type = memory_type(np.dtype(operand.dtype))
        place = b.alloca(type)
        b.store(b.const(type, operand.value), place)
        return place

    def _addresses(self, operands: Sequence[Buffer | Literal]) -> list[Value]:
        return [self._address(operand) for operand in operands]

    def _copy(self, to: Value, source: Value, size: int) -> None:
        if size:
            self._b.call("memmove", PTR, to, source, self._b.const(I64, size))

    # ---- calls -----------------------------------------------------------------------------

    def _tables(self, number: int) -> tuple[Value, Value]:
        """Tables for the addresses that a graph is given."""
        plan = self._loop.plans[number]
        b = self._b
        return (
            b.alloca(PTR, max(len(plan.inputs), 1), align=8),
            b.alloca(PTR, max(len(plan.outputs), 1), align=8),
        )

    def _fill(self, table: Value, addresses: Sequence[Value], first: int = 0) -> None:
        for n, address in enumerate(addresses, first):
            self._b.store(address, self._b.element(table, n, "ptr"))

    def _call(self, number: int, tables: tuple[Value, Value]) -> None:
        """Run a graph; if it fails, note how, and leave the loop."""
        b, plan = self._b, self._loop.plans[number]
        status = b.instruction(_I32, f"call i32 @{plan.name}({tables[0]}, {tables[1]})")
        failed, done = b.new_block("failed"), b.new_block("done")
        b.branch_if(b.icmp("ne", status, 0), failed, done)
        b.start(failed)
        code = b.convert("zext", status, "i64")
        known, out = b.new_block("known"), b.new_block("out")
        if plan.failures:
            own = b.sub(code, UNSETTLED_STATUS + 1)
            b.branch_if(b.icmp("sgt", code, UNSETTLED_STATUS), known, out)
            b.start(known)
            # The conditions of all graphs have codes of their own here.
            codes = [self._table.codes[failure] for failure in plan.failures]
            listed = ", ".join(f"i64 {code}" for code in codes)
            name = f"{plan.name}_codes"
            if number not in self._coded:
                b.module.define(f"@{name} = internal constant [{len(codes)} x i64] [{listed}]")
                self._coded.add(number)
            mapped = b.load(b.element(Value(PTR, f"@{name}"), own, "i64"), I64)
            wrong = b.load(Value(PTR, f"@{plan.name}_wrong"), I64)
            b.store(wrong, b.element(self._status, mapped, "i64"), "monotonic")
            b.lower(self._status, mapped)
            b.branch(self._exit)
            b.start(out)
        b.lower(self._status, code)
        b.branch(self._exit)
        b.start(done)

    def _look(self, number: Value) -> None:
        """Every now and then, look whether a signal has come, and stop then."""
        b = self._b
        due = b.icmp("eq", b.and_(number, _STEPS_BETWEEN_LOOKS - 1), _STEPS_BETWEEN_LOOKS - 1)
        with b.only_if(due):
            came = b.call("gt_poll", _I32, self._status)
            stop, go_on = b.new_block("stop"), b.new_block("go")
            b.branch_if(b.icmp("ne", came, 0), stop, go_on)
            b.start(stop)
            b.lower(self._status, b.const(I64, INTERRUPTED_STATUS))
            b.branch(self._exit)
            b.start(go_on)

    # ---- the ops ---------------------------------------------------------------------------

    def _switch(self) -> None:
        b, loop = self._b, self._loop
        number, *operands = self._addresses(loop.operands)
        tables = self._tables(0)
        self._fill(tables[0], operands)
        self._fill(tables[1], self._addresses(loop.outputs))
        chosen = b.load(number, I64)
        labels, end = [b.new_block("branch") for _ in loop.plans], b.new_block("chosen")
        cases = " ".join(f"i64 {n}, label %{label}" for n, label in enumerate(labels))
        b.emit(f"switch {chosen}, label %{labels[0]} [ {cases} ]")
        for n, label in enumerate(labels):
            b.start(label)
            self._call(n, tables)
            b.branch(end)
        b.start(end)

    def _scan(self) -> None:
        b, loop = self._b, self._loop
        scan = Scan(**loop.node.params)
        consts, carries = scan.consts, scan.carries
        given, outputs = self._addresses(loop.operands), self._addresses(loop.outputs)
        now, later = self._begin(given[consts : consts + carries], loop.work)
        if not scan.length:
            for buffer, to, value in zip(loop.outputs, outputs, now, strict=False):
                self._copy(to, value, buffer.nbytes)
            return
        tables = self._tables(0)
        self._fill(tables[0], given[:consts])
        count = b.alloca(I64)
        if scan.counted:
            self._fill(tables[0], [count], consts)
        body = loop.plans[0]
        rows_in = [buffer.nbytes for buffer in body.inputs[scan.first_x :]]
        rows_out = [buffer.nbytes for buffer in body.outputs[carries:]]
        state = [*now, *later]
        start, stop = Value(I64, "0"), Value(I64, str(scan.length))
        if self._schedule.axis is not None:
            size = Value(I64, str(self._schedule.block))
            start = b.mul(Value(I64, "%chunk"), size)
            end = b.add(start, size)
            stop = b.select(b.icmp("slt", end, stop), end, stop)
        with b.loop(stop, state, start=start) as number:
            place = b.sub(b.const(I64, scan.length - 1), number) if scan.reverse else number
            if scan.counted:
                b.store(place, count)
            self._fill(tables[0], state[:carries], scan.first_carry)
            self._fill(tables[1], state[carries:])
            at = [
                b.element(base, b.mul(place, size), "i8")
                for base, size in zip(given[consts + carries :], rows_in, strict=True)
            ]
            self._fill(tables[0], at, scan.first_x)
            at = [
                b.element(base, b.mul(place, size), "i8")
                for base, size in zip(outputs[carries:], rows_out, strict=True)
            ]
            self._fill(tables[1], at, carries)
            self._call(0, tables)
            self._look(number)
            state[:] = [*state[carries:], *state[:carries]]
        for buffer, to, value in zip(loop.outputs, outputs, state[:carries], strict=False):
            self._copy(to, value, buffer.nbytes)

    def _begin(
        self, starts: Sequence[Value], work: Sequence[tuple[Buffer, Buffer]]
    ) -> tuple[list[Value], list[Value]]:
        """The addresses of carried values and of their next ones, the former with first values."""
        now = [self._address(pair[0]) for pair in work]
        later = [self._address(pair[1]) for pair in work]
        for to, source, pair in zip(now, starts, work, strict=True):
            self._copy(to, source, pair[0].nbytes)
        return now, later

    def _while(self) -> None:
        loop = self._loop
        consts = len(loop.operands) - len(loop.work)
        given, outputs = self._addresses(loop.operands), self._addresses(loop.outputs)
        now, later = self._begin(given[consts:], loop.work)
        of_cond, of_body = self._tables(0), self._tables(1)
        self._fill(of_cond[0], given[:consts])
        self._fill(of_body[0], given[:consts])
        last = self._looping(now, later, self._condition(of_cond, consts), of_body, consts)
        for buffer, to, value in zip(loop.outputs, outputs, last, strict=True):
            self._copy(to, value, buffer.nbytes)

    def _condition(
        self, tables: tuple[Value, Value], consts: int
    ) -> Callable[[Value, Sequence[Value]], Value]:
        """Whether a loop goes on, by its first graph."""
        b = self._b
        flag = b.alloca(Type("i8"))
        self._fill(tables[1], [flag])

        def holds(_number: Value, now: Sequence[Value]) -> Value:
            self._fill(tables[0], now, consts)
            self._call(0, tables)
            return b.icmp("ne", b.load(flag, Type("i8")), 0)

        return holds

    def _looping(
        self,
        now: Sequence[Value],
        later: Sequence[Value],
        holds: Callable[[Value, Sequence[Value]], Value],
        tables: tuple[Value, Value],
        consts: int,
        *,
        graph: int = 1,
        visit: Callable[[Value, Sequence[Value]], None] = lambda _number, _now: None,
    ) -> list[Value]:
        """Run a graph on carried values as long as a condition holds; returns the last ones.

        Afterwards `self._steps` is the number of steps, and `self._spare` the other buffers.
        """
        b, count = self._b, len(now)
        before = b.block
        head, inside, latch, after = map(b.new_block, ("while", "do", "latch", "done"))
        b.branch(head)
        b.start(head)
        counter, following = b.fresh("n"), b.fresh("n")
        b.emit(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        pairs = [*now, *later]
        names = [b.fresh("p") for _ in pairs]
        swapped = [*names[count:], *names[:count]]
        for name, value, turn in zip(names, pairs, swapped, strict=True):
            b.emit(f"{name} = phi ptr [ {value.text}, %{before} ], [ {turn}, %{latch} ]")
        number, places = Value(I64, counter), [Value(PTR, name) for name in names]
        b.branch_if(holds(number, places[:count]), inside, after)
        b.start(inside)
        visit(number, places[:count])
        self._fill(tables[0], places[:count], consts)
        self._fill(tables[1], places[count:])
        self._call(graph, tables)
        self._look(number)
        b.branch(latch)
        b.start(latch)
        b.emit(f"{following} = add i64 {counter}, 1")
        b.branch(head)
        b.start(after)
        self._steps, self._spare = number, places[count:]
        return places[:count]

    def _while_pull(self) -> None:
        b, loop = self._b, self._loop
        back = WhilePull(**loop.node.params)
        consts, carries = back.consts, back.loop.carries
        end = consts + carries
        given, outputs = self._addresses(loop.operands), self._addresses(loop.outputs)
        states, pulled = loop.work[:carries], loop.work[carries:]
        now, later = self._begin(given[consts:end], states)
        cts = [self._address(pair[0]) for pair in pulled]
        next_cts = [self._address(pair[1]) for pair in pulled]
        for n, (to, pair) in enumerate(zip(cts, pulled, strict=True)):
            if n < len(back.active):
                self._copy(to, given[end + n], pair[0].nbytes)
            else:
                zero = f"ptr {to.text}, i8 0, i64 {pair[0].nbytes}, i1 false"
                b.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
                b.emit(f"call void @llvm.memset.p0.i64({zero})")
        of_cond, of_body, of_pull = (self._tables(n) for n in range(3))
        for tables in (of_cond, of_body, of_pull):
            self._fill(tables[0], given[:consts])
        kept = _Stack(self, [pair[0].nbytes for pair in states])
        holds = self._condition(of_cond, consts)

        def back_through(
            stack: _Stack, count: Value, cts: Sequence[Value], spare: Sequence[Value]
        ) -> list[Value]:
            def visit(number: Value, _now: Sequence[Value]) -> None:
                place = b.sub(b.sub(count, number), 1)
                self._fill(of_pull[0], stack.addresses(place), consts)

            return self._looping(
                cts,
                spare,
                lambda number, _now: b.icmp("slt", number, count),
                of_pull,
                end,
                graph=2,
                visit=visit,
            )

        if back.save == "all":
            self._looping(now, later, holds, of_body, consts, visit=kept.put)
            last = back_through(kept, self._steps, cts, next_cts)
        else:
            last = self._in_stretches(
                back, kept, (now, later), (cts, next_cts), holds, of_body, back_through
            )
        for buffer, to, value in zip(loop.outputs, outputs, last, strict=True):
            self._copy(to, value, buffer.nbytes)

    def _in_stretches(
        self,
        back: WhilePull,
        kept: _Stack,
        states: tuple[Sequence[Value], Sequence[Value]],
        cts: tuple[Sequence[Value], Sequence[Value]],
        holds: Callable[[Value, Sequence[Value]], Value],
        of_body: tuple[Value, Value],
        back_through: Callable[..., list[Value]],
    ) -> list[Value]:
        """Keep states at a distance; run the stretches between them again, the last one first."""
        b = self._b
        count, stride = b.alloca(I64), b.alloca(I64)
        b.store(b.const(I64, 0), count)
        b.store(b.const(I64, 1), stride)

        keep = self._keeping(back.save, kept, count, stride)
        now = self._looping(*states, holds, of_body, back.consts, visit=keep)
        later, steps, stretch = self._spare, self._steps, kept.another()
        total, every = b.load(count, I64), b.load(stride, I64)
        # Where the cotangents are after a stretch depends on its length: they are copied back.
        with_one = b.icmp("sgt", total, 0)
        some, none = b.new_block("some"), b.new_block("none")
        b.branch_if(with_one, some, none)
        b.start(some)
        with b.loop(total) as number:
            place = b.sub(b.sub(total, number), 1)
            left = b.sub(steps, b.mul(place, every))
            length = b.select(b.icmp("slt", left, every), left, every)
            for to, source, size in zip(now, kept.addresses(place), kept.sizes, strict=True):
                self._copy(to, source, size)
            self._looping(
                now,
                later,
                lambda step, _now: b.icmp("slt", step, length),
                of_body,
                back.consts,
                visit=stretch.put,
            )
            last = back_through(stretch, length, *cts)
            for to, source, pair in zip(cts[0], last, self._loop.work[len(now) :], strict=True):
                self._copy(to, source, pair[0].nbytes)
        b.branch(none)
        b.start(none)
        return list(cts[0])

    def _keeping(
        self, save: Save, kept: _Stack, count: Value, stride: Value
    ) -> Callable[[Value, Sequence[Value]], None]:
        """Code that keeps every `stride`-th state; once there are too many, every other one goes.

        Args:
            save: How many to keep.
            kept: Where to keep them.
            count: Where the number of states that are kept is stored.
            stride: Where the distance between them is stored, a power of two.
        """
        b = self._b

        def due(number: Value) -> Value:
            return b.icmp("eq", b.and_(number, b.sub(b.load(stride, I64), 1)), 0)

        def keep(number: Value, now: Sequence[Value]) -> None:
            with b.only_if(due(number)):
                if save == "sqrt":
                    most = b.shl(b.load(stride, I64), 1)
                    full = b.icmp("sgt", b.load(count, I64), most)
                else:
                    full = b.icmp("sge", b.load(count, I64), int(save))
                with b.only_if(full):
                    half = b.lshr(b.add(b.load(count, I64), 1), 1)
                    kept.thin_out(half)
                    b.store(half, count)
                    b.store(b.shl(b.load(stride, I64), 1), stride)
                with b.only_if(due(number)):
                    place = b.load(count, I64)
                    kept.put(place, now)
                    b.store(b.add(place, 1), count)

        return keep


class _Stack:
    """States of a loop in memory, one after the other; it grows as needed."""

    def __init__(self, function: LoopFunction, sizes: Sequence[int]) -> None:
        self._function, self._b, self.sizes = function, function._b, list(sizes)
        self._offsets, total = [], 0
        for size in sizes:
            self._offsets.append(total)
            total += -(-size // 64) * 64
        self._bytes = max(total, 64)
        b = self._b
        self._data, self._room = b.alloca(PTR), b.alloca(I64)
        b._entry.append(f"  store {NULL}, {self._data}")
        b._entry.append(f"  store i64 0, {self._room}")
        function._taken.append(self._data)

    def another(self) -> _Stack:
        """An empty one for the same states."""
        return _Stack(self._function, self.sizes)

    def put(self, place: Value, now: Sequence[Value]) -> None:
        """Keep a state."""
        b = self._b
        with b.only_if(b.icmp("sge", place, b.load(self._room, I64))):
            self._grow()
        for to, source, size in zip(self.addresses(place), now, self.sizes, strict=True):
            self._function._copy(to, source, size)

    def addresses(self, place: Value) -> list[Value]:
        """The addresses of the values of a state."""
        b = self._b
        base = b.element(b.load(self._data, PTR), b.mul(place, self._bytes), "i8")
        return [b.element(base, offset, "i8") for offset in self._offsets]

    def thin_out(self, count: Value) -> None:
        """Keep every other state, `count` in all, at the front."""
        b = self._b
        with b.loop(count) as n:
            to = b.element(b.load(self._data, PTR), b.mul(n, self._bytes), "i8")
            source = b.element(b.load(self._data, PTR), b.mul(n, 2 * self._bytes), "i8")
            b.call("memmove", PTR, to, source, b.const(I64, self._bytes))

    def _grow(self) -> None:
        b, function = self._b, self._function
        room = b.load(self._room, I64)
        new = b.add(b.add(room, b.lshr(room, 1)), 8)
        made = b.call("realloc", PTR, b.load(self._data, PTR), b.mul(new, self._bytes))
        failed, done = b.new_block("failed"), b.new_block("grown")
        b.branch_if(b.icmp("eq", made, NULL), failed, done)
        b.start(failed)
        b.lower(function._status, b.const(I64, NO_MEMORY))
        b.branch(function._exit)
        b.start(done)
        b.store(made, self._data)
        b.store(new, self._room)
