"""Bounds of variables, and the equations of variables that they hold back.

A variable at an active bound moves with the bound, whatever the others do: its equation is
x = bound, and that of a free variable is that the gradient is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.join import stack
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to
from gradtape.solvers.optimize.solution import FLOAT


def of_pairs(name: str, bounds: Any, count: int) -> list[Any]:
    """Lower and upper bounds of all variables, given as `Bounds` or as pairs; none if None."""
    if bounds is None:
        return []
    if hasattr(bounds, "lb"):
        return of_sides(name, (bounds.lb, bounds.ub), count)
    pairs = list(bounds)
    if len(pairs) != count or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"{name}: got bounds for {len(pairs)} variables, expected a pair for each of {count}"
        )
    lower, upper = zip(*pairs, strict=True)
    return [_row(lower, -np.inf), _row(upper, np.inf)]


def of_sides(name: str, bounds: Any, count: int) -> list[Any]:
    """Lower and upper bounds of all variables, given as two arrays or numbers, or as `Bounds`."""
    lower, upper = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    return [_row(lower, -np.inf, count), _row(upper, np.inf, count)]


def _row(values: Any, absent: float, count: int | None = None) -> Any:
    """Bounds as a vector."""
    if isinstance(values, list | tuple):
        known = [absent if value is None else value for value in values]
        if any(isinstance(value, Tensor) for value in known):
            values = stack([astype(as_array(value), FLOAT) for value in known])
        else:
            values = known
    if not isinstance(values, Tensor):
        values = np.asarray(values, FLOAT)
    return values if count is None else broadcast_to(values, (count,))


def with_bounds(equations: Any, x: Any, side: Any, bounds: Sequence[Any]) -> Any:
    """Equations for all variables, with x = bound for those at an active bound."""
    if not bounds:
        return equations
    lower, upper = (where(side == 0, 0.0, bound) for bound in bounds)  # some are infinite
    return where(side == 0, equations, x - where(side < 0, lower, upper))
