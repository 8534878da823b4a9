"""Batching rules that many ops share: how `vmap` runs an op on operands with a batch axis.

A rule is called `rule(op, axes, args, params)`, with the batch axis of each operand or None, and
returns the result with its batch axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape.core.aval import aval_of
from gradtape.core.call import call
from gradtape.core.needed_ops import needed
from gradtape.core.op import Op


def batch_elementwise(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Bring batch axes to the front and align the other axes from the right, like broadcasting."""
    ndims = [
        len(aval_of(arg).shape) - (axis is not None) for arg, axis in zip(args, axes, strict=True)
    ]
    ndim = max(ndims)
    lined_up = []
    for arg, axis, own in zip(args, axes, ndims, strict=True):
        if axis is not None:
            arg = move_batch_axis(arg, axis)
            if own < ndim:
                shape = arg.shape
                arg = needed.reshape(arg, (shape[0],) + (1,) * (ndim - own) + shape[1:])
        lined_up.append(arg)
    return call(op, lined_up, params), 0


def batch_in_place(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Batching of a one-input op that treats every element alike, whatever its parameters."""
    assert axes[0] is not None
    return call(op, args, params), axes[0]


def batch_at_front(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    """Batching of an op that leaves a leading axis of all inputs alone.

    The parameter `axis`, one or several, counts from the front and moves by one.
    """
    own = params.get("axis")
    if own is not None:
        params = {
            **params,
            "axis": tuple(a + 1 for a in own) if isinstance(own, tuple) else own + 1,
        }
    out = call(op, in_front(args, axes), params)
    return out, 0 if op.outputs == 1 else (0,) * len(out)


def batch_first(change: Callable[..., dict[str, Any]]) -> Callable[..., tuple[Any, int]]:
    """Batching of a one-input op whose parameters, such as a shape, speak of all axes.

    Args:
        change: `change(size, **params)`, the parameters that differ if a batch of that size goes
            first.
    """

    def batch(
        op: Op, axes: Sequence[int], args: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, int]:
        x = move_batch_axis(args[0], axes[0])
        return call(op, (x,), {**params, **change(x.shape[0], **params)}), 0

    return batch


def batch_as_samples(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Batching of an op whose first axis numbers samples: the batch axis is merged into it."""
    lined_up = in_front(args, axes)
    reshape = needed.reshape
    joined = [reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])) for x in lined_up]
    out = call(op, joined, params)
    return reshape(out, (*lined_up[0].shape[:2], *out.shape[1:])), 0


def in_front(args: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Arguments with their batch axis first; one that has none is repeated, unless a number."""
    size = next(x.shape[n] for x, n in zip(args, axes, strict=True) if n is not None)
    lined_up = []
    for x, n in zip(args, axes, strict=True):
        if n is not None:
            x = move_batch_axis(x, n)
        elif hasattr(x, "shape"):
            x = needed.broadcast_to(x, (size, *x.shape))
        lined_up.append(x)
    return lined_up


def move_batch_axis(arg: Any, axis: int, to: int = 0) -> Any:
    """`arg` with its batch axis at position `to`."""
    return arg if axis == to else needed.moveaxis(arg, axis, to)
