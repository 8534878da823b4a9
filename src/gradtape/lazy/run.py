"""`gt.run`: a function that builds a lazy graph and evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gradtape.autodiff.arguments import as_function, raise_unwrapped
from gradtape.lazy.context import Context
from gradtape.lazy.sources import Variables

T = TypeVar("T")


def run(function: Callable[[Context], T], variables: Variables | None = None) -> T:
    """Call a function with a new context, in which it builds a lazy graph and evaluates it.

    Args:
        function: A function of the context.
        variables: The variables that the context finds; `env.run(f)` passes its own.

    Returns:
        What the function returned.

    Raises:
        ArgumentError: It is not a function.

    >>> def program(ctx):
    ...     x, y = ctx.placeholder("x", ()), ctx.placeholder("y", ())
    ...     z = 2.0 * x * x + 3.0 * y + 1.0
    ...     gx, gy = gt.graph.grad([z], [x, y])
    ...     return gx.eval(ctx, feed={x: 2.0}), gy.eval(ctx)
    >>> gt.run(program)
    (np.float64(8.0), np.float64(3.0))
    """
    function = as_function(function, "run")
    context = Context(variables)
    try:
        return function(context)
    except (TypeError, ValueError, SystemError) as error:
        raise_unwrapped(error)
        raise
    finally:
        context.close()
