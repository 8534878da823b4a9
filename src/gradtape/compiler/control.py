"""Which loops and branches have native code: those of which every part has."""

from __future__ import annotations

from collections.abc import Iterator

from gradtape import config
from gradtape.compiler import classify
from gradtape.graph.ir import Graph, Node


def obstacle(node: Node) -> str | None:
    """The reason why a node has no native code and runs its eager kernel; None if it has."""
    reason = classify.obstacle(node)
    if reason is not None or node.op.kind != "control":
        return reason
    if not config.uses("loops"):
        return "native loops are switched off"
    for graph in graphs_of(node):
        for inner in graph.nodes:
            reason = obstacle(inner)
            if reason is not None:
                return f"{node.op.name}: {reason}"
    return None


def graphs_of(node: Node) -> Iterator[Graph]:
    """The graphs among the parameters of a node."""
    for value in node.params.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Graph):
                yield part
