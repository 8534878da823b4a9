"""Records: what a reverse-mode level remembers of the ops it saw.

A record is owned by the tensors that came out of it and never refers to them, so history dies with
the results that need it. It knows its parents (the records of its inputs) and the values its rules
read. A tensor is just a value with a record, so an input can be rebuilt as `Tensor(value, parent)`.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.errors import TapeError

# A segment with more roots looks which of them are still alive.
_FEW_ROOTS = 64


class Level:
    """One transformation in progress. An op is handled by the highest level among its operands."""

    __slots__ = ("active", "label", "number")

    def __init__(self, number: int, label: str) -> None:
        self.number = number
        self.label = label
        self.active = True

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        """Run `op` on operands of which at least one belongs to this level."""
        raise NotImplementedError(self.label)

    def read(self, tensor: Any, what: str) -> None:
        """Raise if the value of a tensor of this level cannot be read as one array.

        Args:
            tensor: The tensor.
            what: How it is asked for: `float(tensor)`.
        """


class Segment(Level):
    """A stretch of reverse-mode recording: one generation of a context's tape, a tape, a `grad`.

    Attributes:
        active: Whether ops on its tensors are recorded.
        walkable: Whether gradients can still be asked for.
        strict: Whether using one of its tensors afterwards is an error (a transform's tensor that
            leaked), as opposed to computing without recording (a tape whose `with` block ended).
        idle: Has one item unless a walk is under way that keeps cotangents in the records; others
            use a dict. In a child process whose parent was walking in another thread it never comes
            back, as the cotangents of that walk stay in the records.
        next_sequence: Numbers its records in the order they are made.
        roots: Weak references to records that whoever ends the segment frees, see `core.release`.
    """

    __slots__ = ("_most_roots", "_peeks", "idle", "next_sequence", "roots", "strict", "walkable")

    def __init__(self, number: int, label: str, *, strict: bool = False) -> None:
        super().__init__(number, label)
        self.walkable = True
        self.strict = strict
        self.idle = [True]
        self.next_sequence = itertools.count(1).__next__
        self._peeks = 0
        self.roots: list[weakref.ref[Record]] = []
        self._most_roots = _FEW_ROOTS

    def remember(self, root: Record) -> None:
        """Note a record whose result users keep for its value: a loss, or what was walked."""
        roots, reference = self.roots, weakref.ref(root)
        if roots and roots[-1] is reference:
            return  # a loss that is now walked; a record has one such reference
        roots.append(reference)
        if len(roots) > self._most_roots:
            self.roots = roots = [root for root in roots if root() is not None]
            self._most_roots = 2 * len(roots) + _FEW_ROOTS

    def count(self) -> int:
        """The number of records made. Counting is free: it is read off the next number."""
        self._peeks += 1
        return max(0, self.next_sequence() - self._peeks)  # threads may count at once


# Below the levels of all transforms and tapes lie the leaves of gradient contexts, and what
# contexts record.
LEAF_LEVEL, CONTEXT_LEVEL = 0, 1
# All leaves of gradient contexts carry this segment: a leaf takes part in every context.
LEAVES = Segment(LEAF_LEVEL, "a gradient context")


class Node:
    """What leaves and records have in common: a segment, and a number greater than its parents'."""

    __slots__ = ("__weakref__", "segment", "sequence")
    segment: Any
    sequence: int

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape users see, given that of the value (a batched tensor hides an axis)."""
        return shape


class Leaf(Node):
    """A tensor that gradients are taken for: `requires_grad`, or an argument of a transform."""

    __slots__ = ("grad", "off")

    def __init__(self, segment: Segment = LEAVES) -> None:
        self.segment = segment
        self.sequence = 0
        self.grad: Any = None
        self.off = False  # whether its tensor does not require a gradient for the time being


class Record(Node):
    """A record whose cotangent the walk keeps in `ct` until it gets there."""

    __slots__ = ("ct", "op", "out")
    op: Op
    out: Any
    ct: Any


class Unary(Record):
    """One input; `x` and `out` are kept if a rule reads them."""

    __slots__ = ("params", "parent", "x")

    def __init__(
        self, op: Op, segment: Segment, parent: Node | None, x: Any, out: Any, params: Any = None
    ) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parent = parent
        self.x = x
        self.out = out
        self.params = params
        self.ct = None


class LargeUnary(Unary):
    """The same of an elementwise op on large arrays, whose rule is done by a native kernel."""

    __slots__ = ()


class Binary(Record):
    """Two inputs of which at least one is tracked, without parameters."""

    __slots__ = ("parent", "parent2", "x", "y")

    def __init__(
        self,
        op: Op,
        segment: Segment,
        parent: Node | None,
        parent2: Node | None,
        x: Any,
        y: Any,
        out: Any,
    ) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parent = parent
        self.parent2 = parent2
        self.x = x
        self.y = y
        self.out = out
        self.ct = None


class LargeBinary(Binary):
    """The same of an elementwise op on large arrays."""

    __slots__ = ()


class General(Record):
    """Any number of inputs, outputs and parameters. With several outputs `ct` is a list."""

    __slots__ = ("avals", "inputs", "params", "parents")

    def __init__(
        self,
        op: Op,
        segment: Segment,
        parents: tuple[Node | None, ...],
        inputs: tuple[Any, ...],
        out: Any,
        params: dict[str, Any],
        avals: Any,
    ) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parents = parents
        self.inputs = inputs
        self.out = out
        self.params = params
        self.avals = avals
        self.ct = None


class Assigning(General):
    """`x[index] = value` done in place: its cotangent is passed on in place too, O(part)."""

    __slots__ = ()


class Output(Record):
    """Output number `index` of the record of an op with several outputs."""

    __slots__ = ("index", "parent")

    def __init__(self, parent: General, index: int) -> None:
        self.op = parent.op
        self.segment = parent.segment
        self.sequence = parent.segment.next_sequence()
        self.parent = parent
        self.index = index
        self.out = None
        self.ct = None


class Indexing(Record):
    """`x[index]`: its cotangent is added into that part of the cotangent of `x`, in place."""

    __slots__ = ("index", "parent", "x")

    def __init__(self, op: Op, segment: Segment, parent: Node, x: Aval, index: Any) -> None:
        self.op = op
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.parent = parent
        self.x = x
        self.index = index
        self.out = None
        self.ct = None


class Constant(Record):
    """A value lifted to a level where it depends on nothing: its gradient is 0 there."""

    __slots__ = ()

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.sequence = segment.next_sequence()
        self.out = None
        self.ct = None


def parents_of(node: Node) -> tuple[Node | None, ...]:
    """The nodes a node was computed from."""
    if isinstance(node, Unary | Output | Indexing):
        return (node.parent,)
    if isinstance(node, Binary):
        return (node.parent, node.parent2)
    if isinstance(node, General):
        return node.parents
    return ()


class _Released:
    """Stands for the op of a record that was freed: whoever walks to it is told."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TapeError(
            "gradient: this part of the tape was released by a backward pass with release=True; "
            "leave that out to walk it again"
        )


_RELEASED: Any = _Released()


def free(record: Record) -> None:
    """Let go of everything a record holds; it can no longer be walked."""
    record.out = None
    record.op = _RELEASED
    if isinstance(record, Unary | Indexing):
        record.parent = record.x = None
    elif isinstance(record, Binary):
        record.parent = record.parent2 = record.x = record.y = None
    elif isinstance(record, General):
        record.parents = record.inputs = ()
