"""Newton's method, written with functions that can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.transforms import jvp
from gradtape.core.deferrable import deferrable
from gradtape.errors import ConvergenceError
from gradtape.graph.loops import while_loop
from gradtape.ops.checks import check_least
from gradtape.ops.comparison import greater, less
from gradtape.ops.linalg.solve import solve_unless_singular
from gradtape.ops.select import minimum, where
from gradtape.solvers.krylov import length
from gradtape.solvers.linear import columns
from gradtape.solvers.require import Failure, epsilon, require
from gradtape.solvers.residual import (
    FlatFunction,
    at_root,
    check_square,
    default_tolerance,
    sizes,
)

# The shortest part of a step that is tried.
_LEAST = 2.0**-20


def newton_steps(
    name: str,
    f: Callable[[Any], Any],
    x0: Any,
    tol: float | None,
    max_steps: int,
    *,
    strict: bool = True,
) -> Any:
    """Where Newton's method comes to, which need not be a root.

    With `strict`, it is an error if the steps were not enough.
    """
    flat = FlatFunction(name, f, x0)
    start, value = flat.start, flat(flat.start)
    check_square(name, value.shape[0], start.shape[0])
    tol = epsilon(start.dtype) if tol is None else tol

    def going(state: Any) -> Any:
        v, value, _, error, is_singular, count = state
        far = greater(error, tol * length(v)) & ~is_singular
        return far & greater(length(value), 0) & (count < max_steps)

    def step(state: Any) -> Any:
        v, value, before, _, _, count = state
        jacobian = columns(lambda d: jvp(flat, (v,), (d,))[1], v)
        change, is_singular = solve_unless_singular(jacobian, value)
        w, after = _shortened(flat, v, value, change)
        # Where no step makes the residual smaller it is rounding, or a minimum that is no root.
        better = less(length(after), length(value))
        size = length(change)
        # Steps s, t, u of a quadratic convergence have u/t² = t/s².
        known = greater(before, 0)
        shorter = where(known, minimum(size / where(known, before, 1), 1), 1)
        error = where(better, size * shorter**2, 0)
        error = where(is_singular, float("inf"), error)
        w, after = where(better, w, v), where(better, after, value)
        return w, after, size, error, is_singular, count + 1

    none = zeros_like(length(value))
    first = (start, value, none, none + float("inf"), np.bool_(False), 0)
    v, value, _, error, is_singular, _ = while_loop(going, step, first)
    if strict:
        is_far = greater(error, tol * length(sizes(v, start)))
        v = _converged(
            v, value, is_singular, f"{name}: got a residual of {{}} where ∂f/∂x is singular, "
            "expected equations that change with every unknown; begin elsewhere",
        )  # fmt: skip
        v = _converged(
            v, value, is_far, f"{name}: got a residual of {{}} after {max_steps} steps of Newton's "
            "method, expected it to converge; begin elsewhere, or allow more steps",
        )  # fmt: skip
    return flat.container(v)


def _converged(v: Any, value: Any, is_far: Any, text: str) -> Any:
    """Where Newton's method has ended, unless that is far from a root."""
    # Any residual is too large there. NaN is said by the check of the solution.
    failure = Failure(ConvergenceError, text)
    return require([v], length(value), where(is_far, 0, np.inf), failure)[0]


def _shortened(flat: FlatFunction, v: Any, value: Any, change: Any) -> tuple[Any, Any]:
    """The end of a step that is halved until the residual is smaller, and the value there."""
    size = length(value)

    def going(state: Any) -> Any:
        part, _, after = state
        return ~less(length(after), size) & greater(part, _LEAST)

    def halve(state: Any) -> Any:
        part = 0.5 * state[0]
        w = v - part * change
        return part, w, flat(w)

    w = v - change
    _, w, after = while_loop(going, halve, (1.0, w, flat(w)))
    return w, after


@deferrable
def newton(
    f: Callable[[Any], Any], x0: Any, *, tol: float | None = None, max_steps: int = 50
) -> Any:
    """Find x with `f(x) = 0` by Newton's method.

    The Jacobian is computed by forward mode at each step, and steps are halved until the residual
    gets smaller. It can be traced, so that compiled functions contain it, and batched. Its
    derivatives are those of its steps: use `gt.implicit.root`, which this is the default solver
    of, for those of the solution.

    Args:
        f: The function. It returns as many numbers as x has.
        x0: Where to begin: a number, an array, or containers of them.
        tol: It ends when the error, which is estimated from the last two steps, is below this
            relative to x. By default that is rounding.
        max_steps: The most steps to take.

    Returns:
        The root, in the containers of `x0`.

    Raises:
        ConvergenceError: It did not come to a root, or a Jacobian on the way is singular.
        ShapeError: There are not as many equations as unknowns.

    >>> gt.implicit.newton(lambda x: x**2 - 2.0, 1.0).round(6)
    np.float64(1.414214)
    """
    f = as_function(f, "newton")
    check_least("newton", 1, max_steps=max_steps)
    x = newton_steps("newton", f, x0, tol, max_steps)
    dtype = FlatFunction("newton", f, x0).start.dtype
    return at_root("newton", f, x0, x, max(tol or 0.0, default_tolerance(dtype)))
