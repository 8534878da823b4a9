"""Which of many things need which others, directly or not, while there come to be more."""

from __future__ import annotations

from collections.abc import Iterable


class Needs:
    """Things by their numbers, and per thing all that it needs, as bits of one integer.

    Unrolled loops have thousands of groups: to search the graph at each question took most of the
    time to compile them; to go through a list of integers at each note does not.
    """

    def __init__(self) -> None:
        self._needed: list[int] = []

    def add(self) -> int:
        """Another thing, which needs nothing yet; gives its number."""
        self._needed.append(0)
        return len(self._needed) - 1

    def note(self, number: int, others: Iterable[int]) -> None:
        """A thing needs others, and so does all that needs it."""
        more = 0
        for other in others:
            more |= self._needed[other] | 1 << other
        if more & ~self._needed[number] == 0:
            return
        for dependent, needed in enumerate(self._needed):
            if dependent == number or needed >> number & 1:
                self._needed[dependent] = needed | more

    def has(self, number: int, other: int) -> bool:
        """Whether a thing needs another one."""
        return bool(self._needed[number] >> other & 1)
