"""Arrays of several axes seen as matrices: tensorsolve, tensorinv."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradtape.ops.arguments import as_array, normalize_axes
from gradtape.ops.checks import check_positive
from gradtape.ops.linalg.common import check_fit
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.solve import inv, solve
from gradtape.ops.shape import ravel, reshape, transpose
from gradtape.typing import Array, ArrayLike


@in_float32
def tensorsolve(a: ArrayLike, b: ArrayLike, /, axes: Sequence[int] | None = None) -> Array:
    """The solution x of `tensordot(a, x, x.ndim) = b`.

    Args:
        a: The array; the first of its axes are those of `b`, the others have as many elements.
        b: The right hand side.
        axes: Axes of `a` that are moved to its end first.

    Raises:
        ShapeError: The sizes do not fit.
        LinAlgError: The array, seen as a matrix, is singular.

    >>> gt.linalg.tensorsolve(2 * np.eye(4).reshape(2, 2, 4), np.ones((2, 2)))
    array([0.5, 0.5, 0.5, 0.5])
    """
    a, b = as_array(a), as_array(b)
    if axes is not None:
        last = normalize_axes(tuple(axes), len(a.shape), "tensorsolve")
        first = [axis for axis in range(len(a.shape)) if axis not in last]
        a = transpose(a, (*first, *last))
    shape = a.shape[len(b.shape) :]
    size = math.prod(shape)
    fits = math.prod(a.shape) == size * size and math.prod(b.shape) == size
    expected = "axes after those of the second array that have as many elements as it"
    check_fit("tensorsolve", fits, expected, a, b)
    return reshape(solve(reshape(a, (size, size)), ravel(b)), shape)


@in_float32
def tensorinv(a: ArrayLike, /, ind: int = 2) -> Array:
    """The inverse of the map `x ↦ tensordot(a, x, x.ndim)`.

    Args:
        a: The array; its first `ind` axes have as many elements as the others.
        ind: How many axes come first.

    Raises:
        ShapeError: The sizes do not fit.
        ArgumentError: `ind` is not positive.
        LinAlgError: The array, seen as a matrix, is singular.

    >>> gt.linalg.tensorinv(2 * np.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    a = as_array(a)
    check_positive("tensorinv", ind=ind)
    first, last = a.shape[:ind], a.shape[ind:]
    size = math.prod(first)
    expected = f"as many elements in the first {ind} axes as in the others"
    check_fit("tensorinv", size == math.prod(last), expected, a)
    return reshape(inv(reshape(a, (size, size))), last + first)
