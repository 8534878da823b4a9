"""The backward walk: from targets to leaves, newest record first.

Two walks do the same. `_walk_in_records` is the straight line for the common case: cotangents of
records wait in the records themselves. `_walk_apart` keeps them in a dict and can do more: rebuild
tensors so that the backward pass is itself recorded (`create_graph`), free records as it goes, or
share records with another walk in progress (a rule that differentiates, another thread).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.blame import blame
from gradtape.core.finite import is_finite, is_plain_factor, is_traced
from gradtape.core.large import (
    LARGE,
    added,
    copied,
    copy_into,
    is_large,
)
from gradtape.core.narrow import is_narrow
from gradtape.core.pull import UnsettledError, pull, pull_general
from gradtape.core.record import (
    Assigning,
    Binary,
    Constant,
    General,
    Indexing,
    LargeBinary,
    LargeUnary,
    Leaf,
    Node,
    Output,
    Record,
    Segment,
    Unary,
    free,
)
from gradtape.core.tensor import Tensor
from gradtape.errors import GradtapeError

Cotangents = dict[Node, Any]
Roots = Sequence[tuple[Node, Any]]
ndarray = np.ndarray
_NONE: frozenset[Node] = frozenset()


def walk(
    segment: Segment,
    roots: Roots,
    *,
    sources: Iterable[Node] = (),
    create_graph: bool = False,
    release: bool = False,
) -> Cotangents:
    """Pull cotangents back from `roots` to every leaf they reach.

    What comes out finite is right. If it is not, and a rule has a careful form, the walk is done
    again with rules that know what 0 times infinity is where values are not finite (`core.settle`).

    Args:
        segment: The segment all records belong to.
        roots: Nodes with their cotangents; a node may appear several times.
        sources: Records (besides leaves) whose cotangents are wanted as well.
        create_graph: Whether the rules run on recorded tensors, so that the result can be
            differentiated again in the active context.
        release: Whether to free what each record holds once it was visited.

    Returns:
        A dict from leaf (or source) to its cotangent: an array no one else holds, or a tensor.
    """
    wanted = frozenset(node for node in sources if type(node) is not Leaf) if sources else _NONE
    found: Cotangents = {}
    fresh: set[Node] = set()
    # Rules divide by zero and take logarithms of it where the derivative is infinite or the
    # branch was not taken; the conventions at such points are in the rules, not in warnings.
    with np.errstate(all="ignore"):
        # Nothing of a trace can be looked at afterwards, and what is released not walked again.
        careful = release
        for _, ct in roots:
            careful = careful or is_traced(ct)
        try:
            idle = None if careful or create_graph else segment.idle.pop()
        except IndexError:  # another walk is under way
            idle = None
        try:
            if idle is None:
                unsure = _walk_apart(roots, wanted, found, create_graph, release, careful)
            else:
                try:
                    unsure = _walk_in_records(roots, wanted, found, fresh)
                finally:
                    segment.idle.append(idle)
            settled = careful or not unsure or all(map(is_finite, found.values()))
        except UnsettledError:
            settled = False
        if not settled:
            found.clear()
            fresh.clear()
            _walk_apart(roots, wanted, found, create_graph, release, careful=True)
    _own(found, fresh, roots)
    return found


def _walk_in_records(
    roots: Roots, wanted: frozenset[Node], found: Cotangents, fresh: set[Node]
) -> bool:
    """The common case, written flat: this loop is most of what a backward pass costs.

    Returns whether a careful walk might give something else.
    """
    heap: list[tuple[int, Any]] = []
    unsure = False

    def note(node: Node, new: Any) -> None:
        """Remember whether the walk may write into the cotangent of `node`: it made the array."""
        if type(new) is ndarray:
            fresh.add(node)
        else:
            fresh.discard(node)

    def give(node: Any, ct: Any) -> bool:
        """Add `ct` to the cotangent of `node`, in place where the walk made the array itself.

        Returns whether it is the first one.
        """
        if type(node) is Leaf:
            old = found.get(node)
            if old is None:
                found[node] = ct
                return True
            if type(ct) is ndarray and node in fresh:
                old += ct
            else:
                large = type(ct) is ndarray and ct.size >= LARGE
                found[node] = new = added(old, ct) if large else old + ct
                note(node, new)
        elif node.ct is None:
            node.ct = ct
            heappush(heap, (-node.sequence, node))
            return True
        elif type(ct) is ndarray and node in fresh:
            node.ct += ct
        else:
            large = type(ct) is ndarray and ct.size >= LARGE
            node.ct = new = added(node.ct, ct) if large else node.ct + ct
            note(node, new)
        return False

    try:
        for node, ct in roots:
            give(node, ct)
        while heap:
            record = heappop(heap)[1]
            ct = record.ct
            record.ct = None
            if wanted and record in wanted:
                found[record] = ct
            kind = type(record)
            if kind is Binary:
                op, out, x, y = record.op, record.out, record.x, record.y
                if not unsure and op.careful_flat is not None:
                    read = y if x is None else x if y is None else None
                    unsure = out is not None or not is_plain_factor(read)
                rule, rule2 = op.flat_vjps
                if record.parent is not None:
                    result = rule(ct, out, x, y)
                    if result is not None:
                        give(record.parent, result)
                if record.parent2 is not None:
                    result = rule2(ct, out, x, y)
                    if result is not None:
                        give(record.parent2, result)
            elif kind is Unary:
                op, params = record.op, record.params
                if op.careful_flat is not None:
                    unsure = True
                rule = op.flat_vjps[0]
                if params is None:
                    result = rule(ct, record.out, record.x)
                else:
                    result = rule(ct, record.out, record.x, **params)
                if result is not None:
                    give(record.parent, result)
            elif kind is Indexing:
                rule = record.op.flat_vjps[0]
                if not _add_part(record, ct, found, fresh, heap):
                    give(record.parent, rule(ct, None, record.x, index=record.index))
            elif kind is Output:
                parts = record.parent.ct
                if parts is None:
                    record.parent.ct = parts = [None] * len(record.parent.avals)
                    heappush(heap, (-record.parent.sequence, record.parent))
                _add_output(parts, record.index, ct)
            elif kind is General:
                op = record.op
                if not unsure and op.careful is not op.vjps:
                    unsure = not is_large((ct, *record.inputs))
                for node, result in pull_general(record, ct):
                    give(node, result)
            elif kind is Assigning:
                if type(ct) is not ndarray:
                    for node, result in pull_general(record, ct):
                        give(node, result)
                    continue
                index, (whole, part) = record.params["index"], record.parents
                taken = ct[index]
                if part is not None:
                    give(part, np.array(taken))
                # Nothing flows into what was overwritten as a whole.
                if whole is not None and taken.size < ct.size:
                    if record not in fresh or record in wanted:
                        ct = copied(ct)
                    ct[index] = 0
                    if give(whole, ct):
                        fresh.add(whole)
            elif kind is LargeUnary or kind is LargeBinary:
                for node, result in pull(record, ct, rebuild=False):
                    give(node, result)
    except GradtapeError as error:
        blame(record, error)
        raise
    finally:
        # After an error in a rule: no cotangent may stay behind for the next walk to add to.
        for _, record in heap:
            record.ct = None
    return unsure


def _add_part(
    record: Indexing, ct: Any, found: Cotangents, fresh: set[Node], heap: list[tuple[int, Any]]
) -> bool:
    """Add a cotangent into its part of that of the indexed tensor: O(part), not O(whole).

    Returns False if the arrays are not raw or not ours to write to.
    """
    node: Any = record.parent
    leaf = type(node) is Leaf
    whole = found.get(node) if leaf else node.ct
    if is_narrow(ct) or (type(ct) is not ndarray and not isinstance(ct, np.generic)):
        return False
    if whole is None:
        whole = np.zeros(record.x.shape, record.x.dtype)
        fresh.add(node)
        if leaf:
            found[node] = whole
        else:
            node.ct = whole
            heappush(heap, (-node.sequence, node))
        if is_large((ct,)):
            copy_into(whole[record.index], ct)
            return True
    elif node not in fresh:
        return False
    whole[record.index] += ct
    return True


def _add_output(parts: list[Any], index: int, ct: Any) -> None:
    """Add to the cotangent of one output of an op; several nodes may stand for the same output."""
    parts[index] = ct if parts[index] is None else added(parts[index], ct)


# ---- the walk that can do everything ------------------------------------------------------------


def _walk_apart(
    roots: Roots,
    wanted: frozenset[Node],
    found: Cotangents,
    create_graph: bool,
    release: bool,
    careful: bool,
) -> bool:
    """The same walk with cotangents in a dict, on rebuilt tensors if `create_graph`."""
    heap: list[tuple[int, Any]] = []
    unsure = False
    waiting: dict[Node, Any] = {}

    def give(node: Node, ct: Any) -> None:
        if isinstance(node, Leaf):
            found[node] = ct if node not in found else added(found[node], ct)
        elif node in waiting:
            waiting[node] = added(waiting[node], ct)
        else:
            waiting[node] = ct
            heappush(heap, (-node.sequence, node))

    for node, ct in roots:
        give(node, ct)
    while heap:
        record: Record = heappop(heap)[1]
        ct = waiting.pop(record)
        if record in wanted:
            found[record] = ct
        if isinstance(record, Output):
            parts = waiting.get(record.parent)
            if parts is None:
                parts = waiting[record.parent] = [None] * len(record.parent.avals)
                heappush(heap, (-record.parent.sequence, record.parent))
            _add_output(parts, record.index, ct)
        else:
            try:
                if not isinstance(record, Constant):
                    unsure = unsure or record.op.careful is not record.op.vjps
                pulled = pull(record, ct, rebuild=create_graph, careful=careful)
            except GradtapeError as error:
                blame(record, error)
                raise
            for node, result in pulled:
                give(node, result)
        if release:
            free(record)
    return unsure


def _own(found: Cotangents, fresh: set[Node], roots: Roots) -> None:
    """Make the results arrays of their own: writeable, contiguous, sharing memory with nothing."""
    taken: set[int] | None = None
    for node, ct in found.items():
        if type(ct) is ndarray:
            # What the walk made is nobody else's, unless an identity passed it on.
            if node not in fresh:
                if taken is None:
                    taken = {id(ct) for _, ct in roots}
                    taken.update(id(found[node]) for node in fresh if node in found)
                found[node] = own(ct, taken)
        elif isinstance(ct, Tensor):
            found[node] = type(ct.fresh())(ct.value, ct.record)  # a handle of its own
        elif not isinstance(ct, np.generic):
            found[node] = array_module(ct).array(ct)


def own(value: Any, taken: set[int]) -> Any:
    """A result that shares memory with nothing: writeable, contiguous.

    `taken` holds the identities of arrays that are somebody's already, and gets this one's.
    """
    if type(value) is ndarray:
        if value.base is not None or id(value) in taken or not value.flags.carray:
            value = copied(value)
        taken.add(id(value))
    return value
