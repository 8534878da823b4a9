"""B-splines as arrays: knots t, coefficients c (with their axis first), degree k.

Where there are n coefficients, the base interval goes from t[k] to t[n].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.cast import stop_gradient
from gradtape.ops.cumulative import cumsum
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate
from gradtape.ops.rounding import floor
from gradtape.ops.select import clip, where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.solvers.interpolate.arguments import beside_rows
from gradtape.solvers.interpolate.polynomials import (
    Extrapolate,
    interval,
    masked,
    within,
    wrapped,
)


def basis(t: Any, k: int, points: Any, i: Any) -> list[Any]:
    """The k + 1 B-splines that are not 0 on the intervals i, at points there (Cox, de Boor)."""
    left = [points - take(t, i + 1 - j) for j in range(1, k + 1)]
    right = [take(t, i + j) - points for j in range(1, k + 1)]
    values: list[Any] = [0.0 * points + 1.0]
    for degree in range(1, k + 1):
        found, carried = [], 0.0 * points
        for r, value in enumerate(values):
            ahead, behind = right[r], left[degree - 1 - r]
            width = ahead + behind
            share = value / where(stop_gradient(width) == 0, 1.0, width)
            found.append(carried + ahead * share)
            carried = behind * share
        values = [*found, carried]
    return values


def evaluate_spline(t: Any, c: Any, k: int, points: Any, extrapolate: Extrapolate) -> Any:
    """Values at points, whose axes come first."""
    count = t.shape[0] - k - 1
    start, end = t[k], t[count]
    inside = None
    if extrapolate == "periodic":
        points = wrapped(points, start, end)
    elif not extrapolate:
        inside, points = within(points, start, end)
    i = interval(t, points, k, count - 1)
    out: Any = 0.0
    for m, value in enumerate(basis(t, k, points, i)):
        weight = reshape(value, value.shape + (1,) * (len(c.shape) - 1))
        out = out + weight * take(c, i - k + m, axis=0)
    return out if inside is None else masked(inside, out)


def differentiated_spline(t: Any, c: Any, k: int, order: int) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the derivative."""
    c = c[: t.shape[0] - k - 1]
    if order > k:
        return t[k:-k] if k else t, 0.0 * c[: t.shape[0] - 2 * k - 1], 0
    for _ in range(order):
        count = c.shape[0]
        width = t[k + 1 : k + count] - t[1:count]
        # Where knots are repeated there is a B-spline of no width, which is 0 everywhere.
        empty = stop_gradient(width) == 0
        scale = where(empty, 0.0, k / where(empty, 1.0, width))
        c = (c[1:] - c[:-1]) * beside_rows(scale, len(c.shape))
        t, k = t[1:-1], k - 1
    return t, c, k


def integrated_spline(t: Any, c: Any, k: int, order: int) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the antiderivative that is 0 at the first knot."""
    c = c[: t.shape[0] - k - 1]
    for _ in range(order):
        width = beside_rows(t[k + 1 :] - t[: -k - 1], len(c.shape))
        sums = cumsum(c * width, axis=0) / (k + 1)
        c = concatenate([np.zeros((1, *c.shape[1:])), sums])
        t, k = concatenate([t[:1], t, t[-1:]]), k + 1
    return t, c, k


def spline_area(t: Any, c: Any, k: int, a: Any, b: Any, extrapolate: Extrapolate) -> Any:
    """The integral from a to b; without extrapolation, of the part in the base interval."""
    start, end = t[k], t[t.shape[0] - k - 1]
    whole = integrated_spline(t, c, k, 1)
    if extrapolate != "periodic":
        if not extrapolate:
            a, b = (clip(p, start, end) for p in (a, b))
        return evaluate_spline(*whole, b, True) - evaluate_spline(*whole, a, True)
    first = evaluate_spline(*whole, start, True)
    period = evaluate_spline(*whole, end, True) - first

    def up_to(p: Any) -> Any:
        turns = floor(stop_gradient((p - start) / (end - start)))
        return turns * period + evaluate_spline(*whole, wrapped(p, start, end), True) - first

    return up_to(b) - up_to(a)


def padded(c: Any, rows: int) -> Any:
    """Coefficients with zeros after them, as many rows as there are knots."""
    missing = rows - c.shape[0]
    return concatenate([c, np.zeros((missing, *c.shape[1:]))]) if missing > 0 else c


def repeated(x: Any, times: int) -> Any:
    """A number several times."""
    return broadcast_to(x, (times,))


def end_derivatives(t: Any, k: int, at: Any, order: int, first: int) -> Any:
    """The derivative of some order, at one point, of the B-splines `first` to `first + k`."""
    count = t.shape[0] - k - 1
    chosen = np.zeros((count, k + 1))
    chosen[first + np.arange(k + 1), np.arange(k + 1)] = 1.0
    return evaluate_spline(*differentiated_spline(t, chosen, k, order), at, True)
