"""Loaders: batches of a data set, epoch by epoch."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gradtape.core.state import checked_flag
from gradtape.data.datasets import checked_indices, length_of
from gradtape.data.fetch import Fetch
from gradtape.data.permutation import checked_seed
from gradtape.data.processes import batches_by_processes
from gradtape.data.samplers import BatchSampler, RandomSampler, SequentialSampler
from gradtape.data.threads import batches_by_threads
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.checks import check_callable, check_choice, check_count

_WORKERS = {"threads": batches_by_threads, "processes": batches_by_processes}
# What says where a loader is; the rest of a state says that it is the same loader.
_STATE = ("epoch", "batch", "batches", "order")


class DataLoader:
    """Goes through a data set in batches.

    The order depends on the seed and the number of the epoch alone: `loader.epoch(3)` is the
    same, whatever was iterated before, with workers or without. `for batch in loader` goes through
    the next epoch, beginning with epoch 0.

    Workers load batches ahead of the loop, and end with it. Threads suit data sets that read files
    or call NumPy. Processes suit those that compute in Python; they are spawned, so they take some
    tenths of a second to start in each epoch, and get the data set by pickling. Arrays of
    memory-mapped files are opened there again.

    Args:
        dataset: A data set: anything with `len` and `[]`, such as `gt.data.TensorDataset`.
        batch_size: How many items a batch has.
        shuffle: Whether the order is random, another one in each epoch.
        seed: Chooses the orders, and what `gt.data.item_rng` draws.
        sampler: An order of your own, in place of `shuffle`: a `gt.data.Sampler`, or a sequence of
            numbers of items.
        batch_sampler: Batches of your own, in place of `batch_size`, `shuffle`, `sampler` and
            `drop_last`: an object with `len` and `batches(epoch)`, which returns a list of arrays
            of numbers.
        drop_last: Whether to leave out the last batch if it is smaller.
        num_workers: How many workers load batches; 0 loads them when they are asked for.
        worker: What they are: `"threads"` or `"processes"`.
        prefetch: How many batches each worker is ahead.
        collate: A function from a list of items to a batch; `gt.data.collate` if None, or
            the data set's own method `batch`.

    Raises:
        ArgumentError: The data set is empty, or an option has no meaning.

    >>> data = gt.data.TensorDataset(np.arange(5.0), np.arange(5) % 2)
    >>> loader = gt.data.DataLoader(data, batch_size=2, shuffle=True, seed=0)
    >>> loader
    <DataLoader of 5 items in 3 batches, next epoch 0>
    >>> for x, labels in loader:
    ...     print(x, labels)
    [3. 1.] [1 1]
    [4. 2.] [0 0]
    [0.] [0]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        seed: int = 0,
        sampler: Any = None,
        batch_sampler: Any = None,
        drop_last: bool = False,
        num_workers: int = 0,
        worker: str = "threads",
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self._total = _checked_length(dataset)
        shuffle = checked_flag("DataLoader", "shuffle", shuffle)
        drop_last = checked_flag("DataLoader", "drop_last", drop_last)
        self._seed = checked_seed(seed, "DataLoader")
        check_count("DataLoader", 0, num_workers=num_workers)
        check_count("DataLoader", 1, prefetch=prefetch)
        check_choice("DataLoader", _WORKERS, worker=worker)
        if sampler is not None and shuffle:
            raise ArgumentError("DataLoader: got a sampler and shuffle=True, expected one of them")
        if sampler is None:
            sampler = (
                RandomSampler(self._total, seed=self._seed)
                if shuffle
                else SequentialSampler(self._total)
            )
        if collate is not None:
            check_callable("DataLoader", collate=collate)
        if batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif not callable(getattr(batch_sampler, "batches", None)):
            raise ArgumentError(
                f"DataLoader: got {a_type(batch_sampler)} as batch_sampler, expected an object "
                "with len() and batches(epoch)"
            )
        self.dataset, self._collate, self._batches = dataset, collate, batch_sampler
        self._workers, self._kind, self._prefetch = num_workers, worker, prefetch
        self._known_order: tuple[int, list[Any]] | None = None
        # What was given out last, and what the next iteration begins with: epoch and batch.
        self._place = self._next = (0, 0)

    def __repr__(self) -> str:
        what = f"{self._total} items in {len(self)} batches"
        return f"<DataLoader of {what}, next epoch {self.next_epoch}>"

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self._batches)

    @property
    def next_epoch(self) -> int:
        """The number of the epoch that the next iteration goes through."""
        return self._next[0]

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration go through an epoch from its beginning.

        Args:
            epoch: The number of the epoch, from 0.
        """
        check_count("set_epoch", 0, epoch=epoch)
        self._place = self._next = (int(epoch), 0)

    def __iter__(self) -> Iterator[Any]:
        epoch, start = self._next
        # A loop that is left early is followed by the next epoch.
        self._next = (epoch + 1, 0)
        self._place = (epoch, start)
        for number, batch in enumerate(self.epoch(epoch, start), start + 1):
            self._place = (epoch, number)
            yield batch
        self._place = (epoch + 1, 0)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Go through the batches of one epoch; what `for batch in loader` counts is left alone.

        Args:
            epoch: The number of the epoch, from 0.
            start: The batch to begin with.

        Raises:
            DataError: An item cannot be loaded; the error names it, and has the cause.
            WorkerError: A worker process died.

        >>> loader = gt.data.DataLoader(list("abcdef"), batch_size=2)
        >>> list(loader.epoch(0, start=1))
        [['c', 'd'], ['e', 'f']]
        """
        check_count("epoch", 0, epoch=epoch, start=start)
        return self._loaded(int(epoch), int(start))

    def _loaded(self, epoch: int, start: int) -> Iterator[Any]:
        tasks = list(enumerate(self._order(epoch)))[start:]
        fetch = Fetch(self.dataset, self._collate, self._seed, epoch)
        if self._workers and tasks:
            yield from _WORKERS[self._kind](fetch, tasks, self._workers, self._prefetch)
        else:
            for number, indices in tasks:
                yield fetch(number, indices)

    def _order(self, epoch: int) -> list[Any]:
        """The numbers of the items of each batch; those of the last epoch are kept."""
        if self._known_order is None or self._known_order[0] != epoch:
            batches = list(self._batches.batches(epoch))
            for indices in batches:
                inside = isinstance(indices, range) and 0 <= indices.start < indices.stop
                if not (inside and indices.stop <= self._total):
                    checked_indices("DataLoader", indices, self._total)
            self._known_order = (epoch, batches)
        return self._known_order[1]

    def order_checksum(self, epoch: int) -> int:
        """Return a number that tells the batches of an epoch from others, to compare when resuming.

        Args:
            epoch: The number of the epoch.
        """
        checksum = 0
        for indices in self._order(epoch):
            numbers = np.asarray(indices, np.int64)
            checksum = zlib.crc32(np.append(numbers, len(numbers)).tobytes(), checksum)
        return checksum

    def state_dict(self) -> dict[str, int]:
        """Return where the loop is, to continue there: also in the middle of an epoch.

        Returns:
            Numbers; `gt.save` saves them. Batches that the loop was given count as done.

        >>> loader = gt.data.DataLoader(list("abcdef"), batch_size=2)
        >>> for batch in loader:
        ...     state = loader.state_dict()
        ...     break
        >>> other = gt.data.DataLoader(list("abcdef"), batch_size=2)
        >>> other.load_state_dict(state)
        >>> list(other)
        [['c', 'd'], ['e', 'f']]
        """
        epoch, batch = self._place
        known = (epoch, batch, len(self), self.order_checksum(epoch))
        return dict(zip(_STATE, known, strict=True))

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Let the next iteration continue where a loop was.

        Args:
            state: What `state_dict` returned.

        Raises:
            ArgumentError: It is the state of a loader with other batches.
        """
        if not isinstance(state, Mapping) or set(state) != set(_STATE):
            raise ArgumentError(
                f"load_state_dict: expected the state of a loader, with {', '.join(_STATE)}"
            )
        numbers = {name: state[name] for name in _STATE}
        check_count("load_state_dict", 0, **numbers)
        epoch, batch, batches, order = map(int, numbers.values())
        if batch > batches or batches != len(self) or order != self.order_checksum(epoch):
            raise ArgumentError(
                f"load_state_dict: the batches of epoch {epoch} are others than those of the state "
                f"({len(self)} and {batches} of them); data set, batch size, seed and sampler have "
                "to be the same"
            )
        self._place = self._next = (epoch, batch)


def _checked_length(dataset: Any) -> int:
    if isinstance(dataset, tuple | dict):
        raise ArgumentError(
            f"DataLoader: got {a_type(dataset)}, expected a data set; for arrays, use "
            "gt.data.TensorDataset(x, y)"
        )
    total = length_of("DataLoader", dataset)
    if not total:
        raise ArgumentError("DataLoader: got an empty data set, expected at least one item")
    return total
