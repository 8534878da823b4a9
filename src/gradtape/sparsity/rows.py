"""Boolean matrices by rows: which inputs each element of a value depends on.

Row `i` lists the columns of the inputs that element `i` depends on, in rising order. Rows are not
changed once made, so that values with the same dependencies share one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.lazy import lazy
from gradtape.errors import PatternError

# With more places a matrix would take gigabytes, and nothing about it is sparse.
_MOST_PLACES = 1 << 29
# SciPy's own type of indices for so many places: it makes no copies.
_INDEX = np.int32


class Rows:
    """A boolean matrix.

    Attributes:
        starts: Where the columns of each row begin in `columns`, and where those of the last end.
        columns: The columns of all rows, one row after the other.
        width: The number of columns.
    """

    def __init__(self, starts: Any, columns: Any, width: int) -> None:
        self.starts = starts
        self.columns = columns
        self.width = width

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def count(self) -> int:
        """The number of places."""
        return len(self.columns)

    @lazy
    def csr(self) -> Any:
        """SciPy's matrix of truth values, which shares the arrays."""
        import scipy.sparse

        true = np.ones(self.count, np.bool_)
        shape = (len(self), self.width)
        made = scipy.sparse.csr_array((true, self.columns, self.starts), shape=shape)
        made.has_canonical_format = True
        return made

    @lazy
    def used(self) -> Any:
        """The columns that any row has, in rising order."""
        flags = np.zeros(self.width, np.bool_)
        flags[self.columns] = True
        return np.flatnonzero(flags).astype(_INDEX)

    def take(self, places: Any) -> Rows:
        """The rows at places; an empty one where the place is -1."""
        if not len(self):
            return nothing(len(places), self.width)
        if len(places) == len(self) and np.array_equal(places, np.arange(len(self))):
            return self
        starts = _running(np.where(places >= 0, self.lengths[places], 0))
        first = np.repeat(self.starts[:-1][places] - starts[:-1], np.diff(starts))
        return Rows(starts, self.columns[first + np.arange(len(first))], self.width)

    @lazy
    def lengths(self) -> Any:
        """The number of columns in each row."""
        return np.diff(self.starts)

    def combined(self, to: Any, places: Any, count: int) -> Rows:
        """`count` rows: row `to[k]` has what the row at `places[k]` has, for all k."""
        if len(to) == count and np.array_equal(to, np.arange(count)):
            return self.take(places)
        import scipy.sparse

        _check_count(min(int(self.lengths[places].sum()), count * len(self.used)))
        true = np.ones(len(to), np.bool_)
        shape = (count, len(self))
        return of_csr(scipy.sparse.csr_array((true, (to, places)), shape=shape) @ self.csr)

    def everywhere(self, count: int) -> Rows:
        """`count` rows that have all columns that any row has."""
        each = len(self.used)
        _check_count(count * each)
        return Rows(_running(np.full(count, each)), np.tile(self.used, count), self.width)


def identity(count: int) -> Rows:
    """Each element depends on itself."""
    return Rows(np.arange(count + 1, dtype=_INDEX), np.arange(count, dtype=_INDEX), count)


def nothing(count: int, width: int) -> Rows:
    """No element depends on anything."""
    return Rows(np.zeros(count + 1, _INDEX), np.zeros(0, _INDEX), width)


def of_csr(matrix: Any) -> Rows:
    """A boolean matrix of SciPy."""
    matrix.sum_duplicates()  # sorts rows, too
    starts, columns = (x.astype(_INDEX, copy=False) for x in (matrix.indptr, matrix.indices))
    return Rows(starts, columns, matrix.shape[1])


def union(first: Rows | None, second: Rows | None) -> Rows | None:
    """What either of two values depends on; None stands for nothing.

    If one has all that the other has, it is returned itself.
    """
    if first is second or second is None:
        return first
    if first is None:
        return second
    both = of_csr(first.csr + second.csr)
    return next((one for one in (first, second) if one.count == both.count), both)


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of several matrices, one below the other."""
    starts = _running(np.concatenate([part.lengths for part in parts]))
    return Rows(starts, np.concatenate([part.columns for part in parts]), parts[0].width)


def same(first: Rows | None, second: Rows | None) -> bool:
    """Whether two values depend on the same."""
    if first is None or second is None or first is second:
        return first is second
    return np.array_equal(first.starts, second.starts) and np.array_equal(
        first.columns, second.columns
    )


def _running(counts: Any) -> Any:
    """Where parts of the given lengths begin, and where the last ends."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    _check_count(starts[-1])
    return starts.astype(_INDEX)


def _check_count(count: int) -> None:
    if count > _MOST_PLACES:
        raise PatternError(
            f"sparsity: got a pattern of {count:,} places, expected at most {_MOST_PLACES:,}; that "
            "is not sparse: use gt.jacobian, or products by gt.jvp and gt.vjp"
        )
