"""Finding patterns: a function is traced once, and its graph followed from the argument on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.op import Op
from gradtape.core.state import values_read
from gradtape.graph.capture import Capture, Guard
from gradtape.graph.derived import pullback
from gradtape.graph.ir import Graph
from gradtape.graph.passes.dead import dead
from gradtape.graph.trace import UNRECORDED
from gradtape.sparsity.compressed import Traced
from gradtape.sparsity.dependencies import Analysis, DenseBlock, Dependence
from gradtape.sparsity.known import Reliance, Source, concrete, is_open, of_source
from gradtape.sparsity.op_rules import rows_of_results
from gradtape.sparsity.pattern import SparsityPattern
from gradtape.sparsity.rows import Rows, identity, nothing, stacked


class Relied(NamedTuple):
    """A value, not of an argument to differentiate by, that a pattern depends on.

    Attributes:
        source: Where it comes from.
        elements: What its elements were, or where they were not zero.
        zeros: Whether only its zeros matter.
    """

    source: Source
    elements: Any
    zeros: bool

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether the pattern still holds, given the values of all inputs."""
        value = _noted(self.source, values)
        now = None if is_open(value) else concrete(value)
        if now is None or now.shape != self.elements.shape:
            return False
        return np.array_equal(now != 0 if self.zeros else now, self.elements)


class Found(NamedTuple):
    """A pattern, and what it depends on.

    Attributes:
        pattern: The pattern.
        relied: The values that it depends on.
        guards: Arrays whose elements decided the graph of a derivative rule.
    """

    pattern: SparsityPattern
    relied: tuple[Relied, ...] = ()
    guards: tuple[Guard, ...] = ()

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether it still holds, given the values of all inputs."""
        for guard in self.guards:
            values_read(guard.array)
        # All are looked at: a function that is being traced depends on each of them.
        held = [relied.holds(values) for relied in self.relied]
        return all(held) and not any(guard.changed() for guard in self.guards)


def _noted(source: Source, values: Sequence[Any]) -> Any:
    """The value of a source; a function that is being traced depends on it from here on."""
    value = source.current() if isinstance(source, Capture) else values[source]
    if isinstance(value, np.ndarray):
        values_read(value)
    return value


def find_pattern(traced: Traced, values: Sequence[Any], *, hessian: bool) -> Found:
    """The pattern of a Jacobian, or of a Hessian.

    Args:
        traced: The function.
        values: The values of all inputs of its graph; those that are known may be used.
        hessian: Whether it is that of the gradient of its first output.
    """
    analysis = Analysis(rows_of_results)
    inputs = _inputs(traced, values)
    graph = traced.graph
    if hessian:
        derived = pullback(_first(graph), traced.chosen, (0,), ())
        graph = derived.graph
        inputs += [Dependence(None, None), *analysis.hidden(derived.trace)]
    else:
        graph = _first(graph)
    width = sum(math.prod(aval.shape) for aval in traced.like)
    parts = [
        nothing(math.prod(output.shape), width) if found.rows is None else found.rows
        for found, output in zip(analysis.outputs(graph, inputs), graph.outputs, strict=True)
    ]
    rows = parts[0] if len(parts) == 1 else stacked(parts)
    matrix = rows.csr
    if hessian and is_symmetric(traced.graph):
        # A place is needed only if its mirror image is one, too.
        matrix = matrix.multiply(matrix.T).tocsr()
        matrix.sort_indices()
    blocks = _with_lines(analysis.blocks, traced.graph) if hessian else analysis.blocks
    pattern = SparsityPattern(matrix, tuple(blocks))
    return Found(pattern, _relied(analysis.reliance, values), tuple(analysis.guards))


def _with_lines(blocks: Iterable[DenseBlock], graph: Graph) -> list[DenseBlock]:
    """Blocks of a gradient, with the lines of the function; it was traced when these had run."""
    lines = {node.op.name: node.line for inner in graph.nested() for node in inner.nodes}
    return [block._replace(line=lines.get(block.op, "")) for block in blocks]


def _first(graph: Graph) -> Graph:
    """The part of a graph that its first output depends on."""
    return dead(Graph(graph.name, graph.inputs, graph.nodes, graph.outputs[:1]))


def _inputs(traced: Traced, values: Sequence[Any]) -> list[Dependence]:
    """What the inputs of a graph depend on: those to differentiate by on themselves."""
    inputs = [Dependence(None, of_source(n, value)) for n, value in enumerate(values)]
    sizes = [math.prod(aval.shape) for aval in traced.like]
    begin, width = 0, sum(sizes)
    for n, size in zip(traced.chosen, sizes, strict=True):
        own = identity(size)
        inputs[n] = Dependence(Rows(own.starts, own.columns + np.int32(begin), width), None)
        begin += size
    return inputs


def _relied(reliance: Reliance, values: Sequence[Any]) -> tuple[Relied, ...]:
    found = [
        Relied(source, np.array(concrete(_noted(source, values))), False)
        for source in reliance.values
    ]
    found += [
        Relied(source, concrete(_noted(source, values)) != 0, True)
        for source in reliance.zeros
        if source not in reliance.values
    ]
    return tuple(found)


def is_symmetric(graph: Graph) -> bool:
    """Whether second derivatives are symmetric: rules of users and `no_grad` may make them not."""

    def is_other(op: Op) -> bool:
        return op.kind in ("custom", "host") or op is UNRECORDED

    return not any(is_other(node.op) for inner in graph.nested() for node in inner.nodes)
