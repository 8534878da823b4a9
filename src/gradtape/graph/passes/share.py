"""Common subexpressions: the same op on the same operands is computed once."""

from __future__ import annotations

from typing import Any

from gradtape.graph.ir import Graph, Node, Operand, Rewriter, Value, param_key


def share(graph: Graph) -> Graph:
    """The graph with equal nodes merged; ops with an effect stay apart.

    >>> from gradtape.core.aval import aval_of
    >>> from gradtape.graph.trace import trace
    >>> share(trace(lambda x: np.exp(x) + np.exp(x), [aval_of(1.0)]).graph)
    <graph function: 1 inputs, 2 nodes>
    """
    rewriter = Rewriter(graph)
    numbers: dict[Value, int] = {}
    for value in graph.inputs:
        numbers[rewriter[value]] = len(numbers)  # type: ignore[index]
    known: dict[Any, Node] = {}
    for node in graph.nodes:
        key = None if node.has_effect() else _key(node, rewriter.operands(node), numbers)
        first = known.get(key)
        if first is None:
            new = rewriter.copy(node)
            for value in new.outputs:
                numbers[value] = len(numbers)
            if key is not None:
                known[key] = new
        else:
            for old, value in zip(node.outputs, first.outputs, strict=True):
                rewriter.replace(old, value)
    return rewriter.finish()


def _key(node: Node, operands: tuple[Operand, ...], numbers: dict[Value, int]) -> Any:
    """A key that is equal for nodes that compute the same. Values are identified by number."""
    keys = [
        (0, numbers[operand]) if isinstance(operand, Value) else (1, operand.key)
        for operand in operands
    ]
    # The larger of 0.0 and -0.0 is whichever comes first, and a product of complex numbers rounds
    # in another order, so whether operands can be swapped depends on the dtype.
    if node.outputs[0].dtype.kind in node.op.facts.commutes:
        keys.sort()
    params = tuple(sorted((name, param_key(value)) for name, value in node.params.items()))
    return node.op, tuple(keys), params
