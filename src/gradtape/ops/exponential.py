"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise, functions
from gradtape.ops import lowered
from gradtape.ops.comparison import isinf
from gradtape.ops.select import where
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
@elementwise(
    np.exp2,
    lambda ct, out, _x: ct * (LN_2 * out),
    replaces=("scipy.special.exp2",),
    lower=scalar.exp2,
)
def exp2(x: ArrayLike, /) -> Array:
    """Two to the power of the elements.

    >>> gt.exp2(np.array([0.0, 3.0]))
    array([1., 8.])
    """


# d 10ˣ = log 10·10ˣ·dx
@elementwise(
    lambda xp, x: xp.power(10.0, x),
    lambda ct, out, _x: ct * (LN_10 * out),
    replaces=("scipy.special.exp10",),
    lower=scalar,
)
def exp10(x: ArrayLike, /) -> Array:
    """Ten to the power of the elements.

    >>> gt.exp10(np.array([0.0, 2.0]))
    array([  1., 100.])
    """


# d(eˣ − 1) = eˣ·dx
@elementwise(
    np.expm1,
    lambda ct, out, _x: ct * (out + 1),
    replaces=("scipy.special.expm1",),
    lower=scalar.expm1,
)
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
@elementwise(
    np.log1p,
    lambda ct, _out, x: ct / (x + 1),
    replaces=("scipy.special.log1p",),
    lower=scalar.log1p,
)
def log1p(x: ArrayLike, /) -> Array:
    """Logarithm of one plus the elements, exact for small arguments too.

    >>> gt.log1p(np.array([0.0, 1e-10]))
    array([0.e+00, 1.e-10])
    """


# d √x = dx/(2·√x)
@elementwise(
    np.sqrt,
    lambda ct, out, _x: ct / (out + out),
    lower=scalar.sqrt,
)
def sqrt(x: ArrayLike, /) -> Array:
    """Square root, element by element; the derivative at 0 is infinite.

    >>> gt.sqrt(np.array([4.0, 9.0]))
    array([2., 3.])
    """


# d ∛x = dx/(3·∛x²)
@elementwise(
    np.cbrt,
    lambda ct, out, _x: ct / (3 * (out * out)),
    replaces=("scipy.special.cbrt",),
    lower=scalar.cbrt,
)
def cbrt(x: ArrayLike, /) -> Array:
    """Cube root, element by element, also of negative numbers.

    >>> gt.cbrt(np.array([8.0, -27.0]))
    array([ 2., -3.])
    """


def _share(x: Any, y: Any, scale: float = 1.0) -> Any:
    """Share of x in eˣ + eʸ: σ(x − y); where both are +inf one half, where both are −inf none."""
    same = (x == y) & isinf(x)
    gap = where(same & (x > 0), 0, where(same & (x < 0), -math.inf, x - y))
    return functions["sigmoid"](gap if scale == 1.0 else gap * scale)


# d log(eˣ + eʸ) = σ(x − y)·dx + σ(y − x)·dy
@elementwise(
    np.logaddexp,
    lambda ct, _out, x, y: ct * _share(x, y),
    lambda ct, _out, x, y: ct * _share(y, x),
    lower=lambda x, y: lowered.log_of_sum(x, y, lambda d: scalar.log1p(scalar.exp(d)), LN_2),
)
def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Logarithm of the sum of two exponentials, without overflow.

    >>> gt.logaddexp(np.array([0.0, 1000.0]), 1000.0)
    array([1000.        , 1000.69314718])
    """


# d log₂(2ˣ + 2ʸ) = σ((x − y)·log 2)·dx + σ((y − x)·log 2)·dy
@elementwise(
    np.logaddexp2,
    lambda ct, _out, x, y: ct * _share(x, y, LN_2),
    lambda ct, _out, x, y: ct * _share(y, x, LN_2),
    lower=lambda x, y: lowered.log_of_sum(x, y, lambda d: scalar.log1p(scalar.exp2(d)) / LN_2, 1.0),
)
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Logarithm to base 2 of the sum of two powers of 2, without overflow.

    >>> gt.logaddexp2(np.array([0.0, 1000.0]), 1000.0)
    array([1000., 1001.])
    """
