"""`solve_ivp`: initial value problems under SciPy's name, with derivatives of the solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.core.aval import aval_of
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.graph.known_values import is_batched, is_traced
from gradtape.graph.loop_state import checked_save
from gradtape.graph.while_op import Save
from gradtape.ops.checks import check_choice
from gradtape.ops.shape import transpose
from gradtape.solvers.integrate.adjoint import Flow, OfOperands, Way
from gradtape.solvers.integrate.arguments import (
    as_tensor,
    ends,
    further_arguments,
    given,
    in_interval,
    initial_value,
    lengths,
    like_jacobian,
    like_y,
    listed,
    of_point,
    times,
    tolerances,
)
from gradtape.solvers.integrate.by_scipy import by_scipy, is_solver, with_tensors
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.events import EventFunction
from gradtape.solvers.integrate.explicit import ExplicitMethod
from gradtape.solvers.integrate.fixed_size import of_fixed_size
from gradtape.solvers.integrate.integrator import Interval
from gradtape.solvers.integrate.outcome import END, FAILURE, Asked, result_of, unknown_size
from gradtape.solvers.integrate.radau import Radau
from gradtape.solvers.integrate.steps import Method
from gradtape.solvers.integrate.walk import Walk
from gradtape.solvers.problem import Problem, Unknowns, with_captures

_METHODS = ("RK23", "RK45", "DOP853", "Radau")
_ONLY_SCIPY = ("BDF", "LSODA")
_ALL = (*_METHODS, *_ONLY_SCIPY)


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    rtol: float = 1e-3,
    atol: Any = 1e-6,
    first_step: float | None = None,
    max_step: float = np.inf,
    jac: Any = None,
    jac_sparsity: Any = None,
    lband: int | None = None,
    uband: int | None = None,
    min_step: float | None = None,
    gradient: str = "discrete",
    save: Save = "all",
) -> Any:
    """Solve dy/dt = fun(t, y) from a value at one time, as `scipy.integrate.solve_ivp` does.

    Without tensors it is SciPy's function. With tensors gradtape takes the steps, by the same
    methods: the solution, the times of events and the dense output are differentiable with respect
    to `y0`, `t_span`, `t_eval`, `args` and tensors that `fun` uses from outside. Under `gt.jit` the
    solver is one native loop.

    Args:
        fun: The right-hand side, `fun(t, y, *args)`; returns as many numbers as y has.
        t_span: The times where to begin and to end, in any order.
        y0: y at the beginning, of shape (n,).
        method: "RK45", "RK23", "DOP853" (for small tolerances), or "Radau" (for stiff equations).
            Without tensors also "BDF", "LSODA", or a class of solvers as SciPy takes it.
        t_eval: The times at which the solution is returned, in order; by default those of the
            steps. Compiled or batched functions need it, as they cannot know the number of steps.
        dense_output: Whether to return the solution as a function of time, too.
        events: A function `event(t, y, *args)`, or several, whose zeros are found. Their attributes
            `terminal` and `direction` are SciPy's. Compiled or batched, all have to be terminal.
        vectorized: Whether `fun` takes and returns arrays of shape (n, k).
        args: Further arguments of `fun`, `jac` and the events, which may be nested containers.
        rtol: The error that is allowed in a step, relative to y,
        atol: and absolute; a number or one for each component.
        first_step: The length of the first step; by default it is estimated.
        max_step: The length of the longest step.
        jac: For "Radau": ∂f/∂y, as a matrix or a function `jac(t, y, *args)`; by default it is
            computed by forward mode (without tensors: by SciPy's differences). A sparse one of
            SciPy is made dense where there are tensors.
        jac_sparsity: Without tensors: where ∂f/∂y is not 0, for "Radau" and "BDF".
        lband: Without tensors: the lower bandwidth of ∂f/∂y, for "LSODA",
        uband: and the upper one.
        min_step: Without tensors: the length of the shortest step, for "LSODA".
        gradient: "discrete" differentiates the steps as they were taken, with their lengths as
            constants: exact for the discretisation. "adjoint" solves further equations backwards
            (and forwards, for tangents): its memory does not grow with the number of steps, and
            its results are as accurate as the tolerances.
        save: The states that a backward pass through the steps keeps, as in `while_loop`; other
            than "all" it needs `t_eval`.

    Returns:
        SciPy's result: `t`, `y` of shape (n, number of times), `sol`, `t_events`, `y_events`,
        `nfev`, `njev`, `nlu`, `status`, `message`, `success`. Compiled or batched, each entry of
        `t_events` has one time, NaN if another event came first, and `y` is NaN after it.

    Raises:
        ArgumentError: An option is out of its range; times are out of order or outside of `t_span`.
        ConvergenceError: With tensors: no step is short enough (without, `success` is False, as in
            SciPy); or compiled, no event happened. In a gradient by "adjoint": the solution cannot
            be followed backwards, as is common for stiff equations.
        DTypeError: `fun` returns complex numbers for a real `y0`.
        LinAlgError: In a derivative: the solution only touches the zero of an event.
        ShapeError: `fun` returns something of another shape than y.
        UnknownSizeError: There is no `t_eval` under `jit` or `vmap`.
        UnsupportedError: With tensors: the method, or an option, is one that only SciPy has.

    >>> def end(rate):
    ...     decay = lambda t, y: -rate * y
    ...     return gt.scipy.integrate.solve_ivp(
    ...         decay, (0.0, 1.0), [1.0], t_eval=[1.0], rtol=1e-8
    ...     ).y[0, 0]
    >>> f"{end(2.0):.6f}, {gt.grad(end)(2.0):.6f}"
    '0.135335, -0.135335'
    """
    name = "solve_ivp"
    fun = as_function(fun, name)
    if not is_solver(method):
        check_choice(name, _ALL, method=method)
    check_choice(name, ("discrete", "adjoint"), gradient=gradient)
    save = checked_save(name, save)
    options = lengths(first_step, max_step)
    (t0, t1), y0, watched = ends(t_span), initial_value(y0), listed(events)
    allowed = tolerances(rtol, atol, y0.shape[0])
    y0 = in_interval(y0, t0, t1, t_eval, first_step)
    arguments = further_arguments(args)
    only_scipy = given(jac_sparsity=jac_sparsity, lband=lband, uband=uband, min_step=min_step)
    options |= only_scipy | {
        "method": method, "t_eval": t_eval, "dense_output": dense_output, "vectorized": vectorized,
        "args": arguments or None, "rtol": rtol, "atol": atol,
    }  # fmt: skip

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.integrate

        events = [of_arrays(event) for event in watched] or None
        others = options if jac is None else options | {"jac": of_arrays(jac)}
        return scipy.integrate.solve_ivp(of_arrays(fun), t_span, y0, events=events, **others)

    found = by_scipy(solved, (t_span, y0, options, jac))
    if found is not None:
        return found
    method = with_tensors(method, _ALL, only_scipy)
    y0 = as_tensor(y0)
    is_adjoint = gradient == "adjoint"
    _check_derivatives(method, is_adjoint, y0, bool(watched or dense_output or save != "all"))
    asked = Asked(t0, t1, y0, t_eval, dense_output, [], save)
    problem = _InitialValueProblem(of_point(fun, vectorized), asked, arguments, method, jac)
    way = Way(problem.method, allowed, first_step, max_step, FAILURE)
    return problem.solution(watched, way, is_adjoint)


def _check_derivatives(method: str, is_adjoint: bool, y0: Any, needs_steps: bool) -> None:
    """Raise for what has no derivatives."""
    if method in _ONLY_SCIPY:
        raise UnsupportedError(
            f"solve_ivp: got a tensor with method={method!r}, which has no derivatives; use "
            "'Radau' for stiff equations"
        )
    if (method == "Radau" or is_adjoint) and aval_of(y0).dtype.kind == "c":
        what = "gradient='adjoint'" if is_adjoint else f"method={method!r}"
        raise UnsupportedError(
            f"solve_ivp: {what} takes real numbers where there are tensors; use "
            "y0 = [y.real, y.imag], or method='RK45' with discrete gradients"
        )
    if is_adjoint and needs_steps:
        raise UnsupportedError(
            "solve_ivp: gradient='adjoint' gives derivatives at the times in t_eval; leave out "
            "events, dense_output and save, or use gradient='discrete'"
        )


class _InitialValueProblem:
    """The equations, with their arguments, and how they are solved.

    Args:
        f: The right-hand side, of the pair (t, y) and further arguments.
        asked: What is to be solved and returned; no events yet.
        arguments: The further arguments.
        method: The name of the method.
        jac: ∂f/∂y, if it is given.
    """

    def __init__(
        self, f: Callable[..., Any], asked: Asked, arguments: tuple[Any, ...], method: str, jac: Any
    ) -> None:
        self._f, self._asked, self._arguments = f, asked, arguments
        self._method, self._jac = method, jac
        self._unknowns = Unknowns("solve_ivp", (asked.t0, asked.y0))
        self._problem = Problem("solve_ivp", f, self._unknowns, arguments)

    def solution(self, events: Sequence[Callable[..., Any]], way: Way, is_adjoint: bool) -> Any:
        """What `solve_ivp` returns."""
        watched = [EventFunction(event, self._unknowns, self._arguments) for event in events]
        asked = self._asked._replace(events=watched)
        problems = [event.problem for event in watched]
        is_stiff = self._method == "Radau"
        f: OfOperands
        if is_stiff or is_adjoint:
            problems.append(self._problem)
            f = self._of_operands
            if asked.save != "all":
                # The steps are traced, where what the equation uses from outside is not found.
                self._problem.trace(strict=False)
        else:
            # What it uses from outside is recorded with the steps.
            f = self._as_it_is
        run = _by_adjoint if is_adjoint else _by_steps
        result = with_captures(problems, lambda: run(asked, f, self._problem, way))
        tries = result.pop("tries")
        result["njev"] = result["nlu"] = 0
        if is_stiff:
            result["njev"], result["nlu"] = tries, 2 * tries
        return result

    def method(self, f: OfOperands, operands: Sequence[Any]) -> Method:
        """The method for a right-hand side: this one, or one of a derivative."""
        if self._method != "Radau":
            return ExplicitMethod(self._method)
        is_own = f == self._of_operands and self._jac is not None
        return Radau(f, operands, self._jacobian if is_own else None)

    def _as_it_is(self, t: Any, y: Any, _operands: Sequence[Any]) -> Any:
        return like_y(self._f((t, y), *self._arguments), self._asked.y0)

    def _of_operands(self, t: Any, y: Any, operands: Sequence[Any]) -> Any:
        return like_y(self._problem((t, y), operands), self._asked.y0)

    def _jacobian(self, t: Any, y: Any, operands: Sequence[Any]) -> Any:
        jac = self._jac
        known = self._problem.arguments(operands)
        matrix = jac(t, y, *known) if callable(jac) else jac
        return still(like_jacobian(matrix, y.shape[0]))


# ---- the solution -------------------------------------------------------------------------------


def _by_adjoint(asked: Asked, f: OfOperands, problem: Problem, way: Way) -> Any:
    """The result of `solve_ivp` with gradients by further problems."""
    t0, t1, y0 = asked.t0, asked.t1, asked.y0
    interval = Interval(t0, t1)
    t_eval = asked.t_eval
    if t_eval is None:
        values = [t0, t1, y0, *problem.operands]
        if _is_unsized(values):
            raise unknown_size()
        plain = [still(x) for x in problem.operands]
        of_time, integrator = way.integrator(f, plain, Interval(still(t0), still(t1)))
        walk = Walk(integrator, asked._replace(events=[], dense_output=False))
        start = integrator.start(still(y0), of_time(still(t0), still(y0)))
        t_eval = interval.at(walk.result(start)["t"])
    t_eval = times(t_eval, interval)
    if not t_eval.shape[0]:
        return result_of(t_eval, np.zeros((*y0.shape, 0)), 0, 0, END)
    ys, calls = Flow(f, way)(t0, t_eval, y0, problem.operands)
    return result_of(t_eval, transpose(ys), calls, 0, END)


def _by_steps(asked: Asked, f: OfOperands, problem: Problem, way: Way) -> Any:
    """The result of `solve_ivp` with gradients of the steps."""
    of_time, integrator = way.integrator(f, problem.operands, Interval(asked.t0, asked.t1))
    state = integrator.start(asked.y0, of_time(asked.t0, asked.y0))
    values = [event(asked.t0, asked.y0) for event in asked.events]
    t_eval = None if asked.t_eval is None else times(asked.t_eval, integrator.interval)
    asked = asked._replace(t_eval=t_eval)
    known = [state, values, asked.t1, t_eval]
    if _is_unsized(known):
        return of_fixed_size(integrator, asked, state, values)
    if asked.save != "all":
        if t_eval is None or asked.events or asked.dense_output:
            raise ArgumentError(
                f"solve_ivp: got save={asked.save!r}, expected it with t_eval, and without events "
                "and dense_output: those keep every step"
            )
        return of_fixed_size(integrator, asked, state, values)
    return Walk(integrator, asked).result(state, values)


def _is_unsized(values: Any) -> bool:
    """Whether a function is compiled or batched, so that the number of steps is not known."""
    leaves, _ = containers.flatten(values)
    return is_traced(leaves) or any(isinstance(x, Tensor) and is_batched(x) for x in leaves)
