"""Formulas of distances between vectors along the last axis; the axes before it broadcast.

Derivatives at a kink are 0, as for `norm`: where points coincide, where coordinates are equal, and
where there is nothing to normalise. They are 0 there to any order, so that distances of a point to
itself do not spoil second derivatives.
"""

from __future__ import annotations

import math
from typing import Any

from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import stop_gradient
from gradtape.ops.comparison import equal, greater, isnan, less
from gradtape.ops.exponential import sqrt
from gradtape.ops.matmul import matmul
from gradtape.ops.norm import size_power
from gradtape.ops.reduce import max as max_of, sum as sum_of
from gradtape.ops.select import clip, where
from gradtape.ops.special.entropy import rel_entr


def root(x: Any, p: float = 2.0) -> Any:
    """The p-th root of a sum, with derivatives that are 0 where the sum is 0."""
    none = equal(x, 0)
    some = where(none, 1.0, x)
    return where(none, 0.0, sqrt(some) if p == 2 else some ** (1 / p))


def total(x: Any, w: Any = None) -> Any:
    """The sum along the last axis, weighted if there are weights."""
    return sum_of(x if w is None else w * x, -1)


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """Σ w·(u − v)²."""
    apart = u - v
    return total(apart * apart, w)


def minkowski(u: Any, v: Any, w: Any = None, p: float = 2.0) -> Any:
    """(Σ w·|u − v|^p)^(1/p), written with w itself: its root has no slope at 0."""
    if p == math.inf:
        return chebyshev(u, v, w)
    if p == 1:
        return cityblock(u, v, w)
    if p == 2:
        return root(sqeuclidean(u, v, w))
    return root(total(size_power(u - v, exponent=float(p), signed=False), w), p)


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """Σ w·|u − v|."""
    return total(abs_of(u - v), w)


def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """Max |u − v|, over coordinates with a weight above 0; ties share the gradient."""
    apart = abs_of(u - v)
    return max_of(apart if w is None else where(greater(w, 0), apart, 0.0), -1)


def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """Σ w·|u − v| / Σ w·|u + v|."""
    return total(abs_of(u - v), w) / total(abs_of(u + v), w)


def canberra(u: Any, v: Any, w: Any = None, *, skip_nan: bool = False) -> Any:
    """Σ w·|u − v|/(|u| + |v|), without coordinates that are 0 in both."""
    sizes = abs_of(u) + abs_of(v)
    none = equal(sizes, 0)
    parts = where(none, 0.0, abs_of(u - v) / where(none, 1.0, sizes))
    if w is not None:
        parts = w * parts
    return total(where(isnan(parts), 0.0, parts) if skip_nan else parts)


def within_bounds(distance: Any) -> Any:
    """1 − cos without rounding errors that leave the interval from 0 to 2.

    Only the value is changed: at parallel vectors the second derivatives are those of 1 − cos.
    """
    fixed = stop_gradient(distance)
    return distance + (clip(fixed, 0.0, 2.0) - fixed)


def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """1 − u·v/(|u|·|v|) with weighted products."""
    lengths = sqrt(total(u * u, w)) * sqrt(total(v * v, w))
    return within_bounds(1.0 - total(u * v, w) / lengths)


def centered(u: Any, w: Any = None) -> Any:
    """Vectors less the (weighted) mean of their elements."""
    mean = total(u, w) / (u.shape[-1] if w is None else total(w))
    return u - mean[..., None]


def correlation(u: Any, v: Any, w: Any = None) -> Any:
    """The cosine distance of centered vectors."""
    return cosine(centered(u, w), centered(v, w), w)


def mahalanobis(u: Any, v: Any, inverse: Any) -> Any:
    """√((u − v)·V⁻¹·(u − v))."""
    apart = u - v
    if len(apart.shape) == 1:
        return root(matmul(matmul(apart, inverse), apart))
    return root(total(matmul(apart, inverse) * apart))


def _scaled(p: Any, axis: int) -> Any:
    """Numbers divided by their sum.

    Those that are 0 do not depend on the sum, which keeps the infinite slope of a logarithm there
    from the others.
    """
    whole = sum_of(p, axis, keepdims=True)
    return where(equal(p, 0), p / stop_gradient(whole), p / whole)


def jensenshannon(p: Any, q: Any, base: float | None, axis: int, keepdims: bool = False) -> Any:
    """√((Σ p·log(p/m) + Σ q·log(q/m))/2) with m = (p + q)/2, of p and q scaled to the sum 1."""
    p, q = (_scaled(x, axis) for x in (p, q))
    # Where both are 0, the logarithm has no slope.
    none = equal(p, 0) & equal(q, 0)
    p, q = (where(none, 1.0, x) for x in (p, q))
    m = (p + q) / 2.0
    parts = where(none, 0.0, rel_entr(p, m) + rel_entr(q, m))
    divergence = sum_of(parts, axis, keepdims=keepdims)
    if base is not None:
        divergence = divergence / math.log(base)
    # Rounding may take the sum for nearly equal distributions below 0.
    return root(where(less(divergence, 0), 0.0, divergence) / 2.0)
