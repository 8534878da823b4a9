"""Copies arrays into others with a different memory layout, on all threads.

Where neighbouring elements of one array are neighbours in the other too, rows are copied.
Otherwise there is an axis whose elements are neighbours in the source and another whose elements
are neighbours in the target: these two are transposed in square blocks of a cache line each way, so
that every line of memory is read once and written once. NumPy goes along one of the two, and
touches a line for each element of the other.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any, NamedTuple

from gradtape.compiler.cpu.llvm.builder import I64, PTR, Builder, Module, Type, Value
from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.locks import once

# The most axes that are gone through one by one.
_MOST_AXES = 8
# Bytes of a cache line, and bytes that a thread claims at a time.
_LINE = 64
_PART = 1 << 16
# The sizes of elements for which there is code.
_ITEMS = (4, 8)

# The context: target, source, number of items (rows, or columns of blocks), number of them in a
# part, the length of a row in bytes or the size of the source's axis; the size of the target's
# axis, the distance of the source's elements along that one, the distance of the target's along the
# source's; the number of further axes, and for each the size and the distances in source and
# target, the innermost one first. All distances are in bytes.
_HEAD = ("TARGET", "SOURCE", "ITEMS", "EACH", "SIZE", "OTHER", "FROM_STEP", "TO_STEP", "AXES")


def copied_into(target: Any, source: Any) -> bool:
    """Copy an array into another one of the same shape and dtype, if there is code for it.

    Args:
        target: Shares no memory with the source.
        source: May repeat elements, by strides of 0.

    Returns:
        Whether it was done.
    """
    item = source.itemsize
    if source.dtype.hasobject or not (target.flags.aligned and source.flags.aligned):
        return False
    axes = _merged(target, source)
    own = next((axis for axis in axes if axis.source == item), None)
    other = next((axis for axis in axes if axis.target == item), None)
    if own is None or other is None:
        return False
    rest = [axis for axis in axes if axis is not own and axis is not other]
    if own is other:
        kind, claimed = "rows", own.size * item
        sizes = (claimed, 0, 0, 0)
    elif item in _ITEMS and not any(x.ctypes.data % item for x in (target, source)):
        width = _LINE // item
        kind, claimed = f"blocks{item}", width * other.size * item
        sizes = (own.size, other.size, other.source, own.target)
        rest.insert(0, _Axis(-(-own.size // width), width * item, width * own.target))
    else:
        return False
    if len(rest) > _MOST_AXES:
        return False
    items, each = math.prod(axis.size for axis in rest), max(1, _PART // claimed)
    words = [target.ctypes.data, source.ctypes.data, items, each, *sizes, len(rest)]
    words += [word for axis in rest for word in axis]
    _driver(kind)((ctypes.c_int64 * len(words))(*words), -(-items // each))
    return True


class _Axis(NamedTuple):
    """An axis of two arrays: its size, and the distances of elements along it, in bytes."""

    size: int
    source: int
    target: int


def _merged(target: Any, source: Any) -> list[_Axis]:
    """The axes of both arrays, the innermost one of the target first.

    An axis along which both arrays continue where another one ends is merged with it.
    """
    axes = map(_Axis, source.shape, source.strides, target.strides)
    merged: list[_Axis] = []
    for axis in sorted(axes, key=lambda axis: abs(axis.target)):
        if axis.size == 1:
            continue
        if merged:
            size, of, to = merged[-1]
            if axis.source == size * of and axis.target == size * to:
                merged[-1] = _Axis(size * axis.size, of, to)
                continue
        merged.append(axis)
    return merged


# ---- code ---------------------------------------------------------------------------------------

_COPY = """
def gt_parallel(run: ptr, argument: ptr, chunks: i64): ...
def memmove(target: ptr, source: ptr, bytes: i64) -> ptr: ...

def part(context: ptr, number: i64):
    source = ptr[context, SOURCE]
    target = ptr[context, TARGET]
    size = i64[context, SIZE]
    axes = i64[context, AXES]
    table = context + 8 * HEAD
    counters = stack(COUNTERS)
    i64[counters] = 0
    each = i64[context, EACH]
    first = number * each
    # The place of the first item, axis by axis.
    left = first
    for k in range(axes):
        row = table + 24 * k
        index = left % i64[row]
        left = left // i64[row]
        i64[counters, k] = index
        source += index * i64[row, 1]
        target += index * i64[row, 2]
    for item in range(first, smin(first + each, i64[context, ITEMS])):
        COPY_ITEM
        # One step along the first axis that has one left; those before it start again.
        for k in range(axes):
            axis = table + 24 * k
            done = i64[counters, k]
            if done + 1 < i64[axis]:
                i64[counters, k] = done + 1
                source += i64[axis, 1]
                target += i64[axis, 2]
                break
            i64[counters, k] = 0
            source += (0 - done) * i64[axis, 1]
            target += (0 - done) * i64[axis, 2]

def gt_layout(context: ptr, parts: i64):
    gt_parallel(part, context, parts)
"""

# Copies adjacent blocks along the target's axis.
_BLOCKS = """
def transpose(source: ptr, from_step: i64, target: ptr, to_step: i64): ...

def copy_blocks(context: ptr, source: ptr, target: ptr, width: i64):
    other = i64[context, OTHER]
    from_step = i64[context, FROM_STEP]
    to_step = i64[context, TO_STEP]
    done = 0
    while done < other:
        from_block = source + done * from_step
        to_block = target + done * ITEM
        height = smin(other - done, WIDTH)
        if width == WIDTH and height == WIDTH:
            transpose(from_block, from_step, to_block, to_step)
        else:
            for i in range(width):
                from_line = from_block + i * ITEM
                to_line = to_block + i * to_step
                for k in range(height):
                    ELEMENT[to_line, k] = ELEMENT[from_line + k * from_step]
        done += WIDTH
"""


def _source(kind: str) -> NativeSource:
    constants = {name: place for place, name in enumerate(_HEAD)}
    constants |= {"HEAD": len(_HEAD), "COUNTERS": 8 * _MOST_AXES}
    if kind == "rows":
        return NativeSource(_COPY.replace("COPY_ITEM", "memmove(target, source, size)"), constants)
    item = int(kind.removeprefix("blocks"))
    constants |= {"ITEM": item, "WIDTH": _LINE // item}
    blocks = "copy_blocks(context, source, target, smin(size - i64[counters] * WIDTH, WIDTH))"
    source = _COPY.replace("COPY_ITEM", blocks) + _BLOCKS.replace("ELEMENT", f"i{8 * item}")
    return NativeSource(source, constants, _transpose(item))


def _transpose(item: int) -> str:
    """A function that transposes a block, as squares of vectors."""
    b, lanes = Builder(Module()), 32 // item
    kind = Type(f"i{8 * item}", lanes)

    def place(side: str, line: int, start: int) -> Value:
        step = b.mul(Value(I64, f"%{side}_step"), line)
        return b.element(b.element(Value(PTR, f"%{side}"), step, "i8"), start, "i8")

    for row, column in itertools.product(range(0, _LINE // item, lanes), repeat=2):
        lines = [b.load(place("from", row + i, column * item), kind) for i in range(lanes)]
        for i, vector in enumerate(b.transposed(lines)):
            b.store(vector, place("to", column + i, row * item))
    b.emit("ret void")
    parameters = "ptr %from, i64 %from_step, ptr %to, i64 %to_step"
    return b.function(f"define internal void @transpose({parameters})")


@once
def _driver(kind: str) -> Any:
    library = Library(cache.compiled(_source(kind)), pool.imports(), ["gt_layout"])
    return library.function("gt_layout", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64))
