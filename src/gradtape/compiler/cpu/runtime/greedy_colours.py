"""Greedy colouring of sparse matrices: each vertex gets the first colour that is free for it.

Colours are given out 64 at a time, and sets of them are the bits of a number: for each row those
that its columns have, for each vertex those of its neighbours. So a vertex costs one step for each
of its neighbours, however many neighbours these have. Vertices for which none of the 64 is free go
on to the next 64; the result is the same as with all colours at once.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.locks import once

_AT_ONCE = 64

# The context: where the entries of each vertex begin, the entries, the order of the vertices, the
# sets of colours, the colours (-1 for none), the number of vertices, the first of the 64 colours.
# Both functions leave vertices without a colour at the beginning of the order, and count them.
_SOURCE = NativeSource(
    """
@inline
def first_free(taken: i64) -> i64:
    free = -1 - taken
    return free & (0 - free)

# Two columns of one row have different colours. Sets are those of rows.
def gt_columns(context: ptr) -> i64:
    starts = ptr[context]
    rows = ptr[context, 1]
    order = ptr[context, 2]
    sets = ptr[context, 3]
    colours = ptr[context, 4]
    base = i64[context, 6]
    left = 0
    for k in range(i64[context, 5]):
        column = i64(i32[order, k])
        begin = i64(i32[starts, column])
        end = i64(i32[starts, column + 1])
        taken = 0
        for e in range(begin, end):
            taken = taken | i64[sets, i64(i32[rows, e])]
        bit = first_free(taken)
        if bit == 0:
            i32[order, left] = i32(column)
            left += 1
        else:
            i32[colours, column] = i32(base + 63 - ctlz(bit, True))
            for e in range(begin, end):
                row = i64(i32[rows, e])
                i64[sets, row] = i64[sets, row] | bit
    return left

# Neighbours have different colours, and two neighbours of a vertex the same one only if it is
# higher than that of the vertex: so no path of four has two colours. Sets are those of neighbours.
def gt_symmetric(context: ptr) -> i64:
    starts = ptr[context]
    neighbours = ptr[context, 1]
    order = ptr[context, 2]
    sets = ptr[context, 3]
    colours = ptr[context, 4]
    base = i64[context, 6]
    left = 0
    for k in range(i64[context, 5]):
        vertex = i64(i32[order, k])
        begin = i64(i32[starts, vertex])
        end = i64(i32[starts, vertex + 1])
        taken = 0
        for e in range(begin, end):
            other = i64(i32[neighbours, e])
            colour = i64(i32[colours, other])
            if colour < 0:
                taken = taken | i64[sets, other]
            if colour >= base:
                own = 1 << (colour - base)
                taken = taken | own | (i64[sets, other] & (own - 1))
        bit = first_free(taken)
        if bit == 0:
            i32[order, left] = i32(vertex)
            left += 1
        else:
            i32[colours, vertex] = i32(base + 63 - ctlz(bit, True))
            for e in range(begin, end):
                other = i64(i32[neighbours, e])
                i64[sets, other] = i64[sets, other] | bit
    return left
"""
)


def columns(starts: Any, rows: Any, order: Any, height: int) -> Any:
    """Colours of columns, such that those of one row differ: a column may share any other's sweep.

    Args:
        starts: Where the rows of each column begin in `rows`, and where those of the last end.
        rows: The rows in which each column has a place, int32.
        order: The columns in the order in which they choose.
        height: The number of rows.

    Returns:
        The number of the colour of each column, from 0 on.
    """
    return _coloured("gt_columns", starts, rows, order, height)


def symmetric(starts: Any, neighbours: Any, order: Any) -> Any:
    """A star colouring of a graph: of an edge, one end is the only neighbour in its colour.

    For an edge between colours c < d, the vertex with colour d has no other neighbour with c.

    Args:
        starts: Where the neighbours of each vertex begin, and where those of the last end.
        neighbours: The neighbours of each vertex, int32; not itself.
        order: The vertices in the order in which they choose.

    Returns:
        The number of the colour of each vertex, from 0 on.
    """
    return _coloured("gt_symmetric", starts, neighbours, order, len(starts) - 1)


def _coloured(function: str, starts: Any, entries: Any, order: Any, sets: int) -> Any:
    arrays = [np.ascontiguousarray(array, np.int32) for array in (starts, entries)]
    waiting = np.array(order, np.int32)
    colours = np.full(len(starts) - 1, -1, np.int32)
    left, base = len(waiting), 0
    while left:
        every: list[Any] = [*arrays, waiting, np.zeros(sets, np.int64), colours]
        words = [array.ctypes.data for array in every]
        left = _native(function)((ctypes.c_int64 * 7)(*words, left, base))
        base += _AT_ONCE
    return colours


@once
def _native(function: str) -> Any:
    library = Library(cache.compiled(_SOURCE), pool.imports(), [function])
    return library.function(function, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p))
