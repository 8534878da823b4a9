"""`quad`: integrals of functions of one number under SciPy's name, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from gradtape.graph.known_values import innermost_value, is_traced
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype, imag, real, stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.join import stack
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.solvers.integrate.by_scipy import by_scipy
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.gauss_kronrod import Accuracy
from gradtape.solvers.integrate.integral import Integral
from gradtape.solvers.optimize.solution import as_tuple
from gradtape.solvers.problem import Problem, Unknowns, with_captures
from gradtape.solvers.require import Failure, require


def quad(
    func: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: str | None = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> Any:
    """Integrate a function of one number, as `scipy.integrate.quad` does.

    Without tensors it is SciPy's function. With tensors the integral is differentiable with respect
    to `a`, `b`, `args` and tensors that `func` uses from outside: derivatives are integrals, too,
    with the same tolerances. Where `func` jumps at a place that depends on them, split the integral
    there: derivatives do not see jumps. Under `gt.jit` and `gt.vmap` Gauss–Kronrod integration with
    21 points takes QUADPACK's place, as one native loop.

    Args:
        func: The function, `func(x, *args)`; returns a number.
        a: Where to begin; may be `-np.inf` or `np.inf`.
        b: Where to end, likewise.
        args: Further arguments of the function, which may be nested containers.
        full_output: Without tensors: whether to return SciPy's information, too.
        epsabs: The absolute error that is allowed,
        epsrel: or the error relative to the integral.
        limit: The most intervals.
        points: Places between a and b at which the function jumps or has a peak.
        weight: Without tensors: SciPy's weight functions.
        wvar: Without tensors: what the weight depends on.
        wopts: Without tensors: moments to use again.
        maxp1: Without tensors: the most moments.
        limlst: Without tensors: the most cycles.
        complex_func: Whether the function returns complex numbers.

    Returns:
        The integral, and an estimate of its error.

    Raises:
        ArgumentError: A limit that is only known when a compiled function runs is infinite.
        ConvergenceError: With tensors: the estimated error is not as small as is asked for (without
            them SciPy warns).
        DTypeError: `func` returns complex numbers without `complex_func=True`.
        ShapeError: `func` returns more than one number.
        UnsupportedError: With tensors: a weight, or `full_output`.

    >>> def tail(rate):
    ...     return gt.scipy.integrate.quad(lambda x: np.exp(-rate * x), 1.0, np.inf)[0]
    >>> f"{tail(2.0):.6f}, {gt.grad(tail)(2.0):.6f}"
    '0.067668, -0.101501'
    """
    name = "quad"
    options = {
        "args": args, "full_output": full_output, "epsabs": epsabs, "epsrel": epsrel,
        "limit": limit, "points": points, "weight": weight, "wvar": wvar, "wopts": wopts,
        "maxp1": maxp1, "limlst": limlst, "complex_func": complex_func,
    }  # fmt: skip

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.integrate

        return scipy.integrate.quad(of_arrays(func), a, b, **options)

    found = by_scipy(solved, (a, b, options))
    if found is not None:
        return found
    instead = {
        "weight": "write the weight into the function",
        "full_output": "only the integral and its error are there",
    }
    for option, what in instead.items():
        if value := options[option]:
            raise UnsupportedError(
                f"{name}: got {option}={value!r} where there are tensors, expected it to be left "
                f"out; {what}"
            )
    accuracy = Accuracy(float(epsabs), float(epsrel), int(limit), plain_points(points))
    problem = Problem(
        name, as_function(func, name), Unknowns(name, np.float64(0.0)), as_tuple(args)
    )
    (a, low), (b, high) = limit_of("a", a), limit_of("b", b)

    def f(x: Any, operands: Any) -> Any:
        return _vector(problem(x, operands), complex_func)

    def solution() -> Any:
        integral = Integral(f, 2 if complex_func else 1, (low, high), accuracy)
        value, error = integral(a, b, problem.operands)
        return value[0] + 1j * value[1] if complex_func else value[0], still(error)

    return with_captures([problem], solution)


def plain_points(points: Any) -> tuple[float, ...]:
    """Places where the function jumps, in order."""
    if points is None:
        return ()
    if any(
        isinstance(x, Tensor)
        for x in (points, *(points if isinstance(points, list | tuple) else ()))
    ):
        raise ArgumentError("quad: got a tensor in points, expected plain numbers; detach() it")
    return tuple(sorted(float(x) for x in np.ravel(points)))


_INFINITE = Failure(
    ArgumentError,
    "quad: got an infinite limit that is only known when a compiled or batched function runs, "
    "expected a finite one; give np.inf as it is",
)


def limit_of(which: str, end: Any) -> tuple[Any, float | None]:
    """A limit as a number of its own, and as ±∞ if it is infinite."""
    end = as_array(end)
    if end.shape != () or np.dtype(end.dtype).kind not in "biuf":
        raise ArgumentError(
            f"quad: got {which} of {end.dtype} and shape {end.shape}, expected a number"
        )
    end = astype(end, np.float64)
    if isinstance(end, Tensor) and is_traced([end]):
        is_infinite = where(isfinite(stop_gradient(end)), 0.0, 1.0)
        return require([end], is_infinite, 0.5, _INFINITE)[0], None
    values = np.unique(innermost_value(end))
    if not np.isinf(values).any():
        return end, None
    if values.size > 1:
        raise ArgumentError(_INFINITE.text)
    return np.float64(0.0), float(values[0])


def _vector(out: Any, is_complex: bool) -> Any:
    """What the function returned, as a vector of one number, or of a real and imaginary part."""
    out = as_array(out)
    if out.shape not in ((), (1,)):
        raise ShapeError(
            f"quad: got an array of shape {out.shape} from the function, expected a number"
        )
    if np.dtype(out.dtype).kind == "c" and not is_complex:
        raise DTypeError(
            f"quad: got {out.dtype} from the function, expected real numbers; set complex_func=True"
        )
    if is_complex:
        return stack([astype(reshape(part, ()), np.float64) for part in (real(out), imag(out))])
    return astype(reshape(out, (1,)), np.float64)
