"""The base of continuous distributions: locations, scales, supports and their ends.

A distribution is defined for loc 0 and scale 1, by formulas that hold inside of its support.
Outside of it, formulas are evaluated at some point inside, and the result is not used: so there is
no NaN, and the gradient there is 0.

Unless a distribution says otherwise, its shape parameters have to be positive.

Where a density begins like a power of z, at z = 0, that power is given separately. Its logarithm is
then k·(log(x − loc) − log scale), so that its derivative by the scale is right where z is 0, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from gradtape.ops.arguments import as_array, weak_or_array
from gradtape.ops.arithmetic import power
from gradtape.ops.cast import stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import where
from gradtape.ops.special.entropy import xlog1py, xlogy
from gradtape.ops.stats.base import Bounds, Distribution, Formula, all_positive
from gradtape.ops.stats.tails import FLAT, exp_minus
from gradtape.typing import Array, ArrayLike


class _Point(NamedTuple):
    """Where a method is evaluated."""

    z: Any  # at loc 0 and scale 1
    safe: Any  # the same, and a point of the support where it is outside
    log_safe: Any  # the logarithm of that, if the support begins at 0
    inside: Any
    known: Any  # False where an argument is NaN or a scale is not positive
    shapes: list[Any]
    scale: Any
    dtype: Any  # of the result


class Continuous(Distribution):
    """A continuous distribution of `scipy.stats`, differentiable in all its arguments.

    Methods take the point of evaluation, the shape parameters, and then `loc` and `scale`, by
    position or by name, as in SciPy.

    >>> gt.scipy.stats.norm.logpdf(np.array([0.0, 1.0]), loc=0.0, scale=2.0)
    array([-1.61208571, -1.73708571])
    """

    defaults: ClassVar[dict[str, float]] = {"loc": 0.0, "scale": 1.0}

    def __init__(
        self,
        name: str,
        shapes: Sequence[str] = (),
        *,
        support: Bounds = (-math.inf, math.inf),
        open_below: bool = False,
        symmetric: bool = False,
        valid: Formula = all_positive,
        powers: tuple[Formula, Formula | None] | None = None,
        **formulas: Formula | float,
    ) -> None:
        if symmetric:  # around 0
            formulas = {**reflected(formulas), **formulas}
        super().__init__(name, shapes, support, valid, formulas)
        # A point of the support, if that does not depend on the shapes.
        self._inside: Any = None if any(map(callable, support)) else float(between(*support))
        # Whether formulas do not hold at the lower bound itself.
        self._open_below = open_below
        # Of a support that begins at 0: the powers of z and of 1 − z that the density has beside
        # the exponential of its formula. Formulas of logarithms of tails take log z after z then.
        self._powers = powers

    # ---- densities ---------------------------------------------------------------------------

    def logpdf(self, x: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the density; -inf outside of the support.

        >>> gt.scipy.stats.expon.logpdf(np.array([-1.0, 2.0]))
        array([-inf,  -2.])
        """
        at = self._point("logpdf", x, args, kwds)
        value = self._log_density(at.safe, at.log_safe, at.shapes) - log(at.scale)
        return self._at(at, where(at.inside, value, -math.inf))

    def pdf(self, x: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """The density; 0 outside of the support.

        >>> gt.scipy.stats.expon.pdf(np.array([-1.0, 0.0]))
        array([0., 1.])
        """
        at = self._point("pdf", x, args, kwds)
        if "pdf" in self._formulas:
            value = self._formula("pdf")(at.safe, *at.shapes)
        elif self._powers is None:
            value = exp_minus(-self._log_density(at.safe, None, at.shapes))
        else:
            value = self._density(at)
        return self._at(at, where(at.inside, value / at.scale, 0.0))

    def nnlf(self, theta: Sequence[Any], x: ArrayLike) -> Array:
        """Minus the sum of logarithms of densities, which maximum likelihood minimizes.

        Infinite where an observation is outside of the support, and for invalid parameters.

        Args:
            theta: The shape parameters, `loc` and `scale`.
            x: The observations.

        >>> gt.scipy.stats.expon.nnlf((0.0, 1.0), np.array([1.0, 2.0]))
        np.float64(3.0)
        """
        total = -sum_of(self.logpdf(x, *theta))
        return where(total == total, total, math.inf)

    def _log_density(self, z: Any, log_z: Any, shapes: list[Any]) -> Any:
        value = self._formula("logpdf")(z, *shapes)
        if self._powers is None:
            return value
        own, above = self._powers
        k = own(*shapes)
        # 0·log 0 is 0, whatever a derivative by either would be.
        nothing = (k == 0) & (log_z == -math.inf)
        value = value + where(nothing, 0.0, k * where(nothing, 0.0, log_z))
        return value if above is None else value + xlog1py(above(*shapes), -z)

    def _density(self, at: _Point) -> Any:
        """The density by powers next to the ends of the support, where its logarithm is infinite.

        Derivatives at an end are those from inside: infinite, finite or 0 as the power has them.
        """
        assert self._powers is not None
        own, above = self._powers
        distance, k, other, lower = at.safe, own(*at.shapes), None, True
        if above is not None:
            lower, high = at.safe < 0.5, above(*at.shapes)
            distance = where(lower, at.safe, 1 - at.safe)
            k, other = where(lower, k, high), where(lower, high, k)
        by_power = (distance < 1) & (k <= FLAT)
        flat = (distance == 0) & (k > FLAT)
        # Each branch is computed only where it is taken, with 1/2 elsewhere.
        d = where(by_power, distance, 0.5)
        z = d if above is None else where(lower, d, 1 - d)
        rest = self._formula("logpdf")(z, *at.shapes)
        rest = rest if other is None else rest + xlog1py(other, -d)
        k = k if isinstance(k, int | float) else where(by_power, k, 1.0)
        near = power(d, k) * exp(where(by_power, rest, 0.0))
        skipped = by_power | flat
        z, log_z = where(skipped, 0.5, at.safe), where(skipped, math.log(0.5), at.log_safe)
        far = exp_minus(-self._log_density(z, log_z, at.shapes))
        return where(by_power, near, where(flat, 0.0, far))

    # ---- tails and quantiles -----------------------------------------------------------------

    def _tail(self, name: str, ends: tuple[float, float], x: Any, args: Any, kwds: Any) -> Any:
        at = self._point(name, x, args, kwds)
        low, _ = self._bounds(at.shapes)
        with_log = self._powers is not None and name.startswith("log")
        place = (at.safe, at.log_safe) if with_log else (at.safe,)
        value = self._formula(name)(*place, *at.shapes)
        return self._at(at, where(at.inside, value, where(at.z <= low, *ends)))

    def ppf(self, q: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """The quantile: where `cdf` is `q`.

        >>> gt.scipy.stats.norm.ppf(np.array([0.5, 0.975]))
        array([0.        , 1.95996398])
        """
        return self._quantile("ppf", q, args, kwds)

    def isf(self, q: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """The upper quantile: where `sf` is `q`.

        >>> gt.scipy.stats.norm.isf(np.array([0.025]))
        array([1.95996398])
        """
        return self._quantile("isf", q, args, kwds)

    def _quantile(self, name: str, q: Any, args: Any, kwds: Any) -> Any:
        q = weak_or_array(q)
        found, shapes, dtype = self._arguments(name, args, kwds, q)
        inside, scale = as_array((q >= 0) & (q <= 1)), found["scale"]
        value = found["loc"] + scale * self._formula(name)(where(inside, q, 0.5), *shapes)
        return self._result(value, inside & as_array(scale > 0), shapes, dtype)

    def median(self, *args: Any, **kwds: Any) -> Array:
        """The median.

        >>> gt.scipy.stats.norm.median(3.0, 2.0)
        np.float64(3.0)
        """
        return self.ppf(0.5, *args, **kwds)

    def interval(self, confidence: ArrayLike, *args: Any, **kwds: Any) -> tuple[Array, Array]:
        """The quantiles that enclose a share of probability, with equal tails below and above.

        >>> gt.scipy.stats.uniform.interval(0.5)
        (np.float64(0.25), np.float64(0.75))
        """
        outside = 0.5 * (1 - weak_or_array(confidence))
        return self.ppf(outside, *args, **kwds), self.isf(outside, *args, **kwds)

    # ---- where formulas hold -----------------------------------------------------------------

    def _point(self, name: str, x: Any, args: Any, kwds: Any) -> _Point:
        """The argument at loc 0 and scale 1, and the parameters."""
        x = weak_or_array(x)
        found, shapes, dtype = self._arguments(name, args, kwds, x)
        loc, scale = found["loc"], found["scale"]
        # Infinities stay: their quotient by a scale has no derivative in it.
        finite = isfinite(x)
        near = (x if finite else 0.0) if isinstance(x, int | float) else where(finite, x, 0)
        away = as_array(near - loc)
        far = stop_gradient(as_array(x - loc) / scale)
        z = where(finite, away / self._width(name, away, shapes, scale), far)
        known = (z == z) & as_array(scale > 0)
        safe, inside = self._into_support(z, away, shapes)
        log_safe = None
        if self._powers is not None:
            logs = _log_inside(away, inside) - _log_inside(scale, inside)
            log_safe = where(inside, logs, math.log(self._inside))
        return _Point(z, safe, log_safe, inside, known, shapes, scale, dtype)

    def _width(self, name: str, away: Any, shapes: list[Any], scale: Any) -> Any:
        """The scale, without gradient where z is 0 for any scale and the slope by z is infinite."""
        if self._powers is None or isinstance(scale, int | float):
            return scale
        k = self._powers[0](*shapes)
        steep = (k < 0) | ((k > 0) & (k < 1)) if name == "pdf" else k < 0
        return where((away == 0) & steep, stop_gradient(scale), scale)

    def _into_support(self, z: Any, away: Any, shapes: list[Any]) -> tuple[Any, Any]:
        """The argument, with a point of the support in place of others; and where it is inside.

        Infinities are outside, so that no formula has to handle them.
        """
        low, high = self._bounds(shapes)
        inside = (z > low if self._open_below else z >= low) & (z <= high) & isfinite(z)
        if self._powers is not None:
            inside = inside & (away >= 0)  # where that is too little below 0, z is −0.0
        point = stop_gradient(between(low, high)) if self._inside is None else self._inside
        return where(inside, z, point), inside

    def _at(self, at: _Point, value: Any) -> Any:
        """The result of a method: a value where the argument and the parameters are known."""
        return self._result(value, at.known, at.shapes, at.dtype)


def between(low: Any, high: Any) -> Any:
    """A point between bounds; one or both may be infinite."""
    below, above = low == -math.inf, high == math.inf
    middle = 0.5 * (where(below, 0.0, low) + where(above, 0.0, high))
    return where(below, where(above, 0.0, high - 1.0), where(above, low + 1.0, middle))


_OPPOSITES = {"cdf": "sf", "logcdf": "logsf", "ppf": "isf"}
_OPPOSITES |= {upper: lower for lower, upper in _OPPOSITES.items()}


def reflected(formulas: dict[str, Any]) -> dict[str, Any]:
    """The formulas of −X, given those of X: tails change places, and points their sign."""
    return {
        _OPPOSITES.get(name, name): _reflected(name, formula) for name, formula in formulas.items()
    }


def _reflected(name: str, formula: Any) -> Any:
    if name in ("var", "entropy"):
        return formula
    if not callable(formula):
        return -formula
    if name in ("mean", "ppf", "isf"):
        return lambda *args: -formula(*args)
    return lambda z, *shapes: formula(-z, *shapes)


def _log_inside(x: Any, inside: Any) -> Any:
    """The logarithm, without a warning for 0; Python's numbers do not decide a dtype."""
    if isinstance(x, int | float):
        return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan
    return xlogy(1.0, where(inside, x, 1.0))
