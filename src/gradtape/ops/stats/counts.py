"""What discrete distributions have in common: counts, supports, tails."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

from gradtape.ops.arguments import as_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.exponential import exp
from gradtape.ops.rounding import floor
from gradtape.ops.select import where
from gradtape.ops.stats.base import Bounds, Distribution, Formula, unboxed
from gradtape.ops.stats.tails import power_of_zero
from gradtape.typing import Array, ArrayLike


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

        Its gradient is 0 outside of the support. Inside, where a parameter makes `k` impossible, it
        is infinite, and NaN if the parameter has a slope of 0 itself: `bernoulli` with a share that
        was rounded to 1. Of its log-odds take `gt.log_sigmoid` instead.

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
        count, shapes = self._count("pmf", k, args, kwds)
        low, high = self._bounds(shapes)
        inside = (count >= low) & (count <= high) & (count == floor(count))
        k = where(inside, count, low)
        # Where a factor is a power of 0, its logarithm is infinite, but its slope is not. Each form
        # is evaluated with 1/2 for the last parameter, which makes the factors, elsewhere.
        *others, p = shapes
        powers = self._formula("vanishing")
        zeros = [base == 0 for base, _, _ in powers(k, *shapes)]
        value = exp(self._formula("logpmf")(k, *others, where(_any_of(zeros), 0.5, p)))
        for i, zero in enumerate(zeros):
            base, exponent, rest = powers(k, *others, where(zero, p, 0.5))[i]
            value = where(zero, power_of_zero(base, exponent, zero) * exp(rest), value)
        return self._checked(where(inside, value, 0.0), count, shapes)

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
        return self._tail("logcdf", (-math.inf, 0.0), k, args, kwds)

    def logsf(self, k: ArrayLike, /, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of more than `k`.

        >>> gt.stats.bernoulli.logsf(np.array([0]), 0.5)
        array([-0.69314718])
        """
        return self._tail("logsf", (0.0, -math.inf), k, args, kwds)

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


def _any_of(conditions: Sequence[Any]) -> Any:
    """Whether one of some conditions holds, element by element."""
    return functools.reduce(operator.or_, conditions)
