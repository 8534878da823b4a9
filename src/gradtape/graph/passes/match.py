"""A call that is about to be written into a graph, as the rules of `simplify` see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.graph.ir import Literal, Node, Operand, Value
from gradtape.graph.passes.fold import as_dtype, number_of
from gradtape.ops.cast import astype_op
from gradtape.ops.shape import broadcast_op

# Appends a call to the new graph in its simplest form, and returns the operand for the result.
Make = Callable[[Op, Sequence[Operand], Mapping[str, Any]], Operand]


class Call(NamedTuple):
    """An op with its operands in the new graph, and methods to replace it by something else.

    The methods that make a replacement return None if an operand they are given is None.

    Attributes:
        make: Appends another call.
        op: The op that is called.
        operands: Its operands, already in their simplest form.
        params: Its parameters.
        aval: The abstract result. A replacement of the call must have the same.
    """

    make: Make
    op: Op
    operands: Sequence[Operand]
    params: Mapping[str, Any]
    aval: Aval

    # ---- looking at it ---------------------------------------------------------------------

    @property
    def x(self) -> Operand:
        """The first operand."""
        return self.operands[0]

    @property
    def y(self) -> Operand:
        """The second operand."""
        return self.operands[1]

    @property
    def kind(self) -> str:
        """The kind of dtype of the result: "f" for real floating numbers."""
        return self.aval.dtype.kind

    def number(self, operand: Operand) -> Any:
        """The number an operand holds everywhere, in the dtype of the result; else None."""
        number = number_of(operand)
        return None if number is None else as_dtype(number, self.aval.dtype)

    def with_number(self) -> Iterator[tuple[Operand, Any]]:
        """For a commutative op with a number as one operand: the other operand, and the number."""
        for operand, other in ((self.x, self.y), (self.y, self.x)):
            number = self.number(other)
            if number is not None:
                yield operand, number

    def beside(self, wanted: int) -> Operand | None:
        """For a commutative op with this number as one operand: the other operand; else None."""
        for operand, number in self.with_number():
            if number == wanted:
                return operand
        return None

    # ---- putting something in its place ----------------------------------------------------

    def call(self, op: Op, *operands: Operand | None, **params: Any) -> Operand | None:
        """The result of another op."""
        return None if None in operands else self.make(op, operands, params)  # type: ignore[arg-type]

    def everywhere(self, number: Any) -> Operand | None:
        """A number in the shape and dtype of the result."""
        literal = Literal(as_dtype(number, self.aval.dtype))
        return self.call(broadcast_op, literal, shape=self.aval.shape)

    def cast(self, operand: Operand | None) -> Operand | None:
        """An operand in the dtype of the result, as NumPy's promotion casts it."""
        if operand is None:
            return None
        if operand.dtype == self.aval.dtype and operand.aval.weak == self.aval.weak:
            return operand
        if isinstance(operand, Literal):
            number = as_dtype(operand.value, self.aval.dtype)
            return None if number is None else Literal(number)
        # How NumPy rounds a Python number depends on the other operand, unlike a cast of an array.
        if operand.aval.weak and operand.dtype != self.aval.dtype:
            return None
        return self.call(astype_op, operand, dtype=self.aval.dtype)

    def spread(self, operand: Operand | None) -> Operand | None:
        """An operand repeated to the shape of the result."""
        if operand is None or operand.shape == self.aval.shape:
            return operand
        return self.call(broadcast_op, operand, shape=self.aval.shape)

    def fit(self, operand: Operand | None) -> Operand | None:
        """An operand in the dtype and shape of the result: the result of an identity."""
        return self.spread(self.cast(operand))


def made_by(operand: Operand | None, *ops: Op) -> Node | None:
    """The node that makes an operand, if its op is one of these."""
    node = operand.node if isinstance(operand, Value) else None
    return node if node is not None and node.op in ops else None


def source(operand: Operand, op: Op) -> Operand | None:
    """The first operand of the op that makes an operand, if it is this op."""
    node = made_by(operand, op)
    return None if node is None else node.operands[0]


def same(one: Operand, other: Operand) -> bool:
    """Whether two operands are the same value or the same number."""
    if isinstance(one, Literal) and isinstance(other, Literal):
        return one.key == other.key
    return one is other


def is_zero(number: Any) -> bool:
    """Whether something is the number 0, and not -0.0."""
    return number is not None and bool(number == 0) and not np.signbit(number)
