"""Piecewise polynomials as arrays of coefficients.

On the interval i the polynomial is Σ c[m, i]·(p − x[i])^(k − m); or, in Bernstein's form with
s = (p − x[i])/(x[i + 1] − x[i]), Σ c[m, i]·C(k, m)·sᵐ·(1 − s)^(k − m). `c` has the degrees first,
then the intervals, then further axes; `x` are the ends of the intervals.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from gradtape.graph.known_values import innermost_value, is_unknown
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.cast import stop_gradient
from gradtape.ops.cumulative import cumsum
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate, stack
from gradtape.ops.rearrange import flip
from gradtape.ops.rounding import floor
from gradtape.ops.select import clip, where
from gradtape.ops.shape import reshape
from gradtape.solvers.interpolate.arguments import (
    as_columns,
    beside_rows,
    differences,
)
from gradtape.solvers.require import required

# How far a piecewise polynomial goes beyond its ends: NaN there, the last pieces, or repeated.
Extrapolate = bool | str


def interval(x: Any, points: Any, first: int, last: int) -> Any:
    """The numbers of the intervals in which points lie, from `first` to `last`."""
    places = searchsorted(stop_gradient(x), stop_gradient(points), side="right")
    return clip(places - 1, first, last)


def _pieces(x: Any, points: Any) -> Any:
    if not _descends(x):
        return interval(x, points, 0, x.shape[0] - 2)
    before = searchsorted(flip(stop_gradient(x)), stop_gradient(points), side="left")
    return clip(x.shape[0] - 1 - before, 0, x.shape[0] - 2)


def _descends(x: Any) -> bool:
    """Whether breakpoints are known to be in falling order."""
    if is_unknown(x):
        return False
    values = innermost_value(x)
    return bool(values[0] > values[-1])


def in_order(name: str, x: Any) -> Any:
    """Breakpoints, checked to be in rising or falling order; in rising order if only traced."""
    steps = differences(stop_gradient(x))
    if not is_unknown(x):
        known = innermost_value(steps)
        fine = (known >= 0).all() or (known <= 0).all()
    else:
        fine = (steps >= 0).all()
    return required(x, fine, f"{name}: got x in no order, expected increasing or decreasing ones")


def wrapped(points: Any, start: Any, end: Any) -> Any:
    """Points moved by whole periods into the interval."""
    period = end - start
    return points - floor(stop_gradient((points - start) / period)) * period


def within(points: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Whether points lie in an interval, and the points, moved to `start` where they do not."""
    start, end = stop_gradient(start), stop_gradient(end)
    inside = (stop_gradient(points) >= start) & (stop_gradient(points) <= end)
    return inside, where(inside, points, start)


def masked(inside: Any, out: Any) -> Any:
    """Values at points, NaN where a point lies outside."""
    shape = inside.shape + (1,) * (len(out.shape) - len(inside.shape))
    return where(reshape(inside, shape), out, np.nan)


def evaluate(c: Any, x: Any, points: Any, extrapolate: Extrapolate, bernstein: bool = False) -> Any:
    """Values at points, whose axes come first."""
    low, high = (x[-1], x[0]) if _descends(x) else (x[0], x[-1])
    inside = None
    if extrapolate == "periodic":
        points = wrapped(points, x[0], x[-1])
    elif not extrapolate:
        inside, points = within(points, low, high)
    i = _pieces(x, points)
    there = take(c, i, axis=1)
    step = points - take(x, i)
    if bernstein:
        step = step / (take(x, i + 1) - take(x, i))
    step = reshape(step, step.shape + (1,) * (len(c.shape) - 2))
    # Without a power NaN in a point would be lost.
    out = (_casteljau if bernstein else _horner)(there, step) + 0.0 * step
    return out if inside is None else masked(inside, out)


def _horner(c: Any, step: Any) -> Any:
    out = c[0]
    for m in range(1, c.shape[0]):
        out = out * step + c[m]
    return out


def _casteljau(c: Any, share: Any) -> Any:
    rows = [c[m] for m in range(c.shape[0])]
    while len(rows) > 1:
        rows = [low + share * (high - low) for low, high in itertools.pairwise(rows)]
    return rows[0]


def differentiated(c: Any, order: int) -> Any:
    """Coefficients of the derivative."""
    degree = c.shape[0] - 1
    if order > degree:
        return 0.0 * c[:1]
    left = degree - order + 1
    factors = [math.perm(degree - m, order) for m in range(left)]
    return c[:left] * beside_rows(np.array(factors, np.float64), len(c.shape))


def integrated(c: Any, x: Any, order: int) -> Any:
    """Coefficients of the antiderivative that is continuous, and 0 at the first breakpoint."""
    for _ in range(order):
        degree = c.shape[0] - 1
        divisors = beside_rows(np.arange(degree + 1, 0.0, -1.0), len(c.shape))
        c = c / divisors
        width = beside_rows(differences(x), len(c.shape) - 1)
        areas = c[0]
        for m in range(1, degree + 1):
            areas = areas * width + c[m]
        areas = areas * width
        nothing = np.zeros((1, *c.shape[2:]))
        constants = concatenate([nothing, cumsum(areas, axis=0)[:-1]])
        c = concatenate([c, constants[None]])
    return c


def differentiated_bernstein(c: Any, x: Any, order: int) -> Any:
    """Coefficients of the derivative, in Bernstein's form."""
    width = beside_rows(differences(x), len(c.shape) - 1)
    for _ in range(order):
        c = (c.shape[0] - 1) * (c[1:] - c[:-1]) / width if c.shape[0] > 1 else 0.0 * c
    return c


def integrated_bernstein(c: Any, x: Any, order: int) -> Any:
    """Coefficients of the antiderivative, in Bernstein's form."""
    width = beside_rows(differences(x), len(c.shape) - 1)
    for _ in range(order):
        rows = cumsum(c, axis=0) * (width / c.shape[0])
        constants = cumsum(rows[-1], axis=0) - rows[-1]
        c = concatenate([constants[None], rows + constants])
    return c


def to_powers(c: Any, x: Any) -> Any:
    """Coefficients by powers of a polynomial in Bernstein's form."""
    # C(k, m)·sᵐ·(1 − s)^(k − m) = Σ (−1)^(j − m)·C(k, j)·C(j, m)·sʲ over j ≥ m
    k = c.shape[0] - 1
    matrix = [
        [(-1.0) ** (j - m) * math.comb(k, j) * math.comb(j, m) for m in range(k + 1)]
        for j in reversed(range(k + 1))
    ]
    return _rows_of(matrix, c) / _powers_of_widths(c, x)


def to_bernstein(c: Any, x: Any) -> Any:
    """Coefficients in Bernstein's form of a polynomial by powers."""
    # sᵐ = Σ C(j, m)/C(k, m)·(the B-polynomial j) over j ≥ m
    k = c.shape[0] - 1
    matrix = [
        [math.comb(j, m) / math.comb(k, m) for m in reversed(range(k + 1))] for j in range(k + 1)
    ]
    return _rows_of(matrix, c * _powers_of_widths(c, x))


def _rows_of(matrix: list[list[float]], c: Any) -> Any:
    return reshape(np.array(matrix) @ as_columns(c), c.shape)


def _powers_of_widths(c: Any, x: Any) -> Any:
    """The widths of the intervals to the powers that the coefficients stand for."""
    width = beside_rows(differences(x), len(c.shape) - 1)
    return stack([width**m for m in reversed(range(c.shape[0]))])


def definite(
    primitive: Any, x: Any, a: Any, b: Any, extrapolate: Extrapolate, bernstein: bool = False
) -> Any:
    """The integral from a to b, given the coefficients of the antiderivative."""

    def value(p: Any, extrapolate: Extrapolate = True) -> Any:
        return evaluate(primitive, x, p, extrapolate, bernstein)

    if extrapolate != "periodic":
        return value(b, extrapolate) - value(a, extrapolate)
    whole = value(x[-1])

    def up_to(p: Any) -> Any:
        inside = wrapped(p, x[0], x[-1])
        turns = floor(stop_gradient((p - x[0]) / (x[-1] - x[0])))
        return turns * whole + value(inside)

    return up_to(b) - up_to(a)
