"""Cosine, sine and tangent of matrices, made of exponentials."""

from __future__ import annotations

from typing import Any

from gradtape.ops.cast import imag, real
from gradtape.ops.linalg.in_float32 import in_float32
from gradtape.ops.linalg.matrix_functions import expm
from gradtape.ops.linalg.solve import solve
from gradtape.ops.linalg.stacks import matrices
from gradtape.typing import Array, ArrayLike


def _cosine_and_sine(name: str, x: ArrayLike) -> tuple[Any, Any]:
    (x,) = matrices(name, x)
    if x.dtype.kind != "c":
        turned = expm(1j * x)
        return real(turned), imag(turned)
    cosine, sine = _hyperbolic(name, 1j * x)
    return cosine, sine / 1j


def _hyperbolic(name: str, x: ArrayLike) -> tuple[Any, Any]:
    """The hyperbolic cosine and sine."""
    (x,) = matrices(name, x)
    up, down = expm(x), expm(-x)
    return (up + down) / 2, (up - down) / 2


@in_float32
def cosm(x: ArrayLike, /) -> Array:
    """The cosine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.cosm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return _cosine_and_sine("cosm", x)[0]


@in_float32
def sinm(x: ArrayLike, /) -> Array:
    """The sine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.sinm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    return _cosine_and_sine("sinm", x)[1]


@in_float32
def tanm(x: ArrayLike, /) -> Array:
    """The tangent of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square, or its cosine is singular.

    >>> gt.linalg.tanm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    return solve(*_cosine_and_sine("tanm", x))


@in_float32
def coshm(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.coshm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return _hyperbolic("coshm", x)[0]


@in_float32
def sinhm(x: ArrayLike, /) -> Array:
    """The hyperbolic sine of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square.

    >>> gt.linalg.sinhm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    return _hyperbolic("sinhm", x)[1]


@in_float32
def tanhm(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent of a square matrix, or of each in a stack.

    Raises:
        LinAlgError: A matrix is not square, or its hyperbolic cosine is singular.

    >>> gt.linalg.tanhm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    array([[0., 1.],
           [0., 0.]])
    """
    return solve(*_hyperbolic("tanhm", x))
