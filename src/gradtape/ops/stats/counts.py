"""The base of discrete distributions: counts, supports, tails."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from gradtape.ops.arguments import as_array, weak_or_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.exponential import exp
from gradtape.ops.rounding import floor
from gradtape.ops.select import where
from gradtape.ops.stats.base import Bounds, Distribution, Formula
from gradtape.ops.stats.tails import FLAT, power_of_zero
from gradtape.typing import Array, ArrayLike


class _Count(NamedTuple):
    """Where a method is evaluated."""

    k: Any  # at loc 0
    safe: Any  # the same, and a count of the support where it is outside
    inside: Any
    shapes: list[Any]
    dtype: Any  # of the result


class Discrete(Distribution):
    """A discrete distribution of `scipy.stats`, differentiable in its parameters.

    Methods take the count, the shape parameters, and then `loc`, by position or by name, as in
    SciPy. Probabilities are piecewise constant in the count: its gradient is 0.

    >>> gt.scipy.stats.poisson.logpmf(np.array([0, 1]), 2.0)
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
        vanishing: Formula,
        **formulas: Formula | float,
    ) -> None:
        super().__init__(name, shapes, support, valid, formulas)
        # The factors of a probability that may be powers of 0: base, exponent, and the logarithm of
        # the rest.
        self._vanishing = vanishing

    def logpmf(self, k: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of `k`; -inf if that is impossible.

        Its gradient is 0 outside of the support. Inside, where a parameter makes `k` impossible, it
        is infinite, and NaN if the parameter has a slope of 0 itself: `bernoulli` with a share that
        was rounded to 1. Of its log-odds take `gt.log_sigmoid` instead.

        >>> gt.scipy.stats.bernoulli.logpmf(np.array([1, 2]), 0.5)
        array([-0.69314718,        -inf])
        """
        at = self._count("logpmf", k, args, kwds)
        value = self._formula("logpmf")(at.safe, *at.shapes)
        return self._at(at, where(at.inside, value, -math.inf))

    def pmf(self, k: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """The probability of `k`.

        >>> gt.scipy.stats.bernoulli.pmf(np.array([0, 1]), 0.25)
        array([0.75, 0.25])
        """
        at = self._count("pmf", k, args, kwds)
        # Where a factor is a power of 0, its logarithm is infinite, but its slope is not. Each form
        # is evaluated with 1/2 for the last parameter, which makes the factors, elsewhere.
        *others, p = at.shapes
        zeros = [base == 0 for base, _, _ in self._vanishing(at.safe, *at.shapes)]
        some_zero = functools.reduce(operator.or_, zeros)
        value = exp(self._formula("logpmf")(at.safe, *others, where(some_zero, 0.5, p)))
        for i, zero in enumerate(zeros):
            base, exponent, rest = self._vanishing(at.safe, *others, where(zero, p, 0.5))[i]
            # The rest may overflow where the power is 0 in any case.
            rest = exp(where(zero & (exponent <= FLAT), rest, 0.0))
            value = where(zero, power_of_zero(base, exponent, zero) * rest, value)
        return self._at(at, where(at.inside, value, 0.0))

    def _tail(self, name: str, ends: tuple[float, float], k: Any, args: Any, kwds: Any) -> Any:
        at = self._count(name, k, args, kwds)
        low, high = self._bounds(at.shapes)
        whole = floor(at.k)
        inside = (whole >= low) & (whole < high)
        value = self._formula(name)(where(inside, whole, low), *at.shapes)
        return self._at(at, where(inside, value, where(whole < low, *ends)))

    def _count(self, name: str, k: Any, args: Any, kwds: Any) -> _Count:
        k = weak_or_array(k)
        found, shapes, dtype = self._arguments(name, args, kwds, k)
        count = stop_gradient(as_array(k - found["loc"]))
        low, high = self._bounds(shapes)
        inside = (count >= low) & (count <= high) & (count == floor(count))
        return _Count(count, where(inside, count, low), inside, shapes, dtype)

    def _at(self, at: _Count, value: Any) -> Any:
        """The result of a method: a value where the count and the parameters are known."""
        return self._result(value, at.k == at.k, at.shapes, at.dtype)
