"""The level of a lazy graph: a trace that stays open, while other code runs as ever."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.nested import Nested, unshell
from gradtape.core.tensor import Tensor
from gradtape.errors import ContextError, ConversionError, LeakedTensorError, WriteError
from gradtape.graph.capture import Capture
from gradtape.graph.ir import Literal, Operand, Value
from gradtape.graph.lines import user_line
from gradtape.graph.trace import Symbol, TraceLevel
from gradtape.lazy.sources import Constant, Drawn, Source

# Arrays with more elements are copied once, and compared with the copy when they are used again.
_SMALL = 1024


class SourceTensor(Nested):
    """A placeholder, variable or constant of a lazy graph."""

    __slots__ = ()

    def check_writable(self, what: str) -> None:
        """Refuse the write: the handle would no longer be that of the placeholder."""
        raise WriteError(
            f"{what}: got a placeholder, variable or constant of a lazy graph, which cannot be "
            "written to; write to a copy: y = x * 1"
        )


class LazyLevel(TraceLevel):
    """The graph of one context.

    Unlike a compiled function's it has no mode: ops without a lazy operand are eager.

    Attributes:
        sources: Where the inputs of the graph come from.
    """

    __slots__ = ("_copies", "sources")

    def __init__(self) -> None:
        super().__init__("gt.run")
        self.sources: dict[Value, Source] = {}
        self._copies: dict[int, tuple[weakref.ref[Any], Any, Value]] = {}

    # ---- values ----------------------------------------------------------------------------

    def add(self, source: Source) -> Value:
        """A new input of the graph."""
        assert source.aval is not None
        value = Value(source.aval)
        self.sources[value] = source
        return value

    def handle(self, value: Value) -> Tensor:
        """The tensor of an input that users get."""
        symbol = self.symbol(value)
        return SourceTensor(symbol.value, symbol.record)

    def operand(self, value: Any) -> Operand:
        if isinstance(value, Tensor):
            record = value.fresh().record
            if isinstance(record, Symbol) and record.segment is self:
                return record.operand
        elif isinstance(value, np.generic) or not hasattr(value, "dtype"):
            return Literal(value)
        return self.capture(value)

    def capture(self, source: Any) -> Value:
        """The constant for an array or tensor from outside, as it is now.

        Raises:
            ContextError: It is a tensor of another lazy graph.
        """
        value = unshell(source)
        if isinstance(value, Tensor):
            check_outside(value)
            return self.add(Constant(value))
        if value.size <= _SMALL:
            return self.add(Constant(value.copy()))
        known = self._copies.get(id(value))
        if known is not None and known[0]() is value and _same_bytes(known[1], value):
            return known[2]
        copy = value.copy()
        made = self.add(Constant(copy))
        self._copies[id(value)] = weakref.ref(value), copy, made
        return made

    def _hidden(self, capture: Capture) -> Value:
        capture.settle()  # the words of this draw are not used
        return self.add(Drawn(capture))

    # ---- reading ---------------------------------------------------------------------------

    def read(self, tensor: Any, what: str) -> None:
        if not self.active:
            raise LeakedTensorError(
                f"{what}: got a lazy tensor ({aval_of(tensor)}) of a gt.run that has already "
                "returned; return t.eval(ctx) from the function instead"
            )
        raise ConversionError(
            f"{what}: got a lazy tensor ({aval_of(tensor)}) at {user_line()}, which has no value "
            "before it is evaluated; use t.eval(ctx) for its value, and gt.where or gt.cond "
            "instead of if to let it decide within the graph"
        )


def check_outside(tensor: Tensor) -> None:
    """Refuse a tensor of another lazy graph.

    Raises:
        LeakedTensorError: That graph's `gt.run` has returned.
        ContextError: It is that of another context.
    """
    for level in lazy_levels(tensor):
        if not level.active:
            raise LeakedTensorError(
                "gt.run: got a lazy tensor of a gt.run that has already returned; return "
                "t.eval(ctx) from the function instead"
            )
        raise ContextError(
            "gt.run: got a lazy tensor of another context, expected one of this context; carry "
            "its value over with t.eval(ctx)"
        )


def lazy_levels(value: Any) -> Iterator[LazyLevel]:
    """The lazy graphs that a tensor belongs to, whatever levels are above them."""
    while isinstance(value, Tensor):
        value = value.fresh()
        if value.record is not None and isinstance(value.record.segment, LazyLevel):
            yield value.record.segment
        value = value.value


def _same_bytes(x: Any, y: Any) -> bool:
    """Whether two arrays of one shape and dtype hold the same bits."""
    bytes_x, bytes_y = (np.ascontiguousarray(z).reshape(-1).view(np.uint8) for z in (x, y))
    return np.array_equal(bytes_x, bytes_y)
