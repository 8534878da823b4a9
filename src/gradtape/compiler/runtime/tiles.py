"""Runs a native function, compiled for arrays of one size, over arrays of any larger one.

A *tile* is what the function takes at a time; arrays are cut into tiles, which threads claim. Where
the length is no multiple of that of a tile, the last one begins earlier and computes some elements
again: to the same values, since results and arguments never share memory.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import numpy as np

from gradtape.compiler.llvm.link import Library
from gradtape.compiler.runtime import cache, pool

MOST_ARRAYS = 16
_MOST_PARTS = 64
# Tiles per part at least: claiming one takes about as long as a small tile.
_LEAST_TILES = 4
# Words before those of the arrays, which have three each: address, bytes per tile, the last offset.
_HEAD = 5

# The context: function, arguments, results, tiles, tiles per part, then the arrays.
_TEXT = f"""
declare void @gt_parallel(ptr, ptr, i64)

define internal void @part(ptr %context, i64 %part) {{
entry:
  %inputs = alloca ptr, i64 {MOST_ARRAYS}
  %run = load ptr, ptr %context
  %p1 = getelementptr i64, ptr %context, i64 1
  %arguments = load i64, ptr %p1
  %p2 = getelementptr i64, ptr %context, i64 2
  %results = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %context, i64 3
  %tiles = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %context, i64 4
  %each = load i64, ptr %p4
  %words = getelementptr i64, ptr %context, i64 {_HEAD}
  %outputs = getelementptr ptr, ptr %inputs, i64 %arguments
  %arrays = add i64 %arguments, %results
  %first = mul i64 %part, %each
  %after = add i64 %first, %each
  %end = call i64 @llvm.smin.i64(i64 %after, i64 %tiles)
  br label %tile
tile:
  %t = phi i64 [ %first, %entry ], [ %next, %go ]
  %more = icmp slt i64 %t, %end
  br i1 %more, label %array, label %done
array:
  %k = phi i64 [ 0, %tile ], [ %k1, %array ]
  %at = mul i64 %k, 3
  %place = getelementptr i64, ptr %words, i64 %at
  %base = load ptr, ptr %place
  %place1 = getelementptr i64, ptr %place, i64 1
  %step = load i64, ptr %place1
  %place2 = getelementptr i64, ptr %place, i64 2
  %last = load i64, ptr %place2
  %far = mul i64 %t, %step
  %offset = call i64 @llvm.smin.i64(i64 %far, i64 %last)
  %address = getelementptr i8, ptr %base, i64 %offset
  %slot = getelementptr ptr, ptr %inputs, i64 %k
  store ptr %address, ptr %slot
  %k1 = add i64 %k, 1
  %again = icmp slt i64 %k1, %arrays
  br i1 %again, label %array, label %go
go:
  %status = call i32 %run(ptr %inputs, ptr %outputs)
  %next = add i64 %t, 1
  br label %tile
done:
  ret void
}}

declare i64 @llvm.smin.i64(i64, i64)

define void @gt_tiles(ptr %context, i64 %parts) {{
  call void @gt_parallel(ptr @part, ptr %context, i64 %parts)
  ret void
}}
"""


def run_tiles(
    run: int, length: int, arrays: Sequence[np.ndarray], tiled: Sequence[int], results: int
) -> None:
    """Run a native function over all tiles, on all threads.

    Args:
        run: Its address; it takes tables of the addresses of arguments and of results.
        length: How many elements, or rows, the arrays have.
        arrays: Arguments, then results; contiguous.
        tiled: For each array, elements or rows of it in a tile; 0 for one that every tile reads.
        results: How many of them are results.
    """
    size = max(tiled)
    tiles = -(-length // size)
    each = max(_LEAST_TILES, -(-tiles // _MOST_PARTS))
    words = [run, len(arrays) - results, results, tiles, each]
    for array, own in zip(arrays, tiled, strict=True):
        row = array.nbytes // length if own else 0
        words += [array.ctypes.data, size * row, (length - size) * row]
    context = (ctypes.c_int64 * len(words))(*words)
    _driver()(ctypes.addressof(context), -(-tiles // each))


@functools.cache
def _library() -> Library:
    return Library(cache.compiled(_TEXT), pool.imports(), ["gt_tiles"])


@functools.cache
def _driver() -> ctypes._CFunctionType:
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    return prototype(_library().address("gt_tiles"))
