"""The places of the numbers of sparse matrices: constants, computed with NumPy.

A place of a matrix has the key row·columns + column, so that keys in rising order go row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Shape = tuple[int, int]


def keys_of(coords: tuple[Any, Any], shape: Shape) -> Any:
    """The keys of places given by rows and columns."""
    rows, columns = coords
    return rows * shape[1] + columns


def by_rows(keys: Any, shape: Shape) -> tuple[Any, Any]:
    """Columns, and where each row begins and ends in them, from rising keys."""
    rows, columns = np.divmod(keys, max(shape[1], 1))
    return columns, np.searchsorted(rows, np.arange(shape[0] + 1))


def once(keys: Any) -> tuple[Any, Any]:
    """Keys in rising order without repetition, and which of them each one is."""
    kept, which = np.unique(keys, return_inverse=True)
    return kept, which.reshape(-1)


def meetings(columns: Any, indptr: Any) -> tuple[Any, Any]:
    """In a product of two matrices, the pairs of stored numbers that are multiplied.

    Args:
        columns: The columns of the numbers of the first matrix.
        indptr: Where the rows of the second one begin and end.
    """
    counts = np.diff(indptr)[columns]
    left = np.repeat(np.arange(len(columns)), counts)
    before = np.cumsum(counts) - counts
    return left, np.arange(len(left)) + np.repeat(indptr[columns] - before, counts)


def along_diagonal(shape: Shape, k: int) -> int:
    """How many elements a diagonal has."""
    return max(min(shape[0] + min(k, 0), shape[1] - max(k, 0)), 0)
