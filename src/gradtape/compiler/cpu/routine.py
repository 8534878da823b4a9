"""The function that runs all steps of a graph, one after the other.

A few steps are written as calls. Many are numbers in a table, which a loop goes through: one block
of code for each function, however often it is called. The time that LLVM takes for a block grows
faster than its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gradtape.compiler.cpu.gemm.gemm import gemms_of
from gradtape.compiler.cpu.llvm.builder import I64, NULL, PTR, VOID, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.instructions import memory_type
from gradtape.compiler.cpu.llvm.link import Cpu
from gradtape.compiler.cpu.llvm.scratch import NO_MEMORY
from gradtape.compiler.cpu.runtime.blocks_native import SMALL
from gradtape.compiler.cpu.runtime.entry_tables import UNSETTLED_STATUS
from gradtape.compiler.element_program import ElementProgram
from gradtape.compiler.kernel import Buffer
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.plan import Plan, Step
from gradtape.compiler.product import Product

# Arenas smaller than this are on the stack.
_STACK = 1 << 14
# Beyond this many steps (counted with their operands) or arrays, a loop goes through them.
_FEW_OPERANDS = 96
_FEW_BUFFERS = 64
# A table of more addresses than this is not on the stack.
_MOST_ON_STACK = 1024

# The function returns 0 if all went well, `INTERRUPTED_STATUS`, `NO_MEMORY`, `UNSETTLED_STATUS`, or
# the number, from this one on, of the first condition that did not hold.
FIRST_FAILURE = UNSETTLED_STATUS + 1


class KernelCall(NamedTuple):
    """How the function of a kernel is called.

    Attributes:
        function: Its name.
        parts: The number of parts it is run in.
        buffers: The arrays in a table of its own, after the status; None if it finds them in the
            table of all arrays.
        words: The numbers that follow them.
    """

    function: str
    parts: int
    buffers: tuple[Buffer, ...] | None = None
    words: tuple[int, ...] = ()


class Routine(NamedTuple):
    """The function that runs a plan: the functions it calls, and the places of the arrays.

    Attributes:
        plan: The steps, and the memory of temporaries.
        calls: How the kernels among the steps are called.
        slots: The position of the address of each buffer in the table of all arrays. The address of
            the status comes after them.
    """

    plan: Plan
    calls: Mapping[Step, KernelCall]
    slots: Mapping[Buffer, int]

    @property
    def table_on_stack(self) -> bool:
        """Whether the table of addresses is small."""
        return len(self.slots) < _MOST_ON_STACK

    @property
    def status_words(self) -> int:
        """Words of the status: the code of the first failure, and a number for each code."""
        return FIRST_FAILURE + len(self.plan.failures)

    @property
    def status_at(self) -> int:
        """The offset of the status in the memory of a call, if it is not on the stack."""
        return self.plan.arena.size + (0 if self.table_on_stack else 8 * (len(self.slots) + 1))

    @property
    def memory(self) -> int:
        """The bytes that a call needs besides its arguments, its results and a little stack."""
        status = 0 if self.status_words <= _MOST_ON_STACK else 8 * self.status_words
        return self.status_at + status


def write_routine(module: Module, routine: Routine, cpu: Cpu) -> None:
    """Write the function of a plan, `i32 name(ptr inputs, ptr outputs)`."""
    _Writer(module, routine, cpu).write()


class _Writer:
    """Writes one function."""

    def __init__(self, module: Module, routine: Routine, cpu: Cpu) -> None:
        self._b = Builder(module)
        self._routine = routine
        self._plan = plan = routine.plan
        # The number of a buffer among the inputs or the outputs, or its offset in the arena.
        self._numbers = {**plan.arena.offsets}
        for given in (plan.inputs, plan.outputs):
            self._numbers.update((buffer, n) for n, buffer in enumerate(given))
        self._cpu = cpu
        self._status = self._table = self._own_table = NULL

    def write(self) -> None:
        b, plan = self._b, self._plan
        memory = _take_arena(b, self._routine)
        self._status = _begin_status(b, self._routine, memory)
        self._begin_tables(memory)
        known = self._fill_table(memory)
        if sum(1 + len(self._operands(step)) for step in plan.steps) <= _FEW_OPERANDS:
            for step in plan.steps:
                self._run(step, lambda buffer: known.get(buffer) or self._loaded(buffer))
        else:
            self._run_in_loop()
        code = b.load(self._status, I64)
        if plan.failures:
            _note_number(b, plan.name, code, self._status)
        _give_back_arena(b, self._routine, memory)
        result = b.select(b.icmp("eq", code, -1), Value(I64, "0"), code)
        b.emit(f"ret {b.convert('trunc', result, 'i32')}")
        b.module.define(b.function(f"define i32 @{plan.name}(ptr %inputs, ptr %outputs)"))

    # ---- addresses -------------------------------------------------------------------------

    def _begin_tables(self, memory: Value) -> None:
        b, plan, routine = self._b, self._plan, self._routine
        if routine.table_on_stack:
            self._table = b.alloca(PTR, len(routine.slots) + 1)
        else:
            self._table = b.element(memory, plan.arena.size, "i8")
        b.store(self._status, b.element(self._table, len(routine.slots), "ptr"))
        own = [
            len(c.buffers) + len(c.words) for c in routine.calls.values() if c.buffers is not None
        ]
        if own:
            self._own_table = b.alloca(PTR, 1 + max(own))
            b.store(self._status, self._own_table)

    def _fill_table(self, memory: Value) -> dict[Buffer, Value]:
        """Fill the table with the addresses of all arrays; returns those known as values."""
        b, routine = self._b, self._routine
        if len(routine.slots) > _FEW_BUFFERS:
            self._fill_table_in_loops(memory)
            return {}
        known: dict[Buffer, Value] = {}
        for buffer, slot in routine.slots.items():
            known[buffer] = self._address(buffer.kind, self._numbers[buffer], memory)
            b.store(known[buffer], b.element(self._table, slot, "ptr"))
        return known

    def _fill_table_in_loops(self, memory: Value) -> None:
        b, plan, routine = self._b, self._plan, self._routine
        for kind in ("input", "output", "temporary"):
            own = [buffer for buffer in routine.slots if buffer.kind == kind]
            if not own:
                continue
            first = routine.slots[own[0]]  # those of a kind are adjacent
            listed = [self._numbers[buffer] for buffer in own]
            numbers = _constants(b.module, f"{plan.name}_{kind}s", listed)
            with b.loop(len(own)) as n:
                number = b.load(b.element(numbers, n, "i64"), I64)
                address = self._address(kind, number, memory)
                b.store(address, b.element(self._table, b.add(n, first), "ptr"))

    def _address(self, kind: str, number: Value | int, memory: Value) -> Value:
        b = self._b
        if kind == "temporary":
            return b.element(memory, number, "i8")
        return b.load(b.element(Value(PTR, f"%{kind}s"), number, "ptr"), PTR)

    def _loaded(self, buffer: Buffer) -> Value:
        return self._b.load(self._b.element(self._table, self._routine.slots[buffer], "ptr"), PTR)

    # ---- steps -----------------------------------------------------------------------------

    def _run(
        self,
        step: Step,
        address: Callable[[Buffer], Value],
        words: Iterable[Value] | None = None,
    ) -> None:
        """Write the call of a step, whose arrays are at `address(buffer)`."""
        b = self._b
        if isinstance(step, Product):
            self._multiply(step, {buffer: address(buffer) for buffer in step.buffers})
            return
        if isinstance(step, LibraryCall):
            pointers = ", ".join(str(address(buffer)) for buffer in step.buffers)
            b.emit(f"call void @{step.name}({self._status}, {pointers})")
            return
        call, table = self._routine.calls[step], self._table
        if call.buffers is not None:
            table = self._own_table
            given = words if words is not None else [b.const(I64, word) for word in call.words]
            for n, value in enumerate([*map(address, call.buffers), *given], 1):
                b.store(value, b.element(table, n, "ptr"))
        if call.parts == 1:
            b.emit(f"call void @{call.function}({table}, i64 0)")
        else:
            function = Value(PTR, f"@{call.function}")
            given = [function, table, b.const(I64, call.parts)]
            if isinstance(step, ElementProgram) and step.endless:
                look = Value(PTR, "@gt_poll")
                b.call("gt_parallel_endless", VOID, *given, look, self._status)
            else:
                b.call("gt_parallel", VOID, *given)

    def _multiply(self, product: Product, addresses: Mapping[Buffer, Value]) -> None:
        """Write the calls that compute a product; the status says if there is no memory."""
        b = self._b
        work = NULL if product.work is None else addresses[product.work]
        for gemm, offsets in zip(gemms_of(product), product.calls, strict=True):
            pointers = [
                b.element(addresses[buffer], offset, memory_type(buffer.dtype).scalar)
                for buffer, offset in zip(
                    (product.a, product.b, product.c), offsets[:3], strict=True
                )
            ]
            listed = ", ".join(map(str, (*pointers, work, self._status)))
            b.emit(f"call void @{gemm.define(b.module, self._cpu)}({listed})")

    def _run_in_loop(self) -> None:
        """Go through a table of steps: the code to run, with its arrays and numbers."""
        b, plan = self._b, self._plan
        samples: dict[Any, tuple[int, Step]] = {}
        table: list[int] = []
        for step in plan.steps:
            number, _ = samples.setdefault(_code(self._routine, step), (len(samples), step))
            table += [number, *self._operands(step)]
        words = _constants(b.module, f"{plan.name}_steps", table)
        head, latch, done = (b.new_block(hint) for hint in ("step", "next", "done"))
        blocks = [b.new_block("code") for _ in samples]
        before, counter, following = b.block, b.fresh("n"), b.fresh("n")
        b.branch(head)
        b.start(head)
        b.emit(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
        at = b.element(words, Value(I64, counter), "i64")
        code = b.load(at, I64)
        cases = " ".join(f"i64 {n}, label %{block}" for n, block in enumerate(blocks))
        b.emit(f"switch {code}, label %{blocks[0]} [ {cases} ]")
        lengths = []
        for block, (_, step) in zip(blocks, samples.values(), strict=True):
            b.start(block)
            lengths.append(1 + self._run_from_table(step, at))
            b.branch(latch)
        b.start(latch)
        length = b.phi(I64, *((str(n), block) for n, block in zip(lengths, blocks, strict=True)))
        b.emit(f"{following} = add i64 {counter}, {length.text}")
        b.branch_if(b.icmp("ult", Value(I64, following), len(table)), head, done)
        b.start(done)

    def _operands(self, step: Step) -> list[int]:
        """The entries of the table after the code of a step: positions of arrays, numbers."""
        slots = self._routine.slots
        if isinstance(step, Product | LibraryCall):
            return [slots[buffer] for buffer in step.buffers]
        call = self._routine.calls[step]
        return [*(slots[buffer] for buffer in call.buffers or ()), *call.words]

    def _run_from_table(self, step: Step, at: Value) -> int:
        """Write the call of a step like this one; returns the number of its operands."""
        b = self._b
        operands = [
            b.load(b.element(at, n, "i64"), I64) for n in range(1, 1 + len(self._operands(step)))
        ]
        calls = self._routine.calls
        own = calls[step].buffers if step in calls else step.buffers
        count = len(own or ())
        slots = (b.element(self._table, slot, "ptr") for slot in operands[:count])
        addresses = iter([b.load(slot, PTR) for slot in slots])
        self._run(step, lambda _buffer: next(addresses), operands[count:])
        return len(operands)


def _code(routine: Routine, step: Step) -> Any:
    """A key that is equal for steps that are called in the same way."""
    if isinstance(step, Product):
        sizes = step._replace(a=None, b=None, c=None, work=None)  # type: ignore[arg-type]
        return sizes, *(buffer.dtype for buffer in (step.a, step.b, step.c)), step.a is step.b
    if isinstance(step, LibraryCall):
        return step
    return routine.calls[step].function


def _constants(module: Module, name: str, numbers: Sequence[int]) -> Value:
    listed = ", ".join(f"i64 {number}" for number in numbers)
    module.define(f"@{name} = internal constant [{len(numbers)} x i64] [{listed}]")
    return Value(PTR, f"@{name}")


# ---- failures -----------------------------------------------------------------------------------


def _begin_status(b: Builder, routine: Routine, memory: Value) -> Value:
    """Memory for a code, and for the number that failed at the place of each code."""
    if routine.status_words <= _MOST_ON_STACK:
        status = b.alloca(I64, routine.status_words)
    else:
        status = b.element(memory, routine.status_at, "i8")
    # Larger than all codes, so that the smallest one wins.
    b.store(Value(I64, "-1"), status)
    return status


def _note_number(b: Builder, name: str, code: Value, status: Value) -> None:
    """If a condition did not hold, store the number for which it failed."""
    # Calls that fail at the same time may report each other's number, which failed as well.
    b.module.define(f"@{name}_wrong = global i64 0")
    with b.only_if(b.icmp("ne", code, -1)):
        number = b.load(b.element(status, code, I64), I64)
        b.store(number, Value(PTR, f"@{name}_wrong"))


def _take_arena(b: Builder, routine: Routine) -> Value:
    """Memory for temporaries: on the stack, or borrowed from the blocks all functions share."""
    if routine.memory <= _STACK:
        return b.alloca(Type("i8"), max(routine.memory, 1))
    if routine.memory <= SMALL:
        memory = b.call("gt_take_small", PTR)
    else:
        memory = b.call("gt_take", PTR, b.const(I64, routine.memory))
    with b.only_if(b.icmp("eq", memory, NULL), returns=True):
        b.emit(f"ret i32 {NO_MEMORY}")
    return memory


def _give_back_arena(b: Builder, routine: Routine, memory: Value) -> None:
    if routine.memory > _STACK:
        b.call("gt_give_small" if routine.memory <= SMALL else "gt_give", VOID, memory)
