"""From a graph of native ops to one native function: `i32 run(ptr inputs, ptr outputs)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradtape.compiler.build import build
from gradtape.compiler.fuse import Fusion
from gradtape.compiler.kernel import Buffer, Kernel
from gradtape.compiler.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.llvm.link import Target
from gradtape.compiler.llvm.loops import Loops
from gradtape.compiler.memory import Arena
from gradtape.compiler.product import Product, product_of
from gradtape.compiler.roots import source_of_matrix
from gradtape.compiler.schedule import Schedule, divided, scheduled, work
from gradtape.core.op import registry
from gradtape.graph.ir import Graph, Literal, Node, Rewriter, Value as GraphValue

# Smaller arenas are on the stack.
_STACK = 1 << 14

Step = Kernel | Product


class Native(NamedTuple):
    """A graph as native code, not compiled yet.

    Attributes:
        steps: What it does, in order: loop nests and matrix products.
        schedules: How each loop nest is run.
        fusion: How the loop nests came about.
        arena: The memory of its temporaries.
        nanoseconds: A rough estimate of a call.
        end: The function that frees what it keeps between calls; None if that is nothing.
    """

    steps: tuple[Step, ...]
    schedules: dict[Kernel, Schedule]
    fusion: Fusion
    arena: Arena
    nanoseconds: float
    end: str | None


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
        if group.opaque is not None:
            steps.append(_product(group.opaque, buffers))
        else:
            steps += divided(build(group, buffers, name))
    temporaries = [[b for b in step.buffers if b.kind == "temporary"] for step in steps]
    arena = Arena(temporaries)
    slots = {buffer: n for n, buffer in enumerate(_all_buffers(graph, buffers, steps))}
    schedules = {}
    for step in steps:
        if isinstance(step, Kernel):
            schedules[step] = scheduled(step, target.vector_bytes)
            Loops(module, step, schedules[step], slots).write()
    _write_run(module, prefix, steps, schedules, arena, slots, target)
    total = sum(work(step) if isinstance(step, Kernel) else step.nanoseconds for step in steps)
    end = f"{prefix}_end" if arena.size > _STACK else None
    return Native(tuple(steps), schedules, fusion, arena, total, end)


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


def _write_run(
    module: Module,
    name: str,
    steps: Sequence[Step],
    schedules: dict[Kernel, Schedule],
    arena: Arena,
    slots: dict[Buffer, int],
    target: Target,
) -> None:
    b = Builder(module)
    table = b.alloca(PTR, max(len(slots), 1))
    memory = _take_arena(b, name, arena)
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
    for step in steps:
        if isinstance(step, Kernel):
            parts = schedules[step].parts
            if parts == 1:
                b.emit(f"call void @{step.name}({table}, i64 0)")
            else:
                module.declare("gt_parallel", "void", [PTR, PTR, I64])
                b.emit(f"call void @gt_parallel(ptr @{step.name}, {table}, i64 {parts})")
        else:
            step.write(b, addresses, target)
    _give_back_arena(b, name, arena, memory)
    b.emit("ret i32 0")
    module.define(b.function(f"define i32 @{name}(ptr %inputs, ptr %outputs)"))


def _take_arena(b: Builder, name: str, arena: Arena) -> Value:
    """Memory for temporaries: the one kept from the last call, or new if that is in use."""
    if arena.size <= _STACK:
        return b.alloca(Type("i8"), max(arena.size, 1))
    b.module.define(f"@{name}_arena = internal global ptr null")
    b.module.declare("aligned_alloc", PTR, [I64, I64])
    b.module.declare("free", "void", [PTR])
    kept = b.instruction(PTR, f"atomicrmw xchg ptr @{name}_arena, ptr null seq_cst")
    none = b.instruction(kept.type.of("i1"), f"icmp eq {kept}, null")
    make, failed, go = b.new_block("make"), b.new_block("failed"), b.new_block("go")
    before = b.block
    b.branch_if(none, make, go)
    b.start(make)
    made = b.call("aligned_alloc", PTR, Value(I64, "64"), Value(I64, str(arena.size)))
    b.branch_if(b.instruction(none.type, f"icmp eq {made}, null"), failed, go)
    b.start(failed)
    b.emit("ret i32 1")
    b.start(go)
    return b.phi(PTR, (kept, before), (made, make))


def _give_back_arena(b: Builder, name: str, arena: Arena, memory: Value) -> None:
    if arena.size <= _STACK:
        return
    old = b.instruction(PTR, f"atomicrmw xchg ptr @{name}_arena, {memory} seq_cst")
    b.emit(f"call void @free({old})")
    end = Builder(b.module)
    kept = end.instruction(PTR, f"atomicrmw xchg ptr @{name}_arena, ptr null seq_cst")
    end.emit(f"call void @free({kept})")
    end.emit("ret void")
    b.module.define(end.function(f"define void @{name}_end()"))
