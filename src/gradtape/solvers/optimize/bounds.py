"""Bounds of variables, and which of them hold a solution back.

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

# How near to a bound a variable may be for the bound to be active, relative to the bound.
_NEAR = 1e-4
# How much larger than those of free variables its gradient is then.
_LARGER = 100.0


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


def sides(x: Any, bounds: Sequence[Any], gradient: Any) -> Any:
    """Which bounds are active: −1 for a lower one, 1 for an upper one, 0 for none.

    At an active bound the function would go on falling beyond it. Methods that stay inside of the
    bounds only come near to them; what counts then is whether the gradient is much larger than
    those of variables that are clearly free.
    """
    if not bounds:
        return np.zeros(x.shape, np.int64)
    lower, upper = bounds
    with np.errstate(invalid="ignore"):
        below, above = ((x - lower) / _size(lower), (upper - x) / _size(upper))
    free = (below > _NEAR) & (above > _NEAR)
    large = np.abs(gradient) > _LARGER * np.abs(gradient[free]).max(initial=0)
    exact = 8 * np.finfo(FLOAT).eps
    at_lower = (gradient > 0) & ((below <= exact) | ((below <= _NEAR) & large))
    at_upper = (gradient < 0) & ((above <= exact) | ((above <= _NEAR) & large))
    at_lower |= lower == upper
    return np.where(at_lower, -1, np.where(at_upper, 1, 0)).astype(np.int64)


def at_bounds(x: Any, bounds: Sequence[Any]) -> Any:
    """Which variables are at a bound, active or not, as `sides` says it."""
    if not bounds:
        return np.zeros(x.shape, np.int64)
    return np.where(x <= bounds[0], -1, np.where(x >= bounds[1], 1, 0)).astype(np.int64)


def _size(bound: Any) -> Any:
    return np.where(np.isfinite(bound), np.maximum(np.abs(bound), 1.0), 1.0)


def with_bounds(equations: Any, x: Any, side: Any, bounds: Sequence[Any]) -> Any:
    """Equations for all variables, with x = bound for those at an active bound."""
    if not bounds:
        return equations
    lower, upper = (where(side == 0, 0.0, bound) for bound in bounds)  # some are infinite
    return where(side == 0, equations, x - where(side < 0, lower, upper))
