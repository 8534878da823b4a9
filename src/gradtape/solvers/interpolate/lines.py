"""`interp1d`: interpolation of one variable by lines, steps or splines, under SciPy's name."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arrays.search import searchsorted
from gradtape.ops.arrays.sort import argsort
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.checks import check_axes, check_broadcasts
from gradtape.ops.gather import take
from gradtape.ops.select import clip, where
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.which import all as all_of
from gradtape.solvers.interpolate.arguments import (
    arranged,
    array_of,
    differences,
    holds_tensor,
    real_numbers,
)
from gradtape.solvers.interpolate.interpolator import Interpolator
from gradtape.solvers.interpolate.through_points import make_interp_spline
from gradtape.solvers.require import required

_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


class interp1d(Interpolator):  # noqa: N801 - SciPy's name
    """Values between points, as `scipy.interpolate.interp1d` gives them.

    It is differentiable in values, in points where it is evaluated, and in places. "nearest",
    "nearest-up", "previous", "next" and "zero" give steps, with the slope 0. At a place the slope
    of "linear" is that of the line to its right.

    Args:
        x: The places, in any order.
        y: The values there.
        kind: "linear", "nearest" (a half goes down), "nearest-up", "previous", "next", or a spline:
            "zero", "slinear", "quadratic", "cubic" or its degree.
        axis: The axis of `y` along which the places are.
        copy: Without tensors: whether SciPy copies the arrays.
        bounds_error: Whether points beyond the ends raise; by default they do, unless `fill_value`
            is "extrapolate".
        fill_value: The value beyond the ends, a pair of those before and after, or "extrapolate".
        assume_sorted: Whether `x` is in rising order.

    Attributes:
        x: The places, in order.
        y: The values.
        axis: The axis of the places.
        bounds_error: Whether points beyond the ends raise.
        fill_value: What is beyond the ends.

    Raises:
        ArgumentError: The options contradict each other, or a point is beyond the ends.
        ShapeError: `y` or `fill_value` does not fit `x`.
        UnsupportedError: There is no such kind.

    >>> def at(p, y):
    ...     return gt.scipy.interpolate.interp1d([0.0, 1.0, 2.0], y)(p)
    >>> gt.grad(at, (0, 1))(1.25, np.array([0.0, 1.0, 4.0]))
    (np.float64(3.0), array([0.  , 0.75, 0.25]))
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: str | int = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        if not holds_tensor(x, y, fill_value):
            self._hold(x, y, kind, axis, copy, bounds_error, fill_value, assume_sorted)
            self.__dict__["_kind"], self.__dict__["_spline"] = _kind_of(kind), None
            return
        x = real_numbers("interp1d", "x", x)
        check_axes("interp1d", x, 1, what="x")
        y, axis = _values(x, y, axis)
        if not assume_sorted:
            order = argsort(stop_gradient(x), stable=True)
            x, y = take(x, order), take(y, order, axis=0)
        self.__dict__.update(x=x, y=moveaxis(y, 0, axis), axis=axis, _kind=_kind_of(kind))
        beyond = fill_value if isinstance(fill_value, str) else None
        if beyond is not None and beyond != "extrapolate":
            raise ArgumentError(
                f"interp1d: got fill_value={beyond!r}, expected values or 'extrapolate'"
            )
        if beyond and bounds_error:
            raise ArgumentError(
                "interp1d: got bounds_error=True with fill_value='extrapolate', expected only one"
            )
        raises = not beyond and (bounds_error is None or bounds_error)
        self.__dict__.update(bounds_error=bool(raises), fill_value=fill_value)
        self.__dict__["_spline"] = self._through(x, y)
        least = self._kind + 1 if isinstance(self._kind, int) else 1
        if x.shape[0] < least:
            raise ShapeError(f"interp1d: got {x.shape[0]} places, expected at least {least}")

    def _through(self, x: Any, y: Any) -> Any:
        """The spline, if it is one; a sorted x is needed for all kinds."""
        if isinstance(self._kind, int):
            return make_interp_spline(x, y, self._kind)
        text = "interp1d: got x that is not sorted, expected assume_sorted=False or rising numbers"
        self.__dict__["x"] = required(x, all_of(differences(stop_gradient(x)) >= 0), text)
        return None

    def __call__(self, x: Any) -> Any:
        """Values at points.

        Args:
            x: The points.

        Returns:
            An array in which the axes of `x` take the place of the axis of the places.

        Raises:
            ArgumentError: A point is beyond the ends, and `bounds_error` holds.
        """
        if not holds_tensor(x, self):
            return self._scipy(x)
        x = real_numbers("interp1d", "x", x)
        return arranged(self._at(x), len(x.shape), self.axis)

    def _at(self, points: Any) -> Any:
        places, y = as_array(self.x), moveaxis(self.y, self.axis, 0)
        kind, fill = self._kind, self.fill_value
        beyond = isinstance(fill, str)
        if beyond and kind in ("previous", "next"):
            # Only one of these steps goes on.
            fill = (np.nan, y[-1]) if kind == "previous" else (y[0], np.nan)
            beyond = False
        if beyond:
            return self._inside(places, y, points)
        low, high = stop_gradient(places[0]), stop_gradient(places[-1])
        fixed = stop_gradient(points)
        before, after = fixed < low, fixed > high
        if self.bounds_error:
            text = (
                "interp1d: got points beyond the first or last place in x, expected them between; "
                "set fill_value"
            )
            return self._inside(places, y, required(points, ~(before | after).any(), text))
        out = self._inside(places, y, where(before | after, places[0], points))
        both = fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)
        for outside, value in zip((before, after), both, strict=True):
            shape = outside.shape + (1,) * (len(out.shape) - len(outside.shape))
            out = where(reshape(outside, shape), _filling(value, y), out)
        return out

    def _inside(self, places: Any, y: Any, points: Any) -> Any:
        """Values by the rule of the kind, which goes on beyond the ends."""
        kind, last = self._kind, places.shape[0] - 1
        if isinstance(kind, int):
            spline = self._spline or make_interp_spline(stop_gradient(places), y, kind)
            return spline(points)
        if kind == "linear":
            return _on_lines(places, y, points)
        fixed, at = stop_gradient(points), stop_gradient(places)
        if kind.startswith("nearest"):
            half = at / 2.0
            side = "left" if kind == "nearest" else "right"
            i = searchsorted(half[1:] + half[:-1], fixed, side=side)
        elif kind == "previous":
            i = searchsorted(at, fixed, side="right") - 1
        else:
            i = searchsorted(at, fixed, side="left")
        return take(y, clip(i, 0, last), axis=0)


def _on_lines(places: Any, y: Any, points: Any) -> Any:
    # f(p) = f₀ + (p − x₀)·(f₁ − f₀)/(x₁ − x₀)
    last = places.shape[0] - 1
    i = clip(searchsorted(stop_gradient(places), stop_gradient(points), side="right") - 1, 0, last)
    i = clip(i, 0, max(last - 1, 0))
    j = clip(i + 1, 0, last)
    x0, x1, f0, f1 = take(places, i), take(places, j), take(y, i, axis=0), take(y, j, axis=0)
    width, step = x1 - x0, points - x0
    same = stop_gradient(width) == 0
    share = step / where(same, 1.0, width)
    share = reshape(share, share.shape + (1,) * (len(f0.shape) - len(share.shape)))
    return f0 + share * (f1 - f0)


def _kind_of(kind: Any) -> str | int:
    if isinstance(kind, int | np.integer) and not isinstance(kind, bool):
        return int(kind)
    if kind in _DEGREES:
        return _DEGREES[kind]
    if kind != "linear" and kind not in _STEPS:
        names = ", ".join(map(repr, ("linear", *_STEPS, *_DEGREES)))
        raise UnsupportedError(
            f"interp1d: got kind={kind!r}, expected {names} or the degree of a spline"
        )
    return str(kind)


def _values(x: Any, y: Any, axis: int) -> tuple[Any, int]:
    """Values with the axis of places first; integers become floats."""
    y = array_of(y)
    axis = normalize_axis(axis, len(y.shape), "interp1d")
    if np.dtype(y.dtype).kind in "biu":
        y = astype(y, np.float64)
    if y.shape[axis] != x.shape[0]:
        raise ShapeError(
            f"interp1d: got y of shape {y.shape} for {x.shape[0]} numbers in x, expected as many "
            f"along axis {axis}"
        )
    return moveaxis(y, axis, 0), axis


def _filling(value: Any, y: Any) -> Any:
    """A value beyond the ends, in the dtype of the values."""
    value = array_of(value)
    check_broadcasts("interp1d", y.shape[1:] or (1,), fill_value=value)
    value = value if y.shape[1:] else reshape(value, ())
    return astype(value, y.dtype, copy=False)
