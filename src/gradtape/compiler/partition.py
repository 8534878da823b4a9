"""Native and eager parts: a graph as a sequence of native subgraphs and single eager ops.

Native ops go into as few subgraphs as the eager ones between them allow: phase p holds all native
ops that are needed once the eager ops before phase p have run, and some whose operands are then
available.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gradtape.compiler.phases import phases_of
from gradtape.core.promotion import NATIVE, is_half
from gradtape.graph.ir import Graph, Node, Operand, Value, replaced


class NativePart(NamedTuple):
    """A subgraph; its inputs and outputs are values of the whole graph."""

    graph: Graph
    inputs: tuple[Value, ...]
    outputs: tuple[Operand, ...]


class EagerPart(NamedTuple):
    """An op that runs its eager kernel, with the reason."""

    node: Node
    reason: str


Part = NativePart | EagerPart


def partition(graph: Graph, obstacle: Callable[[Node], str | None]) -> list[Part]:
    """The parts of a graph, in an order in which they can run."""
    reasons = {node: obstacle(node) for node in graph.nodes}
    phases = phases_of(graph, reasons)
    native: dict[int, list[Node]] = {}
    eager: dict[int, list[EagerPart]] = {}
    for node, phase in phases.items():
        reason = reasons[node]
        if reason is None:
            native.setdefault(phase, []).append(node)
        else:
            eager.setdefault(phase, []).append(EagerPart(node, reason))
    if not eager and all(map(_is_native, graph.outputs)):
        # The whole graph, including inputs that nothing reads and outputs that are inputs.
        return [NativePart(graph, graph.inputs, graph.outputs)]
    parts: list[Part] = []
    needed = _needed(graph, native)
    for phase in sorted({*native, *eager}):
        if phase in native:
            parts.append(native_part(graph, native[phase], needed[phase]))
        parts += eager.get(phase, [])
    return parts


def _is_native(output: Operand) -> bool:
    return output.dtype in NATIVE or is_half(output.dtype)


def _needed(graph: Graph, phases: Mapping[int, Sequence[Node]]) -> dict[int, dict[Value, None]]:
    """The values of each phase that something outside it reads."""
    phase_of = {node: phase for phase, nodes in phases.items() for node in nodes}
    needed: dict[int, dict[Value, None]] = {phase: {} for phase in phases}
    reads = [(operand, phase_of.get(node)) for node in graph.nodes for operand in node.operands]
    for operand, reader in (*reads, *((output, None) for output in graph.outputs)):
        if isinstance(operand, Value) and operand.node in phase_of:
            phase = phase_of[operand.node]
            if phase != reader:
                needed[phase][operand] = None
    return needed


def native_part(graph: Graph, nodes: Sequence[Node], outputs: Iterable[Value]) -> NativePart:
    """Some nodes of a graph as a graph of their own: nodes and values belong to one graph only."""
    own = {value for node in nodes for value in node.outputs}
    read = (operand for node in nodes for operand in node.operands)
    inputs = tuple(dict.fromkeys(o for o in read if isinstance(o, Value) and o not in own))
    part = Graph(graph.name, inputs, nodes, tuple(outputs))
    return NativePart(replaced(part, {}), inputs, part.outputs)
