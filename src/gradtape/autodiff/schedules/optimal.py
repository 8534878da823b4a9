"""The best plan for a chain of stages of any costs and sizes: rotor's dynamic programme.

After Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova, "Optimal checkpointing for heterogeneous
chains" (2019), known as rotor. Let E(s, t, m) be the least cost of running
stages s … t and visiting them, with m bytes of room, when all that crosses the cut before s is
held. The run either keeps stage s at one of its levels and goes on,

    E(s, t, m) = cost(s) + again(s, level) + E(s+1, t, m − bytes(s, level)),

or retains nothing up to the cut before a stage e, where it retains what crosses. The gap is run
again when the visits get to it, with the same room, as all from e on is gone then:

    E(s, t, m) = cost(s … e−1) + E(e, t, m − crossing(s, e)) + E(s, e−1, m).

Unless t is the last stage, what crosses its end is held at first, inside the room m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradtape.autodiff.schedules.item import Bytes, Item, with_bases
from gradtape.autodiff.schedules.stages import Stages, every_cut, stages_of

_Units = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Solution:
    """The best plan for a chain of stages; `cost` includes the first run, inf if none fits."""

    plan: frozenset[int]
    cost: float


@dataclass(frozen=True, slots=True)
class Optimal:
    """Plan chains optimally, up to the grouping of long lists and the rounding of sizes.

    Attributes:
        stages: How many stages there are at most; longer lists are grouped.
        units: How many units the room is divided into at most; sizes are rounded up to units.
    """

    stages: int = 64
    units: int = 256

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """The best plan; nothing if none fits."""
        if not items or room <= 0:
            return frozenset()
        return solve(items, stages_of(items, every_cut(items, self.stages)), room, self.units).plan


def solve(items: Sequence[Item], stages: Stages, room: int, units: int) -> Solution:
    """Find the best plan for a list cut into stages.

    Args:
        items: The list.
        stages: Its stages.
        room: Bytes for all results, at least 1.
        units: How many units to divide the room into at most.
    """
    programme = _Programme(stages, room, _best_unit(stages, room, units))
    plan, cost = programme.solution()
    return Solution(with_bases(items, plan), cost)


def _best_unit(stages: Stages, room: int, units: int) -> float:
    """The unit that wastes least when sizes are rounded up; whole bytes if the room is small."""
    if room <= units:
        return 1.0
    size = np.array([level.bytes for levels in stages.levels for level in levels])
    counts = np.arange(units // 2, units + 1)
    unit = room / counts[:, None]
    # Less than a millionth over is no unit more: `_up` rounds likewise.
    waste = (np.ceil(size / unit - 1e-6) * unit).sum(axis=1)
    return float(room / counts[np.argmin(waste)])


class _Programme:
    """The table E(s, t, m) in units of memory, filled in by increasing t and decreasing s."""

    def __init__(self, stages: Stages, room: int, unit: float) -> None:
        self.stages = stages
        self.count = len(stages.cost)
        self.room = int(room / unit + 1e-6)
        self.unit = unit
        self.cost = np.concatenate([[0.0], np.cumsum(stages.cost)])
        self.crossing = self._up(stages.crossing)
        self.running = stages.running.copy()
        for s in range(self.count):
            np.maximum.accumulate(self.running[s, s:], out=self.running[s, s:])
        shape = (self.count, self.count, self.room + 1)
        self.table = np.full(shape, np.inf)
        self.amounts = np.arange(self.room + 1)
        for t in range(self.count):
            for s in range(t, -1, -1):
                self.table[s, t] = self._best(s, t)

    def _up(self, amount: Bytes) -> _Units:
        return np.asarray(np.ceil(amount / self.unit - 1e-6), np.int64)

    def _kept(self, s: int, t: int) -> list[tuple[float, int, int]]:
        """For each level of stage s in stages s … t: its cost, units retained, units needed."""
        stages = self.stages
        held = stages.held[s, t]
        found = []
        for level in stages.levels[s]:
            size, need, cost = level.bytes, level.need, stages.cost[s]
            if s == t < self.count - 1:  # what crosses its end is there already
                cost = stages.inner[s]
                size, need = (amount - stages.crossing[s, s + 1] for amount in (size, need))
            units = self._up(np.array([size, held + need]))
            found.append((cost + level.again, int(units[0]), int(units[1])))
        return found

    def _skipped(self, s: int, t: int) -> tuple[Bytes, _Units]:
        """For each stage e from s + 1 to t: the cost of running up to it, and the units needed."""
        need = self._up(self.stages.held[s, t] + self.running[s, s:t])
        return self.cost[s + 1 : t + 1] - self.cost[s], need

    def _best(self, s: int, t: int) -> Bytes:
        best = np.full(self.room + 1, np.inf)
        for cost, size, need in self._kept(s, t):
            rest = self.table[s + 1, t] if s < t else np.zeros(self.room + 1)
            least = max(need, size)
            if least <= self.room:
                there = cost + rest[least - size : self.room + 1 - size]
                np.minimum(best[least:], there, out=best[least:])
        if s < t:
            cost_to, needs = self._skipped(s, t)
            left = self.amounts - self.crossing[s, s + 1 : t + 1, None]
            after = np.take_along_axis(self.table[s + 1 : t + 1, t], np.maximum(left, 0), axis=1)
            after += self.table[s, s:t]
            after += cost_to[:, None]
            after[(left < 0) | (self.amounts < needs[:, None])] = np.inf
            np.minimum(best, after.min(axis=0), out=best)
        return best

    def solution(self) -> tuple[set[int], float]:
        """What the best plan retains on the first run, and its cost."""
        plan: set[int] = set()
        s, t, room = 0, self.count - 1, self.room
        cost = float(self.table[s, t, room])
        while s <= t and np.isfinite(self.table[s, t, room]):
            best, following, left, kept = np.inf, t + 1, room, frozenset[int]()
            for level, (price, size, need) in zip(
                self.stages.levels[s], self._kept(s, t), strict=True
            ):
                if room >= max(need, size):
                    price += self.table[s + 1, t, room - size] if s < t else 0.0
                    if price < best:
                        best, following, left, kept = price, s + 1, room - size, level.kept
            if s < t:
                cost_to, needs = self._skipped(s, t)
                for e in range(s + 1, t + 1):
                    rest = room - int(self.crossing[s, e])
                    if rest >= 0 and room >= needs[e - s - 1]:
                        price = (
                            cost_to[e - s - 1] + self.table[e, t, rest] + self.table[s, e - 1, room]
                        )
                        if price < best:
                            best, following, left = price, e, rest
                            kept = frozenset(self.stages.crossing_results(s, e))
            plan |= kept
            s, room = following, left
        return plan, cost
