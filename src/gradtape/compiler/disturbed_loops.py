"""Loops and branches with the rounding of every op in them disturbed, for debug mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.graph.ir import Graph, Node, Rewriter, with_graphs

# Given a node, its result and its operands; returns the result with another rounding.
Disturb = Callable[[Node, Any, list[Any]], Any]


def disturbed_loop(node: Node, disturb: Disturb) -> Node:
    """A loop or branch that disturbs each floating-point result in its graphs.

    Args:
        node: The loop or branch.
        disturb: Called with a node, its result and its operands, at every step.
    """
    params = with_graphs(node.params, lambda graph: _disturbed_graph(graph, disturb))
    avals = [value.aval for value in node.outputs]
    return Node(node.op, node.operands, params, avals, node.line)


def _disturbed_graph(graph: Graph, disturb: Disturb) -> Graph:
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        inner = disturbed_loop(node, disturb) if node.op.kind == "control" else node
        operands = rewriter.operands(node)
        new = Node(node.op, operands, inner.params, [v.aval for v in node.outputs], node.line)
        rewriter.nodes.append(new)
        for old, made in zip(node.outputs, new.outputs, strict=True):
            rewriter.replace(old, made)
        value = node.outputs[0] if len(node.outputs) == 1 else None
        if value is not None and value.dtype.kind == "f" and not value.aval.weak:
            given = [new.outputs[0], *operands]
            rewriter.replace(value, rewriter.add(_disturbing(node, disturb), given, {}))
    return rewriter.finish()


def _disturbing(node: Node, disturb: Disturb) -> Op:
    """An op of the result of a node and its operands."""

    def evaluate(_xp: Any, result: Any, *operands: Any) -> Any:
        return disturb(node, np.asarray(result), [np.asarray(x) for x in operands])

    def infer(result: Aval, *_operands: Aval) -> Aval:
        return result

    return Op("disturbed", evaluate, infer)
