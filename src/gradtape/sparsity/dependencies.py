"""Which elements of the argument each value of a graph depends on, node by node.

A value carries the rows of a boolean matrix. Those of a result are made from the rows of the
operands, by what one element of the result reads, as the op's lowering says. An op without one is a
dense block: every element of its results depends on all that its operands depend on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import is_differentiable
from gradtape.core.op import Op, Zero
from gradtape.graph.capture import Capture, Guard
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value
from gradtape.graph.run import last_uses
from gradtape.graph.trace import Trace
from gradtape.sparsity.element_reads import Reads, Term
from gradtape.sparsity.known import Known, Reliance, of_capture, of_operand, of_result
from gradtape.sparsity.rows import Rows, union


class Dependence(NamedTuple):
    """What is known of a value.

    Attributes:
        rows: What the elements depend on differentiably; None if on nothing.
        known: The value itself, if it does not depend on the argument at all.
    """

    rows: Rows | None
    known: Known | None


class DenseBlock(NamedTuple):
    """An op of which every result was taken to depend on everything, in a part or in all of it.

    Attributes:
        op: The name of the op.
        line: The line of the function that calls it: "file.py:12", or "" if that is not known.
        why: Why nothing better is known.
    """

    op: str
    line: str
    why: str

    def __str__(self) -> str:
        return f"{self.op}{f' at {self.line}' if self.line else ''}: {self.why}"


class Analysis:
    """Goes through graphs, and notes what patterns rely on and what was taken as dense.

    Args:
        rule: Gives the rows of the results of a call.

    Attributes:
        blocks: What was taken as dense.
        reliance: What the rows depend on by value.
        guards: Arrays whose elements decided a graph that was followed.
        following: Functions whose own rules are being followed, one inside of the other.
    """

    def __init__(self, rule: Callable[[Call], Sequence[Rows | None]]) -> None:
        self._rule = rule
        self.blocks: dict[DenseBlock, None] = {}
        self.reliance = Reliance()
        self.guards: list[Guard] = []
        self.following: list[Op] = []
        # One for each array or tensor: a rule that is followed at each step of a loop uses the same
        # ones each time.
        self._captures: dict[int, Capture] = {}

    def outputs(
        self,
        graph: Graph,
        inputs: Sequence[Dependence],
        line: str = "",
        inside: str = "",
    ) -> list[Dependence]:
        """What the outputs of a graph depend on, given what its inputs do.

        Args:
            graph: The graph.
            inputs: What its inputs depend on.
            line: The line of the user's code that all of it comes from, if it is one.
            inside: The op that is composed of it, if there is one. It may have rules that its parts
                do not have: these pass on all that they read.
        """
        found: dict[Value, Dependence] = dict(zip(graph.inputs, inputs, strict=True))

        def of(operand: Operand) -> Dependence:
            known = of_operand(operand)
            return Dependence(None, known) if known is not None else found[operand]  # type: ignore[index]

        ending = last_uses(graph)
        for node in graph.nodes:
            call = Call(self, node, [*map(of, node.operands)], line or node.line, inside)
            made = self._results(call)
            found.update(zip(node.outputs, made, strict=True))
            for value in ending[node]:
                del found[value]
        return [of(output) for output in graph.outputs]

    def hidden(self, trace: Trace | None) -> list[Dependence]:
        """What the hidden inputs of a graph depend on that is followed from here on."""
        assert trace is not None
        self.guards += trace.guards
        captures = [self._captures.setdefault(id(c.origin), c) for c in trace.captures]
        return [Dependence(None, of_capture(capture)) for capture in captures]

    def _results(self, call: Call) -> list[Dependence]:
        node = call.node
        if not any(call.tracked):
            operands = [dependence.known for dependence in call.given]
            return [
                Dependence(None, of_result(node, n, operands)) for n in range(len(node.outputs))
            ]
        rows = self._rule(call)
        return [
            Dependence(made if is_differentiable(value) else None, None)
            for made, value in zip(rows, node.outputs, strict=True)
        ]


class Call:
    """One call of an op, with what its operands depend on.

    Attributes:
        node: The node of the graph.
        given: What its operands depend on.
        rows: The rows of each operand that derivatives pass through; None for others.
        avals: The operands.
        outs: The results.
        line: The line of the user's code.
        inside: The op that it is a part of, "" if none.
    """

    def __init__(
        self,
        analysis: Analysis,
        node: Node,
        given: Sequence[Dependence],
        line: str,
        inside: str,
    ) -> None:
        op = node.op
        self.line = line
        self.inside = inside
        self.analysis = analysis
        self.node = node
        self.given = given
        passes = op.tracked or op.jvp is not None or inside != ""
        self.rows = [
            dependence.rows if passes and not _is_flat(op, n, operand.aval) else None
            for n, (dependence, operand) in enumerate(zip(given, node.operands, strict=True))
        ]
        self.avals: list[Aval] = [operand.aval for operand in node.operands]
        self.outs: list[Aval] = [value.aval for value in node.outputs]

    @property
    def tracked(self) -> list[bool]:
        """For each operand whether derivatives pass through it."""
        return [rows is not None for rows in self.rows]

    @property
    def width(self) -> int:
        """The number of elements of the argument."""
        return next(rows.width for rows in self.rows if rows is not None)

    def known(self, operand: int) -> Any:
        """The elements of an operand, if they do not depend on the argument; else None."""
        known = self.given[operand].known
        return None if known is None else known.array

    def followed(self, graph: Graph, inputs: Sequence[Dependence]) -> list[Dependence]:
        """What the outputs of a graph that is part of the op depend on."""
        return self.analysis.outputs(graph, inputs, self.line, self.inside)

    def block(self, why: str) -> None:
        """Note that it is taken as dense."""
        name = self.inside or self.node.op.name
        self.analysis.blocks[DenseBlock(name, self.line, why)] = None

    # ---- elements ------------------------------------------------------------------------------

    def reads(self, shape: tuple[int, ...]) -> Reads:
        """Looks at expressions for points of a shape."""
        literals = [o.value if isinstance(o, Literal) else None for o in self.node.operands]
        numbers = [x if type(x) in (bool, int, float) else None for x in literals]
        return Reads(shape, self.avals, numbers, self.known)

    def follow(self, reads: Reads, terms: Sequence[Term]) -> Rows | None:
        """The rows of the points, from what is read for them; notes what that relied on."""
        for operand in reads.relied:
            self.analysis.reliance.on(self.given[operand].known)
        for operand in reads.on_zeros:
            self.analysis.reliance.on(self.given[operand].known, zeros=True)
        groups: dict[tuple[int, tuple[int, ...]], list[Any]] = {}
        for term in terms:
            groups.setdefault((term.operand, term.over), []).append(term.places)
        found = None
        for (operand, over), places in groups.items():
            if over:
                self.block("an index is not known beforehand, and may be any along its axis")
            found = union(found, _gathered(self.over(operand, over), places))
        return found

    def over(self, operand: int, axes: tuple[int, ...]) -> Rows:
        """The rows of an operand, those along some axes put together."""
        rows = self.rows[operand]
        assert rows is not None
        return reduced(rows, self.avals[operand].shape, axes) if axes else rows


def _is_flat(op: Op, operand: int, aval: Aval) -> bool:
    """Whether the derivative by an operand is zero wherever it exists."""
    rules = op.partials if op.partials and aval.dtype.kind != "c" else op.vjps
    return operand < len(rules) and isinstance(rules[operand], Zero)


def _gathered(rows: Rows, places: Sequence[Any]) -> Rows:
    """The rows at places; several lists of places are put together point by point."""
    if len(places) == 1:
        return rows.take(places[0])
    points = [np.flatnonzero(some >= 0) for some in places]
    chosen = [some[at] for some, at in zip(places, points, strict=True)]
    return rows.combined(np.concatenate(points), np.concatenate(chosen), len(places[0]))


def reduced(rows: Rows, shape: tuple[int, ...], axes: Sequence[int]) -> Rows:
    """The rows of an array, those along some axes put together."""
    left = [1 if axis in axes else size for axis, size in enumerate(shape)]
    numbers = np.arange(math.prod(left)).reshape(left)
    to = np.broadcast_to(numbers, shape).reshape(-1)
    return rows.combined(to, np.arange(len(to)), numbers.size)


def broadcast(rows: Rows, shape: tuple[int, ...], to: tuple[int, ...]) -> Rows:
    """The rows of an array that is broadcast to another shape."""
    if shape == to:
        return rows
    return rows.take(np.broadcast_to(np.arange(len(rows)).reshape(shape), to).reshape(-1))
