"""Sparsity patterns: what users get, and what they may give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.lazy import lazy
from gradtape.errors import ArgumentError, ShapeError, a_type
from gradtape.sparsity.dependencies import DenseBlock

# So many dense blocks are listed when a pattern is printed.
_LISTED = 8


class SparsityPattern:
    """Where a Jacobian or Hessian may have elements that are not zero.

    Made by `gt.jacobian_sparsity` and `gt.hessian_sparsity`. There is a place wherever an element
    is not zero for some value of the argument. `print(pattern)` says which operations were taken as
    dense blocks, so that there may be more places than needed.

    Attributes:
        matrix: A `scipy.sparse.csr_array` of True at all places.
        blocks: The operations that were taken as dense, each with its `op`, `line` and `why`.

    >>> pattern = gt.jacobian_sparsity(lambda x: x[1:] - x[:-1])(np.ones(3))
    >>> pattern.matrix.toarray()
    array([[ True,  True, False],
           [False,  True,  True]])
    >>> print(pattern)
    pattern of 2 × 3 with 4 places (66.7 %); no dense blocks
    """

    def __init__(self, matrix: Any, blocks: Sequence[DenseBlock] = ()) -> None:
        self.matrix = matrix
        self.blocks = tuple(blocks)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows, elements of the result, and columns, elements of the argument."""
        return self.matrix.shape  # type: ignore[no-any-return]

    @property
    def nnz(self) -> int:
        """The number of places."""
        return self.matrix.nnz  # type: ignore[no-any-return]

    @lazy
    def places(self) -> tuple[Any, Any]:
        """The columns of all places, and where each row begins, as `gt.scipy.sparse` has them."""
        arrays = [x.astype(np.intp) for x in (self.matrix.indices, self.matrix.indptr)]
        for array in arrays:
            array.flags.writeable = False  # matrices share them
        return arrays[0], arrays[1]

    def toarray(self) -> Any:
        """The pattern as a dense array of truth values."""
        return self.matrix.toarray()

    def __repr__(self) -> str:
        return f"<pattern of {self.shape[0]} × {self.shape[1]} with {self.nnz} places>"

    def __str__(self) -> str:
        rows, columns = self.shape
        share = 100 * self.nnz / max(rows * columns, 1)
        text = f"pattern of {rows} × {columns} with {self.nnz} places ({share:.3g} %)"
        if not self.blocks:
            return f"{text}; no dense blocks"
        listed = [f"\n  {block}" for block in self.blocks[:_LISTED]]
        more = len(self.blocks) - len(listed)
        return f"{text}; dense blocks:" + "".join(listed) + (f"\n  and {more} more" * bool(more))


def given_pattern(name: str, pattern: Any, shape: tuple[int, int]) -> SparsityPattern:
    """A pattern that a user has given: one of ours, a matrix of SciPy, or a dense array.

    Raises:
        ArgumentError: It is something else.
        ShapeError: It is of another shape.
    """
    import scipy.sparse

    if isinstance(pattern, SparsityPattern):
        matrix, blocks = pattern.matrix, pattern.blocks
    else:
        try:
            sparse = scipy.sparse.issparse(pattern)
            matrix = scipy.sparse.csr_array(pattern if sparse else np.asarray(pattern, np.bool_))
        except (TypeError, ValueError):
            raise ArgumentError(
                f"{name}: got pattern={a_type(pattern)}, expected a matrix of scipy.sparse or an "
                "array of truth values, with a row for each element of the result and a column "
                "for each of the argument"
            ) from None
        blocks = ()
    if tuple(matrix.shape) != shape:
        raise ShapeError(
            f"{name}: got a pattern of shape {tuple(matrix.shape)}, expected {shape}: a row for "
            "each element of the result, a column for each of the argument"
        )
    return SparsityPattern(truths(matrix), blocks)


def truths(matrix: Any) -> Any:
    """A sparse matrix as one of True at all places that are stored and not zero, in order."""
    matrix = matrix.astype(np.bool_).tocsr().copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def same_pattern(one: SparsityPattern, other: SparsityPattern) -> bool:
    """Whether two patterns of the same shape have the same places."""
    return np.array_equal(one.matrix.indptr, other.matrix.indptr) and np.array_equal(
        one.matrix.indices, other.matrix.indices
    )
