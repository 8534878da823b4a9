"""Sparse matrices as containers of their stored numbers, for transforms and for `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.ops.sparse.arrays import SparseArray
from gradtape.ops.sparse.matrices import SparseMatrix


class _Pattern:
    """All of a matrix but its numbers: a compiled function depends on it."""

    __slots__ = ("indices", "indptr", "shape", "transposed")

    def __init__(self, matrix: SparseArray) -> None:
        self.indices = matrix.indices
        self.indptr = matrix.indptr
        self.shape = matrix.shape
        self.transposed = matrix.transposed

    @property
    def _form(self) -> tuple[Any, ...]:
        return self.shape, len(self.indices), self.transposed

    def __hash__(self) -> int:
        # Hashing the places would take as long as comparing them, which is rare.
        return hash(self._form)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Pattern)
            and self._form == other._form
            and _same(self.indices, other.indices)
            and _same(self.indptr, other.indptr)
        )

    def __repr__(self) -> str:
        return f"{self.shape} with {len(self.indices)} stored"


def _same(x: Any, y: Any) -> bool:
    return x is y or np.array_equal(x, y)


def _numbers(matrix: SparseArray) -> tuple[Any, ...]:
    return (matrix.data,), _Pattern(matrix), ("data",)


def _matrix(pattern: _Pattern, leaves: Any, kind: type[SparseArray] = SparseArray) -> SparseArray:
    (data,) = leaves
    stored = len(pattern.indices)
    if isinstance(data, Tensor | np.ndarray) and tuple(data.shape) != (stored,):
        raise ShapeError(
            f"SparseArray: got stored numbers of shape {tuple(data.shape)}, expected ({stored},); "
            "a transform that adds or takes an axis, as vmap and jacobian do, is given the numbers "
            "s.data, and a matrix is made of them inside by s.with_data(data)"
        )
    shape = pattern.shape[::-1] if pattern.transposed else pattern.shape
    return kind(data, pattern.indices, pattern.indptr, shape, pattern.transposed)


containers.register(SparseArray, _numbers, _matrix)
containers.register(
    SparseMatrix, _numbers, lambda pattern, leaves: _matrix(pattern, leaves, SparseMatrix)
)
