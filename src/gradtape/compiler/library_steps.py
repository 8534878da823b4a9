"""Steps of a plan for ops on matrices that a library computes: copies, calls, copies."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.compiler.build import collapsed
from gradtape.compiler.element_expressions import Puller, load, loaded, place
from gradtape.compiler.kernel import (
    Accumulate,
    Accumulator,
    Axis,
    Buffer,
    Failure,
    Kernel,
    Stage,
    Store,
)
from gradtape.compiler.library_call import LibraryCall, MatrixArgument, RoutineCall
from gradtape.core.aval import Aval
from gradtape.core.lowering import Matrices
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar, convert, scalar, watch
from gradtape.errors import GradtapeError
from gradtape.graph.ir import Node, Operand, Value

Index = tuple[Scalar, ...]


def library_steps(
    node: Node, buffers: dict[Value, Buffer], name: str
) -> list[Kernel | LibraryCall]:
    """The steps of a node that is lowered by `Matrices`, with matrices that are not small.

    Args:
        node: The node.
        buffers: The buffers of the values that are in memory; results that nothing reads have none.
        name: The name of the first step; the names of others begin with it.
    """
    assert isinstance(node.op.lower, Matrices)
    assert node.op.lower.library is not None
    site = _Site(node, buffers, name)
    operands = [_OperandReader(site, operand) for operand in node.operands]
    node.op.lower.library(site, *operands, **node.params)
    return site.finished()


class _OperandReader:
    """An operand; called with an index, it reads an element of the matrix at hand."""

    def __init__(self, site: _Site, operand: Operand) -> None:
        self._site = site
        self._operand = operand
        self.aval = operand.aval

    def __call__(self, *index: Any, inside: Scalar | None = None) -> Scalar:
        return self._site.puller.element(self._operand, self._site.at(index), inside)


class _Matrices:
    """Matrices in memory, one for each of a stack."""

    def __init__(self, site: _Site, buffer: Buffer, shape: tuple[int, ...]) -> None:
        self._site = site
        self.buffer = buffer
        self.shape = shape
        self.dtype = buffer.dtype

    def __call__(self, *index: Any) -> Scalar:
        return load(self.buffer, self.buffer.shape, self._site.at(index), None, weak=False)


class _Site:
    """Collects the steps of one node."""

    def __init__(self, node: Node, buffers: dict[Value, Buffer], name: str) -> None:
        assert isinstance(node.op.lower, Matrices)
        self._node = node
        self._buffers = buffers
        self._name = name
        self._stack: tuple[int, ...] = node.operands[0].shape[: -node.op.lower.axes]
        self._steps: list[Kernel | LibraryCall] = []
        self._calls: list[RoutineCall] = []
        self._made = 0
        self._index: Index = ()
        self._integers = INT64
        self.puller = Puller(functools.partial(loaded, buffers))
        self.avals: Sequence[Aval] = [operand.aval for operand in node.operands]
        self.results: Sequence[Aval] = [value.aval for value in node.outputs]
        self.dtype = node.outputs[0].dtype

    def at(self, index: Sequence[Any]) -> Index:
        """The index of an element of the matrix at hand."""
        return (*self._index, *(scalar(i) for i in index))

    # ---- memory ----------------------------------------------------------------------------

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Matrices:
        return _Matrices(self, self._buffer((*self._stack, *shape), dtype), shape)

    def work(self, size: int, dtype: np.dtype[Any]) -> _Matrices:
        return _Matrices(self, self._buffer((size,), dtype), ())

    def _buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        self._made += 1
        return Buffer(f"{self._name}_m{self._made}", shape, dtype, "temporary")

    def fill(
        self, shape: tuple[int, ...], element: Callable[..., Scalar], dtype: np.dtype[Any]
    ) -> _Matrices:
        made = self.empty(shape, dtype)
        self._store(made.buffer, shape, element)
        return made

    def result(self, number: int, element: Callable[..., Scalar]) -> None:
        buffer = self._buffers.get(self._node.outputs[number])
        if buffer is not None and buffer.size:
            self._store(buffer, buffer.shape[len(self._stack) :], element)

    def _store(
        self, buffer: Buffer, shape: tuple[int, ...], element: Callable[..., Scalar]
    ) -> None:
        axes = [Axis(f"i{n}", size) for n, size in enumerate((*self._stack, *shape))]
        index = tuple(axis.index for axis in axes)
        self._index = index[: len(self._stack)]
        value = convert(element(*index[len(self._stack) :]), buffer.dtype)
        self._loop(axes, Stage((Store(place(buffer, buffer.shape, index), value),), ()))

    def combined(
        self,
        count: int,
        terms: Sequence[tuple[str, Callable[[Scalar], Scalar]]],
        results: Callable[..., Sequence[Scalar]],
        dtype: np.dtype[Any],
    ) -> None:
        axes = [Axis(f"i{n}", size) for n, size in enumerate(self._stack)]
        along = Axis("k", count, reduced=True)
        self._index = tuple(axis.index for axis in axes)
        targets = [Accumulator(f"acc{n}", how, dtype) for n, (how, _) in enumerate(terms)]
        inner = [
            Accumulate(target, convert(term(along.index), dtype))
            for target, (_, term) in zip(targets, terms, strict=True)
        ]
        made = results(*(target.value for target in targets))
        outer = [
            Store(place(buffer, buffer.shape, self._index), convert(value, buffer.dtype))
            for output, value in zip(self._node.outputs, made, strict=True)
            if (buffer := self._buffers.get(output)) is not None
        ]
        self._loop([*axes, along], Stage(tuple(inner), tuple(outer)))

    # ---- steps -----------------------------------------------------------------------------

    def call(
        self,
        routine: Any,
        *args: Any,
        flops: int,
        failure: tuple[type[GradtapeError], str] | None = None,
        settles: bool = False,
    ) -> None:
        given = tuple(self._argument(arg) if isinstance(arg, _Matrices) else arg for arg in args)
        wrong = None
        if failure is not None:
            error, message = failure
            wrong = Failure(self._node, message, error)
        call = RoutineCall(routine.symbol, routine.address, given, flops, wrong, settles)
        self._calls.append(call)

    def watch(self, value: Scalar) -> Scalar:
        return watch(value)

    def _argument(self, matrices: _Matrices) -> MatrixArgument:
        if matrices.buffer.dtype.kind == "i":
            self._integers = matrices.buffer.dtype
        return MatrixArgument(matrices.buffer, math.prod(matrices.shape) if matrices.shape else 0)

    def _loop(self, axes: Sequence[Axis], stage: Stage) -> None:
        self._flush()
        kernel = Kernel(self._next_name(), axes, [stage], [self._node.op.name])
        self._steps.append(collapsed(kernel))

    def _flush(self) -> None:
        """Make a step of the calls so far."""
        if self._calls:
            name, count = self._next_name(), math.prod(self._stack)
            ops = (self._node.op.name,)
            self._steps.append(LibraryCall(name, tuple(self._calls), count, self._integers, ops))
            self._calls = []

    def _next_name(self) -> str:
        return f"{self._name}_{len(self._steps)}" if self._steps else self._name

    def finished(self) -> list[Kernel | LibraryCall]:
        """All steps, in order."""
        self._flush()
        return self._steps
