"""Calls of a library in a plan: which routines of LAPACK, on which matrices in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.kernel import Buffer, Failure


class MatrixArgument(NamedTuple):
    """An array that a routine is given.

    Attributes:
        buffer: The buffer, with one array for each matrix of a stack.
        stride: Elements from one to the next; 0: the same one for all.
    """

    buffer: Buffer
    stride: int


class RoutineCall(NamedTuple):
    """A call of one routine, whose arguments are passed by reference, with a status after them.

    Attributes:
        symbol: The name of the routine in generated code.
        address: Its address in this process.
        args: Its arguments: letters, integers, arrays.
        flops: Multiplications and additions, roughly.
        failure: The condition that does not hold if the status is above 0; its number is the status
            less 1. None if that is not a failure.
        settles: Whether another program takes over the call if the status is not 0; some routines
            refuse NaN with a status below 0.
    """

    symbol: str
    address: int
    args: tuple[str | int | MatrixArgument, ...]
    flops: int
    failure: Failure | None
    settles: bool


class LibraryCall(NamedTuple):
    """Routines that are called one after the other, for each matrix of a stack.

    Attributes:
        name: Its name in listings and symbols.
        calls: The calls.
        matrices: How many matrices there are.
        integers: The dtype of integers.
        ops: The name of the op.
    """

    name: str
    calls: tuple[RoutineCall, ...]
    matrices: int
    integers: np.dtype[Any]
    ops: tuple[str, ...]

    @property
    def flops(self) -> int:
        """Multiplications and additions, roughly."""
        return self.matrices * sum(call.flops for call in self.calls)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers it uses: routines write to some of what they read."""
        args = [arg for call in self.calls for arg in call.args]
        return tuple(dict.fromkeys(arg.buffer for arg in args if isinstance(arg, MatrixArgument)))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The conditions that may not hold."""
        return tuple(call.failure for call in self.calls if call.failure is not None)
