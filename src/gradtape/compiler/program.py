"""A compiled graph: native parts and eager ops, run one after the other."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradtape.compiler import free_memory
from gradtape.compiler.control import obstacle
from gradtape.compiler.cpu.target import host_target
from gradtape.compiler.partition import EagerPart, NativePart, Part, partition
from gradtape.compiler.phases import with_own_copies
from gradtape.compiler.pipeline import optimized
from gradtape.compiler.plan import plan_of
from gradtape.compiler.target import Code, Target
from gradtape.core.aval import aval_of, nbytes
from gradtape.core.evaluate import evaluate
from gradtape.errors import GradtapeError, ShapeError
from gradtape.graph.ir import Graph, Literal, Node, Operand, Value, value_of
from gradtape.graph.passes.hopeful import UnsettledError
from gradtape.graph.python_numbers import computed_exactly, is_of_integers

# No machine has this much memory, and sums of sizes up to it are exact in native code.
_MOST_BYTES = 2**50


class NativeFunction:
    """A native part, compiled for a target.

    Attributes:
        part: The subgraph.
        code: Its code.
    """

    def __init__(self, part: NativePart, target: Target[Any]) -> None:
        self.part = part
        self._target = target
        self.code: Code = target.compile([plan_of(part.graph)])[0]

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for contiguous arrays of the right shapes and dtypes.

        Raises:
            UnsettledError: A watched value is not finite.
        """
        return self._target.call(self.code, arrays)


class Program:
    """Runs a graph on arrays.

    It leaves out the ops that settle 0·∞ in derivatives (`graph.passes.hopeful`), unless told not
    to or in debug mode. When something would have to be settled for the first time, another program
    is made that does so, and replaces this one from then on.

    Attributes:
        target: The target its native parts are compiled for.
        graph: The graph after the passes.
        steps: Its parts in order: native functions, and ops that run their eager kernel.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        target: Target[Any] | None = None,
        debug: bool = False,
        settling: bool = False,
    ) -> None:
        self._source = graph
        self.target = host_target() if target is None else target
        # The program that replaced it. Never itself: a cycle would keep its code loaded.
        self._instead: Program | None = None
        why = functools.partial(obstacle, settling=settling or debug)
        optimal = optimized(graph, debug=debug, settling=settling or debug)
        self.graph = with_own_copies(optimal, why)
        _check_sizes(self.graph)
        parts = partition(self.graph, why)
        self.steps: list[NativeFunction | EagerPart] = [
            NativeFunction(part, self.target) if isinstance(part, NativePart) else part
            for part in parts
        ]
        self._done = _last_reads(parts, self.graph)
        self._direct = None if self.native is None else self.native.code.direct
        # Eager ops that check for free memory first, and how much they need.
        needs = {
            p.node: sum(map(nbytes, p.node.outputs)) for p in parts if isinstance(p, EagerPart)
        }
        self._asking = {node: need for node, need in needs.items() if free_memory.is_noticed(need)}

    @property
    def native(self) -> NativeFunction | None:
        """The native function that is the whole program; None if there is anything else."""
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
                self._instead = Program(self._source, target=self.target, settling=True)
        return self._instead._run(arrays)

    @property
    def in_force(self) -> Program:
        """The program that runs the next call: this, or the one that replaced it."""
        return self if self._instead is None else self._instead

    def _run(self, arrays: Sequence[Any]) -> list[Any]:
        if self._direct is not None:
            out = self._direct(*map(np.asarray, arrays))
            if out is not NotImplemented:
                return list(out)
        values: dict[Value, Any] = {
            value: _prepared(array, value)
            for value, array in zip(self.graph.inputs, arrays, strict=True)
        }
        for step, done in zip(self.steps, self._done, strict=True):
            if isinstance(step, NativeFunction):
                out = self.run_native(step, [values[value] for value in step.part.inputs])
                made = zip(step.part.outputs, out, strict=True)
                values.update((v, array) for v, array in made if isinstance(v, Value))
                del out, made
            else:
                if step.node in self._asking:
                    free_memory.require(self._asking[step.node], f"a result of {step.node.op.name}")
                values.update(evaluated(step.node, values))
            for value in done:
                del values[value]
        inputs = set(map(id, (values[value] for value in self.graph.inputs)))
        outputs: list[Any] = []
        for output in self.graph.outputs:
            array = np.asarray(value_of(output, values))
            # Results share memory neither with arguments nor with each other.
            if id(array) in inputs or array.base is not None or not array.flags.writeable:
                array = array.copy()
            inputs.add(id(array))
            outputs.append(array[()] if array.ndim == 0 else array)
        return outputs


def _last_reads(parts: Sequence[Part], graph: Graph) -> list[list[Value]]:
    """For each part, the values that nothing needs once it has run."""
    needed = {*graph.inputs, *graph.outputs}
    done: list[list[Value]] = []
    for part in reversed(parts):
        if isinstance(part, NativePart):
            touched = dict.fromkeys((*part.inputs, *part.outputs))
        else:
            touched = dict.fromkeys((*part.node.operands, *part.node.outputs))
        last = [value for value in touched if isinstance(value, Value) and value not in needed]
        needed.update(last)
        done.append(last)
    return done[::-1]


def temporary_bytes(graph: Graph) -> int:
    """The bytes that a program of a graph takes for results on the way, found without making it.

    That is the arena of the native part with the largest one, and what goes from part to part.
    """
    why = functools.partial(obstacle, settling=False)
    graph = with_own_copies(optimized(graph, settling=False), why)
    parts = partition(graph, why)
    largest, passed = 0, set[Value]()
    for part in parts:
        if isinstance(part, NativePart):
            largest = max(largest, plan_of(part.graph).arena.size)
            passed.update(value for value in part.outputs if isinstance(value, Value))
        else:
            passed.update(() if part.node.op.aliases else part.node.outputs)
    return largest + sum(map(nbytes, passed.difference(graph.inputs, graph.outputs)))


def _check_sizes(graph: Graph) -> None:
    for node in graph.nodes:
        for value in node.outputs:
            if nbytes(value) > _MOST_BYTES:
                at = f" at {node.line}" if node.line else ""
                raise ShapeError(
                    f"{node.op.name}: got a result of {value.aval}{at}, expected one that fits "
                    "into memory"
                )


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
    for value, made in node.paired(result):
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
    # A Python number takes the dtype of the other operand; a 0-d array would not.
    return values[operand].item() if operand.aval.weak else values[operand]


def _prepared(array: Any, value: Value) -> Any:
    """An argument as compiled code reads it: contiguous, aligned, in the traced dtype."""
    given = np.asarray(array)
    if not (given.flags.c_contiguous and given.flags.aligned and given.dtype == value.dtype):
        free_memory.require(nbytes(value), "a copy of an argument")
    return np.require(given, value.dtype, ["C", "A"]).reshape(value.shape)
