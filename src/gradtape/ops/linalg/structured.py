"""Matrices defined by fewer numbers: toeplitz, circulant, hankel, block_diag, khatri_rao."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import broadcast_sizes
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import conj
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate
from gradtape.ops.like import zeros_like
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.pad_modes import pad
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import atleast_2d, broadcast_to, reshape
from gradtape.typing import Array, ArrayLike


def vectors(x: ArrayLike) -> Any:
    """`x` as an array with vectors in the last axis; a number is a vector of one."""
    x = as_array(x)
    return x if x.shape else reshape(x, (1,))


def _steps(rows: int, columns: int) -> Any:
    """Row and column numbers, so that they add up to a matrix."""
    return np.arange(rows)[:, None], np.arange(columns)


@in_float32
def toeplitz(c: ArrayLike, r: ArrayLike | None = None, /) -> Array:
    """Matrices with constant diagonals.

    Args:
        c: The first column, or several of them, along the last axis.
        r: The first row, whose first element is not read; None: the conjugate of `c`.

    >>> gt.linalg.toeplitz(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0]))
    array([[1., 4.],
           [2., 1.],
           [3., 2.]])
    """
    c = vectors(c)
    r = conj(c) if r is None else vectors(r)
    rows, columns = _steps(c.shape[-1], r.shape[-1])
    # Along the diagonals from the upper right corner to the lower left one.
    numbers = concatenate([flip(r[..., 1:], -1), c], axis=-1)
    return take(numbers, rows - columns + max(r.shape[-1] - 1, 0), axis=-1)


@in_float32
def hankel(c: ArrayLike, r: ArrayLike | None = None, /) -> Array:
    """Matrices that are constant along diagonals from the lower left to the upper right.

    Args:
        c: The first column, or several of them, along the last axis.
        r: The last row, whose first element is not read; None: zeros.

    >>> gt.linalg.hankel(np.array([1.0, 2.0]), np.array([2.0, 3.0, 4.0]))
    array([[1., 2., 3.],
           [2., 3., 4.]])
    """
    c = vectors(c)
    r = zeros_like(c) if r is None else vectors(r)
    rows, columns = _steps(c.shape[-1], r.shape[-1])
    return take(concatenate([c, r[..., 1:]], axis=-1), rows + columns, axis=-1)


@in_float32
def circulant(c: ArrayLike, /) -> Array:
    """Square matrices whose columns are all the rotations of the first one.

    Args:
        c: The first column, or several of them, along the last axis.

    >>> gt.linalg.circulant(np.array([1.0, 2.0, 3.0]))
    array([[1., 3., 2.],
           [2., 1., 3.],
           [3., 2., 1.]])
    """
    c = vectors(c)
    size = c.shape[-1]
    rows, columns = _steps(size, size)
    return take(c, (rows - columns) % max(size, 1), axis=-1)


@in_float32
def block_diag(*arrays: ArrayLike) -> Array:
    """A matrix with the given ones along its diagonal, and zeros elsewhere.

    Args:
        *arrays: Matrices, or stacks of them, which broadcast; numbers and vectors are rows.

    Raises:
        ShapeError: Stacks do not broadcast.

    >>> gt.linalg.block_diag(np.array([[1.0, 2.0]]), 3.0)
    array([[1., 2., 0.],
           [0., 0., 3.]])
    """
    if not arrays:
        return np.zeros((1, 0))
    blocks = [atleast_2d(as_array(array)) for array in arrays]
    stack = broadcast_sizes(*(block.shape[:-2] for block in blocks))
    blocks = [broadcast_to(block, (*stack, *block.shape[-2:])) for block in blocks]
    width = sum(block.shape[-1] for block in blocks)
    rows, start = [], 0
    for block in blocks:
        around = [(0, 0)] * (len(block.shape) - 1) + [(start, width - start - block.shape[-1])]
        rows.append(pad(block, around))
        start += block.shape[-1]
    return concatenate(rows, axis=-2)


@in_float32
def khatri_rao(a: ArrayLike, b: ArrayLike, /) -> Array:
    """The Kronecker product of each column of one matrix with the same one of another.

    Args:
        a: A matrix, or a stack of them.
        b: A matrix with as many columns, or a stack of them.

    Raises:
        ShapeError: The numbers of columns differ.

    >>> gt.linalg.khatri_rao(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    array([[ 3.,  8.],
           [ 5., 12.]])
    """
    a, b = as_array(a), as_array(b)
    fits = min(len(a.shape), len(b.shape)) > 1 and a.shape[-1] == b.shape[-1]
    check_fit("khatri_rao", fits, "matrices with the same number of columns", a, b)
    products = a[..., :, None, :] * b[..., None, :, :]
    *stack, rows, rows2, columns = products.shape
    return reshape(products, (*stack, rows * rows2, columns))
