"""Functions of SciPy for one method: `newton`, `fsolve`, `leastsq`; and `minimize_scalar`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.reverse import grad
from gradtape.core.aval import Aval
from gradtape.errors import UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.joined import holds_tensor, joined
from gradtape.ops.shape import reshape
from gradtape.solvers.integrate.by_scipy import by_scipy
from gradtape.solvers.optimize.least_squares import least_squares
from gradtape.solvers.optimize.optimality import Conditions
from gradtape.solvers.optimize.roots import root
from gradtape.solvers.optimize.solution import FLOAT, Found, Solution, as_tuple, failure_of
from gradtape.solvers.optimize.zero import wrong_root
from gradtape.solvers.problem import Problem, Unknowns, with_captures


def _refuse(name: str, instead: str, **options: Any) -> None:
    for option, value in options.items():
        if value is not None and np.any(value):
            raise UnsupportedError(
                f"{name}: got {option}= where there are tensors, expected it to be left out; "
                f"{instead}"
            )


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable[..., Any] | None = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find a root of a function of one number, or of each of several, as SciPy's function does.

    SciPy takes the steps: without `fprime` those of the secant method. If `args`, or tensors that
    `func` uses from outside, are being differentiated, so is the root.

    Args:
        func: The function, `func(x, *args)`.
        x0: Where to begin: a number, or an array of independent ones.
        fprime: The derivative, `fprime(x, *args)`.
        args: Further arguments of the functions, which may be nested containers.
        tol: The length of a step that ends the search.
        maxiter: The most steps to take.
        fprime2: The second derivative, for Halley's method.
        x1: A second guess.
        rtol: The length of the last step relative to the root.
        full_output: Without tensors: whether to return SciPy's report, too.
        disp: Whether to raise if it does not converge.

    Returns:
        The root: a number or an array, or a tensor if tensors went in.

    Raises:
        ConvergenceError: Tensors went in, and SciPy found no root, or a derivative is asked for
            where it is none.
        LinAlgError: In a derivative: the function has slope 0 at the root.
        UnsupportedError: With tensors: `full_output`.

    >>> root = gt.scipy.optimize.newton
    >>> gt.grad(lambda a: root(lambda x, a: x**2 - a, 1.0, args=(a,)))(4.0).round(6)
    np.float64(0.25)
    """
    name = "newton"
    func, args = as_function(func, name), as_tuple(args)
    options = {"tol": tol, "maxiter": maxiter, "rtol": rtol, "disp": disp}

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.optimize

        functions = {"fprime": of_arrays(fprime), "fprime2": of_arrays(fprime2)}
        return scipy.optimize.newton(
            of_arrays(func), x0, args=args, x1=x1, full_output=full_output, **functions, **options
        )

    found = by_scipy(solved, (x0, x1, args, options))
    if found is not None:
        return found
    _refuse(name, "root_scalar has a report", full_output=full_output)
    unknowns = Unknowns(name, as_array(joined(x0)))
    second = None if x1 is None else Unknowns(name, as_array(joined(x1)))
    problem = Problem(name, func, unknowns, args)
    guesses = [*unknowns.leaves, *(second.leaves if second else [])]
    dtype = np.result_type(FLOAT, *(guess.dtype for guess in guesses))

    def run(*inputs: Any) -> Found:
        import scipy.optimize

        points, operands = inputs[: len(guesses)], inputs[len(guesses) :]
        known = problem.arguments(operands)
        slopes = [(lambda x, d=d: d(x, *known)) if d else None for d in (fprime, fprime2)]
        start = [point if point.shape else point.item() for point in points]
        x = scipy.optimize.newton(
            lambda x: problem(x, operands), start[0], slopes[0], fprime2=slopes[1],
            x1=start[1] if len(start) > 1 else None, **options,
        )  # fmt: skip
        wrong = wrong_root(lambda x: problem(x, operands), np.asarray(x, dtype), points)
        return Found([x], [], x, wrong)

    def residual(x: Any, _constants: Any, inputs: Any) -> Any:
        return problem(x[0], inputs[len(guesses) :])

    def solution() -> Any:
        aval = Aval(guesses[0].shape, dtype)
        solved = Solution(name, run, residual, [aval], what="a derivative")
        return solved([*guesses, *problem.operands], len(guesses))[0][0]

    return with_captures([problem], solution)


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Callable[..., Any] | None = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-08,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Find a root of a vector function, as `scipy.optimize.fsolve` does.

    SciPy takes the steps, with tensors as `root` with method="hybr": derivatives come from
    gradtape. If `args`, or tensors that `func` uses from outside, are being differentiated, so is
    the result.

    Args:
        func: The function, `func(x, *args)`.
        x0: Where to begin.
        args: Further arguments of the function, which may be nested containers.
        fprime: The Jacobian, `fprime(x, *args)`.
        full_output: Without tensors: whether to return SciPy's report, too.
        col_deriv: Whether columns of the Jacobian are derivatives.
        xtol: SciPy's tolerance.
        maxfev: The most calls of the function; 0 for SciPy's number.
        band: How many diagonals of the Jacobian are not 0, for SciPy's differences.
        epsfcn: The step of SciPy's differences.
        factor: How long the first step may be.
        diag: Scales of the variables.

    Returns:
        The root: an array, or a tensor if tensors went in.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy found no solution.
        LinAlgError: In a derivative: the Jacobian is singular at the solution.
        UnsupportedError: With tensors: `full_output`.

    >>> def solution(a):
    ...     return gt.scipy.optimize.fsolve(lambda x, a: x**3 - a, np.ones(2), (a,))
    >>> gt.jacobian(solution)(np.array([8.0, 27.0])).round(6)
    array([[0.083333, 0.      ],
           [0.      , 0.037037]])
    """
    name = "fsolve"
    func, args = as_function(func, name), as_tuple(args)

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.optimize

        return scipy.optimize.fsolve(
            of_arrays(func), x0, args, of_arrays(fprime), full_output, col_deriv, xtol, maxfev,
            band, epsfcn, factor, diag,
        )  # fmt: skip

    found = by_scipy(solved, (x0, args, diag))
    if found is not None:
        return found
    _refuse(name, "root has a report", full_output=full_output)
    options = {
        "col_deriv": col_deriv, "xtol": xtol, "maxfev": maxfev, "band": band, "eps": epsfcn,
        "factor": factor, "diag": diag,
    }  # fmt: skip
    return root(func, joined(x0), args, "hybr", fprime, options=options).x


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    Dfun: Callable[..., Any] | None = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: float = 1.49012e-08,
    xtol: float = 1.49012e-08,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Minimize the sum of squares of a vector function, as `scipy.optimize.leastsq` does.

    With tensors it is `least_squares` with method="lm", which gets the Jacobian from gradtape. If
    `args`, or tensors that `func` uses from outside, are being differentiated, so is the result.

    Args:
        func: The residuals, `func(x, *args)`.
        x0: Where to begin.
        args: Further arguments of the function, which may be nested containers.
        Dfun: The Jacobian, `Dfun(x, *args)`.
        full_output: Without tensors: whether to return SciPy's report, too.
        col_deriv: Without tensors: whether columns of the Jacobian are derivatives.
        ftol: SciPy's tolerance of the sum,
        xtol: of x,
        gtol: and of the slope.
        maxfev: The most calls of the function; 0 for SciPy's number.
        epsfcn: The step of SciPy's differences.
        factor: Without tensors: how long the first step may be.
        diag: Without tensors: scales of the variables.

    Returns:
        x, an array, or a tensor if tensors went in; and the number by which SciPy says why it
        ended, 1 to 4 for success; with tensors it is None under `vmap` and `jit`.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy found no minimum.
        LinAlgError: In a derivative: the minimum is not isolated.
        UnsupportedError: With tensors: an option that is only there without.

    >>> def fitted(y):
    ...     return gt.scipy.optimize.leastsq(lambda p: p[0] * np.arange(3.0) - y, np.ones(1))[0]
    >>> gt.jacobian(fitted)(np.array([0.0, 1.0, 2.0])).round(6)
    array([[0. , 0.2, 0.4]])
    """
    name = "leastsq"
    func, args = as_function(func, name), as_tuple(args)

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.optimize

        return scipy.optimize.leastsq(
            of_arrays(func), x0, args, of_arrays(Dfun), full_output, col_deriv, ftol, xtol, gtol,
            maxfev, epsfcn, factor, diag,
        )  # fmt: skip

    found = by_scipy(solved, (x0, args, diag))
    if found is not None:
        return found
    only = {"full_output": full_output, "col_deriv": col_deriv, "diag": diag}
    _refuse(name, "use least_squares", **only, factor=factor != 100)
    options: dict[str, Any] = {} if Dfun is None else {"jac": Dfun}
    result = least_squares(
        func, joined(x0), method="lm", ftol=ftol, xtol=xtol, gtol=max(gtol, 1e-15),
        max_nfev=maxfev or None, args=args, **options,
    )  # fmt: skip
    return result.x, result.get("status")


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a minimum of a function of one number, as `scipy.optimize.minimize_scalar` does.

    SciPy takes the steps. If `args`, or tensors that `fun` uses from outside, are being
    differentiated, so is the result, where the minimum is between the bounds.

    Args:
        fun: The function, `fun(x, *args)`.
        bracket: Points between which a minimum is, or from which they are searched.
        bounds: Two numbers between which the minimum is searched.
        args: Further arguments of the function, which may be nested containers.
        method: "brent", "golden" or "bounded".
        tol: SciPy's tolerance.
        options: SciPy's options of the method.

    Returns:
        SciPy's result. If tensors went in, `x` and `fun` are tensors; under `vmap` and `jit` it has
        only `x`, `fun` and `success`.

    Raises:
        ConvergenceError: A derivative is asked for, and the slope at SciPy's result is not 0.
        LinAlgError: In a derivative: the second derivative is 0 at the minimum.

    >>> def lowest(a):
    ...     return gt.scipy.optimize.minimize_scalar(lambda x, a: np.cosh(x - a), args=(a,)).x
    >>> gt.grad(lowest)(0.5).round(6)
    np.float64(1.0)
    """
    name = "minimize_scalar"
    fun, args = as_function(fun, name), as_tuple(args)

    def scipys(function: Any, args: Any) -> Any:
        import scipy.optimize

        return scipy.optimize.minimize_scalar(function, bracket, bounds, args, method, tol, options)

    found = by_scipy(lambda of_arrays: scipys(of_arrays(fun), args), (bracket, bounds, args))
    if found is not None:
        return found
    leaves = [x for x in (bracket, bounds) if x is not None]
    if any(map(holds_tensor, leaves)):
        raise UnsupportedError(
            f"{name}: got tensors in bracket or bounds, expected plain numbers: a minimum between "
            "them does not depend on them"
        )
    # Optimality is stated for vectors.
    problem = Problem(name, lambda x, *args: fun(x[0], *args), Unknowns(name, np.zeros(1)), args)

    def value(x: Any, operands: Any) -> Any:
        return reshape(as_array(joined(problem(x, operands))), ())

    def run(_start: Any, *operands: Any) -> Found:
        result = scipys(lambda x: value(np.array([x], FLOAT), operands), ())
        x = np.array([result.x], FLOAT)
        optimum = Conditions(lambda x: value(x, operands), []).optimum(
            x, x, succeeded=result.success
        )
        message = getattr(result, "message", "")
        failure = failure_of(result.success, message, optimum.failure)
        return Found([x], [optimum.x - x], result, failure, bool(result.success))

    def equations(x: Any, constants: Any, inputs: Any) -> Any:
        return grad(lambda x: value(x, inputs[1:]))(x[0] + constants[0])

    def solution() -> Any:
        import scipy.optimize

        aval = Aval((1,), FLOAT)
        solved = Solution(
            name, run, equations, [aval], [aval], what="a second derivative", symmetric=True
        )
        (x,), constants = solved([np.zeros(1), *problem.operands], 1)
        result = scipy.optimize.OptimizeResult(success=constants[-1] != 0)
        if solved.found is not None:
            result = solved.found.result
        result.update(x=x[0], fun=value(x, problem.operands))
        return result

    return with_captures([problem], solution)
