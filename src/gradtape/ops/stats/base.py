"""What distributions have in common: parameters, and formulas for what they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradtape.core.spellings import DISTRIBUTIONS
from gradtape.errors import ArgumentError, MissingNameError, UnsupportedError
from gradtape.ops.arguments import weak_or_array

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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise MissingNameError(name, DISTRIBUTIONS.get, f"gt.stats.{self.__dict__.get('name')}")

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


def unboxed(value: Any) -> Any:
    """A result of no axes as a number, as NumPy's functions give it."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
