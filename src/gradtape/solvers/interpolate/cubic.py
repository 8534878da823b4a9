"""Cubic interpolators under SciPy's names, with derivatives in values, points and knots."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_integer
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.join import concatenate, stack
from gradtape.ops.which import all as all_of
from gradtape.solvers.interpolate.arguments import (
    finite,
    holds_tensor,
    knots,
    numbers,
    samples,
)
from gradtape.solvers.interpolate.piecewise import PPoly
from gradtape.solvers.interpolate.polynomials import Extrapolate
from gradtape.solvers.interpolate.slopes import (
    End,
    akima_slopes,
    pchip_slopes,
    periodic_slopes,
    secants,
    spline_slopes,
)
from gradtape.solvers.require import required


def hermite_coefficients(x: Any, y: Any, slopes: Any) -> Any:
    """Coefficients of the cubic polynomials with given values and slopes at the knots."""
    width, slope = secants(x, y)
    start, end = slopes[:-1], slopes[1:]
    bend = (start + end - 2 * slope) / width
    return stack(
        [bend / width, (slope - start) / width - bend, start + 0 * slope, y[:-1] + 0 * slope]
    )


class CubicHermiteSpline(PPoly):
    """The piecewise cubic polynomial with given values and slopes, as SciPy's of that name.

    Args:
        x: The knots, in rising order.
        y: The values at the knots.
        dydx: The slopes there.
        axis: The axis of `y` along which the knots are.
        extrapolate: Whether the first and last pieces go on beyond the ends (None: they do);
            "periodic" repeats them, False gives NaN.

    Raises:
        ArgumentError: `x` is in no order, or something is not finite.
        ShapeError: Shapes do not fit.

    >>> def middle(slopes):
    ...     return gt.scipy.interpolate.CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], slopes)(0.5)
    >>> gt.grad(middle)(np.array([0.0, 0.0]))
    array([ 0.125, -0.125])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        dydx: Any,
        axis: int = 0,
        extrapolate: Extrapolate | None = None,
    ):
        if not holds_tensor(x, y, dydx):
            self._hold(x, y, dydx, axis, extrapolate)
            return
        name = type(self).__name__
        x = knots(name, x)
        values, axis = samples(name, x, y, axis)
        slopes, _ = samples(name, x, dydx, axis, "dydx")
        if values.shape != slopes.shape:
            raise ShapeError(
                f"{name}: got y of shape {values.shape} and dydx of shape {slopes.shape}, with "
                "the knots first, expected the same"
            )
        self._tracked(hermite_coefficients(x, values, slopes), x, extrapolate, axis)


class PchipInterpolator(CubicHermiteSpline):
    """The cubic interpolator that is monotone where the values are, as SciPy's of that name.

    Args:
        x: The knots, in rising order.
        y: The values at the knots, real numbers.
        axis: The axis of `y` along which the knots are.
        extrapolate: Whether the first and last pieces go on beyond the ends (None: they do);
            "periodic" repeats them, False gives NaN.

    Raises:
        ArgumentError: `x` is in no order, or something is complex or not finite.
        ShapeError: `y` does not fit `x`.

    >>> def at(p):
    ...     return gt.scipy.interpolate.PchipInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(p)
    >>> gt.value_and_grad(at)(1.0)
    (np.float64(1.0), np.float64(1.5))
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Extrapolate | None = None):
        if not holds_tensor(x, y):
            self._hold(x, y, axis, extrapolate)
            return
        name = type(self).__name__
        x = knots(name, x)
        values, axis = _real_samples(name, x, y, axis)
        c = hermite_coefficients(x, values, pchip_slopes(x, values))
        self._tracked(c, x, extrapolate, axis)


class Akima1DInterpolator(CubicHermiteSpline):
    """The cubic interpolator in which an outlier has an effect only nearby, as SciPy's class.

    Args:
        x: The knots, in rising order.
        y: The values at the knots, real numbers.
        axis: The axis of `y` along which the knots are.
        method: "akima", or "makima" for the modified weights.
        extrapolate: Whether the first and last pieces go on beyond the ends; None and False give
            NaN there, "periodic" repeats them.

    Raises:
        ArgumentError: `x` is in no order, something is complex or not finite, or `method` is
            another.
        ShapeError: `y` does not fit `x`.

    >>> def at(p):
    ...     return gt.scipy.interpolate.Akima1DInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(p)
    >>> gt.grad(at)(1.0)
    np.float64(2.0)
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: Extrapolate | None = None,
    ):
        if not holds_tensor(x, y):
            self._hold(x, y, axis, method=method, extrapolate=extrapolate)
            return
        name = type(self).__name__
        check_choice(name, ("akima", "makima"), method=method)
        x = knots(name, x)
        values, axis = _real_samples(name, x, y, axis)
        slopes = akima_slopes(x, values, method == "makima")
        beyond = False if extrapolate is None else extrapolate
        self._tracked(hermite_coefficients(x, values, slopes), x, beyond, axis)


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through values, as SciPy's of that name.

    Args:
        x: The knots, in rising order.
        y: The values at the knots.
        axis: The axis of `y` along which the knots are.
        bc_type: What holds at the ends: "not-a-knot", "natural", "clamped", "periodic"; or a pair
            of conditions, of which each is one of the first three, or a pair of an order (1 or 2)
            and the value of that derivative.
        extrapolate: Whether the first and last pieces go on beyond the ends (None: they do, and
            repeat for a periodic spline); "periodic" repeats them, False gives NaN.

    Raises:
        ArgumentError: `x` is in no order, something is not finite, `bc_type` is another, or the
            values at the ends of a periodic spline differ.
        ShapeError: Shapes do not fit.

    >>> def at(p, y):
    ...     return gt.scipy.interpolate.CubicSpline(np.arange(4.0), y)(p)
    >>> gt.grad(at, (0, 1))(1.5, np.array([0.0, 1.0, 8.0, 27.0]))
    (np.float64(6.75...), array([-0.0625,  0.5625,  0.5625, -0.0625]))
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        axis: int = 0,
        bc_type: Any = "not-a-knot",
        extrapolate: Extrapolate | None = None,
    ):
        if not holds_tensor(x, y, bc_type):
            self._hold(x, y, axis, bc_type, extrapolate)
            return
        name = type(self).__name__
        x = knots(name, x)
        values, axis = samples(name, x, y, axis)
        if isinstance(bc_type, str) and bc_type == "periodic":
            values = _closed(name, values)
            slopes = periodic_slopes(x, values)
            extrapolate = "periodic" if extrapolate is None else extrapolate
        else:
            slopes = spline_slopes(x, values, _ends(name, bc_type, values.shape[1:]))
        self._tracked(hermite_coefficients(x, values, slopes), x, extrapolate, axis)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Values of a `PchipInterpolator`, or of its derivatives, as SciPy's function of that name.

    Args:
        xi: The knots, in rising order.
        yi: The values at the knots.
        x: The points.
        der: Which derivative, or a list of several.
        axis: The axis of `yi` along which the knots are.

    Returns:
        The values; a list of them if `der` is one.

    >>> gt.grad(lambda p: gt.scipy.interpolate.pchip_interpolate([0.0, 1.0], [0.0, 2.0], p))(0.5)
    np.float64(2.0)
    """
    found = PchipInterpolator(xi, yi, axis=axis)
    if isinstance(der, list | tuple | np.ndarray):
        return [found.derivative(int(nu))(x) for nu in der]
    return found(x) if der == 0 else found.derivative(der)(x)


def _real_samples(name: str, x: Any, y: Any, axis: int) -> tuple[Any, int]:
    values, axis = samples(name, x, y, axis)
    if values.dtype.kind == "c":
        raise ArgumentError(f"{name}: got complex y, expected real numbers; use gt.real")
    return values, axis


def _closed(name: str, y: Any) -> Any:
    """Values whose last row is the first one, checked to be so up to rounding."""
    first, last = stop_gradient(y[0]), stop_gradient(y[-1])
    near = abs_of(last - first) <= 1e-15 + 1e-15 * abs_of(last)
    text = (
        f"{name}: got values that differ at the ends for bc_type='periodic', expected the last to "
        "be equal to the first"
    )
    return required(concatenate([y[:-1], y[:1]]), all_of(near), text)


_NAMED: dict[str, End] = {"not-a-knot": "not-a-knot", "natural": (2, 0.0), "clamped": (1, 0.0)}


def _ends(name: str, bc_type: Any, shape: tuple[int, ...]) -> tuple[End, End]:
    """The conditions at both ends."""
    if isinstance(bc_type, str):
        check_choice(name, [*_NAMED, "periodic"], bc_type=bc_type)
        bc_type = (bc_type, bc_type)
    if not isinstance(bc_type, list | tuple) or len(bc_type) != 2:
        raise ArgumentError(
            f"{name}: got bc_type={bc_type!r}, expected a name or a pair of conditions"
        )
    first, last = (_end(name, end, shape) for end in bc_type)
    return first, last


def _end(name: str, end: Any, shape: tuple[int, ...]) -> End:
    if isinstance(end, str):
        if end == "periodic":
            raise ArgumentError(
                f"{name}: got 'periodic' for one end, expected it for both: bc_type='periodic'"
            )
        check_choice(name, _NAMED, bc_type=end)
        return _NAMED[end]
    if not isinstance(end, list | tuple) or len(end) != 2:
        raise ArgumentError(
            f"{name}: got {end!r} in bc_type, expected a name, or an order and a value"
        )
    order = as_integer(end[0], name, "an order")
    check_choice(name, (1, 2), order=order)
    value = finite(name, "a value in bc_type", numbers(name, "a value in bc_type", end[1]))
    if value.shape != shape:
        raise ShapeError(
            f"{name}: got a value of shape {value.shape} in bc_type, expected {shape}, the shape "
            "of y without its axis of knots"
        )
    return order, value
