"""From a graph of native ops to one native function: `i32 run(ptr inputs, ptr outputs)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradtape.compiler.alike import Pattern, families
from gradtape.compiler.build import build
from gradtape.compiler.fuse import Fusion
from gradtape.compiler.kernel import Buffer, Failure, Kernel, Parameters
from gradtape.compiler.llvm.builder import Module
from gradtape.compiler.llvm.link import Target
from gradtape.compiler.llvm.loops import Loops
from gradtape.compiler.memory import Arena
from gradtape.compiler.ordered import ordered
from gradtape.compiler.product import Product, product_of
from gradtape.compiler.roots import source_of_matrix
from gradtape.compiler.schedule import Schedule, divided, scheduled, work
from gradtape.compiler.sequence import FIRST_FAILURE, Call, Plan, Step, write_sequence
from gradtape.core.lowering import Contraction
from gradtape.graph.ir import Graph, Literal, Node, Rewriter, Value as GraphValue
from gradtape.ops.cast import copy_op
from gradtape.ops.shape import broadcast_op


class Native(NamedTuple):
    """A graph as native code, not compiled yet.

    Attributes:
        steps: What it does, in order: loop nests and matrix products.
        schedules: How each loop nest is run.
        functions: The name of the function of each loop nest; those that are alike share one.
        fusion: How the loop nests came about.
        arena: The memory of its temporaries.
        nanoseconds: A rough estimate of a call.
        failures: The conditions it checks, in the order of the graph.
        name: The name of the function.
    """

    steps: tuple[Step, ...]
    schedules: dict[Kernel, Schedule]
    functions: dict[Kernel, str]
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
            new = rewriter.add(broadcast_op, [new], {"shape": ()})
        elif new.node is None or new in taken:
            new = rewriter.add(copy_op, [new], {})
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
            product = _product(group.opaque, buffers)
            steps.append(product.with_work(f"{name}_parts", target))
        else:
            steps += ordered(group.opaque, buffers, name)
    temporaries = [[b for b in step.buffers if b.kind == "temporary"] for step in steps]
    arena = Arena(temporaries)
    used = _used_buffers(graph, buffers, steps)
    slots = {buffer: n for n, buffer in enumerate(used)}
    failures = _failures(graph, steps)
    codes = {failure: FIRST_FAILURE + n for n, failure in enumerate(failures)}
    schedules = {
        step: scheduled(step, target.vector_bytes) for step in steps if isinstance(step, Kernel)
    }
    calls = _write_kernels(module, schedules, slots, codes)
    places = {buffers[value]: n for n, value in enumerate(graph.inputs)}
    places |= {buffers[value]: n for n, value in enumerate(graph.outputs)}  # type: ignore[index]
    plan = Plan(prefix, tuple(steps), calls, arena, slots, places, len(failures))
    write_sequence(module, plan, target)
    total = sum(work(step) if isinstance(step, Kernel) else step.nanoseconds for step in steps)
    functions = {kernel: call.function for kernel, call in calls.items()}
    return Native(plan.steps, schedules, functions, fusion, arena, total, failures, prefix)


def _write_kernels(
    module: Module,
    schedules: Mapping[Kernel, Schedule],
    slots: Mapping[Buffer, int],
    codes: Mapping[Failure, int],
) -> dict[Kernel, Call]:
    """Write the functions of kernels, one for those that are alike; gives how each is called."""
    calls: dict[Kernel, Call] = {}
    table = Parameters(slots, len(slots), codes)
    patterns = [Pattern(kernel, schedule, codes) for kernel, schedule in schedules.items()]
    for family in families(patterns):
        first = family.patterns[0]
        schedule = schedules[first.kernel]
        if len(family.patterns) == 1:
            Loops(module, first.kernel, schedule, table).write()
            calls[first.kernel] = Call(first.kernel.name, schedule.parts)
            continue
        Loops(module, *first.with_parameters(schedule, family.places)).write()
        for pattern in family.patterns:
            words = tuple(pattern.words[place] for place in family.places)
            calls[pattern.kernel] = Call(first.kernel.name, schedule.parts, pattern.buffers, words)
    return calls


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


def _used_buffers(
    graph: Graph, buffers: Mapping[GraphValue, Buffer], steps: Sequence[Step]
) -> list[Buffer]:
    """Inputs, outputs, then temporaries that steps use: the order of the table of addresses."""
    used = {buffer: None for step in steps for buffer in step.buffers}
    given = dict.fromkeys(buffers[value] for value in (*graph.inputs, *graph.outputs))  # type: ignore[index]
    found = [buffer for buffer in given if buffer in used]
    return found + [buffer for buffer in used if buffer.kind == "temporary"]


def _product(node: Node, buffers: dict[GraphValue, Buffer]) -> Product:
    sources = []
    for operand in node.operands:
        assert isinstance(operand, GraphValue)  # numbers have no axes to multiply along
        source = source_of_matrix(operand)
        sources.append((buffers[source.value], source.shape, source.transposed))
    return product_of(sources[0], sources[1], buffers[node.outputs[0]])
