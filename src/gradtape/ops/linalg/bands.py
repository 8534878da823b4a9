"""Banded matrices by their diagonals, in the form of LAPACK. Xᴴ is the conjugate transpose.

With u diagonals above the main one, `ab[u + i − j, j]` is the element (i, j) of the matrix: each
row is a diagonal, each column has the elements of a column. The corners of the array that lie
outside of the matrix are not read. Of a Hermitian matrix only the diagonals of one triangle are
given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.cast import conj, conj_if_complex, real
from gradtape.ops.gather import take, take_along_axis
from gradtape.ops.join import concatenate
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where


def picked(x: Any, index: Any, axis: int) -> Any:
    """Elements along an axis by their numbers, and 0 where there is no such element.

    Args:
        x: The array, with axes of a stack first.
        index: The numbers; its axes are the last ones of `x`.
        axis: The axis, counted from the end.
    """
    inside = (index >= 0) & (index < x.shape[axis])
    stack = (1,) * (len(x.shape) - index.ndim)
    return where(
        inside,
        take_along_axis(x, np.where(inside, index, 0).reshape(stack + index.shape), axis),
        0.0,
    )


def shifted(ab: Any, steps: Any) -> Any:
    """Row r moved to the left by `steps[r]`, with zeros in the gaps."""
    return picked(ab, np.arange(ab.shape[-1]) + steps[:, None], -1)


def by_rows(ab: Any, upper: int) -> Any:
    """The diagonals, moved so that each column has the elements of a row of the matrix."""
    return shifted(ab, upper - np.arange(ab.shape[-2]))


def adjoint_bands(ab: Any, upper: int) -> Any:
    """The diagonals of Aᴴ: as many lie above the main one as lie below it in A."""
    return conj_if_complex(flip(by_rows(ab, upper), -2))


def hermitian_bands(ab: Any, lower: bool) -> Any:
    """All diagonals of a Hermitian matrix, given those of one triangle."""
    width = ab.shape[-2] - 1
    main, turned = (0 if lower else width), adjoint_bands(ab, 0 if lower else width)
    diagonal = ab[..., main : main + 1, :]
    if ab.dtype.kind == "c":
        diagonal = real(diagonal) + 0.0j
    if lower:
        return concatenate([turned[..., :width, :], diagonal, ab[..., 1:, :]], -2)
    return concatenate([ab[..., :width, :], diagonal, turned[..., 1:, :]], -2)


def dense(ab: Any, upper: int) -> Any:
    """The matrix itself."""
    steps = np.arange(ab.shape[-1])
    return picked(ab, upper + steps[:, None] - steps, -2)


def diagonals(x: Any, lower: int, upper: int) -> Any:
    """The diagonals of a square matrix, `lower` of them below the main one and `upper` above."""
    return picked(x, _rows_met(x.shape[-1], lower, upper), -2)


def _rows_met(size: int, lower: int, upper: int) -> Any:
    """The rows of the elements of diagonals, column by column; some lie outside of the matrix."""
    return np.arange(size) - (upper - np.arange(lower + upper + 1))[:, None]


def times_columns(ab: Any, upper: int, x: Any) -> Any:
    """A·X: the sum over diagonals of their elements times the rows of X that they multiply."""
    count, size = ab.shape[-2:]
    rows = np.arange(size) + (upper - np.arange(count))[:, None]
    met = take(x, rows.clip(0, max(size - 1, 0)), axis=-2)
    return sum_of(by_rows(ab, upper)[..., None] * met, -3)


def diagonals_of_product(y: Any, x: Any, lower: int, upper: int) -> Any:
    """The diagonals of Y·Xᴴ, without computing its other elements."""
    size = x.shape[-2]
    rows = _rows_met(size, lower, upper)
    inside = (rows >= 0) & (rows < size)
    met = take(y, rows.clip(0, max(size - 1, 0)), axis=-2)
    return where(inside, sum_of(met * conj(x)[..., None, :, :], -1), 0.0)
