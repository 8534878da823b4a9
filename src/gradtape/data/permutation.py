"""Random orders that are functions of a seed and the number of an epoch.

NumPy keeps the words of a bit generator and of `SeedSequence` fixed for ever, but not the methods
of its generators. So an order is made of the words alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError


def words(count: int, seed: int, epoch: int = 0) -> Any:
    """Random 64-bit words of an epoch.

    Args:
        count: How many.
        seed: A non-negative integer.
        epoch: The number of the epoch.
    """
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(epoch,))).random_raw(count)


def permutation(count: int, seed: int, epoch: int = 0) -> Any:
    """The numbers below `count` in a random order: that in which random words are sorted."""
    return np.argsort(words(count, seed, epoch), kind="stable")


def uniform(count: int, seed: int, epoch: int = 0) -> Any:
    """Random numbers in [0, 1), of the 53 upper bits of words."""
    return (words(count, seed, epoch) >> np.uint64(11)) * 2.0**-53


def checked_seed(seed: Any, name: str) -> int:
    """A seed, or an error."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"{name}: got seed={seed!r}, expected a non-negative integer")
    return int(seed)
