"""A debug mode that finds writes into arrays that recorded computations rely on."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from gradtape.core.op import Op
from gradtape.core.state import Entry, Proceed, Scope, State
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import TapeError


class detect_writes(Scope):  # noqa: N801 - used like a function, as no_grad is
    """Raise at the end of the block if an array that an op used in it was written to since.

    Records hold arrays, not copies of them: writing into a NumPy array between a computation and
    its gradient makes the gradient wrong. This mode remembers a checksum of every operand, which is
    slow and keeps the operands alive: use it to find such a write, not in production.

    Raises:
        TapeError: An array was written to; the message names the op that had used it.

    >>> data = np.ones(3)
    >>> with gt.detect_writes():
    ...     y = gt.ones(3, requires_grad=True) * data
    ...     data[0] = 5.0
    Traceback (most recent call last):
        ...
    gradtape.errors.TapeError: detect_writes: operand 1 of multiply (float64[3]) was written to ...
    """

    kind = "observing"

    def __init__(self) -> None:
        self._seen: list[tuple[str, Any, int]] = []

    def again(self) -> detect_writes:
        return type(self)()

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=(self, *state.modes))

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Run an op and remember checksums of its operands."""
        out = proceed(op, args, params)
        for position, arg in enumerate(args):
            array = innermost(arg, show=True) if isinstance(arg, Tensor) else arg
            if isinstance(array, np.ndarray):
                label = f"operand {position} of {op.name} ({array.dtype}{list(array.shape)})"
                self._seen.append((label, array, _checksum(array)))
        return out

    def left(self, entry: Entry, *error: object) -> None:
        seen, self._seen = self._seen, []
        if not error or error[0] is not None:
            return
        for label, array, checksum in seen:
            if _checksum(array) != checksum:
                raise TapeError(
                    f"detect_writes: {label} was written to after it had been used; compute the "
                    "gradient before, or write to a copy"
                )


def _checksum(array: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)
