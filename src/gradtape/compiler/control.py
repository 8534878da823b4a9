"""Which loops and branches have native code: those of which every part has."""

from __future__ import annotations

from collections.abc import Iterator

from gradtape.compiler import classify
from gradtape.compiler.element_program import element_program
from gradtape.compiler.kernel import Buffer
from gradtape.graph.ir import Graph, Node, Value


def obstacle(node: Node) -> str | None:
    """The reason why a node has no native code and runs its eager kernel; None if it has."""
    reason = classify.obstacle(node)
    if reason is not None or node.op.kind != "control":
        return reason
    for graph in graphs_of(node):
        for inner in graph.nodes:
            reason = obstacle(inner)
            if reason is not None:
                return f"{node.op.name}: {reason}"
    values = [x for x in (*node.operands, *node.outputs) if isinstance(x, Value)]
    buffers = {x: Buffer("x", x.shape, x.dtype, "input") for x in values}
    if element_program(node, buffers, "tried") is None:
        return f"{node.op.name}: too large"
    return None


def graphs_of(node: Node) -> Iterator[Graph]:
    """The graphs among the parameters of a node."""
    for value in node.params.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Graph):
                yield part
