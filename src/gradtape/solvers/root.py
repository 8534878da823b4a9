"""`root` and `fixed_point`: the result of any solver, with the derivatives of the solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.core.aval import aval_of
from gradtape.core.portable import Transformed
from gradtape.errors import ArgumentError
from gradtape.solvers.implicit import ImplicitFunction
from gradtape.solvers.iteration import iterated
from gradtape.solvers.linear import LinearSolver, linear_solver as linear_solver_of, shown
from gradtape.solvers.newton import newton_steps
from gradtape.solvers.problem import Problem, Unknowns, like_first_guess, with_captures
from gradtape.solvers.residual import at_fixed_point, at_root

# Finds x, given a function of x and where to begin.
Solver = Callable[[Callable[[Any], Any], Any], Any]
# The tolerance that says: the default one.
_DEFAULT = "auto"


def _number(name: str, tol: float | str | None) -> float | None:
    """A tolerance; None for the default."""
    if isinstance(tol, str) and tol != _DEFAULT:
        raise ArgumentError(f"{name}: got tol={tol!r}, expected a number, 'auto' or None")
    return None if isinstance(tol, str) else tol


def root(
    f: Callable[..., Any],
    solver: Solver | None = None,
    *,
    linear_solver: str | LinearSolver = "auto",
    tol: float | str | None = _DEFAULT,
) -> Callable[..., Any]:
    """Return a function that solves `f(x, *args) = 0` for x, differentiable by the arguments.

    The steps of the solver are not recorded. Derivatives follow from the equation itself, in both
    modes and to any order; each costs one linear solve with ∂f/∂x, and a derivative of `f`.

    Args:
        f: The function. It returns as many numbers as x has, in any containers.
        solver: Finds a root: it is called `solver(g, x0)` with `g = lambda x: f(x, *args)`, and
            returns x. Any code will do: `scipy.optimize.fsolve` as it is, a `gt.while_loop`, or
            another library. By default it is `gt.implicit.newton`. One that can be traced is
            compiled by `gt.jit` and batched by `gt.vmap`; any other runs between compiled parts,
            and for each element of a batch.
        linear_solver: How derivatives solve with ∂f/∂x: "dense", "gmres", "bicgstab", "cg" (only if
            it is symmetric positive definite), or a function `linear_solver(matvec, b)` of flat
            real vectors, whose residual may be 7e-4 times b at most. "auto" is "dense" up to 1,000
            unknowns, and "gmres" above.
        tol: The largest residual of what the solver returns, relative to the size of the terms of
            `f`; by default 5e-7 for float64 and 2e-3 for float32, and None for any.

    Returns:
        A function `solve(x0, *args)` that begins at `x0`, a number, an array or containers of them,
        and returns x in the same form. Its derivative with respect to `x0` is zero. What `f` uses
        from outside is differentiated as well; that takes a trace of `f` at each call, which
        passing it as an argument saves.

    Raises:
        ConvergenceError: When it is called: what the solver returned is no root, or Newton's method
            takes more than 50 steps.
        LinAlgError: In a derivative: ∂f/∂x is singular there.
        ShapeError: There are not as many equations as unknowns, or the solver returned something of
            another form than `x0`.

    >>> kepler = gt.implicit.root(lambda E, e, M: E - e * np.sin(E) - M)
    >>> kepler(1.0, 0.5, 1.0).round(6), gt.grad(kepler, 1)(1.0, 0.5, 1.0).round(6)
    (np.float64(1.498701), np.float64(1.034667))
    """
    name = "root"
    f, limit = as_function(f, name), _number("root", tol)

    def run(g: Callable[[Any], Any], x0: Any) -> Any:
        if solver is None:
            x = newton_steps(name, g, x0, None, 50, strict=tol is not None)
        else:
            x = solver(g, x0)
        return x if tol is None else at_root(name, g, x0, x, limit)

    def residual(_x: Any, value: Any) -> Any:
        return value

    return _implicit(root, name, f, solver, run, residual, linear_solver, tol)


def fixed_point(
    g: Callable[..., Any],
    solver: Solver | None = None,
    *,
    linear_solver: str | LinearSolver = "auto",
    tol: float | str | None = _DEFAULT,
) -> Callable[..., Any]:
    """Return a function that solves `x = g(x, *args)` for x, differentiable by the arguments.

    The steps of the solver are not recorded. Derivatives follow from the equation itself, in both
    modes and to any order; each costs one linear solve with I − ∂g/∂x, and a derivative of `g`.

    Args:
        g: The function. It returns the containers and shapes that x has.
        solver: Finds a fixed point: it is called `solver(h, x0)` with `h = lambda x: g(x, *args)`,
            and returns x. By default it is `gt.implicit.iterate`.
        linear_solver: How derivatives solve with I − ∂g/∂x, as for `root`.
        tol: The largest change by `g` of what the solver returns, relative to the size of the terms
            of x − g(x); by default 5e-7 for float64 and 2e-3 for float32, and None for any.

    Returns:
        A function `solve(x0, *args)`, as `root` returns.

    Raises:
        ConvergenceError: When it is called: what the solver returned is no fixed point, or
            iteration takes more than 1000 steps.
        LinAlgError: In a derivative: I − ∂g/∂x is singular there.
        ShapeError: `g`, or the solver, returned something of another form than `x0`.

    >>> sqrt = gt.implicit.fixed_point(lambda x, a: 0.5 * (x + a / x))
    >>> sqrt(1.0, 2.0).round(6), gt.grad(sqrt, 1)(1.0, 2.0).round(6)
    (np.float64(1.414214), np.float64(0.353553))
    """
    name = "fixed_point"
    g, limit = as_function(g, name), _number("fixed_point", tol)

    def run(h: Callable[[Any], Any], x0: Any) -> Any:
        if solver is None:
            x = iterated(name, h, x0, None, 1000, 0, strict=tol is not None)
        else:
            x = solver(h, x0)
        return x if tol is None else at_fixed_point(name, h, x0, x, limit)

    def residual(x: Sequence[Any], value: Any) -> Any:
        leaves, _ = containers.flatten(value)
        return [a - b for a, b in zip(x, leaves, strict=True)]

    return _implicit(fixed_point, name, g, solver, run, residual, linear_solver, tol)


def _implicit(
    transform: Callable[..., Any],
    name: str,
    f: Callable[..., Any],
    solver: Solver | None,
    run: Solver,
    residual: Callable[[Sequence[Any], Any], Any],
    choice: str | LinearSolver,
    tol: Any,
) -> Transformed:
    """The function that `root` or `fixed_point` makes."""
    if solver is not None:
        as_function(solver, name)
    what = "a Jacobian ∂f/∂x" if name == "root" else "a matrix I − ∂g/∂x"
    linear = linear_solver_of(name, what, choice)

    def solution(problem: Problem, unknowns: Unknowns) -> Any:
        count = len(unknowns.leaves)

        def found(*leaves: Any) -> tuple[Any, ...]:
            def of_x(x: Any) -> Any:
                return problem(x, leaves[count:])

            x = run(of_x, unknowns.container(leaves[:count]))
            return tuple(like_first_guess(name, x, unknowns))

        def equations(x: Sequence[Any], _constants: Any, leaves: Sequence[Any]) -> Any:
            return residual(x, problem(unknowns.container(x), leaves[count:]))

        avals = [aval_of(leaf) for leaf in unknowns.leaves]
        function = ImplicitFunction(name, equations, avals, (), linear)
        return function(found, [*unknowns.leaves, *problem.operands], guesses=count)

    def solve(x0: Any, *args: Any) -> Any:
        unknowns = Unknowns(name, x0)
        problem = Problem(name, f, unknowns, args)
        leaves = with_captures([problem], lambda: solution(problem, unknowns))
        return unknowns.container([shown(leaf) for leaf in leaves])

    options = {"linear_solver": choice, "tol": tol}
    return Transformed(solve, transform, (f, solver), options)
