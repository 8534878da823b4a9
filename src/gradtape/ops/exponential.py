"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.typing import Array, ArrayLike

LN_2 = math.log(2.0)
LN_10 = math.log(10.0)


# d eˣ = eˣ·dx
@elementwise(np.exp, lambda ct, out, _x: ct * out, lower=scalar.exp)
def exp(x: ArrayLike, /) -> Array:
    """Exponential, element by element.

    >>> gt.exp(np.array([0.0, 1.0]))
    array([1.        , 2.71828183])
    """


# d 2ˣ = log 2·2ˣ·dx
@elementwise(np.exp2, lambda ct, out, _x: ct * (LN_2 * out), lower=scalar.exp2)
def exp2(x: ArrayLike, /) -> Array:
    """Two to the power of the elements.

    >>> gt.exp2(np.array([0.0, 3.0]))
    array([1., 8.])
    """


# d 10ˣ = log 10·10ˣ·dx
@elementwise(lambda xp, x: xp.power(10.0, x), lambda ct, out, _x: ct * (LN_10 * out), lower=scalar)
def exp10(x: ArrayLike, /) -> Array:
    """Ten to the power of the elements.

    >>> gt.exp10(np.array([0.0, 2.0]))
    array([  1., 100.])
    """


# d(eˣ − 1) = eˣ·dx
@elementwise(np.expm1, lambda ct, out, _x: ct * (out + 1), lower=scalar.expm1)
def expm1(x: ArrayLike, /) -> Array:
    """Exponential minus one, exact for small arguments too.

    >>> gt.expm1(np.array([0.0, 1e-10]))
    array([0.e+00, 1.e-10])
    """


# d log x = dx/x
@elementwise(np.log, lambda ct, _out, x: ct / x, lower=scalar.log)
def log(x: ArrayLike, /) -> Array:
    """Natural logarithm, element by element.

    >>> gt.log(np.array([1.0, 2.0]))
    array([0.        , 0.69314718])
    """


# d log₂ x = dx/(x·log 2)
@elementwise(np.log2, lambda ct, _out, x: ct / (LN_2 * x), lower=scalar.log2)
def log2(x: ArrayLike, /) -> Array:
    """Logarithm to base 2, element by element.

    >>> gt.log2(np.array([1.0, 8.0]))
    array([0., 3.])
    """


# d log₁₀ x = dx/(x·log 10)
@elementwise(np.log10, lambda ct, _out, x: ct / (LN_10 * x), lower=scalar.log10)
def log10(x: ArrayLike, /) -> Array:
    """Logarithm to base 10, element by element.

    >>> gt.log10(np.array([1.0, 100.0]))
    array([0., 2.])
    """


# d log(1 + x) = dx/(1 + x)
@elementwise(np.log1p, lambda ct, _out, x: ct / (x + 1), lower=scalar.log1p)
def log1p(x: ArrayLike, /) -> Array:
    """Logarithm of one plus the elements, exact for small arguments too.

    >>> gt.log1p(np.array([0.0, 1e-10]))
    array([0.e+00, 1.e-10])
    """


# d √x = dx/(2·√x)
@elementwise(np.sqrt, lambda ct, out, _x: ct / (out + out), lower=scalar.sqrt)
def sqrt(x: ArrayLike, /) -> Array:
    """Square root, element by element; the derivative at 0 is infinite.

    >>> gt.sqrt(np.array([4.0, 9.0]))
    array([2., 3.])
    """


# d ∛x = dx/(3·∛x²)
@elementwise(np.cbrt, lambda ct, out, _x: ct / (3 * (out * out)), lower=scalar.cbrt)
def cbrt(x: ArrayLike, /) -> Array:
    """Cube root, element by element, also of negative numbers.

    >>> gt.cbrt(np.array([8.0, -27.0]))
    array([ 2., -3.])
    """
