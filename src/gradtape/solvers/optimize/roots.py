"""`root`, `root_scalar`, `brentq`, … and `fixed_point` of SciPy, with differentiable solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.forward import ones_like
from gradtape.autodiff.jacobians import jacobian
from gradtape.autodiff.reverse import grad
from gradtape.autodiff.transforms import jvp
from gradtape.core.aval import Aval
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_choice
from gradtape.ops.family import member
from gradtape.ops.shape import reshape
from gradtape.solvers.optimize.evaluator import Make, evaluated
from gradtape.solvers.optimize.solution import (
    FLOAT,
    Found,
    Solution,
    as_tuple,
    failure_of,
    is_plain,
)
from gradtape.solvers.optimize.zero import wrong_root
from gradtape.solvers.problem import Problem, Unknowns, with_captures

# SciPy's default: four times the distance from 1 to the next number.
_RTOL = 4 * np.finfo(float).eps
# Methods of `root` that take the Jacobian; of these, and of one more, the solution is a vector.
_USE_JACOBIAN = ("hybr", "lm")
_FLAT = (*_USE_JACOBIAN, "df-sane")
_METHODS = (
    "hybr", "lm", "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden",
    "excitingmixing", "krylov", "df-sane",
)  # fmt: skip


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a vector function, as `scipy.optimize.root` does.

    SciPy takes the steps. Without `jac`, methods that use the Jacobian get it from gradtape. If
    `args`, or tensors that `fun` uses from outside, are being differentiated, so is the result.

    Args:
        fun: The function, `fun(x, *args)`.
        x0: Where to begin.
        args: Further arguments of the function, which may be nested containers.
        method: One of SciPy's.
        jac: The Jacobian, if there is a better way to it; or whether `fun` returns it, too, which
            False leaves to SciPy's differences.
        tol: SciPy's tolerance.
        callback: Called after each step.
        options: SciPy's options of the method.

    Returns:
        SciPy's result. If tensors went in, `x` and `fun` are tensors, differentiable with respect
        to `args`; under `vmap` and `jit` it has only `x`, `fun` and `success`.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy found no solution.
        LinAlgError: In a derivative: the Jacobian is singular at the solution.

    >>> def solution(a):
    ...     return gt.scipy.optimize.root(lambda x, a: x**3 - a, np.ones(2), args=(a,)).x
    >>> solution(np.array([8.0, 27.0])).round(6)
    array([2., 3.])
    >>> gt.jacobian(solution)(np.array([8.0, 27.0])).round(6)
    array([[0.083333, 0.      ],
           [0.      , 0.037037]])
    """
    import scipy.optimize

    name = "root"
    fun = as_function(fun, name)
    check_choice(name, _METHODS, method=method.lower())
    if isinstance(jac, str):
        raise ArgumentError(
            f"{name}: got jac={jac!r}, expected a function, True, or False for SciPy's differences"
        )
    returns_jac = jac is not None and not callable(jac) and bool(jac)
    supplied = jac is None and method.lower() in _USE_JACOBIAN
    x0 = as_array(x0)
    if method.lower() in _FLAT:
        x0 = reshape(x0, (-1,))
    unknowns = Unknowns(name, x0)
    problem = Problem(name, _first(fun) if returns_jac else fun, unknowns, as_tuple(args))

    def scipys(x0: Any, *operands: Any, way: str | None = None) -> Any:
        def value(x: Any) -> Any:
            return problem(x, operands)

        def solve(make: Make | None) -> Any:
            function, slope = value, jac
            if supplied and make is not None:
                slope = make(lambda x: reshape(jacobian(value)(x), (-1, x.size)))
            elif jac is not None:
                known = problem.arguments(operands)
                function = (lambda x: fun(x, *known)) if returns_jac else value
                slope = (lambda x: jac(x, *known)) if callable(jac) else jac
            return scipy.optimize.root(function, x0, (), method, slope, tol, callback, options)

        return evaluated(name, solve, way)

    return with_captures([problem], lambda: _vector_root(problem, unknowns, scipys))


def _vector_root(problem: Problem, unknowns: Unknowns, scipys: Callable[..., Any]) -> Any:
    """SciPy's result, with tensors in it if tensors went in.

    Args:
        problem: The function.
        unknowns: Where to begin.
        scipys: `scipys(x0, *operands)` returns SciPy's result for plain arrays.
    """
    import scipy.optimize

    def run(x0: Any, *operands: Any) -> Found:
        result = scipys(x0, *operands)
        wrong = wrong_root(lambda x: problem(x, operands), result.x, [x0])
        failure = failure_of(result.success, result.message, wrong)
        return Found([result.x], [], result, failure, bool(result.success))

    def residual(x: Any, _constants: Any, inputs: Any) -> Any:
        return problem(x[0], inputs[1:])

    inputs = [*unknowns.leaves, *problem.operands]
    if is_plain(inputs):
        return scipys(*inputs, way="jac=False says so without a warning")
    aval = Aval(unknowns.leaves[0].shape, FLOAT)
    solved = Solution(problem.name, run, residual, [aval], what="a Jacobian")
    (x,), constants = solved(inputs, 1)
    result = scipy.optimize.OptimizeResult(success=constants[-1] != 0)
    if solved.found is not None:
        result = solved.found.result
    result.update(x=x, fun=problem(x, problem.operands))
    return result


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its derivatives as well, without them."""
    return lambda x, *args: function(x, *args)[0]


# ---- one equation -------------------------------------------------------------------------------


def _bracketed(
    name: str,
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = 2e-12,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find a root of a function between two points, as `scipy.optimize.{name}` does.

    SciPy takes the steps. If `args`, or tensors that `f` uses from outside, are being
    differentiated, so is the root; it does not depend on the points it is searched between.

    Args:
        f: The function, `f(x, *args)`, with values of different signs at `a` and `b`.
        a: One end.
        b: The other end.
        args: Further arguments of the function, which may be nested containers.
        xtol: SciPy's tolerance of the root,
        rtol: and relative to it.
        maxiter: The most steps to take.
        full_output: Whether to return SciPy's report, too.
        disp: Whether to raise if it does not converge.

    Returns:
        The root: a float, or a tensor if tensors went in; with `full_output` also the report.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy did not find a root; or tensors
            went in, and with `disp` SciPy would raise its RuntimeError.
        LinAlgError: In a derivative: the function has slope 0 at the root.

    bisect:
    >>> root = gt.scipy.optimize.bisect
    >>> gt.grad(lambda a: root(lambda x, a: x**2 - a, 0.0, 4.5, (a,)))(4.0).round(6)
    np.float64(0.25)

    brenth:
    >>> root = gt.scipy.optimize.brenth
    >>> gt.grad(lambda a: root(lambda x, a: x**2 - a, 0.0, 4.5, (a,)))(4.0).round(6)
    np.float64(0.25)

    brentq:
    >>> root = gt.scipy.optimize.brentq
    >>> gt.grad(lambda a: root(lambda x, a: x**2 - a, 0.0, 4.5, (a,)))(4.0).round(6)
    np.float64(0.25)

    ridder:
    >>> root = gt.scipy.optimize.ridder
    >>> gt.grad(lambda a: root(lambda x, a: x**2 - a, 0.0, 4.5, (a,)))(4.0).round(6)
    np.float64(0.25)
    """

    def call(value: Callable[[Any], Any], _make: Make, ends: Any, _args: Any) -> Any:
        import scipy.optimize

        find = getattr(scipy.optimize, name)
        return find(value, *map(float, ends), (), xtol, rtol, maxiter, True, disp)[1]

    report = _scalar_root(name, f, as_tuple(args), [a, b], call, bracket=True)
    return (report.root, report) if full_output else report.root


bisect = member("bisect", _bracketed)
brenth = member("brenth", _bracketed)
brentq = member("brentq", _bracketed)
ridder = member("ridder", _bracketed)


def toms748(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    k: int = 1,
    xtol: float = 2e-12,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find a root of a function between two points, as `scipy.optimize.toms748` does.

    SciPy takes the steps. If `args`, or tensors that `f` uses from outside, are being
    differentiated, so is the root; it does not depend on the points it is searched between.

    Args:
        f: The function, `f(x, *args)`, with values of different signs at `a` and `b`.
        a: One end.
        b: The other end.
        args: Further arguments of the function, which may be nested containers.
        k: How many steps of Newton's method for a quadratic polynomial each step has.
        xtol: SciPy's tolerance of the root,
        rtol: and relative to it.
        maxiter: The most steps to take.
        full_output: Whether to return SciPy's report, too.
        disp: Whether to raise if it does not converge.

    Returns:
        The root: a float, or a tensor if tensors went in; with `full_output` also the report.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy did not find a root; or tensors
            went in, and with `disp` SciPy would raise its RuntimeError.
        LinAlgError: In a derivative: the function has slope 0 at the root.

    >>> def root(a):
    ...     return gt.scipy.optimize.toms748(lambda x, a: x**2 - a, 0.0, 4.5, (a,))
    >>> gt.grad(root)(4.0).round(6)
    np.float64(0.25)
    """

    def call(value: Callable[[Any], Any], _make: Make, ends: Any, _args: Any) -> Any:
        import scipy.optimize

        find = scipy.optimize.toms748
        return find(value, *map(float, ends), (), k, xtol, rtol, maxiter, True, disp)[1]

    report = _scalar_root("toms748", f, as_tuple(args), [a, b], call, bracket=True)
    return (report.root, report) if full_output else report.root


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a function of one number, as `scipy.optimize.root_scalar` does.

    SciPy takes the steps. Without `fprime` and `fprime2`, the methods of Newton and Halley get
    derivatives from gradtape. If `args`, or tensors that `f` uses from outside, are being
    differentiated, so is the root.

    Args:
        f: The function, `f(x, *args)`.
        args: Further arguments of the function, which may be nested containers.
        method: One of SciPy's.
        bracket: Two points between which the root is.
        fprime: The derivative, if there is a better way to it; or whether `f` returns it, too.
        fprime2: The second derivative, likewise.
        x0: Where to begin.
        x1: A second guess.
        xtol: SciPy's tolerance of the root,
        rtol: and relative to it.
        maxiter: The most steps to take.
        options: SciPy's options of the method.

    Returns:
        SciPy's report. If tensors went in, its `root` is a tensor, differentiable with respect to
        `args`; under `vmap` and `jit` it has only `root` and `converged`.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy did not converge.
        LinAlgError: In a derivative: the function has slope 0 at the root.

    >>> def root(a):
    ...     return gt.scipy.optimize.root_scalar(lambda x, a: x**2 - a, args=(a,), x0=1.0).root
    >>> gt.grad(root)(4.0).round(6)
    np.float64(0.25)
    """
    newton = (method or "newton").lower()
    own = bracket is None and x1 is None and newton in ("newton", "halley")
    gives = [d is not None and not callable(d) and bool(d) for d in (fprime, fprime2)]

    def call(value: Callable[[Any], Any], make: Make | None, points: Any, known: Any) -> Any:
        import scipy.optimize

        start = {key: point.item() for key, point in zip(names, points, strict=True)}
        ends = (start.pop("a"), start.pop("b")) if bracket is not None else None
        function = (lambda x: f(x, *known)) if any(gives) else value
        slopes = [(lambda x, d=d: d(x, *known)) if callable(d) else d for d in (fprime, fprime2)]
        if own and slopes[0] is None and make is not None:
            slopes[0] = make(_slope(value))
        second = newton == "halley" and slopes[1] is None and not gives[0]
        if own and second and make is not None:
            slopes[1] = make(_slope(_slope(value)))
        return scipy.optimize.root_scalar(
            function, (), method, ends, *slopes, **start, xtol=xtol, rtol=rtol, maxiter=maxiter,
            options=options,
        )  # fmt: skip

    points = {} if bracket is None else dict(zip("ab", bracket, strict=True))
    points |= {key: point for key, point in (("x0", x0), ("x1", x1)) if point is not None}
    names = list(points)
    base = _first(f) if any(gives) else f
    within = bracket is not None
    return _scalar_root(
        "root_scalar", base, as_tuple(args), list(points.values()), call, bracket=within
    )


def _scalar_root(
    name: str,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    points: list[Any],
    call: Any,
    *,
    bracket: bool,
) -> Any:
    """SciPy's report on a root of a function of one number.

    Args:
        name: The name in errors.
        f: The function.
        args: Its further arguments.
        points: Where the root is searched for.
        call: `call(value, make, points, args)` calls SciPy.
        bracket: Whether the root is between the points.
    """
    import scipy.optimize

    guesses = [_point(p) if is_plain([p]) else stop_gradient(p) for p in points]
    if not guesses:
        raise ArgumentError(f"{name}: got no point to begin at, expected a bracket or x0")
    dtype = np.result_type(FLOAT, *(guess.dtype for guess in guesses))
    unknowns = Unknowns(name, guesses[0])
    problem = Problem(name, as_function(f, name), unknowns, args)

    def scipys(*inputs: Any, way: str | None = None) -> Any:
        begin, operands = inputs[: len(guesses)], inputs[len(guesses) :]

        def value(x: Any) -> Any:
            return problem(x, operands)

        known = problem.arguments(operands)
        return evaluated(name, lambda make: call(value, make, begin, known), way)

    def run(*inputs: Any) -> Found:
        report = scipys(*inputs)
        begin, operands = inputs[: len(guesses)], inputs[len(guesses) :]
        wrong = wrong_root(lambda x: problem(x, operands), report.root, begin, bracket=bracket)
        failure = failure_of(report.converged, report.flag, wrong)
        return Found([report.root], [], report, failure, bool(report.converged))

    def residual(x: Any, _constants: Any, inputs: Any) -> Any:
        return problem(x[0], inputs[len(guesses) :])

    def solution() -> Any:
        inputs = [*Unknowns(name, guesses).leaves, *problem.operands]
        if is_plain(inputs):
            return scipys(*inputs, way="fprime=False says so without a warning")
        solved = Solution(name, run, residual, [Aval((), dtype)], what="a derivative")
        (x,), constants = solved(inputs, len(guesses))
        report = scipy.optimize.OptimizeResult(converged=constants[-1] != 0)
        if solved.found is not None:
            report = solved.found.result
        report.update(root=x)
        return report

    return with_captures([problem], solution)


def _point(p: Any) -> Any:
    p = np.asarray(p)
    return p.astype(np.result_type(FLOAT, p.dtype))


def _slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of a function of one number, which may be complex."""
    slope = grad(f)

    def of(x: Any) -> Any:
        return jvp(f, (x,), (ones_like(x),))[1] if np.iscomplexobj(x) else slope(x)

    return of


# ---- fixed points -------------------------------------------------------------------------------


def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """Find a fixed point of a function, as `scipy.optimize.fixed_point` does.

    SciPy takes the steps. If `args`, or tensors that `func` uses from outside, are being
    differentiated, so is the result.

    Args:
        func: The function, `func(x, *args)`.
        x0: Where to begin.
        args: Further arguments of the function, which may be nested containers.
        xtol: SciPy's tolerance.
        maxiter: The most steps to take.
        method: "del2", with Steffensen's acceleration, or "iteration".

    Returns:
        The fixed point: an array, or a tensor if tensors went in.

    Raises:
        ConvergenceError: Tensors went in, and SciPy found no fixed point; else it is SciPy's
            RuntimeError.
        LinAlgError: In a derivative: the fixed point is not isolated.

    >>> def root(a):
    ...     return gt.scipy.optimize.fixed_point(lambda x, a: 0.5 * (x + a / x), 1.0, (a,))
    >>> gt.grad(root)(4.0).round(6)
    np.float64(0.25)
    """
    import scipy.optimize

    name = "fixed_point"
    unknowns = Unknowns(name, as_array(x0))
    problem = Problem(name, as_function(func, name), unknowns, as_tuple(args))

    def scipys(x0: Any, *operands: Any) -> Any:
        return scipy.optimize.fixed_point(
            lambda x: problem(x, operands), x0, (), xtol, maxiter, method
        )

    def run(x0: Any, *operands: Any) -> Found:
        def step(x: Any) -> Any:
            return problem(x, operands) - x

        x = scipys(x0, *operands)
        return Found([x], [], x, wrong_root(step, x, [x0], terms=x))

    def residual(x: Any, _constants: Any, inputs: Any) -> Any:
        return x[0] - problem(x[0], inputs[1:])

    def solution() -> Any:
        inputs = [*unknowns.leaves, *problem.operands]
        if is_plain(inputs):
            return scipys(*inputs)
        aval = Aval(unknowns.leaves[0].shape, FLOAT)
        return Solution(name, run, residual, [aval], what="a matrix I − ∂func/∂x")(inputs, 1)[0][0]

    return with_captures([problem], solution)
