"""Values a traced function uses besides its arguments: made inputs, never baked in.

A captured tensor is read again at every call, so an optimizer's step or a write to it is seen. A
captured array is passed by reference, so writes into it between calls are seen too; writes that the
function itself makes while it is traced cannot be.
"""

from __future__ import annotations

import weakref
import zlib
from typing import Any

import numpy as np

from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import call
from gradtape.core.nested import Handle, unshell
from gradtape.core.op import Op, Zero
from gradtape.core.tensor import Tensor
from gradtape.errors import UnsupportedError, WriteError
from gradtape.locks import once
from gradtape.ops.generator import Draw, Key

# Larger arrays are compared only once, after the function has returned, not at every use.
_SMALL = 4096


class Capture:
    """One hidden input of a traced function.

    Attributes:
        value: Its value when it was first used, without handles.
    """

    __slots__ = ("_checksum", "_handle", "_root", "_seen", "_whole", "value")

    def __init__(self, source: Any) -> None:
        self._handle: Tensor | None = None
        self.value = unshell(source)
        # Weak while the function runs: a buffer that the function makes for itself dies with it.
        self._seen = self._root = self._whole = self._checksum = None
        if isinstance(source, Tensor):
            # A write through a view gives the tensor it is a view of a new value.
            root = source._root if isinstance(source, Handle) else source
            self._seen, self._root = weakref.ref(source), weakref.ref(root)
            self._whole = unshell(root)
        else:
            self._checksum = _checksum(source)

    def stands_for(self, source: Any) -> bool:
        """Whether this is the input for a value: an id may be that of an object that died before.

        Raises:
            WriteError: The function has written into the array since it was first used.
        """
        if self._seen is not None:
            return self._seen() is source
        if self.value is source and source.size <= _SMALL:
            self._check_unwritten()
        return self.value is source

    def written(self, level: object) -> Tensor | None:
        """The tensor, if a traced function wrote to it: it is a value of the trace now.

        Args:
            level: The trace.
        """
        root = None if self._root is None else self._root()
        if root is None or root.record is None or root.record.segment is not level:
            return None
        return root

    def restore(self, level: object) -> bool:
        """Undo a traced function's writes to the tensor; returns whether there were any."""
        root = self.written(level)
        if root is None:
            return False
        root.rebind(self._whole if isinstance(self._whole, Tensor) else Tensor(self._whole))
        return True

    def settle(self) -> None:
        """Decide, after the function has returned, what is passed at each call.

        Raises:
            WriteError: The function wrote into an array after it had used it.
        """
        self._handle = None if self._seen is None else self._seen()
        self._check_unwritten()

    def _check_unwritten(self) -> None:
        if self._checksum is not None and self._checksum != _checksum(self.value):
            raise WriteError(
                f"jit: the function writes into an array ({aval_of(self.value)}) after it has used "
                "it; the array is passed by reference, so the earlier use would see the write. Use "
                "a new array each time, or a buffer of np.zeros_like(x, shape=n)"
            )

    def current(self) -> Any:
        """The value to pass now: the array, or a tensor if it is recorded somewhere."""
        return self.value if self._handle is None else unshell(self._handle)

    @property
    def origin(self) -> Any:
        """The array or tensor that is read at each call."""
        return self.value if self._handle is None else self._handle

    @property
    def is_array(self) -> bool:
        """Whether it is the same array at every call."""
        return self._handle is None and not isinstance(self.value, Tensor)

    def outdated(self, aval: Aval) -> bool:
        """Whether it no longer fits the trace: its transform has ended, or its form has changed."""
        now = self.current()
        return self.ended or (now.shape, now.dtype) != (aval.shape, aval.dtype)

    @property
    def ended(self) -> bool:
        """Whether it belongs to a transform that has returned."""
        value = self.current()
        while isinstance(value, Tensor) and value.record is not None:
            if not value.record.segment.active:
                return True
            value = value.value
        return False


class Guard:
    """An array from outside whose elements were read while a function was traced."""

    __slots__ = ("_checksum", "array")

    def __init__(self, array: Any) -> None:
        self.array = array
        self._checksum = _checksum(array)

    def changed(self) -> bool:
        """Whether its elements have changed."""
        return self._checksum is not None and self._checksum != _checksum(self.array)


class DrawCapture(Capture):
    """A random draw: key and offset of the words it uses, different at each call."""

    __slots__ = ("_draw",)

    def __init__(self, draw: Draw, key: Key) -> None:
        self._draw = draw
        super().__init__(_state(key, draw))

    def settle(self) -> None:
        """Give back the words taken while the function was traced: they were not used."""
        self._draw.generator.give_back(self._draw)

    def current(self) -> Any:
        # As an op, so that another function being traced that calls this one draws at each call.
        return call(_RANDOM_STATE, (), self._draw.source.take(self._draw.count))

    @property
    def is_array(self) -> bool:
        return False

    def outdated(self, aval: Aval) -> bool:
        return False


def _state(key: Key, offset: int) -> Any:
    return np.array([*key, offset], np.uint64)


_RANDOM_STATE = Op(
    "random_state",
    lambda xp, key, offset: _state(key, offset),
    lambda key, offset: Aval((3,), np.dtype(np.uint64)),
    effect="random",
)


def _checksum(array: Any) -> Any:
    """What tells whether an array was written into; None for a read-only array."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable or array.dtype.hasobject:
        return None
    if array.nbytes <= _SMALL:
        return array.tobytes()
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


@once
def redrawn(op: Op) -> Op:
    """A random op with key and offset in an operand, which differs at each call."""

    def evaluate(xp: Any, state: Any, *arrays: Any, **params: Any) -> Any:
        low, high, offset = (int(word) for word in state)
        return op.evaluate(xp, *arrays, key=(low, high), offset=offset, **params)

    def infer(_state: Aval, *avals: Aval, **params: Any) -> Any:
        return op.infer(*avals, key=(0, 0), offset=0, **params)

    def batch(own: Op, axes: Any, args: Any, params: dict[str, Any]) -> Any:
        if axes[0] is not None:
            raise UnsupportedError(f"{op.name}: the state of a generator cannot be batched")
        assert op.batch is not None
        return op.batch(own, axes, args, params)

    return Op(
        op.name,
        evaluate,
        infer,
        vjps=(Zero("numbers are drawn by integers"), *op.vjps) if op.vjps else (),
        jvp=op.jvp,
        batch=batch,
        kind=op.kind,
        effect=op.effect,
    )
