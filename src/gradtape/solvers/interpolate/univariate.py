"""`UnivariateSpline` and `InterpolatedUnivariateSpline` under SciPy's names, with derivatives."""

from __future__ import annotations

from typing import Any

from gradtape.errors import UnsupportedError
from gradtape.ops.arguments import as_integer
from gradtape.ops.checks import check_between, check_choice
from gradtape.ops.join import stack
from gradtape.solvers.interpolate.arguments import holds_tensor, real_numbers
from gradtape.solvers.interpolate.basis import (
    differentiated_spline,
    integrated_spline,
    spline_area,
)
from gradtape.solvers.interpolate.fitpack import beyond
from gradtape.solvers.interpolate.interpolator import Interpolator
from gradtape.solvers.interpolate.through_points import make_interp_spline

_BEYOND = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


class UnivariateSpline(Interpolator):
    """A spline of one variable, as `scipy.interpolate.UnivariateSpline`.

    With tensors it goes through all points, and needs `s=0`: a smoothing spline chooses knots one
    by one, so its result jumps, and has no derivative.

    Args:
        x: The places of the points, in rising order.
        y: The values there.
        w: Without tensors: weights.
        bbox: Without tensors: the ends of the base interval.
        k: The degree, from 1 to 5.
        s: How far the spline may be from the points; 0 with tensors.
        ext: Beyond the ends: 0 or "extrapolate", 1 or "zeros", 2 or "raise", 3 or "const".
        check_finite: Without tensors: whether SciPy looks for NaN and infinity.

    Raises:
        UnsupportedError: With tensors: `s` is not 0, or there are weights or ends.

    >>> def at(y):
    ...     return gt.scipy.interpolate.UnivariateSpline(np.arange(4.0), y, s=0)(1.5)
    >>> gt.grad(at)(np.array([0.0, 1.0, 8.0, 27.0]))
    array([-0.0625,  0.5625,  0.5625, -0.0625])
    """

    _tck: tuple[Any, Any, int]
    _ext: int

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = [None] * 2,
        k: int = 3,
        s: Any = None,
        ext: int | str = 0,
        check_finite: bool = False,
    ) -> None:
        if not holds_tensor(x, y, w, bbox, s):
            self._hold(x, y, w, bbox, k, s, ext, check_finite)
            return
        if holds_tensor(s) or s is None or s != 0:
            raise UnsupportedError(
                f"{type(self).__name__}: got s={s!r} where there are tensors, expected 0; a "
                "smoothing spline has no derivative, as its knots are chosen one by one"
            )
        self._through(x, y, w, bbox, k, ext)

    def _through(self, x: Any, y: Any, w: Any, bbox: Any, k: int, ext: int | str) -> None:
        name = type(self).__name__
        if w is not None or any(end is not None for end in bbox):
            raise UnsupportedError(
                f"{name}: got w or bbox where there are tensors, expected them to be left out; use "
                "make_interp_spline"
            )
        check_between(name, 1, 5, k=k)
        self.__dict__["_tck"] = make_interp_spline(x, y, k).tck
        self.__dict__["_ext"] = _rule(name, ext)

    @classmethod
    def _of(cls, tck: tuple[Any, Any, int], ext: int) -> UnivariateSpline:
        self = object.__new__(UnivariateSpline)
        self.__dict__.update(_tck=tck, _ext=ext)
        return self

    def _parts(self) -> tuple[Any, Any, int]:
        if self.holds_tensor:
            return self._tck
        t, c, k = self._scipy._eval_args
        return t, c, k

    def __call__(self, x: Any, nu: int = 0, ext: int | str | None = None) -> Any:
        """Values at points, or those of a derivative.

        Args:
            x: The points.
            nu: Which derivative.
            ext: What lies beyond the ends, if it is not what the object says.
        """
        if not holds_tensor(x, self):
            return self._scipy(x, nu, ext)
        name = type(self).__name__
        rule = (self._ext if self.holds_tensor else self._scipy.ext) if ext is None else ext
        t, c, k = self._parts()
        check_between(name, 0, k, nu=nu)
        return beyond(t, c, k, real_numbers(name, "x", x), nu, _rule(name, rule))

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """The derivative, as another spline.

        Args:
            n: Of which order, at most the degree.
        """
        if not self.holds_tensor:
            return UnivariateSpline.around(self._scipy.derivative(n))
        check_between(type(self).__name__, 0, self._tck[2], n=n)
        # Beyond the ends a constant has the derivative 0.
        return self._of(differentiated_spline(*self._tck, n), 1 if self._ext == 3 else self._ext)

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """The antiderivative that is 0 at the first knot, as another spline.

        Args:
            n: Of which order.
        """
        if not self.holds_tensor:
            return UnivariateSpline.around(self._scipy.antiderivative(n))
        return self._of(integrated_spline(*self._tck, n), self._ext)

    def integral(self, a: Any, b: Any) -> Any:
        """The integral between two numbers; the spline counts as 0 beyond its ends.

        Args:
            a: Where to begin.
            b: Where to end.
        """
        if not holds_tensor(a, b, self):
            return self._scipy.integral(a, b)
        name = type(self).__name__
        a, b = real_numbers(name, "a", a), real_numbers(name, "b", b)
        return spline_area(*self._parts(), a, b, False)

    def derivatives(self, x: Any) -> Any:
        """The value and all derivatives at a point.

        Args:
            x: The point.
        """
        if not holds_tensor(x, self):
            return self._scipy.derivatives(x)
        return stack([self(x, nu, 0) for nu in range(self._parts()[2] + 1)])

    def get_knots(self) -> Any:
        """The ends of the pieces."""
        t, _, k = self._parts()
        return t[k : t.shape[0] - k]

    def get_coeffs(self) -> Any:
        """The coefficients of the B-splines."""
        t, c, k = self._parts()
        return c[: t.shape[0] - k - 1]


class InterpolatedUnivariateSpline(UnivariateSpline):
    """The spline through points, as `scipy.interpolate.InterpolatedUnivariateSpline`.

    Args:
        x: The places of the points, in rising order.
        y: The values there.
        w: Without tensors: weights.
        bbox: Without tensors: the ends of the base interval.
        k: The degree, from 1 to 5.
        ext: Beyond the ends: 0 or "extrapolate", 1 or "zeros", 2 or "raise", 3 or "const".
        check_finite: Without tensors: whether SciPy looks for NaN and infinity.

    Raises:
        UnsupportedError: With tensors: there are weights or ends.

    >>> def area(y):
    ...     return gt.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(4.0), y).integral(
    ...         0, 3
    ...     )
    >>> gt.grad(area)(np.zeros(4))
    array([0.375, 1.125, 1.125, 0.375])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Any = [None] * 2,
        k: int = 3,
        ext: int | str = 0,
        check_finite: bool = False,
    ) -> None:
        if not holds_tensor(x, y, w, bbox):
            self._hold(x, y, w, bbox, k, ext, check_finite)
            return
        self._through(x, y, w, bbox, k, ext)


def _rule(name: str, ext: int | str) -> int:
    """FITPACK's number of a rule for points beyond the ends."""
    if ext in _BEYOND:
        return _BEYOND[str(ext)]
    check_choice(name, (*range(4), *_BEYOND), ext=ext)
    return as_integer(ext, name, "ext")
