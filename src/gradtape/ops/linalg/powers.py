"""Products of matrices: integer powers, chains."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import copy
from gradtape.ops.linalg.common import by_squaring, check_fit, square
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.solve import inv
from gradtape.ops.matmul import matmul
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.typing import Array, ArrayLike


@in_float32
def matrix_power(x: ArrayLike, n: int, /) -> Array:
    """A square matrix, or each in a stack, to an integer power; a negative one inverts it.

    Raises:
        LinAlgError: A matrix is not square; or singular, for a negative power.
        ArgumentError: The power is not an integer.

    >>> gt.linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 5)
    array([[1., 5.],
           [0., 1.]])
    """
    x = square("matrix_power", x)
    try:
        n = operator.index(n)
    except TypeError as error:
        raise ArgumentError(
            f"matrix_power: got n={n!r}, expected an integer; use fractional_matrix_power"
        ) from error
    if n == 0:
        # 0·x keeps the result on the tape of x, with a derivative of 0.
        return broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape) + 0 * x
    if n < 0:
        x, n = inv(x), -n
    return copy(x) if n == 1 else by_squaring(x, n)


@in_float32
def multi_dot(arrays: Sequence[ArrayLike], /) -> Array:
    """The product of several matrices, in the order of multiplying that takes the least work.

    Args:
        arrays: Two or more matrices; the first and the last one may be vectors.

    Raises:
        ShapeError: There are less than two arrays, or they do not fit each other.

    >>> gt.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)])
    array([12., 12.])
    """
    chain = [as_array(array) for array in arrays]
    axes = [len(array.shape) for array in chain]
    fits = len(axes) > 1 and {*axes[:1], *axes[-1:]} <= {1, 2} and set(axes[1:-1]) <= {2}
    expected = "at least two matrices, of which the first and the last may be vectors"
    check_fit("multi_dot", fits, expected, *chain)
    row, column = axes[0] == 1, axes[-1] == 1
    if row:
        chain[0] = chain[0][None, :]
    if column:
        chain[-1] = chain[-1][:, None]
    sizes = [chain[0].shape[0], *(matrix.shape[1] for matrix in chain)]
    product = _product(chain, _splits(sizes), 0, len(chain) - 1)
    shape = (() if row else product.shape[:1]) + (() if column else product.shape[1:])
    return reshape(product, shape)


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of a chain of matrices, whose i-th has sizes i and i + 1."""
    count = len(sizes) - 1
    work = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                work[i, k] + work[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            work[i, j] = min(costs)
            split[i, j] = i + costs.index(work[i, j])
    return split


def _product(chain: Sequence[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return chain[i]
    k = split[i, j]
    return matmul(_product(chain, split, i, k), _product(chain, split, k + 1, j))
