"""How a traced loss uses its parameters: which ops combine each with what depends on the sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape.core.op import Op, op_of, rule_reads
from gradtape.graph.ir import Graph, Literal, Node, Operand, Rewriter, Value
from gradtape.ops.arithmetic import add

_ADD: Op = op_of(add)


class Use(NamedTuple):
    """One op that combines a parameter with what depends on the sample.

    Attributes:
        node: The call of the op, which has one result.
        position: The parameter among its operands.
        reads: The operands that the rule for this position reads, each a value that depends on the
            sample, an input of the graph, or a number.
    """

    node: Node
    position: int
    reads: tuple[int, ...]

    @property
    def op(self) -> Op:
        """The op that is called."""
        return self.node.op


def dependent_values(graph: Graph, inputs: Sequence[Value]) -> set[Value]:
    """The values that depend on some of the inputs, these included."""
    found = set(inputs)
    for node in graph.nodes:
        if not found.isdisjoint(node.operands):
            found.update(node.outputs)
    return found


def uses_of(
    graph: Graph, parameter: Value, dependent: set[Value], users: dict[Value, list[Node]]
) -> tuple[Value, list[Use]] | None:
    """The ops that decide the gradient by a parameter, up to the order of its elements.

    Args:
        graph: The traced loss.
        parameter: An input of it.
        dependent: The values that depend on the sample.
        users: The nodes that read each value.

    Returns:
        The parameter, or the transposed or reshaped one that is used in its place, and its uses;
        None if it is used in another way.
    """
    value = parameter
    while value not in graph.outputs and len(users.get(value, ())) == 1:
        (node,) = users[value]
        if node.outputs[0] in dependent or not _is_reordering(node):
            break
        value = node.outputs[0]
    nodes = list(dict.fromkeys(users.get(value, ())))
    if value in graph.outputs or not all(node.outputs[0] in dependent for node in nodes):
        return None
    uses = [_use(node, value, graph, dependent) for node in nodes]
    return None if None in uses else (value, uses)  # type: ignore[return-value]


def _is_reordering(node: Node) -> bool:
    """Whether the result has the elements of its only operand, each once."""
    facts = node.op.facts
    if not (facts.rearranges and facts.layout == "view" and len(node.operands) == 1):
        return False
    return math.prod(node.operands[0].shape) == math.prod(node.outputs[0].shape)


def _use(node: Node, value: Value, graph: Graph, dependent: set[Value]) -> Use | None:
    """A use with a rule that needs neither the result nor the parameter; None if it has none."""
    places = [n for n, operand in enumerate(node.operands) if operand is value]
    if len(places) != 1 or not node.op.vjps or node.op.outputs != 1:
        return None
    (position,) = places
    reads = rule_reads(node.op.vjps[position])
    # 0 is the result, and negative numbers stand for all operands from one on; those after the
    # operands are parameters of the op.
    if any(n < 1 or n - 1 == position for n in reads):
        return None
    operands = [n - 1 for n in sorted(reads) if n <= len(node.operands)]
    known = [
        isinstance(x, Literal) or x in dependent or x in graph.inputs
        for x in [node.operands[n] for n in operands]
    ]
    return Use(node, position, tuple(operands)) if all(known) else None


class Tapped(NamedTuple):
    """A loss with zeros added to the results of some ops.

    Attributes:
        graph: Takes the zeros after the inputs of the loss, and returns `values` after it.
        nodes: The ops, in the order of the zeros.
        values: Values of the loss that the rules of these ops read.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    values: tuple[Value, ...]

    def zeros_like(self) -> list[Any]:
        """The shapes and dtypes of the zeros."""
        return [node.outputs[0].aval for node in self.nodes]


def tapped(graph: Graph, uses: Sequence[Use], dependent: set[Value]) -> Tapped:
    """Add zeros to the results of ops; the gradients by these are the cotangents of the ops."""
    nodes = tuple(dict.fromkeys([use.node for use in uses]))
    read: list[Operand] = [use.node.operands[n] for use in uses for n in use.reads]
    values = tuple(dict.fromkeys([x for x in read if isinstance(x, Value) and x in dependent]))
    values = tuple([value for value in values if value not in graph.inputs])
    zeros = {node: Value(node.outputs[0].aval) for node in nodes}
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        new = rewriter.copy(node)
        if node in zeros:
            (out,) = node.outputs
            rewriter.replace(out, rewriter.add(_ADD, [new.outputs[0], zeros[node]], {}, node.line))
    made = rewriter.finish()
    outputs = [*made.outputs[:1], *[rewriter[value] for value in values]]
    inputs = (*made.inputs, *zeros.values())
    return Tapped(Graph(graph.name, inputs, made.nodes, outputs), nodes, values)
