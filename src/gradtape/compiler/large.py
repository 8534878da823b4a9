"""Native kernels for eager ops on large arrays.

An op, or its derivative rule, is compiled for a *tile* of the arrays, and run over all tiles on all
threads (`runtime.tiles`); what a rule does in several passes over memory is done in one. A tile is
some elements of arrays that an elementwise op treats alike, whatever their size, or some rows of
arrays along whose last axis an op works, such as softmax: then it is compiled for that length.

Only sizes, dtypes and parameters decide whether that is done, so that the same call gives the same
bits each time. What has no native form is computed by NumPy as always.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.program import Program
from gradtape.compiler.runtime.tiles import run_tiles
from gradtape.compiler.tiling import TILE, Call, Tiling
from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import call
from gradtape.core.lowering import Pointwise, Reduction
from gradtape.core.op import Op, registry
from gradtape.core.promotion import NATIVE
from gradtape.errors import GradtapeError
from gradtape.graph.ir import Graph, Value
from gradtape.graph.trace import trace
from gradtape.ops.reduce import accumulated
from gradtape.ops.shape import broadcast_to

# A reduction of everything is one of rows of so many elements first.
_PART = 4096
# So many kernels of one op are worth it; a parameter or a length of rows that is another one at
# each call is not.
_MOST_VARIANTS = 64


class _Kernel(NamedTuple):
    """A function of tiles.

    Attributes:
        program: Keeps the machine code; None if nothing is computed.
        run: Its address.
        reads: The positions of the arguments it reads.
        results: Per result dtype and axes of a row, an argument that it is, or None for nothing.
    """

    program: Program | None
    run: int
    reads: tuple[int, ...]
    results: tuple[tuple[Any, tuple[int, ...]] | int | None, ...]

    def __call__(self, args: Sequence[Any], tiling: Tiling) -> list[Any]:
        """The results for arrays, and numbers as arrays without axes."""
        made: list[Any] = []
        out: list[Any] = []
        for how in self.results:
            if isinstance(how, tuple):
                made.append(np.empty((*tiling.batch, *how[1]), how[0]))
                out.append(made[-1])
            else:
                out.append(None if how is None else args[how])
        if made:
            arrays = [args[i] for i in self.reads] + made
            tiled = [0 if tiling.tail(array.shape) is None else tiling.rows for array in arrays]
            run_tiles(self.run, tiling.length, arrays, tiled, len(made))
        return out


class Kernels:
    """All kernels of this process, compiled when they are first needed."""

    def __init__(self) -> None:
        self._kernels: dict[Hashable, _Kernel | None] = {}
        self._variants: dict[Op, int] = {}
        self._lock = threading.Lock()

    def forward(self, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result of an op, or `NotImplemented`."""
        if op.kind == "elementwise":
            tiling = Tiling.elementwise([np.shape(x) for x in operands], params)
            if tiling is None:
                return NotImplemented
            return self._forward(op, [tiling.lined_up(x) for x in operands], tiling)
        shape = operands[0].shape
        if not _aligned(operands, len(shape)):
            return NotImplemented
        tiling = Tiling.of(op, shape, params)
        if tiling is None:
            return self._reduced(op, operands, params)
        return self._forward(op, operands, tiling)

    def _forward(self, op: Op, operands: Sequence[Any], tiling: Tiling) -> Any:
        dtype = op.infer(*map(aval_of, operands), **tiling.params).dtype
        found = Call.of(operands, tiling, dtype)
        if found is None:
            return NotImplemented
        fixed = _constant(op, operands)

        def function(*tiles: Any) -> Any:
            given = list(tiles) if fixed is None else [*tiles[:-1], fixed]
            return call(op, given, tiling.params)

        key = (op, found.kinds, fixed, (*tiling.params.items(),))
        kernel = self._find(key, op, function, found, tiling)
        return NotImplemented if kernel is None else kernel(found.args, tiling)[0]

    def _reduced(self, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """A reduction of a whole array: of its parts, then of what these give and what is left."""
        x = operands[0]
        plain = isinstance(op.lower, Reduction) and op.lower.element in (None, accumulated)
        if not plain or type(x) is not np.ndarray or not x.flags.c_contiguous:
            return NotImplemented
        if params["axis"] != tuple(range(x.ndim)) or x.size < 2 * _PART:
            return NotImplemented
        parts = x.reshape(-1)[: x.size // _PART * _PART].reshape(-1, _PART)
        by_part = {**params, "axis": (1,), "keepdims": False}
        tiling = Tiling.of(op, parts.shape, by_part)
        assert tiling is not None
        made = self._forward(op, [parts], tiling)
        if made is NotImplemented or made.dtype != x.dtype:
            return NotImplemented
        rest = np.concatenate([made, x.reshape(-1)[parts.size :]])
        out = op.evaluate(np, rest, **{**params, "axis": (0,), "keepdims": False})
        return out.reshape((1,) * x.ndim) if params["keepdims"] else out

    def pull(
        self,
        op: Op,
        wanted: tuple[bool, ...],
        ct: Any,
        out: Any,
        inputs: Sequence[Any],
        params: dict[str, Any],
    ) -> Any:
        """The cotangents of the inputs that are wanted, None for others; or `NotImplemented`."""
        tiling = _tiling_of_rule(op, ct, inputs, params)
        if tiling is None:
            return NotImplemented
        given, inputs = inputs, [tiling.lined_up(x) for x in inputs]
        values = [ct, out, *inputs]
        there = [value is not None and not isinstance(value, Aval) for value in values]
        read = [x for x, own in zip(values, there, strict=True) if own]
        found = Call.of(read, tiling, ct.dtype)
        unread = _unread(values, tiling)
        if found is None or unread is None:
            return NotImplemented
        # What all rows share gets a sum over all of them, which is left to NumPy.
        by_rows = tuple(
            want and (x is None or tiling.tail(getattr(x, "shape", ())) is not None)
            for want, x in zip(wanted, inputs, strict=True)
        )
        if not any(by_rows):
            return NotImplemented

        fixed = _constant(op, inputs)
        # Flat rules are those for arrays of one shape and dtype.
        alike = tiling.whole and all(getattr(x, "dtype", ct.dtype) == ct.dtype for x in inputs)
        rules = op.flat_vjps if alike else op.vjps

        def function(*tiles: Any) -> Any:
            rest = iter(tiles)
            ct, out, *xs = (
                next(rest) if own else aval for own, aval in zip(there, unread, strict=True)
            )
            if fixed is not None:
                xs[-1] = fixed
            return tuple(
                rule(ct, out, *xs, **tiling.params) if want else None
                for rule, want in zip(rules, by_rows, strict=True)
            )

        key = (op, by_rows, *there, found.kinds, fixed, *_shapes(unread), *tiling.params.items())
        kernel = self._find(key, op, function, found, tiling)
        if kernel is None:
            return NotImplemented
        results = kernel(found.args, tiling)
        for i, (want, x) in enumerate(zip(wanted, given, strict=True)):
            if results[i] is not None and x is not None and results[i].shape != x.shape:
                results[i] = results[i].reshape(x.shape)
            if want and not by_rows[i]:
                results[i] = op.vjps[i](ct, out, *given, **params)
        return results

    def copied(self, array: Any) -> Any:
        """A copy of an array with its elements in order, or `NotImplemented`.

        What is repeated in it (one number, a row, a column: the gradients of sums) is read once.
        """
        source, tiling = _repeated(array)
        found = Call.of([source], tiling, array.dtype)
        if found is None:
            return NotImplemented
        copy = registry["copy"]
        tail = array.shape[len(tiling.batch) :]

        def function(x: Any) -> Any:
            return call(copy, [broadcast_to(x, (tiling.rows, *tail))], {})

        kernel = self._find((copy, found.kinds, tail), copy, function, found, tiling)
        return NotImplemented if kernel is None else kernel(found.args, tiling)[0]

    def _find(
        self,
        key: Hashable,
        op: Op,
        function: Callable[..., Any],
        found: Call,
        tiling: Tiling,
    ) -> _Kernel | None:
        """The kernel of a key; None if there is none."""
        key = key, tiling.rows
        try:
            return self._kernels[key]
        except KeyError:
            pass
        except TypeError:  # a parameter that is no key
            return None
        with self._lock:
            if key not in self._kernels:
                count = self._variants[op] = self._variants.get(op, 0) + 1
                if count > _MOST_VARIANTS:
                    return None

                def whole(*tiles: Any) -> Any:
                    return function(*found.spread(tiles, tiling))

                self._kernels[key] = _compiled(whole, found.avals(tiling), tiling, op.name)
            return self._kernels[key]


def _aligned(operands: Sequence[Any], ndim: int) -> bool:
    """Whether the operands of an op along an axis have the same axes, so that rows are rows."""
    return all(len(getattr(x, "shape", ())) == ndim for x in operands)


def _tiling_of_rule(
    op: Op, ct: Any, inputs: Sequence[Any], params: dict[str, Any]
) -> Tiling | None:
    """How to cut what a rule reads; None to leave it whole."""
    if op.kind == "elementwise":
        shapes = [getattr(x, "shape", ()) for x in inputs if x is not None]
        return Tiling.elementwise([ct.shape, *shapes], params)
    shape = inputs[0].shape
    return Tiling.of(op, shape, params) if _aligned(inputs, len(shape)) else None


def _unread(values: Sequence[Any], tiling: Tiling) -> list[Aval | None] | None:
    """Tiles of what was not kept and is not read, but for its shape; None if there are none."""
    unread: list[Aval | None] = [None] * len(values)
    for i, x in enumerate(values):
        if isinstance(x, Aval):
            if x.dtype not in NATIVE:
                return None
            if (tail := tiling.tail(x.shape)) is not None:
                unread[i] = Aval((tiling.rows, *tail), x.dtype)
            elif (tail := tiling.shared(x.shape)) is not None:
                unread[i] = Aval((1, *tail), x.dtype)
            else:
                return None
    return unread


def _repeated(array: Any) -> tuple[Any, Tiling]:
    """What is in an array without its repetitions, and how to cut the array."""
    if not any(array.strides):
        return array[(0,) * array.ndim], Tiling(array.shape, TILE, {}, True)
    tiling = Tiling.elementwise([array.shape, array.shape[-1:]], {})
    if tiling is not None and not tiling.whole:
        if not any(array.strides[:-1]):
            return array[(slice(1),) * (array.ndim - 1)], tiling
        if not array.strides[-1]:
            return array[..., :1], tiling
    return array, Tiling(array.shape, TILE, {}, True)


def _constant(op: Op, operands: Sequence[Any]) -> float | None:
    """A number that stands in the code and not among the arguments, such as the exponent 2."""
    last = operands[-1]
    if isinstance(op.lower, Pointwise) and type(last) in (int, float) and last in op.lower.numbers:
        return last  # type: ignore[no-any-return]
    return None


def _shapes(avals: Sequence[Aval | None]) -> tuple[Any, ...]:
    return tuple(aval and aval.shape for aval in avals)


def _compiled(
    function: Callable[..., Any], avals: Sequence[Aval], tiling: Tiling, name: str
) -> _Kernel | None:
    """A kernel of a function of tiles; None if it has no native form."""
    present: list[bool] = []

    def results(*tiles: Any) -> Any:
        out = function(*tiles)
        out = out if isinstance(out, tuple) else (out,)
        present[:] = [x is not None for x in out]
        return tuple(x for x in out if x is not None)

    try:
        graph = trace(results, avals, name).graph
    except GradtapeError:
        return None  # a rule that looks at values
    if len(graph.inputs) != len(avals):
        return None  # it reads arrays of its own
    outputs = iter(graph.outputs)
    slots = [next(outputs) if there else None for there in present]
    made = [x for x in slots if x is not None and x not in graph.inputs]
    if not all(isinstance(x, Value) and x.shape[:1] == (tiling.rows,) for x in made):
        return None
    program: Program | None = None
    run, reads = 0, tuple[int, ...]()
    if made:
        read = {operand for node in graph.nodes for operand in node.operands}
        reads = tuple(i for i, value in enumerate(graph.inputs) if value in read)
        inputs = [graph.inputs[i] for i in reads]
        program = Program(Graph(name, inputs, graph.nodes, made))
        if program.native is None:
            return None
        native = program.native
        run = native.library.address(native.native.name)
    return _Kernel(
        program,
        run,
        reads,
        tuple(
            None
            if x is None
            else graph.inputs.index(x)
            if x in graph.inputs
            else (x.dtype, x.shape[1:])
            for x in slots
        ),
    )
