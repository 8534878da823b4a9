"""`t[index] = value` in the memory of the tensor, where nobody else sees it: O(part), not O(whole).

The record of an assignment keeps no values, so an array that only its tensor refers to can be
written to. Where somebody else holds it (a record that read it, a view, `detach()`, `numpy()`), the
tensor gets a new array, as always.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.call import record_recomputable, recording_segment
from gradtape.core.level import Node, joint_segment
from gradtape.core.op import Op
from gradtape.core.ownership import is_alone
from gradtape.core.recomputable import RecomputableAssigning, is_dropped
from gradtape.core.record import Assigning
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.ops.assign import assign
from gradtape.ops.index import basic_index, part_shape

ndarray = np.ndarray

_OP: Op = assign.op  # type: ignore[attr-defined]


def write_item(tensor: Tensor, value: Any, index: Any) -> bool:
    """Do `tensor[index] = value` in place if nothing else sees the memory.

    Args:
        tensor: What to write into.
        value: What to write: a number, or a tensor or an array of the shape of the part.
        index: The index in brackets.

    Returns:
        Whether it was done; if not, nothing was changed.

    >>> t = gt.zeros(3)
    >>> gt.ops.write.write_item(t, 2.0, 1), t
    (True, tensor([0., 2., 0.]))
    """
    if type(tensor.value) is not ndarray or not is_alone(tensor):
        return False
    target = tensor.value
    items = basic_index(index)
    if items is None or target.base is not None or not target.flags.writeable:
        return False
    parent2 = None
    if type(value) is Tensor:
        value, parent2 = value.value, value.record
    kind, state = type(value), STATE.get()
    number = kind is float or kind is int
    if number:
        fits = target.dtype.kind == "f"
    else:
        fits = (kind is ndarray or isinstance(value, np.generic)) and value.dtype == target.dtype
    if not fits or not state.plain:
        return False
    segment = _segment(tensor.record, parent2)
    if segment is False:
        return False
    if segment is not None and segment is not state.recorder.segment:
        segment = recording_segment(segment, _OP)
    policy = None if segment is None else segment.policy
    if policy is not None and not is_dropped(tensor.record, policy.block):
        return False
    try:
        shape = part_shape(items, target.shape)
        if not number and value.shape != shape:
            return False
        before = None if policy is None else target[items].copy()
        target[items] = value
    except IndexError:
        return False  # the general way raises the right error
    if segment is not None:
        parents, params = (tensor.record, parent2), {"index": items}
        if policy is None:
            whole = Aval(target.shape, target.dtype)
            inputs = whole, value if number else Aval(shape, target.dtype)
            tensor.record = Assigning(_OP, segment, parents, inputs, whole, params, None)
        else:
            operands, kind = (target, value), RecomputableAssigning
            try:
                made = record_recomputable(
                    policy, segment, _OP, parents, operands, target, params, kind
                )
            except BaseException:
                target[items] = before  # the record of the tensor is that of its old value
                raise
            tensor.record = made.record
        tensor._off = None
        if not target.shape:
            tensor._place = True
    return True


def _segment(node: Node | None, other: Node | None) -> Any:
    """Where an op on two values is recorded: None if nowhere, False if their levels differ."""
    if node is None or other is None or node.segment is other.segment:
        return getattr(node or other, "segment", None)
    return joint_segment(node.segment, other.segment) or False
