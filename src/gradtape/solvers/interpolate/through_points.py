"""`make_interp_spline`: the coefficients of a spline through points."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_integer
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_least
from gradtape.ops.gather import scatter_add, take
from gradtape.ops.join import concatenate, stack
from gradtape.ops.linalg.banded import solve_banded
from gradtape.ops.linalg.solve import solve
from gradtape.ops.select import clip
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.ops.which import all as all_of
from gradtape.solvers.interpolate.arguments import (
    as_columns,
    differences,
    holds_tensor,
    knots,
    numbers,
    samples,
)
from gradtape.solvers.interpolate.basis import basis, end_derivatives, repeated
from gradtape.solvers.interpolate.bsplines import BSpline
from gradtape.solvers.interpolate.interpolator import scipys
from gradtape.solvers.interpolate.polynomials import interval
from gradtape.solvers.require import required

_NAME = "make_interp_spline"
_NAMED = {"clamped": 1, "natural": 2}
# Conditions on derivatives at one end: their orders, and their values as rows.
Conditions = tuple[list[int], list[Any]]


def make_interp_spline(
    x: Any,
    y: Any,
    k: int = 3,
    t: Any = None,
    bc_type: Any = None,
    axis: int = 0,
    check_finite: bool = True,
) -> BSpline:
    """The spline through points, as `scipy.interpolate.make_interp_spline`.

    It is differentiable in values and in places, from which the knots are made.

    Args:
        x: The places of the points, in rising order.
        y: The values there.
        k: The degree.
        t: The knots, if they are not to be chosen.
        bc_type: What holds at the ends: None or "not-a-knot", "natural", "clamped", "periodic", or
            a pair of lists of pairs of an order and the value of that derivative.
        axis: The axis of `y` along which the points are.
        check_finite: Without tensors: whether SciPy looks for NaN and infinity.

    Raises:
        ArgumentError: `x` or `t` is not sorted, `bc_type` is another, or there are too few or too
            many conditions.
        LinAlgError: The knots do not determine a spline.
        ShapeError: Shapes do not fit.

    >>> def at(y):
    ...     return gt.scipy.interpolate.make_interp_spline(np.arange(4.0), y)(1.5)
    >>> gt.grad(at)(np.array([0.0, 1.0, 8.0, 27.0]))
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """
    if not holds_tensor(x, y, t, bc_type):
        return BSpline.around(scipys(_NAME)(x, y, k, t, bc_type, axis, check_finite))
    k = as_integer(k, _NAME, "k")
    check_least(_NAME, 0, k=k)
    x = knots(_NAME, x, least=1)
    values, axis = samples(_NAME, x, y, axis)
    named = isinstance(bc_type, str)
    if named and bc_type == "periodic" and k > 1 and t is None:
        return _periodic(x, values, k, axis)
    ends = [_conditions(end, values.shape[1:]) for end in _both_ends(bc_type)]
    if k < 2 and t is None:
        if any(orders for orders, _ in ends):
            raise ArgumentError(f"{_NAME}: got bc_type for degree {k}, expected none")
        t = concatenate([x, x[-1:]] if k == 0 else [x[:1], x, x[-1:]])
        return BSpline.construct_fast(t, values, k, axis=axis)
    if x.shape[0] <= k and t is None and not any(orders for orders, _ in ends):
        raise ShapeError(f"{_NAME}: got {x.shape[0]} points for degree {k}, expected {k + 1}")
    if t is not None:
        if named and bc_type == "periodic":
            raise ArgumentError(f"{_NAME}: got knots for a periodic spline, expected t=None")
        t = knots(_NAME, t, what="t", strict=False)
    elif any(orders for orders, _ in ends):
        t = concatenate([repeated(x[0], k), x, repeated(x[-1], k)])
    else:
        t = not_a_knot(x, k)
    return BSpline.construct_fast(t, _coefficients(x, values, t, k, *ends), k, axis=axis)


def not_a_knot(x: Any, k: int) -> Any:
    """Knots at the points, or between them for even degrees, without those next to the ends."""
    inner, skipped = (x, (k + 1) // 2) if k % 2 else ((x[1:] + x[:-1]) / 2, k // 2)
    inner = inner[skipped : inner.shape[0] - skipped]
    return concatenate([repeated(x[0], k + 1), inner, repeated(x[-1], k + 1)])


# ---- conditions at the ends ---------------------------------------------------------------------


def _both_ends(bc_type: Any) -> Any:
    if bc_type is None or (isinstance(bc_type, str) and bc_type in ("not-a-knot", "periodic")):
        return None, None
    if isinstance(bc_type, str):
        return bc_type, bc_type
    if not isinstance(bc_type, list | tuple) or len(bc_type) != 2:
        raise ArgumentError(
            f"{_NAME}: got bc_type={bc_type!r}, expected a name or a pair of conditions"
        )
    return bc_type


def _conditions(end: Any, shape: tuple[int, ...]) -> Conditions:
    """The orders of derivatives, and their values."""
    if end is None:
        return [], []
    if isinstance(end, str):
        if end not in _NAMED:
            raise ArgumentError(
                f"{_NAME}: got bc_type={end!r}, expected 'clamped', 'natural', 'not-a-knot' or "
                "'periodic'"
            )
        return [_NAMED[end]], [np.zeros(shape)]
    orders, values = [], []
    for pair in end:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ArgumentError(
                f"{_NAME}: got {pair!r} in bc_type, expected pairs of an order and a value"
            )
        orders.append(as_integer(pair[0], _NAME, "an order"))
        values.append(broadcast_to(numbers(_NAME, "a value in bc_type", pair[1]), shape))
    return orders, values


# ---- equations ----------------------------------------------------------------------------------


def _coefficients(x: Any, y: Any, t: Any, k: int, first: Conditions, last: Conditions) -> Any:
    """The coefficients of the spline through points: the solution of banded equations."""
    size, points = t.shape[0] - k - 1, x.shape[0]
    before, after = len(first[0]), len(last[0])
    if size - points != before + after:
        raise ArgumentError(
            f"{_NAME}: got {before} and {after} conditions at the ends for {points} points and "
            f"{t.shape[0]} knots, expected {size - points} in all"
        )
    if any(not 0 <= order <= k for order in (*first[0], *last[0])):
        raise ArgumentError(f"{_NAME}: got a derivative of an order above {k} in bc_type")
    i = interval(t, x, k, size - 1)
    entries = [(before + np.arange(points), i - k + m, b) for m, b in enumerate(basis(t, k, x, i))]
    for orders, at, row, column in (
        (first[0], x[0], 0, 0), (last[0], x[-1], size - after, size - k - 1),
    ):  # fmt: skip
        columns = column + np.arange(k + 1)
        for n, order in enumerate(orders):
            found = end_derivatives(t, k, at, order, column)
            entries.append((np.full(k + 1, row + n), columns, found))
    rows = [concatenate([entry[n] for entry in entries]) for n in range(3)]
    ab = _band(rows[0], rows[1], rows[2], size, k)
    right = concatenate([stack(first[1]), y] if before else [y])
    right = concatenate([right, stack(last[1])]) if after else right
    return reshape(solve_banded((k, k), ab, as_columns(right)), right.shape)


def _band(row: Any, column: Any, value: Any, size: int, k: int) -> Any:
    """A matrix by its diagonals, k below the main one and k above, from its elements."""
    diagonal = k + row - column
    # Points that have enough knots on both sides are in the band (Schoenberg, Whitney).
    text = f"{_NAME}: got knots that do not go with the points, expected t[i] < x[i] < t[i + k + 1]"
    inside = (diagonal >= 0) & (diagonal <= 2 * k)
    value = required(value, all_of(inside), text)
    place = clip(diagonal, 0, 2 * k) * size + column
    return reshape(scatter_add(np.zeros((2 * k + 1) * size), place, value, axis=0), (-1, size))


# ---- periodic splines ---------------------------------------------------------------------------


def _periodic(x: Any, y: Any, k: int, axis: int) -> BSpline:
    """The periodic spline through points: as many coefficients as points but one, around a circle.

    Row j of the equations has the columns j to j + k. Moved by `shift`, the elements lie around
    the diagonal, and in two corners. The last k unknowns are put aside, which leaves a band.
    """
    if x.shape[0] < 2:
        raise ShapeError(f"{_NAME}: got one point for a periodic spline, expected more")
    first, last = stop_gradient(y[0]), stop_gradient(y[-1])
    near = abs_of(last - first) <= 1e-15 + 1e-5 * abs_of(last)
    text = f"{_NAME}: got values that differ at the ends of a periodic spline, expected the same"
    y = required(y, all_of(near), text)
    t, size, shift = _circle(x, k), x.shape[0] - 1, k // 2
    place = np.arange(size)
    values = stack(basis(t, k, x[:-1], place + k), axis=1)
    row, column = np.repeat(place, k + 1), place[:, None] + np.arange(k + 1) - shift
    right, value = as_columns(y[:-1]), reshape(values, (-1,))
    if size <= 3 * k:
        matrix = _dense(row, column.ravel() % size, value, (size, size))
        found = solve(matrix, right)
    else:
        found = _bordered(row, column.ravel(), value, right, k, shift)
    c = take(found, (np.arange(size + k) - shift) % size, axis=0)
    c = reshape(c, (size + k, *y.shape[1:]))
    return BSpline.construct_fast(t, c, k, extrapolate="periodic", axis=axis)


def _circle(x: Any, k: int) -> Any:
    """Knots at the points, or between them for even degrees, repeated to both sides."""
    if k % 2 == 0:
        x = concatenate([x[:1], x[1:-1] - differences(x)[:-1] / 2, x[-1:]])
    steps = differences(x)
    around = np.arange(k) % steps.shape[0]
    back = take(steps, steps.shape[0] - 1 - around)
    ahead = take(steps, around)
    before = x[0] - stack([back[: n + 1].sum() for n in reversed(range(k))])
    after = x[-1] + stack([ahead[: n + 1].sum() for n in range(k)])
    return concatenate([before, x, after])


def _dense(row: Any, column: Any, value: Any, shape: tuple[int, int]) -> Any:
    place = row * shape[1] + column
    return reshape(scatter_add(np.zeros(shape[0] * shape[1]), place, value, axis=0), shape)


def _bordered(row: Any, column: Any, value: Any, right: Any, k: int, shift: int) -> Any:
    """The solution where k columns and rows lie around a band.

    Args:
        row: The rows of elements.
        column: Their columns, below 0 or beyond the last one if they lie in a corner.
        value: The elements.
        right: The right sides.
        k: How many columns are put aside.
        shift: How many diagonals are below the main one.
    """
    size = right.shape[0]
    inner, around = size - k, column % size
    is_band = (row < inner) & (column >= 0) & (column < inner)
    is_side, is_below = (row < inner) & ~is_band, row >= inner
    diagonal = k - shift + row - column

    def part(which: Any, row: Any, column: Any, shape: tuple[int, int]) -> Any:
        return _dense(row[which], column[which], take(value, np.flatnonzero(which)), shape)

    band = part(is_band, diagonal, column, (k + 1, inner))
    side = part(is_side, row, around - inner, (inner, k))
    below = part(is_below, row - inner, around, (k, size))
    found = solve_banded((shift, k - shift), band, concatenate([right[:inner], side], axis=1))
    count = right.shape[1]
    free, by_side = found[:, :count], found[:, count:]
    low, corner = below[:, :inner], below[:, inner:]
    last = solve(corner - low @ by_side, right[inner:] - low @ free)
    return concatenate([free - by_side @ last, last])
