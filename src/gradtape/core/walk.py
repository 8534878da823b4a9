"""The backward walk from targets to leaves, newest record first.

Two walks do the same. `_walk_in_records` is the straight line for the common case: cotangents of
records wait in the records themselves. `_walk_apart` keeps them in a dict and can do more: rebuild
tensors so that the backward pass is itself recorded (`create_graph`), show modes what rules do, or
share records with another walk in progress (a rule that differentiates, another thread).

If no one can walk the records again, they are freed on the way, so that memory goes down from
record to record (`_walk_fast`). Freed records cannot be walked a second time with careful rules.
So as long as all are small, none is freed. At the first that keeps a large array, what was computed
so far is checked; from there on rules are careful, and every record is freed after its turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.copies import add_to_zeros, copied
from gradtape.core.evaluate import NotFiniteError, add, add_watched
from gradtape.core.finite import is_finite, is_plain_factor, is_traced
from gradtape.core.gradient_hooks import HookedWalk, is_hooked
from gradtape.core.hooks import HOOKS
from gradtape.core.level import CONTEXT_LEVEL, WITH_MODES, Leaf, Node, Segment
from gradtape.core.record import Binary, General, Output, Record, Taker, Unary
from gradtape.core.restore import Restorer
from gradtape.core.small_floats import is_narrow
from gradtape.core.state import (
    STATE,
    WATCHING,
    Proceeding,
    current,
    rules_apart,
    run_inside,
    unseen,
)
from gradtape.core.tensor import Tensor
from gradtape.errors import GradtapeError

Cotangents = dict[Node, Any]
Roots = Sequence[tuple[Node, Any]]
ndarray = np.ndarray
_NONE: frozenset[Node] = frozenset()
# Stands in a record in place of its cotangent, once a walk that may free it has visited it.
_VISITED: Any = object()


def walk(
    segment: Segment,
    roots: Roots,
    *,
    sources: Iterable[Node] = (),
    cut: bool = False,
    create_graph: bool = False,
    release: bool = False,
    last: bool = False,
    finish: Callable[[Leaf, Any], None] | None = None,
) -> Cotangents:
    """Pull cotangents back from `roots` to every leaf they reach.

    Finite results are right. If they are not finite, and a rule has a careful form, the walk is
    done again with rules that settle 0 times infinity where values are not finite (`core.settle`).

    Args:
        segment: The segment all records belong to.
        roots: Nodes with their cotangents; a node may appear several times. With `release` or
            `last`, a list is emptied once the walk does not need it, so that cotangents can die.
        sources: Records (besides leaves) whose cotangents are wanted as well.
        cut: Whether the walk ends at these records, instead of going through them.
        create_graph: Whether the rules run on recorded tensors, so that the result can be
            differentiated again in the active context.
        release: Whether to free each record that is visited.
        last: Whether no one can walk the records again: they are freed where that saves memory.
        finish: Takes the gradients of leaves that have hooks to be called afterwards.

    Returns:
        A dict from leaf (or source) to its cotangent: an array no one else holds, or a tensor.
    """
    if (WATCHING or WITH_MODES) and (scope := rules_apart(current())) is not None:
        return run_inside(
            scope, _walk, segment, roots, sources, cut, create_graph, release, last, finish
        )
    return _walk(segment, roots, sources, cut, create_graph, release, last, finish)


def _walk(
    segment: Segment,
    roots: Roots,
    sources: Iterable[Node],
    cut: bool,
    create_graph: bool,
    release: bool,
    last: bool,
    finish: Callable[[Leaf, Any], None] | None,
) -> Cotangents:
    """`walk`, in a state in which the modes see rules that are to see them."""
    wanted = frozenset(node for node in sources if type(node) is not Leaf) if sources else _NONE
    found: Cotangents = {}
    fresh: set[Node] = set()
    taken: set[int] = set()
    last = last or release
    # Rules divide by zero and take logarithms of it where the derivative is infinite or the
    # branch was not taken; the conventions at such points are in the rules, not in warnings.
    with np.errstate(all="ignore"):
        watched = bool(WATCHING) and STATE.get().watched and not create_graph
        pulled = bool(WATCHING) and bool(STATE.get().pullers)
        hooked = is_hooked(segment)
        # Neither hooks nor modes are to see a second walk.
        careful = hooked or pulled
        apart = create_graph or watched or pulled or hooked
        for _, ct in roots:
            if is_traced(ct):  # values of a trace cannot be checked afterwards
                apart = careful = True
            elif release and type(ct) is not ndarray and not isinstance(ct, np.generic):
                apart = True  # arrays of another module: how large they are is not looked at
        ct = None  # so that the cotangent can die in the walk
        try:
            idle = None if apart else segment.idle.pop()
        except IndexError:  # another walk is under way
            idle = None
        try:
            if idle is None:
                way = _Apart(create_graph, last, watched, cut)
                if hooked:
                    quiet = segment.number <= CONTEXT_LEVEL and not create_graph
                    way.hooks = HookedWalk([node for node, _ in roots], found, finish, quiet=quiet)
                # Released records cannot be walked again.
                unsure = _walk_apart(roots, wanted, found, way, careful or last)
                _check(found.values() if unsure else ())
            else:
                try:
                    _walk_fast(roots, wanted, found, fresh, taken, release, last, cut)
                finally:
                    segment.idle.append(idle)
            settled = True
        except NotFiniteError:
            settled = False
        if not settled:
            found.clear()
            fresh.clear()
            way = _Apart(create_graph, last, watched, cut)
            _walk_apart(roots, wanted, found, way, careful=True)
    _own(found, fresh, taken, roots)
    return found


def _check(cotangents: Iterable[Any]) -> None:
    """Raise `NotFiniteError` if rules with a careful form may have to be applied."""
    if not all(map(is_finite, cotangents)):
        raise NotFiniteError


# ---- the walk for the common case ---------------------------------------------------------------


def _walk_fast(
    roots: Roots,
    wanted: frozenset[Node],
    found: Cotangents,
    fresh: set[Node],
    taken: set[int],
    release: bool,
    last: bool,
    cut: bool,
) -> None:
    """Walk with cotangents in the records, and free these as `walk` says.

    Ids of cotangents that are dropped from `roots` are added to `taken`.

    Raises:
        NotFiniteError: A careful walk might give a different result. Nothing was freed.
    """
    heap: list[tuple[int, Any]] = []
    done = False
    try:
        unsure, taker = _walk_in_records(heap, roots, wanted, found, fresh, last, cut)
        if unsure:
            _check(found.values())
            _check(part for _, record in heap for part in _parts(record.ct))
        if heap and taker is not None:  # it has stopped at a record that keeps a large array
            _leave(roots, free=True)
            if isinstance(roots, list):
                taken.update(id(ct) for _, ct in roots)
                roots.clear()
            _walk_freeing(heap, wanted, found, taker)
        done = True
    finally:
        # After an error in a rule: no cotangent may stay behind for the next walk to add to.
        for _, record in heap:
            record.ct = None
        if release:
            _leave(roots, free=done)


def _parts(ct: Any) -> list[Any]:
    """The cotangents that wait in a record."""
    return [part for part in ct if part is not None] if type(ct) is list else [ct]


def _leave(roots: Roots, *, free: bool) -> None:
    """Take the marks off visited records, which can be reached from the roots, or free them."""
    nodes: list[Any] = [node for node, _ in roots]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Record) and node.ct is _VISITED:
            node.ct = None
            nodes += node.parents
            # An output holds only the record of its op, which was visited, too.
            if free and type(node) is not Output:
                node.free()


def _walk_freeing(
    heap: list[tuple[int, Any]], wanted: frozenset[Node], found: Cotangents, taker: Taker
) -> None:
    """Pull the records that are left, with careful rules, and free each after its turn."""
    taker.careful = True
    while heap:
        record: Record = heappop(heap)[1]
        ct = record.ct
        record.ct = None
        if wanted and record in wanted:
            found[record] = ct
        try:
            record.pull(ct, taker)
        except GradtapeError as error:
            HOOKS.rule_failed(record.op, error)
            raise
        if type(record) is not Output:
            record.free()


def _walk_in_records(
    heap: list[tuple[int, Any]],
    roots: Roots,
    wanted: frozenset[Node],
    found: Cotangents,
    fresh: set[Node],
    last: bool,
    cut: bool,
) -> tuple[bool, Taker | None]:
    """The common case, written flat: this loop is most of the cost of a backward pass.

    If `last`, it stops before the first record that keeps a large array; what is left to do is in
    `heap` then, and the records it has visited are marked.

    Returns:
        Whether a careful walk might give a different result, and the interface for the records
        that are left.
    """
    unsure = False
    visited = _VISITED if last else None

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
            record.ct = visited
            if wanted and record in wanted:
                found[record] = ct
                if cut:
                    continue
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
                if last and record.keeps_large():
                    record.ct = ct
                    heappush(heap, (-record.sequence, record))
                    break
                record.pull(ct, taker)
    except GradtapeError as error:
        HOOKS.rule_failed(record.op, error)
        raise
    return unsure or (taker is not None and taker.unsure), taker


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

    def make_restorer() -> Restorer:
        return Restorer(lambda: [record.ct for _, record in heap])

    return Taker(give, give_part, give_output, fresh, wanted, make_restorer=make_restorer)


# ---- the walk that can do everything ------------------------------------------------------------


class _Apart:
    """What a walk apart does besides.

    Attributes:
        create_graph: Whether rules get rebuilt tensors.
        release: Whether records are freed.
        watched: Whether modes see what rules do.
        cut: Whether the walk ends at the records that are wanted.
        hooks: Calls hooks; None if there are none.
    """

    __slots__ = ("create_graph", "cut", "hooks", "release", "watched")

    def __init__(self, create_graph: bool, release: bool, watched: bool, cut: bool) -> None:
        self.create_graph = create_graph
        self.release = release
        self.watched = watched
        self.cut = cut
        self.hooks: HookedWalk | None = None


def _walk_apart(
    roots: Roots, wanted: frozenset[Node], found: Cotangents, way: _Apart, careful: bool
) -> bool:
    """The same walk with cotangents in a dict."""
    heap: list[tuple[int, Any]] = []
    waiting: dict[Node, Any] = {}
    taker = _taker_apart(heap, waiting, found, way, careful)
    pull = _pull
    if WATCHING and STATE.get().pullers:
        pull = functools.partial(_pull_seen, lambda node: found.get(node, waiting.get(node)))
    for node, ct in roots:
        taker.give(node, ct)
    hooks = way.hooks
    while heap:
        record: Record = heappop(heap)[1]
        ct = waiting.pop(record)
        if hooks is not None:
            ct = hooks.arrived(record, ct)
        if record in wanted:
            found[record] = ct
            if way.cut:
                continue
        parents = () if hooks is None else record.parents
        try:
            pull(record, ct, taker)
        except GradtapeError as error:
            HOOKS.rule_failed(record.op, error)
            raise
        # An output holds only the record of its op, whose turn is still to come.
        if way.release and type(record) is not Output:
            record.free()
        if hooks is not None:
            hooks.pulled(parents)
    if hooks is not None:
        hooks.end()
    return taker.unsure


def _taker_apart(
    heap: list[tuple[int, Any]],
    waiting: dict[Node, Any],
    found: Cotangents,
    way: _Apart,
    careful: bool,
) -> Taker:
    """The interface to `_walk_apart` for records."""

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

    plus = add_watched if way.watched else add
    return Taker(
        give,
        not_in_parts,
        give_output,
        careful=careful,
        rebuild=way.create_graph,
        watched=way.watched,
        make_restorer=lambda: Restorer(waiting.values),
    )


def _pull(record: Record, ct: Any, taker: Taker) -> None:
    record.pull(ct, taker)


def _pull_seen(held: Callable[[Node], Any], record: Record, ct: Any, taker: Taker) -> None:
    """Let modes see the rules of a record as one step, whose ops they do not see."""
    state = STATE.get()
    hide = None if taker.watched or taker.rebuild else unseen(state)

    def so_far() -> list[Any]:
        found = [held(parent) for parent in record.parents if parent is not None]
        return [list(ct) if type(ct) is list else ct for ct in found]

    def pull() -> list[Any]:
        if hide is None:
            record.pull(ct, taker)
        else:
            run_inside(hide, record.pull, ct, taker)
        return so_far()

    proceed = Proceeding(pull, lambda: record.read_values(lambda: taker.restorer), ct, so_far)
    for mode in reversed(state.pullers):
        proceed = proceed.seen(functools.partial(mode.pull, record))
    proceed()


def _own(found: Cotangents, fresh: set[Node], taken: set[int], roots: Roots) -> None:
    """Make the results independent arrays: writeable, contiguous, sharing memory with nothing.

    `taken` holds the ids of cotangents that were among `roots`.
    """
    known = False
    for node, ct in found.items():
        if type(ct) is ndarray:
            # Arrays that the walk made belong to no one else, unless an identity passed them on.
            if node not in fresh:
                if not known:
                    known = True
                    taken.update(id(ct) for _, ct in roots)
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
