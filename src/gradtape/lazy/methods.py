"""The methods that lazy tensors have, besides those of arrays."""

from __future__ import annotations

from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.lazy.context import Context
from gradtape.lazy.feeds import Feed


def evaluated(tensor: Tensor, ctx: Context, feed: Feed = None) -> Any:
    """Evaluate a lazy tensor: `t.eval(ctx, feed={x: value})`.

    Args:
        tensor: The lazy tensor.
        ctx: Its context.
        feed: Values of placeholders: a dict, or a `gt.graph.Feeder`.

    Returns:
        An array; a number of NumPy's if it has no axes.

    Raises:
        ArgumentError: A placeholder that is needed was not fed, or something else was.
        ShapeError: A feed has the wrong shape.
        DTypeError: A feed has a dtype of another kind.
    """
    if not isinstance(ctx, Context):
        raise ArgumentError(f"eval: got {a_type(ctx)}, expected the context: t.eval(ctx)")
    return ctx.evaluator().push(tensor).set_feeder(feed).run()[0]


# Errors of calls that do not fit name the method.
evaluated.__name__ = evaluated.__qualname__ = "eval"
