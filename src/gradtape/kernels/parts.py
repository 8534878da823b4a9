"""By parts: reductions over axes other than the last, first of parts, then of their results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.call import call
from gradtape.core.copies import converted
from gradtape.core.kernels import Task
from gradtape.core.lowering import Reduction
from gradtape.core.op import Op
from gradtape.core.promotion import FLOAT32, is_half
from gradtape.kernels.tile_kernels import Bounded, TileCall, TileKernels, signature
from gradtape.kernels.tiles import Tiles
from gradtape.kernels.tiling import TileOperands, Tiling, rows_of_part
from gradtape.ops.reduce import accumulated, reduced_shape

# A reduction over all axes first reduces rows of this many elements.
_PART = 4096


class Parts:
    """All reductions by parts that have been seen before."""

    name = "parts"
    for_elements = True

    def __init__(self, kernels: TileKernels, tiles: Tiles) -> None:
        self._kernels = kernels
        self._tiles = tiles
        self._calls = Bounded()

    def run(self, task: Task) -> Any:
        op, operands, params, wanted = task
        if op.kind != "reduction" or wanted is not None:
            return NotImplemented
        x = operands[0]
        plain = isinstance(op.lower, Reduction) and op.lower.element in (None, accumulated)
        if not plain or type(x) is not np.ndarray or not x.flags.c_contiguous:
            return NotImplemented
        if is_half(x.dtype):
            # The results of parts are not rounded.
            made = self.run(Task(op, [converted(x, FLOAT32)], params))
            to = op.infer(aval_of(x), **params).dtype
            return made if made is NotImplemented else np.asarray(made).astype(to)[()]
        axes, ndim = params["axis"], x.ndim
        shape = reduced_shape(x.shape, axes, params["keepdims"])
        params = {**params, "axis": (1,), "keepdims": False}
        if len(axes) == ndim:
            return self._of_parts(op, x.reshape(-1), _PART, params, shape)
        if axes == tuple(range(len(axes))):
            flat = x.reshape(math.prod(x.shape[: len(axes)]), -1)
            return self._of_parts(op, flat, rows_of_part(*flat.shape), params, shape)
        if axes == tuple(range(ndim - len(axes), ndim)) and len(axes) > 1:
            flat = x.reshape(-1, math.prod(x.shape[-len(axes) :]))
            made = self._tiles.run(Task(op, [flat], params))
            return made if made is NotImplemented else made.reshape(shape)
        return NotImplemented

    def _of_parts(
        self, op: Op, x: Any, rows: int, params: dict[str, Any], shape: tuple[int, ...]
    ) -> Any:
        """Reduce over the first axis: `rows` rows at a time, then those results and the rest."""
        parts = len(x) // rows if rows else 0
        if parts < 2:
            return NotImplemented
        cut = x[: parts * rows].reshape(parts, rows, *x.shape[1:])
        key = (op, signature(cut), *params.items())
        tiled = self._calls.find(key, self._tiled, op, cut, params)
        if tiled is None:
            return NotImplemented
        (made,) = tiled([cut])
        rest = x[parts * rows :]
        if len(rest):
            made = np.concatenate([made, rest])
        return op.evaluate(np, made, **{**params, "axis": (0,)}).reshape(shape)[()]

    def _tiled(self, op: Op, parts: Any, params: dict[str, Any]) -> TileCall | None:
        if op.infer(aval_of(parts), **params).dtype != parts.dtype:
            return None  # the results of parts cannot be combined with the rest
        if parts.ndim == 2:
            tiling = Tiling.of(op, parts.shape, params)
        else:
            tiling = Tiling.by_parts(len(parts), params)
        if tiling is None:
            return None
        found = TileOperands.of([parts], tiling, parts.dtype)

        def function(tile: Any) -> Any:
            return call(op, [tile], params)

        return self._kernels.call(op, tuple(params.items()), function, found, tiling)
