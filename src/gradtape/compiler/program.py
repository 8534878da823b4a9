"""A compiled graph: native parts and eager ops, run one after the other."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.compiler.classify import obstacle
from gradtape.compiler.llvm.builder import Module
from gradtape.compiler.llvm.link import Library, Target, host
from gradtape.compiler.llvm.scratch import NO_MEMORY
from gradtape.compiler.native import Native, with_own_outputs, write
from gradtape.compiler.partition import EagerPart, NativePart, partition
from gradtape.compiler.pipeline import optimized
from gradtape.compiler.runtime import cache, room
from gradtape.compiler.runtime.entry import ArrayLeaf, ResultLeaf, TupleSpec, make_callable
from gradtape.compiler.runtime.symbols import imports
from gradtape.compiler.sequence import FIRST_FAILURE
from gradtape.core.aval import aval_of
from gradtape.core.evaluate import evaluate
from gradtape.errors import GradtapeError, ShapeError
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value
from gradtape.graph.passes.hopeful import UnsettledError
from gradtape.graph.python_numbers import computed_exactly, is_of_integers

# No machine has that much memory, and sums of sizes up to it are exact in native code.
_MOST_BYTES = 2**50

# Functions that take longer let other Python threads run meanwhile, in nanoseconds.
LONG = 20_000


class NativeFunction:
    """A native part, compiled and linked.

    Attributes:
        part: The subgraph.
        native: Its plan.
        text: Its IR.
        library: Its machine code.
        run: It as a function of arrays.
        failed: Raises what a status that is not 0 means.
    """

    def __init__(
        self,
        part: NativePart,
        target: Target | None = None,
        libraries: dict[str, Library] | None = None,
    ) -> None:
        """Compile a part, unless there is a library of the same IR among `libraries`."""
        self.part = part
        module = Module()
        graph = with_own_outputs(part.graph)
        self.native = write(graph, module, target or host())
        self.text = str(module)
        known = {} if libraries is None else libraries
        if self.text not in known:
            code, names = cache.compiled(self.text, target), self.native.exports
            known[self.text] = Library(code, imports(self.text), names)
        self.library = known[self.text]
        self.run = Runner(self.library, self.native, graph)
        self.failed = self.run.failed

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for contiguous arrays of the right shapes and dtypes."""
        return self.run(arrays)


class Runner:
    """A native function as one of contiguous arrays, which makes the arrays of its outputs.

    Attributes:
        direct: The native entry point: takes arrays, returns a tuple with NumPy's numbers for
            arrays without axes, and `NotImplemented` for arrays that do not fit, or if it turns
            out that something has to be settled.
        failed: Raises what a status that is not 0 means.
        asks: Whether a call takes so much memory that it asks for it first. Only `direct` does.
    """

    def __init__(self, library: Library, native: Native, graph: Graph) -> None:
        conditions = tuple((failure.error, str(failure)) for failure in native.failures)
        number = native.wrong and ctypes.c_int64.from_address(library.address(native.wrong))
        self.failed = functools.partial(_failed, conditions, number)
        self.asks = room.is_noticed(native.arena.size + sum(map(_nbytes, graph.outputs)))
        self.direct = make_callable(
            library,
            native.name,
            [ArrayLeaf(value.dtype, value.shape) for value in graph.inputs],
            TupleSpec(tuple(ResultLeaf(n) for n in range(len(graph.outputs)))),
            [(output.dtype, output.shape) for output in graph.outputs],
            on_error=self.failed,
            release_gil=native.nanoseconds > LONG,
            name=graph.name,
            scratch=native.arena.size,
        )

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for arrays of the right shapes and dtypes.

        Raises:
            UnsettledError: A watched value is not finite.
        """
        out = self.direct(*arrays)
        if out is NotImplemented:  # not for the arrays, which were prepared for it
            raise UnsettledError
        return [np.asarray(array) for array in out]


def _failed(
    conditions: Sequence[tuple[type[GradtapeError], str]], number: Any, status: int
) -> None:
    """Raise what the status of a native function means, which checks some conditions."""
    if status == NO_MEMORY:
        raise MemoryError("jit: no memory for intermediate results")
    if FIRST_FAILURE <= status < FIRST_FAILURE + len(conditions):
        error, message = conditions[status - FIRST_FAILURE]
        raise error(message.replace("{}", str(number.value), 1))
    raise GradtapeError(f"jit: the compiled function failed with status {status}")


class Program:
    """What runs a graph on arrays.

    It leaves out what settles 0·∞ in derivatives (`graph.passes.hopeful`), unless it is told not to
    or is in debug mode. When something would have had to be settled for the first time, another
    program is made, which does everything, and takes its place from then on.

    Attributes:
        graph: What it computes, after the passes.
        steps: Its parts in order: native functions, and ops that run their eager kernel.
    """

    def __init__(self, graph: Graph, *, debug: bool = False, settling: bool = False) -> None:
        self._source = graph
        # The program that took its place. Not itself: a cycle would keep its code loaded.
        self._instead: Program | None = None
        self.graph = optimized(graph, debug=debug, settling=settling or debug)
        _check_sizes(self.graph)
        parts = partition(self.graph, obstacle)
        # In an unrolled loop with an eager op in it, the native parts are all alike.
        libraries: dict[str, Library] = {}
        self.steps: list[NativeFunction | EagerPart] = [
            NativeFunction(part, None, libraries) if isinstance(part, NativePart) else part
            for part in parts
        ]
        self._direct = _misfit if self.native is None else self.native.run.direct
        # Eager ops that ask for memory first, and how much.
        needs = {
            p.node: sum(map(_nbytes, p.node.outputs)) for p in parts if isinstance(p, EagerPart)
        }
        self._asking = {node: need for node, need in needs.items() if room.is_noticed(need)}

    @property
    def native(self) -> NativeFunction | None:
        """The native function that is all of it; None if there is anything besides."""
        first = self.steps[0] if len(self.steps) == 1 else None
        if not isinstance(first, NativeFunction):
            return None
        whole = (self.graph.inputs, self.graph.outputs)
        return first if (first.part.inputs, first.part.outputs) == whole else None

    def run_native(self, function: NativeFunction, arrays: Sequence[Any]) -> list[Any]:
        """The outputs of one of its native functions."""
        return function(arrays)

    def __call__(self, *arrays: Any) -> list[Any]:
        """The outputs for arrays (or numbers) that fit the inputs of the graph."""
        if self._instead is None:
            try:
                return self._run(arrays)
            except UnsettledError:
                self._instead = Program(self._source, settling=True)
        return self._instead._run(arrays)

    @property
    def in_force(self) -> Program:
        """What runs the next call: this, or the program that took its place."""
        return self if self._instead is None else self._instead

    def _run(self, arrays: Sequence[Any]) -> list[Any]:
        out = self._direct(*map(np.asarray, arrays))
        if out is not NotImplemented:
            return list(out)
        values: dict[Value, Any] = {
            value: _prepared(array, value)
            for value, array in zip(self.graph.inputs, arrays, strict=True)
        }
        for step in self.steps:
            if isinstance(step, NativeFunction):
                out = self.run_native(step, [values[value] for value in step.part.inputs])
                made = zip(step.part.outputs, out, strict=True)
                values.update((v, array) for v, array in made if isinstance(v, Value))
            else:
                if step.node in self._asking:
                    room.require(self._asking[step.node], f"a result of {step.node.op.name}")
                values.update(evaluated(step.node, values))
        inputs = set(map(id, (values[value] for value in self.graph.inputs)))
        outputs: list[Any] = []
        for output in self.graph.outputs:
            array = np.asarray(output.value if isinstance(output, Literal) else values[output])
            # Results share memory with nothing: not with arguments, not with each other.
            if id(array) in inputs or array.base is not None or not array.flags.writeable:
                array = array.copy()
            inputs.add(id(array))
            outputs.append(array[()] if array.ndim == 0 else array)
        return outputs


def _misfit(*_arrays: Any) -> Any:
    return NotImplemented


def _check_sizes(graph: Graph) -> None:
    for node in graph.nodes:
        for value in node.outputs:
            if _nbytes(value) > _MOST_BYTES:
                at = f" at {node.line}" if node.line else ""
                raise ShapeError(
                    f"{node.op.name}: gives {value.aval}{at}, expected an array that fits into "
                    "memory"
                )


def _nbytes(value: Operand) -> int:
    """How many bytes an array takes."""
    return math.prod(value.shape) * value.dtype.itemsize


def evaluated(node: Node, values: Mapping[Value, Any]) -> dict[Value, Any]:
    """The results of a node by the eager kernel of its op, as compiled code reads them.

    Raises:
        GradtapeError: They are not of the shapes and dtypes that the graph says.
    """
    operands = [_eager_operand(operand, values) for operand in node.operands]
    try:
        with np.errstate(all="ignore"):
            if is_of_integers(node.op, node.operands):
                result: Any = computed_exactly(node.op, operands)
            else:
                result = evaluate(node.op, operands, node.params)
    except GradtapeError as error:
        at = f" (at {node.line})" if node.line else ""
        raise type(error)(f"{error}{at}") from error
    found: dict[Value, Any] = {}
    for value, made in zip(
        node.outputs, result if node.op.outputs != 1 else (result,), strict=True
    ):
        array = np.asarray(made)
        if array.shape != value.shape or array.dtype != value.dtype:
            raise GradtapeError(
                f"{node.op.name}: its eager kernel gives {aval_of(array)}; its shape rule says "
                f"{value.aval}. This is a bug of the op, not of the compiled function"
            )
        found[value] = _prepared(array, value)
    return found


def _eager_operand(operand: Operand, values: Mapping[Value, Any]) -> Any:
    if isinstance(operand, Literal):
        return operand.value
    # Python's numbers take the dtype of what they meet; an array of one would not.
    return values[operand].item() if operand.aval.weak else values[operand]


def _prepared(array: Any, value: Value) -> Any:
    """An argument as compiled code reads it: in order, aligned, of the dtype it was traced at."""
    given = np.asarray(array)
    if not (given.flags.c_contiguous and given.flags.aligned and given.dtype == value.dtype):
        room.require(_nbytes(value), "a copy of an argument")
    return np.require(given, value.dtype, ["C", "A"]).reshape(value.shape)
