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
from gradtape.core.lazy import Deferred
from gradtape.core.op import Op
from gradtape.core.settle import Settling
from gradtape.errors import ArgumentError, a_type

# They are made of what is in this file, and are loaded when a graph is printed, run or cut.
_show = Deferred("gradtape.graph.text:show")
_evaluate = Deferred("gradtape.graph.checked_run:evaluate")
_subgraph = Deferred("gradtape.graph.subgraph:subgraph")


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
        region: The policy of the checkpointed function it was called in, which says what a
            backward pass keeps; None outside of one.
    """

    __slots__ = ("line", "op", "operands", "outputs", "params", "region")

    def __init__(
        self,
        op: Op,
        operands: Sequence[Operand],
        params: Mapping[str, Any],
        avals: Sequence[Aval],
        line: str = "",
        region: Any = None,
    ) -> None:
        self.op = op
        self.operands = tuple(operands)
        self.params = dict(params)
        self.outputs = tuple([Value(aval, self, i) for i, aval in enumerate(avals)])
        self.line = line
        self.region = region

    def paired(self, results: Any) -> Iterator[tuple[Value, Any]]:
        """Its outputs, each with its part of what the op returned."""
        return zip(self.outputs, results if self.op.outputs != 1 else (results,), strict=True)

    def has_effect(self) -> bool:
        """Whether it does something besides computing results, by itself or in its graphs."""
        if self.op.effect is not None:
            return True
        inside = self.graphs() if self.op.kind == "control" else ()
        return any(node.has_effect() for graph in inside for node in graph.nodes)

    def graphs(self) -> list[Graph]:
        """The graphs inside it: in its parameters, also in containers, and that of its op."""
        found = [] if self.op.graph is None else [self.op.graph]
        pending = list(self.params.values())[::-1]
        while pending:
            item = pending.pop()
            if isinstance(item, Graph):
                found.append(item)
            elif isinstance(item, list | tuple):
                pending += reversed(item)
            elif isinstance(item, dict):
                pending += reversed(item.values())
        return found


class Graph:
    """Inputs, nodes in order, outputs.

    `print(graph)` shows it as text, and `graph(*arrays)` runs it. Two graphs are `==` only if they
    are the same object; `same_as` compares what they compute.

    Args:
        name: Its name.
        inputs: The values that are given to it.
        nodes: The calls of ops, in an order in which they can run.
        outputs: The values and numbers that it returns.
    """

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

    def values(self) -> list[Value]:
        """All values in the order of their numbers in `print(graph)`: inputs, then results."""
        return [*self.inputs, *(value for node in self.nodes for value in node.outputs)]

    def nested(self) -> list[Graph]:
        """All graphs in its nodes, at any depth, each once and inner ones first; itself last."""
        found: dict[Graph, None] = {}
        pending = [(self, False)]
        while pending:
            graph, entered = pending.pop()
            if entered:
                found[graph] = None
            elif graph not in found:
                pending.append((graph, True))
                inner = [one for node in graph.nodes for one in node.graphs()]
                pending += [(one, False) for one in reversed(inner)]
        return list(found)

    def same_as(self, other: Graph) -> bool:
        """Whether another graph makes the same calls: the same ops, operands and parameters.

        Names of graphs and lines of code do not count.

        Args:
            other: The graph to compare with.

        Returns:
            True if they are the same; then their `structural_hash` is the same, too.

        Raises:
            ArgumentError: The other is no graph.

        >>> one, two = (gt.jit(lambda x: x * 2.0).graph(np.ones(3)) for _ in range(2))
        >>> one == two, one.same_as(two)
        (False, True)
        """
        if not isinstance(other, Graph):
            raise ArgumentError(f"same_as: got {a_type(other)}, expected a graph")
        pending, seen = [(self, other)], set()
        while pending:
            pair = pending.pop()
            if pair[0] is pair[1] or pair in seen:
                continue
            seen.add(pair)
            inner = _differing(*pair)
            if inner is None:
                return False
            pending += inner
        return True

    def subgraph(
        self,
        outputs: Sequence[Value | str] | Value | str,
        inputs: Sequence[Value | str] | Value | str | None = None,
    ) -> Graph:
        """The part that computes some values from others, as a graph of its own.

        Args:
            outputs: The values to compute: `Value`s of this graph, or their names as printed, "%3".
            inputs: The values to compute them from; None for those inputs that they depend on.

        Returns:
            A new graph. Nothing in it is shared with this one.

        Raises:
            ArgumentError: A value is not one of this graph, or the inputs do not suffice.

        >>> graph = gt.jit(lambda x: np.exp(np.sin(x)) * 2.0).graph(np.ones(3))
        >>> print(graph.subgraph("%2", "%1"))
        graph <lambda>(%0: float64[3])
          %1: float64[3] = exp(%0)    # ...
          return %1
        """
        return _subgraph(self, outputs, inputs)  # type: ignore[no-any-return]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs for values of the inputs; see `gt.graph.evaluate`."""
        return _evaluate(self, *inputs)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes>"

    def __str__(self) -> str:
        return _show(self)  # type: ignore[no-any-return]


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
        line = node.line if line is None else line
        new = Node(node.op, given, node.params, avals, line, node.region)
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


# ---- equality and hashes ------------------------------------------------------------------------


def structural_hash(graph: Graph) -> str:
    """A hash that is equal for graphs with the same ops on the same operands, on any lines.

    With functions of users in the graph (`gt.custom_vjp`), it means something only as long as the
    graph lives.

    Args:
        graph: The graph, with those in the parameters of its nodes.

    Returns:
        64 hexadecimal digits. They are the same in every process, unless there are functions of
        users in the graph.

    Raises:
        ArgumentError: It is no graph.

    >>> double, twice = (gt.jit(f).graph(np.ones(3)) for f in (lambda x: x * 2, lambda y: y * 2))
    >>> gt.graph.structural_hash(double) == gt.graph.structural_hash(twice)
    True
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(
            f"structural_hash: got {a_type(graph)}, expected a graph; use gt.graph.make_graph"
        )
    hashes: dict[Graph, str] = {}
    for one in graph.nested():
        hashes[one] = _hash_of_nodes(one, hashes)
    return hashes[graph]


def _hash_of_nodes(graph: Graph, hashes: Mapping[Graph, str]) -> str:
    numbers = {value: number for number, value in enumerate(graph.values())}
    digest = hashlib.sha256()

    def note(*items: Any) -> None:
        digest.update(repr(items).encode())

    note([aval_key(value.aval) for value in graph.inputs])
    for node in graph.nodes:
        note(_op_key(node.op, hashes), _params_key(node, hashes.__getitem__))
        note([_operand_key(operand, numbers) for operand in node.operands])
        note([aval_key(value.aval) for value in node.outputs])
    note([_operand_key(output, numbers) for output in graph.outputs])
    return digest.hexdigest()


def _op_key(op: Op, hashes: Mapping[Graph, str]) -> Any:
    if isinstance(op, Settling):
        return op.name, op.rule_name, op.argument
    if op.identity is not None:
        return op.name, op.identity
    return op.name if op.graph is None else (op.name, hashes[op.graph])


def _same_op(one: Op, other: Op) -> bool:
    """Whether two ops are the same, but for graphs in them."""
    if one is other or (one.graph is not None and other.graph is not None):
        return True
    known = one.identity is not None and one.identity == other.identity
    return known and one.name == other.name


def _differing(one: Graph, other: Graph) -> list[tuple[Graph, Graph]] | None:
    """The pairs of inner graphs that decide whether two graphs are the same; None if they differ.

    It looks at one node after the other, so that graphs that differ early are not read to the end.
    """
    if (len(one.nodes), len(one.outputs)) != (len(other.nodes), len(other.outputs)):
        return None
    if [value.aval for value in one.inputs] != [value.aval for value in other.inputs]:
        return None
    numbers = [{v: n for n, v in enumerate(graph.values())} for graph in (one, other)]
    inner: list[tuple[Graph, Graph]] = []

    def keys(operands: tuple[Operand, ...], which: int) -> list[Any]:
        return [_operand_key(operand, numbers[which]) for operand in operands]

    for a, b in zip(one.nodes, other.nodes, strict=True):
        graphs = a.graphs(), b.graphs()
        if (
            not _same_op(a.op, b.op)
            or len(graphs[0]) != len(graphs[1])
            or keys(a.operands, 0) != keys(b.operands, 1)
            or [v.aval for v in a.outputs] != [v.aval for v in b.outputs]
            or _params_key(a, _any_graph) != _params_key(b, _any_graph)
        ):
            return None
        inner += zip(*graphs, strict=True)
    return inner if keys(one.outputs, 0) == keys(other.outputs, 1) else None


def _any_graph(_graph: Graph) -> str:
    return ""


def _operand_key(operand: Operand, numbers: Mapping[Value, int]) -> Any:
    return numbers[operand] if isinstance(operand, Value) else operand.key


def _params_key(node: Node, graph_key: Callable[[Graph], str]) -> list[Any]:
    return sorted((name, param_key(value, graph_key)) for name, value in node.params.items())


def aval_key(aval: Aval) -> tuple[Any, ...]:
    """A key that distinguishes abstract values."""
    return aval.shape, dtype_key(aval.dtype), aval.weak


def dtype_key(dtype: np.dtype[Any]) -> str:
    """A key that distinguishes dtypes: `dtype.str` is the same for different 8-bit floats."""
    return dtype.byteorder + dtype.name


def param_key(value: Any, graph_key: Callable[[Graph], str] = structural_hash) -> Any:
    """A hashable, comparable key for a parameter of an op.

    Args:
        value: The parameter.
        graph_key: The key of a graph in it.
    """
    if isinstance(value, np.ndarray):
        return "array", value.shape, dtype_key(value.dtype), value.tobytes()
    if isinstance(value, Graph):
        return "graph", graph_key(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(param_key(item, graph_key) for item in value)
    if isinstance(value, dict):
        items = ((key, param_key(item, graph_key)) for key, item in value.items())
        return "dict", tuple(sorted(items))
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    if isinstance(value, float | complex | np.generic):
        return type(value).__name__, np.asarray(value).tobytes()
    return type(value).__name__, value if isinstance(value, int | str | None) else repr(value)
