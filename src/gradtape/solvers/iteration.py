"""Fixed points by iteration, plain or with Anderson's acceleration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.core.deferrable import deferrable
from gradtape.errors import ConvergenceError
from gradtape.graph.loops import while_loop
from gradtape.ops.checks import check_least
from gradtape.ops.comparison import greater, less_equal
from gradtape.ops.diagonal import diag, trace
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.solve import solve
from gradtape.ops.matmul import matmul
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to
from gradtape.solvers.krylov import length
from gradtape.solvers.require import Failure, epsilon, require
from gradtape.solvers.residual import FlatFunction, check_square, sizes


@deferrable
def iterate(
    g: Callable[[Any], Any],
    x0: Any,
    *,
    tol: float | None = None,
    max_steps: int = 1000,
    history: int = 0,
) -> Any:
    """Find x with `x = g(x)` by computing `g` again and again.

    It converges where `g` is a contraction. It can be traced, so that compiled functions contain
    it, and batched. Its derivatives are those of its steps: use `gt.implicit.fixed_point`, which
    this is the default solver of, for those of the solution.

    Args:
        g: The function. It returns the containers and shapes that it is given.
        x0: Where to begin: a number, an array, or containers of them.
        tol: It ends when x changes by less than this, relative to x; by default 2e-12 for float64,
            6e-6 for float32.
        max_steps: The most steps to take; it is an error if they are not enough.
        history: How many steps Anderson's acceleration takes into account; 0 for none.

    Returns:
        The fixed point, in the containers of `x0`.

    Raises:
        ConvergenceError: It did not come to a fixed point.
        ShapeError: `g` returns another number of numbers than it is given.

    >>> gt.implicit.iterate(np.cos, 1.0).round(6)
    np.float64(0.739085)
    """
    g = as_function(g, "iterate")
    return iterated("iterate", g, x0, tol, max_steps, history)


def iterated(
    name: str,
    g: Callable[[Any], Any],
    x0: Any,
    tol: float | None,
    max_steps: int,
    history: int,
    *,
    strict: bool = True,
) -> Any:
    """Where the iteration comes to; with `strict`, an error if it has not converged there."""
    check_least(name, 1, max_steps=max_steps)
    check_least(name, 0, history=history)
    flat = FlatFunction(name, g, x0)
    start = flat.start
    tol = epsilon(start.dtype) ** 0.75 if tol is None else tol

    def going(state: Any) -> Any:
        x, missed, _, count = state
        return ~less_equal(length(missed), tol * length(x)) & (count < max_steps)

    def step(state: Any) -> Any:
        x, missed, past, count = state
        new = x + missed - _correction(missed, *past) if past else x + missed
        after = flat(new) - new
        changes = (new - x, after - missed)
        past = tuple(_with_first(*pair) for pair in zip(changes, past, strict=False))
        return new, after, past, count + 1

    value = flat(start)
    check_square(name, value.shape[0], start.shape[0])
    past: tuple[Any, ...] = ()
    if history:
        past = (broadcast_to(zeros_like(start), (history, start.shape[0])),) * 2
    x, missed, *_ = while_loop(going, step, (start, value - start, past, 0))
    if strict:
        what = "expected it to converge; begin elsewhere, or allow more steps"
        failure = Failure(
            ConvergenceError,
            f"{name}: got a residual of {{}} after {max_steps} steps, {what}",
            f"{name}: got a residual that is not finite where the iteration ended, {what}",
        )
        (x,) = require([x], length(missed), tol * length(sizes(x, start)), failure)
    return flat.container(x + missed)


# With the last changes of x and of f = g(x) − x in the rows of X and F: γ makes ‖f − Fᵀγ‖ smallest,
# and the next x is x + f − (X + F)ᵀγ
def _correction(missed: Any, changes: Any, answers: Any) -> Any:
    gram = matmul(answers, answers.T)
    total = trace(gram)
    # Rows that are not there yet are 0, and others may depend on each other.
    more = where(greater(total, 0), 16 * epsilon(gram.dtype) * total, 1)
    weights = solve(gram + more * diag(ones_like(answers[:, 0])), matmul(answers, missed))
    return matmul(weights, changes + answers)


def _with_first(row: Any, rows: Any) -> Any:
    return concatenate([row[None], rows[:-1]])
