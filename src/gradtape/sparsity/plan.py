"""Plans: which columns and rows share a sweep, and where each number is found afterwards.

Columns that have no row in common share a sweep of forward mode, and rows that have no column in
common one of reverse mode. A few dense rows are done in reverse mode and all else forward, or a few
dense columns forward and all else in reverse mode. Of a symmetric matrix one of two numbers is
enough, so that columns may share a sweep if each number or its mirror image is by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.lazy import Deferred
from gradtape.sparsity.pattern import SparsityPattern

_colour_columns = Deferred("gradtape.compiler.cpu.runtime.greedy_colours:columns")
_colour_symmetric = Deferred("gradtape.compiler.cpu.runtime.greedy_colours:symmetric")

MODES = ("auto", "forward", "reverse", "mixed")


class SparsePlan(NamedTuple):
    """How a sparse Jacobian or Hessian is computed.

    Attributes:
        name: "sparse_jacobian" or "sparse_hessian".
        pattern: The pattern, and which operations were taken as dense.
        columns: For each column the forward sweep it is part of, -1 if none; None without any.
        rows: For each row the reverse sweep it is part of, -1 if none; None without any.
        places: For each place of the pattern the number that belongs there, counted through the
            results of all sweeps, forward ones first.
    """

    name: str
    pattern: SparsityPattern
    columns: Any
    rows: Any
    places: Any

    @property
    def forward(self) -> int:
        """The number of forward sweeps; of a Hessian each is a product with a vector."""
        return _number(self.columns)

    @property
    def reverse(self) -> int:
        """The number of reverse sweeps."""
        return _number(self.rows)

    @property
    def only_reverse(self) -> bool:
        """Whether all sweeps are reverse ones."""
        return self.reverse > 0 and not self.forward

    @property
    def colours(self) -> tuple[Any, Any]:
        """The colours of columns and rows, as arguments of the program that carries it out."""
        none = np.zeros(0, np.int32)
        return (
            none if self.columns is None else self.columns,
            none if self.rows is None else self.rows,
        )

    def __repr__(self) -> str:
        parts = []
        if self.forward:
            kind = "products with vectors" if self.name == "sparse_hessian" else "forward sweeps"
            parts.append(f"{kind}: {self.forward} for {_chosen(self.columns)} columns")
        if self.reverse:
            parts.append(f"reverse sweeps: {self.reverse} for {_chosen(self.rows)} rows")
        return "\n".join([self.name, *(parts or ["no sweeps"]), str(self.pattern)])


def _number(colours: Any) -> int:
    return 0 if colours is None or not len(colours) else int(colours.max()) + 1


def _chosen(colours: Any) -> int:
    return int(np.count_nonzero(colours >= 0))


# ---- Jacobians ----------------------------------------------------------------------------------


def jacobian_plan(pattern: SparsityPattern, mode: str) -> SparsePlan:
    """The plan with the fewest sweeps in one of `MODES`; of several that of forward mode."""
    if not pattern.nnz:
        return _plan("sparse_jacobian", pattern, None, None, np.zeros(0, np.int64))
    best = None
    for estimate, coloured in _candidates(pattern.matrix, mode):
        if best is None or estimate < sum(best[0]):
            columns, rows = coloured()
            sweeps = _number(columns), _number(rows)
            if best is None or sum(sweeps) < sum(best[0]):
                best = sweeps, columns, rows
    assert best is not None
    _, columns, rows = best
    return _plan("sparse_jacobian", pattern, columns, rows, _places(pattern, columns, rows))


def _plan(name: str, pattern: SparsityPattern, columns: Any, rows: Any, places: Any) -> SparsePlan:
    narrow = not len(places) or places.max() < 1 << 31  # half of what a gather reads are places
    return SparsePlan(name, pattern, columns, rows, places.astype(np.int32) if narrow else places)


Colours = tuple[Any, Any]


def _candidates(matrix: Any, mode: str) -> Iterator[tuple[int, Callable[[], Colours]]]:
    """Estimates of the number of sweeps, and functions that give colours of columns and rows."""
    turned = matrix.T.tocsr()
    dense_rows, dense_columns = _Division(matrix), _Division(turned)
    if mode in ("auto", "forward"):
        yield dense_rows.most, lambda: (column_colours(matrix), None)
    if mode in ("auto", "reverse"):
        yield dense_columns.most, lambda: (None, column_colours(turned))
    if mode in ("auto", "mixed"):
        yield dense_rows.estimate, dense_rows.coloured
        yield dense_columns.estimate, lambda: dense_columns.coloured()[::-1]


class _Division:
    """A few dense rows apart from the others.

    Attributes:
        most: The number of places in the fullest row, which is the least number of colours.
        estimate: About as many colours there are if the dense rows are done one by one.
    """

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self._counts = np.diff(matrix.indptr)
        order = np.argsort(-self._counts, kind="stable")
        # With k rows done apart, the others need as many colours as the next one has places.
        bounds = np.arange(len(order)) + self._counts[order]
        self.most = int(self._counts.max(initial=0))
        self.estimate = int(bounds.min(initial=self.most))
        self._dense = order[: int(bounds.argmin())] if len(order) else order

    def coloured(self) -> Colours:
        """Colours of columns, whatever dense rows have, and of dense rows; -1 for other rows."""
        rows = np.full(len(self._counts), -1, np.int32)
        if not len(self._dense):
            return column_colours(self._matrix), rows
        rows[self._dense] = column_colours(self._matrix[self._dense].T.tocsr())
        return column_colours(_only(self._matrix, np.repeat(rows < 0, self._counts))), rows


def _only(matrix: Any, kept: Any) -> Any:
    """A matrix with some of its places only."""
    matrix = matrix.copy()
    matrix.data = kept
    matrix.eliminate_zeros()
    return matrix


def column_colours(matrix: Any) -> Any:
    """Colours of columns, such that no row has two of the same."""
    by_columns = matrix.tocsc()
    height, width = matrix.shape
    least = int(np.diff(matrix.indptr).max(initial=0))

    def coloured(order: Any) -> Any:
        return _colour_columns(by_columns.indptr, by_columns.indices, order, height)

    # How many columns each column meets, counted once for each row they meet in.
    meets = by_columns.T @ np.diff(matrix.indptr)
    return _best(coloured, width, meets, least)


def _best(coloured: Any, count: int, weights: Any, least: int) -> Any:
    """The fewest colours of some orders: as they are, heaviest first, and by classes."""
    best = coloured(np.arange(count))
    if _number(best) <= least:
        return best
    best = min(best, coloured(np.argsort(-weights, kind="stable")), key=_number)
    # Going through the classes of a colouring from the last to the first takes no more colours.
    for _ in range(2):
        best = min(best, coloured(np.argsort(-best, kind="stable")), key=_number)
    return best


def _places(pattern: SparsityPattern, columns: Any, rows: Any) -> Any:
    """Where the number of each place is, in the results of forward sweeps, then reverse ones."""
    (height, width), matrix = pattern.shape, pattern.matrix
    row = np.repeat(np.arange(height), np.diff(matrix.indptr))
    column = matrix.indices.astype(np.int64)
    if rows is None:
        return columns[column] * np.int64(height) + row
    reverse = rows[row] * np.int64(width) + column
    if columns is None:
        return reverse
    forward = columns[column] * np.int64(height) + row
    # Either some columns are done forward, and all else in reverse, or some rows in reverse.
    is_forward = columns[column] >= 0 if (columns < 0).any() else rows[row] < 0
    return np.where(is_forward, forward, reverse + _number(columns) * height)


# ---- Hessians -----------------------------------------------------------------------------------


def hessian_plan(pattern: SparsityPattern, symmetric: bool) -> SparsePlan:
    """The plan of a Hessian, by products with vectors.

    Args:
        pattern: The pattern; that of a symmetric matrix if `symmetric`.
        symmetric: Whether a number may be taken from the place on the other side of the diagonal.
    """
    matrix = pattern.matrix
    if not pattern.nnz:
        return _plan("sparse_hessian", pattern, None, None, np.zeros(0, np.int64))
    if not symmetric:
        columns = column_colours(matrix)
        return _plan("sparse_hessian", pattern, columns, None, _places(pattern, columns, None))
    size = pattern.shape[0]
    row = np.repeat(np.arange(size, dtype=np.int32), np.diff(matrix.indptr))
    beside = _only(matrix, row != matrix.indices)
    degrees = np.diff(beside.indptr)

    def coloured(order: Any) -> Any:
        return _colour_symmetric(beside.indptr, beside.indices, order)

    colours = _best(coloured, size, degrees, 1 + bool(beside.nnz))
    # Of an edge, the end with the lower colour is the only neighbour of the other that has it.
    column = matrix.indices
    mirrored = colours[row] < colours[column]
    low, other = np.where(mirrored, row, column), np.where(mirrored, column, row)
    places = colours[low] * np.int64(size) + other
    return _plan("sparse_hessian", pattern, colours, None, places)
