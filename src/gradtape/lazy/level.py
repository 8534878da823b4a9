"""The level of a lazy graph: a trace that stays open, while other code runs as ever."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.lines import user_line
from gradtape.core.nested import Nested, unshell
from gradtape.core.op import Op
from gradtape.core.state import current
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ContextError,
    ConversionError,
    LeakedTensorError,
    UnknownSizeError,
    WriteError,
)
from gradtape.graph.capture import Capture
from gradtape.graph.ir import Literal, Operand, Value
from gradtape.graph.trace import Symbol, TraceLevel, operand_of
from gradtape.lazy.deferred import (
    DeferredCall,
    DeferredTensor,
    DeferredValue,
    Unknown,
    may_return_view,
    op_call,
)
from gradtape.lazy.sources import Constant, Drawn, Source
from gradtape.ops.assign import setitem

# Arrays with more elements are copied once, and compared with the copy when they are used again.
_SMALL = 1024
# NumPy's functions that write to an argument.
_WRITING = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})


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
        lent: The deferred values that may be views, or of which there may be views.
    """

    __slots__ = ("_copies", "lent", "sources")
    lazy = True

    def __init__(self) -> None:
        super().__init__("gt.run")
        self.lent: set[Operand] = set()
        self.sources: dict[Value, Source] = {}
        self._copies: dict[int, tuple[weakref.ref[Any], Any, Value]] = {}

    # ---- values ----------------------------------------------------------------------------

    def add(self, source: Source) -> Value:
        """A new input of the graph."""
        if source.aval is None:
            value: Value = DeferredValue(source.name)
            self.lent.add(value)
        else:
            value = Value(source.aval)
        self.sources[value] = source
        return value

    def handle(self, value: Value) -> Tensor:
        """The tensor of an input that users get."""
        symbol = self.symbol(value)
        deferred = isinstance(symbol, DeferredTensor)
        return symbol if deferred else SourceTensor(symbol.value, symbol.record)

    def symbol(self, operand: Operand, **view: Any) -> Tensor:
        if isinstance(operand, DeferredValue):
            return DeferredTensor(Unknown(operand.unsized, self.defer), Symbol(self, operand))
        return super().symbol(operand, **view)

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

    # ---- calls that are put off ------------------------------------------------------------

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        for arg in args:
            if isinstance(arg, DeferredTensor) and arg.record.segment is self:  # type: ignore[union-attr]
                return self._defer_op(op, args, params, arg.value)
        return super().process(op, args, params)

    def _defer_op(self, op: Op, args: list[Any], params: dict[str, Any], unknown: Unknown) -> Any:
        if op.outputs is None:
            raise UnknownSizeError(
                f"{op.name}: the number of its results depends on what is fed to placeholder "
                f"{unknown.unsized!r}",
                functools.partial(self.defer, unknown.unsized),
            )
        operands = [self.operand(arg) for arg in args]
        count = None if op.outputs == 1 else op.outputs
        outputs = self._add_call(op_call(op, params), operands, None, unknown.unsized, count)
        if op.aliases:
            self.lent.update(operands)
            self.lent.update(map(operand_of, outputs))
        return outputs[0] if op.outputs == 1 else tuple(outputs)

    def _add_call(
        self,
        function: Callable[..., Any],
        leaves: Sequence[Any],
        structure: Any,
        unsized: str,
        count: int | None,
    ) -> list[Tensor]:
        """Append a call, and return the tensors of its results."""
        state = current()
        node = DeferredCall(
            function,
            leaves,
            structure,
            unsized,
            self.line or user_line(),
            count=count,
            recorded=state.floor < self.number,
            modes=state.rewriting,
            region=state.policy,
        )
        self.nodes.append(node)  # type: ignore[arg-type]
        return [self.symbol(value) for value in node.outputs]

    def defer(
        self,
        unsized: str,
        error: UnknownSizeError,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        count: int | None = None,
    ) -> Any:
        """Put off a call of a whole function.

        Args:
            unsized: The name of a placeholder on whose size it depends.
            error: The error to raise where that is impossible.
            function: The function.
            args: Its arguments.
            kwargs: Its keyword arguments.
            count: The number of results if it returns a list of them; None for any result.

        Returns:
            A lazy tensor, or a list of them.

        Raises:
            UnknownSizeError: The call is part of a transform in progress.
            WriteError: The function writes to its arguments.
        """
        if not self.active:
            raise _leaked()
        name = getattr(function, "__name__", "")
        if name in _WRITING or kwargs.get("out") is not None:
            raise WriteError(
                f"{name}: got a lazy tensor of a size that is not known yet, which is not written "
                "to in place; use a function that returns its result"
            )
        leaves, structure = containers.flatten((tuple(args), kwargs))
        for n, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                record = leaf.fresh().record
                if record is not None and record.segment.number > self.number:
                    if isinstance(record.segment, LazyLevel):
                        check_outside(leaf)
                    raise error
                leaves[n] = self.operand(leaf)
            elif isinstance(leaf, np.ndarray):
                leaves[n] = leaf.copy()
        outputs = self._add_call(function, leaves, structure, unsized, count)
        if count is None and may_return_view(function):
            self.lent.update(leaf for leaf in leaves if isinstance(leaf, DeferredValue))
            self.lent.update(map(operand_of, outputs))
        return outputs[0] if count is None else outputs

    def written(self, tensor: Tensor, value: Any, index: Any) -> Tensor:
        """A deferred tensor with another value at an index."""
        error = UnknownSizeError("item assignment: got a tensor of a transform")
        unsized: str = tensor.value.unsized
        made: Tensor = self.defer(unsized, error, setitem, (tensor, value, index), {})
        self.lent.discard(operand_of(made))
        return made

    # ---- reading ---------------------------------------------------------------------------

    def read(self, tensor: Any, what: str) -> None:
        shown = tensor.value
        if not self.active:
            raise LeakedTensorError(
                f"{what}: got a lazy tensor ({shown}) of a gt.run that has already "
                "returned; return t.eval(ctx) from the function instead"
            )
        raise ConversionError(
            f"{what}: got a lazy tensor ({shown}) at {user_line()}, which has no value "
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
            raise _leaked()
        raise ContextError(
            "gt.run: got a lazy tensor of another context, expected one of this context; carry "
            "its value over with t.eval(ctx)"
        )


def _leaked() -> LeakedTensorError:
    return LeakedTensorError(
        "gt.run: got a lazy tensor of a gt.run that has already returned; return t.eval(ctx) from "
        "the function instead"
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
