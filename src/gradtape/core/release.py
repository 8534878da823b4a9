"""Freeing history that can no longer be differentiated: of a cleared tape, a context that ended.

Nobody keeps a list of records; they belong to the tensors that came out of them, and a tensor that
a user keeps for its value would keep its history too. So when a segment ends:

- the records it knows of are freed: roots that were walked, and results of reductions to a number,
  the losses, which it holds weakly;
- if the references to the segment show that more are alive, they are looked for among the objects
  of the garbage collector, youngest first. Such searches are spaced out so that they take at most
  a hundredth of the time; segments that have to wait are searched for together with the next one.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable

from gradtape.core.level import Node, Segment
from gradtape.core.ownership import other_references

# The next search may begin after this many times the duration of the last one.
_PAUSE = 100
# Of the garbage collector, the youngest first.
_GENERATIONS = (0, 1, 2)
# The most segments that wait for a search; records of older ones are never freed.
_MOST_WAITING = 1000


class _Searches(threading.local):
    """The segments a thread is to search for, and when it may do so."""

    def __init__(self) -> None:
        self.not_before = 0.0
        self.waiting: list[Segment] = []


_searches = _Searches()


def end(held: tuple[Segment], label: str, known: Iterable[Node] = ()) -> None:
    """Close a segment for good and free its records.

    Args:
        held: The segment, to which its tape refers as well.
        label: Its name from now on, in the errors of its tensors.
        known: Nodes that are certainly alive.
    """
    alive = _close(held[0], label, known)
    others = other_references(held)
    if others is None or others <= alive:
        return
    searches = _searches
    searches.waiting.append(held[0])
    del searches.waiting[:-_MOST_WAITING]
    started = time.perf_counter()
    if started >= searches.not_before:
        # One reference is held by the list.
        _search(searches.waiting, others - alive if len(searches.waiting) == 1 else None)
        searches.waiting.clear()
        now = time.perf_counter()
        searches.not_before = now + _PAUSE * (now - started)


def _close(segment: Segment, label: str, known: Iterable[Node]) -> int:
    """Free the known records of a segment; returns the number of its nodes found alive."""
    segment.active = segment.walkable = False
    segment.label = label
    alive = {node for node in known if node.segment is segment}
    alive.update(root for reference in segment.roots if (root := reference()) is not None)
    segment.roots = []
    for node in alive:
        node.free()
    return len(alive)


def _search(segments: list[Segment], count: int | None) -> None:
    """Free all live records of some segments; `count` is their number, if that is known."""
    wanted = set(segments)
    for generation in _GENERATIONS:
        for node in _nodes_in(generation, wanted):
            node.free()
            count = None if count is None else count - 1
        if count is not None and count <= 0:
            return


def live_nodes(held: tuple[Segment]) -> list[Node] | None:
    """All leaves and records of a segment that are alive; None if some may be missing.

    It looks at every object of the garbage collector, which takes milliseconds: for debugging. The
    collector does not list what `gc.freeze` has hidden.

    Args:
        held: The segment, to which its tape refers as well.
    """
    references = other_references(held)
    found: list[Node] = []
    for generation in reversed(_GENERATIONS):
        found += _nodes_in(generation, set(held))
    if gc.get_freeze_count() and (references is None or references > len(found)):
        return None
    return found


def _nodes_in(generation: int, segments: set[Segment]) -> list[Node]:
    """The nodes of some segments among the objects of a generation of the garbage collector."""
    # Nothing may keep the list of objects: it would be in a cycle with whatever holds it.
    return [
        node
        for node in gc.get_objects(generation=generation)
        # An interrupt may have left an unfinished node behind.
        if issubclass(type(node), Node) and getattr(node, "segment", None) in segments
    ]
