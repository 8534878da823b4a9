"""Decide what to retain while the list still grows: the policy of eager forward passes."""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush

from gradtape.autodiff.schedules.item import Item
from gradtape.errors import ArgumentError

# The class of results that cost nothing.
_FREE = -(1 << 20)
# A result that no rule reads by the time this many items came after it goes first.
_YOUNG = 8
# A touched result counts as dearer by so many classes, each a factor of 4.
_TOUCHED = 2
# After so many rounds, stretches may have any length.
_ROUNDS = 64


class Online:
    """Keep the retained results of a growing list within a budget.

    When a result is one too many, those that no rule reads go first. After them the one to drop is
    the oldest of the lowest class of cost per byte. It may go only if the *stretch* of dropped
    results around it can be replayed as a whole, with everything retained, when the backward run
    gets there: by then only older results are in memory, so the bytes of a stretch are at most the
    budget less the retained bytes before it. Otherwise the result stays and ends the stretch. When
    no result may go, the next round allows stretches as long as Revolve can replay with one
    repetition more.

    Why this is good: take n equal results and a budget of B. Dropping the oldest first makes
    stretches of B − 1, B − 2, … results with one retained result after each, until only retained
    results are left: B(B − 1)/2 dropped results in all. So if n ≤ B(B + 1)/2, every dropped
    result is run again exactly once, and there are n − B of them, which is the least possible:
    no policy can retain more than B. Round r raises this to about the binomial (B + r choose r + 1)
    with r runs again, as in Revolve.

    Costs O(log n) for each result, amortised over rounds.

    >>> policy = Online(3 * 8)
    >>> [policy.add(Item(1.0, 8, (i - 1,) if i else (), (i,))) for i in range(6)]
    [[], [], [], [0], [1], [3]]
    >>> sorted(policy.retained)
    [2, 4, 5]
    """

    def __init__(self, budget: int) -> None:
        if budget < 0:
            raise ArgumentError(f"Online: got a budget of {budget} bytes, expected 0 or more")
        self.budget = budget
        self.bytes = 0  # of retained results
        self.retained: set[int] = set()
        self._items: list[Item] = []
        self._cost: list[float] = []  # of having a result again, with what leads to it unread
        self._users: list[int] = []
        self._read: set[int] = set()
        self._unread: deque[int] = deque()
        self._views: dict[int, list[int]] = {}
        self._stamp: list[int] = []  # how often a result was queued; older entries are void
        self._queues: dict[int, deque[tuple[int, int]]] = {}
        self._ranks: list[int] = []  # a heap of the classes that have queues
        self._passed: list[int] = []
        self._round = 1
        self._stretches = _Stretches()

    def add(self, item: Item) -> list[int]:
        """Take the result of the next item; returns what to drop now, views before their bases.

        Args:
            item: The item. Positions count from the first item added.

        Returns:
            Positions of retained results. The last one is the new result itself if it does not fit
            at all, or if it is a view of a dropped one.
        """
        p = len(self._items)
        self._items.append(item)
        self._users.append(0)
        self._stamp.append(0)
        self._cost.append(self._note_inputs(item))
        self._stretches.append(item.bytes)
        self.retained.add(p)
        if item.free and item.inputs:
            base = self._base(p)
            if base not in self.retained:
                return self._leave(p)
            self._views.setdefault(base, []).append(p)
        self.bytes += item.bytes
        self._unread.append(p)
        for r in item.reads:
            self._note_read(self._base(r))
        return self.shrink()

    def shrink(self) -> list[int]:
        """Drop results until the rest fits; for a budget that was lowered.

        Returns:
            As for `add`.
        """
        dropped: list[int] = []
        while self.bytes > self.budget and self.retained:
            dropped += self._leave(self._choice(len(self._items) - 1))
        return dropped

    def drop(self, position: int) -> list[int]:
        """Drop a result: the backward run has passed it, or nobody needs it.

        Args:
            position: The position of the result; nothing happens if it was dropped before.

        Returns:
            As for `add`.
        """
        return self._leave(position) if position in self.retained else []

    def touch(self, position: int) -> None:
        """Treat a result as young and dear: users hold it, or it was used again much later.

        Args:
            position: The position of the result; nothing happens if it was dropped.
        """
        position = self._base(position)
        self._note_read(position)
        if position in self.retained and self._items[position].bytes:
            self._queue(position, dearer=_TOUCHED)

    def _base(self, position: int) -> int:
        while self._items[position].free and self._items[position].inputs:
            position = self._items[position].inputs[0]
        return position

    def _note_inputs(self, item: Item) -> float:
        """The cost of having the result of a new item again, if what rules read is there."""
        cost = item.cost
        for q in {self._base(q) for q in item.inputs}:
            if q not in self._read and q not in item.reads:
                cost += self._cost[q]
            self._users[q] += 1
            if self._users[q] > 1:  # ways part here: worth as much as a result that is read
                self._note_read(q)
        return cost

    def _note_read(self, position: int) -> None:
        if position not in self._read:
            self._read.add(position)
            if position in self.retained and self._items[position].bytes:
                self._queue(position)

    def _queue(self, position: int, dearer: int = 0) -> None:
        cost, size = self._cost[position], self._items[position].bytes
        rank = math.floor(math.log(cost / size, 4)) + dearer if cost > 0 else _FREE
        self._stamp[position] += 1
        if rank not in self._queues:
            self._queues[rank] = deque()
            heappush(self._ranks, rank)
        self._queues[rank].append((position, self._stamp[position]))

    def _choice(self, newest: int) -> int:
        """The result to drop next."""
        unread = self._next_unread()
        if unread is not None and unread <= newest - _YOUNG:
            return unread
        while True:
            position = self._next()
            if position is None:
                waiting = sorted(
                    p
                    for p in self._passed
                    if p in self.retained and p != newest and self._items[p].bytes
                )
                if not waiting:
                    return newest if unread is None else unread
                self._passed = [newest]
                self._round += 1
                for p in waiting:
                    self._queue(p)
            elif position != newest and self._may_go(position):
                return position
            else:
                self._passed.append(position)

    def _next_unread(self) -> int | None:
        """The oldest retained result that takes memory and that no rule reads so far."""
        while self._unread:
            position = self._unread[0]
            if (
                position in self.retained
                and position not in self._read
                and self._items[position].bytes
            ):
                return position
            self._unread.popleft()
        return None

    def _next(self) -> int | None:
        """The oldest result of the lowest class, taken out of its queue."""
        while self._ranks:
            queue = self._queues[self._ranks[0]]
            while queue:
                position, stamp = queue.popleft()
                if position in self.retained and stamp == self._stamp[position]:
                    return position
            del self._queues[heappop(self._ranks)]
        return None

    def _may_go(self, position: int) -> bool:
        before, stretch, after = self._stretches.around(position)
        if self._round >= _ROUNDS:
            return True
        room = self.budget - before - after
        if self._round == 1 or room <= 0:
            return stretch <= room
        typical = max(1.0, self._stretches.mean())
        slots = int(room / typical)
        return stretch <= typical * (math.comb(slots + self._round, self._round) - 1)

    def _leave(self, position: int) -> list[int]:
        """Drop a result and the views of it."""
        gone = [*self._views.pop(position, ()), position]
        self.retained.difference_update(gone)
        if self._items[position].bytes:
            self.bytes -= self._items[position].bytes
            self._stretches.drop(position, counts=position in self._read)
        return gone


class _Stretches:
    """The stretches of dropped results between retained ones, and the retained bytes before each.

    Retained results that take memory are in a linked list; sums of retained bytes are in a Fenwick
    tree.
    """

    def __init__(self) -> None:
        self._size: list[int] = []
        self._before: list[int] = []  # the retained result before each retained one
        self._after: list[int] = []
        self._gap: list[int] = []  # dropped bytes right before each retained result
        self._tree: list[int] = [0]
        self._newest = -1
        self._open = 0  # dropped bytes after the newest retained result
        self._total = self._count = 0

    def mean(self) -> float:
        """The mean size of all results so far."""
        return self._total / max(1, self._count)

    def append(self, size: int) -> None:
        p = len(self._size)
        self._size.append(size)
        self._before.append(self._newest)
        self._after.append(-1)
        self._gap.append(0)
        i, total, end = p + 1, size, (p + 1) & p
        child = i - 1
        while child > end:
            total += self._tree[child]
            child &= child - 1
        self._tree.append(total)
        if size:
            if self._newest >= 0:
                self._after[self._newest] = p
            self._gap[p], self._open = self._open, 0
            self._newest = p
            self._total += size
            self._count += 1

    def around(self, position: int) -> tuple[int, int, int]:
        """If a result were dropped: bytes retained before, in the stretch, of the result after."""
        before, i = 0, position
        while i > 0:
            before += self._tree[i]
            i &= i - 1
        after = self._after[position]
        stretch = self._gap[position] + self._size[position]
        if after < 0:
            return before, stretch, 0
        return before, stretch + self._gap[after], self._size[after]

    def drop(self, position: int, *, counts: bool) -> None:
        """Note that a retained result was dropped; in a replay it takes room if it counts."""
        stretch = self._gap[position] + (self._size[position] if counts else 0)
        before, after = self._before[position], self._after[position]
        if before >= 0:
            self._after[before] = after
        if after >= 0:
            self._before[after] = before
            self._gap[after] += stretch
        else:
            self._open += stretch
            self._newest = before
        i = position + 1
        while i < len(self._tree):
            self._tree[i] -= self._size[position]
            i += i & -i
