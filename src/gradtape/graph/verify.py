"""Checks that a graph is valid, which the compiler makes between passes in debug mode."""

from __future__ import annotations

from typing import Any

from gradtape.core.aval import Aval, aval_of
from gradtape.errors import GradtapeError, a_type
from gradtape.graph.ir import Graph, Literal, Node, Value
from gradtape.graph.show import show_aval, show_node, show_operand, value_names


def verify(graph: Graph) -> None:
    """Check that a graph can run as it is.

    Every value is made once, by an input or by one node, before it is read; the results of every
    node agree with the shape rule of its op; all outputs are made.

    Args:
        graph: The graph to check.

    Raises:
        GradtapeError: It cannot. The error shows the node and the line of code it is from.

    >>> from gradtape.core.aval import aval_of
    >>> from gradtape.graph.trace import trace
    >>> verify(trace(np.sin, [aval_of(np.ones(3))]).graph)
    """
    names = value_names(graph)
    made: set[Value] = set()
    for value in graph.inputs:
        if value in made:
            raise _broken(graph, f"input {names[value]} is there twice")
        if value.node is not None:
            raise _broken(graph, f"input {names[value]} is the result of {value.node.op.name}")
        made.add(value)
    for node in graph.nodes:
        _check_operands(graph, node, made, names)
        _check_results(graph, node, made, names)
        made.update(node.outputs)
    for place, output in enumerate(graph.outputs):
        if isinstance(output, Value) and output not in made:
            raise _broken(graph, f"output {place} is not made by any node or input")


def _check_operands(graph: Graph, node: Node, made: set[Value], names: dict[Value, str]) -> None:
    for place, operand in enumerate(node.operands):
        if isinstance(operand, Value):
            if operand not in made:
                known = show_operand(operand, names)
                raise _broken(
                    graph, f"operand {place} ({known}) is not made before it is read", node, names
                )
        elif not isinstance(operand, Literal):
            raise _broken(
                graph,
                f"operand {place} is {a_type(operand)}, expected a value or a literal",
                node,
                names,
            )
        elif operand.aval != aval_of(operand.value):
            raise _broken(
                graph,
                f"the literal {operand.value!r} says it is {show_aval(operand.aval)}",
                node,
                names,
            )


def _check_results(graph: Graph, node: Node, made: set[Value], names: dict[Value, str]) -> None:
    for index, value in enumerate(node.outputs):
        if value in made:
            raise _broken(graph, "the node is there twice", node, names)
        if value.node is not node or value.index != index:
            raise _broken(graph, f"result {index} belongs to another node", node, names)
    expected = _inferred(graph, node, names)
    got = tuple(value.aval for value in node.outputs)
    if got != expected:
        rule = ", ".join(map(show_aval, expected))
        raise _broken(graph, f"the shape rule of the op gives {rule}", node, names)


def _inferred(graph: Graph, node: Node, names: dict[Value, str]) -> tuple[Aval, ...]:
    """The abstract results according to the op's shape rule."""
    try:
        result: Any = node.op.infer(*(operand.aval for operand in node.operands), **node.params)
    except Exception as error:
        raise _broken(graph, f"the shape rule of the op raises: {error}", node, names) from error
    return (result,) if node.op.outputs == 1 else tuple(result)


def _broken(
    graph: Graph,
    what: str,
    node: Node | None = None,
    names: dict[Value, str] | None = None,
) -> GradtapeError:
    at = "" if node is None else f" at `{show_node(node, names or {})}`"
    from_line = "" if node is None or not node.line else f", from {node.line}"
    return GradtapeError(
        f"graph {graph.name}: {what}{at}{from_line}; a graph makes each value once, before it is "
        "read. This is a bug of a pass or of a shape rule, not of the traced function"
    )
