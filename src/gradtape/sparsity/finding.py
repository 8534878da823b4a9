"""Finding patterns: a function is traced once, and its graph followed from the argument on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.op import Op
from gradtape.core.state import values_read
from gradtape.graph.derived import pullback
from gradtape.graph.ir import Graph
from gradtape.graph.known_values import is_differentiated, is_unknown
from gradtape.graph.passes.dead import dead
from gradtape.graph.trace import UNRECORDED
from gradtape.sparsity.compressed import Traced
from gradtape.sparsity.dependencies import Analysis, DenseBlock, Dependence
from gradtape.sparsity.known import Known, Reliance, concrete, constant
from gradtape.sparsity.op_rules import rows_of_results
from gradtape.sparsity.pattern import SparsityPattern
from gradtape.sparsity.rows import Rows, identity, nothing, stacked


class Relied(NamedTuple):
    """An input that is no argument to differentiate by, and that a pattern depends on.

    Attributes:
        number: Which input of the graph.
        elements: What its elements were, or where they were not zero.
        zeros: Whether only its zeros matter.
    """

    number: int
    elements: Any
    zeros: bool

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether the pattern still holds, given the values of all inputs."""
        value = values[self.number]
        now = None if _is_open(value) else concrete(value)
        if now is None or now.shape != self.elements.shape:
            return False
        return np.array_equal(now != 0 if self.zeros else now, self.elements)


class Found(NamedTuple):
    """A pattern, and what it depends on."""

    pattern: SparsityPattern
    relied: tuple[Relied, ...]

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether it still holds, given the values of all inputs."""
        for relied in self.relied:
            # A function that is being traced depends on them, too.
            if isinstance(values[relied.number], np.ndarray):
                values_read(values[relied.number])
        return all(relied.holds(values) for relied in self.relied)


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
        constants = [Dependence(None, constant(value)) for value in derived.constants]
        inputs += [Dependence(None, None), *constants]
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
    return Found(pattern, _relied(analysis.reliance, values))


def _with_lines(blocks: Iterable[DenseBlock], graph: Graph) -> list[DenseBlock]:
    """Blocks of a gradient, with the lines of the function; it was traced when these had run."""
    lines = {node.op.name: node.line for inner in graph.nested() for node in inner.nodes}
    return [block._replace(line=lines.get(block.op, "")) for block in blocks]


def _first(graph: Graph) -> Graph:
    """The part of a graph that its first output depends on."""
    return dead(Graph(graph.name, graph.inputs, graph.nodes, graph.outputs[:1]))


def _inputs(traced: Traced, values: Sequence[Any]) -> list[Dependence]:
    """What the inputs of a graph depend on: those to differentiate by on themselves."""
    inputs = [Dependence(None, _known(n, value)) for n, value in enumerate(values)]
    sizes = [math.prod(aval.shape) for aval in traced.like]
    begin, width = 0, sum(sizes)
    for n, size in zip(traced.chosen, sizes, strict=True):
        own = identity(size)
        inputs[n] = Dependence(Rows(own.starts, own.columns + np.int32(begin), width), None)
        begin += size
    return inputs


def _known(number: int, value: Any) -> Known | None:
    if _is_open(value) or (array := concrete(value)) is None:
        return None
    return Known(lambda: array, frozenset({number}), True)


def _is_open(value: Any) -> bool:
    """Whether a pattern cannot depend on a value: what is 0 may have a derivative that is not."""
    return is_unknown(value) or is_differentiated(value)


def _relied(reliance: Reliance, values: Sequence[Any]) -> tuple[Relied, ...]:
    found = [
        Relied(number, np.array(concrete(values[number])), False)
        for number in sorted(reliance.values)
    ]
    found += [
        Relied(number, concrete(values[number]) != 0, True)
        for number in sorted(reliance.zeros - reliance.values)
    ]
    for relied in found:
        if isinstance(values[relied.number], np.ndarray):
            values_read(values[relied.number])
    return tuple(found)


def is_symmetric(graph: Graph) -> bool:
    """Whether second derivatives are symmetric: rules of users and `no_grad` may make them not."""

    def is_other(op: Op) -> bool:
        return op.kind in ("custom", "host") or op is UNRECORDED

    return not any(is_other(node.op) for inner in graph.nested() for node in inner.nodes)
