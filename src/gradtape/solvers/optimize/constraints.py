"""Constraints of `minimize`, and the equations that hold at a constrained minimum.

With the Lagrangian L = f − λ·c, a minimum has ∂L/∂x = 0, c = bound for each active constraint, and
λ = 0 for each other one (Karush, Kuhn and Tucker). These are equations for x and λ together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.jacobians import hessian, jacobian
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.join import concatenate
from gradtape.ops.matmul import dot
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, reshape
from gradtape.solvers.optimize.evaluator import Make
from gradtape.solvers.optimize.solution import FLOAT, Groups, as_tuple
from gradtape.solvers.problem import Problem, Unknowns

# Methods that use derivatives of constraints, by their names in lower case.
_USE_DERIVATIVES = ("slsqp", "trust-constr")
_USES_HESSIANS = "trust-constr"
# The Jacobian of SciPy's NonlinearConstraint if none is given.
_DIFFERENCES = "2-point"


class Constraints:
    """All constraints of a minimization.

    Attributes:
        problems: Their functions.
    """

    def __init__(self, name: str, constraints: Any, unknowns: Unknowns) -> None:
        single = isinstance(constraints, dict) or hasattr(constraints, "lb")
        self._given = [constraints] if single else list(constraints)
        self.problems: list[Problem] = []
        self._ends: list[list[Any]] = []
        for each in self._given:
            function, args, lower, upper = _parts(name, each)
            self.problems.append(Problem(name, function, unknowns, args))
            self._ends.append([_as_operand(lower), _as_operand(upper)])

    def __len__(self) -> int:
        """How many numbers are constrained."""
        return sum(problem.count() for problem in self.problems)

    def operands(self) -> Groups:
        """What they depend on besides x: of each, the operands of its function, and its bounds."""
        pairs = zip(self.problems, self._ends, strict=True)
        return Groups(*([*problem.operands, *ends] for problem, ends in pairs))

    def limits(self, operands: Sequence[Any]) -> tuple[Any, Any]:
        """Lower and upper bounds of all constrained numbers."""
        found: tuple[list[Any], list[Any]] = ([], [])
        for problem, own in zip(self.problems, self.operands().split(operands), strict=True):
            for rows, end in zip(found, own[-2:], strict=True):
                rows.append(broadcast_to(end, (problem.count(),)))
        return concatenate(found[0]), concatenate(found[1])

    def value(self, x: Any, operands: Sequence[Any]) -> Any:
        """All constrained numbers."""
        groups = self.operands().split(operands)
        pairs = zip(self.problems, groups, strict=True)
        return concatenate([reshape(problem(x, own[:-2]), (-1,)) for problem, own in pairs])

    # ---- for SciPy -------------------------------------------------------------------------

    def for_scipy(self, operands: Sequence[Any], make: Make | None, method: Any) -> Any:
        """The constraints on plain arrays, as SciPy takes them.

        Args:
            operands: What they depend on.
            make: Makes an evaluator; None for SciPy's differences.
            method: The method; some use derivatives.
        """
        low = str(method).lower()
        every = zip(self._given, self.problems, self.operands().split(operands), strict=True)
        return [_for_scipy(each, problem, own, make, low) for each, problem, own in every]

    # ---- at a solution ---------------------------------------------------------------------

    def equations(self, x: Any, multipliers: Any, side: Any, operands: Sequence[Any]) -> Any:
        """Active constraints are at their bounds, and multipliers of others are 0."""
        lower, upper = (where(side == 0, 0.0, end) for end in self.limits(operands))
        bound = where(side < 0, lower, upper)
        return where(side == 0, multipliers, self.value(x, operands) - bound)


def _as_operand(end: Any) -> Any:
    return astype(as_array(end), FLOAT) if isinstance(end, Tensor) else np.asarray(end, FLOAT)


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
        return (lambda x, matrix: matrix @ x), (matrix,), constraint.lb, constraint.ub
    if hasattr(constraint, "fun"):
        return constraint.fun, (), constraint.lb, constraint.ub
    raise ArgumentError(
        f"{name}: got {a_type(constraint)} as a constraint, expected a dict, or SciPy's "
        "LinearConstraint or NonlinearConstraint"
    )


def _for_scipy(
    constraint: Any, problem: Problem, operands: Any, make: Make | None, method: str
) -> Any:
    """A constraint on plain arrays, with functions of x alone.

    Args:
        constraint: The constraint as it was given.
        problem: Its function.
        operands: What it depends on.
        make: Makes an evaluator; None for SciPy's differences.
        method: The method, in lower case.
    """
    make = make if method in _USE_DERIVATIVES else None
    import scipy.optimize

    *own, lower, upper = operands

    def value(x: Any) -> Any:
        return problem(x, own)

    if isinstance(constraint, dict):
        return _old_style(constraint, value, problem.arguments(own), make)
    kept = constraint.keep_feasible
    if hasattr(constraint, "A"):
        matrix = constraint.A if hasattr(constraint.A, "toarray") else own[0]
        return scipy.optimize.LinearConstraint(matrix, lower, upper, kept)
    jac, hess, sparsity = constraint.jac, constraint.hess, constraint.finite_diff_jac_sparsity
    if jac == _DIFFERENCES and sparsity is None and make is not None:
        jac = make(jacobian(value))
        if method == _USES_HESSIANS and isinstance(hess, scipy.optimize.BFGS):
            hess = make(lambda x, v: hessian(lambda x: dot(v, reshape(value(x), (-1,))))(x))
    return scipy.optimize.NonlinearConstraint(
        value, lower, upper, jac, hess, kept, constraint.finite_diff_rel_step, sparsity
    )


def _old_style(
    constraint: dict[str, Any],
    value: Callable[[Any], Any],
    known: Sequence[Any],
    make: Make | None,
) -> Any:
    """A constraint that was given as a dict, of functions of x alone."""
    made = {"type": constraint["type"], "fun": value}
    slope = constraint.get("jac")
    if isinstance(slope, str):  # "3-point": SciPy takes that for its classes alone
        import scipy.optimize

        upper = 0.0 if made["type"].lower() == "eq" else np.inf
        return scipy.optimize.NonlinearConstraint(value, 0.0, upper, slope)
    if callable(slope):
        made["jac"] = lambda x: slope(x, *known)
    elif slope is None and make is not None:
        made["jac"] = make(jacobian(value))
    return made
