"""Dead code: nodes whose results nothing reads."""

from __future__ import annotations

from gradtape.graph.ir import Graph, Node, Value


def dead(graph: Graph) -> Graph:
    """The graph without nodes whose results are not used.

    Ops with side effects stay, and loops and branches around them; so do all inputs, as they are
    arguments.

    >>> from gradtape.core.aval import aval_of
    >>> from gradtape.graph.trace import trace
    >>> def function(x):
    ...     np.exp(x)
    ...     return np.sin(x)
    >>> dead(trace(function, [aval_of(1.0)]).graph)
    <graph function: 1 inputs, 1 nodes>
    """
    read = {output for output in graph.outputs if isinstance(output, Value)}
    kept: list[Node] = []
    # From the last node to the first, so that all readers of a node's results are known.
    for node in reversed(graph.nodes):
        if node.has_effect() or not read.isdisjoint(node.outputs):
            kept.append(node)
            read.update(operand for operand in node.operands if isinstance(operand, Value))
    return Graph(graph.name, graph.inputs, kept[::-1], graph.outputs)
