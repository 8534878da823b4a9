"""From a graph of native ops to one native function: `i32 run(ptr inputs, ptr outputs)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradtape.compiler.build import build
from gradtape.compiler.fuse import Fusion
from gradtape.compiler.kernel import Buffer, Failure, Kernel
from gradtape.compiler.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.llvm.link import Target
from gradtape.compiler.llvm.loops import Loops
from gradtape.compiler.memory import Arena
from gradtape.compiler.ordered import ordered
from gradtape.compiler.product import Product, product_of
from gradtape.compiler.roots import source_of_matrix
from gradtape.compiler.runtime.blocks_ir import SMALL
from gradtape.compiler.runtime.entry_program import UNSETTLED_STATUS
from gradtape.compiler.schedule import Schedule, divided, scheduled, work
from gradtape.core.lowering import Contraction
from gradtape.core.op import registry
from gradtape.graph.ir import Graph, Literal, Node, Rewriter, Value as GraphValue

# Smaller arenas are on the stack.
_STACK = 1 << 14

# The function returns 0 if all went well, 1 if there is no memory, and from this one on the number
# of the first condition that did not hold.
FIRST_FAILURE = UNSETTLED_STATUS + 1

Step = Kernel | Product


class Native(NamedTuple):
    """A graph as native code, not compiled yet.

    Attributes:
        steps: What it does, in order: loop nests and matrix products.
        schedules: How each loop nest is run.
        fusion: How the loop nests came about.
        arena: The memory of its temporaries.
        nanoseconds: A rough estimate of a call.
        failures: The conditions it checks, in the order of the graph.
        name: The name of the function.
    """

    steps: tuple[Step, ...]
    schedules: dict[Kernel, Schedule]
    fusion: Fusion
    arena: Arena
    nanoseconds: float
    failures: tuple[Failure, ...]
    name: str

    @property
    def wrong(self) -> str | None:
        """The variable that holds the number for which a condition did not hold, if it has any."""
        return f"{self.name}_wrong" if self.failures else None

    @property
    def exports(self) -> list[str]:
        """The names by which it is known outside."""
        return [name for name in (self.name, self.wrong) if name is not None]


def with_own_outputs(graph: Graph) -> Graph:
    """The graph with every output computed by a node of its own, so that none shares memory."""
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        rewriter.copy(node)
    outputs, taken = [], set()
    for output in graph.outputs:
        new = rewriter[output]
        if isinstance(new, Literal):
            new = rewriter.add(registry["broadcast_to"], [new], {"shape": ()})
        elif new.node is None or new in taken:
            new = rewriter.add(registry["copy"], [new], {})
        taken.add(new)
        outputs.append(new)
    finished = rewriter.finish()
    return Graph(graph.name, finished.inputs, rewriter.nodes, outputs)


def write(graph: Graph, module: Module, target: Target, prefix: str = "run") -> Native:
    """Write the native function of a graph into a module.

    Args:
        graph: All of its nodes have native code, and its outputs nodes of their own.
        module: Where the functions go; the one to call is named `prefix`.
        target: The CPU.
        prefix: What the names of all functions begin with.
    """
    fusion = Fusion(graph)
    buffers = _buffers(graph, fusion)
    steps: list[Step] = []
    for group in fusion.groups:
        name = f"{prefix}_k{len(steps)}"
        if group.opaque is None:
            steps += divided(build(group, buffers, name))
        elif isinstance(group.opaque.op.lower, Contraction):
            steps.append(_product(group.opaque, buffers))
        else:
            steps += ordered(group.opaque, buffers, name)
    temporaries = [[b for b in step.buffers if b.kind == "temporary"] for step in steps]
    arena = Arena(temporaries)
    slots = {buffer: n for n, buffer in enumerate(_all_buffers(graph, buffers, steps))}
    failures = _failures(graph, steps)
    codes = {failure: FIRST_FAILURE + n for n, failure in enumerate(failures)}
    schedules = {}
    for step in steps:
        if isinstance(step, Kernel):
            schedules[step] = scheduled(step, target.vector_bytes)
            Loops(module, step, schedules[step], slots, codes).write()
    expressions = (p for step in steps if isinstance(step, Kernel) for p in step.expressions)
    watches = any(part.name == "watch" for part in expressions)
    plan = _Plan(prefix, tuple(steps), schedules, arena, slots, len(failures), watches)
    _write_run(module, plan, target)
    total = sum(work(step) if isinstance(step, Kernel) else step.nanoseconds for step in steps)
    return Native(tuple(steps), schedules, fusion, arena, total, failures, prefix)


def _failures(graph: Graph, steps: Sequence[Step]) -> tuple[Failure, ...]:
    """What may turn out wrong, in the order in which eager code would find it."""
    found: dict[Failure, None] = {}
    for step in steps:
        if isinstance(step, Kernel):
            found.update((p.extra, None) for p in step.expressions if p.name == "check")
    order = {node: n for n, node in enumerate(graph.nodes)} if found else {}
    return tuple(sorted(found, key=lambda failure: order[failure.node]))


def _buffers(graph: Graph, fusion: Fusion) -> dict[GraphValue, Buffer]:
    buffers: dict[GraphValue, Buffer] = {}
    for n, value in enumerate(graph.inputs):
        buffers[value] = Buffer(f"in{n}", value.shape, value.dtype, "input")
    for n, output in enumerate(graph.outputs):
        assert isinstance(output, GraphValue)
        buffers[output] = Buffer(f"out{n}", output.shape, output.dtype, "output")
    for group in fusion.groups:
        for value in group.members:
            if value in fusion.stored and value not in buffers:
                name = f"t{len(buffers)}"
                buffers[value] = Buffer(name, value.shape, value.dtype, "temporary")
    return buffers


def _all_buffers(
    graph: Graph, buffers: dict[GraphValue, Buffer], steps: Sequence[Step]
) -> list[Buffer]:
    """Inputs, outputs, then temporaries: the order of the table of addresses."""
    found = dict.fromkeys(buffers[value] for value in (*graph.inputs, *graph.outputs))  # type: ignore[index]
    for step in steps:
        found.update(dict.fromkeys(b for b in step.buffers if b.kind == "temporary"))
    return list(found)


def _product(node: Node, buffers: dict[GraphValue, Buffer]) -> Product:
    sources = []
    for operand in node.operands:
        assert isinstance(operand, GraphValue)  # numbers have no axes to multiply along
        source = source_of_matrix(operand)
        sources.append((buffers[source.value], source.shape, source.transposed))
    return product_of(sources[0], sources[1], buffers[node.outputs[0]])


# ---- the function that runs all steps -----------------------------------------------------------


class _Plan(NamedTuple):
    """What a function has to do, and with what."""

    name: str
    steps: tuple[Step, ...]
    schedules: dict[Kernel, Schedule]
    arena: Arena
    slots: dict[Buffer, int]
    conditions: int
    watches: bool


def _write_run(module: Module, plan: _Plan, target: Target) -> None:
    name, arena, slots = plan.name, plan.arena, plan.slots
    b = Builder(module)
    table = b.alloca(PTR, len(slots) + 1)
    status = _begin_status(b, plan.conditions)
    b.store(status, b.element(table, Value(I64, str(len(slots))), "ptr"))
    memory = _take_arena(b, arena)
    counts = {"input": 0, "output": 0}
    addresses: dict[Buffer, Value] = {}
    for buffer, slot in slots.items():
        if buffer.kind == "temporary":
            address = b.element(memory, Value(I64, str(arena.offsets[buffer])), "i8")
        else:
            place = b.element(
                Value(PTR, f"%{buffer.kind}s"), Value(I64, str(counts[buffer.kind])), "ptr"
            )
            counts[buffer.kind] += 1
            address = b.load(place, PTR)
        addresses[buffer] = address
        b.store(address, b.element(table, Value(I64, str(slot)), "ptr"))
    for step in plan.steps:
        if isinstance(step, Kernel):
            parts = plan.schedules[step].parts
            if parts == 1:
                b.emit(f"call void @{step.name}({table}, i64 0)")
            else:
                module.declare("gt_parallel", "void", [PTR, PTR, I64])
                b.emit(f"call void @gt_parallel(ptr @{step.name}, {table}, i64 {parts})")
        else:
            step.write(b, addresses, target)
    _give_back_arena(b, arena, memory)
    if plan.conditions or plan.watches:
        _return_failure(b, name, status)
    b.emit("ret i32 0")
    module.define(b.function(f"define i32 @{name}(ptr %inputs, ptr %outputs)"))


def _begin_status(b: Builder, conditions: int) -> Value:
    """Room for a code, and at the place of each code for the number that came."""
    status = b.alloca(I64, FIRST_FAILURE + conditions)
    # Larger than all codes: the smallest one remains.
    b.store(Value(I64, "-1"), status)
    return status


def _return_failure(b: Builder, name: str, status: Value) -> None:
    """Return the code if there is one."""
    # Calls that fail at the same time may report each other's number, which is wrong as well.
    b.module.define(f"@{name}_wrong = global i64 0")
    failed, well = b.new_block("failed"), b.new_block("well")
    code = b.load(status, I64)
    b.branch_if(b.icmp("eq", code, Value(I64, "-1")), well, failed)
    b.start(failed)
    number = b.load(b.element(status, code, I64), I64)
    b.store(number, Value(PTR, f"@{name}_wrong"))
    b.emit(f"ret {b.convert('trunc', code, 'i32')}")
    b.start(well)


def _take_arena(b: Builder, arena: Arena) -> Value:
    """Memory for temporaries: on the stack, or borrowed from what all functions share."""
    if arena.size <= _STACK:
        return b.alloca(Type("i8"), max(arena.size, 1))
    if arena.size <= SMALL:
        b.module.declare("gt_take_small", PTR, [])
        memory = b.call("gt_take_small", PTR)
    else:
        b.module.declare("gt_take", PTR, [I64])
        memory = b.call("gt_take", PTR, Value(I64, str(arena.size)))
    failed, go = b.new_block("failed"), b.new_block("go")
    b.branch_if(b.instruction(memory.type.of("i1"), f"icmp eq {memory}, null"), failed, go)
    b.start(failed)
    b.emit("ret i32 1")
    b.start(go)
    return memory


def _give_back_arena(b: Builder, arena: Arena, memory: Value) -> None:
    if arena.size > _STACK:
        give = "gt_give_small" if arena.size <= SMALL else "gt_give"
        b.module.declare(give, "void", [PTR])
        b.emit(f"call void @{give}({memory})")
