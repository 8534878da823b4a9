"""Cosine, sine and tangent of matrices, made of exponentials."""

from __future__ import annotations

from gradtape.ops.cast import imag, real
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.matrix_functions import expm
from gradtape.ops.linalg.solve import solve
from gradtape.ops.linalg.stacks import matrices
from gradtape.typing import Array, ArrayLike


@in_float32
def cosm(x: ArrayLike, /) -> Array:
    """The cosine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.cosm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    (x,) = matrices("cosm", x)
    if x.dtype.kind != "c":
        return real(expm(1j * x))
    return (expm(1j * x) + expm(-1j * x)) / 2


@in_float32
def sinm(x: ArrayLike, /) -> Array:
    """The sine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.sinm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    (x,) = matrices("sinm", x)
    if x.dtype.kind != "c":
        return imag(expm(1j * x))
    return (expm(1j * x) - expm(-1j * x)) / 2j


@in_float32
def tanm(x: ArrayLike, /) -> Array:
    """The tangent of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square, or its cosine is singular.

    >>> gt.linalg.tanm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    (x,) = matrices("tanm", x)
    if x.dtype.kind != "c":
        turned = expm(1j * x)
        return solve(real(turned), imag(turned))
    return solve(cosm(x), sinm(x))


@in_float32
def coshm(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.coshm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    (x,) = matrices("coshm", x)
    return (expm(x) + expm(-x)) / 2


@in_float32
def sinhm(x: ArrayLike, /) -> Array:
    """The hyperbolic sine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.sinhm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    (x,) = matrices("sinhm", x)
    return (expm(x) - expm(-x)) / 2


@in_float32
def tanhm(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square, or its hyperbolic cosine is singular.

    >>> gt.linalg.tanhm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    (x,) = matrices("tanhm", x)
    up, down = expm(x), expm(-x)
    return solve(up + down, up - down)
