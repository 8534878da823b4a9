"""Reachability in a graph that grows: does one group depend on another, directly or not?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Groups further apart than this in the order are not searched for, so that a query takes the same
# time however many groups there are. Unrolled loops have tens of thousands.
_FAR = 256


class Reachability:
    """Nodes by number, in an order in which each comes after all that it depends on.

    The order answers most queries: nothing depends on what comes after it. It is maintained by
    moving only the nodes between two that turn out to be in the wrong order (Pearce and Kelly's
    algorithm).
    """

    def __init__(self) -> None:
        self._needed: list[set[int]] = []
        self._dependents: list[set[int]] = []
        self._place: list[int] = []

    def add(self) -> int:
        """Add a node that depends on nothing yet; returns its number."""
        number = len(self._place)
        self._needed.append(set())
        self._dependents.append(set())
        self._place.append(number)
        return number

    def depend(self, number: int, others: Iterable[int]) -> None:
        """Note that a node depends on others, none of which depends on it."""
        for other in sorted(set(others) - self._needed[number]):
            self._needed[number].add(other)
            self._dependents[other].add(number)
            if self._place[other] > self._place[number]:
                self._put_before(other, number)

    def _put_before(self, other: int, number: int) -> None:
        first, last = self._place[number], self._place[other]
        earlier = self._reached(other, self._needed, first, last)
        later = self._reached(number, self._dependents, first, last)
        places = sorted(self._place[n] for n in (*earlier, *later))
        moved = [*sorted(earlier, key=self._place.__getitem__)]
        moved += sorted(later, key=self._place.__getitem__)
        for n, place in zip(moved, places, strict=True):
            self._place[n] = place

    def _reached(
        self, start: int, following: Sequence[set[int]], first: int, last: int
    ) -> set[int]:
        """The nodes reachable from one without leaving a part of the order."""
        found, pending = {start}, [start]
        while pending:
            for n in following[pending.pop()]:
                if n not in found and first <= self._place[n] <= last:
                    found.add(n)
                    pending.append(n)
        return found

    def order(self) -> list[int]:
        """All nodes, each after those it depends on."""
        return sorted(range(len(self._place)), key=self._place.__getitem__)

    def depends(self, number: int, other: int) -> bool:
        """Whether a node depends on another one; also True if they are too far apart to tell."""
        first, last = self._place[other], self._place[number]
        if last <= first:
            return False
        return last - first > _FAR or other in self._reached(number, self._needed, first, last)
