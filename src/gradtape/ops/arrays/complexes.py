"""Questions about complex and infinite numbers, and the angle of complex ones."""

from __future__ import annotations

import math

import numpy as np

from gradtape.ops.arguments import as_array, real_only
from gradtape.ops.arrays.known import values_of
from gradtape.ops.cast import imag, real
from gradtape.ops.trigonometric import arctan2
from gradtape.typing import Array, ArrayLike


def angle(z: ArrayLike, /, deg: bool = False) -> Array:
    """The angle of complex numbers with the positive real axis; pi for negative real ones.

    Args:
        z: The numbers.
        deg: Whether to return degrees.

    >>> gt.angle(np.array([1.0 + 1.0j]), deg=True)
    array([45.])
    """
    z = as_array(z)
    out = arctan2(imag(z), real(z)) if z.dtype.kind == "c" else arctan2(0, z)
    return out * (180 / math.pi) if deg else out


def real_if_close(a: ArrayLike, /, tol: float = 100) -> Array:
    """The real part, if all imaginary parts are close to 0; else the array as it is.

    Args:
        a: The array.
        tol: How close: in units of resolution if it is above 1.

    Raises:
        ConversionError: The values are not known, inside of `jit` or `vmap`: they tell the dtype.

    >>> gt.real_if_close(np.array([2.0 + 1e-20j]))
    array([2.])
    """
    a = as_array(a)
    if a.dtype.kind != "c":
        return a
    limit = tol * float(np.finfo(a.dtype).eps) if tol > 1 else tol
    return real(a) if bool(np.all(np.absolute(values_of(a).imag) < limit)) else a


def iscomplex(x: ArrayLike, /) -> Array:
    """Whether elements have an imaginary part that is not 0.

    >>> gt.iscomplex(np.array([1.0 + 1.0j, 2.0]))
    array([ True, False])
    """
    return imag(as_array(x)) != 0


def isreal(x: ArrayLike, /) -> Array:
    """Whether elements have an imaginary part of 0.

    >>> gt.isreal(np.array([1.0 + 1.0j, 2.0]))
    array([False,  True])
    """
    return imag(as_array(x)) == 0


def iscomplexobj(x: ArrayLike, /) -> bool:
    """Whether the dtype of an array is complex.

    >>> gt.iscomplexobj(gt.ones(2))
    False
    """
    return bool(as_array(x).dtype.kind == "c")


def isrealobj(x: ArrayLike, /) -> bool:
    """Whether the dtype of an array is not complex.

    >>> gt.isrealobj(gt.ones(2))
    True
    """
    return not iscomplexobj(x)


def isneginf(x: ArrayLike, /) -> Array:
    """Whether elements are minus infinity.

    >>> gt.isneginf(np.array([-np.inf, np.inf, 1.0]))
    array([ True, False, False])
    """
    return real_only("isneginf", as_array(x)) == -math.inf


def isposinf(x: ArrayLike, /) -> Array:
    """Whether elements are infinity with a positive sign.

    >>> gt.isposinf(np.array([-np.inf, np.inf, 1.0]))
    array([False,  True, False])
    """
    return real_only("isposinf", as_array(x)) == math.inf
