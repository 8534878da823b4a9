"""The graph: op calls in order, each value assigned once.

A `Graph` has inputs, nodes in an order in which they can run, and outputs. A `Node` is one call of
an op; its operands are `Value`s of earlier nodes or of the inputs, and `Literal` numbers. Graphs
are built by tracing (`graph.trace`) and rebuilt by passes; they are not changed once made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.op import Op


class _Typed:
    """Something with an abstract value."""

    __slots__ = ("aval",)
    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes; a number has none."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, or that of a number on its own."""
        return self.aval.dtype


class Value(_Typed):
    """An array of which only shape and dtype are known."""

    __slots__ = ("index", "node")

    def __init__(self, aval: Aval, node: Node | None = None, index: int = 0) -> None:
        self.aval = aval
        self.node = node
        self.index = index


class Literal(_Typed):
    """A number in the graph: a Python number, which is weak, or a NumPy scalar."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
        self.aval = aval_of(value)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same number of the same type: 0.0 and -0.0 differ, NaN equals itself."""
        kind = dtype_key(self.aval.dtype), self.aval.weak
        # Python integers may have more digits than any dtype.
        exact = type(self.value) is int
        return *kind, repr(self.value) if exact else np.asarray(self.value).tobytes()


Operand = Value | Literal


def value_of(operand: Operand, values: Mapping[Value, Any]) -> Any:
    """The number of a literal, or what a mapping has for a value."""
    return operand.value if isinstance(operand, Literal) else values[operand]


class Node:
    """One call of an op.

    Attributes:
        op: The op that is called.
        operands: Its operands.
        params: Its parameters.
        outputs: Its results: one value, or several.
        line: The line of the user's code: "file.py:12", or "" if that is not known.
    """

    __slots__ = ("line", "op", "operands", "outputs", "params")

    def __init__(
        self,
        op: Op,
        operands: Sequence[Operand],
        params: Mapping[str, Any],
        avals: Sequence[Aval],
        line: str = "",
    ) -> None:
        self.op = op
        self.operands = tuple(operands)
        self.params = dict(params)
        self.outputs = tuple([Value(aval, self, i) for i, aval in enumerate(avals)])
        self.line = line

    def paired(self, results: Any) -> Iterator[tuple[Value, Any]]:
        """Its outputs, each with its part of what the op returned."""
        return zip(self.outputs, results if self.op.outputs != 1 else (results,), strict=True)


class Graph:
    """Inputs, nodes in order, outputs."""

    __slots__ = ("inputs", "name", "nodes", "outputs")

    def __init__(
        self,
        name: str,
        inputs: Sequence[Value],
        nodes: Sequence[Node],
        outputs: Sequence[Operand],
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.nodes = tuple(nodes)
        self.outputs = tuple(outputs)

    def users(self) -> dict[Value, list[Node]]:
        """The nodes that read each value; a node that reads it twice is there twice."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for operand in node.operands:
                if isinstance(operand, Value):
                    found.setdefault(operand, []).append(node)
        return found

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes>"


def sources(operands: Iterable[Operand], inside: Callable[[Value], bool]) -> Iterator[Value]:
    """The values among operands, and those that they depend on, each once and in order.

    Args:
        operands: The operands to start from.
        inside: Whether to go on to the operands of the node that makes a value.
    """
    pending, seen = list(operands)[::-1], set()
    while pending:
        value = pending.pop()
        if isinstance(value, Value) and value not in seen:
            seen.add(value)
            yield value
            if value.node is not None and inside(value):
                pending += reversed(value.node.operands)


class Rewriter:
    """Builds a graph from another one, node by node; passes decide what to do with each."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._inputs = tuple(Value(value.aval) for value in graph.inputs)
        self._replaced: dict[Value, Operand] = dict(zip(graph.inputs, self._inputs, strict=True))
        self.nodes: list[Node] = []

    def __getitem__(self, operand: Operand) -> Operand:
        """The operand of the new graph that stands for one of the old."""
        return self._replaced[operand] if isinstance(operand, Value) else operand

    def replace(self, value: Value, by: Operand) -> None:
        """Let a value (or number) of the new graph stand for one of the old."""
        self._replaced[value] = by

    def operands(self, node: Node) -> tuple[Operand, ...]:
        """The operands of an old node in the new graph."""
        known = self._replaced  # not by `self[operand]`: all passes spend their time here
        return tuple([known[x] if isinstance(x, Value) else x for x in node.operands])

    def add(
        self,
        op: Op,
        operands: Sequence[Operand],
        params: Mapping[str, Any],
        line: str = "",
        aval: Aval | None = None,
    ) -> Value:
        """Append a call of an op with one result, whose abstract value may be known already."""
        if aval is None:
            aval = op.infer(*(operand.aval for operand in operands), **params)
        node = Node(op, operands, params, (aval,), line)
        self.nodes.append(node)
        return node.outputs[0]

    def copy(
        self, node: Node, operands: Sequence[Operand] | None = None, line: str | None = None
    ) -> Node:
        """Append an old node, with its own or other operands in the new graph."""
        given = self.operands(node) if operands is None else operands
        avals = [value.aval for value in node.outputs]
        new = Node(node.op, given, node.params, avals, node.line if line is None else line)
        self.nodes.append(new)
        self._replaced.update(zip(node.outputs, new.outputs, strict=True))
        return new

    def finish(self, outputs: Sequence[Operand] | None = None) -> Graph:
        """The new graph, with the outputs of the old one or with others."""
        if outputs is None:
            outputs = [self[output] for output in self._graph.outputs]
        return Graph(self._graph.name, self._inputs, self.nodes, outputs)


def with_graphs(params: Mapping[str, Any], change: Callable[[Graph], Graph]) -> dict[str, Any]:
    """The parameters of an op with each graph among them, also in tuples, replaced by another."""

    def changed(value: Any) -> Any:
        if isinstance(value, Graph):
            return change(value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    return {name: changed(value) for name, value in params.items()}


def replaced(graph: Graph, values: Mapping[Operand, Value]) -> Graph:
    """A copy of the graph, with results of nodes replaced by inputs wherever they are read.

    Nodes of which all results are replaced are left out, whatever their effect.
    """
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if not node.outputs or not all(value in values for value in node.outputs):
            rewriter.copy(node)
        for value in node.outputs:
            if value in values:
                rewriter.replace(value, rewriter[values[value]])
    return rewriter.finish()


def structural_hash(graph: Graph) -> str:
    """A hash that is equal for graphs with the same ops on the same operands, on any lines.

    With functions of users in the graph, it means something only as long as the graph lives.
    """
    numbers: dict[Value, int] = {value: i for i, value in enumerate(graph.inputs)}
    digest = hashlib.sha256()

    def note(*items: Any) -> None:
        digest.update(repr(items).encode())

    def operand_key(operand: Operand) -> Any:
        return numbers[operand] if isinstance(operand, Value) else operand.key

    note([aval_key(value.aval) for value in graph.inputs])
    for node in graph.nodes:
        params = sorted((name, param_key(value)) for name, value in node.params.items())
        own = [] if node.op.identity is None else [node.op.identity]
        note(node.op.name, *own, params, [operand_key(operand) for operand in node.operands])
        for value in node.outputs:
            numbers[value] = len(numbers)
            note(aval_key(value.aval))
    note([operand_key(output) for output in graph.outputs])
    return digest.hexdigest()


def aval_key(aval: Aval) -> tuple[Any, ...]:
    """A key that distinguishes abstract values."""
    return aval.shape, dtype_key(aval.dtype), aval.weak


def dtype_key(dtype: np.dtype[Any]) -> str:
    """A key that distinguishes dtypes: `dtype.str` is the same for different 8-bit floats."""
    return dtype.byteorder + dtype.name


def param_key(value: Any) -> Any:
    """A hashable, comparable key for a parameter of an op."""
    if isinstance(value, np.ndarray):
        return "array", value.shape, dtype_key(value.dtype), value.tobytes()
    if isinstance(value, Graph):
        return "graph", structural_hash(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(param_key(item) for item in value)
    if isinstance(value, dict):
        return "dict", tuple(sorted((key, param_key(item)) for key, item in value.items()))
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    if isinstance(value, float | complex | np.generic):
        return type(value).__name__, np.asarray(value).tobytes()
    return type(value).__name__, value if isinstance(value, int | str | None) else repr(value)
