"""Planners that follow a fixed pattern, whatever the costs: all, nothing, segments, bisection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradtape.autodiff.schedules.item import (
    Item,
    Planner,
    crossing,
    last_uses,
    needed,
    with_bases,
)
from gradtape.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Everything:
    """Retain all that backward rules read: nothing is run again."""

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """All results that are read."""
        return needed(items)


@dataclass(frozen=True, slots=True)
class Nothing:
    """Retain nothing: each visit runs again all that leads to it. The least memory."""

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """No results."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class Segments:
    """Retain what crosses the boundaries of segments of equal length, and all of the last one.

    A segment is run again as a whole when the backward run gets to it, so each item is run again
    at most once. With segments of √n items, memory is O(√n) (Chen et al. 2016).

    Attributes:
        every: The number of items in a segment.
    """

    every: int

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ArgumentError(f"Segments: got every={self.every}, expected 1 or more")

    @classmethod
    def square_root(cls, length: int) -> Segments:
        """Segments that take the least memory for a list of this length."""
        return cls(max(1, math.isqrt(length)))

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """Crossing results, and those of the last segment that are read."""
        start = max(len(items) - 1, 0) // self.every * self.every
        last = last_uses(items, by_rules=True)
        # A result crosses a boundary if there is a multiple of `every` in (position, last use].
        plan = {p for p, use in enumerate(last) if use // self.every > p // self.every}
        plan |= {p for p in needed(items) if p >= start}
        return with_bases(items, plan)


@dataclass(frozen=True, slots=True)
class Bisection:
    """Retain what crosses the middle, then the middle of the right half, and so on.

    At most log₂ n such sets are in memory at a time, and each item is run again at most log₂ n
    times, as every gap is halved again when it is replayed.
    """

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """Results that cross the middles."""
        last = last_uses(items, by_rules=True)
        plan: set[int] = set()
        start, end = 0, len(items)
        while end - start > 1:
            start = (start + end) // 2
            plan.update(crossing(items, start, last))
        return with_bases(items, plan)


@dataclass(slots=True)
class Given:
    """A plan made elsewhere for the first run, and a planner for the replays that follow.

    Attributes:
        plan: What the first run retains.
        then: Plans the replays.
        begun: Whether the first run is over.
    """

    plan: frozenset[int]
    then: Planner
    begun: bool = False

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """The given plan on the first call, what the other planner says later."""
        if self.begun:
            return self.then.retained(items, room)
        self.begun = True
        return self.plan
