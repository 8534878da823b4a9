"""Integrals over several numbers, and of functions with vectors as values, under SciPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype, imag, real, stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.join import concatenate
from gradtape.ops.joined import joined
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape
from gradtape.solvers.integrate.by_scipy import by_scipy
from gradtape.solvers.integrate.error_norm import still
from gradtape.solvers.integrate.gauss_kronrod import Accuracy
from gradtape.solvers.integrate.integral import Integral
from gradtape.solvers.integrate.quad import limit_of, plain_points, quad
from gradtape.solvers.optimize.solution import as_tuple
from gradtape.solvers.problem import Problem, Unknowns, with_captures
from gradtape.solvers.require import required


def nquad(
    func: Callable[..., Any],
    ranges: Any,
    args: Any = None,
    opts: Any = None,
    full_output: bool = False,
) -> Any:
    """Integrate a function of several numbers, as `scipy.integrate.nquad` does.

    Without tensors it is SciPy's function. With tensors the integral is differentiable with respect
    to limits, `args` and tensors that `func` uses from outside, as that of `quad`, by which it is
    computed for one number after the other.

    Args:
        func: The function, `func(x0, ..., xn, *args)`; returns a number.
        ranges: For each number its limits; or a function of the later ones and of `args` that
            returns them.
        args: Further arguments of the function.
        opts: Options of `quad`: for all, or for each number, or functions that return them.
        full_output: Without tensors: whether to return the number of calls, too.

    Returns:
        The integral, and an estimate of its error; with tensors, of that in the last number.

    Raises:
        ConvergenceError: With tensors: an estimated error is not as small as is asked for.
        UnsupportedError: With tensors: `full_output`, or weights in `opts`.

    >>> def volume(side):
    ...     return gt.scipy.integrate.nquad(lambda x, y: x * y, [(0.0, side), (0.0, 1.0)])[0]
    >>> gt.grad(volume)(2.0).round(6)
    np.float64(1.0)
    """
    func = as_function(func, "nquad")
    given = () if args is None else as_tuple(args)

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.integrate

        limits = [of_arrays(one) for one in ranges]
        return scipy.integrate.nquad(of_arrays(func), limits, given, opts, full_output)

    found = by_scipy(solved, (list(ranges), given, opts))
    if found is not None:
        return found
    if full_output:
        raise UnsupportedError(
            "nquad: got full_output=True where there are tensors, expected it to be left out"
        )
    several: list[Any] = (
        [opts] * len(ranges) if opts is None or isinstance(opts, dict) else list(opts)
    )

    def over(n: int, rest: tuple[Any, ...]) -> Any:
        """The integral over the first n + 1 numbers, given the rest and further arguments."""
        low, high = ranges[n](*rest) if callable(ranges[n]) else ranges[n]
        options = several[n](*rest) if callable(several[n]) else several[n]

        def integrand(x: Any, *rest: Any) -> Any:
            return func(x, *rest) if n == 0 else over(n - 1, (x, *rest))[0]

        return quad(integrand, low, high, rest, **(options or {}))

    return over(len(ranges) - 1, given)


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """Integrate a function of two numbers, as `scipy.integrate.dblquad` does.

    Args:
        func: The function, `func(y, x, *args)`; returns a number.
        a: Where x begins.
        b: Where x ends.
        gfun: Where y begins: a number, or a function of x.
        hfun: Where y ends, likewise.
        args: Further arguments of the function.
        epsabs: The absolute error that is allowed,
        epsrel: or the error relative to the integral.

    Returns:
        The integral, and an estimate of its error.

    Raises:
        ConvergenceError: With tensors: an estimated error is not as small as is asked for.

    >>> def under(rate):
    ...     return gt.scipy.integrate.dblquad(lambda y, x: x + rate * y, 0, 1, 0, lambda x: x)[0]
    >>> f"{under(1.0):.6f}, {gt.grad(under)(1.0):.6f}"
    '0.500000, 0.166667'
    """
    args, options = as_tuple(args), {"epsabs": epsabs, "epsrel": epsrel}

    def inner(x: Any, *_args: Any) -> Any:
        return _at(gfun, x), _at(hfun, x)

    return nquad(func, [inner, (a, b)], args, options)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """Integrate a function of three numbers, as `scipy.integrate.tplquad` does.

    Args:
        func: The function, `func(z, y, x, *args)`; returns a number.
        a: Where x begins.
        b: Where x ends.
        gfun: Where y begins: a number, or a function of x.
        hfun: Where y ends, likewise.
        qfun: Where z begins: a number, or a function of x and y.
        rfun: Where z ends, likewise.
        args: Further arguments of the function.
        epsabs: The absolute error that is allowed,
        epsrel: or the error relative to the integral.

    Returns:
        The integral, and an estimate of its error.

    Raises:
        ConvergenceError: With tensors: an estimated error is not as small as is asked for.

    >>> def volume(side):
    ...     return gt.scipy.integrate.tplquad(lambda z, y, x: x, 0, side, 0, 1, 0, 1)[0]
    >>> gt.grad(volume)(2.0).round(6)
    np.float64(2.0)
    """
    args, options = as_tuple(args), {"epsabs": epsabs, "epsrel": epsrel}

    def innermost(y: Any, x: Any, *_args: Any) -> Any:
        return _at(qfun, x, y), _at(rfun, x, y)

    def inner(x: Any, *_args: Any) -> Any:
        return _at(gfun, x), _at(hfun, x)

    return nquad(func, [innermost, inner, (a, b)], args, options)


def _at(limit: Any, *numbers: Any) -> Any:
    return limit(*numbers) if callable(limit) else limit


def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """Integrate a function by Gauss's rule, as `scipy.integrate.fixed_quad` does.

    Args:
        func: The function, `func(x, *args)`, of a vector of numbers, which are the last axis of
            its values.
        a: Where to begin.
        b: Where to end.
        args: Further arguments of the function.
        n: How many points.

    Returns:
        The integral, and None.

    Raises:
        ArgumentError: A limit is infinite.

    >>> gt.grad(lambda a: gt.scipy.integrate.fixed_quad(np.exp, a, 1.0)[0])(0.0).round(6)
    np.float64(-1.0)
    """
    func = as_function(func, "fixed_quad")
    args = as_tuple(args)

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.integrate

        return scipy.integrate.fixed_quad(of_arrays(func), a, b, args, n)

    found = by_scipy(solved, (a, b, args))
    if found is not None:
        return found
    import scipy.special

    points, weights = scipy.special.roots_legendre(n)
    a, b = (as_array(joined(end)) for end in (a, b))
    fine = isfinite(stop_gradient(a)) & isfinite(stop_gradient(b))
    length = required(b - a, fine, "fixed_quad: got an infinite limit, expected finite ones")
    values = as_array(joined(func(length * (points.real + 1.0) / 2.0 + a, *args)))
    return length / 2.0 * sum_of(weights * values, axis=-1), None


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    cache_size: float = 100e6,
    limit: float = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: str | None = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> Any:
    """Integrate a function whose values are arrays, as `scipy.integrate.quad_vec` does.

    Without tensors it is SciPy's function. With tensors the integral is differentiable with respect
    to `a`, `b`, `args` and tensors that `f` uses from outside.

    Args:
        f: The function, `f(x, *args)`; returns an array.
        a: Where to begin; may be `-np.inf` or `np.inf`.
        b: Where to end, likewise.
        epsabs: The absolute error that is allowed,
        epsrel: or the error relative to the integral.
        norm: The norm of errors, "2" or "max"; with tensors it is the latter.
        cache_size: How much memory SciPy uses.
        limit: The most intervals.
        workers: Without tensors: what SciPy computes with in parallel.
        points: Places between a and b at which the function jumps or has a peak.
        quadrature: Without tensors: SciPy's rule.
        full_output: Without tensors: whether to return SciPy's information, too.
        args: Further arguments of the function.

    Returns:
        The integral, and an estimate of its error.

    Raises:
        ConvergenceError: With tensors: the estimated error is not as small as is asked for.
        UnsupportedError: With tensors: `full_output` or `quadrature`.

    >>> def moments(rate):
    ...     return gt.scipy.integrate.quad_vec(lambda x: np.stack([rate * x, rate * x**2]), 0, 1)[0]
    >>> gt.jacobian(moments)(3.0).round(6)
    array([0.5     , 0.333333])
    """
    name = "quad_vec"
    f, args = as_function(f, name), as_tuple(args)
    options = {
        "epsabs": epsabs, "epsrel": epsrel, "norm": norm, "cache_size": cache_size, "limit": limit,
        "workers": workers, "points": points, "quadrature": quadrature, "full_output": full_output,
    }  # fmt: skip

    def solved(of_arrays: Callable[[Any], Any]) -> Any:
        import scipy.integrate

        return scipy.integrate.quad_vec(of_arrays(f), a, b, **options, args=args)

    found = by_scipy(solved, (a, b, args, options))
    if found is not None:
        return found
    if quadrature is not None or full_output:
        raise UnsupportedError(
            f"{name}: got quadrature or full_output where there are tensors, expected them to be "
            "left out"
        )
    accuracy = Accuracy(float(epsabs), float(epsrel), int(limit), plain_points(points))
    problem = Problem(name, f, Unknowns(name, np.float64(0.0)), args)
    (a, low), (b, high) = limit_of("a", a), limit_of("b", b)

    def solution() -> Any:
        sample = as_array(joined(problem(still(_between(a, b, low, high)), problem.operands)))
        shape, is_complex = sample.shape, np.dtype(sample.dtype).kind == "c"
        if np.dtype(sample.dtype).kind not in "biufc":
            raise ArgumentError(f"{name}: got {sample.dtype} from the function, expected numbers")

        def flat(x: Any, operands: Any) -> Any:
            out = reshape(as_array(joined(problem(x, operands))), (-1,))
            parts = [real(out), imag(out)] if is_complex else [out]
            return concatenate([astype(part, np.float64) for part in parts])

        size = int(np.prod(shape))
        integral = Integral(flat, size * (2 if is_complex else 1), (low, high), accuracy)
        value, error = integral(a, b, problem.operands)
        if is_complex:
            value = value[:size] + 1j * value[size:]
        return reshape(value, shape), still(abs_of(error))

    return with_captures([problem], solution)


def _between(a: Any, b: Any, low: float | None, high: float | None) -> Any:
    """A number inside of an interval: a function may be infinite at its ends.

    Args:
        a: The lower end,
        b: and the upper one, if they are finite.
        low: The lower end if it is infinite,
        high: likewise.
    """
    if low is None:
        return (a + b) / 2.0 if high is None else a + np.sign(high)
    return b + np.sign(low) if high is None else np.float64(0.0)
