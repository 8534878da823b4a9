"""What derivatives of a lazy graph compute again: marked tensors, and checkpointed functions.

The graph has every value, and a derivative keeps one by reading it. So what is not to be kept has
to be looked up through its record, which computes it again. A derivative that meets a mark, or a
checkpointed function, makes such records only. They hold what is left to hold: values that a rule
reads, are not marked, and do not stay inside of a checkpointed function.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

from gradtape.autodiff.checkpoint import MARK
from gradtape.autodiff.checkpoint_strategies import Full, KeepNothing
from gradtape.core.aval import nbytes
from gradtape.core.call import call, is_differentiable
from gradtape.core.recomputable import Recomputable, Restored
from gradtape.core.restore import AGAIN
from gradtape.core.tensor import Tensor
from gradtape.graph.ir import Node, Operand, Value
from gradtape.graph.regions import is_chosen, leaves_region, memory_owners, region_of

# Stands for values that are not kept as no rule reads them.
_UNREAD = "unread"


class Recomputing(KeepNothing):
    """The policy of the records of one derivative.

    Attributes:
        node: The node that is recorded next.
        checkpoints: How many tensors, groups and functions it computes again.
    """

    def __init__(self, dropped: dict[Node, Hashable]) -> None:
        super().__init__()
        self.node: Node | None = None
        self.checkpoints = len({part for part in dropped.values() if part is not _UNREAD})
        self._dropped = dropped
        # What each record that keeps nothing is part of, by its number.
        self._parts: dict[int, Hashable] = {}

    def _decides(self, record: Recomputable, out: Any) -> bool:
        assert self.node is not None  # it is set for each record
        part = self._dropped.get(self.node)
        if part is None:
            return True
        self._parts[record.sequence] = part
        return False

    def labelled(self, out: Any) -> Any:
        """The result, marked: derivatives of this derivative do not keep it either."""
        if isinstance(out, tuple):
            return tuple(map(self.labelled, out))
        traced = isinstance(out, Tensor) and is_differentiable(out)
        return call(MARK, (out,), {"least": 0}) if traced else out

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        """What rules read, of the last checkpoint in a long row; the others are replayed by halves.

        One or two need not be replayed twice.
        """
        parts = [self._parts[record.sequence] for record in stretch]
        if len({part for part in parts if part is not _UNREAD}) <= 2:
            return None
        own = [record for record, part in zip(stretch, parts, strict=True) if part == parts[-1]]
        halves = Full().retained(stretch, restored)
        return frozenset(halves or ()).union(record for record in own if record.read)


def recomputing(nodes: Sequence[Node], xs: Collection[Operand], inside: Any) -> Recomputing | None:
    """The policy for a derivative by some values; None if there is nothing to compute again.

    Args:
        nodes: The nodes that the values to differentiate depend on, in order.
        xs: What to differentiate by.
        inside: The policy of the checkpointed function that asks for the derivative, and keeps what
            it computes until it returns; None outside of one.
    """
    if not any(node.region is not None or node.op is MARK for node in nodes):
        return None
    marked = _marked(nodes)
    dropped: dict[Node, Hashable] = {}
    recorded = list(_recorded(nodes, xs))
    read, crossing = _read(recorded), _crossing(recorded)
    for node, _ in recorded:
        part = _part_of(node, marked, crossing, inside)
        if part is None and read.isdisjoint(node.outputs):
            part = _UNREAD
        if part is not None and not _is_noticed(node):
            dropped[node] = part
    found = Recomputing(dropped)
    return found if found.checkpoints else None


def _recorded(
    nodes: Sequence[Node], xs: Collection[Operand]
) -> Iterator[tuple[Node, tuple[bool, ...]]]:
    """The nodes that are recorded, with flags for their tracked operands."""
    reached = set(xs)
    for node in nodes:
        tracked = tuple([operand in reached for operand in node.operands])
        if node.op.tracked and any(tracked):
            reached.update(filter(is_differentiable, node.outputs))
            yield node, tracked


def _read(recorded: Sequence[tuple[Node, tuple[bool, ...]]]) -> set[Operand]:
    """The values that rules read."""
    found: set[Operand] = set()
    for node, tracked in recorded:
        out, *operands = node.op.keeps(tracked)
        found.update(node.outputs if out else ())
        found.update(x for x, reads in zip(node.operands, operands, strict=True) if reads)
    return found


def _crossing(recorded: Sequence[tuple[Node, tuple[bool, ...]]]) -> set[Operand]:
    """The values that leave a checkpointed function."""
    return {
        operand for node, _ in recorded for operand in node.operands if leaves_region(operand, node)
    }


def _is_noticed(node: Node) -> bool:
    """Whether somebody would see that it runs again."""
    return node.has_effect() and node.op.effect != "random"


# ---- marks --------------------------------------------------------------------------------------


def _marked(nodes: Sequence[Node]) -> dict[Operand, Hashable]:
    """The values that are marked, or share memory with marked ones; with what they are part of."""
    owners = memory_owners(nodes)
    marked: dict[Operand, Hashable] = {}
    for node in nodes:
        if node.op is MARK and nbytes(node.operands[0]) >= node.params["least"]:
            owner = owners[node.outputs[0]]
            if owner not in marked:
                marked[owner] = _checkpoint_of(owner, marked, owners)
    for value, owner in owners.items():
        if owner in marked:
            marked[value] = marked[owner]
    return marked


def _checkpoint_of(
    value: Operand, marked: dict[Operand, Hashable], owners: dict[Operand, Operand]
) -> Hashable:
    """What a marked value is part of: a checkpointed function, a replay, or itself."""
    region = region_of(value)
    if region is not None:
        return region.block  # type: ignore[no-any-return]
    node = value.node if isinstance(value, Value) else None
    for operand in () if node is None else node.operands:
        maker = operand.node if isinstance(operand, Value) else None
        if maker is not None and maker.op is AGAIN:
            return maker.operands[1]
        owner = owners.get(operand, operand)
        if isinstance(marked.get(owner), Value) and marked[owner] is not owner:
            return marked[owner]
    return value


def _part_of(
    node: Node, marked: dict[Operand, Hashable], crossing: set[Operand], inside: Any
) -> Hashable | None:
    """The checkpoint that a node is computed again for; None if its results may be kept."""
    for value in node.outputs:
        if value in marked:
            return marked[value]
    region = node.region
    if region is None or region is inside or not crossing.isdisjoint(node.outputs):
        return None
    return None if is_chosen(node) else region.block
