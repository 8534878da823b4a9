"""`odeint` under SciPy's name, with derivatives of the solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.core.aval import aval_of
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.graph.known_values import innermost_value, is_unknown
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes
from gradtape.ops.gather import take
from gradtape.ops.joined import joined
from gradtape.ops.shape import reshape, transpose
from gradtape.solvers.integrate.by_scipy import by_scipy
from gradtape.solvers.integrate.solve_ivp import solve_ivp
from gradtape.solvers.optimize.solution import as_tuple

_NAME = "odeint"
# SciPy's defaults for both tolerances.
_TOLERANCE = 1.49012e-8


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: int = 0,
    full_output: int = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: int = 0,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: int = 0,
    tfirst: bool = False,
    *,
    method: str = "DOP853",
    gradient: str = "discrete",
) -> Any:
    """Solve dy/dt = func(y, t) at several times, as `scipy.integrate.odeint` does.

    Without tensors it is SciPy's function. With tensors gradtape takes the steps, by the methods of
    `solve_ivp`: the solution is differentiable with respect to `y0`, `t`, `args` and tensors that
    `func` uses from outside. Options that are about the work of LSODA then have no effect.

    Args:
        func: The right-hand side, `func(y, t, *args)`.
        y0: y at the first time.
        t: The times at which the solution is returned, in rising or falling order; some may be
            equal. It begins at the first one.
        args: Further arguments of `func`, which may be nested containers.
        Dfun: The Jacobian, for LSODA.
        col_deriv: Whether its columns are derivatives, for LSODA.
        full_output: Without tensors: whether to return SciPy's information, too.
        ml: The lower bandwidth of the Jacobian, for LSODA,
        mu: and the upper one.
        rtol: The error that is allowed in a step, relative to y; 1.49012e-8 by default,
        atol: and absolute; a number or one for each component, 1.49012e-8 by default.
        tcrit: Without tensors: times at which the right-hand side jumps.
        h0: The length of the first step; 0 estimates it.
        hmax: The length of the longest step; 0 for any.
        hmin: Without tensors: the length of the shortest step.
        ixpr: Whether LSODA prints something.
        mxstep: The most steps of LSODA.
        mxhnil: The most messages of LSODA.
        mxordn: The highest order of LSODA,
        mxords: and that for stiff equations.
        printmessg: Whether SciPy prints a message.
        tfirst: Whether it is `func(t, y, *args)`.
        method: With tensors: as for `solve_ivp`; "Radau" for stiff equations.
        gradient: With tensors: "discrete" or "adjoint", as for `solve_ivp`.

    Returns:
        The solution, of shape (number of times, length of y0).

    Raises:
        ArgumentError: The times are in no order.
        ConvergenceError: With tensors: no step is short enough.
        ShapeError: `y0` or `t` has not one axis.
        UnsupportedError: With tensors: `full_output`, `tcrit` or `hmin`.

    >>> def end(rate):
    ...     times = np.array([0.0, 1.0])
    ...     return gt.scipy.integrate.odeint(lambda y, t: -rate * y, 1.0, times)[-1, 0]
    >>> f"{end(2.0):.6f}, {gt.grad(end)(2.0):.6f}"
    '0.135335, -0.135335'
    """
    func = as_function(func, _NAME)
    options = {
        "col_deriv": col_deriv, "full_output": full_output, "ml": ml, "mu": mu, "rtol": rtol,
        "atol": atol, "tcrit": tcrit, "h0": h0, "hmax": hmax, "hmin": hmin, "ixpr": ixpr,
        "mxstep": mxstep, "mxhnil": mxhnil, "mxordn": mxordn, "mxords": mxords,
        "printmessg": printmessg, "tfirst": tfirst,
    }  # fmt: skip

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.integrate

        jacobian = of_arrays(Dfun)
        return scipy.integrate.odeint(of_arrays(func), y0, t, args, jacobian, **options)

    found = by_scipy(solved, (y0, t, args, options))
    if found is not None:
        return found
    _refuse(options)
    y0, (times, places) = _initial(y0), _times(t)
    result = solve_ivp(
        _of_time_first(func, tfirst, y0.shape[0]),
        (times[0], times[-1]),
        y0,
        method,
        times,
        args=as_tuple(args),
        rtol=_TOLERANCE if rtol is None else rtol,
        atol=_TOLERANCE if atol is None else atol,
        first_step=h0 or None,
        max_step=hmax or np.inf,
        gradient=gradient,
    )
    return take(transpose(result.y), places, axis=0)


def _refuse(options: dict[str, Any]) -> None:
    """Raise for options that change results, and that only SciPy has."""
    for option in ("full_output", "tcrit", "hmin"):
        value = options[option]
        if value is not None and np.any(value):
            raise UnsupportedError(
                f"{_NAME}: got {option}= where there are tensors, expected it to be left out; the "
                "steps are gradtape's, use solve_ivp"
            )


def _of_time_first(func: Callable[..., Any], tfirst: bool, count: int) -> Callable[..., Any]:
    """The right-hand side as a function of (t, y), whose values are vectors like y."""

    def right(t: Any, y: Any, *args: Any) -> Any:
        out = as_array(joined(func(t, y, *args) if tfirst else func(y, t, *args)))
        if out.shape != (count,) and not (out.shape == () and count == 1):
            raise ShapeError(
                f"{_NAME}: got an array of shape {out.shape} from the function, expected "
                f"({count},), the shape of y0"
            )
        return reshape(out, (count,))

    return right


def _initial(y0: Any) -> Any:
    y0 = as_array(joined(y0))
    y0 = reshape(y0, (1,)) if not y0.shape else y0
    check_axes(_NAME, y0, 1, what="y0")
    if aval_of(y0).dtype.kind == "c":
        raise ArgumentError(f"{_NAME}: got complex y0, expected real numbers; use solve_ivp")
    return astype(y0, np.float64)


def _times(t: Any) -> tuple[Any, Any]:
    """Times that differ, and for each of those given the place of its own."""
    t = as_array(joined(t))
    check_axes(_NAME, t, 1, what="t")
    t = astype(t, np.float64)
    if not t.shape[0]:
        raise ShapeError(f"{_NAME}: got no times, expected at least one")
    if is_unknown(t):
        return t, np.arange(t.shape[0])
    steps = np.diff(innermost_value(t))
    if not ((steps >= 0).all() or (steps <= 0).all()):
        raise ArgumentError(
            f"{_NAME}: got times in t in no order, expected rising or falling ones; some may be "
            "equal"
        )
    is_new = np.concatenate([[True], steps != 0])
    return take(t, np.flatnonzero(is_new)), np.cumsum(is_new) - 1
