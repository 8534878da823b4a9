"""Which loops and branches have native code: those of which every part has."""

from __future__ import annotations

from collections.abc import Iterator

from gradtape import config
from gradtape.compiler import classify
from gradtape.graph.ir import Graph, Node


def obstacle(node: Node, *, settling: bool = False) -> str | None:
    """The reason why a node has no native code and runs its eager kernel; None if it has.

    Args:
        node: The node.
        settling: Whether no other program can take over from the one it is in.
    """
    reason = classify.obstacle(node, settling=settling)
    if reason is not None or node.op.kind != "control":
        return reason
    if not config.uses("loops"):
        return "native loops are switched off"
    for graph in graphs_of(node):
        for inner in graph.nodes:
            reason = obstacle(inner, settling=settling)
            if reason is not None:
                return f"{node.op.name}: {reason}"
    return None


def graphs_of(node: Node) -> Iterator[Graph]:
    """The graphs among the parameters of a node."""
    for value in node.params.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Graph):
                yield part
