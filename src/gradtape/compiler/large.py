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
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import config
from gradtape.compiler.large_rules import RuleKernels
from gradtape.compiler.launch import Bounded, Compiled, Launch, constant_of, in_line, signature
from gradtape.compiler.planes import Planes
from gradtape.compiler.runtime import blocks, copies, layouts, pool
from gradtape.compiler.tiling import TILE, Call, Tiling, rows_of_part
from gradtape.core.aval import aval_of
from gradtape.core.call import call
from gradtape.core.lowering import Reduction
from gradtape.core.op import Op
from gradtape.ops.cast import copy_op
from gradtape.ops.reduce import accumulated
from gradtape.ops.shape import broadcast_to

# A reduction of everything is one of rows of so many elements first.
_PART = 4096


class Kernels:
    """All kernels of this process, compiled when they are first needed.

    Attributes:
        compiled: Kernels of tiles.
        pull: Those of derivative rules.
        planes: Those for whole arrays.
        pooled: Calls a function of NumPy, whose arrays get kept memory: `(function, *args)`.
    """

    def __init__(self) -> None:
        self.compiled = Compiled()
        self.pull = RuleKernels(self.compiled)
        self.planes = Planes()
        self.pooled = blocks.pooled()
        self._launches = Bounded()
        self._copies = config.uses("copies")

    def forward(self, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result of an op, or `NotImplemented`."""
        constant = constant_of(op, operands)
        key = (op, constant, *map(signature, operands), *params.items())
        try:
            launch = self._launches[key]
        except KeyError:
            launch = self._launches[key] = self._forward(op, operands, params, constant)
        except TypeError:  # a parameter that is no key
            return NotImplemented
        if launch is not None:
            return launch(operands)[0]
        return self._reduced(op, operands, params) if op.kind == "reduction" else NotImplemented

    def _forward(
        self, op: Op, operands: Sequence[Any], params: dict[str, Any], constant: float | None
    ) -> Launch | None:
        tiling: Tiling | None = None
        if op.kind == "elementwise":
            tiling = Tiling.elementwise([np.shape(x) for x in operands], params)
        elif in_line(operands, operands[0].ndim):
            tiling = Tiling.of(op, operands[0].shape, params)
        if tiling is None:
            return None
        if op.kind == "elementwise":
            operands = [tiling.lined_up(x) for x in operands]
        dtype = op.infer(*map(aval_of, operands), **tiling.params).dtype
        found = Call.of(operands, tiling, dtype)
        if found is None:
            return None

        def function(*tiles: Any) -> Any:
            given = list(tiles) if constant is None else [*tiles[:-1], constant]
            return call(op, given, tiling.params)

        key = (constant, *tiling.params.items())
        return self.compiled.launch(op, key, function, found, tiling)

    # ---- reductions over other axes than the last one -------------------------------------------

    def _reduced(self, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """A reduction over first or last axes, or all: of parts, then of what these give."""
        x = operands[0]
        plain = isinstance(op.lower, Reduction) and op.lower.element in (None, accumulated)
        if not plain or type(x) is not np.ndarray or not x.flags.c_contiguous:
            return NotImplemented
        axes, ndim = params["axis"], x.ndim
        shape = _left(x.shape, axes, params["keepdims"])
        params = {**params, "axis": (1,), "keepdims": False}
        if len(axes) == ndim:
            return self._of_parts(op, x.reshape(-1), _PART, params, shape)
        if axes == tuple(range(len(axes))):
            flat = x.reshape(math.prod(x.shape[: len(axes)]), -1)
            return self._of_parts(op, flat, rows_of_part(*flat.shape), params, shape)
        if axes == tuple(range(ndim - len(axes), ndim)) and len(axes) > 1:
            flat = x.reshape(-1, math.prod(x.shape[-len(axes) :]))
            made = self.forward(op, [flat], params)
            return made if made is NotImplemented else made.reshape(shape)
        return NotImplemented

    def _of_parts(
        self, op: Op, x: Any, rows: int, params: dict[str, Any], shape: tuple[int, ...]
    ) -> Any:
        """A reduction over the first axis: of so many rows each, then of that and the rest."""
        parts = len(x) // rows if rows else 0
        if parts < 2:
            return NotImplemented
        cut = x[: parts * rows].reshape(parts, rows, *x.shape[1:])
        key = (op, "parts", signature(cut), *params.items())
        try:
            launch = self._launches[key]
        except KeyError:
            launch = self._launches[key] = self._parts_reduced(op, cut, params)
        if launch is None:
            return NotImplemented
        (made,) = launch([cut])
        rest = x[parts * rows :]
        if len(rest):
            made = np.concatenate([made, rest])
        return op.evaluate(np, made, **{**params, "axis": (0,)}).reshape(shape)[()]

    def _parts_reduced(self, op: Op, parts: Any, params: dict[str, Any]) -> Launch | None:
        if op.infer(aval_of(parts), **params).dtype != parts.dtype:
            return None  # what parts give cannot stand beside the rest
        if parts.ndim == 2:
            tiling = Tiling.of(op, parts.shape, params)
        else:
            tiling = Tiling.by_parts(len(parts), params)
        found = None if tiling is None else Call.of([parts], tiling, parts.dtype)
        if tiling is None or found is None:
            return None

        def function(tile: Any) -> Any:
            return call(op, [tile], params)

        return self.compiled.launch(op, tuple(params.items()), function, found, tiling)

    def threads(self) -> int:
        """How many threads are to be used."""
        return pool.get_num_threads()

    # ---- copies ---------------------------------------------------------------------------------

    def copy_into(self, target: Any, source: Any) -> None:
        """Copy an array into another one; both are contiguous and of the same size and dtype."""
        if self._copies:
            copies.copy(target, source)
        else:
            np.copyto(target, source)

    def copied_into(self, target: Any, source: Any) -> bool:
        """Copy an array into one of another layout, of the same shape and dtype; False if not."""
        return self._copies and layouts.copied_into(target, source)

    def copied(self, array: Any) -> Any:
        """A copy of an array with its elements in order, or `NotImplemented`.

        What is repeated in it (one number, a row, a column: the gradients of sums) is read once.
        """
        if not self._copies:
            return NotImplemented
        key = ("copied", signature(array))
        try:
            launch = self._launches[key]
        except KeyError:
            launch = self._launches[key] = self._copied(array)
        return NotImplemented if launch is None else launch([array])[0]

    def _copied(self, array: Any) -> Launch | None:
        source, tiling = _repeated(array)
        found = Call.of([source], tiling, array.dtype)
        if found is None:
            return None
        tail = array.shape[len(tiling.batch) :]

        def function(tile: Any) -> Any:
            return call(copy_op, [broadcast_to(tile, (tiling.rows, *tail))], {})

        return self.compiled.launch(copy_op, (tail,), function, found, tiling)


def _left(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """What is left of a shape that is reduced over some axes."""
    if keepdims:
        return tuple(1 if i in axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in axes)


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
