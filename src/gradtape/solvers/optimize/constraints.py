"""Constraints of `minimize`, and the equations that hold at a constrained minimum.

With the Lagrangian L = f − λ·c, a minimum has ∂L/∂x = 0, c = bound for each active constraint, and
λ = 0 for each other one (Karush, Kuhn and Tucker). These are equations for x and λ together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.jacobians import jacobian
from gradtape.core.lazy import lazy
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.join import concatenate
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.solvers.optimize.evaluator import Make
from gradtape.solvers.optimize.solution import FLOAT, Groups, as_tuple
from gradtape.solvers.problem import Problem, Unknowns

# Methods that use derivatives of constraints, by their names in lower case.
_USE_DERIVATIVES = ("slsqp", "trust-constr")


class Constraints:
    """All constraints of a minimization.

    Attributes:
        problems: Their functions.
    """

    def __init__(self, name: str, constraints: Any, unknowns: Unknowns) -> None:
        single = isinstance(constraints, dict) or hasattr(constraints, "lb")
        self._given = [constraints] if single else list(constraints)
        self.problems: list[Problem] = []
        self._ends: list[tuple[Any, Any]] = []
        for each in self._given:
            function, args, lower, upper = _parts(name, each)
            self.problems.append(Problem(name, function, unknowns, args))
            self._ends.append((lower, upper))

    @lazy
    def limits(self) -> tuple[Any, Any]:
        """Lower and upper bounds of all constrained numbers."""
        found: tuple[list[Any], list[Any]] = ([np.empty(0)], [np.empty(0)])
        for problem, ends in zip(self.problems, self._ends, strict=True):
            for rows, end in zip(found, ends, strict=True):
                rows.append(np.broadcast_to(np.asarray(end, FLOAT), (problem.count(),)))
        return np.concatenate(found[0]), np.concatenate(found[1])

    def __len__(self) -> int:
        """How many numbers are constrained."""
        return len(self.limits[0])

    def operands(self) -> Groups:
        """What they depend on besides x."""
        return Groups(*(problem.operands for problem in self.problems))

    def value(self, x: Any, operands: Sequence[Any]) -> Any:
        """All constrained numbers."""
        groups = self.operands().split(operands)
        pairs = zip(self.problems, groups, strict=True)
        return concatenate([reshape(problem(x, own), (-1,)) for problem, own in pairs])

    # ---- for SciPy -------------------------------------------------------------------------

    def for_scipy(self, operands: Sequence[Any], make: Make, method: Any) -> Any:
        """The constraints on plain arrays, as SciPy takes them.

        Args:
            operands: What they depend on.
            make: Makes an evaluator.
            method: The method; some use derivatives.
        """
        derivatives = str(method).lower() in _USE_DERIVATIVES
        every = zip(self._given, self.problems, self.operands().split(operands), strict=True)
        return [
            _old_style(each, problem, own, make, derivatives) if isinstance(each, dict) else each
            for each, problem, own in every
        ]

    # ---- at a solution ---------------------------------------------------------------------

    def equations(self, value: Any, multipliers: Any, side: Any) -> Any:
        """Active constraints are at their bounds, and multipliers of others are 0."""
        lower, upper = (np.where(np.isfinite(b), b, 0.0) for b in self.limits)
        bound = where(side < 0, lower, upper)
        return where(side == 0, multipliers, value - bound)


def _parts(name: str, constraint: Any) -> tuple[Callable[..., Any], tuple[Any, ...], Any, Any]:
    """The function of a constraint, its arguments, and its bounds."""
    if isinstance(constraint, dict):
        kind = str(constraint.get("type", "")).lower()
        if kind not in ("eq", "ineq") or "fun" not in constraint:
            raise ArgumentError(
                f"{name}: got a constraint with {sorted(constraint)}, expected 'fun', and 'type' "
                "as 'eq' or 'ineq'"
            )
        upper = 0.0 if kind == "eq" else np.inf
        function = as_function(constraint["fun"], name)
        return function, as_tuple(constraint.get("args", ())), 0.0, upper
    if hasattr(constraint, "A"):
        matrix = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
        return (lambda x: matrix @ x), (), constraint.lb, constraint.ub
    if hasattr(constraint, "fun"):
        return constraint.fun, (), constraint.lb, constraint.ub
    raise ArgumentError(
        f"{name}: got {a_type(constraint)} as a constraint, expected a dict, or SciPy's "
        "LinearConstraint or NonlinearConstraint"
    )


def _old_style(
    constraint: dict[str, Any], problem: Problem, operands: Any, make: Make, derivatives: bool
) -> dict[str, Any]:
    """A constraint as a dict, of functions of x alone."""

    def value(x: Any) -> Any:
        return problem(x, operands)

    made = {"type": constraint["type"], "fun": value}
    slope = constraint.get("jac")
    if callable(slope):
        known = problem.arguments(operands)
        made["jac"] = lambda x: slope(x, *known)
    elif slope is None and derivatives:
        made["jac"] = make(jacobian(value))
    elif slope is not None:
        made["jac"] = slope
    return made
