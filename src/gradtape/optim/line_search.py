"""A line search for the strong conditions of Wolfe (Nocedal and Wright, 2006, section 3.5).

Brackets, interpolations and safeguards are those of PyTorch's L-BFGS, so that the iterates are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

# By how much of what the slope promises the function has to fall, and the slope.
_ENOUGH, _FLATTER = 1e-4, 0.9


class Point(NamedTuple):
    """A point on the line.

    Attributes:
        at: The multiple of the direction.
        value: The function there.
        slope: Its derivative along the direction.
        gradient: Its gradient.
    """

    at: float
    value: float
    slope: float
    gradient: Any


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    at: float,
    *,
    length: float,
    most: int,
    tolerance: float,
) -> tuple[Point, int]:
    """Find a point where the function and its slope have fallen enough.

    Args:
        evaluate: Returns the point at a multiple of the direction.
        start: The point at 0, whose slope is negative.
        at: The multiple to try first.
        length: The largest element of the direction, without its sign.
        most: How many further points may be evaluated.
        tolerance: The difference of points that is not made smaller.

    Returns:
        The point, or the best one that was found; and how many were evaluated.
    """
    search = _Search(evaluate, start, most)
    pair = search.bracket(at)
    return (
        pair if isinstance(pair, Point) else search.zoom(*pair, length, tolerance)
    ), search.count


class _Search:
    """One line search, which counts the points it evaluates."""

    def __init__(self, evaluate: Callable[[float], Point], start: Point, most: int) -> None:
        self._evaluate = evaluate
        self._start = start
        # The first point does not count.
        self._most = most + 1
        self.count = 0

    def bracket(self, at: float) -> Point | tuple[Point, Point]:
        """Go on until a point is right, or there must be one between two points."""
        before, new = self._start, self._point(at)
        while self.count < self._most:
            rises = self.count > 2 and new.value >= before.value
            if self._is_too_high(new) or rises:
                return before, new
            if self._is_flat(new):
                return new
            if new.slope >= 0:
                return before, new
            at = _minimum(before, new, new.at + 0.01 * (new.at - before.at), new.at * 10)
            before, new = new, self._point(at)
        return self._start, new

    def zoom(self, one: Point, other: Point, length: float, tolerance: float) -> Point:
        """Make a pair of points smaller until one is right; returns the lower one."""
        low, high = (one, other) if one.value <= other.value else (other, one)
        was_close = False
        while self.count < self._most and abs(high.at - low.at) * length >= tolerance:
            at, was_close = _between(low, high, was_close)
            new = self._point(at)
            if self._is_too_high(new) or new.value >= low.value:
                high = new
                if high.value < low.value:
                    low, high = high, low
                continue
            if self._is_flat(new):
                return new
            if new.slope * (high.at - low.at) >= 0:
                high = low
            low = new
        return low

    def _point(self, at: float) -> Point:
        self.count += 1
        point = self._evaluate(at)
        # Where the function has no value it is too high: the search goes back.
        return point._replace(value=math.inf) if math.isnan(point.value) else point

    def _is_too_high(self, point: Point) -> bool:
        return point.value > self._start.value + _ENOUGH * point.at * self._start.slope

    def _is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -_FLATTER * self._start.slope


def _between(low: Point, high: Point, was_close: bool) -> tuple[float, bool]:
    """Where to look between two points, and whether that is close to one of them.

    A point that is close to an end for the second time is moved away from it.
    """
    first, last = sorted([low.at, high.at])
    at = _minimum(low, high, first, last)
    margin = 0.1 * (last - first)
    if min(last - at, at - first) >= margin:
        return at, False
    if not (was_close or at >= last or at <= first):
        return at, True
    return (last - margin if abs(at - last) < abs(at - first) else first + margin), False


def _minimum(one: Point, other: Point, least: float, most: float) -> float:
    """The minimum of the cubic with these values and slopes, in a range; else its middle."""
    middle = (least + most) / 2.0
    left, right = (one, other) if one.at <= other.at else (other, one)
    # With d₁ = s₁ + s₂ − 3·(f₁ − f₂)/(x₁ − x₂) and d₂ = √(d₁² − s₁·s₂):
    # x₂ − (x₂ − x₁)·(s₂ + d₂ − d₁)/(s₂ − s₁ + 2·d₂)
    width = right.at - left.at
    first = left.slope + right.slope - 3 * (right.value - left.value) / width
    square = first**2 - left.slope * right.slope
    if not (square >= 0 and math.isfinite(square)):
        return middle
    root = math.sqrt(square)
    below = right.slope - left.slope + 2 * root
    if below == 0:
        return middle
    found = right.at - width * ((right.slope + root - first) / below)
    return min(max(found, least), most) if math.isfinite(found) else middle
