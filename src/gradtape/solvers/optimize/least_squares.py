"""`least_squares` and `curve_fit` of SciPy, given Jacobians by gradtape, with derivatives.

At a minimum the gradient of the cost is 0, ∇½‖r(x, θ)‖² = 0. Derivatives of x solve equations with
the Hessian of the cost itself; SciPy's own steps use JᵀJ, which leaves out the curvature of r.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.jacobians import jacobian
from gradtape.autodiff.reverse import grad
from gradtape.core.aval import Aval
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, GradtapeError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.lstsq import pinv
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.matmul import matmul
from gradtape.ops.shape import reshape
from gradtape.solvers.optimize.bounds import of_sides, with_bounds
from gradtape.solvers.optimize.evaluator import Make, evaluated
from gradtape.solvers.optimize.loss import Loss
from gradtape.solvers.optimize.optimality import Conditions, step_of_fit
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
from gradtape.solvers.solver_run import CapturedError


class _Fit:
    """Residuals whose cost is minimized.

    Attributes:
        problem: The function of the variables.
        count: The number of variables.
        bounds: Lower and upper bounds; none if there are no bounds.
        data: What the residuals depend on besides the function.
        loss: The cost of residuals.
    """

    def __init__(
        self, name: str, residuals: Any, x0: Any, args: tuple[Any, ...], bounds: Any, loss: Loss
    ) -> None:
        self._name, self.loss = name, loss
        self._unknowns = Unknowns(name, x0)
        self.count = x0.shape[0]
        self.problem = Problem(name, residuals, self._unknowns, args)
        self.data: list[Any] = []
        limits = of_sides(name, bounds, self.count)
        unbounded = is_plain(limits) and not np.isfinite(limits).any()
        self.bounds = [] if unbounded else limits

    def groups(self) -> Groups:
        """The inputs: where to begin, bounds, data, and what the function depends on."""
        return Groups(self._unknowns.leaves, self.bounds, self.data, self.problem.operands)

    def solution(self, run: Callable[..., tuple[Any, Any, str | None]]) -> tuple[Any, Any, Any]:
        """The minimum as a tensor, whether it is one, and what SciPy returned, if that is known.

        Args:
            run: `run(*inputs)` gives x, what SciPy returned, and its message if it failed.
        """

        def found(*inputs: Any) -> Found:
            x, result, message = run(*inputs)
            (x0,), bounds, *rest = self.groups().split(inputs)
            step = None
            if self.loss.is_linear and not bounds and message is None:
                step = self._step(x, np.asarray(x0), result, rest)
            if step is not None:
                return Found([x], [np.zeros(self.count, INTEGER), step], result, None, True)
            conditions = Conditions(lambda x: self.cost(x, *rest), bounds)
            optimum = conditions.optimum(x, x0, succeeded=message is None)
            failure = failure_of(message is None, message, optimum.failure)
            return Found([x], [optimum.side, optimum.x - x], result, failure, message is None)

        aval, constant = Aval((self.count,), FLOAT), Aval((self.count,), INTEGER)
        solution = Solution(
            self._name,
            found,
            self._equations,
            [aval],
            [constant, aval],
            what="a Hessian of the cost",
            symmetric=not self.bounds,
        )
        (x,), constants = solution(self.groups().inputs, 1)
        known = None if solution.found is None else solution.found.result
        return x, constants[-1] != 0, known

    def cost(self, x: Any, data: Sequence[Any], operands: Sequence[Any]) -> Any:
        """What is minimized."""
        return self.loss.cost(self.residuals(x, data, operands))

    def residuals(self, x: Any, _data: Sequence[Any], operands: Sequence[Any]) -> Any:
        """The residuals, as a vector."""
        return reshape(self.problem(x, operands), (-1,))

    def _step(self, x: Any, x0: Any, result: Any, rest: Sequence[Any]) -> Any:
        """The step that x is off by, if it is a fit without a doubt; else None."""
        try:
            return step_of_fit(*self.linearized(x, result, *rest), x, x0)
        except CapturedError:
            raise
        except GradtapeError:  # rules of the derivative raise the same
            return None

    def linearized(self, x: Any, _result: Any, *rest: Any) -> tuple[Any, Any]:
        """The residuals at SciPy's x, and their Jacobian."""

        def residuals(x: Any) -> Any:
            return self.residuals(x, *rest)

        return residuals(x), jacobian(residuals)(x)

    def _equations(self, x: Sequence[Any], constants: Sequence[Any], inputs: Sequence[Any]) -> Any:
        _, bounds, *rest = self.groups().split(inputs)
        at = x[0] + constants[1]
        slope = grad(lambda x: self.cost(x, *rest))(at)
        return with_bounds(slope, at, constants[0], bounds)


def _vector(name: str, what: str, x: Any) -> Any:
    """A first guess as SciPy takes it: a vector, or one number."""
    x = as_array(x)
    x = x if x.shape else reshape(x, (1,))
    check_axes(name, x, 1, what=what)
    return astype(x, FLOAT)


class _Unless(str):
    """SciPy's default for `jac`, which is not the same as a user's who asks for it."""


_DEFAULT_JAC = _Unless("2-point")


# ---- least_squares ------------------------------------------------------------------------------


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = _DEFAULT_JAC,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: dict[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    workers: Any = None,
) -> Any:
    """Minimize the sum of squares of a vector function, as `scipy.optimize.least_squares` does.

    SciPy takes the steps; the Jacobian comes from gradtape, unless `jac` is given, if only as
    "2-point", or there is a `jac_sparsity`. If `args`, `kwargs`, bounds, or tensors that `fun` uses
    from outside are being differentiated, so is the minimum, by the exact Hessian of the cost.

    Args:
        fun: The residuals, `fun(x, *args, **kwargs)`, a vector.
        x0: Where to begin, a vector.
        jac: The Jacobian, if there is a better way to it.
        bounds: Lower and upper bounds: a pair of arrays or numbers. A variable at an active bound
            moves with the bound; the derivatives of the others are those with it held there.
        method: One of SciPy's.
        ftol: SciPy's tolerances: of the cost,
        xtol: of x,
        gtol: and of the gradient.
        x_scale: The scale of each variable.
        loss: "linear", "soft_l1", "huber", "cauchy", "arctan", or a function, which then has to
            be differentiable.
        f_scale: The scale of residuals, for losses other than "linear".
        diff_step: SciPy's, for differences.
        tr_solver: SciPy's,
        tr_options: and its options.
        jac_sparsity: Where the Jacobian is not 0, for differences.
        max_nfev: The most evaluations.
        verbose: What SciPy prints.
        args: Further arguments of the function, which may be nested containers.
        kwargs: Those by name.
        callback: Called after each step.
        workers: SciPy's, for differences.

    Returns:
        SciPy's result. If tensors went in, `x`, `fun` and `cost` are tensors, differentiable with
        respect to what went in; under `vmap` and `jit` it has only these and `success`.

    Raises:
        ConvergenceError: A derivative is asked for, and SciPy found no minimum.
        LinAlgError: In a derivative: the Hessian is singular at the minimum.

    >>> def line(x, t, y):
    ...     return x[0] + x[1] * t - y
    >>> def slope(y):
    ...     return gt.scipy.optimize.least_squares(
    ...         line, np.zeros(2), args=(np.array([0.0, 1.0, 3.0]), y)
    ...     ).x[1]
    >>> gt.grad(slope)(np.array([1.0, 2.0, 4.0])).round(6)
    array([-0.285714, -0.071429,  0.357143])
    """
    fit = _LeastSquares(fun, x0, as_tuple(args), kwargs or {}, bounds, loss, f_scale)
    fit.jac, fit.sparse = jac, jac_sparsity is not None
    fit.options = _changed(
        least_squares, method=method, ftol=ftol, xtol=xtol, gtol=gtol, x_scale=x_scale, loss=loss,
        f_scale=f_scale, diff_step=diff_step, tr_solver=tr_solver, tr_options=tr_options,
        jac_sparsity=jac_sparsity, max_nfev=max_nfev, verbose=verbose, callback=callback,
        workers=workers,
    )  # fmt: skip
    return with_captures([fit.problem], fit.result)


class _LeastSquares(_Fit):
    """One call of `least_squares`.

    Attributes:
        jac: The Jacobian as it was given.
        sparse: Whether it is known where the Jacobian is not 0.
        options: Those that are passed on to SciPy.
    """

    jac: Any
    sparse: bool
    options: dict[str, Any]

    def __init__(
        self,
        fun: Any,
        x0: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        bounds: Any,
        loss: Any,
        scale: float,
    ) -> None:
        name = "least_squares"
        as_function(fun, name)

        def residuals(x: Any, args: Any, kwargs: Any) -> Any:
            return fun(x, *args, **kwargs)

        x0 = _vector(name, "x0", x0)
        super().__init__(name, residuals, x0, (args, kwargs), bounds, Loss(name, loss, scale))

    def scipy(self, *inputs: Any, way: str | None = None) -> Any:
        """What SciPy returns for plain arrays; with `way` also by differences (`evaluated`)."""
        import scipy.optimize

        (x0,), limits, _, operands = self.groups().split(inputs)

        def value(x: Any) -> Any:
            return self.problem(x, operands)

        def solve(make: Make | None) -> Any:
            slope = self.jac
            if callable(slope):
                args, kwargs = self.problem.arguments(operands)
                slope = functools.partial(_with_arguments, slope, args, kwargs)
            elif slope is _DEFAULT_JAC:
                slope = str(slope)
            if make is not None and self.jac is _DEFAULT_JAC and not self.sparse:
                slope = make(lambda x: reshape(jacobian(value)(x), (-1, self.count)))
            within = tuple(limits) or (-np.inf, np.inf)
            return scipy.optimize.least_squares(value, x0, slope, within, **self.options)

        return evaluated("least_squares", solve, way)

    def _run(self, *inputs: Any) -> tuple[Any, Any, str | None]:
        result = self.scipy(*inputs)
        return result.x, result, None if result.success else result.message

    def linearized(self, x: Any, result: Any, *rest: Any) -> tuple[Any, Any]:
        if self.jac is _DEFAULT_JAC and not self.sparse:
            return result.fun, result.jac  # exact, as SciPy took no differences
        return super().linearized(x, result, *rest)

    def result(self) -> Any:
        """What SciPy returns, with tensors in it if tensors went in."""
        import scipy.optimize

        inputs = self.groups().inputs
        if is_plain(inputs):
            return self.scipy(*inputs, way="jac='2-point' says so without a warning")
        x, success, known = self.solution(self._run)
        found = scipy.optimize.OptimizeResult(success=success) if known is None else known
        r = self.residuals(x, [], self.problem.operands)
        found.update(x=x, fun=r, cost=self.loss.cost(r))
        return found


def _with_arguments(function: Any, args: Any, kwargs: Any, x: Any) -> Any:
    return function(x, *args, **kwargs)


def _changed(function: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """Options that are not the default: older versions of SciPy do not have all of them."""
    defaults = {n: p.default for n, p in inspect.signature(function).parameters.items()}
    return {n: value for n, value in given.items() if value is not defaults[n]}


# ---- curve_fit ----------------------------------------------------------------------------------


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """Fit a function to data by least squares, as `scipy.optimize.curve_fit` does.

    SciPy takes the steps; the Jacobian comes from gradtape, unless it is given. If the data,
    `sigma`, bounds, or tensors that `f` uses from outside are being differentiated, so are the
    parameters and their covariance.

    Args:
        f: The function, `f(xdata, *parameters)`.
        xdata: Where the data were taken: an array, or anything that `f` takes.
        ydata: The data, a vector.
        p0: Where to begin; by default 1 for each parameter.
        sigma: The standard deviations of the data, or their covariance.
        absolute_sigma: Whether the covariance of the parameters is that by `sigma` itself, and not
            by deviations in proportion to it.
        check_finite: Whether to raise for data that are not finite.
        bounds: Lower and upper bounds of the parameters, as for `least_squares`.
        method: "lm", "trf" or "dogbox".
        jac: The Jacobian, `jac(xdata, *parameters)`, if there is a better way to it; or how SciPy
            computes differences, such as "2-point".
        full_output: Whether to return all that SciPy does.
        nan_policy: What to do about NaN in the data.
        **kwargs: Options of `scipy.optimize.leastsq` or `least_squares`.

    Returns:
        The parameters and their covariance, as SciPy does: tensors if tensors went in.

    Raises:
        ConvergenceError: Tensors went in, and SciPy found no minimum; else it is SciPy's
            RuntimeError.
        LinAlgError: In a derivative: the data do not determine the parameters.
        UnsupportedError: Something is differentiated, and `nan_policy` is "omit"; or
            `full_output` under `vmap` or `jit`.

    >>> def line(t, a, b):
    ...     return a + b * t
    >>> def slope(y):
    ...     return gt.scipy.optimize.curve_fit(line, np.array([0.0, 1.0, 3.0]), y)[0][1]
    >>> gt.grad(slope)(np.array([1.0, 2.0, 4.0])).round(6)
    array([-0.285714, -0.071429,  0.357143])
    """
    name = "curve_fit"
    fit = _CurveFit(as_function(f, name), xdata, ydata, p0, sigma, bounds, kwargs)
    fit.options = _changed(
        curve_fit, absolute_sigma=absolute_sigma, check_finite=check_finite, method=method, jac=jac,
        nan_policy=nan_policy,
    )  # fmt: skip

    def result() -> Any:
        inputs = fit.groups().inputs
        if is_plain(inputs):
            out = fit.scipy(*inputs, way="jac='2-point' says so without a warning")
            return out if full_output else out[:2]
        if nan_policy == "omit":
            raise UnsupportedError(
                f"{name}: got nan_policy='omit' and data to be differentiated, expected data "
                "without NaN; leave them out beforehand"
            )
        popt, _, known = fit.solution(lambda *inputs: (*_first_twice(fit.scipy(*inputs)), None))
        if known is None and full_output:
            raise UnsupportedError(
                f"{name}: got full_output=True under vmap or jit, expected False"
            )
        pcov = fit.covariance(popt, absolute_sigma, known)
        return (popt, pcov, *known[2:]) if full_output else (popt, pcov)

    return with_captures([fit.problem], result)


def _first_twice(out: Any) -> tuple[Any, Any]:
    return out[0], out


class _CurveFit(_Fit):
    """A function fitted to data.

    Attributes:
        options: Those that are passed on to SciPy.
    """

    options: dict[str, Any]

    def __init__(
        self, f: Any, xdata: Any, ydata: Any, p0: Any, sigma: Any, bounds: Any, more: Any
    ) -> None:
        name = "curve_fit"
        self._f, self._more = f, more
        # Without a first guess SciPy makes one.
        self._begins = p0 is not None
        p0 = np.ones(_parameters(name, f)) if p0 is None else _vector(name, "p0", p0)
        if isinstance(xdata, list | tuple | np.ndarray | Tensor):
            xdata = astype(as_array(xdata), FLOAT)
        loss = Loss(name, more.get("loss", "linear"), more.get("f_scale", 1.0))
        super().__init__(name, self._model, p0, (xdata,), bounds, loss)
        self.data = [astype(as_array(ydata), FLOAT)]
        self.data += [] if sigma is None else [astype(as_array(sigma), FLOAT)]

    def _model(self, p: Any, xdata: Any) -> Any:
        return self._f(xdata, *(p[n] for n in range(p.shape[0])))

    def residuals(self, x: Any, data: Sequence[Any], operands: Sequence[Any]) -> Any:
        missed = self.problem(x, operands) - data[0]
        if len(data) == 1:
            return missed
        sigma = data[1]
        if len(sigma.shape) == 2 and sigma.shape[0] > 1:
            return solve_triangular(cholesky(sigma), missed, lower=True)
        return missed / reshape(sigma, (-1,))

    def scipy(self, *inputs: Any, way: str | None = None) -> Any:
        """What SciPy returns for plain arrays; with `way` also by differences (`evaluated`)."""
        import scipy.optimize

        (p0,), limits, (ydata, *sigma), operands = self.groups().split(inputs)
        (xdata,) = self.problem.arguments(operands)
        # SciPy leaves data out if it is asked to, and gives the function what is left.
        fewer = self.options.get("nan_policy") == "omit"

        def value(p: Any, xdata: Any) -> Any:
            return self._model(p, xdata) if fewer else self.problem(p, operands)

        @functools.wraps(self._f)
        def model(xdata: Any, *p: Any) -> Any:
            return value(np.asarray(p), xdata)

        def solve(make: Make | None) -> Any:
            options = dict(self.options)
            if isinstance(options.get("jac"), str) and self._is_lm():
                del options["jac"]  # its own differences are the only ones it takes
            elif "jac" not in options and make is not None:
                slope = make(jacobian(value))
                options["jac"] = lambda xdata, *p: slope(np.asarray(p), xdata)
            return scipy.optimize.curve_fit(
                model,
                xdata,
                ydata,
                p0 if self._begins else None,
                # SciPy would not take one number together with a Jacobian.
                np.broadcast_to(sigma[0], ydata.shape)
                if sigma and sigma[0].size == 1
                else sigma[0]
                if sigma
                else None,
                bounds=tuple(limits) or (-np.inf, np.inf),
                full_output=True,
                **options,
                **self._more,
            )

        return evaluated("curve_fit", solve, way)

    def _is_lm(self) -> bool:
        method: str = self.options.get("method", "trf" if self.bounds else "lm")
        return method == "lm"

    def covariance(self, popt: Any, absolute: bool, known: Any) -> Any:
        """The covariance of the parameters, (JᵀJ)⁻¹, for residuals with deviation 1 if `absolute`.

        Otherwise their deviation is estimated from the cost.
        """
        if known is not None and np.isinf(known[1]).any():
            return known[1]  # there is none
        _, _, data, operands = self.groups().split(self.groups().inputs)

        def deviations(p: Any) -> Any:
            return self.residuals(p, data, operands)

        r = deviations(popt)
        inverse = pinv(self.loss.scaled(r, jacobian(deviations)(popt)))
        covariance = matmul(inverse, inverse.mT)
        if absolute:
            return covariance
        return covariance * (2 * self.loss.cost(r) / (r.shape[0] - self.count))


def _parameters(name: str, f: Callable[..., Any]) -> int:
    """How many parameters a function has besides the data."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds for p in inspect.signature(f).parameters.values()) - 1
    if count < 1:
        raise ArgumentError(
            f"{name}: got a function without named parameters, expected p0, which says how many "
            "there are"
        )
    return count
