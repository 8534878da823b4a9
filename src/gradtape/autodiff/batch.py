"""Batching: a level whose tensors hide one axis of their value, for `vmap`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.call import dispatch
from gradtape.core.evaluate import evaluate
from gradtape.core.level import Level, Node
from gradtape.core.nested import Nested, unshell
from gradtape.core.op import Op
from gradtape.core.state import STATE, WATCHING, next_level, run_inside, unseen
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError, UnsupportedError
from gradtape.ops.shape import broadcast_to, moveaxis

ndarray = np.ndarray


class Batched(Node):
    """The node of a batched tensor: its level, and which axis of its value is hidden."""

    __slots__ = ("axis",)

    def __init__(self, level: BatchLevel, axis: int) -> None:
        self.segment = level
        self.sequence = 0
        self.axis = axis

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: self.axis] + shape[self.axis + 1 :]


class BatchLevel(Level):
    """One `vmap` in progress: ops on its tensors run on all elements of the batch at once."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        super().__init__(next_level(), "vmap")
        self.size = size

    def batched(self, value: Any, axis: int) -> Tensor:
        """A tensor of this level that hides `axis` of `value`."""
        return Nested(unshell(value), Batched(self, axis))

    def split(self, value: Any) -> tuple[Any, int | None]:
        """The value below and its batch axis; None if it is the same for the whole batch."""
        value = unshell(value)
        node = value.record if isinstance(value, Tensor) else None
        if isinstance(node, Batched) and node.segment is self:
            return value.value, node.axis
        return value, None

    def unbatch(self, value: Any, axis: int) -> Any:
        """The value below with its batch axis at `axis`, repeated if it has none."""
        value, own = self.split(value)
        if own is None:
            shape = tuple(value.shape) if hasattr(value, "shape") else ()
            value, own = broadcast_to(value, (self.size, *shape)), 0
        return value if own == axis else moveaxis(value, own, axis)

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        if op.partials and not params:
            out = self._elementwise(op, args)
            if out is not None:
                return out
        if WATCHING and (scope := unseen(STATE.get())) is not None:
            return run_inside(scope, self.process, op, args, params)
        values, axes = zip(*(self.split(arg) for arg in args), strict=True)
        if op.batch is None:
            raise UnsupportedError(f"{op.name}: has no batching rule; call it outside vmap")
        if not any(axis is not None for axis in axes):
            return dispatch(op, values, params)
        out, axis = op.batch(op, axes, values, params)
        if op.outputs == 1:
            return self.batched(out, axis)
        # A result that is the same for the whole batch has no axis.
        pairs = zip(out, axis, strict=True)
        return tuple(o if a is None else self.batched(o, a) for o, a in pairs)

    def _elementwise(self, op: Op, args: list[Any]) -> Tensor | None:
        """The straight line for elementwise ops on raw arrays whose batches go first; else None."""
        batched: list[bool] = []
        values: list[Any] = []
        ndim = 0
        for arg in args:
            node = arg.record if type(arg) is Nested else None
            own = type(node) is Batched and node.segment is self and node.axis == 0
            value = arg.value if own else arg
            if type(value) is ndarray:
                ndim = max(ndim, value.ndim - own)
            elif own or type(value) is not float:
                return None
            batched.append(own)
            values.append(value)
        for n, own in enumerate(batched):
            value = values[n]
            if own and value.ndim <= ndim:  # its other axes are lined up from the right
                shape = value.shape
                values[n] = value.reshape(shape[0], *(1,) * (ndim + 1 - len(shape)), *shape[1:])
        return Nested(evaluate(op, values, {}), Batched(self, 0))

    def read(self, tensor: Any, what: str) -> None:
        raise ConversionError(
            f"vmap: got {what} of a tensor that stands for a whole batch and has no single value; "
            f"{_INSTEAD.get(what, _WHERE)}; return it to see the values"
        )


_WHERE = "use np.where (or gt.where) instead of branching on it or indexing with a mask"
_JOIN = (
    "join tensors with np.stack (or gt.stack), and fill a buffer of gt.zeros(n); or `import "
    "gradtape.numpy as np`, whose np.array and np.zeros(n) take tensors"
)
_NUMBER = f"use np.sin instead of math.sin; {_JOIN}"
_SIZE = (
    "sizes and loop bounds are the same for the whole batch: pass them with in_axes=None; look up "
    "in gt.tensor(table)[i] instead of table[i]"
)
_LEAVE = "compute with the tensor itself"
# Advice, by how the value was requested.
_INSTEAD = {
    "np.asarray(tensor)": _JOIN,
    "numpy()": _LEAVE,
    "float(tensor)": _NUMBER,
    "complex(tensor)": _NUMBER,
    "int(tensor)": _SIZE,
    "operator.index(tensor)": _SIZE,
    "item()": _LEAVE,
    "tolist()": _LEAVE,
    "format(tensor)": "print it as it is",
}
