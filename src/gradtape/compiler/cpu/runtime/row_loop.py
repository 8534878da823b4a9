"""Runs a native function, compiled for a tile of elements, over many arrays of any length.

The arrays are given as a table. A *row* of it has arrays of one length, one for each argument and
result of the function, the *columns*. Rows are cut into tiles, and threads take some tiles at a
time, whatever the rows they belong to. The last elements of a row are copied into room of a tile's
size and back, so that nothing is read or written besides the arrays. Results may be arrays that are
arguments as well, if the function reads an element of all arguments before it writes it.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.compiler.cpu.runtime.object_layout import (
    ALIGNED,
    C_CONTIGUOUS,
    WRITEABLE,
    expected_layout,
    native_layout,
)
from gradtape.locks import once

# Elements of a tile: enough to be worth a call, few enough for the last ones not to matter. Where
# there are many, a function for so many tiles takes them at once.
TILE = 512
AT_ONCE = 16
MOST_COLUMNS = 16
_MOST_PARTS = 64
# The context: these words. RUN and LARGE are the functions, the second one 0 if there is none.
# COLUMNS are those that they take, from FIRST on, of the STRIDE words of a row. DATA is where array
# objects have the address of their data, or 0 if rows have these addresses themselves. CHECKS says
# that the result of a tile is only compared with zero. Then, for each column, bytes of an element,
# or 0 for a number that all elements share.
_HEAD = (
    "RUN", "LARGE", "STRIDE", "FIRST", "COLUMNS", "INPUTS", "TILES", "EACH", "DATA", "CHECKS",
    "ROWS",
)  # fmt: skip
# A row begins with its length, the numbers of its first tile and of the one after its last.
_BEFORE = 3

_FUNCTIONS = """
def gt_parallel(run: ptr, argument: ptr, chunks: i64): ...
def memmove(target: ptr, source: ptr, bytes: i64) -> ptr: ...
def memset(target: ptr, byte: i32, bytes: i64) -> ptr: ...

def part(shared: ptr, number: i64):
    context = ptr[shared]
    columns = i64[context, COLUMNS]
    inputs = i64[context, INPUTS]
    first = i64[context, FIRST]
    sizes = context + 8 * HEAD
    data = stack(POINTERS)
    table = stack(POINTERS)
    room = stack(ROOM)
    each = i64[context, EACH]
    tiles = i64[context, TILES]
    tile = number * each
    if i64[context, CHECKS]:
        # From the end, so that the caches have the beginning for what comes next.
        tile = ((tiles + each - 1) // each - 1 - number) * each
    stop = smin(tile + each, tiles)
    row = ptr[context, ROWS]
    while i64[row, 2] <= tile:
        row = row + 8 * i64[context, STRIDE]
    while tile < stop:
        for k in range(columns):
            ptr[data, k] = ptr[row, first + k]
            if i64[context, DATA]:
                ptr[data, k] = ptr[ptr[row, first + k] + i64[context, DATA]]
        last = smin(stop, i64[row, 2])
        while tile < last:
            offset = (tile - i64[row, 1]) * TILE
            count = smin(i64[row] - offset, TILE)
            run = ptr[context, RUN]
            tiles_of_run = 1
            if i64[context, LARGE]:
                if smin((last - tile) * TILE, i64[row] - offset) >= AT_ONCE * TILE:
                    run = ptr[context, LARGE]
                    tiles_of_run = AT_ONCE
            for k in range(columns):
                ptr[table, k] = ptr[data, k] + offset * i64[sizes, k]
            if count < TILE:
                for k in range(columns):
                    size = i64[sizes, k]
                    if size:
                        own = room + 8 * TILE * k
                        if k < inputs:
                            memset(own, 0, size * TILE)
                            memmove(own, ptr[table, k], size * count)
                        ptr[table, k] = own
            if i64[context, CHECKS]:
                ptr[table, inputs] = room + 8 * TILE * inputs
                i64[room, TILE * inputs] = 0
            call(i32, run, table, table + 8 * inputs)
            if i64[context, CHECKS]:
                if i64[room, TILE * inputs]:
                    monotonic.i32[shared + 8] = 1
                    return
            elif count < TILE:
                for k in range(inputs, columns):
                    size = i64[sizes, k]
                    memmove(ptr[data, k] + offset * size, ptr[table, k], size * count)
            tile = tile + tiles_of_run
        row = row + 8 * i64[context, STRIDE]

def gt_rows(context: ptr) -> i64:
    shared = stack(16)
    ptr[shared] = context
    i64[shared, 1] = 0
    each = i64[context, EACH]
    gt_parallel(part, shared, (i64[context, TILES] + each - 1) // each)
    return i64(monotonic.i32[shared + 8])

# Whether the arrays in the first columns of each row have the same shapes, the length of the row,
# and elements one after the other; the first one is no view and may be written into, and the second
# one has its dtype.
def gt_alike(rows: ptr, count: i64, stride: i64, columns: i64, kind: ptr) -> i64:
    row = rows + 8 * BEFORE
    for number in range(count):
        first = ptr[row]
        if ptr[first + TYPE] != kind:
            return 0
        if ptr[first + BASE]:
            return 0
        if not i32[first + FLAGS] & WRITEABLE:
            return 0
        axes = i64(i32[first + NDIM])
        for k in range(columns):
            other = ptr[row, k]
            if ptr[other + TYPE] != kind:
                return 0
            if k < 2:
                if ptr[first + DESCR] != ptr[other + DESCR]:
                    return 0
            if (i32[other + FLAGS] & WANTED) != WANTED:
                return 0
            if axes != i64(i32[other + NDIM]):
                return 0
            length = 1
            for axis in range(axes):
                length = length * i64[ptr[other + DIMS], axis]
                if i64[ptr[first + DIMS], axis] != i64[ptr[other + DIMS], axis]:
                    return 0
            if length != i64[row, 0 - BEFORE]:
                return 0
        row = row + 8 * stride
    return 1
"""


def _source() -> NativeSource:
    layout = expected_layout()
    places = {
        "TYPE": layout.type,
        "DESCR": layout.array_descr,
        "BASE": layout.array_base,
        "FLAGS": layout.array_flags,
        "NDIM": layout.array_ndim,
        "DIMS": layout.array_dims,
    }
    numbers = {"HEAD": len(_HEAD), "BEFORE": _BEFORE, "TILE": TILE, "AT_ONCE": AT_ONCE}
    room = {"POINTERS": 8 * MOST_COLUMNS, "ROOM": 8 * TILE * MOST_COLUMNS}
    wanted = {"WANTED": C_CONTIGUOUS | ALIGNED, "WRITEABLE": WRITEABLE}
    head = {name: place for place, name in enumerate(_HEAD)}
    return NativeSource(_FUNCTIONS, head | numbers | places | room | wanted)


class Rows:
    """A table of arrays, which the caller has to keep as long as it is used.

    Args:
        rows: Arrays for each column; contiguous, and of the length of the first one.

    Attributes:
        is_open: Whether columns can be replaced.
    """

    __slots__ = ("_contexts", "_words", "address", "count", "is_open", "offset", "stride", "tiles")

    def __init__(self, rows: Sequence[Sequence[np.ndarray]]) -> None:
        layout = native_layout()
        self.offset = 0 if layout is None else layout.array_data
        self.tiles = 0
        words = []
        filled = [row for row in rows if row[0].size]
        for row in filled:
            begin = self.tiles
            self.tiles += -(-row[0].size // TILE)
            words += [row[0].size, begin, self.tiles]
            words += map(id, row) if self.offset else [x.ctypes.data for x in row]
        self.is_open = bool(filled) and layout is not None and len(filled) == len(rows)
        self.count = len(filled)
        self.stride = len(words) // max(self.count, 1)
        self._words = array("q", words)
        self.address = self._words.buffer_info()[0]
        # What loops that have run over it were called with; its place in memory stays.
        self._contexts: dict[RowLoop, array[int]] = {}

    def context(self, loop: RowLoop) -> int:
        """The address of what a loop is called with to run over this table."""
        known = self._contexts.get(loop)
        if known is None:
            known = self._contexts[loop] = array("q", loop.context(self))
        return known.buffer_info()[0]

    def replace(self, column: int, arrays: Sequence[np.ndarray]) -> None:
        """Put other arrays of the same sizes into a column of an open table."""
        self._words[_BEFORE + column :: self.stride] = array("q", map(id, arrays))

    def are_alike(self, columns: int) -> bool:
        """Whether the first arrays of each row are alike: contiguous, and of one shape.

        The first one is no view, either, and may be written into; the second one has its dtype.
        """
        kind = id(np.ndarray)
        return bool(_alike()(self.address, self.count, self.stride, columns, kind))


class RowLoop:
    """A native function prepared to run over tables of arrays.

    Args:
        run: Its address; it takes tables of the addresses of arguments and of results.
        sizes: Bytes of an element of each argument and result; 0 for a number.
        inputs: How many of them are arguments.
        large: The address of the same function for many tiles at once; 0 if there is none.
        first: The first column that it takes.
        checks: Whether it returns one number for a tile, to be compared with zero; this one is not
            a column.
    """

    __slots__ = ("_checks", "_code", "_columns", "_run", "_sizes")

    def __init__(
        self,
        run: int,
        sizes: Iterable[int],
        inputs: int,
        *,
        large: int = 0,
        first: int = 0,
        checks: bool = False,
    ) -> None:
        self._sizes = tuple(sizes)
        self._columns = (_BEFORE + first, len(self._sizes), inputs)
        self._run = (run, large)
        self._checks = checks
        self._code = _rows()

    def __call__(self, rows: Rows) -> int:
        """Run it over all tiles, on all threads.

        Returns:
            1 if any tile's result is not zero, of a function that checks.
        """
        return self._code(rows.context(self)) if rows.tiles else 0

    def context(self, rows: Rows) -> tuple[int, ...]:
        """What the native loop is called with, in the order of `_HEAD`."""
        each = AT_ONCE * -(-rows.tiles // (AT_ONCE * _MOST_PARTS))
        table = (rows.tiles, each, rows.offset, self._checks, rows.address)
        return (*self._run, rows.stride, *self._columns, *table, *self._sizes)


@once
def _library() -> Library:
    return Library(cache.compiled(_source()), pool.imports(), ["gt_rows", "gt_alike"])


@once
def _rows() -> Any:
    return _library().function("gt_rows", ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p))


@once
def _alike() -> Any:
    numbers = [ctypes.c_int64] * 3
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *numbers, ctypes.c_void_p)
    return _library().function("gt_alike", prototype)
