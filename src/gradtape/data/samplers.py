"""Samplers: in which order the items of a data set are gone through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.data.datasets import Indices, length_of, whole_numbers
from gradtape.data.permutation import checked_seed, permutation, uniform, words
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.checks import check_count

_DATA = "the data set, or its length"


class Sampler:
    """Base class of samplers: `order(epoch)` returns the numbers of the items of an epoch.

    It has to return the same for the same epoch, and `len(sampler)` of them. Iterating over a
    sampler goes through epoch 0.

    >>> class Reversed(gt.data.Sampler):
    ...     def __init__(self, data):
    ...         self.size = len(data)
    ...
    ...     def __len__(self):
    ...         return self.size
    ...
    ...     def order(self, epoch):
    ...         return np.arange(self.size)[::-1]
    >>> list(gt.data.DataLoader([1, 2, 3], sampler=Reversed([1, 2, 3]), batch_size=2))
    [array([3, 2]), array([1])]
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: define __len__(self)")

    def order(self, epoch: int) -> Indices:
        """Return the numbers of the items in the order of an epoch."""
        raise NotImplementedError(f"{type(self).__name__}: define order(self, epoch)")

    def __iter__(self) -> Iterator[int]:
        return (int(index) for index in self.order(0))


class SequentialSampler(Sampler):
    """Goes through all items in their order.

    Args:
        data: The data set, or its length.

    >>> list(gt.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data: Any) -> None:
        self._total = _length(data, "SequentialSampler")

    def __len__(self) -> int:
        return self._total

    def order(self, epoch: int) -> range:
        """Return the numbers from 0 on."""
        return range(self._total)


class RandomSampler(Sampler):
    """Goes through items in a random order, another one in each epoch.

    Args:
        data: The data set, or its length.
        replacement: Whether each item is drawn from all, so that it may occur again.
        num_samples: How many items an epoch has; all if None.
        seed: Chooses the orders.

    Raises:
        ArgumentError: More items are asked for than there are, without replacement.

    >>> sampler = gt.data.RandomSampler("abcde", seed=1)
    >>> sampler.order(0), sampler.order(1)
    (array([4, 1, 3, 2, 0]), array([3, 2, 0, 1, 4]))
    """

    def __init__(
        self,
        data: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self._total = _length(data, "RandomSampler")
        self._count = self._total if num_samples is None else num_samples
        self._replacement = replacement
        self._seed = checked_seed(seed, "RandomSampler")
        check_count("RandomSampler", 1, num_samples=self._count)
        if not replacement and self._count > self._total:
            raise ArgumentError(
                f"RandomSampler: got num_samples={num_samples} of {self._total} items, expected "
                "at most all; use replacement=True"
            )

    def __len__(self) -> int:
        return self._count

    def order(self, epoch: int) -> Any:
        """Return the numbers in the order of an epoch."""
        if self._replacement:
            # The remainder prefers small numbers by less than one part in 2⁶⁴ / total.
            return (words(self._count, self._seed, epoch) % np.uint64(self._total)).astype(np.int64)
        return permutation(self._total, self._seed, epoch)[: self._count]


class WeightedRandomSampler(Sampler):
    """Draws items with probabilities in proportion to weights, such as one over the class's size.

    Args:
        weights: A weight for each item, from 0.
        num_samples: How many items an epoch has; as many as there are weights if None.
        replacement: Whether an item may occur again.
        seed: Chooses the draws.

    Raises:
        ArgumentError: A weight is negative or not finite, all are zero, or more items are asked for
            than have a weight, without replacement.

    >>> sampler = gt.data.WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 1000)
    >>> counts = np.bincount(sampler.order(0))
    >>> counts[0], counts[2], counts[3] > 2 * counts[1]
    (np.int64(0), np.int64(0), np.True_)
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int | None = None,
        replacement: bool = True,
        *,
        seed: int = 0,
    ) -> None:
        name = "WeightedRandomSampler"
        given = np.asarray(weights)
        numbers = given.dtype.kind in "biuf" and given.ndim == 1
        given = self._weights = given.astype(np.float64) if numbers else np.zeros(0)
        if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
            raise ArgumentError(
                f"{name}: expected one axis of finite weights from 0 that are not all zero"
            )
        self._count = len(given) if num_samples is None else num_samples
        self._replacement, self._seed = replacement, checked_seed(seed, name)
        check_count(name, 1, num_samples=self._count)
        if not replacement and self._count > np.count_nonzero(given):
            raise ArgumentError(
                f"{name}: got num_samples={self._count}, but {np.count_nonzero(given)} items have "
                "a weight; use replacement=True"
            )

    def __len__(self) -> int:
        return self._count

    def order(self, epoch: int) -> Any:
        """Return the numbers in the order of an epoch."""
        weights = self._weights
        if self._replacement:
            sums = np.cumsum(weights)
            drawn = uniform(self._count, self._seed, epoch) * sums[-1]
            # Rounding up to the whole sum must not lead past the last item that has a weight.
            last = int(np.flatnonzero(weights)[-1])
            return np.minimum(np.searchsorted(sums, drawn, side="right"), last)
        # The k smallest of exponential times with these rates (Efraimidis and Spirakis 2006).
        times = -np.log1p(-uniform(len(weights), self._seed, epoch))
        with np.errstate(divide="ignore", invalid="ignore"):
            keys = np.where(weights > 0, times / weights, np.inf)
        return np.argsort(keys, kind="stable")[: self._count]


class DistributedSampler(Sampler):
    """The part of the items that one of several programs trains on; parts are equally large.

    Args:
        data: The data set, or its length.
        num_replicas: How many programs there are.
        rank: The number of this one.
        shuffle: Whether the order is random, another one in each epoch.
        drop_last: Whether items are left out if the parts would not be equal; else some occur
            twice.
        seed: Chooses the orders; the same in all programs.

    Raises:
        ArgumentError: The rank is no number of a program, or a part would be empty.

    >>> [gt.data.DistributedSampler(5, 2, rank, shuffle=False).order(0) for rank in (0, 1)]
    [array([0, 2, 4]), array([1, 3, 0])]
    """

    def __init__(
        self,
        data: Any,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        drop_last: bool = False,
        *,
        seed: int = 0,
    ) -> None:
        name = "DistributedSampler"
        self._total = _length(data, name)
        check_count(name, 1, num_replicas=num_replicas)
        check_count(name, 0, rank=rank)
        if rank >= num_replicas:
            raise ArgumentError(
                f"{name}: got rank={rank} of {num_replicas}, expected 0 to {num_replicas - 1}"
            )
        self._step, self._rank = num_replicas, rank
        self._shuffle, self._seed = shuffle, checked_seed(seed, name)
        whole = self._total // num_replicas
        self._count = whole if drop_last else -(-self._total // num_replicas)
        if self._count == 0:
            raise ArgumentError(f"{name}: got {self._total} items for {num_replicas} programs")

    def __len__(self) -> int:
        return self._count

    def order(self, epoch: int) -> Any:
        """Return the numbers of this program's items in the order of an epoch."""
        total = self._total
        whole = permutation(total, self._seed, epoch) if self._shuffle else np.arange(total)
        # The first items again, where the last part would be too small.
        return np.resize(whole, self._count * self._step)[self._rank :: self._step]


class BatchSampler:
    """Cuts the order of a sampler into batches.

    A loader takes any object with `batches(epoch)` and `len`, for batches of other kinds.

    Args:
        sampler: A sampler, or a sequence of numbers that is the order of each epoch.
        batch_size: How many items a batch has.
        drop_last: Whether to leave out the last batch if it is smaller.

    Raises:
        ArgumentError: There is no batch, or the sampler is none.

    >>> sampler = gt.data.SequentialSampler(5)
    >>> gt.data.BatchSampler(sampler, 2).batches(0)
    [range(0, 2), range(2, 4), range(4, 5)]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        check_count("DataLoader", 1, batch_size=batch_size)
        self._order, count = _order_function(sampler)
        self._size, self._drop_last = batch_size, drop_last
        self._length = count // batch_size if drop_last else -(-count // batch_size)
        if not self._length:
            cut = f" for batch_size={batch_size} with drop_last=True" if count else ""
            raise ArgumentError(
                f"DataLoader: got {count} items{cut}, which make no batch; is the data set empty?"
            )

    def __len__(self) -> int:
        return self._length

    def batches(self, epoch: int) -> list[Indices]:
        """Return the numbers of the items of each batch of an epoch."""
        order = self._order(epoch)
        size = self._size
        return [order[n * size : (n + 1) * size] for n in range(self._length)]


def _order_function(sampler: Any) -> tuple[Any, int]:
    """A function from an epoch to the order of its items, and how many there are."""
    if callable(getattr(sampler, "order", None)) and not isinstance(sampler, type):
        return sampler.order, len(sampler)
    if isinstance(sampler, Sequence | np.ndarray):
        fixed = whole_numbers("DataLoader", "sampler", sampler)
        return (lambda _epoch: fixed), len(fixed)
    raise ArgumentError(
        f"DataLoader: got {a_type(sampler)} as sampler, expected a gt.data.Sampler, which has a "
        "method order(epoch), or a sequence of integers"
    )


def _length(data: Any, name: str) -> int:
    total = data if isinstance(data, int | np.integer) else length_of(name, data)
    if total < 1:
        raise ArgumentError(f"{name}: got no items, expected at least one; is the data set empty?")
    return int(total)
