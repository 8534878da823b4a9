"""Products with logarithms, 0 where a factor is 0: entropies and their kin."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.ops import lowered
from gradtape.ops.exponential import log, log1p
from gradtape.ops.select import mask, where
from gradtape.ops.special.common import doubled, scipy_function, typed
from gradtape.typing import Array, ArrayLike

_SMALLEST = 2.2250738585072014e-308  # of the numbers that have all their digits


def _xlogy_by_x(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= 0)
    return mask(xlogy(ct, y if isinstance(y, int | float) else where(flat, 1, y)), flat ^ True)


def _xlogy_by_y(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= 0)
    return mask(ct * (x / where(flat, 1, y)), flat ^ True)


# d x·log y = log y·dx + x/y·dy; both 0 where log y does not exist and x = 0 makes the function 0
@scipy_function(_xlogy_by_x, _xlogy_by_y, lower=lowered.xlogy)
def xlogy(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The first array times the logarithm of the second, 0 where the first is 0.

    >>> gt.xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    array([0., 0.])
    """


def _xlog1py_element(x: Any, y: Any) -> Any:
    return scalar.where((x == 0) & ~scalar.isnan(y), 0, x * scalar.log1p(y))


def _xlog1py_by_x(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= -1)
    return mask(xlog1py(ct, y if isinstance(y, int | float) else where(flat, 0, y)), flat ^ True)


def _xlog1py_by_y(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    flat = (x == 0) & (y <= -1)
    return mask(ct * (x / (1 + where(flat, 0, y))), flat ^ True)


# d x·log(1 + y) = log(1 + y)·dx + x/(1 + y)·dy; both 0 where x = 0 makes the function 0
@scipy_function(
    _xlog1py_by_x,
    _xlog1py_by_y,
    lower=doubled("xlog1py", _xlog1py_element, wide=False),
)
def xlog1py(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The first array times the logarithm of one plus the second, 0 where the first is 0.

    >>> gt.scipy.special.xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 0.0]))
    array([0., 0.])
    """


# d(−x·log x) = −(log x + 1)·dx
@scipy_function(lambda ct, _out, x: -ct * (log(x) + 1), lower=lambda x: _entr_element(x))
def entr(x: ArrayLike, /) -> Array:
    """Entropy of the elements, -x·log x; 0 at 0, and -inf below.

    >>> gt.scipy.special.entr(np.array([0.0, 1.0, -1.0]))
    array([  0.,  -0., -inf])
    """


def _entr_element(x: Any) -> Any:
    (x,) = scalar.promoted(x, like="entr")
    outside = scalar.where(x == 0, 0, scalar.where(scalar.isnan(x), x, -math.inf))
    return scalar.where(x > 0, -x * scalar.log(x), outside)


def _log_quotient_element(x: Any, y: Any) -> Any:
    """The logarithm of x/y, which is exact where they are close and does not overflow."""
    ratio = x / y
    close = (ratio > 0.5) & (ratio < 2)
    far = scalar.where(
        (ratio > _SMALLEST) & (ratio < math.inf),
        scalar.log(ratio),
        scalar.log(x) - scalar.log(y),
    )
    return scalar.where(close, scalar.log1p((x - y) / y), far)


def _rel_entr_element(x: Any, y: Any) -> Any:
    outside = scalar.where((x == 0) & (y >= 0), 0.0, math.inf)
    value = scalar.where((x > 0) & (y > 0), x * _log_quotient_element(x, y), outside)
    return scalar.where(scalar.isnan(x) | scalar.isnan(y), math.nan, value)


def _log_quotient(x: Any, y: Any) -> Any:
    """The same, for slopes; NaN where one of them is negative, and the function infinite."""
    ratio = x / y
    close = (ratio > 0.5) & (ratio < 2)
    usual = (ratio > _SMALLEST) & (ratio < math.inf)
    near = log1p(where(close, (x - y) / y, 0.0))
    apart = where(usual, log(where(usual, ratio, 1.0)), log(x) - log(y))
    return where((x < 0) | (y < 0), math.nan, where(close, near, apart))


def _share(x: Any, y: Any) -> Any:
    """x/y, which is 0 for two zeros, and NaN where one of them is negative."""
    zero = (x == 0) & (y == 0)
    return where((x < 0) | (y < 0), math.nan, x / where(zero, 1.0, y))


def _excess(x: Any, y: Any) -> Any:
    """1 − x/y, exact where they are close."""
    zero = (x == 0) & (y == 0)
    return where((x < 0) | (y < 0), math.nan, where(zero, 1.0, y - x) / where(zero, 1.0, y))


# d x·log(x/y) = (log(x/y) + 1)·dx − x/y·dy
@scipy_function(
    lambda ct, _out, x, y: ct * (_log_quotient(*typed(ct.dtype, x, y)) + 1),
    lambda ct, _out, x, y: -ct * _share(*typed(ct.dtype, x, y)),
    lower=doubled("rel_entr", _rel_entr_element),
)
def rel_entr(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Relative entropy of the elements, x·log(x/y); 0 where x is 0, and inf outside.

    >>> gt.scipy.special.rel_entr(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([0.        , 1.38629436])
    """


# d(x·log(x/y) − x + y) = log(x/y)·dx + (1 − x/y)·dy
@scipy_function(
    lambda ct, _out, x, y: ct * _log_quotient(*typed(ct.dtype, x, y)),
    lambda ct, _out, x, y: ct * _excess(*typed(ct.dtype, x, y)),
)
def kl_div(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Kullback-Leibler divergence of the elements, x·log(x/y) - x + y; y where x is 0.

    >>> gt.scipy.special.kl_div(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    array([1.        , 0.38629436])
    """
