"""`PPoly` and `BPoly`: piecewise polynomials under SciPy's names, with derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError, a_type
from gradtape.ops.arguments import as_integer
from gradtape.ops.checks import check_axes, check_least
from gradtape.ops.join import stack
from gradtape.ops.shape import moveaxis
from gradtape.solvers.interpolate.arguments import (
    arranged,
    array_of,
    holds_tensor,
    numbers,
    real_numbers,
)
from gradtape.solvers.interpolate.basis import differentiated_spline, evaluate_spline
from gradtape.solvers.interpolate.interpolator import Interpolator, scipys
from gradtape.solvers.interpolate.polynomials import (
    Extrapolate,
    definite,
    differentiated,
    differentiated_bernstein,
    evaluate,
    in_order,
    integrated,
    integrated_bernstein,
    to_bernstein,
    to_powers,
)


class Piecewise(Interpolator):
    """A polynomial on each of some intervals, in one of two forms."""

    _bernstein = False
    c: Any
    x: Any
    extrapolate: Extrapolate
    axis: int

    def __init__(self, c: Any, x: Any, extrapolate: Extrapolate | None = None, axis: int = 0):
        if not holds_tensor(c, x):
            self._hold(c, x, extrapolate, axis)
            return
        name = type(self).__name__
        c, x = numbers(name, "c", c), in_order(name, _breakpoints(name, x))
        check_axes(name, c, least=2, what="c")
        if not 0 <= axis < len(c.shape) - 1:
            raise ArgumentError(
                f"{name}: got axis={axis}, expected one from 0 to {len(c.shape) - 2}"
            )
        c = moveaxis(moveaxis(c, axis + 1, 0), axis + 1, 0)
        if not c.shape[0] or c.shape[1] != x.shape[0] - 1:
            raise ShapeError(
                f"{name}: got c of shape {c.shape} for {x.shape[0]} breakpoints, expected at least "
                f"one row, of {x.shape[0] - 1} columns"
            )
        self._tracked(c, x, extrapolate, axis)

    def _tracked(self, c: Any, x: Any, extrapolate: Extrapolate | None, axis: int) -> None:
        """Become a polynomial of tensors."""
        if extrapolate is None:
            extrapolate = True
        elif extrapolate != "periodic":
            extrapolate = bool(extrapolate)
        for name, value in {"c": c, "x": x, "extrapolate": extrapolate, "axis": axis}.items():
            self.__dict__[name] = value

    @classmethod
    def construct_fast(
        cls, c: Any, x: Any, extrapolate: Extrapolate | None = None, axis: int = 0
    ) -> Self:
        """A polynomial of coefficients and breakpoints that need no check."""
        if not holds_tensor(c, x):
            return cls.around(scipys(cls._scipys_name()).construct_fast(c, x, extrapolate, axis))
        self = object.__new__(cls)
        self._tracked(c, x, extrapolate, axis)
        return self

    def __call__(self, x: Any, nu: int = 0, extrapolate: Extrapolate | None = None) -> Any:
        """Values at points, or those of a derivative.

        Args:
            x: The points.
            nu: Which derivative.
            extrapolate: What lies beyond the ends, if it is not what the object says.

        Returns:
            An array in which the axes of `x` take the place of the axis of the breakpoints.

        Raises:
            ArgumentError: `nu` is negative, or the points are complex.
        """
        if not holds_tensor(x, self):
            return self._scipy(x, nu, extrapolate)
        name = type(self).__name__
        nu, x = as_integer(nu, name, "nu"), real_numbers(name, "x", x)
        check_least(name, 0, nu=nu)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        c = self._differentiated(nu) if nu else self.c
        out = evaluate(c, self.x, x, extrapolate, self._bernstein)
        return arranged(out, len(x.shape), self.axis)

    def derivative(self, nu: int = 1) -> Self:
        """The derivative, as another piecewise polynomial.

        Args:
            nu: Of which order; a negative one is that of an antiderivative.
        """
        if nu < 0:
            return self.antiderivative(-nu)
        if not self.holds_tensor:
            return self.around(self._scipy.derivative(nu))
        return self.construct_fast(self._differentiated(nu), self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Self:
        """The antiderivative that is 0 at the first breakpoint.

        Args:
            nu: Of which order; a negative one is that of a derivative.
        """
        if nu <= 0:
            return self.derivative(-nu)
        if not self.holds_tensor:
            return self.around(self._scipy.antiderivative(nu))
        beyond = False if self.extrapolate == "periodic" else self.extrapolate
        return self.construct_fast(self._integrated(nu), self.x, beyond, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate | None = None) -> Any:
        """The integral between two numbers.

        Args:
            a: Where to begin.
            b: Where to end.
            extrapolate: What lies beyond the ends, if it is not what the object says.
        """
        if not holds_tensor(a, b, self):
            return self._scipy.integrate(a, b, extrapolate)
        name = f"{type(self).__name__}.integrate"
        a, b = real_numbers(name, "a", a), real_numbers(name, "b", b)
        if a.shape or b.shape:
            raise ShapeError(f"{name}: got limits of {a.shape} and {b.shape}, expected numbers")
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        return definite(self._integrated(1), self.x, a, b, extrapolate, self._bernstein)

    @classmethod
    def _from(
        cls, other: Any, form: type, convert: Callable[[Any, Any], Any], extrapolate: Any
    ) -> Self:
        """The polynomial that is equal to one in the other form."""
        if not isinstance(other, form):
            raise DTypeError(
                f"{cls.__name__}: got {a_type(other)}, expected a {form.__name__} to convert"
            )
        beyond = other.extrapolate if extrapolate is None else extrapolate  # type: ignore[attr-defined]
        c, x, axis = other.c, other.x, other.axis  # type: ignore[attr-defined]
        return cls.construct_fast(convert(c, x), x, beyond, axis)

    def _differentiated(self, order: int) -> Any:
        """Coefficients of the derivative."""
        if self._bernstein:
            return differentiated_bernstein(self.c, self.x, order)
        return differentiated(self.c, order)

    def _integrated(self, order: int) -> Any:
        """Coefficients of the antiderivative."""
        if self._bernstein:
            return integrated_bernstein(self.c, self.x, order)
        return integrated(self.c, self.x, order)


def _breakpoints(name: str, x: Any) -> Any:
    x = real_numbers(name, "x", x)
    check_axes(name, x, 1, what="x")
    if x.shape[0] < 2:
        raise ShapeError(f"{name}: got {x.shape[0]} breakpoints, expected at least two")
    return x


class PPoly(Piecewise):
    """A piecewise polynomial, as `scipy.interpolate.PPoly`.

    It is differentiable in its coefficients, in its breakpoints and in the points where it is
    evaluated. Made of plain arrays it is SciPy's.

    Args:
        c: The coefficients, of shape (k + 1, m, ...): those of the highest power first, then the
            intervals.
        x: The m + 1 breakpoints, in rising or falling order.
        extrapolate: Whether the first and last pieces go on beyond the ends; "periodic" repeats
            them, False gives NaN.
        axis: Which axis of `c` is that of the powers; that of the intervals comes next.

    Attributes:
        c: The coefficients, with the axis of the intervals second.
        x: The breakpoints.
        extrapolate: What lies beyond the ends.
        axis: The axis of results that the points take the place of.

    Raises:
        ArgumentError: `x` is in no order, or complex.
        ShapeError: `c` does not fit `x`.

    >>> c = np.array([[1.0, 0.0], [0.0, 2.0]])  # x on [0, 1], then 2
    >>> gt.grad(lambda p: gt.scipy.interpolate.PPoly(c, np.array([0.0, 1.0, 2.0]))(p))(0.5)
    np.float64(1.0)
    """

    @classmethod
    def from_spline(cls, tck: Any, extrapolate: Extrapolate | None = None) -> Self:
        """The polynomial that is equal to a spline.

        Args:
            tck: A `BSpline`, or its knots, coefficients and degree.
            extrapolate: What lies beyond the ends; as for the spline if it is None.
        """
        if holds_tensor(tck):
            if hasattr(tck, "tck"):
                extrapolate = tck.extrapolate if extrapolate is None else extrapolate
                tck = tck.tck
            t, c, k = real_numbers(cls.__name__, "t", tck[0]), array_of(tck[1]), int(tck[2])
            rows = [
                evaluate_spline(*differentiated_spline(t, c, k, m), t[:-1], True)
                / math.factorial(m)
                for m in reversed(range(k + 1))
            ]
            return cls.construct_fast(stack(rows), t, extrapolate)
        return cls.around(scipys(cls._scipys_name()).from_spline(tck, extrapolate))

    @classmethod
    def from_bernstein_basis(cls, bp: Any, extrapolate: Extrapolate | None = None) -> Self:
        """The polynomial by powers that is equal to a `BPoly`.

        Args:
            bp: The polynomial in Bernstein's form.
            extrapolate: What lies beyond the ends; as for `bp` if it is None.

        Raises:
            DTypeError: It is something else.
        """
        if holds_tensor(bp):
            return cls._from(bp, BPoly, to_powers, extrapolate)
        return cls.around(scipys(cls._scipys_name()).from_bernstein_basis(bp, extrapolate))

    def solve(
        self, y: Any = 0.0, discontinuity: bool = True, extrapolate: Extrapolate | None = None
    ) -> Any:
        """Where the polynomial has a value, as plain numbers.

        Args:
            y: The value.
            discontinuity: Whether to count jumps across it.
            extrapolate: Whether to look beyond the ends.

        Raises:
            UnsupportedError: The coefficients or `y` are being differentiated.
        """
        if not self.holds_tensor:
            (y,) = self._plain("solve", y)
            return self._scipy.solve(y, discontinuity, extrapolate)
        c, x, y = self._plain("solve", self.c, self.x, y)
        found = scipys("PPoly").construct_fast(c, x, self.extrapolate)
        return found.solve(y, discontinuity, extrapolate)

    def roots(self, discontinuity: bool = True, extrapolate: Extrapolate | None = None) -> Any:
        """Where the polynomial is 0, as plain numbers; see `solve`.

        Args:
            discontinuity: Whether to count jumps across 0.
            extrapolate: Whether to look beyond the ends.
        """
        return self.solve(0.0, discontinuity, extrapolate)


class BPoly(Piecewise):
    """A piecewise polynomial in Bernstein's form, as `scipy.interpolate.BPoly`.

    It is differentiable in its coefficients, in its breakpoints and in the points where it is
    evaluated. Made of plain arrays it is SciPy's.

    Args:
        c: The coefficients, of shape (k + 1, m, ...): those of the first B-polynomial first, then
            the intervals.
        x: The m + 1 breakpoints, in rising or falling order.
        extrapolate: Whether the first and last pieces go on beyond the ends; "periodic" repeats
            them, False gives NaN.
        axis: Which axis of `c` is that of the B-polynomials; that of the intervals comes next.

    Attributes:
        c: The coefficients, with the axis of the intervals second.
        x: The breakpoints.
        extrapolate: What lies beyond the ends.
        axis: The axis of results that the points take the place of.

    Raises:
        ArgumentError: `x` is in no order, or complex.
        ShapeError: `c` does not fit `x`.

    >>> c = np.array([[0.0], [0.0], [1.0]])  # x² on [0, 1]
    >>> gt.grad(lambda p: gt.scipy.interpolate.BPoly(c, np.array([0.0, 1.0]))(p))(0.5)
    np.float64(1.0)
    """

    _bernstein = True

    @classmethod
    def from_power_basis(cls, pp: Any, extrapolate: Extrapolate | None = None) -> Self:
        """The polynomial in this form that is equal to a `PPoly`.

        Args:
            pp: The polynomial by powers.
            extrapolate: What lies beyond the ends; as for `pp` if it is None.

        Raises:
            DTypeError: It is something else.
        """
        if holds_tensor(pp):
            return cls._from(pp, PPoly, to_bernstein, extrapolate)
        return cls.around(scipys(cls._scipys_name()).from_power_basis(pp, extrapolate))

    @classmethod
    def from_derivatives(
        cls, xi: Any, yi: Any, orders: Any = None, extrapolate: Extrapolate | None = None
    ) -> Self:
        """The polynomial with given values and derivatives at its breakpoints.

        Args:
            xi: The breakpoints.
            yi: For each of them a list of the value and of derivatives.
            orders: The degrees of the pieces.
            extrapolate: What lies beyond the ends.

        Raises:
            UnsupportedError: There are tensors.
        """
        if holds_tensor(xi, *yi):
            raise UnsupportedError(
                f"{cls.__name__}.from_derivatives: got tensors, expected plain arrays; "
                "CubicHermiteSpline and KroghInterpolator take tensors as derivatives"
            )
        made = scipys(cls._scipys_name()).from_derivatives(xi, yi, orders, extrapolate)
        return cls.around(made)
