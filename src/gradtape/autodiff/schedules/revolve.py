"""Revolve: optimal checkpointing of a chain of equal steps (Griewank and Walther 2000).

With `slots` retained results and every step run again at most r times, the longest chain that can
be reversed has β(slots, r) = (slots + r choose r) steps. The best place for the next retained
result leaves both parts as long as these binomials allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradtape.autodiff.schedules.item import (
    Item,
    crossing_bytes,
    last_uses,
    transients,
    with_bases,
)


def repetitions(steps: int, slots: int) -> int:
    """How often a step is run at most in the best schedule: the least r with β(slots, r) ≥ steps.

    >>> repetitions(10, 3), repetitions(11, 3)
    (2, 3)
    """
    r, reach = 0, 1
    while reach < steps:
        r += 1
        reach = reach * (slots + r) // r
        if slots == 0:
            return steps - 1
    return r


def recomputations(steps: int, slots: int) -> int:
    """How many steps the best schedule runs again to visit a chain backward.

    The chain's results are read by their own backward rules; its first input is always there.

    Args:
        steps: The number of steps, each with one result.
        slots: How many results may be retained, besides what the running step needs.

    Returns:
        The least number, by the formula t = r·l − β(s+1, r−1) of the theory, which counts the
        initial state as one of the s checkpoints and one more step, the one that starts there.

    >>> recomputations(10, 9), recomputations(10, 3), recomputations(10, 0)
    (0, 6, 45)
    """
    length, checkpoints = steps + 1, slots + 1
    r = repetitions(length, checkpoints)
    return r * length - math.comb(checkpoints + r, r - 1) - steps if r else 0


def split(steps: int, slots: int) -> int:
    """Where to retain the next result: the number of steps to run up to it.

    Args:
        steps: The number of steps, at least 1.
        slots: How many results may be retained, at least 1.

    Returns:
        A number from 1 to `steps`.

    >>> split(10, 3), split(3, 3)
    (5, 1)
    """
    length, checkpoints = steps + 1, slots + 1
    r = repetitions(length, checkpoints)
    # The part on the right has one checkpoint less; both parts may be as long as their β allows,
    # and cost least if none is shorter than the β of one repetition less.
    longest_left = math.comb(checkpoints + r - 1, checkpoints)
    shortest_right = math.comb(checkpoints + r - 2, checkpoints - 1) if r > 1 else 1
    return max(1, min(longest_left, length - shortest_right, steps))


def slots_in(items: Sequence[Item], room: int) -> int:
    """How often the largest set of crossing results fits, besides what running an item takes."""
    slot = float(np.max(crossing_bytes(items, last_uses(items, by_rules=True)), initial=0))
    working = float(np.max(transients(items, ()), initial=0))
    return max(0, int((room - working) // slot)) if slot else len(items)


@dataclass(frozen=True, slots=True)
class Revolve:
    """Place retained results by Revolve, with as many slots as there is room for.

    For lists that are no chains of equal items, a slot is as large as the largest set of results
    that crosses a cut; lists with many crossing results are better left to `Auto`. Takes O(n).
    """

    def retained(self, items: Sequence[Item], room: int) -> frozenset[int]:
        """Results that cross the places of Revolve."""
        last = last_uses(items, by_rules=True)
        slots, cuts, start = slots_in(items, room), [], 0
        while slots > 0 and start < len(items) - 1:
            start += split(len(items) - start, slots)
            cuts.append(start)
            slots -= 1
        return with_bases(items, crossing_any(last, cuts))


def crossing_any(last: Sequence[int], cuts: Sequence[int]) -> set[int]:
    """Results that cross at least one of some cuts, which are in ascending order."""
    found: set[int] = set()
    following = iter(cuts)
    cut = next(following, None)
    for p, use in enumerate(last):
        while cut is not None and cut <= p:
            cut = next(following, None)
        if cut is None:
            break
        if use >= cut:
            found.add(p)
    return found
