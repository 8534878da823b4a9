"""What a retained result saves: the cost per byte of running it again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gradtape.autodiff.schedules.item import Bytes, Item, needed

# Results whose worths differ by no more than this factor are dropped at the same level.
_ALIKE = 1.05


def recomputation_costs(items: Sequence[Item], read: Collection[int]) -> Bytes:
    """The cost of having each result again, if those that rules read are there.

    That is its own cost and that of the results on the way to it that no rule reads, shared among
    those that need them. A read result counts as there even if it is dropped: it is run again
    once, for itself.
    """
    users = [0] * len(items)
    for item in items:
        for q in item.inputs:
            users[q] += 1
    cost = [item.cost for item in items]
    for p, item in enumerate(items):
        for q in item.inputs:
            if q not in read:
                cost[p] += cost[q] / users[q]
    return np.array(cost, np.float64)


def worth(items: Sequence[Item]) -> dict[int, float]:
    """The cost per byte of having each result again that is read and takes memory.

    The cheapest come first, the oldest of them before others.
    """
    read = needed(items)
    cost = recomputation_costs(items, read)
    per_byte = {p: cost[p] / items[p].bytes for p in sorted(read) if items[p].bytes}
    return dict(sorted(per_byte.items(), key=lambda pair: pair[1]))


def levels(items: Sequence[Item], count: int) -> list[frozenset[int]]:
    """Sets of results to drop everywhere, from none to most of them, cheap ones first.

    Args:
        items: The list.
        count: How many sets there are at most.

    Returns:
        Sets of positions, each within the next. Results of the same worth are in the same sets.
    """
    prices = worth(items)
    order = list(prices)
    total = sum(items[p].bytes for p in order)
    found: list[frozenset[int]] = [frozenset()]
    dropped = 0
    for k, p in enumerate(order):
        dearer = k > 0 and prices[p] > _ALIKE * prices[order[k - 1]]
        if dearer and len(found) < count and dropped >= total * len(found) / (count + 1):
            found.append(frozenset(order[:k]))
        dropped += items[p].bytes
    return found
