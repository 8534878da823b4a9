"""Random numbers for the item that is being loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import Op
from gradtape.core.state import Proceed, current
from gradtape.errors import ContextError
from gradtape.ops.generator import Generator


class Loading:
    """The mode in which a batch is loaded: draws of `gt.random` depend on what is loaded alone.

    Otherwise workers would draw from the generator that all share, in the order in which they run.

    Args:
        seed: That of the loader.
        epoch: The number of the epoch.
        number: The number of the batch.
    """

    kind, family = "observing", "loading"

    def __init__(self, seed: int, epoch: int, number: int) -> None:
        self._seed, self._epoch, self._number = seed, epoch, number
        self._item: int | None = None
        self._generator: Generator | None = None

    def begin(self, item: int | None) -> None:
        """Note which item is loaded next; None for what concerns the whole batch."""
        self._item, self._generator = item, None

    def source(self, _name: str, given: Generator | None, _default: Generator) -> Generator:
        """The generator that a function draws from, if the user gave it none."""
        if given is not None:
            return given
        if self._generator is None:
            of = (0, self._number) if self._item is None else (1, self._item)
            self._generator = Generator((self._seed, self._epoch, *of))
        return self._generator

    def rng(self) -> np.random.Generator | None:
        """A NumPy generator for the item; None if none is being loaded."""
        if self._item is None:
            return None
        key = (self._epoch, self._item)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))

    def passes(self, _op: Op, _args: Any) -> bool:
        """Leave all ops alone."""
        return True

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Go on."""
        return proceed(op, args, params)


def item_rng() -> np.random.Generator:
    """Return a NumPy generator for the item that a loader is loading, to augment it at random.

    What it draws depends on the seed of the loader, the epoch and the number of the item alone. So
    results are the same with any number of workers, and when training is resumed, which they are
    not with NumPy generators that items share. Draws of `gt.random` in an item do as well.

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
    found = [mode.rng() for mode in current().modes if isinstance(mode, Loading)]
    if not found or found[0] is None:
        raise ContextError(
            "item_rng: no loader is loading an item here; call it in __getitem__ of a data set"
        )
    return found[0]
