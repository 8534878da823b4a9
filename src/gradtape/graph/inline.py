"""Inlining one graph into another, and expanding composite ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.lowering import Composite
from gradtape.core.promotion import NATIVE
from gradtape.errors import ConversionError, GradtapeError, UnsupportedError
from gradtape.graph.ir import Graph, Literal, Node, Operand, Rewriter, Value, param_key
from gradtape.graph.trace import composition, trace
from gradtape.ops.cast import astype_op


def inline(
    rewriter: Rewriter, graph: Graph, operands: Sequence[Operand], line: str = ""
) -> list[Operand]:
    """Append the nodes of a graph, with the given operands for its inputs; returns its outputs."""
    for value, operand in zip(graph.inputs, operands, strict=True):
        rewriter.replace(value, operand)
    for node in graph.nodes:
        rewriter.copy(node, line=line)
    return [rewriter[output] for output in graph.outputs]


def inlined(graph: Graph) -> Graph:
    """The graph with ops whose graphs are known replaced, recursively, by these."""
    if not any(_known_graph(node) for node in graph.nodes):
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        body = _known_graph(node)
        if body is None:
            rewriter.copy(node)
            continue
        results = inline(rewriter, inlined(body), rewriter.operands(node), node.line)
        for value, result in zip(node.outputs, results, strict=True):
            rewriter.replace(value, result)
    return rewriter.finish()


def _known_graph(node: Node) -> Graph | None:
    lowering = node.op.lower
    return lowering.graph if isinstance(lowering, Composite) else None


def expand(graph: Graph) -> Graph:
    """The graph with composite ops replaced, recursively, by the ops they are composed of."""
    known: dict[Any, Graph | None] = {}
    return _expanded(graph, known)


def _expanded(graph: Graph, known: dict[Any, Graph | None]) -> Graph:
    if not any(isinstance(node.op.lower, Composite) for node in graph.nodes):
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        body = _body(node, known)
        if body is None:
            rewriter.copy(node)
            continue
        given = [o for o in rewriter.operands(node) if not o.aval.weak]
        results = inline(rewriter, body, given, node.line)
        for value, result in zip(node.outputs, results, strict=True):
            if isinstance(result, Literal) or result.aval != value.aval:
                to = {"dtype": value.dtype}
                result = rewriter.add(astype_op, [result], to, node.line)
            rewriter.replace(value, result)
    return rewriter.finish()


def _body(node: Node, known: dict[Any, Graph | None]) -> Graph | None:
    """The graph of a composite op; None for other ops, or if it has no native code."""
    if not isinstance(node.op.lower, Composite):
        return None
    if any(operand.dtype not in NATIVE for operand in node.operands):
        return None
    if any(isinstance(operand, Value) and operand.aval.weak for operand in node.operands):
        return None
    # Python numbers go in as they are: the function may read them.
    numbers = [o.key if isinstance(o, Literal) and o.aval.weak else None for o in node.operands]
    avals = [operand.aval for operand in node.operands if not operand.aval.weak]
    key = (node.op, param_key(node.params), *numbers, *avals)
    if key not in known:
        known[key] = _traced_body(node, avals, known)
    return known[key]


def _traced_body(node: Node, avals: Sequence[Aval], known: dict[Any, Graph | None]) -> Graph | None:
    def function(*values: Any) -> Any:
        left = iter(values)
        operands = [
            o.value if isinstance(o, Literal) and o.aval.weak else next(left) for o in node.operands
        ]
        return composition(node.op)(*operands, **node.params)

    try:
        traced = trace(function, avals, node.op.name)
    except (UnsupportedError, ConversionError):
        return None  # it runs its eager kernel
    if not traced.captures:
        return _expanded(traced.graph, known)
    if node.op.kind == "custom":
        return None  # a user's function with arrays of its own
    raise GradtapeError(f"{node.op.name}: its lowering uses arrays, expected numbers")
