"""The loss functions that SciPy has."""

from __future__ import annotations

import math
from typing import Any

from gradtape.core import scalar
from gradtape.ops.arithmetic import sign
from gradtape.ops.exponential import sqrt
from gradtape.ops.select import maximum, minimum, where
from gradtape.ops.special.common import doubled, scipy_function
from gradtape.typing import Array, ArrayLike


def _huber_element(delta: Any, r: Any) -> Any:
    size = scalar.absolute(r)
    inside = scalar.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return scalar.where(delta < 0, math.inf, inside)


# huber = r²/2 for |r| ≤ δ, else δ·(|r| − δ/2): dr is clipped to ±δ; dδ is |r| − δ outside
@scipy_function(
    lambda ct, _out, delta, r: ct * where(delta < 0, math.nan, maximum(abs(r) - delta, 0)),
    lambda ct, _out, delta, r: ct * where(delta < 0, math.nan, maximum(minimum(r, delta), -delta)),
    lower=doubled("huber", _huber_element),
)
def huber(delta: ArrayLike, r: ArrayLike, /) -> Array:
    """Loss of Huber: a parabola up to `delta`, straight beyond; inf for a negative `delta`.

    >>> gt.scipy.special.huber(1.0, np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    """


def _shares(delta: Any, r: Any) -> tuple[Any, Any, Any]:
    """Whether |r| > δ; the smaller one over the larger one, q; and √(1 + q²)."""
    size = abs(r)
    beyond = size > delta
    large = where(beyond, size, delta)
    zero = large == 0
    q = where(beyond, delta, size) / where(zero, 1.0, large)
    return beyond, q, sqrt(1 + q * q)


def _pseudo_huber_by_delta(ct: Any, _out: Any, delta: Any, r: Any) -> Any:
    # With ρ = r/δ and √ = √(1 + ρ²): δ·ρ⁴/(√·(√ + 1)²); q is ρ or 1/ρ
    beyond, q, root = _shares(delta, r)
    within = delta * (q * q) * (q * q) / (root * (root + 1) ** 2)
    slope = where(beyond, abs(r) / (root * (root + q) ** 2), within)
    return ct * where(delta < 0, math.nan, slope)


def _pseudo_huber_by_r(ct: Any, _out: Any, delta: Any, r: Any) -> Any:
    beyond, _, root = _shares(delta, r)
    return ct * where(delta < 0, math.nan, where(beyond, sign(r) * delta, r) / root)


# d δ²·(√ − 1) = r/√·dr + (2δ·(√ − 1) − r²/(δ·√))·dδ with √ = √(1 + (r/δ)²)
@scipy_function(_pseudo_huber_by_delta, _pseudo_huber_by_r)
def pseudo_huber(delta: ArrayLike, r: ArrayLike, /) -> Array:
    """Smooth form of the loss of Huber.

    >>> gt.scipy.special.pseudo_huber(1.0, np.array([0.0, 1.0]))
    array([0.        , 0.41421356])
    """
