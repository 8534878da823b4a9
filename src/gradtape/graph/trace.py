"""Tracing: running a function at abstract values and noting the ops it calls.

A trace is one more level: its tensors hold an `Abstract` in place of an array, and handling an op
means appending a node. Transforms inside the function are levels above it, so a trace of a gradient
sees the ops of the forward and the backward pass.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import run
from gradtape.backends import is_raw
from gradtape.core import scalar
from gradtape.core.aval import Abstract, Aval, aval_of, contiguous_strides, is_numeric
from gradtape.core.batching import batch_in_place
from gradtape.core.call import is_differentiable
from gradtape.core.evaluate import explain
from gradtape.core.level import WITH_MODES, Level, Node as RecordNode
from gradtape.core.lines import user_line
from gradtape.core.lowering import Composite, Pointwise
from gradtape.core.nested import Nested, unshell
from gradtape.core.op import EVERY, Facts, Op, infer_like
from gradtape.core.state import (
    STATE,
    Mode,
    Proceed,
    Scope,
    State,
    current,
    next_level,
    run_inside,
)
from gradtape.core.tape_modes import check_traced_for, tapes_with_modes
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ConversionError,
    GradtapeError,
    LeakedTensorError,
    WriteError,
    a_type,
)
from gradtape.graph.capture import Capture, DrawCapture, Guard, redrawn
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value, sources
from gradtape.graph.layout import layout
from gradtape.graph.python_numbers import Truths
from gradtape.ops.generator import Draw
from gradtape.ops.shape import broadcast_op, transpose_op


class Symbol(RecordNode):
    """The node of a traced tensor: its trace, and the operand that stands for it in the graph."""

    __slots__ = ("operand",)

    def __init__(self, level: TraceLevel, operand: Operand) -> None:
        self.segment = level
        self.sequence = 0
        self.operand = operand


def operand_of(value: Any) -> Operand:
    """The operand that stands for a traced tensor, whatever levels are above the trace."""
    value = unshell(value)
    while not isinstance(value.record, Symbol):
        value = value.value
    return value.record.operand


def is_traced(value: Any) -> bool:
    """Whether a value is a traced tensor, whatever levels are above the trace."""
    value = unshell(value) if isinstance(value, Tensor) else None
    while isinstance(value, Tensor) and value.record is not None:
        if isinstance(value.record, Symbol):
            return True
        value = value.value
    return False


class _Traced(Abstract):
    """An abstract value that can make others in its trace."""

    __slots__ = ("_level",)

    def __init__(
        self,
        level: TraceLevel,
        aval: Aval,
        base: Abstract | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        # Without the constructors of its bases: there is one for each node.
        self.shape, self.dtype, self.weak = shape, dtype, _ = aval.shape, aval.dtype, aval.weak
        self.base = base
        self.strides = contiguous_strides(shape, dtype.itemsize) if strides is None else strides
        self._level = level

    def filled(self, number: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        level, value = self._level, dtype.type(number)
        if not shape:
            return level.symbol(Literal(value))
        return level.append(broadcast_op, [Literal(value)], {"shape": shape})


def _captured_aval(value: Any) -> Aval:
    """The abstract value of something captured: a number of a trace around this one stays weak."""
    inner = value.value if isinstance(value, Tensor) else None
    if isinstance(inner, Abstract) and inner.weak:
        return Aval((), np.dtype(inner.dtype), weak=True)
    return aval_of(value)


class TraceLevel(Level):
    """One trace in progress."""

    __slots__ = (
        "_by_identity", "_turned", "captures", "guards", "line", "nodes", "truths", "values",
    )  # fmt: skip

    def __init__(self, label: str) -> None:
        super().__init__(next_level(), label)
        self.nodes: list[Node] = []
        # The line of all nodes that are added, if it is known; else it is found for each.
        self.line: str | None = None
        self.truths = Truths()
        # Captured arrays and tensors with their inputs in the graph. Tensors are held weakly, so an
        # id may be reused: a capture knows whether it is still the same object.
        self.captures: list[Capture] = []
        self.values: list[Value] = []
        self.guards: list[Guard] = []
        self._by_identity: dict[int, tuple[Capture, Value]] = {}
        self._turned: dict[int, tuple[Any, Operand]] = {}

    # ---- values ----------------------------------------------------------------------------

    def symbol(self, operand: Operand, **view: Any) -> Tensor:
        """The tensor of an operand of the graph."""
        return Nested(_Traced(self, operand.aval, **view), Symbol(self, operand))

    def operand(self, value: Any) -> Operand:
        """The operand that stands for a value: its symbol, a number, or a captured input."""
        if isinstance(value, Tensor):
            record = value.fresh().record
            if isinstance(record, Symbol) and record.segment is self:
                return record.operand
            value = unshell(value)
        if isinstance(value, Tensor):
            return self.capture(value)
        if isinstance(value, np.generic) or not hasattr(value, "dtype"):
            return Literal(value)
        if value.ndim > 1 and not value.flags.c_contiguous and value.T.flags.c_contiguous:
            return self._transposed(value)
        return self.capture(value)

    def _transposed(self, array: Any) -> Operand:
        """The operand for an array stored in transposed order: its transpose is the input."""
        known = self._turned.get(id(array))
        if known is None:
            axes = tuple(reversed(range(array.ndim)))
            turned = self.append(transpose_op, [self.capture(array.T)], {"axes": axes})
            known = self._turned[id(array)] = array, operand_of(turned)
        return known[1]

    def capture(self, source: Any) -> Value:
        """The input of the graph for something the function did not get as an argument."""
        known = self._by_identity.get(id(source))
        if known is not None and known[0].stands_for(source):
            return known[1]
        capture = Capture(source)
        value = self._hidden(capture)
        self._by_identity[id(source)] = capture, value
        return value

    def _hidden(self, capture: Capture) -> Value:
        value = Value(_captured_aval(capture.value))
        self.captures.append(capture)
        self.values.append(value)
        return value

    # ---- ops -------------------------------------------------------------------------------

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        if op.kind == "graph":
            return composition(op)(*args, **params)  # replayed: its nodes become part of this graph
        out = self._process(op, args, params)
        if current().floor < self.number:
            return out
        # Inside no_grad: nothing may record this when the graph is replayed.
        return self._unrecorded(out) if op.outputs == 1 else tuple(map(self._unrecorded, out))

    def _unrecorded(self, tensor: Tensor) -> Tensor:
        if not is_differentiable(tensor):
            return tensor
        return self.append(UNRECORDED, [operand_of(tensor)], {}, [tensor])

    def _process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        operands = [self.operand(arg) for arg in args]
        if op.effect == "random" and isinstance(params.get("offset"), Draw):
            params = dict(params)
            state = DrawCapture(params.pop("offset"), params.pop("key"))
            return self.append(redrawn(op), [self._hidden(state), *operands], params)
        if op.outputs == 1:
            counted = self.truths.counted(op, operands, self._noted)
            return self.append(op, counted, params, args)
        avals = _infer_custom(op, operands) if op.kind == "custom" else _infer(op, operands, params)
        line, region = self.line or user_line(), STATE.get().policy
        node = Node(op, operands, params, avals, line, region)
        self.nodes.append(node)
        return tuple(self.symbol(value) for value in node.outputs)

    def append(
        self,
        op: Op,
        operands: Sequence[Operand],
        params: dict[str, Any],
        args: Sequence[Any] = (),
    ) -> Tensor:
        """Append a call of an op with one result; `args` are the values of the operands."""
        aval = _infer(op, operands, params)
        line, region = self.line or user_line(), STATE.get().policy
        node = Node(op, operands, params, (aval,), line, region)
        self.nodes.append(node)
        self.truths.note(op, operands, node.outputs[0])
        return self.symbol(node.outputs[0], **layout(op, args, params, aval))

    def _noted(self, op: Op, operands: Sequence[Operand]) -> Operand:
        return operand_of(self.append(op, operands, {}))

    def read(self, tensor: Any, what: str) -> None:
        if not self.active:
            raise LeakedTensorError(
                f"{self.label}: the value of a tensor ({aval_of(tensor)}) of a function that was "
                "traced before is asked for; return it from the function instead of storing it"
            )
        raise ConversionError(
            f"{self.label}: the value of a traced tensor ({aval_of(tensor)}) is asked for at "
            f"{user_line()}, but it is only known when the compiled function runs. Return it, to "
            "print or log it. Use gt.cond or np.where instead of if; gt.while_loop instead of "
            "while; gt.fori_loop, shapes, or a static argument, for loop bounds and sizes; "
            "`import gradtape.numpy as np` instead of numpy for np.array of tensors and "
            "buffers of np.zeros(n); np.sin instead of math.sin; gt.tensor(table)[i] instead of "
            "table[i] for an array from outside"
        )


def _infer_custom(op: Op, operands: Sequence[Operand]) -> Sequence[Aval]:
    """The abstract results of a function with its own rules, which stay with the node."""
    avals = [operand.aval for operand in operands]
    assert isinstance(op.lower, Composite)
    try:
        graph = op.lower.graph or trace(composition(op), avals, op.name).graph
        return [output.aval for output in graph.outputs]
    except ConversionError:
        return op.infer(*avals)  # type: ignore[no-any-return] # it looks at values: tried on zeros


def composition(op: Op) -> Callable[..., Any]:
    """The function that an op is composed of."""
    assert isinstance(op.lower, Composite)
    return op.lower.function


# Not recorded in reverse mode, while forward mode passes the tangent on, as no_grad does.
UNRECORDED = Op(
    "unrecorded",
    lambda xp, x: x,
    infer_like,
    jvp=lambda tangents, _out, _x: tangents[0],
    batch=batch_in_place,
    facts=Facts(carries=EVERY),
    lower=Pointwise(scalar.positive),
)


def _infer(op: Op, operands: Sequence[Operand], params: dict[str, Any]) -> Any:
    """The abstract results; errors of a shape rule read like those of the op's forward."""
    try:
        return op.infer(*[operand.aval for operand in operands], **params)
    except Exception as error:
        avals = [operand.aval for operand in operands]
        told = explain(op, error, avals)
        if isinstance(told, GradtapeError) and not str(told).startswith(f"{op.name}:"):
            told = type(told)(f"{op.name}: got {', '.join(map(str, avals))}; {told}")
        raise told from None


# ---- running ------------------------------------------------------------------------------------


class _Tracing(Scope):
    """While a function is traced, every op on a tensor from outside belongs to the trace.

    Args:
        level: The level of the trace.
        rewriting: The modes that are applied to the traced ops; others do not see them.
    """

    kind = "tracing"

    def __init__(self, level: TraceLevel, rewriting: tuple[Mode, ...]) -> None:
        self._level = level
        # What was made since the trace began has a number of this size at least.
        self.number = level.number
        self._rewriting = rewriting

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=(*self._rewriting, self))

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Make arrays and tensors from outside inputs before anything is done with them."""
        if any(isinstance(arg, Tensor) for arg in args):
            return proceed(op, tuple(self.adopt(arg) for arg in args), params)
        if op.effect is not None or op.kind == "control":  # a loop may be long, or have effects
            return self._level.process(op, [self.adopt(arg) for arg in args], params)
        return proceed(op, args, params)  # arrays in, arrays out

    def adopt(self, value: Any) -> Any:
        """An array or tensor from outside as an input of the trace; anything else as it is.

        This includes arrays: a derivative rule would compute with their elements during the trace.
        """
        if isinstance(value, Tensor):
            record = value.fresh().record
            if record is not None and record.segment.number >= self._level.number:
                return value.fresh()
            for tape in tapes_with_modes((value,)) if WITH_MODES else ():
                check_traced_for(tape, self._rewriting)
            return self._level.symbol(self._level.capture(value))
        if isinstance(value, np.ndarray) and is_numeric(value.dtype):
            return self._level.symbol(self._level.operand(value))
        return value

    def depend_on(self, array: Any) -> None:
        """Trace again once the elements of an array have changed: they decided the graph."""
        if not any(guard.array is array for guard in self._level.guards):
            self._level.guards.append(Guard(array))


class Trace(NamedTuple):
    """A traced function: its graph, hidden inputs, and containers of results.

    Attributes:
        graph: The inputs are the arguments' leaves, then the captures.
        captures: The hidden inputs.
        structure: The containers of the results.
        guards: Arrays whose elements decided the graph: it holds as long as they stay the same.
    """

    graph: Graph
    captures: tuple[Capture, ...]
    structure: containers.Structure
    guards: tuple[Guard, ...] = ()

    @property
    def hidden(self) -> Iterator[tuple[Capture, Aval]]:
        """The hidden inputs with their shapes and dtypes in the graph."""
        inputs = self.graph.inputs[len(self.graph.inputs) - len(self.captures) :]
        return zip(self.captures, [value.aval for value in inputs], strict=True)


def is_truth(value: Any) -> bool:
    """Whether a value is True or False, or stands for one of them in a traced function."""
    value = unshell(value) if isinstance(value, Tensor) else value
    record = getattr(value, "record", None)
    if isinstance(record, Symbol):
        return record.operand in record.segment.truths
    return type(value) is bool


def trace(
    function: Callable[..., Any],
    avals: Sequence[Aval],
    name: str = "function",
    truths: Sequence[int] = (),
    rewriting: tuple[Mode, ...] = (),
    level: TraceLevel | None = None,
) -> Trace:
    """Run a function of flat arguments at abstract values.

    Args:
        function: Takes one positional argument per aval; returns any containers.
        avals: Shapes and dtypes of the arguments.
        name: The name of the graph.
        truths: Which of the arguments are True or False.
        rewriting: The modes that are applied to the traced ops.
        level: The level of the trace, if it is one of a special class.

    Raises:
        ConversionError: The function asks for the value of an argument.
        WriteError: It writes to a tensor from outside, which gets its value back.
        GradtapeError: It returns something that is not an array.
    """
    level = TraceLevel("jit") if level is None else level
    inputs = [Value(aval) for aval in avals]
    for place in truths:
        level.truths.add(inputs[place])
    try:
        symbols = [level.symbol(value) for value in inputs]
        tracing = _Tracing(level, rewriting)
        flat = run_inside(tracing, run, lambda *args: _Flat(function(*args)), symbols, {})
        leaves, structure = flat.parts
        del flat
        outputs = [_output(level, leaf) for leaf in leaves]
        del leaves
        _check_arguments(symbols, inputs, outputs)
        del symbols
    except BaseException:
        for capture in level.captures:
            capture.restore(level)
        raise
    finally:
        level.active = False
    _settle(level)
    graph = Graph(name, [*inputs, *level.values], level.nodes, outputs)
    return Trace(graph, tuple(level.captures), structure, tuple(level.guards))


def _check_arguments(
    symbols: Sequence[Tensor], inputs: Sequence[Value], outputs: Sequence[Operand]
) -> None:
    """Refuse writes to arguments that no result depends on: the caller would not see them."""
    written = [
        operand
        for symbol, value in zip(symbols, inputs, strict=True)
        if (operand := operand_of(symbol)) is not value
    ]
    used = set(sources(outputs, lambda _: True)) if written else set()
    if any(isinstance(operand, Value) and operand not in used for operand in written):
        raise WriteError(
            "jit: the function writes to an argument and does not use what it wrote; the caller's "
            "array stays as it is. Return the new value, and assign it outside"
        )


class _Flat:
    """A flattened result. Handles in it stay handles: those from outside are captures."""

    def __init__(self, out: Any) -> None:
        self.parts = containers.flatten(out, view=containers.ALL_ARRAYS)


def _settle(level: TraceLevel) -> None:
    """Undo and refuse the function's writes to tensors from outside; its own tensors are gone."""
    if any(capture.written(level) is not None for capture in level.captures):
        gc.collect()  # a buffer of the function may live on in a cycle of references
    restored = [capture.restore(level) for capture in level.captures]
    if any(restored):
        raise WriteError(
            "jit: the function writes to a tensor from outside of it; it would only be written "
            "while the function is traced. Return the new value, and assign it outside; a module "
            "that changes its buffers, as BatchNorm does, has to be an argument, and returned, or "
            "in eval()"
        )
    for capture in reversed(level.captures):  # the last draw is returned first
        capture.settle()


def _output(level: TraceLevel, leaf: Any) -> Operand:
    if not isinstance(leaf, Tensor) and not is_raw(leaf):
        raise GradtapeError(
            f"jit: the function returned {a_type(leaf)}, expected arrays, numbers or "
            "containers of them"
        )
    if isinstance(leaf, Tensor):
        record = leaf.fresh().record
        if isinstance(record, Symbol) and record.segment is level:
            return record.operand
        return level.capture(leaf)
    return level.operand(leaf)
