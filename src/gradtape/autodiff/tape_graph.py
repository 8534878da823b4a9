"""The records between sources and targets: their order, their sizes, and what sweeps cost.

A *sweep* pushes tangents forward along records, or pulls cotangents back, many at once. Its time
is estimated from shapes alone, so that it can be planned for a function that is being traced, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from gradtape.core.aval import Aval
from gradtape.core.cost import estimated_cost
from gradtape.core.level import Node
from gradtape.core.record import Binary, Output, Record, Unary, find_aval


class Overhead(NamedTuple):
    """Microseconds that things take, however few numbers there are.

    Attributes:
        sweep: A sweep.
        record: A record in a sweep.
        product: A product of two Jacobians.
        products: How many matrix products of their size that is.
    """

    sweep: float
    record: float
    product: float
    products: int


EAGER = Overhead(100.0, 15.0, 50.0, 1)
# In compiled code records become parts of loops. 0·∞ has to be settled before it is known whether
# there is any, which takes a product of twice the length, and one without what is infinite.
COMPILED = Overhead(0.0, 0.05, 0.1, 4)
# Microseconds for an operation on an element, one of many at once.
_PER_OPERATION = 1.5e-4
# A multiplication and an addition in a matrix product take less.
_PER_PRODUCT = 3e-5


class TapeGraph:
    """The records on the ways from some nodes to others, oldest first.

    Attributes:
        sources: Where the ways begin.
        targets: Where they end.
        records: The records on the way; sources are among them if they are records themselves.
        sources_are_independent: Whether no source was computed from another one.
    """

    def __init__(self, sources: Sequence[Node], targets: Sequence[Node]) -> None:
        self.sources, self.targets = sources, targets
        self.records: list[Record] = []
        # Microseconds per direction that the records up to each position take in a sweep.
        self.costs = [0.0]
        self.sources_are_independent = True
        self._start = start = set(sources)
        self._avals: dict[Node, Any] = {}
        self._sizes: dict[Any, float] = {source: self._found_size(source) for source in sources}
        depends, cost = set(start), 0.0
        for record in ancestors(targets):
            if not depends.isdisjoint(record.parents):
                self.sources_are_independent &= record not in start
                depends.add(record)
                cost += self._visited(record)
            elif record in start:
                self._sizes[record] = self._found_size(record)
            else:
                continue
            self.records.append(record)
            self.costs.append(cost)

    def _visited(self, record: Record) -> float:
        """Note the size of a record on the way, and return what it takes per direction."""
        kind = type(record)
        # Most records are those of elementwise ops, which need no look at shapes.
        if (kind is Unary or kind is Binary) and record.op.partials:
            for value in (record.out, *record.inputs):
                if hasattr(value, "size"):  # all have one shape, but for numbers
                    self._avals[record] = Aval(value.shape, value.dtype)
                    size = self._sizes[record] = value.size
                    break
            else:
                size = self._sizes[record] = self._found_size(record)
            both = kind is Binary and None not in record.parents
            return float((8 if both else 4) * size) * _PER_OPERATION
        self._sizes[record] = self._found_size(record)
        return 0.0 if kind is Output else self._cost(record)

    def _found_size(self, node: Node) -> float:
        aval = find_aval(node, self._avals)
        return math.inf if type(aval) is tuple else math.prod(aval.shape)

    def aval(self, node: Node) -> Aval:
        """Shape and dtype of the value of a node."""
        found: Aval = find_aval(node, self._avals)
        return found

    def size(self, node: Node) -> float:
        """How many numbers the value of a node is; infinite for several values at once."""
        return self._sizes[node]

    def _cost(self, record: Record) -> float:
        outs, op, parents = self._avals[record], record.op, record.parents
        avals = [
            value if value is not None else find_aval(node, self._avals)
            for node, value in zip(parents, record.inputs, strict=True)
        ]
        operations = estimated_cost(op, avals, outs if type(outs) is tuple else (outs,))
        tracked: int = len(parents) - parents.count(None)
        product = op.kind == "contraction"
        return operations * tracked * (_PER_PRODUCT if product else _PER_OPERATION)

    # ---- dependencies ----------------------------------------------------------------------

    def reached(self) -> list[int]:
        """For each target, the sources that it depends on, as bits of a number."""
        if len(self.sources) == len(self.targets) == 1:
            return [int(bool(self.records) or self.sources[0] is self.targets[0])]
        bits: dict[Node, int] = {source: 1 << n for n, source in enumerate(self.sources)}
        for record in self.records:
            found = bits.get(record, 0)
            for parent in record.parents:
                found |= bits.get(parent, 0) if parent is not None else 0
            bits[record] = found
        return [bits.get(target, 0) for target in self.targets]

    # ---- cuts ------------------------------------------------------------------------------

    def lifetimes(self) -> dict[Node, tuple[int, int]]:
        """From which position to before which one the value of a node has to be carried along.

        Position p is that before record p. Sources are there from the beginning, targets to the
        end.
        """
        born: dict[Node | None, int] = dict.fromkeys(self.sources, 0)
        last: dict[Node | None, int] = {}
        start = self._start
        for place, record in enumerate(self.records, 1):
            if record in start:
                continue
            born[record] = place
            for parent in record.parents:
                last[parent] = place
        end = len(self.records) + 1
        last.update((target, end) for target in self.targets)
        return {node: (begin, last[node]) for node, begin in born.items() if node and node in last}

    def widths(self, lifetimes: dict[Node, tuple[int, int]]) -> list[float]:
        """How many real numbers pass at each position: all later ones depend on these alone."""
        change = [0.0] * (len(self.records) + 2)
        several = [0] * (len(self.records) + 2)
        for node, (begin, end) in lifetimes.items():
            size = self.size(node)
            if math.isinf(size):
                several[begin] += 1
                several[end] -= 1
            else:
                size *= real_parts(self.aval(node))
                change[begin] += size
                change[end] -= size
        pairs = zip(accumulate(change[:-1]), accumulate(several[:-1]), strict=True)
        return [math.inf if blocked else width for width, blocked in pairs]

    def crossing(self, lifetimes: dict[Node, tuple[int, int]], position: int) -> list[Node]:
        """The nodes whose values pass at a position."""
        return [node for node, (begin, end) in lifetimes.items() if begin <= position < end]


def is_complex(aval: Aval) -> bool:
    """Whether elements are complex."""
    return aval.dtype.kind == "c"


def real_parts(aval: Aval) -> int:
    """How many real numbers an element is: two, if it is complex."""
    return 2 if is_complex(aval) else 1


def sweep_time(overhead: Overhead, records: float, cost: float, directions: float) -> float:
    """Microseconds that a sweep takes.

    Args:
        overhead: What it takes in any case.
        records: How many records it goes along.
        cost: The sum of their costs.
        directions: How many tangents or cotangents there are.
    """
    return overhead.sweep + records * overhead.record + cost * directions


def product_time(overhead: Overhead, rows: float, inner: float, columns: float) -> float:
    """Microseconds that a product of two Jacobians takes."""
    return overhead.product + 2 * overhead.products * rows * inner * columns * _PER_PRODUCT


def ancestors(nodes: Sequence[Node]) -> list[Record]:
    """The records among some nodes, and those that they were computed from, oldest first."""
    seen: set[Node] = set()
    stack = list(nodes)
    found: list[Record] = []
    while stack:
        node = stack.pop()
        if node in seen or not isinstance(node, Record):
            continue
        seen.add(node)
        found.append(node)
        stack.extend([parent for parent in node.parents if parent is not None])
    found.sort(key=lambda record: record.sequence)
    return found
