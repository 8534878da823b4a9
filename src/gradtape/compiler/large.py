"""Native kernels for eager ops on large arrays.

An op, or its derivative rule, is compiled for a *tile* of the arrays, and run over all tiles on all
threads (`runtime.tiles`); what a rule does in several passes over memory is done in one. A tile is
some elements of arrays that an elementwise op treats alike, whatever their size, or some rows of
arrays along whose last axis an op works, such as softmax: then it is compiled for that length.

Only sizes, dtypes and parameters decide whether that is done, so that the same call gives the same
bits each time. What has no native form is computed by NumPy as always.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.program import Program
from gradtape.compiler.runtime.tiles import MOST_ARRAYS, run_tiles
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.large import works_along_axis
from gradtape.core.lowering import Reduction
from gradtape.core.op import Op, registry
from gradtape.core.promotion import NATIVE
from gradtape.errors import GradtapeError
from gradtape.graph.ir import Graph, Value
from gradtape.graph.trace import trace
from gradtape.ops.reduce import accumulated
from gradtape.ops.shape import broadcast_to

# Elements of a tile: enough to make up for the call, few enough to stay in the first-level cache.
_TILE = 1024
# Rows of more elements are left to NumPy.
_LONGEST_ROW = 1 << 16
# A reduction of everything is one of rows of so many elements first.
_PART = 4096
# So many kernels of one op are worth it; a parameter or a length of rows that is another one at
# each call is not.
_MOST_VARIANTS = 64
# Exponents for which there is code of their own; others are read when the kernel runs.
_EXPONENTS = (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4)


class _Tiling(NamedTuple):
    """How arrays are cut.

    Attributes:
        batch: The leading axes of the arrays, along which they are cut.
        rows: How many steps of these, taken together, are in a tile.
        params: The parameters of the op for a tile.
        whole: Whether arrays have no other axes.
    """

    batch: tuple[int, ...]
    rows: int
    params: dict[str, Any]
    whole: bool

    @classmethod
    def of(cls, op: Op, shape: tuple[int, ...], params: dict[str, Any]) -> _Tiling | None:
        """How to cut the arrays of a call of an op on one of a shape; None to leave it whole."""
        if op.kind == "elementwise":
            return cls(shape, _TILE, params, True) if math.prod(shape) >= _TILE else None
        if not works_along_axis(op) or len(shape) < 2 or not 0 < shape[-1] <= _LONGEST_ROW:
            return None
        axis = params["axis"]
        if axis not in (len(shape) - 1, (len(shape) - 1,)):
            return None
        rows = max(1, min(_TILE // shape[-1], math.prod(shape[:-1])))
        along = (1,) if isinstance(axis, tuple) else 1
        return cls(shape[:-1], rows, params | {"axis": along}, False)

    @property
    def length(self) -> int:
        """How many rows there are."""
        return math.prod(self.batch)

    def tail(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The axes of an array that every row has; None if the array does not have these rows."""
        n = len(self.batch)
        if shape[:n] != self.batch or (self.whole and len(shape) > n):
            return None
        return shape[n:]

    def shared(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The axes of an array that is the same for all rows, as the weights of a layer are."""
        n = len(self.batch)
        return shape[n:] if len(shape) >= n and set(shape[:n]) <= {1} else None


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

    def __call__(self, args: Sequence[Any], tiling: _Tiling) -> list[Any]:
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
        shape = next((x.shape for x in operands if type(x) is np.ndarray and x.ndim), None)
        if shape is None or not _aligned(op, operands, len(shape)):
            return NotImplemented
        tiling = _Tiling.of(op, shape, params)
        if tiling is None:
            return self._reduced(op, operands, params)
        return self._forward(op, operands, tiling)

    def _forward(self, op: Op, operands: Sequence[Any], tiling: _Tiling) -> Any:
        found = _Call.of(operands, tiling)
        if found is None:
            return NotImplemented
        fixed = _exponent(op, operands)

        def function(*tiles: Any) -> Any:
            given = list(tiles) if fixed is None else [tiles[0], fixed]
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
        tiling = _Tiling.of(op, parts.shape, by_part)
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
        shape = ct.shape if op.kind == "elementwise" else inputs[0].shape
        tiling = _Tiling.of(op, shape, params)
        if tiling is None or not _aligned(op, inputs, len(shape)):
            return NotImplemented
        values = [ct, out, *inputs]
        there = [value is not None and not isinstance(value, Aval) for value in values]
        found = _Call.of([x for x, own in zip(values, there, strict=True) if own], tiling)
        if found is None:
            return NotImplemented
        # What was not kept is not read, but for its shape.
        unread: list[Aval | None] = [None] * len(values)
        for i, x in enumerate(values):
            if isinstance(x, Aval):
                if (tail := tiling.tail(x.shape)) is not None:
                    unread[i] = Aval((tiling.rows, *tail), x.dtype)
                elif (tail := tiling.shared(x.shape)) is not None:
                    unread[i] = Aval((1, *tail), x.dtype)
                else:
                    return NotImplemented  # it was broadcast
        # What all rows share gets a sum over all of them, which is left to NumPy.
        by_rows = tuple(
            want and tiling.tail(getattr(x, "shape", shape)) is not None
            for want, x in zip(wanted, inputs, strict=True)
        )
        if not any(by_rows):
            return NotImplemented

        fixed = _exponent(op, inputs)

        def function(*tiles: Any) -> Any:
            given = iter(tiles)
            ct, out, *xs = (
                next(given) if own else aval for own, aval in zip(there, unread, strict=True)
            )
            if fixed is not None:
                xs[1] = fixed
            return tuple(
                rule(ct, out, *xs, **tiling.params) if want else None
                for rule, want in zip(op.flat_vjps, by_rows, strict=True)
            )

        key = (op, by_rows, *there, found.kinds, fixed, *_shapes(unread), *tiling.params.items())
        kernel = self._find(key, op, function, found, tiling)
        if kernel is None:
            return NotImplemented
        results = kernel(found.args, tiling)
        for i, want in enumerate(wanted):
            if want and not by_rows[i]:
                results[i] = op.vjps[i](ct, out, *inputs, **params)
        return results

    def copied(self, array: Any) -> Any:
        """A copy of an array of any size, or `NotImplemented`; one number in all places is fine."""
        spread = not any(array.strides)
        source = array[(0,) * array.ndim] if spread else array
        tiling = _Tiling(array.shape, _TILE, {}, True)
        found = _Call.of([np.asarray(source)], tiling, numbers=spread)
        if found is None:
            return NotImplemented
        copy = registry["copy"]

        def function(x: Any) -> Any:
            return call(copy, [broadcast_to(x, (_TILE,))], {})

        kernel = self._find((copy, found.kinds), copy, function, found, tiling)
        return NotImplemented if kernel is None else kernel(found.args, tiling)[0]

    def _find(
        self,
        key: Hashable,
        op: Op,
        function: Callable[..., Any],
        found: _Call,
        tiling: _Tiling,
    ) -> _Kernel | None:
        """The kernel of a key; None if there is none."""
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


def _aligned(op: Op, operands: Sequence[Any], ndim: int) -> bool:
    """Whether the operands of an op along an axis have the same axes, so that rows are rows."""
    return op.kind == "elementwise" or all(len(getattr(x, "shape", ())) == ndim for x in operands)


def _exponent(op: Op, operands: Sequence[Any]) -> float | None:
    """An exponent like 2, which stands in the code and not among the arguments."""
    if op.name == "power" and type(operands[1]) in (int, float) and operands[1] in _EXPONENTS:
        return operands[1]  # type: ignore[no-any-return]
    return None


def _shapes(avals: Sequence[Aval | None]) -> tuple[Any, ...]:
    return tuple(aval and aval.shape for aval in avals)


class _Call(NamedTuple):
    """Arrays with the same leading axes, arrays that all rows share, and numbers.

    Attributes:
        args: These; numbers as arrays without axes.
        kinds: Of each the dtype, the axes of a row, and what is cut: "rows", "shared" by all of
            them, one number "spread" over all elements, or a "number".
    """

    args: list[Any]
    kinds: tuple[tuple[np.dtype[Any], tuple[int, ...], str], ...]

    @classmethod
    def of(cls, operands: Sequence[Any], tiling: _Tiling, *, numbers: bool = False) -> _Call | None:
        """The operands of a call; None if kernels do not take them.

        With `numbers`, arrays without axes are taken for numbers.
        """
        if len(operands) > MOST_ARRAYS - 2:
            return None
        arrays = [x for x in operands if type(x) is np.ndarray]
        floating = next((x.dtype for x in arrays if x.dtype.kind == "f"), None)
        args: list[Any] = []
        kinds: list[Any] = []
        for operand in operands:
            tail: tuple[int, ...] | None = ()
            kind = "number"
            if type(operand) in (int, float) and floating is not None:
                operand = np.asarray(operand, floating)
            elif type(operand) is not np.ndarray:
                return None
            elif not (numbers and operand.ndim == 0):
                kind, tail = "rows", tiling.tail(operand.shape)
                if tail is None:
                    kind, tail = "shared", tiling.shared(operand.shape)
                if tail is None:
                    return None
                if operand.size > 1 and not any(operand.strides):
                    # What the gradient of a sum is: nothing but one number.
                    kind, operand = "spread", np.asarray(operand[(0,) * operand.ndim])
            flags = operand.flags
            if not (flags.c_contiguous and flags.aligned and operand.dtype in NATIVE):
                return None
            args.append(operand)
            kinds.append((operand.dtype, tail, kind))
        return cls(args, tuple(kinds))

    def avals(self, tiling: _Tiling) -> list[Aval]:
        """What a tile of each operand is."""
        lead = {"rows": (tiling.rows,), "shared": (1,)}
        return [
            Aval((*lead[kind], *tail) if kind in lead else (), dtype)
            for dtype, tail, kind in self.kinds
        ]

    def spread(self, tiles: Sequence[Any], tiling: _Tiling) -> list[Any]:
        """Tiles, with a number that stands for all elements in all of their places."""
        return [
            broadcast_to(tile, (tiling.rows, *tail)) if kind == "spread" else tile
            for tile, (_, tail, kind) in zip(tiles, self.kinds, strict=True)
        ]


def _compiled(
    function: Callable[..., Any], avals: Sequence[Aval], tiling: _Tiling, name: str
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
