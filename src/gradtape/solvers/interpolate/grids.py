"""`RegularGridInterpolator` and `interpn`: interpolation between the points of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.graph.known_values import innermost_value, is_unknown
from gradtape.ops.arguments import as_integer
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_axes, check_choice
from gradtape.ops.comparison import isnan
from gradtape.ops.gather import take
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.rearrange import flip
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_arrays, moveaxis, reshape
from gradtape.solvers.interpolate.arguments import (
    array_of,
    differences,
    finite,
    holds_tensor,
    numbers,
    real_numbers,
)
from gradtape.solvers.interpolate.basis import basis, differentiated_spline
from gradtape.solvers.interpolate.cubic import hermite_coefficients
from gradtape.solvers.interpolate.interpolator import Interpolator, scipys
from gradtape.solvers.interpolate.polynomials import interval
from gradtape.solvers.interpolate.slopes import pchip_slopes
from gradtape.solvers.interpolate.through_points import make_interp_spline
from gradtape.solvers.require import required

_NAME = "RegularGridInterpolator"
_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}
_METHODS = ("linear", "nearest", "pchip", *_DEGREES)
# For one axis: the first of some neighbours of each point, and their weights.
Weights = tuple[Any, Any]


class RegularGridInterpolator(Interpolator):
    """Values between the points of a grid, as `scipy.interpolate.RegularGridInterpolator`.

    It is differentiable in values, in points and in the places of the grid. "nearest" gives steps,
    with the slope 0.

    Args:
        points: For each axis of the grid, its places in rising or falling order.
        values: The values on the grid; they may have further axes.
        method: "linear", "nearest", "slinear", "cubic", "quintic" or "pchip".
        bounds_error: Whether points outside of the grid raise.
        fill_value: The value outside, if they do not; None extrapolates.
        solver: Without tensors: what SciPy solves for splines with.
        solver_args: Without tensors: its options.

    Attributes:
        grid: The places, in rising order.
        values: The values.
        method: What is asked for.
        bounds_error: Whether points outside of the grid raise.
        fill_value: The value outside.

    Raises:
        ArgumentError: Places are in no order, an option is another, or a point is outside.
        ShapeError: Shapes do not fit.
        UnsupportedError: With tensors: a method whose name ends in "_legacy", or a solver.

    >>> grid = np.array([0.0, 1.0]), np.array([0.0, 2.0])
    >>> def at(p, values):
    ...     return gt.scipy.interpolate.RegularGridInterpolator(grid, values)(p)[0]
    >>> gt.grad(at)(np.array([0.5, 0.5]), np.array([[0.0, 2.0], [4.0, 8.0]]))
    array([4.5, 1.5])
    """

    _grid: tuple[Any, ...]
    values: Any

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        if not holds_tensor(*points, values, fill_value):
            options = {"solver": solver, "solver_args": solver_args}
            self._hold(points, values, method, bounds_error, fill_value, **options)
            return
        _check_method(method)
        if solver is not None or solver_args:
            raise UnsupportedError(
                f"{_NAME}: got a solver where there are tensors, expected none; splines are found "
                "axis by axis"
            )
        grid, values = _grid_of(points, numbers(_NAME, "values", values))
        _check_counts(grid, method)
        self.__dict__.update(
            _grid=grid, values=values, method=method, bounds_error=bounds_error,
            fill_value=fill_value,
        )  # fmt: skip

    @property
    def grid(self) -> tuple[Any, ...]:
        """The places of each axis, in rising order."""
        return self._grid if self.holds_tensor else self._scipy.grid

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """Values at points.

        Args:
            xi: The points, with their coordinates along the last axis; or a tuple of arrays, one
                for each coordinate.
            method: Another method than the object's.
            nu: For each axis, which derivative; of the methods "slinear", "cubic" and "quintic".

        Raises:
            ArgumentError: A point is outside, and `bounds_error` holds.
            ShapeError: The points have another number of coordinates than the grid.
        """
        if not holds_tensor(xi, self):
            return self._scipy(xi, method, **({} if nu is None else {"nu": nu}))
        method = self.method if method is None else method
        _check_method(method)
        orders = _orders(nu, method, len(self.grid))
        grid, values = [numbers(_NAME, "points", g) for g in self.grid], self.values
        _check_counts(grid, method)
        xi = _coordinates(xi, len(grid))
        flat = reshape(xi, (-1, len(grid)))
        at = [flat[:, n] for n in range(len(grid))]
        outside = _outside(grid, at)
        if self.bounds_error:
            text = (
                f"{_NAME}: got points outside of the grid, expected them inside; set bounds_error"
            )
            at = [required(p, ~outside.any(), text) for p in at]
        elif self.fill_value is not None:
            at = [where(outside, g[0], p) for g, p in zip(grid, at, strict=True)]
        out = _interpolated(grid, values, at, method, orders)
        trailing = (1,) * (len(out.shape) - 1)
        if not self.bounds_error and self.fill_value is not None:
            out = where(reshape(outside, (-1, *trailing)), array_of(self.fill_value), out)
        if method == "nearest":
            unknown = isnan(stop_gradient(flat)).any(-1)
            out = where(reshape(unknown, (-1, *trailing)), np.nan, out)
        return reshape(out, (*xi.shape[:-1], *values.shape[len(grid) :]))


def interpn(
    points: Any,
    values: Any,
    xi: Any,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Values between the points of a grid, as `scipy.interpolate.interpn` gives them.

    Args:
        points: For each axis of the grid, its places in rising or falling order.
        values: The values on the grid; they may have further axes.
        xi: The points, with their coordinates along the last axis; or a tuple of arrays, one for
            each coordinate.
        method: "linear", "nearest", "slinear", "cubic", "quintic" or "pchip"; without tensors also
            "splinef2d".
        bounds_error: Whether points outside of the grid raise.
        fill_value: The value outside, if they do not; None extrapolates.

    Raises:
        ArgumentError: Places are in no order, an option is another, or a point is outside.
        ShapeError: Shapes do not fit.
        UnsupportedError: The method is one that only SciPy has.

    >>> grid = np.array([0.0, 1.0]), np.array([0.0, 2.0])
    >>> values = np.array([[0.0, 2.0], [4.0, 8.0]])
    >>> gt.jacobian(lambda p: gt.scipy.interpolate.interpn(grid, values, p))(np.array([0.5, 0.5]))
    array([[4.5, 1.5]])
    """
    if not holds_tensor(*points, values, xi, fill_value):
        return scipys("interpn")(points, values, xi, method, bounds_error, fill_value)
    found = RegularGridInterpolator(points, values, method, bounds_error, fill_value)
    return found(xi, method)


# ---- arguments ----------------------------------------------------------------------------------


def _check_method(method: Any) -> None:
    if isinstance(method, str) and (method.endswith("_legacy") or method == "splinef2d"):
        raise UnsupportedError(
            f"{_NAME}: got method={method!r} where there are tensors, expected one of "
            f"{', '.join(_METHODS)}"
        )
    check_choice(_NAME, _METHODS, method=method)


def _grid_of(points: Any, values: Any) -> tuple[tuple[Any, ...], Any]:
    """Places in rising order, and values that go with them."""
    if len(points) > len(values.shape):
        raise ShapeError(
            f"{_NAME}: got {len(points)} axes of a grid for values of shape {values.shape}"
        )
    grid = []
    for n, place in enumerate(points):
        what = f"points[{n}]"
        place = finite(_NAME, what, real_numbers(_NAME, what, place))
        check_axes(_NAME, place, 1, what=what)
        if place.shape[0] != values.shape[n]:
            raise ShapeError(
                f"{_NAME}: got {place.shape[0]} places in {what} for values of shape "
                f"{values.shape}, expected {values.shape[n]}"
            )
        if not is_unknown(place) and place.shape[0] and _falls(innermost_value(place)):
            place, values = flip(place), flip(values, n)
        fine = (differences(stop_gradient(place)) > 0).all()
        text = f"{_NAME}: got {what} in no order, expected strictly ascending or descending numbers"
        grid.append(required(place, fine, text))
    return tuple(grid), values


def _check_counts(grid: Sequence[Any], method: str) -> None:
    least = 4 if method == "pchip" else _DEGREES.get(method, 0) + 1
    for n, g in enumerate(grid):
        if g.shape[0] < least:
            raise ArgumentError(
                f"{_NAME}: got {g.shape[0]} places along axis {n}, expected at least {least} for "
                f"method={method!r}"
            )


def _falls(values: Any) -> bool:
    return bool(values[0] > values[-1])


def _orders(nu: Any, method: str, count: int) -> list[int]:
    if nu is None:
        return [0] * count
    if method not in _DEGREES:
        raise ArgumentError(
            f"{_NAME}: got nu for method={method!r}, expected one of {', '.join(_DEGREES)}"
        )
    orders = [as_integer(order, _NAME, "nu") for order in nu]
    if len(orders) != count or min(orders) < 0:
        raise ArgumentError(f"{_NAME}: got nu={nu!r}, expected {count} numbers of 0 or more")
    return orders


def _coordinates(xi: Any, count: int) -> Any:
    """Points as one array, with their coordinates along the last axis."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        xi = stack(broadcast_arrays(*(real_numbers(_NAME, "xi", x) for x in xi)), axis=-1)
    else:
        xi = real_numbers(_NAME, "xi", xi)
        if len(xi.shape) == 1:
            xi = reshape(xi, (-1, count))
    if not xi.shape or xi.shape[-1] != count:
        raise ShapeError(
            f"{_NAME}: got points of shape {xi.shape} for a grid of {count} axes, expected {count} "
            "coordinates along the last axis"
        )
    return xi


def _outside(grid: Sequence[Any], at: Sequence[Any]) -> Any:
    found: Any = False
    for g, p in zip(grid, at, strict=True):
        fixed = stop_gradient(p)
        found = found | (fixed < stop_gradient(g[0])) | (fixed > stop_gradient(g[-1]))
    return found


# ---- methods ------------------------------------------------------------------------------------


def _interpolated(
    grid: Sequence[Any], values: Any, at: Sequence[Any], method: str, orders: Sequence[int]
) -> Any:
    """Values at points, whose axis comes first."""
    if method == "pchip":
        return _pchip(grid, values, at)
    found = []
    for n, (g, p, order) in enumerate(zip(grid, at, orders, strict=True)):
        if method in _DEGREES:
            weights, values = _spline_weights(g, values, n, p, _DEGREES[method], order)
        else:
            weights = _line_weights(g, p, method == "nearest")
        found.append(weights)
    return _summed(values, found)


def _line_weights(g: Any, p: Any, nearest: bool) -> Weights:
    """Both neighbours and their weights; or the nearer one, where a half is rounded down."""
    if g.shape[0] == 1:
        return np.zeros(p.shape, np.int64), (0.0 * p + 1.0)[:, None]
    i = interval(g, p, 0, g.shape[0] - 2)
    share = (p - take(g, i)) / (take(g, i + 1) - take(g, i))
    if nearest:
        return i + (stop_gradient(share) > 0.5), np.ones((p.shape[0], 1))
    return i, stack([1.0 - share, share], axis=-1)


def _spline_weights(
    g: Any, values: Any, axis: int, p: Any, k: int, order: int
) -> tuple[Weights, Any]:
    """The B-splines at points, and values of which one axis has become that of coefficients."""
    spline = make_interp_spline(g, values, k, axis=axis)
    t, c, k = differentiated_spline(*spline.tck, order)
    i = interval(t, p, k, t.shape[0] - k - 2)
    return (i - k, stack(basis(t, k, p, i), axis=-1)), moveaxis(c, 0, axis)


def _summed(values: Any, weights: Sequence[Weights]) -> Any:
    """Sums of neighbours times their weights, for one axis after the other."""
    count = len(weights)
    index = []
    for n, (first, weight) in enumerate(weights):
        spread = [1] * (count + 1)
        spread[1 + n] = weight.shape[1]
        place = reshape(first, (-1, *[1] * count)) + np.arange(weight.shape[1]).reshape(spread)
        index.append(place)
    block = getitem(values, tuple(index))
    for _, weight in reversed(weights):
        count -= 1
        shape = [weight.shape[0], *[1] * count, weight.shape[1]]
        trailing = [1] * (len(block.shape) - len(shape))
        block = sum_of(block * reshape(weight, (*shape, *trailing)), axis=1 + count)
    return block


def _pchip(grid: Sequence[Any], values: Any, at: Sequence[Any]) -> Any:
    """PCHIP along one axis after the other, beginning with the last."""
    if values.dtype.kind == "c":
        raise ArgumentError(f"{_NAME}: got complex values for 'pchip', expected real ones")
    count = len(grid)
    points = np.arange(at[0].shape[0])
    for n in reversed(range(count)):
        g, p = grid[n], at[n]
        # The first time around there is no axis of points yet.
        fresh = n == count - 1
        rows = moveaxis(values, n if fresh else n + 1, 0)
        c = hermite_coefficients(g, rows, pchip_slopes(g, rows))
        i = interval(g, p, 0, g.shape[0] - 2)
        there = take(c, i, axis=1) if fresh else getitem(c, (slice(None), i, points))
        step = p - take(g, i)
        step = reshape(step, step.shape + (1,) * (len(there.shape) - 2))
        values = ((there[0] * step + there[1]) * step + there[2]) * step + there[3]
    return values
