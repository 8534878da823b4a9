"""Random numbers for the item that is being loaded."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np

from gradtape.errors import ContextError

# Seed of the loader, number of the epoch, number of the item.
LOADING: ContextVar[tuple[int, int, int] | None] = ContextVar("LOADING", default=None)


def item_rng() -> np.random.Generator:
    """Return a NumPy generator for the item that a loader is loading, to augment it at random.

    What it draws depends on the seed of the loader, the epoch and the number of the item alone. So
    results are the same with any number of workers, and when training is resumed, which they are
    not with generators that items share.

    Returns:
        A new generator, at the start of its stream at each call.

    Raises:
        ContextError: No loader is loading an item.

    >>> class Noisy(gt.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, i):
    ...         return i + gt.data.item_rng().normal()
    >>> first = list(gt.data.DataLoader(Noisy(), batch_size=2))
    >>> again = list(gt.data.DataLoader(Noisy(), batch_size=2, num_workers=2))
    >>> np.array_equal(first, again)
    True
    """
    place: Any = LOADING.get()
    if place is None:
        raise ContextError(
            "item_rng: no loader is loading an item here; call it in __getitem__ of a data set"
        )
    seed, epoch, index = place
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch, index)))
