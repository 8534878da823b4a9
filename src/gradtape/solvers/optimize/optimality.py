"""Is x a minimum, and which bounds and constraints hold it back?

The conditions of Karush, Kuhn and Tucker are solved by Newton's method, from where SciPy ended. Its
steps do not depend on units, so their size says how far x is from a minimum, and the multipliers
and slacks where they end say what is active.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.jacobians import hessian, hvp, jacobian
from gradtape.autodiff.reverse import grad
from gradtape.errors import GradtapeError
from gradtape.ops.matmul import dot
from gradtape.solvers.linear import DENSE
from gradtape.solvers.optimize.solution import FLOAT, INTEGER
from gradtape.solvers.solver_run import CapturedError

# How far from a minimum x may be, relative to its size: interior methods leave a gap of 1e-3 to
# active bounds. Where SciPy says that it failed, only what rounding explains is accepted.
_FAR, _FAR_AFTER_FAILURE = 1e-2, 1e-5
# Newton's method has converged with a step of this size; more than the second is no convergence.
_CONVERGED, _STALLED = 1e-9, 1e-6
_MAX_STEPS = 8
# A start that leads so near to x needs no comparison with others.
_NEAR = 1e-5
# How near to their bounds the first guess at the active ones is. Newton's method corrects it, if
# the function is convex.
_GUESSES = (1e-4, 1e-2, 0.0)
# What is smaller than this part of its terms is rounding.
_ROUNDING = 1e-9
# The most sets of active bounds that are tried in one step.
_MAX_SETS = 200
# The least ratio of singular values of a fit whose steps of Gauss and Newton say enough, and the
# longest step of these, relative to the size of the variables.
_REGULAR, _AT_A_FIT = 1e-4, 1e-8
# Where there are too many variables for Newton's method: the largest relative residual, and how
# near to active bounds x is.
_RESIDUAL, _AT = 1e-3, 1e-8

Function = Callable[[Any], Any]


@dataclasses.dataclass
class Optimum:
    """A minimum near to an x.

    Attributes:
        x: The minimum.
        multipliers: Of the constraints.
        side: Which bounds are active: −1 for a lower one, 1 for an upper one, 0 for none.
        active: Which constraints are, likewise.
        failure: What is wrong with it; None if nothing is.
    """

    x: Any
    multipliers: Any
    side: Any
    active: Any
    failure: str | None = None


class Conditions:
    """A function to be minimized within bounds and constraints.

    Args:
        value: The function, of a vector.
        bounds: Lower and upper bounds of the variables; none if there are none.
        constraints: The constrained numbers; None if there are none.
        limits: Their lower and upper bounds.
    """

    def __init__(
        self,
        value: Function,
        bounds: Sequence[Any],
        constraints: Function | None = None,
        limits: tuple[Any, Any] | None = None,
    ) -> None:
        self.value, self.bounds = value, bounds
        none = np.empty(0)
        self.constraints = constraints or (lambda _x: none)
        self.limits = limits or (none, none)
        self.count = len(self.limits[0])

    def optimum(self, x: Any, x0: Any, *, succeeded: bool) -> Optimum:
        """The minimum that an x is near to.

        Args:
            x: Where SciPy ended.
            x0: Where it began.
            succeeded: Whether SciPy says that it is a minimum.
        """
        x, x0 = np.asarray(x, FLOAT), np.asarray(x0, FLOAT)
        try:
            with np.errstate(all="ignore"):
                if len(x) + self.count > DENSE:
                    return _by_gradient(self, x, x0)
                return _by_newton(self, x, x0, _FAR if succeeded else _FAR_AFTER_FAILURE)
        except CapturedError:
            raise
        except GradtapeError:
            # There are no second derivatives. The rules of the derivative raise the same.
            none = np.zeros(x.shape, INTEGER), np.zeros(self.count, INTEGER)
            return Optimum(x, np.zeros(self.count), *none)


# ---- Newton's method ----------------------------------------------------------------------------


class _Model(NamedTuple):
    """The function and the constraints near x, and the active ones of these.

    Attributes:
        x: The vector.
        scale: The size of each variable: that of x, and of its way from the start.
        slope: The gradient of the function.
        curvature: The Hessian of the Lagrangian.
        constrained: The constrained numbers.
        slopes: Their Jacobian.
        lower: Bounds of the variables,
        upper: above,
        least: and of constrained numbers,
        most: above.
    """

    x: Any
    scale: Any
    slope: Any
    curvature: Any
    constrained: Any
    slopes: Any
    lower: Any
    upper: Any
    least: Any
    most: Any

    def is_finite(self) -> bool:
        """Whether all of it can be computed with."""
        known = (self.x, self.slope, self.curvature, self.constrained, self.slopes)
        return all(np.isfinite(part).all() for part in known)


class _Step(NamedTuple):
    """A step to the minimum of a model, and what is active there."""

    change: Any
    multipliers: Any
    side: Any
    active: Any


def _by_newton(conditions: Conditions, x: Any, x0: Any, far: float) -> Optimum:
    """The minimum nearest to x of those that first guesses at the active bounds lead to."""
    model = _model(conditions, x, x0, None)
    best, shortest = None, np.inf
    if model.is_finite():
        for near in _GUESSES:
            found, distance = _converged(conditions, model, x0, _guess(model, near))
            if found is not None and distance < shortest:
                best, shortest = found, distance
            if shortest <= _NEAR:
                break
    if best is not None and shortest <= far:
        return best
    side, active = _guess(model, _GUESSES[0])
    left = _of_lagrangian(model, side, active)[side == 0]
    said = "Newton's method finds no minimum at x, where second derivatives may be singular"
    if best is not None:
        said = f"x is off by {shortest:.2g} of its size; lower tol or change units"
    failure = f"{said}; the residual is {float(np.linalg.norm(left)):.3g}"
    return Optimum(x, np.zeros(conditions.count), side, active, failure)


def _converged(
    conditions: Conditions, first: _Model, x0: Any, guess: tuple[Any, Any]
) -> tuple[Optimum | None, float]:
    """Where Newton's method ends, and how far that is; None if it does not converge."""
    model, size, (side, active) = first, np.inf, guess
    for _ in range(_MAX_STEPS):
        step = _step_within(model, side, active)
        if step is None:
            return None, np.inf
        before, size = size, _size(conditions, model, step.change)
        side, active = step.side, step.active
        if size <= _CONVERGED or before <= size <= _STALLED:
            found = Optimum(model.x, step.multipliers, side, active)
            return found, _size(conditions, first, model.x - first.x)
        try:
            x = _on_bounds(model, side, model.x + step.change)
            model = _model(conditions, x, x0, step.multipliers)
        except (ArithmeticError, ValueError):  # the function does not go there
            return None, np.inf
        if not model.is_finite():
            return None, np.inf
    return None, np.inf


def _model(conditions: Conditions, x: Any, x0: Any, multipliers: Any) -> _Model:
    """The model at x; without multipliers it takes those that fit best."""
    model = _first_order(conditions, x, x0)
    if multipliers is None:
        multipliers = _best_multipliers(model, *_guess(model, _GUESSES[0]))
    curvature = hessian(_lagrangian(conditions, multipliers))(x)
    return model._replace(curvature=np.asarray(curvature))


def _first_order(conditions: Conditions, x: Any, x0: Any) -> _Model:
    """The model without its curvature."""
    scale = np.maximum(np.maximum(np.abs(x), np.abs(x0)), np.abs(x - x0))
    slope = np.asarray(grad(conditions.value)(x))
    constrained, slopes = np.zeros(0), np.zeros((0, len(x)))
    if conditions.count:
        constrained = np.asarray(conditions.constraints(x))
        slopes = np.asarray(jacobian(conditions.constraints)(x))
    bounds = conditions.bounds or (np.full(len(x), -np.inf), np.full(len(x), np.inf))
    return _Model(x, scale, slope, None, constrained, slopes, *bounds, *conditions.limits)


def _lagrangian(conditions: Conditions, multipliers: Any) -> Function:
    """The function less the multiples of the constraints."""
    if not conditions.count:
        return conditions.value
    return lambda x: conditions.value(x) - dot(multipliers, conditions.constraints(x))


def _guess(model: _Model, near: float) -> tuple[Any, Any]:
    """The bounds and constraints that x is near to, if the function would fall beyond them."""
    ends = model.lower, model.upper
    side = _near_ends(model.x, ends, near * model.scale)
    limits = model.least, model.most
    width = near * (np.abs(model.slopes) @ model.scale)
    active = _near_ends(model.constrained, limits, width)
    for _ in range(len(side) + len(active) + 1):
        multipliers = _best_multipliers(model, side, active)
        left = model.slope - multipliers @ model.slopes
        wrong_side = (side * left > 0) & (model.lower != model.upper)
        wrong = (active * multipliers > 0) & (model.least != model.most)
        if not (wrong_side.any() or wrong.any()):
            break
        side, active = np.where(wrong_side, 0, side), np.where(wrong, 0, active)
    return side, active


def _near_ends(value: Any, ends: tuple[Any, Any], width: Any) -> Any:
    lower, upper = ends
    below, above = value - lower <= width, upper - value <= width
    nearer = value - lower <= upper - value
    side = np.where(below & (nearer | ~above), -1, np.where(above, 1, 0))
    return np.where(lower == upper, -1, side).astype(INTEGER)


def _best_multipliers(model: _Model, side: Any, active: Any) -> Any:
    """The multipliers of active constraints that leave the least of the gradient."""
    found, chosen, free = np.zeros(len(active)), active != 0, side == 0
    if chosen.any() and free.any():
        scale = np.where(model.scale > 0, model.scale, 1.0)[free]
        rows = model.slopes[chosen][:, free] * scale
        sizes = np.linalg.norm(rows, axis=1)
        sizes = np.where(sizes > 0, sizes, 1.0)
        target = model.slope[free] * scale
        found[chosen] = np.linalg.lstsq((rows / sizes[:, None]).T, target, rcond=None)[0] / sizes
    return found


def _of_lagrangian(model: _Model, side: Any, active: Any) -> Any:
    return model.slope - _best_multipliers(model, side, active) @ model.slopes


def _step_within(model: _Model, side: Any, active: Any) -> _Step | None:
    """The step to the minimum of a model within its bounds; None if none is found.

    Bounds that the step would cross become active, and those whose multipliers have the wrong sign
    are dropped: all at once, or one at a time once that goes round in circles.
    """
    seen: set[bytes] = set()
    for _ in range(_MAX_SETS):
        step, left = _step_on(model, side, active)
        if not np.isfinite(step.change).all():
            return None
        key = side.tobytes() + active.tobytes()
        alone = key in seen
        seen.add(key)
        after_side, after_active = _corrected(model, step, left)
        both, after = (
            np.concatenate(pair) for pair in ((side, active), (after_side, after_active))
        )
        changed = np.flatnonzero(both != after)
        if not len(changed):
            return step
        if alone:
            after[changed[1:]] = both[changed[1:]]
        side, active = after[: len(side)], after[len(side) :]
    return None


def _step_on(model: _Model, side: Any, active: Any) -> tuple[_Step, Any]:
    """The step that keeps active bounds, and the gradient of the Lagrangian after it."""
    change = np.where(side == 0, 0.0, np.where(side < 0, model.lower, model.upper) - model.x)
    change = np.where(side == 0, 0.0, change)
    free, chosen = side == 0, active != 0
    rows, count = model.slopes[chosen][:, free], int(free.sum())
    target = np.where(active < 0, model.least, model.most)[chosen]
    missing = target - model.constrained[chosen] - model.slopes[chosen] @ change
    curvature = model.curvature[free][:, free]
    corner = np.zeros((len(rows), len(rows)))
    matrix = np.block([[curvature, rows.T], [rows, corner]])
    pull = -(model.slope + model.curvature @ change)[free]
    solved = _solved(matrix, np.concatenate([pull, missing]))
    change[free] = solved[:count]
    multipliers = np.zeros(len(active))
    multipliers[chosen] = -solved[count:]
    left = model.slope + model.curvature @ change - multipliers @ model.slopes
    return _Step(change, multipliers, side, active), left


def _solved(matrix: Any, b: Any) -> Any:
    """The solution of symmetric equations in any units, the shortest if there are many."""
    if not len(b):
        return b
    scale = np.ones(len(b))
    for _ in range(10):  # until the largest element of each row is 1
        largest = np.abs(matrix * scale[:, None] * scale).max(axis=1)
        scale = scale / np.sqrt(np.where(largest > 0, largest, 1.0))
    even, target = matrix * scale[:, None] * scale, b * scale
    try:
        x = np.linalg.solve(even, target)
        lost = (np.abs(even) @ np.abs(x)).max() * np.finfo(FLOAT).eps > 1e-4 * np.abs(target).max()
    except np.linalg.LinAlgError:
        lost = True
    if lost or not np.isfinite(x).all():
        x = np.linalg.lstsq(even, target, rcond=1e-12)[0]
    return x * scale


def _corrected(model: _Model, step: _Step, left: Any) -> tuple[Any, Any]:
    """What is active after a step, if it crosses bounds, or pushes away from them."""
    change, multipliers, side, active = step
    reach = model.scale + np.abs(change)
    terms = np.abs(model.slope) + np.abs(model.curvature) @ reach
    terms = terms + np.abs(multipliers) @ np.abs(model.slopes)
    dropped = (side * left > _ROUNDING * terms) & (model.lower != model.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        pushes = np.abs(multipliers[:, None] * model.slopes) > _ROUNDING * terms
    wrong = (active * multipliers > 0) & pushes.any(axis=1) & (model.least != model.most)
    ends, limits = (model.lower, model.upper), (model.least, model.most)
    crossed = _crossed(model.x + change, ends, _ROUNDING * reach)
    value = model.constrained + model.slopes @ change
    width = np.abs(model.slopes) @ reach + np.abs(model.constrained)
    beyond = _crossed(value, limits, _ROUNDING * width)
    return (
        np.where(side == 0, crossed, np.where(dropped, 0, side)),
        np.where(active == 0, beyond, np.where(wrong, 0, active)),
    )


def _crossed(value: Any, ends: tuple[Any, Any], width: Any) -> Any:
    below, above = value < ends[0] - width, value > ends[1] + width
    return np.where(below, -1, np.where(above, 1, 0)).astype(INTEGER)


def _on_bounds(model: _Model, side: Any, x: Any) -> Any:
    return np.where(side == 0, x, np.where(side < 0, model.lower, model.upper))


def _size(conditions: Conditions, model: _Model, change: Any) -> float:
    """The size of a step, in no units.

    That of each variable is relative to its own scale, or to that of the others where it matters
    as little to the function: a variable may be 0. What the function would not show is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        length, scale = np.abs(change), np.maximum(model.scale, np.abs(model.x + change))
        own = np.where(length == 0, 0.0, length / scale)
        weight = np.sqrt(np.abs(np.diag(model.curvature)))
        whole = max((weight * scale).max(), np.sqrt(np.abs(model.slope) * scale).max())
        share = np.maximum(weight * length, np.abs(model.slope) * length / whole) / whole
        size = float(np.fmin(own, np.where(length == 0, 0.0, share)).max(initial=0.0))
    if size > _CONVERGED:
        gain = np.abs(change) @ (np.abs(model.curvature) @ np.abs(change))
        gain += np.abs(model.slope) @ np.abs(change)
        if gain <= 16 * np.finfo(FLOAT).eps * abs(float(conditions.value(model.x))):
            return _CONVERGED
    return size


# ---- sums of squares -----------------------------------------------------------------------------


def step_of_fit(r: Any, matrix: Any, x: Any, x0: Any) -> Any:
    """The step of Gauss and Newton to a minimum of the sum of squares that x is at.

    It needs no second derivatives. None if x may be something else: Newton's method has to look.

    Args:
        r: The residuals at x.
        matrix: Their Jacobian.
        x: Where SciPy ended.
        x0: Where it began.
    """
    scale = np.maximum(np.maximum(np.abs(x), np.abs(x0)), np.abs(x - x0))
    even = matrix * scale
    if not (even.size and np.isfinite(even).all() and np.isfinite(r).all()):
        return None
    step, _, rank, values = np.linalg.lstsq(even, -r, rcond=_REGULAR)
    if rank < len(x) or values[-1] == 0 or np.abs(step).max() > _AT_A_FIT:
        return None
    return step * scale


# ---- too many variables for a Hessian -----------------------------------------------------------


def _by_gradient(conditions: Conditions, x: Any, x0: Any) -> Optimum:
    """Take x itself, if its gradient is small where no bound is reached."""
    model = _first_order(conditions, x, x0)
    side, active = _guess(model, _AT)
    multipliers, free = _best_multipliers(model, side, active), side == 0
    left = (model.slope - multipliers @ model.slopes)[free]
    value = _lagrangian(conditions, multipliers)
    terms = [np.asarray(hvp(value, (x,), (v,)))[free] for v in (x, x - x0)]
    weights = np.where(model.scale > 0, model.scale, model.scale.max())[free]
    largest = max(np.linalg.norm(weights * term) for term in terms)
    failure = None
    if not np.linalg.norm(weights * left) <= _RESIDUAL * largest:
        failure = f"the residual is {float(np.linalg.norm(left)):.3g}; lower tol"
    return Optimum(x, multipliers, side, active, failure)
