"""Cutting a part out of a graph: the nodes that compute some values from others."""

from __future__ import annotations

from collections.abc import Sequence

from gradtape.errors import ArgumentError, a_type
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value, sources
from gradtape.graph.text import value_names

# One value or several, each by itself or by its name in the text of the graph.
Chosen = Sequence[Value | str] | Value | str


def subgraph(graph: Graph, outputs: Chosen, inputs: Chosen | None = None) -> Graph:
    """The part of a graph that computes some values from others; see `Graph.subgraph`."""
    names = value_names(graph)
    wanted = _chosen(names, outputs, "outputs")
    given = set(graph.inputs if inputs is None else _chosen(names, inputs, "inputs"))
    needed = set(sources(wanted, lambda value: value not in given))
    missing = [value for value in graph.inputs if value in needed and value not in given]
    if missing:
        listed = ", ".join(names[value] for value in missing)
        raise ArgumentError(
            f"subgraph: got inputs that do not suffice; the outputs also depend on {listed}, "
            "expected that among the inputs, or values computed from it"
        )
    # Without `inputs`, only those that are needed; otherwise just those that were asked for.
    taken = (
        [value for value in graph.inputs if value in needed]
        if inputs is None
        else _chosen(names, inputs, "inputs")
    )
    if len(set(taken)) != len(taken):
        raise ArgumentError("subgraph: got the same value twice among inputs, expected it once")
    return _cut(graph, wanted, taken, needed)


def _chosen(names: dict[Value, str], chosen: Chosen, what: str) -> list[Value]:
    """Values by themselves or by their names, checked."""
    by_name = {name: value for value, name in names.items()}
    found = []
    for one in [chosen] if isinstance(chosen, Value | str) else chosen:
        value = by_name.get(one) if isinstance(one, str) else one
        if not isinstance(value, Value) or value not in names:
            got = repr(one) if isinstance(one, str) else a_type(one)
            raise ArgumentError(
                f"subgraph: got {got} among {what}, expected values of the graph, or their names "
                f"from '%0' to '%{len(names) - 1}' as print(graph) shows them"
            )
        found.append(value)
    return found


def _cut(
    graph: Graph, outputs: Sequence[Value], inputs: Sequence[Value], needed: set[Value]
) -> Graph:
    """A graph of copies of the nodes that make needed values."""
    copies: dict[Value, Value] = {value: Value(value.aval) for value in inputs}
    nodes = []

    def copied(operand: Operand) -> Operand:
        return operand if isinstance(operand, Literal) else copies[operand]

    for node in graph.nodes:
        if any(value in needed and value not in copies for value in node.outputs):
            avals = [value.aval for value in node.outputs]
            operands = [copied(operand) for operand in node.operands]
            new = Node(node.op, operands, node.params, avals, node.line, node.region)
            nodes.append(new)
            for value, copy in zip(node.outputs, new.outputs, strict=True):
                copies.setdefault(value, copy)
    return Graph(graph.name, [copies[v] for v in inputs], nodes, [copies[v] for v in outputs])
