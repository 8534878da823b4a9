"""Copies of large arrays, on all threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape import config
from gradtape.compiler.cpu.runtime import blocks, contiguous_copies, strided_copies
from gradtape.core.call import call
from gradtape.kernels.tile_kernels import Bounded, TileCall, TileKernels, signature
from gradtape.kernels.tiling import TILE, TileOperands, Tiling
from gradtape.ops.cast import astype_op, copy_op
from gradtape.ops.shape import broadcast_to


class Copies:
    """Copies arrays; how to do so is worked out once for each layout."""

    def __init__(self, kernels: TileKernels) -> None:
        self._kernels = kernels
        self._calls = Bounded()
        self._native = config.uses("copies")

    def into(self, target: Any, source: Any) -> bool:
        """Copy an array into one of the same shape and dtype; False to leave it to NumPy."""
        if not self._native:
            return False
        if target.flags.c_contiguous and source.flags.c_contiguous:
            contiguous_copies.copy(target, source)
            return True
        return strided_copies.copied_into(target, source)

    def converted(self, array: Any, dtype: np.dtype[Any]) -> Any:
        """A large array in another dtype, in the same memory order; None to leave it to NumPy."""
        if not (self._native and config.uses("halves")):
            return None
        axes = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        ordered = array.transpose(axes)
        if not ordered.flags.c_contiguous:
            ordered = np.ascontiguousarray(ordered)
        flat = ordered.reshape(-1)
        tiled = self._calls.find((signature(flat), dtype), self._conversion, flat, dtype)
        if tiled is None:
            return None
        return tiled([flat])[0].reshape(ordered.shape).transpose(np.argsort(axes))

    def _conversion(self, flat: Any, dtype: np.dtype[Any]) -> TileCall | None:
        tiling = Tiling(flat.shape, TILE, {}, True)
        found = TileOperands.of([flat], tiling, dtype)

        def function(tile: Any) -> Any:
            return call(astype_op, [tile], {"dtype": dtype})

        return self._kernels.call(astype_op, (dtype,), function, found, tiling)

    def in_order(self, array: Any) -> Any:
        """A C-contiguous copy of an array.

        Repeated elements (one number, a row, a column: the gradients of sums) are read once.
        """
        if self._native:
            tiled = self._calls.find(signature(array), self._tiled, array)
            if tiled is not None:
                return tiled([array])[0]
        out = blocks.pooled()(np.empty, array.shape, array.dtype)
        if not self.into(out, array):
            np.copyto(out, array)
        return out

    def _tiled(self, array: Any) -> TileCall | None:
        source, tiling = _repeated(array)
        found = TileOperands.of([source], tiling, array.dtype)
        tail = array.shape[len(tiling.batch) :]

        def function(tile: Any) -> Any:
            return call(copy_op, [broadcast_to(tile, (tiling.rows, *tail))], {})

        return self._kernels.call(copy_op, (tail,), function, found, tiling)


def _repeated(array: Any) -> tuple[Any, Tiling]:
    """The elements of an array without repetitions, and how to cut the array."""
    if not any(array.strides):
        return array[(0,) * array.ndim], Tiling(array.shape, TILE, {}, True)
    tiling = Tiling.elementwise([array.shape, array.shape[-1:]], {})
    if tiling is not None and not tiling.whole:
        if not any(array.strides[:-1]):
            return array[(slice(1),) * (array.ndim - 1)], tiling
        if not array.strides[-1]:
            return array[..., :1], tiling
    return array, Tiling(array.shape, TILE, {}, True)
