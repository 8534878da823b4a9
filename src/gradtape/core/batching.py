"""Batching rules that many ops share: what `vmap` makes of an op on operands with a batch axis.

A rule is called `rule(op, axes, args, params)`, with the batch axis of each operand or None, and
gives the result with its batch axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtape.core.aval import aval_of
from gradtape.core.call import call
from gradtape.core.needed_ops import needed
from gradtape.core.op import Op


def batch_elementwise(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Bring batch axes to the front and line the other axes up from the right, as broadcasting."""
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
    """Batching of an op of one input that treats every element alike, whatever its parameters."""
    assert axes[0] is not None
    return call(op, args, params), axes[0]


def batch_at_front(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    """Batching of an op that leaves a leading axis of its one input alone."""
    assert axes[0] is not None
    out = call(op, (move_batch_axis(args[0], axes[0]),), params)
    return out, 0 if op.outputs == 1 else (0,) * len(out)


def batch_together(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Batching of an op that leaves a leading axis of all inputs alone; one without is repeated."""
    size = next(x.shape[n] for x, n in zip(args, axes, strict=True) if n is not None)
    lined_up = [
        needed.broadcast_to(x, (size, *x.shape)) if n is None else move_batch_axis(x, n)
        for x, n in zip(args, axes, strict=True)
    ]
    return call(op, lined_up, params), 0


def batch_along_axis(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, int]:
    """Batching of an op that works along its parameter `axis`, one or several, of all inputs.

    The batch axis goes to the front and is left alone; the others move by one.
    """
    own = params["axis"]
    axis = tuple(a + 1 for a in own) if isinstance(own, tuple) else own + 1
    return batch_together(op, axes, args, {**params, "axis": axis})


def move_batch_axis(arg: Any, axis: int, to: int = 0) -> Any:
    """`arg` with its batch axis at position `to`."""
    return arg if axis == to else needed.moveaxis(arg, axis, to)
