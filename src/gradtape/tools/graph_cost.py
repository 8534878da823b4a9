"""What a graph costs: operations on elements, and bytes that are read and written.

Operations are counted in the kernels that the compiler would make of each node on its own, so an
estimate here and one of `gt.jit(f).explain()` agree but for what fusion saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gradtape.compiler.classify import obstacle
from gradtape.compiler.estimates import flops_of, in_bytes, in_flops
from gradtape.compiler.plan import plan_of
from gradtape.core.aval import nbytes
from gradtape.errors import ArgumentError, GradtapeError, a_type
from gradtape.graph.inline import expand
from gradtape.graph.ir import Graph, Literal, Node, Value, param_key
from gradtape.graph.text import short_line

# The text has so many ops at most; the others are one line.
_MOST_SHOWN = 20


class OpCost(NamedTuple):
    """What the calls of one op cost.

    Attributes:
        calls: How often it is called, in loops once for each step.
        flops: Operations on elements; an elementary function counts as about 20.
        bytes_read: Sizes of the operands; those of views count as nothing.
        bytes_written: Sizes of the results, likewise.
        uncounted: Calls whose operations are not known, as the op has no native code.
    """

    calls: int = 0
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    uncounted: int = 0

    def plus(self, other: OpCost) -> OpCost:
        """The sum of two."""
        return OpCost(*[a + b for a, b in zip(self, other, strict=True)])

    def times(self, number: int) -> OpCost:
        """The cost of doing it a number of times."""
        return OpCost(*[number * part for part in self])


class GraphCost(NamedTuple):
    """What a graph costs; `str()` of it is a table.

    Attributes:
        name: The name of the graph.
        nodes: The cost of each node, with that of the graphs inside it.
        by_op: The cost of all calls of each op, those in nested graphs included.
        open_loops: Nodes whose number of steps is not known, "while at model.py:3"; they are
            counted as one step.
    """

    name: str
    nodes: tuple[OpCost, ...]
    by_op: dict[str, OpCost]
    open_loops: tuple[str, ...]

    @property
    def total(self) -> OpCost:
        """The sum over all ops."""
        return _sum(self.by_op.values())

    @property
    def flops(self) -> int:
        """Operations on elements, without those of `uncounted` calls."""
        return self.total.flops

    @property
    def bytes_read(self) -> int:
        """Bytes that are read, if every op reads its operands once."""
        return self.total.bytes_read

    @property
    def bytes_written(self) -> int:
        """Bytes that are written, if every op writes its results once."""
        return self.total.bytes_written

    def __str__(self) -> str:
        total = self.total
        lines = [
            f"{self.name}: {in_flops(total.flops)}, reads {in_bytes(total.bytes_read)}, "
            f"writes {in_bytes(total.bytes_written)} without fusion"
        ]
        rows = sorted(self.by_op.items(), key=lambda row: (-row[1].flops, -row[1].bytes_read))
        shown, rest = rows[:_MOST_SHOWN], rows[_MOST_SHOWN:]
        if rest:
            shown.append((f"{len(rest)} other ops", _sum(cost for _, cost in rest)))
        width = max((len(name) for name, _ in shown), default=0)
        for name, cost in shown:
            flops = "not counted" if cost.uncounted == cost.calls else in_flops(cost.flops)
            lines.append(
                f"  {name:{width}}  {f'×{cost.calls}':>6}  {flops:>12}  "
                f"reads {in_bytes(cost.bytes_read):>8}  writes {in_bytes(cost.bytes_written):>8}"
            )
        if total.uncounted:
            names = sorted(name for name, cost in rows if cost.uncounted)
            lines.append(f"not counted, as they have no native code: {', '.join(names)}")
        if self.open_loops:
            loops = ", ".join(dict.fromkeys(self.open_loops))
            lines.append(f"counted as one step, as their number is not known: {loops}")
        return "\n".join(lines)


def cost(graph: Graph) -> GraphCost:
    """Estimate what a graph costs, op by op and in total.

    Graphs inside a node count as often as its parameter `length` says; without one, they count
    once, and the node is named in `open_loops`. Of graphs in a tuple, such as branches, the one
    with the most operations counts.

    Args:
        graph: The graph.

    Returns:
        The costs; print them. Nothing is run or measured.

    >>> def layer(x, w):
    ...     return np.tanh(x @ w)
    >>> estimate = gt.graph.cost(gt.graph.make_graph(layer)(np.ones((8, 16)), np.ones((16, 4))))
    >>> estimate.by_op["matmul"].flops == 2 * 8 * 16 * 4
    True
    >>> print(estimate)
    layer: 1.66 kflop, reads 1.79 kB, writes 512 B without fusion
      matmul      ×1    1.02 kflop  reads  1.54 kB  writes    256 B
      tanh        ×1      640 flop  reads    256 B  writes    256 B
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(f"cost: got {a_type(graph)}, expected a graph; use gt.graph.make_graph")
    known: dict[Any, int | None] = {}
    costs: dict[Graph, GraphCost] = {}
    for one in graph.nested():
        costs[one] = _cost(one, costs, known)
    return costs[graph]


def _cost(
    graph: Graph, inner: Mapping[Graph, GraphCost], known: dict[Any, int | None]
) -> GraphCost:
    """The cost of a graph, given those of the graphs inside it."""
    by_op: dict[str, OpCost] = {}
    nodes, loops = [], []
    for node in graph.nodes:
        ops, open_loops = _of_node(node, inner, known)
        nodes.append(_sum(ops.values()))
        loops += open_loops
        for name, part in ops.items():
            by_op[name] = by_op.get(name, OpCost()).plus(part)
    return GraphCost(graph.name, tuple(nodes), by_op, tuple(loops))


def _of_node(
    node: Node, inner: Mapping[Graph, GraphCost], known: dict[Any, int | None]
) -> tuple[dict[str, OpCost], list[str]]:
    """The cost of a node by ops, and the loops in it whose number of steps is not known."""
    if not node.graphs():
        return {node.op.name: _of_call(node, known)}, []
    chosen = [] if node.op.graph is None else [node.op.graph]
    repeated = False
    for value in node.params.values():
        if isinstance(value, Graph):
            chosen.append(value)
            repeated = True
        elif isinstance(value, tuple | list) and any(isinstance(one, Graph) for one in value):
            branches = [one for one in value if isinstance(one, Graph)]
            chosen.append(max(branches, key=lambda one: inner[one].flops))
    length = node.params.get("length")
    steps = length if isinstance(length, int) else 1
    ops: dict[str, OpCost] = {}
    for one in chosen:
        for name, part in inner[one].by_op.items():
            ops[name] = ops.get(name, OpCost()).plus(part.times(steps))
    loops = [loop for one in chosen for loop in inner[one].open_loops]
    if repeated and not isinstance(length, int):
        loops.append(f"{node.op.name} at {short_line(node.line)}" if node.line else node.op.name)
    return ops, loops


def _of_call(node: Node, known: dict[Any, int | None]) -> OpCost:
    flops = _flops(node, known)
    read = written = 0
    if node.op.facts.layout not in ("view", "same"):
        read = sum(nbytes(x.aval) for x in {x for x in node.operands if isinstance(x, Value)})
        written = sum(nbytes(value.aval) for value in node.outputs)
    return OpCost(1, flops or 0, read, written, int(flops is None))


def _flops(node: Node, known: dict[Any, int | None]) -> int | None:
    """The operations of the kernels for one call; None if there are no kernels for it."""
    if node.op.facts.layout in ("view", "same") or not node.operands:
        return 0
    # Calls alike are planned once; whether operands are the same value makes a difference.
    order: dict[Value, int] = {}
    pattern = tuple(
        [
            x.key if isinstance(x, Literal) else (x.aval, order.setdefault(x, len(order)))
            for x in node.operands
        ]
    )
    key = (node.op, param_key(node.params), pattern)
    if key not in known:
        known[key] = _planned_flops(node)
    return known[key]


def _planned_flops(node: Node) -> int | None:
    inputs = {x: Value(x.aval) for x in node.operands if isinstance(x, Value)}
    operands = [inputs[x] if isinstance(x, Value) else x for x in node.operands]
    alone = Node(node.op, operands, node.params, [value.aval for value in node.outputs])
    graph = expand(Graph(node.op.name, list(inputs.values()), [alone], alone.outputs))
    if any(obstacle(one) is not None for one in graph.nodes):
        return None
    try:
        return sum(flops_of(step) for step in plan_of(graph).steps)
    except GradtapeError:
        return None


def _sum(costs: Iterable[OpCost]) -> OpCost:
    total = OpCost()
    for one in costs:
        total = total.plus(one)
    return total
