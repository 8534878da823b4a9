"""Runs a native function, compiled for arrays of one size, over arrays of any larger one.

A *tile* is the part that the function takes at a time; arrays are cut into tiles, which threads
claim. Where the length is not a multiple of a tile's, the last one begins earlier and computes some
elements again: to the same values, since results and arguments never share memory.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.compiler.cpu.runtime.object_layout import native_layout
from gradtape.locks import once

MOST_ARRAYS = 16
_MOST_PARTS = 64
# The least tiles per part: claiming a part takes about as long as a small tile.
_LEAST_TILES = 4
# The context: these words, of which OBJECTS says whether arrays are objects; then two for each
# array, bytes per tile and the last offset; then one for each, the address of the data, or of the
# field of the array object that has it.
_HEAD = ("RUN", "ARGUMENTS", "RESULTS", "TILES", "EACH", "OBJECTS")

# Parts get the address of the context, and a word for the status of a tile that failed.
_FUNCTIONS = """
def gt_parallel(run: ptr, argument: ptr, chunks: i64): ...

def part(shared: ptr, number: i64):
    context = ptr[shared]
    arguments = i64[context, ARGUMENTS]
    arrays = arguments + i64[context, RESULTS]
    words = context + 8 * HEAD
    places = words + 16 * arrays
    data = stack(POINTERS)
    for k in range(arrays):
        ptr[data, k] = ptr[places, k]
        if i64[context, OBJECTS]:
            ptr[data, k] = ptr[ptr[places, k]]
    inputs = stack(POINTERS)
    outputs = inputs + 8 * arguments
    each = i64[context, EACH]
    first = number * each
    for tile in range(first, smin(first + each, i64[context, TILES])):
        for k in range(arrays):
            offset = smin(tile * i64[words, 2 * k], i64[words, 2 * k + 1])
            ptr[inputs, k] = ptr[data, k] + offset
        status = call(i32, ptr[context, RUN], inputs, outputs)
        if status != 0:
            monotonic.i32[shared + 8] = status
            return

def gt_tiles(context: ptr, parts: i64) -> i32:
    shared = stack(16)
    ptr[shared] = context
    i64[shared, 1] = 0
    gt_parallel(part, shared, parts)
    return monotonic.i32[shared + 8]
"""


_SOURCE = NativeSource(
    _FUNCTIONS,
    {name: place for place, name in enumerate(_HEAD)}
    | {"HEAD": len(_HEAD), "POINTERS": 8 * MOST_ARRAYS},
)


class TileLoop:
    """A native function prepared to run over arrays of one size; called with the arrays."""

    __slots__ = ("_driver", "_fixed", "_offset", "_pack", "_parts")

    def __init__(
        self, run: int, length: int, rows: int, row_bytes: Sequence[int], results: int
    ) -> None:
        """Work out where tiles begin.

        Args:
            run: Its address; it takes tables of the addresses of arguments and of results.
            length: The number of elements, or rows, of the arrays.
            rows: The number of them in a tile.
            row_bytes: Bytes of a row of each array, arguments and then results; 0 for one that
                every tile reads as a whole.
            results: The number of arrays that are results.
        """
        self._driver = _driver()
        tiles = -(-length // rows)
        each = max(_LEAST_TILES, -(-tiles // _MOST_PARTS))
        layout = native_layout()
        self._offset = None if layout is None else layout.array_data
        self._parts = -(-tiles // each)
        steps = [word for size in row_bytes for word in (rows * size, (length - rows) * size)]
        arguments = len(row_bytes) - results
        self._fixed = (run, arguments, results, tiles, each, layout is not None, *steps)
        self._pack = struct.Struct(f"{len(self._fixed) + len(row_bytes)}q").pack

    def __call__(self, arrays: Sequence[np.ndarray]) -> int:
        """Run it over all tiles, on all threads.

        Args:
            arrays: Arguments, then results; contiguous.

        Returns:
            0, or what the function returned for a tile where it failed.
        """
        offset = self._offset
        places = (
            [array.ctypes.data for array in arrays]
            if offset is None
            else [id(array) + offset for array in arrays]
        )
        return self._driver(self._pack(*self._fixed, *places), self._parts)  # type: ignore[no-any-return]


@once
def _driver() -> Any:
    library = Library(cache.compiled(_SOURCE), pool.imports(), ["gt_tiles"])
    return library.function(
        "gt_tiles", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64)
    )
