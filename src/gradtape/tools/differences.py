"""Difference formulas: numerical derivatives of functions of one real vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gradtape.errors import ArgumentError
from gradtape.ops.checks import check_choice

Vector: TypeAlias = Any  # a flat array
VectorFunction: TypeAlias = Callable[[Vector], Vector]

_EPSILON = 2.0**-52


@dataclass(frozen=True)
class Difference:
    """A difference formula.

    Attributes:
        formula: `formula(function, x, change)`, the change of the function for a small change of x.
        step: The step at which the errors of the formula and of rounding are about equal, for
            functions and arguments of the order of 1.
        tolerance: An error that a right derivative stays well below.
    """

    formula: Callable[[VectorFunction, Vector, Vector], Vector]
    step: float
    tolerance: float


def _forward(function: VectorFunction, x: Vector, change: Vector) -> Vector:
    return function(x + change) - function(x)


def _central(function: VectorFunction, x: Vector, change: Vector) -> Vector:
    return (function(x + change) - function(x - change)) / 2


def _higher_order(function: VectorFunction, x: Vector, change: Vector) -> Vector:
    near = function(x + change) - function(x - change)
    far = function(x + 2 * change) - function(x - 2 * change)
    return (8 * near - far) / 12


def _complex_step(function: VectorFunction, x: Vector, change: Vector) -> Vector:
    # f(x + ih) = f(x) + ih·f′(x) + O(h²): nothing cancels, so h can be as small as one likes.
    result = function(x + 1j * change)
    if not np.iscomplexobj(result):
        raise ArgumentError(
            "complex_step: the function gives a real result for a complex argument, as abs, "
            'comparisons and maximum do; use method="central"'
        )
    return result.imag


METHODS = {
    "forward": Difference(_forward, _EPSILON ** (1 / 2), 1e-5),
    "central": Difference(_central, _EPSILON ** (1 / 3), 1e-7),
    "higher_order": Difference(_higher_order, _EPSILON ** (1 / 5), 1e-8),
    "complex_step": Difference(_complex_step, 1e-20, 1e-10),
}


def method_named(name: str) -> Difference:
    """The difference formula with this name."""
    check_choice("NumericalChecker", METHODS, method=name)
    return METHODS[name]


def directional(
    function: VectorFunction, x: Vector, direction: Vector, method: str, step: float | None = None
) -> Vector:
    """The derivative along one direction; the step is relative to the largest element of x."""
    difference = method_named(method)
    size = (step or difference.step) * max(1.0, np.abs(x).max(initial=0.0))
    size /= np.abs(direction).max(initial=1e-300)
    return difference.formula(function, x, size * direction) / size


def jacobian(function: VectorFunction, x: Vector, method: str, step: float | None = None) -> Vector:
    """The matrix of all partial derivatives; each step is relative to its element of x."""
    difference = method_named(method)
    columns = []
    for i, element in enumerate(x):
        # A power of 2 is added without rounding, so that the step taken is the step divided by.
        size = 2.0 ** round(np.log2((step or difference.step) * max(1.0, abs(element))))
        change = np.zeros_like(x)
        change[i] = size
        columns.append(difference.formula(function, x, change) / size)
    return np.stack(columns, axis=-1) if columns else np.zeros((function(x).size, 0))


class Comparison(NamedTuple):
    """How far apart two arrays are: the largest error, and the element that is worst."""

    close: bool
    max_error: float
    worst_index: tuple[int, ...] | None


def compare(got: Any, expected: Any, rtol: float, atol: float) -> Comparison:
    """Compare elementwise; the worst element is the one with the most error for its tolerance."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.size == 0:
        return Comparison(True, 0.0, None)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - expected)
        ratio = error / (atol + rtol * np.abs(expected))
    # NaN is worst of all: a comparison with it must not pass.
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(ratio), ratio.shape))
    return Comparison(bool(ratio[worst] <= 1), float(np.max(error)), worst)
