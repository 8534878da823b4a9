"""Data sets: collections of items that are found by a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.tensor import Tensor
from gradtape.data.permutation import checked_seed, permutation
from gradtape.errors import ArgumentError, ShapeError, a_type

# The numbers of the items of a batch: a range of neighbours, or an array of integers.
Indices = Any
TakeBatch = Callable[[Indices], Any]


class Dataset:
    """Base class of data sets: `len(data)` items, `data[i]` for i from 0.

    Anything with these two methods is a data set, such as a list of pairs; a subclass also has `+`
    for `ConcatDataset`. A data set may have a third method, `batch(indices)`, which returns many
    items at once, put together. `indices` is a `range` or an array of integers. It saves a loader
    from getting the items one by one, and from stacking them.

    >>> class Squares(gt.data.Dataset):
    ...     def __len__(self):
    ...         return 5
    ...
    ...     def __getitem__(self, i):
    ...         return i, i * i
    >>> next(iter(gt.data.DataLoader(Squares(), batch_size=3)))
    (array([0, 1, 2]), array([0, 1, 4]))
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} items>"

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: define __len__(self)")

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define __getitem__(self, index)")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class TensorDataset(Dataset):
    """Arrays of which the first axis counts items: item i is a tuple of `array[i]`.

    A batch is taken out of each array by one call. Neighbours, in a loader that does not shuffle,
    are read-only views, so nothing is copied. Memory-mapped files (`np.load(path, mmap_mode="r")`)
    are read as far as needed; processes of a loader open them again instead of copying.

    Args:
        arrays: NumPy arrays, or tensors that require no gradient; batches are of the same kind.

    Raises:
        ArgumentError: There is none, or one is not an array or requires a gradient.
        ShapeError: The first axes differ in size.

    >>> data = gt.data.TensorDataset(np.arange(6.0).reshape(3, 2), np.array([0, 1, 0]))
    >>> data
    <TensorDataset of 3 items: float64[2], int64[]>
    >>> len(data), data[1]
    (3, (array([2., 3.]), np.int64(1)))
    >>> data.batch(np.array([2, 0]))
    (array([[4., 5.],
           [0., 1.]]), array([0, 0]))
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays:
            raise ArgumentError("TensorDataset: got no arrays, expected at least one")
        self._are_tensors = tuple(isinstance(array, Tensor) for array in arrays)
        self._arrays = tuple(_plain(n, array) for n, array in enumerate(arrays))
        sizes = {len(array) for array in self._arrays}
        if len(sizes) > 1:
            raise ShapeError(
                f"TensorDataset: got arrays of {', '.join(str(len(a)) for a in self._arrays)} "
                "items, expected the same number in each, along the first axis"
            )

    def __repr__(self) -> str:
        kinds = ", ".join(f"{one.dtype}{list(one.shape[1:])}" for one in self._arrays)
        return f"<TensorDataset of {len(self)} items: {kinds}>"

    def __len__(self) -> int:
        return len(self._arrays[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return self._made(array[index] for array in self._arrays)

    def batch(self, indices: Indices) -> tuple[Any, ...]:
        """Return items as one tuple of arrays.

        Args:
            indices: The numbers of the items, as a `range` or an array of integers. For a range
                without gaps, the arrays are read-only views.
        """
        if isinstance(indices, range) and indices.step == 1:
            place = slice(indices.start, indices.stop)
            return self._made(_view(array, place) for array in self._arrays)
        rows = np.asarray(indices, np.intp)
        return self._made(array.take(rows, axis=0) for array in self._arrays)

    def _made(self, found: Iterable[Any]) -> tuple[Any, ...]:
        if not any(self._are_tensors):
            return tuple(found)
        pairs = zip(found, self._are_tensors, strict=True)
        return tuple(Tensor(np.asarray(one)) if wrap else one for one, wrap in pairs)


class Subset(Dataset):
    """Some items of a data set.

    Args:
        dataset: The data set.
        indices: The numbers of the items, in their order.

    Raises:
        ArgumentError: A number is no item of the data set.

    >>> odd = gt.data.Subset(["a", "b", "c", "d"], [1, 3])
    >>> odd, odd[1]
    (<Subset of 2 items>, 'd')
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | Any) -> None:
        self.dataset = dataset
        self.indices = checked_indices("Subset", indices, length_of("Subset", dataset))

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[int(self.indices[index])]

    @property
    def batch(self) -> TakeBatch | None:
        """The function that takes many items at once, if the data set has one."""
        take = batch_taker(self.dataset)
        return None if take is None else lambda indices: take(self.indices[_index(indices)])


class ConcatDataset(Dataset):
    """Several data sets as one, one after the other.

    Args:
        datasets: The data sets.

    Raises:
        ArgumentError: There is none.

    >>> both = gt.data.ConcatDataset([["a", "b"], ["c"]])
    >>> len(both), both[2]
    (3, 'c')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets) if isinstance(datasets, Iterable) else []
        if not self.datasets:
            raise ArgumentError("ConcatDataset: got no data sets, expected at least one")
        lengths = [length_of("ConcatDataset", one) for one in self.datasets]
        self._starts = np.array([0, *accumulate(lengths)], np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"ConcatDataset: got item {index}, expected one of {len(self)}")
        place = index % len(self)
        owner = int(np.searchsorted(self._starts, place, side="right")) - 1
        return self.datasets[owner][place - int(self._starts[owner])]

    @property
    def batch(self) -> TakeBatch | None:
        """The function that takes many items at once, if all the data sets have one."""
        takers = [batch_taker(one) for one in self.datasets]
        if any(take is None for take in takers):
            return None
        return lambda indices: self._batch(takers, np.asarray(indices, np.int64))

    def _batch(self, takers: Sequence[Any], indices: Any) -> Any:
        owners = np.searchsorted(self._starts, indices, side="right") - 1
        places, parts = [], []
        for owner in np.unique(owners):
            mine = np.flatnonzero(owners == owner)
            places.append(mine)
            parts.append(takers[owner](indices[mine] - self._starts[owner]))
        if len(parts) == 1:
            return parts[0]
        back = np.argsort(np.concatenate(places))
        flat = [containers.flatten(part) for part in parts]
        columns = zip(*(leaves for leaves, _ in flat), strict=True)
        return containers.unflatten(flat[0][1], [_joined(column)[back] for column in columns])


def random_split(dataset: Any, lengths: Sequence[float], *, seed: int = 0) -> list[Subset]:
    """Split a data set at random into parts that have no item in common.

    Args:
        dataset: The data set.
        lengths: How many items each part gets; or fractions that add up to 1, where the first
            parts get what rounding leaves over.
        seed: Chooses the split.

    Returns:
        A subset for each length.

    Raises:
        ArgumentError: The lengths do not add up to the length of the data set, or to 1.

    >>> train, test = gt.data.random_split(range(10), [0.8, 0.2])
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    total = length_of("random_split", dataset)
    lengths = np.asarray(lengths).tolist()
    if not (isinstance(lengths, list) and all(isinstance(x, int | float) for x in lengths)):
        raise ArgumentError(f"random_split: got lengths={lengths!r}, expected a list of numbers")
    fractions = any(isinstance(length, float) for length in lengths)
    if min(lengths, default=0) < 0 or not math.isclose(sum(lengths), 1 if fractions else total):
        raise ArgumentError(
            f"random_split: got lengths={lengths}, expected lengths that add up to {total}, "
            "or fractions that add up to 1"
        )
    sizes = [math.floor(total * part) if fractions else int(part) for part in lengths]
    for n in range(total - sum(sizes)):
        sizes[n % len(sizes)] += 1
    order = permutation(total, checked_seed(seed, "random_split"))
    ends = list(accumulate(sizes))
    pairs = zip(ends, sizes, strict=True)
    return [Subset(dataset, order[end - size : end]) for end, size in pairs]


def batch_taker(dataset: Any) -> TakeBatch | None:
    """The method of a data set that takes many items at once; None if it has none."""
    take = getattr(dataset, "batch", None)
    return take if callable(take) else None


def length_of(name: str, dataset: Any) -> int:
    """How many items a data set has; an ArgumentError if it is none."""
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise ArgumentError(
            f"{name}: got {a_type(dataset)}, expected a data set, which has len() and []"
        )
    return len(dataset)


def whole_numbers(name: str, what: str, given: Any) -> Any:
    """An array of integers with one axis.

    Raises:
        ArgumentError: It is something else, such as a mask.
    """
    found = np.asarray(given)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name}: got an array of {found.dtype} of shape {found.shape} as {what}, expected "
            "integers along one axis; np.flatnonzero makes them of a mask"
        )
    return found.astype(np.int64)


def checked_indices(name: str, given: Any, total: int) -> Any:
    """Numbers of items as an array.

    Raises:
        ArgumentError: They are no integers, or one of them is none of an item.
    """
    indices = whole_numbers(name, "numbers of items", given)
    if len(indices) and not (indices.min() >= 0 and indices.max() < total):
        wrong = indices[(indices < 0) | (indices >= total)][0]
        raise ArgumentError(
            f"{name}: got item {wrong} of a data set of {total} items, expected 0 to {total - 1}"
        )
    return indices


def _plain(number: int, array: Any) -> Any:
    """The NumPy array in what was given."""
    if isinstance(array, Tensor):
        if array.requires_grad:
            raise ArgumentError(
                f"TensorDataset: argument {number} requires a gradient, which batches would not "
                "pass on; use detach()"
            )
        array = array.numpy()
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        what = "a number" if isinstance(array, np.ndarray) else a_type(array)
        raise ArgumentError(
            f"TensorDataset: got {what} as argument {number}, expected an array whose first axis "
            "counts the items; use np.asarray"
        )
    return np.asarray(array)


def _view(array: Any, place: slice) -> Any:
    view = array[place]
    view.flags.writeable = False
    return view


def _index(indices: Indices) -> Any:
    """Numbers as an index of an array."""
    if isinstance(indices, range) and indices.step == 1:
        return slice(indices.start, indices.stop)
    return np.asarray(indices, np.int64)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], Tensor):
        return Tensor(np.concatenate([part.numpy() for part in parts]))
    return np.concatenate(parts)
