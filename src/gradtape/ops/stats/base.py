"""The base of all distributions: parameters, formulas, and moments."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradtape.core.deferrable import deferrable
from gradtape.errors import ArgumentError, DTypeError, UnsupportedError
from gradtape.ops.arguments import as_array, weak_or_array
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite
from gradtape.ops.exponential import log, sqrt
from gradtape.ops.inspection import result_type
from gradtape.ops.select import where
from gradtape.ops.special.common import typed
from gradtape.typing import Array, ArrayLike

Formula = Callable[..., Any]
# Bounds of a support: numbers, or functions of the shape parameters.
Bounds = tuple[float | Formula, float | Formula]


class Named:
    """Methods of a distribution of `gt.scipy.stats` that compute with tensors."""

    name: str = ""  # in `scipy.stats`

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, deferrable(method))

    if TYPE_CHECKING:  # the methods of SciPy's that only take arrays

        def __getattr__(self, name: str) -> Any: ...


def all_positive(*shapes: Any) -> Any:
    """Whether all of the shape parameters are positive."""
    return functools.reduce(operator.and_, (shape > 0 for shape in shapes))


class Distribution(Named):
    """A distribution of numbers: parameters are shapes, `loc` and, if continuous, `scale`.

    Attributes:
        shapes: The names of its shape parameters.
    """

    defaults: ClassVar[dict[str, float]]

    def __init__(
        self,
        name: str,
        shapes: Sequence[str],
        support: Bounds,
        valid: Formula,
        formulas: dict[str, Formula | float],
    ) -> None:
        self.name = name
        self.shapes = tuple(shapes)
        self._support, self._valid = support, valid
        # By the name of a method; those of `mean`, `var` and `entropy` may be numbers.
        self._formulas = formulas

    # ---- tails -------------------------------------------------------------------------------

    def cdf(self, x: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """The probability of at most `x`.

        >>> gt.scipy.stats.uniform.cdf(np.array([-1.0, 0.25, 2.0]))
        array([0.  , 0.25, 1.  ])
        >>> gt.scipy.stats.bernoulli.cdf(np.array([0, 1]), 0.25)
        array([0.75, 1.  ])
        """
        return self._tail("cdf", (0.0, 1.0), x, args, kwds)

    def sf(self, x: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """The probability of more than `x`, exact where it is small.

        >>> gt.scipy.stats.uniform.sf(np.array([-1.0, 0.25, 2.0]))
        array([1.  , 0.75, 0.  ])
        >>> gt.scipy.stats.bernoulli.sf(np.array([0, 1]), 0.25)
        array([0.25, 0.  ])
        """
        return self._tail("sf", (1.0, 0.0), x, args, kwds)

    def logcdf(self, x: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of at most `x`, also where that underflows.

        >>> gt.scipy.stats.norm.logcdf(np.array([-100.0]))
        array([-5005.52420869])
        >>> gt.scipy.stats.bernoulli.logcdf(np.array([0]), 0.25)
        array([-0.28768207])
        """
        return self._tail("logcdf", (-math.inf, 0.0), x, args, kwds)

    def logsf(self, x: ArrayLike, *args: Any, **kwds: Any) -> Array:
        """Logarithm of the probability of more than `x`, also where that underflows.

        >>> gt.scipy.stats.expon.logsf(np.array([1000.0]))
        array([-1000.])
        >>> gt.scipy.stats.bernoulli.logsf(np.array([0]), 0.5)
        array([-0.69314718])
        """
        return self._tail("logsf", (0.0, -math.inf), x, args, kwds)

    def _tail(self, name: str, ends: tuple[float, float], x: Any, args: Any, kwds: Any) -> Any:
        """A tail by its formula; `ends` are its values below the support, and above."""
        raise NotImplementedError

    # ---- moments -----------------------------------------------------------------------------

    def mean(self, *args: Any, **kwds: Any) -> Array:
        """The mean, differentiable in the parameters; infinite or NaN where there is none.

        >>> gt.scipy.stats.gamma.mean(3.0, scale=2.0)
        np.float64(6.0)
        """
        return self._moment("mean", args, kwds, lambda own, loc, scale: loc + scale * own)

    def var(self, *args: Any, **kwds: Any) -> Array:
        """The variance, differentiable in the parameters; infinite or NaN where there is none.

        >>> gt.scipy.stats.gamma.var(3.0, scale=2.0)
        np.float64(12.0)
        """
        return self._moment("var", args, kwds, lambda own, _loc, scale: scale * scale * own)

    def std(self, *args: Any, **kwds: Any) -> Array:
        """The standard deviation, differentiable in the parameters; as far as `var` exists.

        >>> gt.scipy.stats.gamma.std(4.0, scale=2.0)
        np.float64(4.0)
        """
        return self._moment("var", args, kwds, lambda own, _loc, scale: scale * sqrt(own))

    def entropy(self, *args: Any, **kwds: Any) -> Array:
        """The entropy in nats, differentiable in the parameters.

        >>> gt.scipy.stats.expon.entropy(scale=1.0), gt.scipy.stats.bernoulli.entropy(0.5)
        (np.float64(1.0), np.float64(0.6931471805599453))
        """
        return self._moment("entropy", args, kwds, lambda own, _loc, scale: own + log(scale))

    def moment(self, order: int, *args: Any, **kwds: Any) -> Array:
        """The mean of a power of a random number: of the number itself, or of its square.

        Args:
            order: 1 or 2.
            *args: The parameters, in the order of SciPy's.
            **kwds: The parameters by name.

        Raises:
            UnsupportedError: There is no derivative for this order.

        >>> gt.scipy.stats.gamma.moment(2, 3.0, scale=2.0)
        np.float64(48.0)
        """
        if order not in (1, 2):
            raise UnsupportedError(
                f"{self.name}: moment got order {order}, expected 1 or 2 for tensors; use "
                "scipy.stats on t.detach().numpy() to compute without gradient"
            )
        mean = self.mean(*args, **kwds)
        return mean if order == 1 else self.var(*args, **kwds) + mean * mean

    def stats(self, *args: Any, moments: str = "mv", **kwds: Any) -> Any:
        """The mean and the variance, as `moments` asks for: one of them, or a tuple.

        Raises:
            UnsupportedError: The skew or the kurtosis is asked for.

        >>> gt.scipy.stats.gamma.stats(3.0, scale=2.0, moments="mv")
        (np.float64(6.0), np.float64(12.0))
        """
        if "s" in moments or "k" in moments:
            raise UnsupportedError(
                f"{self.name}: stats got moments={moments!r}, expected 'm', 'v' or 'mv' for "
                "tensors; use scipy.stats on t.detach().numpy() to compute without gradient"
            )
        known = {"m": self.mean, "v": self.var}
        found = tuple(known[each](*args, **kwds) for each in "mv" if each in moments)
        return found[0] if len(found) == 1 else found

    def support(self, *args: Any, **kwds: Any) -> tuple[Array, Array]:
        """The ends of the support, differentiable in the parameters where they are finite.

        >>> gt.scipy.stats.uniform.support(1.0, 2.0)
        (np.float64(1.0), np.float64(3.0))
        """
        found, shapes, dtype = self._arguments("support", args, kwds)
        loc, scale = found["loc"], found.get("scale", 1.0)
        known = as_array(loc == loc) & as_array(scale > 0)
        low, high = (
            self._result(where(isfinite(end), loc + scale * end, end), known, shapes, dtype)
            for end in (as_array(bound) for bound in self._bounds(shapes))
        )
        return low, high

    def bounds(self, *shapes: ArrayLike) -> tuple[Any, Any]:
        """The ends of the support for loc 0 and scale 1.

        >>> gt.scipy.stats.truncnorm.on_tensors.bounds(-1.0, 2.0)
        (-1.0, 2.0)
        """
        return self._bounds([weak_or_array(shape) for shape in shapes])

    def _moment(self, name: str, args: Any, kwds: dict[str, Any], place: Formula) -> Any:
        """A moment: its formula of the shapes, then `place` for the effect of loc and scale."""
        found, shapes, dtype = self._arguments(name, args, kwds)
        formula, loc, scale = self._formula(name), found["loc"], found.get("scale", 1.0)
        value = place(formula(*shapes) if callable(formula) else formula, loc, scale)
        known = as_array(loc == loc) & as_array(scale > 0)
        return self._result(value, known, shapes, dtype)

    # ---- parameters and formulas -------------------------------------------------------------

    def _arguments(
        self, method: str, args: Any, kwds: dict[str, Any], *points: Any
    ) -> tuple[dict[str, Any], list[Any], np.dtype[Any]]:
        """Parameters by name, the shapes among them, and the dtype of a result at some points.

        Shapes that are Python numbers become arrays, so that division by 0 does not raise.
        """
        found = self._parameters(method, args, kwds)
        dtype = result_dtype(self.name, *points, *found.values())
        return found, typed(dtype, *(found[shape] for shape in self.shapes)), dtype

    def _bounds(self, shapes: list[Any]) -> tuple[Any, Any]:
        low, high = (bound(*shapes) if callable(bound) else bound for bound in self._support)
        return low, high

    def _result(self, value: Any, known: Any, shapes: list[Any], dtype: np.dtype[Any]) -> Any:
        """The value where it is known, and NaN for invalid parameters."""
        if shapes:
            known = known & self._valid(*shapes)
        return known_or_nan(known, value, dtype)

    def _parameters(self, method: str, args: Any, kwds: dict[str, Any]) -> dict[str, Any]:
        names = (*self.shapes, *self.defaults)
        given = dict(zip(names, args, strict=False))
        twice, unknown = given.keys() & kwds.keys(), kwds.keys() - set(names)
        found = {**self.defaults, **given, **kwds}
        missing = [name for name in self.shapes if name not in found]
        if len(args) > len(names) or twice or unknown or missing:
            raise ArgumentError(
                f"{self.name}: {method} got {len(args)} parameters by position and "
                f"{', '.join(kwds) or 'none'} by name, expected {', '.join(names)}"
            )
        return {name: weak_or_array(value) for name, value in found.items()}

    def _formula(self, name: str) -> Any:
        if name not in self._formulas:
            known = ", ".join(sorted(self._formulas))
            raise UnsupportedError(
                f"{self.name}: has no {name} in gradtape; it has {known}; use scipy.stats on "
                "t.detach().numpy() to compute without gradient"
            )
        return self._formulas[name]


def result_dtype(name: str, *values: Any) -> np.dtype[Any]:
    """The dtype of a result: the common one of the arguments; Python numbers are weak."""
    dtype = result_type(*values, 0.0)
    if dtype.kind not in "fV":
        raise DTypeError(f"{name}: got {dtype}, expected real numbers")
    return dtype


def known_or_nan(known: Any, value: Any, dtype: np.dtype[Any]) -> Any:
    """A value of this dtype where it is known, and NaN elsewhere; without axes a number."""
    out = astype(where(known, value, math.nan), dtype, copy=False)
    return out[()] if isinstance(out, np.ndarray) and out.ndim == 0 else out
