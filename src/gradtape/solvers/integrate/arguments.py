"""What `solve_ivp` is given, checked and brought into one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.core.aval import aval_of
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes, check_positive
from gradtape.ops.creation import tensor
from gradtape.ops.join import stack
from gradtape.ops.reduce import max as max_of, min as min_of
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.solvers.integrate.error_norm import Tolerances, still
from gradtape.solvers.integrate.integrator import Interval
from gradtape.solvers.require import Failure, require

_NAME = "solve_ivp"
_WRONG_TIMES = Failure(
    ArgumentError,
    "solve_ivp: got times in t_eval that are out of order or outside of t_span, expected each to "
    "come after the one before",
)


def initial_value(y0: Any) -> Any:
    """y0 as a vector of floats or complex numbers."""
    y0 = as_array(_stacked(y0))
    if len(y0.shape) != 1:
        raise _not_a_vector(y0)
    kind = np.dtype(y0.dtype).kind
    if kind not in "biufc":
        raise DTypeError(f"{_NAME}: got y0 of {y0.dtype}, expected numbers")
    return astype(y0, np.complex128 if kind == "c" else np.float64)


def as_tensor(y0: Any) -> Any:
    """y0 as a tensor: the right-hand side may fill a buffer like y, which then takes tensors.

    Raises:
        ShapeError: It is empty, which only SciPy takes.
    """
    if not y0.shape[0]:
        raise _not_a_vector(y0)
    return y0 if isinstance(y0, Tensor) else tensor(y0)


def _not_a_vector(y0: Any) -> ShapeError:
    return ShapeError(f"{_NAME}: got y0 of shape {y0.shape}, expected a vector of numbers")


def _stacked(values: Any) -> Any:
    """A list in which there are tensors, or such lists, as one tensor."""
    if isinstance(values, list | tuple):
        rows = [_stacked(x) for x in values]
        if any(isinstance(row, Tensor) for row in rows):
            return stack([as_array(row) for row in rows])
    return values


def ends(t_span: Any) -> list[Any]:
    """The times where to begin and to end."""
    given = t_span
    if not isinstance(t_span, list | tuple):
        check_axes(_NAME, as_array(t_span), 1, what="t_span")
        given = list(as_array(t_span))
    if len(given) != 2:
        raise ArgumentError(f"{_NAME}: got {len(given)} numbers in t_span, expected two times")
    return [_time(end) for end in given]


def _time(end: Any) -> Any:
    end = as_array(end)
    if end.shape != () or np.dtype(end.dtype).kind not in "biuf":
        raise ArgumentError(f"{_NAME}: got {end!r} in t_span, expected two times")
    if isinstance(end, Tensor):
        return astype(end, np.float64)
    if not np.isfinite(end):
        raise ArgumentError(f"{_NAME}: got {float(end)} in t_span, expected finite times")
    return np.float64(end)


def further_arguments(args: Any) -> tuple[Any, ...]:
    """`args` as a tuple: SciPy unpacks lists and arrays, too."""
    if args is None:
        return ()
    if isinstance(args, list | tuple):
        return tuple(args)
    is_vector = isinstance(args, np.ndarray | Tensor) and args.ndim > 0
    return tuple(args) if is_vector else (args,)


def times(t_eval: Any, interval: Interval) -> Any:
    """`t_eval`, which is in order and in the interval."""
    found = as_array(_stacked(t_eval))
    check_axes(_NAME, found, 1, what="t_eval")
    if np.dtype(found.dtype).kind not in "biuf":
        raise DTypeError(f"{_NAME}: got t_eval of {found.dtype}, expected real numbers")
    found = astype(found, np.float64)
    if not found.shape[0]:
        return found
    ahead = still(found) * interval.direction
    first, last = interval.start * interval.direction, interval.end * interval.direction
    # False for what is not a number.
    fine = (min_of(ahead) >= first) & (max_of(ahead) <= last)
    if found.shape[0] > 1:
        # As in SciPy, times may only be equal if the interval has length 0.
        fine = fine & ((min_of(ahead[1:] - ahead[:-1]) > 0) | (first == last))
    return require([found], where(fine, 0.0, 1.0), 0.5, _WRONG_TIMES)[0]


def in_interval(y0: Any, t0: Any, t1: Any, t_eval: Any, first_step: float | None) -> Any:
    """y0, if times and the first step are in the interval.

    SciPy would raise an error of its own, also where it later turns out that there is a tensor.
    """
    if first_step is not None:
        length = abs_of(still(as_array(t1 - t0)))
        failure = Failure(
            ArgumentError,
            f"{_NAME}: got first_step={first_step:g}, expected no more than the length of t_span",
        )
        (y0,) = require([y0], as_array(np.float64(first_step)), length, failure)
    leaves, _ = containers.flatten((t0, t1, t_eval))
    if t_eval is not None and not any(isinstance(leaf, Tensor) for leaf in leaves):
        times(t_eval, Interval(t0, t1))
    return y0


def lengths(first_step: Any, max_step: Any) -> dict[str, Any]:
    """The options for lengths of steps, as SciPy takes them."""
    options = {"max_step": max_step}
    if first_step is not None:
        options["first_step"] = first_step
    for option, value in options.items():
        if isinstance(value, Tensor):
            raise ArgumentError(f"{_NAME}: got a tensor as {option}, expected a plain number")
    check_positive(_NAME, **options)
    return options


def given(**options: Any) -> dict[str, Any]:
    """The options that are not None."""
    return {option: value for option, value in options.items() if value is not None}


def tolerances(rtol: Any, atol: Any, size: int) -> Tolerances:
    """The errors that are allowed in as many components."""
    if isinstance(rtol, Tensor) or isinstance(atol, Tensor):
        raise ArgumentError(f"{_NAME}: got a tensor as a tolerance, expected plain numbers")
    check_positive(_NAME, rtol=rtol)
    atol = np.asarray(atol, np.float64)
    if atol.shape not in ((), (size,)):
        raise ShapeError(
            f"{_NAME}: got atol of shape {atol.shape}, expected a number, or one for each of the "
            f"{size} components of y0"
        )
    if not (atol >= 0).all():
        raise ArgumentError(f"{_NAME}: got atol={atol}, expected no negative numbers")
    # Below this, rounding is more than what is allowed.
    least = 100 * float(np.finfo(np.float64).eps)
    return Tolerances(max(float(rtol), least), float(atol) if atol.ndim == 0 else atol)


def listed(events: Any) -> list[Callable[..., Any]]:
    """Events as a list of functions."""
    if events is None:
        return []
    given = events if isinstance(events, list | tuple) else [events]
    return [as_function(event, _NAME) for event in given]


def of_point(fun: Callable[..., Any], vectorized: bool) -> Callable[..., Any]:
    """The right-hand side as a function of the pair (t, y)."""
    if not vectorized:
        return lambda point, *args: fun(*point, *args)

    def of_column(point: Any, *args: Any) -> Any:
        out = fun(point[0], reshape(point[1], (-1, 1)), *args)
        return reshape(as_array(_stacked(out)), (-1,))

    return of_column


def like_y(out: Any, y0: Any) -> Any:
    """What the right-hand side returned, as an array like y0."""
    if out is None:
        raise DTypeError(f"{_NAME}: got None from the right-hand side, expected dy/dt; return it")
    out, aval = as_array(_stacked(out)), aval_of(y0)
    if np.dtype(out.dtype).kind not in "biufcV":
        raise DTypeError(f"{_NAME}: got {out.dtype} from the right-hand side, expected numbers")
    if out.shape != aval.shape:
        if not (out.shape == () and aval.shape == (1,)):
            raise ShapeError(
                f"{_NAME}: got an array of shape {out.shape} from the right-hand side, expected "
                f"{aval.shape}, the shape of y0"
            )
        out = reshape(out, (1,))
    if np.dtype(out.dtype).kind == "c" and aval.dtype.kind != "c":
        raise DTypeError(
            f"{_NAME}: got {out.dtype} from the right-hand side, expected real numbers as y0 is; "
            "begin with a complex y0"
        )
    return out if out.dtype == aval.dtype else astype(out, aval.dtype)


def like_jacobian(jacobian: Any, size: int) -> Any:
    """∂f/∂y, a matrix."""
    if hasattr(jacobian, "toarray"):  # a sparse one of SciPy
        jacobian = jacobian.toarray()
    matrix = as_array(_stacked(jacobian))
    if matrix.shape != (size, size):
        raise ShapeError(f"{_NAME}: got jac of shape {matrix.shape}, expected ({size}, {size})")
    return matrix
