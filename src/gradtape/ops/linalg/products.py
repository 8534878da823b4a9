"""Products of vectors and parts of matrices as `numpy.linalg` and the Array API standard have them.

They work on the last axes, where those of the main namespace have arguments for it.
"""

from __future__ import annotations

from typing import Any

from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arrays.products import cross as cross_of, vecdot as vecdot_of
from gradtape.ops.diagonal import diagonal as diagonal_along, trace as trace_along
from gradtape.ops.linalg.common import check_fit, of_two_axes
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.matmul import outer as outer_of
from gradtape.typing import Array, ArrayLike


@in_float32
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two axes.

    Args:
        x: The matrices.
        offset: Which diagonal: 0 is the main one, positive ones lie above it.

    Raises:
        LinAlgError: There are less than two axes.

    >>> gt.linalg.diagonal(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """
    return diagonal_along(of_two_axes("diagonal", as_array(x)), offset, -2, -1)


@in_float32
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of each diagonal of the matrices in the last two axes.

    Args:
        x: The matrices.
        offset: Which diagonal: 0 is the main one, positive ones lie above it.
        dtype: The dtype of the result.

    Raises:
        LinAlgError: There are less than two axes.

    >>> gt.linalg.trace(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.float64(5.0)
    """
    return trace_along(of_two_axes("trace", as_array(x)), offset, -2, -1, dtype=dtype)


@in_float32
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Cross products of vectors with 3 components.

    Args:
        x1: The first vectors.
        x2: The second ones; the other axes broadcast.
        axis: The axis of both that holds the components.

    Raises:
        ShapeError: Vectors have not 3 components, or the other axes do not broadcast.
        AxisError: There is no such axis.

    >>> gt.linalg.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    x1, x2 = as_array(x1), as_array(x2)
    sizes = [x.shape[normalize_axis(axis, len(x.shape), "cross")] for x in (x1, x2)]
    check_fit("cross", sizes == [3, 3], f"3 components along axis {axis}", x1, x2)
    return cross_of(x1, x2, axis=axis)


@in_float32
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Dot products of vectors; complex ones of the first array are conjugated.

    Args:
        x1: The first vectors.
        x2: The second ones; the other axes broadcast.
        axis: The axis of both that holds the components.

    Raises:
        ShapeError: Vectors are not of one length, or the other axes do not broadcast.
        AxisError: There is no such axis.

    >>> gt.linalg.vecdot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0]))
    array([3., 7.])
    """
    return vecdot_of(x1, x2, axis=axis)


@in_float32
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of each element of one vector with each of another.

    Raises:
        ShapeError: An argument is not a vector.

    >>> gt.linalg.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    x1, x2 = as_array(x1), as_array(x2)
    expected = "two vectors; gt.outer takes arrays of any shape as vectors"
    check_fit("outer", len(x1.shape) == len(x2.shape) == 1, expected, x1, x2)
    return outer_of(x1, x2)
