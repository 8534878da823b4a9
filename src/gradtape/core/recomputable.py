"""Records of checkpointed stretches: they hold little, and the walk computes the rest again.

A `Recomputable` holds operands that come from outside of its stretch (leaves, arrays that are not
tracked) and its result only if a policy keeps it. Everything else is found through its parents:
the value of an operand is the result of the record that made it, kept or recomputed.

A stretch is divided into blocks. A result that is used in another block than its own is kept, as
the block could not be recomputed by itself otherwise; nothing else has to be.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gradtape.core.aval import Aval, aval_of, nbytes
from gradtape.core.cost import estimated_cost
from gradtape.core.level import Node, Segment
from gradtape.core.nested import wrap
from gradtape.core.offload import Offloaded, Store, owner_of
from gradtape.core.op import Op
from gradtape.core.record import Assigning, General, Output, Pusher, Record, Taker, give_part
from gradtape.core.tensor import Tensor
from gradtape.errors import TapeError

# Where the value of an operand is found: the record that made it, and which of its results it is.
Source = tuple["Recomputable", int | None]


class Restored(Protocol):
    """What a walk holds while it restores values, see `core.restore`.

    Attributes:
        held: The bytes of results that were retained in replays.
        changed: To be set by a policy that let something go: it is asked again then.
    """

    held: int
    changed: bool

    def cotangents(self) -> int:
        """The bytes of cotangents that wait for their records."""
        ...

    def let_go(self) -> int:
        """Drop the newest restored result that is not needed right now.

        Returns:
            Its bytes; 0 if there is none.
        """
        ...


class RecordPolicy(Protocol):
    """Decides which results the records of a stretch keep, and what is retained in a replay.

    Attributes:
        block: The number of the block that the next record belongs to.
        store: Where large results that are kept go; None if they stay in memory.
        is_one_checkpoint: Whether its records count as one checkpoint: a call of a function.
    """

    block: int
    store: Store | None
    is_one_checkpoint: bool

    def keeps(self, record: Recomputable, out: Any) -> bool:
        """Whether a new record keeps its result; older ones may be told to drop theirs."""
        ...

    def pinned(self, record: Recomputable) -> None:
        """A result has been kept because another block reads it."""
        ...

    def freed(self, record: Recomputable) -> None:
        """A record is about to be freed, with the result it may hold."""
        ...

    def replayed(self, record: Recomputable) -> None:
        """A result has been computed again."""
        ...

    def visited(self, record: Recomputable) -> None:
        """A walk has come to a record, and is about to look for the values that it reads."""
        ...

    def labelled(self, out: Any) -> Any:
        """What stands for a result that was computed again: the result, or one that is marked."""
        ...

    def retained(
        self, stretch: Sequence[Recomputable], restored: Restored
    ) -> frozenset[Recomputable] | None:
        """Which results to retain while a stretch is replayed; None for all that rules read.

        Args:
            stretch: Records to replay, oldest first. The walk is about to visit them, newest first.
            restored: What the walk holds besides. If something is let go, here or by records that
                kept it, the stretch may be a longer one, and the policy is asked again.
        """
        ...


class Recomputable(General):
    """A record that keeps its result only if its policy says so.

    Attributes:
        policy: The policy of the stretch.
        block: The number of its block.
        place: A number that its policy knows it by.
        size: The bytes of its result; 0 for one that shares memory with an operand.
        flat: Whether the bare rules hold, as for the records of the fast paths.
        floor: Up to which level recording was off when it was made, as in the state.
        mark: A fingerprint of the result of a user's function; None for other ops.
        below: For each result, weak references to its nodes at lower levels, the highest first.
        read: Whether a rule reads its result: its own, or one of a record that uses it.
        reads: Flags for (result, *operands): whether a rule of its own reads each.
        sources: For each operand, the record to find its value at, and which of its results it is;
            None if it is held here.
        cost: About how many operations on elements it takes to compute the result.
    """

    __slots__ = (
        "below", "block", "cost", "flat", "floor", "mark", "place", "policy", "read", "reads",
        "size", "sources",
    )  # fmt: skip

    def __init__(
        self,
        op: Op,
        segment: Segment,
        parents: tuple[Node | None, ...],
        inputs: tuple[Any, ...],
        avals: Any,
        params: dict[str, Any],
        policy: RecordPolicy,
        *,
        flat: bool,
        floor: tuple[int, Any],
    ) -> None:
        super().__init__(op, segment, parents, inputs, avals, params, avals)
        self.policy = policy
        self.block = policy.block
        self.size = 0 if op.aliases else sum(map(nbytes, self._parts(avals)))
        self.place = -1
        self.flat = flat
        self.floor = floor
        self.mark: int | None = None
        self.below: list[_Nodes] = []
        self.cost = estimated_cost(op, inputs, self._parts(avals))
        # Found once, as policies and walks ask for them again and again.
        self.reads = op.keeps(tuple([parent is not None for parent in parents]))
        self.sources = tuple(
            [
                source_of(parent) if type(held) is Aval else None
                for parent, held in zip(parents, inputs, strict=True)
            ]
        )
        self.read = self.reads[0]
        for source, is_read in zip(self.sources, self.reads[1:], strict=True):
            if is_read and source is not None:
                source[0].read = True

    def _parts(self, values: Any) -> tuple[Any, ...]:
        return (values,) if self.op.outputs == 1 else values

    # ---- its result ------------------------------------------------------------------------

    def keep(self, out: Any) -> None:
        """Hold the result, in memory or on disk.

        Raises:
            OffloadError: It could not be written to disk.
        """
        store = self._store
        if store is not None:
            try:
                parts = tuple([self._stored(part, store) for part in self._parts(out)])
            except BaseException:
                self.policy.freed(self)  # which has counted it
                raise
            out = parts[0] if self.op.outputs == 1 else parts
        self.out = out

    def drop(self) -> None:
        """Let go of the result, which can be computed again."""
        if self.is_there(None):
            self.note(self.out)
        self.out = self.avals

    def note(self, out: Any) -> None:
        """Note what has to be known of a result that is not kept, when it is computed again."""
        if self.op.kind == "custom":
            self.mark = fingerprint(tuple(map(_read, out)))
        self.below = [_nodes(part) for part in self._parts(out)]

    def result(self, index: int | None) -> Any:
        """One of the results it holds, or all of them for None; an `Aval` for what is not there."""
        out = self.out if index is None else self.out[index]
        if type(out) is tuple:
            return tuple([_read(part) for part in out])
        return _read(out)

    def is_there(self, index: int | None) -> bool:
        """Whether it holds one of its results; all of them, for None."""
        parts = self._parts(self.out) if index is None else (self.out[index],)
        return not any(isinstance(part, Aval) for part in parts)

    def pin(self, index: int | None, value: Any) -> None:
        """Keep a result that is used in another block.

        Raises:
            OffloadError: It could not be written to disk.
        """
        if self.is_there(index):
            return
        store = self._store
        if store is not None:
            value = self._stored(value, store)
        if index is None:
            self.out = value
        else:
            self.out = (*self.out[:index], value, *self.out[index + 1 :])
        self.policy.pinned(self)

    @property
    def _store(self) -> Store | None:
        """Where its result goes if it is kept: the tape's, where a function in it has none."""
        own = self.policy.store
        return self.segment.policy.store if own is None and self.segment.policy else own

    def _stored(self, value: Any, store: Store) -> Any:
        """A value to keep: on disk, unless it is small or in memory that is held anyway."""
        return value if self._sees_operands(value) else store.put(value)

    def _sees_operands(self, value: Any) -> bool:
        """Whether a value shares its memory with an operand that a record holds, such as a leaf."""
        if type(value) is not np.ndarray:
            return False
        owner = owner_of(value)
        pending = [self]
        while pending:
            record = pending.pop()
            for source, held in zip(record.sources, record.inputs, strict=True):
                if type(held) is np.ndarray and owner_of(held) is owner:
                    return True
                if source is not None and record.op.aliases:
                    pending.append(source[0])
        return False

    def check(self, out: Any) -> None:
        """Raise if a user's function gave another result this time.

        Raises:
            TapeError: It did; derivatives would not be those of what was computed.
        """
        if self.mark is not None and fingerprint(out) != self.mark:
            raise TapeError(
                f"{self.op.name}: gave another result when it was computed again for the backward "
                "pass of a checkpointed tape; it must depend on its arguments only. Pass random "
                "numbers and everything that changes as arguments, or call it outside of the tape"
            )

    def linked(self, out: Any) -> Any:
        """The result, computed again, with the nodes that it has at lower levels.

        Other tapes record the replay, too. They are to differentiate by what they know already: a
        user may ask for a derivative by it, and the replay would be another value there.
        """
        if not any(self.below):
            return out
        parts = tuple(map(_linked, self._parts(out), self.below))
        return parts[0] if self.op.outputs == 1 else parts

    def keeps_large(self) -> bool:
        return True  # room for what is restored next

    def free(self) -> None:
        self.policy.freed(self)
        super().free()
        self.sources = ()

    # ---- its operands ----------------------------------------------------------------------

    def read_values(self, restorer: Callable[[], Any]) -> tuple[tuple[Any, ...], Any]:
        found: tuple[tuple[Any, ...], Any] = restorer().values(self)
        restorer().passed(self)
        return found

    def pull(self, ct: Any, taker: Taker) -> None:
        restorer = taker.restorer
        inputs, out = restorer.values(self, ct)
        (Record if self.flat else General).give(self, ct, taker, inputs, out)
        restorer.passed(self)

    def push(self, tangents: Any, pusher: Pusher) -> Any:
        given = tuple([None if node is None else tangents.get(node) for node in self.parents])
        if all(tangent is None for tangent in given):
            return None
        return self.pushed(given, pusher, *pusher.restorer.values(self))


class RecomputableIndexing(Recomputable):
    """`x[index]`: its cotangent is added to a part of the cotangent of `x`, as for `Indexing`."""

    __slots__ = ()

    def pull(self, ct: Any, taker: Taker) -> None:
        (parent,), (x,) = self.parents, self.inputs
        assert parent is not None  # it would not be recorded otherwise
        give_part(self, ct, taker, parent, aval_of(x), self.params["index"])
        taker.restorer.passed(self)


class RecomputableAssigning(Assigning, Recomputable):
    """`x[index] = value` done in place: its cotangent is passed on in place too."""

    __slots__ = ()

    def pull(self, ct: Any, taker: Taker) -> None:
        super().pull(ct, taker)
        taker.restorer.passed(self)


def source_of(node: Node | None) -> Source | None:
    """The record whose result a node stands for, if it can be recomputed."""
    if isinstance(node, Recomputable):
        return node, None
    if isinstance(node, Output) and isinstance(node.parent, Recomputable):
        return node.parent, node.index
    return None


_Nodes = tuple[weakref.ref[Node] | None, ...]


def _nodes(value: Any) -> _Nodes:
    """The nodes of a value, level by level; None for levels that are not of reverse mode."""
    found: list[weakref.ref[Node] | None] = []
    while isinstance(value, Tensor) and value.record is not None:
        reverse = isinstance(value.record.segment, Segment)
        found.append(weakref.ref(value.record) if reverse else None)
        value = value.value
    return tuple(found)


def _linked(value: Any, nodes: _Nodes) -> Any:
    """A value with nodes in place of its own, as far as they are alive."""
    if not nodes or not isinstance(value, Tensor):
        return value
    known = None if nodes[0] is None else nodes[0]()
    return wrap(_linked(value.value, nodes[1:]), value.record if known is None else known)


def _read(value: Any) -> Any:
    """A value that a record holds, from disk if it is there."""
    return value.array() if type(value) is Offloaded else value


def is_dropped(node: Node | None, block: int) -> bool:
    """Whether no record of a block holds the value of a node, as it can be computed again."""
    source = source_of(node)
    if source is None:
        return False
    record, index = source
    return record.block == block and not record.is_there(index)


def fingerprint(outs: tuple[Any, ...]) -> int:
    """A number that tells results of a function apart: a checksum of their bytes."""
    total = 0
    for out in outs:
        if type(out) is np.ndarray:
            total = zlib.crc32(np.ascontiguousarray(out).view(np.uint8).data, total)
    return total
