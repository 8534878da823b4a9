"""Power series in one parameter t, given by their coefficients."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradtape.autodiff.forward import zeros_like
from gradtape.core.broadcasting import fit
from gradtape.core.evaluate import add, add_watched, lifted, lowered
from gradtape.core.state import STATE, WATCHING


class Series:
    """A power series in t. Coefficients that are known to be 0 are None.

    Attributes:
        value: The coefficient of 1; zeros if it is known to be 0.
    """

    __slots__ = ("_rate", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._rate: Series | None = None

    def coefficient(self, k: int) -> Any:
        """The coefficient of t^k, for k ≥ 1."""
        raise NotImplementedError

    def rate(self) -> Series:
        """The series of its derivative by t."""
        if self._rate is None:
            self._rate = _Rate(self)
        return self._rate

    def derivatives(self, order: int) -> list[Any]:
        """Its value and its derivatives at t = 0, up to an order."""
        found = [self.value]
        for k in range(1, order + 1):
            term = self.coefficient(k)
            found.append(zeros_like(self.value) if term is None else scaled(term, factorial(k)))
        return found


class Known(Series):
    """A series whose coefficients have been computed.

    Attributes:
        coefficients: Those of t, t² and so on.
    """

    __slots__ = ("coefficients",)

    def __init__(self, value: Any, coefficients: Sequence[Any]) -> None:
        super().__init__(value)
        self.coefficients = coefficients

    def coefficient(self, k: int) -> Any:
        return self.coefficients[k - 1]


class _Rate(Series):
    """The derivative of a series: its coefficient of t^k is (k + 1)·x_(k+1)."""

    __slots__ = ("_computed", "_of")

    def __init__(self, of: Series) -> None:
        first = of.coefficient(1)
        super().__init__(zeros_like(of.value) if first is None else first)
        self._of = of
        self._computed: dict[int, Any] = {}

    def coefficient(self, k: int) -> Any:
        if k not in self._computed:
            term = self._of.coefficient(k + 1)
            self._computed[k] = None if term is None else scaled(term, k + 1)
        return self._computed[k]


def factorial(k: int) -> float:
    """The factorial of k as a float, which can hold those up to 170."""
    return float(math.factorial(k))


def scaled(x: Any, factor: float, by: Callable[[Any, Any], Any] = operator.mul) -> Any:
    """`x * factor`, or `x / factor`, in the dtype of x and seen by modes."""
    if factor == 1:
        return x
    if WATCHING and STATE.get().watched:
        return lowered(by(lifted(x), factor))
    return fit(by(x, factor), x)


def total(terms: Iterable[Any]) -> Any:
    """The sum of the terms that are not None, seen by modes; None if there are none."""
    plus = add_watched if WATCHING and STATE.get().watched else add
    found = None
    for term in terms:
        if term is not None:
            found = term if found is None else plus(found, term)
    return found
