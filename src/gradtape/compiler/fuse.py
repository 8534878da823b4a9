"""Fusion: which ops become one loop nest.

Results that are not recomputed wherever they are needed are *roots*. They are put into groups, in
order: a root joins the group of something it reads (or that reads the same) if the axes of both
agree, the values it reads of the group are available at the same point of the loop, and no other
group has to run in between.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gradtape.compiler.classify import is_inlinable
from gradtape.compiler.element_expressions import ZERO, Index, Puller, reshaped_index
from gradtape.compiler.fusion_roots import find_roots, operands_in_memory
from gradtape.compiler.kernel import Axis, affine
from gradtape.compiler.reachability import Reachability
from gradtape.core.lazy import lazy
from gradtape.core.lowering import Reduction
from gradtape.core.scalar import Scalar
from gradtape.graph.ir import Graph, Node, Value, sources

# Loops with more instructions take long to compile, and their values do not fit into registers.
_LONGEST_BODY = 1000
# Rows of more elements do not fit into the first-level cache; stages would read memory again.
_LONGEST_ROW = 1 << 15
# The largest column of long rows, counted with all elements of the cache lines it touches: these
# are far apart, whereas a pass in memory order reads no more than it needs.
_LARGEST_COLUMN = 1 << 12
_LINE = 16
# Kernels with more arrays take LLVM long: all their addresses are needed at once.
_MOST_ARRAYS = 96
# Of the groups that read an array, only this many of the latest are tried. A parameter that each
# step of an unrolled loop reads has thousands.
_LATEST = 32


class Member(NamedTuple):
    """A root in a group.

    Attributes:
        kind: "full": one element per point of all axes; "reduction"; "outer": one per point of
            the axes that are not reduced, computed from what was reduced.
        place: The index of its element at the point where it is computed.
        level: The stage that computes it.
    """

    kind: str
    place: Index
    level: int


class Group:
    """Roots that share a loop nest, or one node that has none."""

    def __init__(self, axes: list[Axis], opaque: Node | None = None) -> None:
        self.number = -1
        self.axes = axes
        self.opaque = opaque
        self.members: dict[Value, Member] = {}
        self.cost = 0
        # In the order of the graph: generated code must not depend on ids.
        self.reads: dict[Value, None] = {}
        # The reasons why roots that read this group are not in it, for `explain`.
        self.cuts: list[str] = []
        # Whether something was refused because the group is too large.
        self.full = False

    @property
    def flags(self) -> list[bool]:
        """For each axis, whether it is reduced."""
        return [axis.reduced for axis in self.axes]

    @property
    def reduced(self) -> bool:
        """Whether it reduces over anything."""
        return any(axis.reduced for axis in self.axes)


class MisalignedError(Exception):
    """A member of the group is read at a point other than the one where it is computed."""


class Fusion:
    """The groups of a graph, in an order in which they can run.

    Attributes:
        groups: In order.
        stored: The values that are in memory: inputs, outputs, values passed between groups.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._roots, self._costs = find_roots(graph, graph.users())
        self._group_of: dict[Value, Group] = {}
        self._readers: dict[Value, dict[Group, None]] = {}
        self._reachability = Reachability()
        groups: list[Group] = []
        for node in graph.nodes:
            if not is_inlinable(node) and not isinstance(node.op.lower, Reduction):
                group = self._opaque(node)
            elif node.outputs[0] in self._roots:
                group = self._place(node)
            else:
                continue
            if group.number == len(groups):
                groups.append(group)
        self.groups = [groups[number] for number in self._reachability.order()]
        self.stored = self._in_memory()

    @lazy
    def order(self) -> dict[Node, int]:
        """The number of each node of the graph."""
        return {node: number for number, node in enumerate(self.graph.nodes)}

    def nodes_of(self, group: Group) -> list[Node]:
        """The nodes that are computed in a group, including those whose results are not stored."""

        def inside(value: Value) -> bool:
            return value in group.members or value not in self.stored

        nodes = {value.node for value in sources(group.members, inside) if inside(value)}
        return sorted(nodes - {None}, key=self.order.__getitem__)  # type: ignore[arg-type]

    def reads_of(self, node: Node) -> dict[Value, None]:
        """The roots and inputs that a node needs, also through values computed on the way."""
        roots = self._roots
        needed = sources(node.operands, lambda value: value not in roots)
        return {value: None for value in needed if value.node is None or value in roots}

    # ---- groups ----------------------------------------------------------------------------

    def _opaque(self, node: Node) -> Group:
        group = Group([], opaque=node)
        # It may read the source of a reshaped operand, even if the operand is in memory as well.
        self._read(group, self.reads_of(node) | dict.fromkeys(operands_in_memory(node)))
        for value in node.outputs:
            group.members[value] = Member("opaque", (), 0)
            self._group_of[value] = group
        return group

    def _place(self, node: Node) -> Group:
        """Put a root into a group, an existing one if possible."""
        root, reads = node.outputs[0], self.reads_of(node)
        for group in self._candidates(reads):
            found = self._fitting(group, node, reads)
            if isinstance(found, Member):
                member = found
                break
            group.cuts.append(f"{node.op.name}: {found}")
        else:
            group = _new_group(node)
            position = _position(group, node)
            assert position is not None  # the axes of a new group are its own
            member = Member(*position, 0)
        group.members[root] = member
        group.cost += self._costs[root]
        self._read(group, reads)
        self._group_of[root] = group
        return group

    def _read(self, group: Group, reads: dict[Value, None]) -> None:
        """Note the values that a group reads."""
        if group.number < 0:
            group.number = self._reachability.add()
        group.reads |= reads
        for value in reads:
            self._readers.setdefault(value, {})[group] = None
        others = {self._group_of[v].number for v in reads if v in self._group_of} - {group.number}
        self._reachability.depend(group.number, others)

    def _candidates(self, reads: dict[Value, None]) -> list[Group]:
        """Groups that a root might join: those it reads, then those that read the same arrays."""
        near: dict[Group, int] = {}
        for value in reads:
            if value in self._group_of and self._group_of[value].opaque is None:
                near[self._group_of[value]] = near.get(self._group_of[value], 0) + 100
        for value in reads:
            readers = reversed(self._readers.get(value, {})) if value.aval.ndim else ()
            for group in itertools.islice(readers, _LATEST):
                if group.opaque is None and not group.full:
                    near[group] = near.get(group, 0) + 1
        return sorted(near, key=lambda group: (-near[group], group.number))[:8]

    def _fitting(self, group: Group, node: Node, reads: dict[Value, None]) -> Member | str:
        """A root as a member of a group; the reason if it cannot be in it."""
        position = _position(group, node)
        if position is None:
            return "runs over other axes"
        kind, index = position
        long = group.cost + self._costs[node.outputs[0]] > _LONGEST_BODY
        if long or len(group.members) + len(group.reads) + len(reads) > _MOST_ARRAYS:
            group.full = True
            return f"the loop would {'be too long' if long else 'use too many arrays'}"
        others = {self._group_of[v] for v in reads if v in self._group_of} - {group}
        if any(self._reachability.depends(other.number, group.number) for other in others):
            return "needs something that comes after the group"
        level = 0
        for value in reads:
            own = group.members.get(value)
            if own is not None:
                later = own.kind != "full" and kind != "outer"
                level = max(level, own.level + later)
        flags = _reduced_flags(group, node) if kind == "reduction" else group.flags
        if level and any(flags) and _streams(group.axes, flags):
            return "the rows are too long to go through twice"
        try:
            self._try(group, node, kind, index)
        except MisalignedError:
            return "reads other elements than those at hand"
        for axis, reduced in zip(group.axes, flags, strict=True):
            axis.reduced = reduced
        return Member(kind, index, level)

    def _try(self, group: Group, node: Node, kind: str, index: Index) -> None:
        """Pull the root with the group's members available; raises if they are misaligned."""

        def stored(
            value: Value, shape: tuple[int, ...], at: Index, inside: Scalar | None
        ) -> Scalar | None:
            member = group.members.get(value)
            if member is not None:
                check_aligned(value, member, shape, at)
            elif value.node is node or (value.node is not None and value not in self._roots):
                return None  # the root itself is being tried, and is pulled too
            return Scalar("argument", (), value.dtype, weak=value.aval.weak)

        puller = Puller(stored)
        if kind == "reduction":
            puller.element(node.operands[0], index_of(group.axes, node.operands[0].shape))
        else:
            puller.element(node.outputs[0], index)

    def _in_memory(self) -> set[Value]:
        """Inputs, outputs, and values that are read outside the group that makes them."""
        stored = set(self.graph.inputs)
        stored |= {output for output in self.graph.outputs if isinstance(output, Value)}
        stored |= {
            v for node in self.graph.nodes if node.op.effect is not None for v in node.outputs
        }
        for group in self.groups:
            stored |= {v for v in group.reads if self._group_of.get(v) is not group}
            opaque = group.opaque
            if opaque is not None and (len(opaque.outputs) == 1 or opaque.op.kind == "control"):
                stored |= set(opaque.outputs)
        return stored


def check_aligned(value: Value, member: Member, shape: tuple[int, ...], at: Index) -> None:
    """Raise if a member of a group is read at a point other than where it is computed."""
    if shape != value.shape:
        at = reshaped_index(at, shape, value.shape)
    for wanted, own in zip(at, member.place, strict=True):
        if wanted is not own and affine(wanted) != affine(own):
            raise MisalignedError


# ---- axes ---------------------------------------------------------------------------------------


def _streams(axes: Sequence[Axis], reduced: Sequence[bool]) -> bool:
    """Whether the elements reduced at a time are too many to go through more than once."""
    sizes = [(axis.size, flag) for axis, flag in zip(axes, reduced, strict=True) if axis.size != 1]
    row = math.prod(size for size, flag in sizes if flag)
    width, last = sizes[-1] if sizes else (1, True)
    if last:
        return row > _LONGEST_ROW
    return row * width > _LONGEST_ROW and row * min(width, _LINE) > _LARGEST_COLUMN


def _new_group(node: Node) -> Group:
    if isinstance(node.op.lower, Reduction) and not is_inlinable(node):
        shape, reduced = node.operands[0].shape, node.params["axis"]
    else:
        shape, reduced = node.outputs[0].shape, ()
    return Group([Axis(f"i{k}", n, reduced=k in reduced) for k, n in enumerate(shape)])


def _position(group: Group, node: Node) -> tuple[str, Index] | None:
    """The kind of member a root would be, and its index; None if the axes do not fit."""
    shape = node.outputs[0].shape
    if isinstance(node.op.lower, Reduction) and not is_inlinable(node):
        flags = _reduced_flags(group, node)
        if not flags or (group.reduced and flags != group.flags):
            return None
        if any(m.kind == "outer" for m in group.members.values()) and not group.reduced:
            return None
        kept = [a for a, flag in zip(group.axes, flags, strict=True) if not flag and a.size != 1]
        return "reduction", index_of(kept, shape)
    sizes = [n for n in shape if n != 1]
    every = [axis for axis in group.axes if axis.size != 1]
    if sizes == [axis.size for axis in every]:
        return "full", index_of(every, shape)
    outer = [axis for axis in every if not axis.reduced]
    if group.reduced and sizes == [axis.size for axis in outer]:
        return "outer", index_of(outer, shape)
    return None


def index_of(axes: Iterable[Axis], shape: tuple[int, ...]) -> Index:
    """The index under a shape whose sizes, apart from ones, are those of the axes."""
    left = iter([axis for axis in axes if axis.size != 1])
    return tuple(ZERO if n == 1 else next(left).index for n in shape)


def _reduced_flags(group: Group, node: Node) -> list[bool]:
    """For each axis of a group, whether a reduction reduces it; empty if the axes differ."""
    shape, reduced = node.operands[0].shape, node.params["axis"]
    wanted = [(n, k in reduced) for k, n in enumerate(shape) if n != 1]
    flags = []
    for axis in group.axes:
        if axis.size == 1:
            flags.append(axis.reduced)
            continue
        if not wanted or wanted[0][0] != axis.size:
            return []
        flags.append(wanted.pop(0)[1])
    return [] if wanted else flags
