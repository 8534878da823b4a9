"""`CheckpointGroup`: results of a function that are computed again together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gradtape import containers
from gradtape.autodiff.checkpoint import checkpoint, is_lazy
from gradtape.errors import ArgumentError, a_type
from gradtape.lazy.context import Context

T = TypeVar("T")


class CheckpointGroup:
    """Checkpoints functions with several results.

    Args:
        ctx: The context of a program of `gt.run`, if the results must be tensors of it; None for
            functions of any tensors.

    Raises:
        ArgumentError: It is no context.

    >>> def program(ctx):
    ...     x = ctx.placeholder("x", (2, 2))
    ...     group = gt.CheckpointGroup(ctx)
    ...     a, b = group.checkpoint_fn([x], lambda inputs: (np.exp(inputs[0]), np.sin(inputs[0])))
    ...     return gt.graph.grad([np.sum(a * b)], [x])[0].eval(ctx, {x: np.zeros((2, 2))})
    >>> gt.run(program)
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, ctx: Context | None = None) -> None:
        if not (ctx is None or isinstance(ctx, Context)):
            raise ArgumentError(
                f"CheckpointGroup: got {a_type(ctx)}, expected the context of a gt.run, or nothing"
            )
        self._ctx = ctx

    def checkpoint_fn(self, inputs: Sequence[Any], f: Callable[[Sequence[Any]], T]) -> T:
        """Call a function, and let the backward pass compute again what it computed.

        Args:
            inputs: The argument of the function, a list of tensors.
            f: The function of the list. It may close over other tensors.

        Returns:
            What it returns, containers of tensors. Lazy tensors among them are computed again as
            well, together; eager ones are kept where others read them, as with `gt.checkpoint(f)`.

        Raises:
            ArgumentError: It is no function, or a result is not a lazy tensor of the context.

        >>> group = gt.CheckpointGroup()
        >>> gt.grad(lambda x: gt.sum(group.checkpoint_fn([x], lambda xs: gt.exp(xs[0]) ** 2)))(0.0)
        np.float64(2.0)
        """
        if not callable(f):
            raise ArgumentError(
                f"checkpoint_fn: got {a_type(f)}, expected a list and a function of it"
            )
        results = checkpoint(f)(inputs)
        return containers.map_leaves(self._marked, results)  # type: ignore[no-any-return]

    def _marked(self, result: Any) -> Any:
        if self._ctx is not None:
            self._ctx.operand(result, "checkpoint_fn")
        return checkpoint(result) if is_lazy(result) else result
