"""Letting go of history that can no longer be differentiated: of a cleared tape, a left context.

Nobody keeps a list of records; they belong to the tensors that came out of them, and a tensor that
a user keeps for its value would keep its history, too. So when a segment ends:

- the records it knows of are freed: roots that were walked, and results of reductions to a number,
  the losses, which it holds weakly;
- if the references to the segment say that more are alive, they are looked for among the objects of
  the garbage collector, the youngest first. That takes time, and is done only so often that it
  takes at most a hundredth of it; segments that have to wait are looked for together with the next.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from gradtape.core.level import Node, Segment
from gradtape.core.ownership import other_references

# A search may begin after so many times what the last one took.
_PAUSE = 100
# Segments that wait for a search; what is still held of older ones stays held.
_MOST_WAITING = 1000


class _Searches(threading.local):
    """When a thread may search again, and for what."""

    def __init__(self) -> None:
        self.not_before = 0.0
        self.waiting: list[Segment] = []


_searches = _Searches()


def end(held: tuple[Segment], label: str, known: Iterable[Node] = ()) -> None:
    """Close a segment for good and let go of what its records hold.

    Args:
        held: The segment, which its tape holds besides.
        label: What it is called from now on, in the errors of its tensors.
        known: Nodes of it that are alive for certain.
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
        # One reference is that of the list.
        _search(searches.waiting, others - alive if len(searches.waiting) == 1 else None)
        searches.waiting.clear()
        now = time.perf_counter()
        searches.not_before = now + _PAUSE * (now - started)


def _close(segment: Segment, label: str, known: Iterable[Node]) -> int:
    """Free the records that are known; returns how many nodes of them are alive."""
    segment.active = segment.walkable = False
    segment.label = label
    alive = {node for node in known if node.segment is segment}
    alive.update(root for reference in segment.roots if (root := reference()) is not None)
    segment.roots = []
    for node in alive:
        node.free()
    return len(alive)


def _search(segments: list[Segment], count: int | None) -> None:
    """Free all live records of some segments, of which there are `count`, if that is known."""
    wanted = set(segments)
    for objects in _generations():
        for node in objects:
            # An interrupt may have left a node behind that is not finished.
            if issubclass(type(node), Node) and getattr(node, "segment", None) in wanted:
                node.free()
                count = None if count is None else count - 1
        if count is not None and count <= 0:
            return


def _generations() -> Iterator[list[Any]]:
    """What the garbage collector knows of, the youngest objects first."""
    for generation in range(3):
        yield gc.get_objects(generation=generation)
