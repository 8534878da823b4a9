"""`BSpline`: splines under SciPy's name, with derivatives in coefficients, points and knots."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_integer, normalize_axis
from gradtape.ops.checks import check_axes, check_least
from gradtape.ops.join import concatenate
from gradtape.ops.shape import moveaxis
from gradtape.solvers.interpolate.arguments import (
    arranged,
    holds_tensor,
    knots,
    numbers,
    real_numbers,
)
from gradtape.solvers.interpolate.basis import (
    differentiated_spline,
    evaluate_spline,
    integrated_spline,
    padded,
    repeated,
    spline_area,
)
from gradtape.solvers.interpolate.interpolator import Interpolator, scipys
from gradtape.solvers.interpolate.polynomials import Extrapolate


class BSpline(Interpolator):
    """A spline as a sum of B-splines, as `scipy.interpolate.BSpline`.

    It is differentiable in its coefficients, in its knots and in the points where it is evaluated.
    Made of plain arrays it is SciPy's.

    Args:
        t: The n + k + 1 knots, in rising order.
        c: The coefficients, at least n of them.
        k: The degree.
        extrapolate: Whether the outer pieces go on beyond the base interval, which is from t[k] to
            t[n]; "periodic" repeats them, False gives NaN.
        axis: The axis of `c` along which the coefficients are.

    Attributes:
        t: The knots.
        c: The coefficients, their axis first.
        k: The degree.
        extrapolate: What lies beyond the ends.
        axis: The axis of results that the points take the place of.
        tck: Knots, coefficients and degree.

    Raises:
        ArgumentError: The knots are not sorted, or `k` is negative.
        ShapeError: There are not enough knots or coefficients.

    >>> t = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0])
    >>> gt.grad(lambda c: gt.scipy.interpolate.BSpline(t, c, 2)(1.0))(np.ones(4))
    array([0. , 0.5, 0.5, 0. ])
    """

    t: Any
    c: Any
    k: int
    extrapolate: Extrapolate
    axis: int

    def __init__(
        self, t: Any, c: Any, k: Any, extrapolate: Extrapolate = True, axis: int = 0
    ) -> None:
        if not holds_tensor(t, c):
            self._hold(t, c, k, extrapolate, axis)
            return
        name = type(self).__name__
        k = as_integer(k, name, "k")
        check_least(name, 0, k=k)
        t, c = knots(name, t, least=2 * k + 2, what="t", strict=False), numbers(name, "c", c)
        check_axes(name, c, least=1, what="c")
        axis = normalize_axis(axis, len(c.shape), name)
        c = moveaxis(c, axis, 0)
        if c.shape[0] < t.shape[0] - k - 1:
            raise ShapeError(
                f"{name}: got {c.shape[0]} coefficients for {t.shape[0]} knots and degree {k}, "
                f"expected at least {t.shape[0] - k - 1}"
            )
        self._tracked(t, c, k, extrapolate, axis)

    def _tracked(self, t: Any, c: Any, k: int, extrapolate: Extrapolate, axis: int) -> None:
        """Become a spline of tensors."""
        beyond = extrapolate if extrapolate == "periodic" else bool(extrapolate)
        for name, value in {"t": t, "c": c, "k": k, "extrapolate": beyond, "axis": axis}.items():
            self.__dict__[name] = value

    @classmethod
    def construct_fast(
        cls, t: Any, c: Any, k: int, extrapolate: Extrapolate = True, axis: int = 0
    ) -> Self:
        """A spline of knots and coefficients that need no check."""
        if not holds_tensor(t, c):
            made = scipys(cls._scipys_name()).construct_fast(t, c, k, extrapolate, axis)
            return cls.around(made)
        self = object.__new__(cls)
        self._tracked(t, c, k, extrapolate, axis)
        return self

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Extrapolate = True) -> Self:
        """The B-spline on given knots; its degree is their number less two.

        Args:
            t: The knots.
            extrapolate: What lies beyond them.
        """
        if not holds_tensor(t):
            return cls.around(scipys(cls._scipys_name()).basis_element(t, extrapolate))
        name = f"{cls.__name__}.basis_element"
        t = knots(name, t, what="t", strict=False)
        k = t.shape[0] - 2
        t = concatenate([repeated(t[0] - 1, k), t, repeated(t[-1] + 1, k)])
        c = np.zeros(t.shape[0])
        c[k] = 1.0
        return cls.construct_fast(t, c, k, extrapolate)

    @classmethod
    def design_matrix(cls, x: Any, t: Any, k: int, extrapolate: Extrapolate = False) -> Any:
        """The values of all B-splines at points, as a sparse array of SciPy.

        Args:
            x: The points.
            t: The knots.
            k: The degree.
            extrapolate: Whether points may lie beyond the base interval.

        Raises:
            UnsupportedError: There are tensors.
        """
        if holds_tensor(x, t):
            raise UnsupportedError(
                f"{cls.__name__}.design_matrix: got tensors, expected plain arrays, as the matrix "
                "is a sparse one of SciPy; BSpline(t, np.eye(len(t) - k - 1), k)(x) is the same "
                "as a dense matrix"
            )
        return scipys(cls._scipys_name()).design_matrix(x, t, k, extrapolate)

    @classmethod
    def from_power_basis(cls, pp: Any, bc_type: str = "not-a-knot") -> Self:
        """The spline that is equal to a `CubicSpline` of plain arrays.

        Args:
            pp: The spline.
            bc_type: The conditions that it was made with.

        Raises:
            UnsupportedError: It was made of tensors.
        """
        if holds_tensor(pp):
            raise UnsupportedError(
                f"{cls.__name__}.from_power_basis: got a spline of tensors, expected one of plain "
                "arrays; use make_interp_spline"
            )
        return cls.around(scipys(cls._scipys_name()).from_power_basis(pp, bc_type))

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Extrapolate | None = None) -> Any:
        """Values at points, or those of a derivative.

        Args:
            x: The points.
            nu: Which derivative.
            extrapolate: What lies beyond the ends, if it is not what the object says.

        Returns:
            An array in which the axes of `x` take the place of the axis of the coefficients.

        Raises:
            ArgumentError: `nu` is negative, or the points are complex.
        """
        if not holds_tensor(x, self):
            return self._scipy(x, nu, extrapolate)
        name = type(self).__name__
        nu, x = as_integer(nu, name, "nu"), real_numbers(name, "x", x)
        check_least(name, 0, nu=nu)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        tck = differentiated_spline(*self.tck, nu) if nu else self.tck
        return arranged(evaluate_spline(*tck, x, extrapolate), len(x.shape), self.axis)

    def derivative(self, nu: int = 1) -> Self:
        """The derivative, as another spline.

        Args:
            nu: Of which order, at most the degree.
        """
        if not self.holds_tensor:
            return self.around(self._scipy.derivative(nu))
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            raise ArgumentError(
                f"{type(self).__name__}.derivative: got nu={nu} for a spline of degree {self.k}, "
                "expected no more than the degree"
            )
        t, c, k = differentiated_spline(*self.tck, nu)
        return self.construct_fast(t, padded(c, t.shape[0]), k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Self:
        """The antiderivative that is 0 at the first knot, as another spline.

        Args:
            nu: Of which order.
        """
        if not self.holds_tensor:
            return self.around(self._scipy.antiderivative(nu))
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = integrated_spline(*self.tck, nu)
        beyond = False if self.extrapolate == "periodic" else self.extrapolate
        return self.construct_fast(t, padded(c, t.shape[0]), k, beyond, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate | None = None) -> Any:
        """The integral between two numbers.

        Args:
            a: Where to begin.
            b: Where to end.
            extrapolate: What lies beyond the ends, if it is not what the object says; False leaves
                out what is beyond them.
        """
        if not holds_tensor(a, b, self):
            return self._scipy.integrate(a, b, extrapolate)
        name = f"{type(self).__name__}.integrate"
        a, b = real_numbers(name, "a", a), real_numbers(name, "b", b)
        if a.shape or b.shape:
            raise ShapeError(f"{name}: got limits of {a.shape} and {b.shape}, expected numbers")
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        return spline_area(*self.tck, a, b, extrapolate)
