"""The rules of `simplify` for ops that only move elements, and for reductions over nothing.

They hold for every dtype and every value: no number is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.core.op import Op, op_of
from gradtape.graph.ir import Literal, Operand
from gradtape.graph.passes.match import Call, made_by, source
from gradtape.ops.arithmetic import add
from gradtape.ops.assign import assign
from gradtape.ops.index import getitem_basic, put
from gradtape.ops.product import prod_op
from gradtape.ops.rearrange import flip_op
from gradtape.ops.reduce import max_over, mean_over, min_over, spread, sum_over
from gradtape.ops.shape import broadcast_op, reshape_op, transpose_op

add_op, getitem_op, put_op, setitem_op = map(op_of, (add, getitem_basic, put, assign))
max_op, mean_op, min_op, spread_op, sum_op = map(
    op_of, (max_over, mean_over, min_over, spread, sum_over)
)

# Name, ops, function that returns the replacement of a call, and the reason why nothing changes.
Entry = tuple[str, Sequence[Op], Callable[[Call], Operand | None], str]


def unchanged_form(call: Call) -> Operand | None:
    """The operand of an op to a shape or dtype that it has already."""
    return call.x if call.x.aval == call.aval else None


def _reshaped(call: Call, operand: Operand | None) -> Operand | None:
    """An operand with as many elements as the result, in its shape."""
    if operand is None or math.prod(operand.shape) != math.prod(call.aval.shape):
        return None
    return call.call(reshape_op, operand, shape=call.aval.shape)


# ---- reshape, transpose, broadcast --------------------------------------------------------------


def _reshape_reshape(call: Call) -> Operand | None:
    return _reshaped(call, source(call.x, reshape_op))


def _transpose_transpose(call: Call) -> Operand | None:
    node = made_by(call.x, transpose_op)
    if node is None:
        return None
    inner = node.params["axes"]
    axes = tuple(inner[axis] for axis in call.params["axes"])
    return call.call(transpose_op, node.operands[0], axes=axes)


def _transpose_of_ones(call: Call) -> Operand | None:
    long = [axis for axis in call.params["axes"] if call.x.shape[axis] != 1]
    return _reshaped(call, call.x) if long == sorted(long) else None


def _broadcast_broadcast(call: Call) -> Operand | None:
    return call.call(broadcast_op, source(call.x, broadcast_op), shape=call.aval.shape)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = next((axis for axis, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


def _broadcast_reshape(call: Call) -> Operand | None:
    x = source(call.x, reshape_op)
    if x is None:
        return None
    grown = _without_leading_ones(x.shape) == _without_leading_ones(call.x.shape)
    if not grown or len(x.shape) > len(call.aval.shape):
        return None
    return call.call(broadcast_op, x, shape=call.aval.shape)


def _spread_of_nothing(call: Call) -> Operand | None:
    return _reshaped(call, call.x)


# ---- indexing -----------------------------------------------------------------------------------


def _takes_everything(index: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Whether a basic index selects all elements, in order."""
    axis = 0
    for place, item in enumerate(index):
        if item is None:
            continue
        if item is Ellipsis:
            axis = len(shape) - sum(later is not None for later in index[place + 1 :])
            continue
        size = shape[axis]
        axis += 1
        if size != 1 if not isinstance(item, slice) else item.indices(size) != (0, size, 1):
            return False
    return True


def _getitem_everything(call: Call) -> Operand | None:
    everything = _takes_everything(call.params["index"], call.x.shape)
    return _reshaped(call, call.x) if everything else None


def _put_everything(call: Call) -> Operand | None:
    everything = _takes_everything(call.params["index"], call.aval.shape)
    return _reshaped(call, call.x) if everything else None


def _setitem_everything(call: Call) -> Operand | None:
    value = call.y
    if not _takes_everything(call.params["index"], call.aval.shape):
        return None
    if isinstance(value, Literal):
        return call.fit(value)
    return _reshaped(call, value) if value.dtype == call.aval.dtype else None


# ---- flips and reductions -----------------------------------------------------------------------


def _flip_flip(call: Call) -> Operand | None:
    node = made_by(call.x, flip_op)
    if node is None or set(node.params["axis"]) != set(call.params["axis"]):
        return None
    return node.operands[0]


def _flip_of_ones(call: Call) -> Operand | None:
    return call.x if all(call.x.shape[axis] <= 1 for axis in call.params["axis"]) else None


def _only_element(call: Call) -> Operand | None:
    """The operand of a reduction in the dtype of the result, if it combines nothing."""
    alone = all(call.x.shape[axis] == 1 for axis in call.params["axis"])
    return call.cast(call.x) if alone and call.kind in "biuf" else None


def _choice_of_one(call: Call) -> Operand | None:
    return _reshaped(call, _only_element(call))


def _sum_of_one(call: Call) -> Operand | None:
    x = _only_element(call)
    if call.kind == "f":
        x = call.call(add_op, x, Literal(call.aval.dtype.type(0)))
    return _reshaped(call, x)


SHAPE_RULES: tuple[Entry, ...] = (
    ("reshape to the same", (reshape_op,), unchanged_form, "no change"),
    ("reshape of reshape", (reshape_op,), _reshape_reshape, "the order of elements is the same"),
    ("transpose of transpose", (transpose_op,), _transpose_transpose, "permutations compose"),
    ("transpose of ones", (transpose_op,), _transpose_of_ones, "axes of size 1 have one place"),
    ("broadcast to the same", (broadcast_op,), unchanged_form, "no change"),
    ("broadcast of broadcast", (broadcast_op,), _broadcast_broadcast, "repeated by both"),
    ("broadcast of reshape", (broadcast_op,), _broadcast_reshape, "it adds axes in front itself"),
    ("spread of nothing", (spread_op,), _spread_of_nothing, "as many elements before and after"),
    ("getitem of everything", (getitem_op,), _getitem_everything, "all elements in order"),
    ("put of everything", (put_op,), _put_everything, "no zeros are left"),
    ("setitem of everything", (setitem_op,), _setitem_everything, "nothing old is left"),
    ("flip of flip", (flip_op,), _flip_flip, "back again"),
    ("flip of ones", (flip_op,), _flip_of_ones, "one element has no order"),
    ("max of one", (max_op, min_op, prod_op), _choice_of_one, "the element itself"),
    ("sum of one", (mean_op, sum_op), _sum_of_one, "a sum starts from 0.0, so -0.0 becomes 0.0"),
)
