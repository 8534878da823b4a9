"""Native and eager parts: a graph as a sequence of native subgraphs and single eager ops.

Native ops go into as few subgraphs as the eager ones between them allow: phase p holds all native
ops whose operands are available once the eager ops before phase p have run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gradtape.core.promotion import NATIVE
from gradtape.graph.ir import Graph, Node, Operand, Rewriter, Value


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
    there: dict[Value, int] = dict.fromkeys(graph.inputs, 0)
    native: dict[int, list[Node]] = {}
    eager: dict[int, list[EagerPart]] = {}
    for node in graph.nodes:
        operands = [operand for operand in node.operands if isinstance(operand, Value)]
        phase = max((there[operand] for operand in operands), default=0)
        reason = obstacle(node)
        if reason is None:
            native.setdefault(phase, []).append(node)
        else:
            eager.setdefault(phase, []).append(EagerPart(node, reason))
        for value in node.outputs:
            there[value] = phase + (reason is not None)
    if not eager and all(output.dtype in NATIVE for output in graph.outputs):
        # The whole graph, including inputs that nothing reads and outputs that are inputs.
        return [NativePart(graph, graph.inputs, graph.outputs)]
    parts: list[Part] = []
    needed = _needed(graph, native)
    for phase in sorted({*native, *eager}):
        if phase in native:
            parts.append(_native_part(graph, native[phase], needed[phase]))
        parts += eager.get(phase, [])
    return parts


def _needed(graph: Graph, phases: Mapping[int, Sequence[Node]]) -> dict[int, dict[Value, None]]:
    """The values of each phase that something outside it reads."""
    phase_of = {node: phase for phase, nodes in phases.items() for node in nodes}
    needed: dict[int, dict[Value, None]] = {phase: {} for phase in phases}

    def note(operand: Operand, reader: int | None) -> None:
        made_by = operand.node if isinstance(operand, Value) else None
        phase = None if made_by is None else phase_of.get(made_by)
        if phase is not None and phase != reader:
            needed[phase][operand] = None  # type: ignore[index] # it is a value

    for node in graph.nodes:
        for operand in node.operands:
            note(operand, phase_of.get(node))
    for output in graph.outputs:
        note(output, None)
    return needed


def _native_part(graph: Graph, nodes: list[Node], needed: Mapping[Value, None]) -> NativePart:
    own = {value for node in nodes for value in node.outputs}
    inputs: dict[Value, None] = {}
    for node in nodes:
        for operand in node.operands:
            if isinstance(operand, Value) and operand not in own:
                inputs.setdefault(operand)
    part = Graph(graph.name, tuple(inputs), nodes, tuple(needed))
    # A graph of its own: nodes and values belong to one graph only.
    rewriter = Rewriter(part)
    for node in nodes:
        rewriter.copy(node)
    return NativePart(rewriter.finish(), tuple(inputs), tuple(needed))
