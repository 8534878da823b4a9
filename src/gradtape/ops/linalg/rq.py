"""The RQ decomposition, and products with the unitary factor of a QR decomposition."""

from __future__ import annotations

from typing import NamedTuple

from gradtape.errors import LinAlgError
from gradtape.ops.cast import conj, copy
from gradtape.ops.checks import check_choice
from gradtape.ops.linalg.common import MATRIX, adjoint, check_fit
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.qr import qr
from gradtape.ops.linalg.stacks import matrix_stack
from gradtape.ops.norm import inexact
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike


class RQResult(NamedTuple):
    """An upper triangular matrix, and orthonormal rows.

    >>> r, q = gt.linalg.rq(np.eye(2))
    >>> r @ q
    array([[1., 0.],
           [0., 1.]])
    """

    R: Array
    Q: Array


@in_float32
def rq(a: ArrayLike, /, *, mode: str = "full") -> RQResult | Array:
    """RQ decomposition `r @ q` of a matrix, or of each in a stack.

    It is the QR decomposition of the adjoint, its rows and columns from the last to the first.

    Args:
        a: The matrix.
        mode: "full" gives a square `q`, "economic" as many rows of it as the matrix has rows or
            columns, "r" only `r`.

    Returns:
        A named tuple of `R` and `Q`, or `r` alone.

    Raises:
        LinAlgError: There are less than two axes.
        ArgumentError: There is no such mode.
        NotDifferentiableError: A derivative was asked for that does not exist, as the last rows
            depend on each other.

    >>> r, q = gt.linalg.rq(np.array([[3.0, 1.0], [3.0, 4.0]]))
    >>> abs(r).round(12)
    array([[1.8, 2.6],
           [0. , 5. ]])
    """
    check_choice("rq", ("full", "economic", "r"), mode=mode)
    a = matrix_stack("rq", a)
    # A copy: NumPy multiplies reversed views without BLAS, slowly and with other rounding.
    q, r = qr(adjoint(copy(flip(a, MATRIX))), "reduced" if mode == "economic" else "complete")
    triangle = flip(adjoint(r), MATRIX)
    return triangle if mode == "r" else RQResult(triangle, flip(adjoint(q), MATRIX))


@in_float32
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    /,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
) -> tuple[Array, ...]:
    """The product of the unitary factor of a QR decomposition with a matrix, and the other factor.

    Args:
        a: The matrix that is decomposed, or a stack of them.
        c: The other factor of the product: a vector if it has one axis, else a matrix or a stack
            of them.
        mode: "right" for `c @ q`, "left" for `q @ c`.
        pivoting: Whether columns of `a` are reordered as by `qr`.
        conjugate: Whether to use the conjugate of `q`.

    Returns:
        The product; `r`; and the order of the columns with `pivoting`.

    Raises:
        LinAlgError: There are less than two axes.
        ShapeError: `c` does not fit.
        ArgumentError: There is no such mode.
        NotDifferentiableError: A derivative was asked for that does not exist, as the first columns
            depend on each other.

    >>> product, r = gt.linalg.qr_multiply(np.array([[3.0], [4.0]]), np.array([3.0, 4.0]))
    >>> abs(product)
    array([5.])
    """
    check_choice("qr_multiply", ("left", "right"), mode=mode)
    a, c = matrix_stack("qr_multiply", a), inexact(c)
    if not c.shape:
        raise LinAlgError("qr_multiply: got a number, expected a vector or a matrix")
    q, *rest = qr(a, pivoting=pivoting)
    q = conj(q) if conjugate else q
    vector = len(c.shape) == 1
    if vector:
        c = reshape(c, (1, c.shape[0]) if mode == "right" else (c.shape[0], 1))
    left, right = (c, q) if mode == "right" else (q, c)
    rows, columns = q.shape[-2:]
    expected = f"{rows} columns to be multiplied from the right, or {columns} rows from the left"
    check_fit("qr_multiply", left.shape[-1] == right.shape[-2], expected, a, c)
    product = left @ right
    if vector:
        product = reshape(product, (*product.shape[:-2], product.shape[-2] * product.shape[-1]))
    return product, *rest
