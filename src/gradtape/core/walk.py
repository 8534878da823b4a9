"""The backward walk from targets to leaves, newest record first.

Two walks do the same. `_walk_in_records` is the straight line for the common case: cotangents of
records wait in the records themselves. `_walk_apart` keeps them in a dict and can do more: rebuild
tensors so that the backward pass is itself recorded (`create_graph`), free records as it goes, or
share records with another walk in progress (a rule that differentiates, another thread).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.copies import add_to_zeros, copied
from gradtape.core.evaluate import NotFiniteError, add, add_watched
from gradtape.core.finite import is_finite, is_plain_factor, is_traced
from gradtape.core.hooks import HOOKS
from gradtape.core.level import Leaf, Node, Segment
from gradtape.core.record import Binary, General, Output, Record, Taker, Unary
from gradtape.core.restore import Restorer
from gradtape.core.small_floats import is_narrow
from gradtape.core.state import STATE, WATCHING
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

    Finite results are right. If they are not finite, and a rule has a careful form, the walk is
    done again with rules that settle 0 times infinity where values are not finite (`core.settle`).

    Args:
        segment: The segment all records belong to.
        roots: Nodes with their cotangents; a node may appear several times.
        sources: Records (besides leaves) whose cotangents are wanted as well.
        create_graph: Whether the rules run on recorded tensors, so that the result can be
            differentiated again in the active context.
        release: Whether to free each record once it was visited.

    Returns:
        A dict from leaf (or source) to its cotangent: an array no one else holds, or a tensor.
    """
    wanted = frozenset(node for node in sources if type(node) is not Leaf) if sources else _NONE
    found: Cotangents = {}
    fresh: set[Node] = set()
    # Rules divide by zero and take logarithms of it where the derivative is infinite or the
    # branch was not taken; the conventions at such points are in the rules, not in warnings.
    with np.errstate(all="ignore"):
        # Values of a trace cannot be checked afterwards, and released records not walked again.
        careful = release
        for _, ct in roots:
            careful = careful or is_traced(ct)
        watched = bool(WATCHING) and STATE.get().watched and not create_graph
        try:
            idle = None if careful or create_graph or watched else segment.idle.pop()
        except IndexError:  # another walk is under way
            idle = None
        try:
            if idle is None:
                unsure = _walk_apart(roots, wanted, found, create_graph, release, careful, watched)
            else:
                try:
                    unsure = _walk_in_records(roots, wanted, found, fresh)
                finally:
                    segment.idle.append(idle)
            settled = careful or not unsure or all(map(is_finite, found.values()))
        except NotFiniteError:
            settled = False
        if not settled:
            found.clear()
            fresh.clear()
            _walk_apart(roots, wanted, found, create_graph, release, True, watched)
    _own(found, fresh, roots)
    return found


def _walk_in_records(
    roots: Roots, wanted: frozenset[Node], found: Cotangents, fresh: set[Node]
) -> bool:
    """The common case, written flat: this loop is most of the cost of a backward pass.

    Returns whether a careful walk might give a different result.
    """
    heap: list[tuple[int, Any]] = []
    unsure = False

    def give(node: Any, ct: Any) -> bool:
        """Add `ct` to the cotangent of `node`, in place where the walk made the array itself.

        Returns whether it is the first one.
        """
        leaf = type(node) is Leaf
        old = found.get(node) if leaf else node.ct
        if old is None:
            if leaf:
                found[node] = ct
            else:
                node.ct = ct
                heappush(heap, (-node.sequence, node))
            return True
        if type(ct) is ndarray and node in fresh:
            old += ct
            return False
        new = add(old, ct)
        if leaf:
            found[node] = new
        else:
            node.ct = new
        # The walk may write into the cotangent: it made the array.
        if type(new) is ndarray:
            fresh.add(node)
        else:
            fresh.discard(node)
        return False

    taker: Taker | None = None
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
            else:
                if taker is None:
                    taker = _taker(give, found, fresh, heap, wanted)
                record.pull(ct, taker)
    except GradtapeError as error:
        HOOKS.rule_failed(record.op, error)
        raise
    finally:
        # After an error in a rule: no cotangent may stay behind for the next walk to add to.
        for _, record in heap:
            record.ct = None
    return unsure or (taker is not None and taker.unsure)


def _taker(
    give: Callable[[Any, Any], bool],
    found: Cotangents,
    fresh: set[Node],
    heap: list[tuple[int, Any]],
    wanted: frozenset[Node],
) -> Taker:
    """The interface to `_walk_in_records` for records that the loop does not pull itself."""

    def give_part(node: Any, whole: Any, index: Any, ct: Any) -> bool:
        """Add `ct` to its part of the cotangent of `node`: O(part), not O(whole)."""
        if is_narrow(ct) or (type(ct) is not ndarray and not isinstance(ct, np.generic)):
            return False
        old = found.get(node) if type(node) is Leaf else node.ct
        if old is None:
            zeros = np.zeros(whole.shape, whole.dtype)
            add_to_zeros(zeros, index, ct)
            give(node, zeros)
            fresh.add(node)
        elif node in fresh:
            old[index] += ct
        else:
            return False
        return True

    def give_output(node: General, index: int, ct: Any) -> None:
        """Add `ct` to the cotangent of one output; several nodes may stand for the same one."""
        parts = node.ct
        if parts is None:
            node.ct = parts = [None] * len(node.avals)
            heappush(heap, (-node.sequence, node))
        parts[index] = ct if parts[index] is None else add(parts[index], ct)

    return Taker(give, give_part, give_output, fresh, wanted, restorer=Restorer())


# ---- the walk that can do everything ------------------------------------------------------------


def _walk_apart(
    roots: Roots,
    wanted: frozenset[Node],
    found: Cotangents,
    create_graph: bool,
    release: bool,
    careful: bool,
    watched: bool,
) -> bool:
    """The same walk with cotangents in a dict, on rebuilt tensors if `create_graph`."""
    heap: list[tuple[int, Any]] = []
    waiting: dict[Node, Any] = {}

    def give(node: Node, ct: Any) -> bool:
        held = found if isinstance(node, Leaf) else waiting
        if node in held:
            held[node] = plus(held[node], ct)
            return False
        held[node] = ct
        if held is waiting:
            heappush(heap, (-node.sequence, node))
        return True

    def give_output(node: General, index: int, ct: Any) -> None:
        if node not in waiting:
            give(node, [None] * len(node.avals))
        parts = waiting[node]
        parts[index] = ct if parts[index] is None else plus(parts[index], ct)

    def not_in_parts(*_part: Any) -> bool:
        return False

    plus = add_watched if watched else add
    taker = Taker(
        give,
        not_in_parts,
        give_output,
        careful=careful,
        rebuild=create_graph,
        watched=watched,
        restorer=Restorer(),
    )
    for node, ct in roots:
        give(node, ct)
    while heap:
        record: Record = heappop(heap)[1]
        ct = waiting.pop(record)
        if record in wanted:
            found[record] = ct
        try:
            record.pull(ct, taker)
        except GradtapeError as error:
            HOOKS.rule_failed(record.op, error)
            raise
        # An output holds only the record of its op, whose turn is still to come.
        if release and type(record) is not Output:
            record.free()
    return taker.unsure


def _own(found: Cotangents, fresh: set[Node], roots: Roots) -> None:
    """Make the results independent arrays: writeable, contiguous, sharing memory with nothing."""
    taken: set[int] | None = None
    for node, ct in found.items():
        if type(ct) is ndarray:
            # Arrays that the walk made belong to no one else, unless an identity passed them on.
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

    `taken` holds the ids of arrays that have an owner already; this one's is added.
    """
    if type(value) is ndarray:
        if value.base is not None or id(value) in taken or not value.flags.carray:
            value = copied(value)
        taken.add(id(value))
    return value
