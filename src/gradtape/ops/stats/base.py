"""What distributions have in common: places and scales, supports, tails.

A distribution is stated for place 0 and scale 1, by formulas that hold inside of its support.
Outside of it, formulas are evaluated at some point inside instead, and not used: so they make no
NaN, and the gradient there is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.ops.arguments import as_array, weak_or_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import exp, log, log1p
from gradtape.ops.rounding import floor
from gradtape.ops.select import where
from gradtape.typing import Array, ArrayLike

Formula = Callable[..., Any]
# Bounds of a support: numbers, or functions of the shape parameters.
Bounds = tuple[float | Formula, float | Formula]


class Distribution:
    """What finds parameters among arguments: shapes, then `loc` and, of continuous ones, `scale`.

    Attributes:
        name: Its name in `scipy.stats`.
        shapes: The names of its shape parameters.
    """

    defaults: ClassVar[dict[str, float]]

    def __init__(self, name: str, shapes: Sequence[str], formulas: dict[str, Formula]) -> None:
        self.name = name
        self.shapes = tuple(shapes)
        self._formulas = formulas

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with parameters given for good.

        >>> gt.stats.norm(1.0, 2.0).cdf(np.array([1.0]))
        array([0.5])
        """
        return Frozen(self, self._parameters("the distribution", args, kwds))

    def _parameters(self, method: str, args: Any, kwds: dict[str, Any]) -> dict[str, Any]:
        names = (*self.shapes, *self.defaults)
        given = dict(zip(names, args, strict=False))
        twice, unknown = given.keys() & kwds.keys(), kwds.keys() - set(names)
        found = {**self.defaults, **given, **kwds}
        missing = [name for name in self.shapes if name not in found]
        if len(args) > len(names) or twice or unknown or missing:
            raise ArgumentError(
                f"{self.name}: {method} came with {len(args)} parameters by position and "
                f"{', '.join(kwds) or 'none'} by name; needed {', '.join(names)}"
            )
        return {name: weak_or_array(value) for name, value in found.items()}

    def _formula(self, name: str) -> Formula:
        if name not in self._formulas:
            known = ", ".join(sorted(self._formulas))
            raise UnsupportedError(
                f"{self.name}: has no {name} in gradtape; it has {known}; use scipy.stats on "
                "t.detach().numpy() to compute without gradient"
            )
        return self._formulas[name]


class Frozen:
    """A distribution with its parameters: the methods take no more than where to evaluate them."""

    def __init__(self, distribution: Distribution, parameters: dict[str, Any]) -> None:
        self.distribution = distribution
        self.parameters = parameters

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.distribution, name)
        return lambda x: method(x, **self.parameters)


class Continuous(Distribution):
    """A continuous distribution of `scipy.stats`, differentiable in all its arguments.

    Methods take where to evaluate them, the shape parameters, and then `loc` and `scale`, by
    position or by name, as in SciPy.

    >>> gt.stats.norm.logpdf(np.array([0.0, 1.0]), loc=0.0, scale=2.0)
    array([-1.61208571, -1.73708571])
    """

    defaults: ClassVar[dict[str, float]] = {"loc": 0.0, "scale": 1.0}

    def __init__(
        self,
        name: str,
        shapes: Sequence[str] = (),
        *,
        support: Bounds = (-math.inf, math.inf),
        inside: float | Formula = 0.0,
        open_below: bool = False,
        valid: Formula | None = None,
        **formulas: Formula,
    ) -> None:
        super().__init__(name, shapes, formulas)
        self._support, self._inside, self._valid = support, inside, valid
        # Whether formulas do not hold at the lower bound itself.
        self._open_below = open_below

    # ---- densities ---------------------------------------------------------------------------

    def logpdf(self, x: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the density; -inf outside of the support.

        >>> gt.stats.expon.logpdf(np.array([-1.0, 2.0]))
        array([-inf,  -2.])
        """
        z, shapes, _, scale = self._standard("logpdf", x, args, kwds)
        safe, inside = self._into_support(z, shapes)
        value = self._formula("logpdf")(safe, *shapes) - log(scale)
        return self._checked(where(inside, value, -math.inf), z, shapes, scale)

    def pdf(self, x: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The density; 0 outside of the support.

        >>> gt.stats.expon.pdf(np.array([-1.0, 0.0]))
        array([0., 1.])
        """
        return exp(self.logpdf(x, *args, **kwds))

    # ---- tails -------------------------------------------------------------------------------

    def cdf(self, x: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The probability of at most `x`.

        >>> gt.stats.uniform.cdf(np.array([-1.0, 0.25, 2.0]))
        array([0.  , 0.25, 1.  ])
        """
        return self._tail("cdf", (0.0, 1.0), x, args, kwds)

    def sf(self, x: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The probability of more than `x`, exact where it is small.

        >>> gt.stats.uniform.sf(np.array([-1.0, 0.25, 2.0]))
        array([1.  , 0.75, 0.  ])
        """
        return self._tail("sf", (1.0, 0.0), x, args, kwds)

    def logcdf(self, x: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of at most `x`.

        >>> gt.stats.norm.logcdf(np.array([-100.0]))
        array([-5005.52420869])
        """
        return self._tail("logcdf", (-math.inf, 0.0), x, args, kwds)

    def logsf(self, x: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of more than `x`.

        >>> gt.stats.expon.logsf(np.array([1000.0]))
        array([-1000.])
        """
        return self._tail("logsf", (0.0, -math.inf), x, args, kwds)

    def _tail(self, name: str, ends: tuple[float, float], x: Any, args: Any, kwds: Any) -> Any:
        z, shapes, _, scale = self._standard(name, x, args, kwds)
        low, _ = self._bounds(shapes)
        safe, inside = self._into_support(z, shapes)
        if name in self._formulas or not name.startswith("log"):
            value = self._formula(name)(safe, *shapes)
        elif name == "logcdf":
            value = log_of(self._formula("cdf")(safe, *shapes), self._formula("sf")(safe, *shapes))
        else:
            sf, cdf = self._formula("sf"), self._formula("cdf")
            value = log_of(sf(safe, *shapes), cdf(safe, *shapes))
        value = where(inside, value, where(z <= low, ends[0], ends[1]))
        return self._checked(value, z, shapes, scale)

    # ---- quantiles ---------------------------------------------------------------------------

    def ppf(self, q: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The quantile: where `cdf` is `q`.

        >>> gt.stats.norm.ppf(np.array([0.5, 0.975]))
        array([0.        , 1.95996398])
        """
        return self._quantile("ppf", q, args, kwds)

    def isf(self, q: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The upper quantile: where `sf` is `q`.

        >>> gt.stats.norm.isf(np.array([0.025]))
        array([1.95996398])
        """
        return self._quantile("isf", q, args, kwds)

    def _quantile(self, name: str, q: Any, args: Any, kwds: Any) -> Any:
        found = self._parameters(name, args, kwds)
        shapes = [found[shape] for shape in self.shapes]
        q = weak_or_array(q)
        inside = (q >= 0) & (q <= 1)
        value = self._formula(name)(where(inside, q, 0.5), *shapes)
        value = where(inside, found["loc"] + found["scale"] * value, math.nan)
        return self._checked(value, q, shapes, found["scale"])

    # ---- where formulas hold -----------------------------------------------------------------

    def _standard(self, name: str, x: Any, args: Any, kwds: Any) -> tuple[Any, list[Any], Any, Any]:
        """The argument at place 0 and scale 1, and the parameters."""
        found = self._parameters(name, args, kwds)
        shapes = [found[shape] for shape in self.shapes]
        loc, scale = found["loc"], found["scale"]
        x = weak_or_array(x)
        if not isinstance(x, int | float) and x.dtype.kind != "f":
            return as_array((x - loc) / scale), shapes, loc, scale
        # Infinities stay what they are: their quotient by a scale has no derivative in it.
        finite = isfinite(x)
        near = (x if finite else 0.0) if isinstance(x, int | float) else where(finite, x, 0.0)
        return as_array(where(finite, (near - loc) / scale, x)), shapes, loc, scale

    def _bounds(self, shapes: list[Any]) -> tuple[Any, Any]:
        low, high = (bound(*shapes) if callable(bound) else bound for bound in self._support)
        return low, high

    def _into_support(self, z: Any, shapes: list[Any]) -> tuple[Any, Any]:
        """The argument, with a point of the support in place of others; and where it is inside.

        Infinities are outside, so that no formula has to care for them.
        """
        low, high = self._bounds(shapes)
        inside = (z > low if self._open_below else z >= low) & (z <= high) & isfinite(z)
        point = self._inside(*shapes) if callable(self._inside) else self._inside
        return where(inside, z, stop_gradient(point) if callable(self._inside) else point), inside

    def _checked(self, value: Any, z: Any, shapes: list[Any], scale: Any) -> Any:
        """NaN where an argument is, and for parameters that make no distribution."""
        known = (z == z) & (as_array(scale) > 0)
        if self._valid is not None:
            known = known & self._valid(*shapes)
        return unboxed(where(known, value, math.nan))


class Discrete(Distribution):
    """A discrete distribution of `scipy.stats`, differentiable in its parameters.

    Methods take the count, the shape parameters, and then `loc`, by position or by name, as in
    SciPy. Probabilities are piecewise constant in the count: its gradient is 0.

    >>> gt.stats.poisson.logpmf(np.array([0, 1]), 2.0)
    array([-2.        , -1.30685282])
    """

    defaults: ClassVar[dict[str, float]] = {"loc": 0}

    def __init__(
        self,
        name: str,
        shapes: Sequence[str],
        *,
        support: Bounds,
        valid: Formula,
        **formulas: Formula,
    ) -> None:
        super().__init__(name, shapes, formulas)
        self._support, self._valid = support, valid

    def logpmf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of `k`; -inf if that is impossible.

        >>> gt.stats.bernoulli.logpmf(np.array([1, 2]), 0.5)
        array([-0.69314718,        -inf])
        """
        k, shapes = self._count("logpmf", k, args, kwds)
        low, high = self._bounds(shapes)
        inside = (k >= low) & (k <= high) & (k == floor(k))
        value = self._formula("logpmf")(where(inside, k, low), *shapes)
        return self._checked(where(inside, value, -math.inf), k, shapes)

    def pmf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The probability of `k`.

        >>> gt.stats.bernoulli.pmf(np.array([0, 1]), 0.25)
        array([0.75, 0.25])
        """
        return exp(self.logpmf(k, *args, **kwds))

    def cdf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The probability of at most `k`.

        >>> gt.stats.bernoulli.cdf(np.array([0, 1]), 0.25)
        array([0.75, 1.  ])
        """
        return self._tail("cdf", (0.0, 1.0), k, args, kwds)

    def sf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """The probability of more than `k`.

        >>> gt.stats.bernoulli.sf(np.array([0, 1]), 0.25)
        array([0.25, 0.  ])
        """
        return self._tail("sf", (1.0, 0.0), k, args, kwds)

    def logcdf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of at most `k`.

        >>> gt.stats.bernoulli.logcdf(np.array([0]), 0.25)
        array([-0.28768207])
        """
        return self._log_tail("logcdf", ("cdf", "sf"), k, args, kwds)

    def logsf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of more than `k`.

        >>> gt.stats.bernoulli.logsf(np.array([0]), 0.5)
        array([-0.69314718])
        """
        return self._log_tail("logsf", ("sf", "cdf"), k, args, kwds)

    def _log_tail(self, name: str, tails: tuple[str, str], k: Any, args: Any, kwds: Any) -> Any:
        if name in self._formulas:
            return self._tail(name, (0.0, -math.inf), k, args, kwds)
        tail, rest = (getattr(self, each)(k, *args, **kwds) for each in tails)
        return unboxed(log_of(tail, rest))

    def _tail(self, name: str, ends: tuple[float, float], k: Any, args: Any, kwds: Any) -> Any:
        k, shapes = self._count(name, k, args, kwds)
        k = floor(k)
        low, high = self._bounds(shapes)
        inside = (k >= low) & (k < high)
        value = self._formula(name)(where(inside, k, low), *shapes)
        value = where(inside, value, where(k < low, ends[0], ends[1]))
        return self._checked(value, k, shapes)

    def _count(self, name: str, k: Any, args: Any, kwds: Any) -> tuple[Any, list[Any]]:
        found = self._parameters(name, args, kwds)
        shapes = [found[shape] for shape in self.shapes]
        return as_array(stop_gradient(as_array(k) - found["loc"])), shapes

    def _bounds(self, shapes: list[Any]) -> tuple[Any, Any]:
        low, high = (bound(*shapes) if callable(bound) else bound for bound in self._support)
        return low, high

    def _checked(self, value: Any, k: Any, shapes: list[Any]) -> Any:
        return unboxed(where((k == k) & self._valid(*shapes), value, math.nan))


def unboxed(value: Any) -> Any:
    """A result of no axes as a number, as NumPy's functions give it."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def log_of(probability: Any, rest: Any) -> Any:
    """The logarithm of p, by 1 − p where that is the smaller one."""
    large = probability > 0.5
    small = log(where(large, 0.5, probability))
    return where(large, log1p(-where(large, rest, 0.5)), small)
