"""From a graph to a plan: steps in order, and their memory, for no particular machine.

A step is a loop nest (`Kernel`), a matrix product (`Product`), calls of LAPACK (`LibraryCall`), or
a loop or branch of the user's: of small arrays (`ElementProgram`) or of any (`ArrayLoop`). A target
compiles and runs plans (`compiler.target`). It may replace steps by others that suit its machine;
the memory is then laid out for those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gradtape import config
from gradtape.compiler.array_loop import ArrayLoop, array_loop
from gradtape.compiler.build import build
from gradtape.compiler.classify import cost_of, fits_registers
from gradtape.compiler.element_builder import element_program
from gradtape.compiler.element_program import ElementProgram
from gradtape.compiler.fuse import Fusion, Group
from gradtape.compiler.fusion_roots import source_of_matrix
from gradtape.compiler.kernel import Buffer, Failure, Kernel
from gradtape.compiler.library_call import LibraryCall
from gradtape.compiler.library_steps import library_steps
from gradtape.compiler.matrix_kernels import matrix_kernels
from gradtape.compiler.memory import Arena
from gradtape.compiler.product import Product, product_of
from gradtape.compiler.serial_kernels import serial_kernels
from gradtape.core.lazy import lazy
from gradtape.core.lowering import Contraction, Matrices
from gradtape.core.promotion import is_half
from gradtape.graph.ir import Graph, Literal, Node, Rewriter, Value
from gradtape.ops.cast import copy_op
from gradtape.ops.shape import broadcast_op

Step = Kernel | Product | LibraryCall | ElementProgram | ArrayLoop

# Loops of arrays that have no more elements than this are done in registers, and others if that is
# estimated to be faster. The numbers are from a few measured loops: a call of a kernel takes about
# as long as 30 instructions on numbers, and one on a vector of eight as long as 1.5 of them. For
# loops with others inside there is no estimate.
_FEW_ELEMENTS, _FEW_IN_NESTED = 2, 16
_CALL, _LANES, _VECTOR = 30, 8, 1.5


@dataclass(eq=False, repr=False)
class Plan:
    """The steps to run for a graph.

    Attributes:
        name: The prefix of the names of its kernels.
        fusion: The groups of nodes that became steps.
        inputs: The buffers of the graph's inputs, in order.
        outputs: The buffers of the graph's outputs, in order.
        steps_of_groups: Each group, in the order in which they run, with the steps it became.
        failures: The conditions that kernels check, in the order in which eager code would.
    """

    name: str
    fusion: Fusion
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    steps_of_groups: Sequence[tuple[Group, tuple[Step, ...]]]
    failures: tuple[Failure, ...]

    @property
    def graph(self) -> Graph:
        """The graph it computes; every output has a node of its own."""
        return self.fusion.graph

    @lazy
    def steps(self) -> tuple[Step, ...]:
        """All steps, in the order in which they run."""
        return tuple(step for _, steps in self.steps_of_groups for step in steps)

    @lazy
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers that steps use: inputs, outputs, then temporaries."""
        used = {buffer: None for step in self.steps for buffer in step.buffers}
        given = [buffer for buffer in (*self.inputs, *self.outputs) if buffer in used]
        return (*given, *(buffer for buffer in used if buffer.kind == "temporary"))

    @lazy
    def arena(self) -> Arena:
        """The layout of the temporaries in one stretch of memory."""
        return Arena([[b for b in step.buffers if b.kind == "temporary"] for step in self.steps])

    @lazy
    def endless(self) -> bool:
        """Whether it has a loop that ends only when a condition says so."""
        return any(
            step.endless for step in self.steps if isinstance(step, ElementProgram | ArrayLoop)
        )

    def with_steps(self, change: Callable[[Step], Sequence[Step]]) -> Plan:
        """The plan with each step replaced by those that `change` returns for it.

        They may use temporaries of their own, but must not check other conditions.
        """
        steps = [
            (group, tuple(new for step in steps for new in change(step)))
            for group, steps in self.steps_of_groups
        ]
        return replace(self, steps_of_groups=steps)


def plan_of(graph: Graph, name: str = "run") -> Plan:
    """The plan of a graph, all of whose nodes have a native form.

    Args:
        graph: The graph.
        name: The prefix of the names of kernels.
    """
    graph = _with_own_outputs(graph)
    fusion = Fusion(graph)
    buffers = _buffers(graph, fusion)
    steps_of_groups = [
        (group, _steps(group, buffers, f"{name}_k{number}"))
        for number, group in enumerate(fusion.groups)
    ]
    checks: dict[Failure, int] = {}
    for group, steps in steps_of_groups:
        for step in steps:
            for failure in _failures(step):
                # What is in a loop counts as being where the loop is.
                node = failure.node if group.opaque is None else group.opaque
                checks.setdefault(failure, fusion.order[node])
    return Plan(
        name,
        fusion,
        tuple(buffers[value] for value in graph.inputs),
        tuple(buffers[value] for value in graph.outputs),  # type: ignore[index]
        steps_of_groups,
        tuple(sorted(checks, key=lambda failure: checks[failure])),
    )


def _failures(step: Step) -> Iterable[Failure]:
    """The conditions that a step checks."""
    if isinstance(step, Product):
        return ()
    if isinstance(step, ArrayLoop | LibraryCall):
        return step.failures
    return (part.extra for part in step.expressions if part.name == "check")


def _with_own_outputs(graph: Graph) -> Graph:
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
    return rewriter.finish(outputs)


def _buffers(graph: Graph, fusion: Fusion) -> dict[Value, Buffer]:
    buffers: dict[Value, Buffer] = {}
    for n, value in enumerate(graph.inputs):
        buffers[value] = Buffer(f"in{n}", value.shape, value.dtype, "input")
    for n, output in enumerate(graph.outputs):
        assert isinstance(output, Value)
        buffers[output] = Buffer(f"out{n}", output.shape, output.dtype, "output")
    for group in fusion.groups:
        for value in group.members:
            if value in fusion.stored and value not in buffers:
                name = f"t{len(buffers)}"
                buffers[value] = Buffer(name, value.shape, value.dtype, "temporary")
    return buffers


def _steps(group: Group, buffers: dict[Value, Buffer], name: str) -> tuple[Step, ...]:
    if group.opaque is None:
        return (build(group, buffers, name),)
    if group.opaque.op.kind == "control":
        return (_loop(group.opaque, buffers, name),)
    if isinstance(group.opaque.op.lower, Contraction):
        return (_product(group.opaque, buffers),)
    if isinstance(group.opaque.op.lower, Matrices):
        make = matrix_kernels if fits_registers(group.opaque) else library_steps
        return tuple(make(group.opaque, buffers, name))
    return tuple(serial_kernels(group.opaque, buffers, name))


def _loop(node: Node, buffers: dict[Value, Buffer], name: str) -> ElementProgram | ArrayLoop:
    """A loop or branch of the user's, in the form that is likely to be faster.

    Numbers in registers cost no memory traffic and no calls; arrays are computed in vectors.
    """
    in_registers = config.uses("registers") and not _holds_halves(node)
    program = element_program(node, buffers, name) if in_registers else None
    if program is not None:
        few = _FEW_IN_NESTED if program.nested else _FEW_ELEMENTS
        if program.largest <= few:
            return program
    loop = array_loop(node, buffers, name, plan_of)
    if program is None or program.nested:
        return loop
    steps = [step for plan in loop.plans for step in plan.steps]
    by_arrays = sum(_CALL + _cost(step) for step in steps)
    return program if cost_of(program.expressions) < by_arrays else loop


def _holds_halves(node: Node) -> bool:
    """Whether a loop has numbers of 16 bits, which are not carried in registers."""
    graphs = (inner for graph in node.graphs() for inner in graph.nested())
    return any(is_half(value.dtype) for graph in graphs for value in graph.values())


def _cost(step: Step) -> float:
    """The rough cost of a step, in instructions on numbers."""
    if isinstance(step, Kernel):
        return math.ceil(step.points / _LANES) * cost_of(step.expressions) * _VECTOR
    return step.flops / _LANES if isinstance(step, Product | LibraryCall) else math.inf


def _product(node: Node, buffers: Mapping[Value, Buffer]) -> Product:
    # All operands are values: numbers have no axes to multiply along.
    sources = [source_of_matrix(operand) for operand in node.operands]  # type: ignore[arg-type]
    x, y = ((buffers[source.value], source.shape, source.transposed) for source in sources)
    return product_of(x, y, buffers[node.outputs[0]])
