"""A compiled graph: native parts and eager ops, run one after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.compiler.classify import obstacle
from gradtape.compiler.llvm.builder import Module
from gradtape.compiler.llvm.link import Library, Target, host
from gradtape.compiler.native import Native, with_own_outputs, write
from gradtape.compiler.partition import EagerPart, NativePart, partition
from gradtape.compiler.pipeline import optimized
from gradtape.compiler.runtime import blas, cache
from gradtape.core.call import evaluate
from gradtape.errors import GradtapeError
from gradtape.graph.ir import Graph, Literal, Operand, Value

_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class NativeFunction:
    """A native part, compiled and linked.

    Attributes:
        part: The subgraph.
        native: Its plan.
        text: Its IR.
        library: Its machine code.
    """

    def __init__(self, part: NativePart, target: Target | None = None) -> None:
        self.part = part
        module = Module()
        graph = with_own_outputs(part.graph)
        self.native = write(graph, module, target or host())
        self.text = str(module)
        code = cache.compiled(self.text, target)
        self.library = Library(code, blas.imports(self.text), ["run"])
        self._run = _RUN(self.library.address("run"))
        self._results = [(output.shape, output.dtype) for output in graph.outputs]

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for contiguous arrays of the right shapes and dtypes."""
        outputs = [np.empty(shape, dtype) for shape, dtype in self._results]
        status = self._run(_addresses(arrays), _addresses(outputs))
        if status:
            failed(status)
        return outputs


def failed(status: int) -> None:
    """Raise what the status of a native function means."""
    if status == 1:
        raise MemoryError("jit: no memory for intermediate results")
    raise GradtapeError(f"jit: the compiled function failed with status {status}")


def _addresses(arrays: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


class Program:
    """What runs a graph on arrays.

    Attributes:
        graph: What it computes, after the passes.
        steps: Its parts in order: native functions, and ops that run their eager kernel.
    """

    def __init__(self, graph: Graph, *, debug: bool = False) -> None:
        self.graph = optimized(graph, debug=debug)
        parts = partition(self.graph, obstacle)
        self.steps: list[NativeFunction | EagerPart] = [
            NativeFunction(part) if isinstance(part, NativePart) else part for part in parts
        ]

    @property
    def native(self) -> NativeFunction | None:
        """The native function that is all of it; None if there is anything besides."""
        first = self.steps[0] if len(self.steps) == 1 else None
        return first if isinstance(first, NativeFunction) else None

    def __call__(self, *arrays: Any) -> list[Any]:
        """The outputs for arrays (or numbers) that fit the inputs of the graph."""
        values: dict[Value, Any] = {
            value: _prepared(array, value)
            for value, array in zip(self.graph.inputs, arrays, strict=True)
        }

        def value_of(operand: Operand) -> Any:
            return operand.value if isinstance(operand, Literal) else values[operand]

        for step in self.steps:
            if isinstance(step, NativeFunction):
                out = step([values[value] for value in step.part.inputs])
                values.update(zip(step.part.outputs, out, strict=True))
            else:
                node = step.node
                with np.errstate(all="ignore"):
                    result = evaluate(node.op, list(map(value_of, node.operands)), node.params)
                results = result if node.op.outputs != 1 else (result,)
                for value, array in zip(node.outputs, results, strict=True):
                    values[value] = np.ascontiguousarray(array).reshape(value.shape)
        inputs = set(map(id, (values[value] for value in self.graph.inputs)))
        outputs: list[Any] = []
        for output in self.graph.outputs:
            array = np.asarray(value_of(output))
            # Results share memory with nothing: not with arguments, not with each other.
            if id(array) in inputs or array.base is not None or not array.flags.writeable:
                array = array.copy()
            inputs.add(id(array))
            outputs.append(array[()] if array.ndim == 0 else array)
        return outputs


def _prepared(array: Any, value: Value) -> Any:
    """An argument as compiled code reads it: in order, aligned, of the dtype it was traced at."""
    return np.require(np.asarray(array), value.dtype, ["C", "A"]).reshape(value.shape)
