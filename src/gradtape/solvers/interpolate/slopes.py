"""Slopes at the knots, by which cubic interpolators differ; arrays have the knots first."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.ops.arithmetic import abs as abs_of, sign
from gradtape.ops.cast import stop_gradient
from gradtape.ops.join import concatenate, stack
from gradtape.ops.linalg.banded import solve_banded
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.solvers.interpolate.arguments import (
    as_columns,
    beside_rows,
    differences,
)

# A condition at one end: the order of the derivative there and its value, or "not-a-knot".
End = tuple[int, Any] | str
# Where weights are this small against the largest ones, Akima's rule takes a mean.
_NO_WEIGHT = 1e-9


def secants(x: Any, y: Any) -> tuple[Any, Any]:
    """The widths of the intervals, and the slopes of the lines across them."""
    width = beside_rows(differences(x), len(y.shape))
    return width, differences(y) / width


# ---- pchip --------------------------------------------------------------------------------------


def pchip_slopes(x: Any, y: Any) -> Any:
    """Slopes for which the interpolator rises and falls where the values do (Fritsch, Butland)."""
    width, slope = secants(x, y)
    if y.shape[0] == 2:
        return concatenate([slope, slope])
    before, after = slope[:-1], slope[1:]
    w1, w2 = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
    # The weighted harmonic mean where both lines rise, or both fall; else 0.
    same = (before > 0) & (after > 0) | (before < 0) & (after < 0)
    left, right = where(same, before, 1.0), where(same, after, 1.0)
    inner = where(same, (w1 + w2) / (w1 / left + w2 / right), 0.0)
    first = _pchip_end(width[0], width[1], slope[0], slope[1])
    last = _pchip_end(width[-1], width[-2], slope[-1], slope[-2])
    return concatenate([first[None], inner, last[None]])


def _pchip_end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end by three points, kept within what does not overshoot."""
    found = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turns = sign(stop_gradient(found)) != sign(stop_gradient(m0))
    steep = (sign(stop_gradient(m0)) != sign(stop_gradient(m1))) & (
        abs_of(stop_gradient(found)) > 3.0 * abs_of(stop_gradient(m0))
    )
    return where(turns, 0.0, where(steep, 3.0 * m0, found))


# ---- Akima --------------------------------------------------------------------------------------


def akima_slopes(x: Any, y: Any, modified: bool) -> Any:
    """Slopes as weighted means of the nearest secants, by Akima's rule."""
    _, slope = secants(x, y)
    if y.shape[0] == 2:
        return concatenate([slope, slope])
    # Two further lines on each side, by a parabola through the outer ones.
    before = 2.0 * slope[0] - slope[1]
    after = 2.0 * slope[-1] - slope[-2]
    m = concatenate([
        (2.0 * before - slope[0])[None], before[None], slope, after[None],
        (2.0 * after - slope[-1])[None],
    ])  # fmt: skip
    bends = abs_of(differences(m))
    ahead, behind = bends[2:], bends[:-2]
    if modified:
        sizes = abs_of(m[1:] + m[:-1])
        ahead, behind = ahead + 0.5 * sizes[2:], behind + 0.5 * sizes[:-2]
    weight = ahead + behind
    fixed = stop_gradient(weight)
    has_weight = fixed > _NO_WEIGHT * max_of(fixed) if y.size else fixed > 0
    share = behind / where(has_weight, weight, 1.0)
    by_weight = m[1:-2] + share * (m[2:-1] - m[1:-2])
    return where(has_weight, by_weight, 0.5 * (m[3:] + m[:-3]))


# ---- splines ------------------------------------------------------------------------------------


def spline_slopes(x: Any, y: Any, ends: tuple[End, End]) -> Any:
    """Slopes for which second derivatives are continuous, too."""
    width, slope = secants(x, y)
    count = x.shape[0]
    if count == 2:
        ends = tuple((1, slope[0]) if isinstance(end, str) else end for end in ends)  # type: ignore[assignment]
    if count == 3 and ends == ("not-a-knot", "not-a-knot"):
        bend = (slope[1] - slope[0]) / (width[0] + width[1])  # a parabola
        middle = slope[0] + width[0] * bend
        return stack([slope[0] - width[0] * bend, middle, slope[1] + width[1] * bend])
    rows = [_end_row(ends[0], width, slope, 1), _end_row(ends[1], width, slope, -1)]
    h, one = differences(x), np.ones(1)
    (first, beside_first, value_first), (last, beside_last, value_last) = rows
    main = concatenate([first, 2 * (h[:-1] + h[1:]), last])
    upper = concatenate([0 * one, beside_first, h[:-1]])
    lower = concatenate([h[1:], beside_last, 0 * one])
    right = 3 * (width[1:] * slope[:-1] + width[:-1] * slope[1:])
    b = concatenate([value_first[None], right, value_last[None]])
    found = solve_banded((1, 1), stack([upper, main, lower]), as_columns(b))
    return reshape(found, y.shape)


def _end_row(end: End, width: Any, slope: Any, step: int) -> tuple[Any, Any, Any]:
    """The equation at one end: its element on the diagonal, the one beside it, its right side.

    Args:
        end: The condition.
        width: The widths of intervals.
        slope: The slopes across them.
        step: 1 at the first knot, −1 at the last.
    """
    near, far = (0, 1) if step == 1 else (-1, -2)
    h = width[near]
    if isinstance(end, str):
        both = h + width[far]
        right = ((h + 2 * both) * width[far] * slope[near] + h**2 * slope[far]) / both
        return _one(width[far]), _one(both), right
    order, value = end
    shape = slope.shape[1:]
    if order == 1:
        return np.ones(1), np.zeros(1), broadcast_to(value, shape) + 0.0 * slope[0]
    return _one(2 * h), _one(h), 3 * h * slope[near] - step * 0.5 * value * h**2


def _one(h: Any) -> Any:
    return reshape(h, (1,))


def periodic_slopes(x: Any, y: Any) -> Any:
    """Slopes of the periodic spline."""
    width, slope = secants(x, y)
    count = x.shape[0]
    if count == 2:
        return concatenate([slope, slope])
    if count == 3:
        weights = 1 / width
        both = (slope * weights).sum(0) / weights.sum(0)
        return stack([both, both, both])
    # Row i: h[i]·s[i − 1] + 2·(h[i − 1] + h[i])·s[i] + h[i − 1]·s[i + 1], around the period. The
    # last unknown is put aside, which leaves a tridiagonal matrix.
    h = differences(x)
    behind = concatenate([h[-1:], h[:-1]])
    main = 2 * (behind + h)
    right = 3 * (
        width * concatenate([slope[-1:], slope[:-1]]) + beside_rows(behind, y.ndim) * slope
    )
    size = count - 2
    zero = np.zeros(1)
    upper = concatenate([zero, behind[: size - 1]])
    lower = concatenate([h[1:size], zero])
    ab = stack([upper, main[:size], lower])
    inner = np.zeros(max(size - 2, 0))
    column = concatenate([h[:1], inner, behind[size - 1 : size]])
    b = as_columns(right)
    found = solve_banded((1, 1), ab, concatenate([b[:size], column[:, None]], axis=1))
    free, by_last = found[:, :-1], found[:, -1]
    first, before = behind[size], h[size]  # of the last row: beside s[0], and beside s[size − 1]
    known = b[size] - first * free[0] - before * free[-1]
    last = known / (main[size] - first * by_last[0] - before * by_last[-1])
    others = free - by_last[:, None] * last
    return reshape(concatenate([others, last[None], others[:1]]), y.shape)
