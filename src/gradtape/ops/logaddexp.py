"""Logarithms of sums of two exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.define import elementwise
from gradtape.ops import lowered
from gradtape.ops.activation import sigmoid
from gradtape.ops.comparison import isinf
from gradtape.ops.exponential import LN_2
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike


def _share(x: Any, y: Any, scale: float = 1.0) -> Any:
    """Share of x in eˣ + eʸ: σ(x − y); where both are +inf one half, where both are −inf none."""
    same = (x == y) & isinf(x)
    gap = where(same & (x > 0), 0, where(same & (x < 0), -math.inf, x - y))
    return sigmoid(gap if scale == 1.0 else gap * scale)


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
