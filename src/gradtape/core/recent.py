"""A cache of limited size that keeps the most recently used results."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from gradtape.locks import guard

T = TypeVar("T")


class Recent(Generic[T]):
    """Values by keys; the least recently used one is dropped when there are too many.

    Threads may use it at the same time. Keys may be objects of users, whose `__eq__` and `__hash__`
    may use it as well: they are never called while a lock is held.

    >>> recent = gt.core.recent.Recent()
    >>> recent.put("a", 1, most=2), recent.put("b", 2, most=2), recent.put("a", 3, most=2)
    (1, 2, 1)
    >>> recent.put("c", 4, most=2), recent.get("b"), list(recent)
    (4, None, [1, 4])
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry[T]] = {}
        self._now = itertools.count().__next__

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return (entry.value for entry in self._entries.copy().values())

    def get(self, key: Hashable) -> T | None:
        """The value of a key, now marked as used; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = self._now()
        return entry.value

    def put(self, key: Hashable, value: T, *, most: int, instead: T | None = None) -> T:
        """Keep a value, unless another thread was faster.

        Args:
            key: The key to keep it under.
            value: The value to keep.
            most: The number of values that may be kept in all.
            instead: A value to replace, if that is still there.

        Returns:
            The value kept under the key now.
        """
        entry = self._entries.setdefault(key, _Entry(value))
        entry.used = self._now()
        with guard:
            if entry.value is instead:
                entry.value = value
            value = entry.value
        if len(self._entries) > most:
            entries = self._entries.copy().items()
            oldest = min(entries, key=lambda item: item[1].used)[0]
            self._entries.pop(oldest, None)
        return value


class _Entry(Generic[T]):
    """A value, and when it was used last."""

    __slots__ = ("used", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.used = 0
