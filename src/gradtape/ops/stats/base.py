"""The base of all distributions: parameters, formulas, and moments."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradtape import advice
from gradtape.errors import ArgumentError, DTypeError, MissingNameError, UnsupportedError
from gradtape.ops.arguments import as_array, weak_or_array
from gradtape.ops.cast import astype
from gradtape.ops.exponential import log, sqrt
from gradtape.ops.inspection import result_type
from gradtape.ops.select import where
from gradtape.ops.special.common import typed
from gradtape.typing import Array

Formula = Callable[..., Any]
# Bounds of a support: numbers, or functions of the shape parameters.
Bounds = tuple[float | Formula, float | Formula]


class Distribution:
    """A distribution, called with its shapes, then `loc` and, if it is continuous, `scale`.

    Attributes:
        name: Its name in `scipy.stats`.
        shapes: The names of its shape parameters.
    """

    defaults: ClassVar[dict[str, float]]

    def __init__(
        self,
        name: str,
        shapes: Sequence[str],
        support: Bounds,
        valid: Formula | None,
        formulas: dict[str, Formula | float],
    ) -> None:
        self.name = name
        self.shapes = tuple(shapes)
        self._support, self._valid = support, valid
        # By the name of a method; those of `mean`, `var` and `entropy` may be numbers.
        self._formulas = formulas

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with parameters given for good.

        >>> gt.stats.norm(1.0, 2.0).cdf(np.array([1.0]))
        array([0.5])
        """
        return Frozen(self, self._parameters("the distribution", args, kwds))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise MissingNameError(
                name,
                lambda name: advice.DISTRIBUTIONS.get(name),
                f"gt.stats.{self.__dict__.get('name')}",
            )

    # ---- moments -----------------------------------------------------------------------------

    def mean(self, *args: Any, **kwds: Any) -> Array:
        """The mean, differentiable in the parameters; infinite or NaN where there is none.

        >>> gt.stats.gamma.mean(3.0, scale=2.0)
        np.float64(6.0)
        """
        return self._moment("mean", args, kwds, lambda own, loc, scale: loc + scale * own)

    def var(self, *args: Any, **kwds: Any) -> Array:
        """The variance, differentiable in the parameters; infinite or NaN where there is none.

        >>> gt.stats.gamma.var(3.0, scale=2.0)
        np.float64(12.0)
        """
        return self._moment("var", args, kwds, lambda own, _loc, scale: scale * scale * own)

    def std(self, *args: Any, **kwds: Any) -> Array:
        """The standard deviation, differentiable in the parameters; as far as `var` exists.

        >>> gt.stats.gamma.std(4.0, scale=2.0)
        np.float64(4.0)
        """
        return self._moment("var", args, kwds, lambda own, _loc, scale: scale * sqrt(own))

    def entropy(self, *args: Any, **kwds: Any) -> Array:
        """The entropy in nats, differentiable in the parameters.

        >>> gt.stats.expon.entropy(scale=1.0), gt.stats.bernoulli.entropy(0.5)
        (np.float64(1.0), np.float64(0.6931471805599453))
        """
        return self._moment("entropy", args, kwds, lambda own, _loc, scale: own + log(scale))

    def _moment(self, name: str, args: Any, kwds: dict[str, Any], place: Formula) -> Any:
        """A moment: its formula of the shapes, then `place` for the effect of loc and scale."""
        found = self._parameters(name, args, kwds)
        dtype = result_dtype(self.name, *found.values())
        shapes = self._shapes_of(found, dtype)
        formula, loc, scale = self._formula(name), found["loc"], found.get("scale", 1.0)
        value = place(formula(*shapes) if callable(formula) else formula, loc, scale)
        known = as_array(loc == loc) & as_array(scale > 0)
        return self._result(value, known, shapes, dtype)

    # ---- parameters and formulas -------------------------------------------------------------

    def _shapes_of(self, found: dict[str, Any], dtype: np.dtype[Any]) -> list[Any]:
        """The shape parameters; Python numbers as arrays, so that division by 0 does not raise."""
        return typed(dtype, *(found[shape] for shape in self.shapes))

    def _bounds(self, shapes: list[Any]) -> tuple[Any, Any]:
        low, high = (bound(*shapes) if callable(bound) else bound for bound in self._support)
        return low, high

    def _result(self, value: Any, known: Any, shapes: list[Any], dtype: np.dtype[Any]) -> Any:
        """The value where it is known, and NaN for invalid parameters."""
        if self._valid is not None:
            known = known & self._valid(*shapes)
        return unboxed(astype(where(known, value, math.nan), dtype, copy=False))

    def _parameters(self, method: str, args: Any, kwds: dict[str, Any]) -> dict[str, Any]:
        names = (*self.shapes, *self.defaults)
        given = dict(zip(names, args, strict=False))
        twice, unknown = given.keys() & kwds.keys(), kwds.keys() - set(names)
        found = {**self.defaults, **given, **kwds}
        missing = [name for name in self.shapes if name not in found]
        if len(args) > len(names) or twice or unknown or missing:
            raise ArgumentError(
                f"{self.name}: {method} got with {len(args)} parameters by position and "
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


class Frozen:
    """A distribution with fixed parameters: its methods take only the point of evaluation.

    Attributes:
        distribution: The distribution.
        parameters: The arguments to add to those of its methods, by name.
    """

    def __init__(self, distribution: Any, parameters: dict[str, Any]) -> None:
        self.distribution = distribution
        self.parameters = parameters

    def __getattr__(self, name: str) -> Any:
        # `copy` asks for special names before the copy has any attributes.
        if name.startswith("_") or "distribution" not in self.__dict__:
            raise AttributeError(name)
        found = getattr(self.distribution, name)
        return functools.partial(found, **self.parameters) if callable(found) else found

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"<gt.stats.{self.distribution.name} with {given}>"


def result_dtype(name: str, *values: Any) -> np.dtype[Any]:
    """The dtype of a result: the common one of the arguments; Python numbers are weak."""
    dtype = result_type(*values, 0.0)
    if dtype.kind not in "fV":
        raise DTypeError(f"{name}: got {dtype}, expected real numbers")
    return dtype


def unboxed(value: Any) -> Any:
    """A result without axes as a number, as NumPy's functions return it."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
