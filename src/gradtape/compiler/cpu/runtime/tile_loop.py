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
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.compiler.cpu.runtime.object_layout import native_layout
from gradtape.locks import once

MOST_ARRAYS = 16
_MOST_PARTS = 64
# The least tiles per part: claiming a part takes about as long as a small tile.
_LEAST_TILES = 4
# Words before those of the arrays, which are two each, bytes per tile and the last offset, and then
# one each, the address of the data, or of the field of the array object that has it.
_HEAD = 6

# The context: function, arguments, results, tiles, tiles per part, whether arrays are objects.
# Parts get its address, and a word for the status of a tile that failed.
_TEXT = f"""
declare void @gt_parallel(ptr, ptr, i64)

define internal void @part(ptr %shared, i64 %part) {{
entry:
  %context = load ptr, ptr %shared
  %failed = getelementptr i64, ptr %shared, i64 1
  %inputs = alloca ptr, i64 {MOST_ARRAYS}
  %data = alloca ptr, i64 {MOST_ARRAYS}
  %run = load ptr, ptr %context
  %p1 = getelementptr i64, ptr %context, i64 1
  %arguments = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %context, i64 2
  %results = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %context, i64 3
  %tiles = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %context, i64 4
  %each = load i64, ptr %p4
  %p5 = getelementptr i64, ptr %context, i64 5
  %objects = load i64, ptr %p5
  %words = getelementptr i64, ptr %context, i64 {_HEAD}
  %outputs = getelementptr ptr, ptr %inputs, i64 %arguments
  %arrays = add i64 %arguments, %results
  %pairs = mul i64 %arrays, 2
  %places = getelementptr i64, ptr %words, i64 %pairs
  %first = mul i64 %part, %each
  %after = add i64 %first, %each
  %end = call i64 @llvm.smin.i64(i64 %after, i64 %tiles)
  %direct = icmp eq i64 %objects, 0
  br label %find
find:
  %j = phi i64 [ 0, %entry ], [ %j1, %found ]
  %from = getelementptr ptr, ptr %places, i64 %j
  %place = load ptr, ptr %from
  br i1 %direct, label %found, label %follow
follow:
  %held = load ptr, ptr %place
  br label %found
found:
  %base = phi ptr [ %place, %find ], [ %held, %follow ]
  %to = getelementptr ptr, ptr %data, i64 %j
  store ptr %base, ptr %to
  %j1 = add i64 %j, 1
  %others = icmp slt i64 %j1, %arrays
  br i1 %others, label %find, label %tile
tile:
  %t = phi i64 [ %first, %found ], [ %next, %go ]
  %more = icmp slt i64 %t, %end
  br i1 %more, label %array, label %done
array:
  %k = phi i64 [ 0, %tile ], [ %k1, %array ]
  %at = mul i64 %k, 2
  %own = getelementptr i64, ptr %words, i64 %at
  %step = load i64, ptr %own
  %own1 = getelementptr i64, ptr %own, i64 1
  %last = load i64, ptr %own1
  %source = getelementptr ptr, ptr %data, i64 %k
  %start = load ptr, ptr %source
  %far = mul i64 %t, %step
  %offset = call i64 @llvm.smin.i64(i64 %far, i64 %last)
  %address = getelementptr i8, ptr %start, i64 %offset
  %slot = getelementptr ptr, ptr %inputs, i64 %k
  store ptr %address, ptr %slot
  %k1 = add i64 %k, 1
  %again = icmp slt i64 %k1, %arrays
  br i1 %again, label %array, label %go
go:
  %status = call i32 %run(ptr %inputs, ptr %outputs)
  %next = add i64 %t, 1
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %tile, label %leave
leave:
  store atomic i32 %status, ptr %failed monotonic, align 4
  br label %done
done:
  ret void
}}

declare i64 @llvm.smin.i64(i64, i64)

define i32 @gt_tiles(ptr %context, i64 %parts) {{
  %shared = alloca i64, i64 2
  %failed = getelementptr i64, ptr %shared, i64 1
  store ptr %context, ptr %shared
  store i64 0, ptr %failed
  call void @gt_parallel(ptr @part, ptr %shared, i64 %parts)
  %status = load atomic i32, ptr %failed monotonic, align 4
  ret i32 %status
}}
"""


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
    library = Library(cache.compiled(_TEXT), pool.imports(), ["gt_tiles"])
    return library.function(
        "gt_tiles", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64)
    )
