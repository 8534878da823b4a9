"""Checks that a graph is valid, which the compiler makes between passes in debug mode."""

from __future__ import annotations

from collections.abc import Iterator

from gradtape.core.aval import aval_of
from gradtape.errors import GradtapeError, a_type
from gradtape.graph.control_faults import control_faults
from gradtape.graph.ir import Graph, Literal, Node, Value
from gradtape.graph.text import show_aval, show_node, show_operand, value_names

_ADVICE = (
    "a graph makes each value once, before it is read. This is a bug of a pass or of a shape rule, "
    "not of the traced function"
)


def verify(graph: Graph) -> None:
    """Check that a graph can run as it is.

    Every value is made once, by an input or by one node, before it is read; the results of every
    node agree with the shape rule of its op; all outputs are made. The same holds for graphs in
    parameters.

    Args:
        graph: The graph to check.

    Raises:
        GradtapeError: It cannot. The error shows the node and the line of code it is from.

    >>> from gradtape.core.aval import aval_of
    >>> from gradtape.graph.trace import trace
    >>> verify(trace(np.sin, [aval_of(np.ones(3))]).graph)
    """
    for fault in faults(graph):
        raise GradtapeError(f"{fault}; {_ADVICE}")


def faults(graph: Graph) -> Iterator[str]:
    """What is wrong with a graph or with those in its parameters, each with its node and line."""
    for one in graph.nested():
        names = value_names(one)
        for what, node in _faults(one, names):
            at = "" if node is None else f" at `{show_node(node, names)}`"
            from_line = "" if node is None or not node.line else f", from {node.line}"
            yield f"graph {one.name}: {what}{at}{from_line}"


def _faults(graph: Graph, names: dict[Value, str]) -> Iterator[tuple[str, Node | None]]:
    """What is wrong with a graph, each with the node it is about, if any."""
    made: set[Value] = set()
    for value in graph.inputs:
        if value in made:
            yield f"input {names[value]} is there twice", None
        if value.node is not None:
            yield f"input {names[value]} is the result of {value.node.op.name}", None
        made.add(value)
    for node in graph.nodes:
        for what in (
            *_faults_of_operands(node, made, names),
            *_faults_of_results(node, made),
            *control_faults(node),
        ):
            yield what, node
        made.update(node.outputs)
    for place, output in enumerate(graph.outputs):
        if isinstance(output, Value) and output not in made:
            yield f"output {place} is not made by any node or input", None


def _faults_of_operands(node: Node, made: set[Value], names: dict[Value, str]) -> Iterator[str]:
    for place, operand in enumerate(node.operands):
        if isinstance(operand, Value):
            if operand not in made:
                known = show_operand(operand, names)
                yield f"operand {place} ({known}) is not made before it is read"
        elif not isinstance(operand, Literal):
            yield f"operand {place} is {a_type(operand)}, expected a value or a literal"
        elif operand.aval != aval_of(operand.value):
            yield f"the literal {operand.value!r} says it is {show_aval(operand.aval)}"


def _faults_of_results(node: Node, made: set[Value]) -> Iterator[str]:
    for index, value in enumerate(node.outputs):
        if value in made:
            yield "the node is there twice"
        if value.node is not node or value.index != index:
            yield f"result {index} belongs to another node"
    try:
        result = node.op.infer(*(operand.aval for operand in node.operands), **node.params)
    except Exception as error:
        yield f"the shape rule of the op raises: {error}"
        return
    expected = (result,) if node.op.outputs == 1 else tuple(result)
    if tuple(value.aval for value in node.outputs) != expected:
        yield f"the shape rule of the op gives {', '.join(map(show_aval, expected))}"
