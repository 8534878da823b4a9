"""`minimize` of SciPy, given derivatives by gradtape, with a differentiable solution.

At a minimum the gradient is 0, ∇f(x, θ) = 0: derivatives of x solve equations with the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.jacobians import hessian, hvp
from gradtape.autodiff.reverse import grad, value_and_grad
from gradtape.core.aval import Aval
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_axes
from gradtape.ops.matmul import dot
from gradtape.ops.shape import reshape
from gradtape.solvers.optimize.bounds import of_pairs, with_bounds
from gradtape.solvers.optimize.constraints import Constraints
from gradtape.solvers.optimize.evaluator import Make, evaluated
from gradtape.solvers.optimize.optimality import Conditions
from gradtape.solvers.optimize.solution import (
    FLOAT,
    INTEGER,
    Found,
    Groups,
    Solution,
    as_tuple,
    failure_of,
    is_plain,
)
from gradtape.solvers.problem import Problem, Unknowns, with_captures

# What methods use, by their names in lower case.
_HESSIAN_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_HESSIANS = ("dogleg", "trust-exact")
_GRADIENTS = ("cg", "bfgs", "l-bfgs-b", "tnc", "slsqp", *_HESSIAN_PRODUCTS, *_HESSIANS)


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimize a function of several variables, as `scipy.optimize.minimize` does.

    SciPy takes the steps. Methods that use gradients and Hessians, or products with them, get them
    from gradtape if `jac`, `hess` and `hessp` are not given. If `args`, bounds, `args` and
    bounds of constraints, or tensors that functions use from outside are being differentiated, so
    is the minimum.

    Args:
        fun: The function, `fun(x, *args)`, which returns one number.
        x0: Where to begin, a vector.
        args: Further arguments of the function, which may be nested containers.
        method: One of SciPy's.
        jac: The gradient, if there is a better way to it; or True if `fun` returns it, too; or how
            SciPy computes differences of it and of constraints, such as "3-point".
        hess: The Hessian, likewise.
        hessp: The product of the Hessian with a vector, `hessp(x, p, *args)`.
        bounds: Lower and upper bounds of the variables. A variable at an active bound moves with
            the bound; the derivatives of the others are those with it held there.
        constraints: Constraints as SciPy takes them. Those that are active at the minimum are kept
            by derivatives.
        tol: SciPy's tolerance.
        callback: Called after each step.
        options: SciPy's options of the method.

    Returns:
        SciPy's result. If tensors went in, `x` and `fun` are tensors, differentiable with respect
        to what went in; under `vmap` and `jit` it has only `x`, `fun` and `success`.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy found no minimum.
        LinAlgError: In a derivative: the Hessian is singular at the minimum, or active constraints
            depend on each other.

    >>> def nearest(center):
    ...     def distance(x, center):
    ...         return np.sum((x - center) ** 2) + np.sum(x) ** 2
    ...
    ...     return gt.scipy.optimize.minimize(distance, np.zeros(2), args=(center,)).x
    >>> gt.jacobian(nearest)(np.array([1.0, 2.0])).round(6)
    array([[ 0.666667, -0.333333],
           [-0.333333,  0.666667]])
    """
    given = _Given(method, jac, hess, hessp, bounds, tol, callback, options)
    work = _Minimization(fun, x0, as_tuple(args), constraints, given)
    return with_captures(work.problems, work.result)


class _Given(NamedTuple):
    """Arguments that are passed on to SciPy."""

    method: Any
    jac: Any
    hess: Any
    hessp: Any
    bounds: Any
    tol: float | None
    callback: Callable[..., Any] | None
    options: dict[str, Any] | None


class _Minimization:
    """One call of `minimize`.

    Attributes:
        problems: The function, and those of constraints.
    """

    def __init__(
        self, fun: Any, x0: Any, args: tuple[Any, ...], constraints: Any, given: _Given
    ) -> None:
        name = "minimize"
        x0 = reshape(as_array(x0), (-1,)) if not as_array(x0).shape else as_array(x0)
        check_axes(name, x0, 1, what="x0")
        self._fun, self._given = as_function(fun, name), given
        # `jac=True`: the function returns the gradient, too.
        self._both = given.jac is True
        self._unknowns = Unknowns(name, x0)
        function = (lambda x, *args: fun(x, *args)[0]) if self._both else fun
        self._problem = Problem(name, function, self._unknowns, args)
        self._bounds = of_pairs(name, given.bounds, x0.shape[0])
        self._constraints = Constraints(name, constraints, self._unknowns)
        self.problems = [self._problem, *self._constraints.problems]

    def _groups(self) -> Groups:
        return Groups(
            self._unknowns.leaves,
            self._bounds,
            self._problem.operands,
            self._constraints.operands().inputs,
        )

    def result(self) -> Any:
        """What SciPy returns, with tensors in it if tensors went in."""
        import scipy.optimize

        groups = self._groups()
        if is_plain(groups.inputs):
            return self._minimized(groups.inputs, "jac='2-point' says so without a warning")
        count, more = self._unknowns.leaves[0].shape[0], len(self._constraints)
        solution = Solution(
            "minimize",
            self._found,
            self._equations,
            [Aval((count,), FLOAT), Aval((more,), FLOAT)] if more else [Aval((count,), FLOAT)],
            [Aval((count,), INTEGER), Aval((more,), INTEGER), Aval((count,), FLOAT)],
            what="a Hessian" if not more else "a Hessian with active constraints",
            symmetric=not (self._bounds or more),
        )
        (x, *_), constants = solution(groups.inputs, 1)
        result = scipy.optimize.OptimizeResult(success=constants[-1] != 0)
        if solution.found is not None:
            result = solution.found.result
        result.update(x=x, fun=self._problem(x, self._problem.operands))
        return result

    # ---- SciPy -----------------------------------------------------------------------------

    def _minimized(self, inputs: Sequence[Any], way: str | None = None) -> Any:
        """What SciPy returns for plain arrays; with `way` also by differences (`evaluated`)."""
        import scipy.optimize

        (x0,), bounds, operands, more = self._groups().split(inputs)
        given = self._given
        limits = given.bounds
        if bounds:
            kept = getattr(limits, "keep_feasible", False)
            limits = scipy.optimize.Bounds(*bounds, keep_feasible=kept)
        method = given.method
        if method is None:
            method = "SLSQP" if self._constraints.problems else "L-BFGS-B" if bounds else "BFGS"

        def solve(make: Make | None) -> Any:
            # Differences that are asked for are also those of constraints.
            make = None if isinstance(given.jac, str) else make
            function, derivatives = self._with_derivatives(method, operands, make)
            return scipy.optimize.minimize(
                function,
                x0,
                method=given.method,
                **derivatives,
                bounds=limits,
                constraints=self._constraints.for_scipy(more, make, method),
                tol=given.tol,
                callback=given.callback,
                options=given.options,
            )

        return evaluated("minimize", solve, way)

    def _with_derivatives(
        self, method: Any, operands: Sequence[Any], make: Make | None
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function for SciPy, and its derivatives: the user's, or gradtape's."""
        given, known = self._given, self._problem.arguments(operands)
        low = method.lower() if isinstance(method, str) else "trust-constr"

        def value(x: Any) -> Any:
            return self._problem(x, operands)

        def bound(function: Any) -> Any:
            return (lambda *xs: function(*xs, *known)) if callable(function) else function

        found = {"jac": bound(given.jac), "hess": bound(given.hess), "hessp": bound(given.hessp)}
        function: Callable[..., Any] = bound(self._fun) if self._both else value
        if make is None:
            return function, found
        if given.jac is None and low in _GRADIENTS:
            function, found["jac"] = make(value_and_grad(value)), True
        exact = found["jac"] is True or callable(found["jac"])
        if given.hess is None and given.hessp is None and exact:
            if low in _HESSIAN_PRODUCTS:
                found["hessp"] = make(lambda x, p: hvp(value, (x,), (p,)))
            elif low in _HESSIANS:
                found["hess"] = make(hessian(value))
        return function, found

    # ---- the equations of a minimum --------------------------------------------------------

    def _found(self, *inputs: Any) -> Found:
        result = self._minimized(inputs)
        (x0,), bounds, operands, more = self._groups().split(inputs)

        def value(x: Any) -> Any:
            return reshape(self._problem(x, operands), ())

        def constrained(x: Any) -> Any:
            return self._constraints.value(x, more)

        limits = self._constraints.limits
        limited = (constrained, limits(more)) if len(self._constraints) else ()
        conditions = Conditions(value, bounds, *limited)
        x = np.asarray(result.x, FLOAT)
        found = conditions.optimum(x, x0, succeeded=result.success)
        failure = failure_of(result.success, result.message, found.failure)
        constants = [found.side, found.active, found.x - x]
        results = [x, found.multipliers] if len(self._constraints) else [x]
        return Found(results, constants, result, failure, bool(result.success))

    def _equations(self, x: Sequence[Any], constants: Sequence[Any], inputs: Sequence[Any]) -> Any:
        _, bounds, operands, more = self._groups().split(inputs)
        side, active, left = constants[:3]
        at = x[0] + left

        def lagrangian(v: Any) -> Any:
            value = reshape(self._problem(v, operands), ())
            if len(x) == 1:
                return value
            return value - dot(x[1], self._constraints.value(v, more))

        equations = [with_bounds(grad(lagrangian)(at), at, side, bounds)]
        if len(x) > 1:
            equations.append(self._constraints.equations(at, x[1], active, more))
        return equations
