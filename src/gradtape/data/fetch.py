"""Loading one batch: by the data set's own method, or item by item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradtape.core.state import run_inside, using_mode
from gradtape.data.datasets import Indices, batch_taker
from gradtape.data.item_rng import Loading
from gradtape.data.stacking import collate as stack_items
from gradtape.errors import DataError

# Items that an error lists.
_LISTED = 4


class Stopped(Exception):  # noqa: N818 - no error: the loop over the loader has ended
    """Raised in a worker to leave a batch that nobody waits for."""


@dataclass(frozen=True)
class Fetch:
    """Loads batches of an epoch; called by workers of all kinds, and by a loader without any."""

    dataset: Any
    collate: Callable[[list[Any]], Any] | None
    seed: int
    epoch: int

    def __call__(
        self, number: int, indices: Indices, stopped: Callable[[], object] = lambda: False
    ) -> Any:
        """Load a batch.

        Args:
            number: Its number in the epoch.
            indices: The numbers of its items.
            stopped: Tells whether to give up, which is asked before each item.

        Raises:
            DataError: An item cannot be loaded; the cause is what was raised.
            Stopped: It was given up.
        """
        loading = Loading(self.seed, self.epoch, number)
        return run_inside(using_mode(loading), self._batch, loading, number, indices, stopped)

    def _batch(
        self, loading: Loading, number: int, indices: Indices, stopped: Callable[[], object]
    ) -> Any:
        take = batch_taker(self.dataset) if self.collate is None else None
        if take is not None:
            try:
                return take(indices)
            except Exception as error:
                raise self._failed(f"{_listed(indices)}, taken", number, error) from error
        items = [self._item(loading, number, int(index), stopped) for index in indices]
        loading.begin(None)
        try:
            return (self.collate or stack_items)(items)
        except Exception as error:
            raise self._failed(f"{_listed(indices)}, put together", number, error) from error

    def _item(
        self, loading: Loading, number: int, index: int, stopped: Callable[[], object]
    ) -> Any:
        if stopped():
            raise Stopped
        loading.begin(index)
        try:
            return self.dataset[index]
        except Exception as error:
            raise self._failed(f"item {index}", number, error) from error

    def _failed(self, what: str, number: int, error: Exception) -> DataError:
        return DataError(
            f"DataLoader: {what} for batch {number} of epoch {self.epoch}: "
            f"{type(error).__name__}: {error}"
        )


def _listed(indices: Indices) -> str:
    shown = ", ".join(str(int(index)) for index in indices[:_LISTED])
    return f"items {shown}{', …' if len(indices) > _LISTED else ''}"
