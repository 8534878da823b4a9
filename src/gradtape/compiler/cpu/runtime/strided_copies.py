"""Copies arrays into others with a different memory layout, on all threads.

Where neighbouring elements of one array are neighbours in the other too, rows are copied.
Otherwise there is an axis whose elements are neighbours in the source and another whose elements
are neighbours in the target: these two are transposed in square blocks of a cache line each way, so
that every line of memory is read once and written once. NumPy goes along one of the two, and
touches a line for each element of the other.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradtape.compiler.cpu.llvm.link import Library
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
_NAMES = ("target", "source", "items", "each", "size", "other", "sstep", "tstep", "axes")
_HEAD = len(_NAMES)


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


def _transposed(lanes: int, item: int, row: int, column: int) -> Iterator[str]:
    """Code for a square of vectors: read from the source along `%a0`, stored along `%b0`.

    Interleaving the first half of the vectors with the second half, once for each halving, moves
    element j of vector i to element i of vector j.
    """
    kind, name = f"<{lanes} x i{8 * item}>", f"q{row}_{column}"
    for i in range(lanes):
        yield f"  %{name}far{i} = mul i64 %sstep, {row + i}"
        yield f"  %{name}line{i} = getelementptr i8, ptr %sblock, i64 %{name}far{i}"
        yield f"  %{name}place{i} = getelementptr i8, ptr %{name}line{i}, i64 {column * item}"
        yield f"  %{name}v0_{i} = load {kind}, ptr %{name}place{i}, align {item}"
    half, stage = lanes // 2, 0
    while 1 << stage < lanes:
        for i in range(half):
            pair = f"{kind} %{name}v{stage}_{i}, {kind} %{name}v{stage}_{i + half}"
            for n, start in enumerate((0, half)):
                order = ", ".join(f"i32 {start + j // 2 + lanes * (j % 2)}" for j in range(lanes))
                yield (
                    f"  %{name}v{stage + 1}_{2 * i + n} = shufflevector {pair}, "
                    f"<{lanes} x i32> <{order}>"
                )
        stage += 1
    for i in range(lanes):
        yield f"  %{name}tfar{i} = mul i64 %tstep, {column + i}"
        yield f"  %{name}tline{i} = getelementptr i8, ptr %tblock, i64 %{name}tfar{i}"
        yield f"  %{name}tplace{i} = getelementptr i8, ptr %{name}tline{i}, i64 {row * item}"
        yield f"  store {kind} %{name}v{stage}_{i}, ptr %{name}tplace{i}, align {item}"


def _blocks(item: int) -> str:
    """Code for adjacent blocks along the target's axis; the first counter is their number."""
    width, lanes = _LINE // item, 32 // item
    squares = "\n".join(
        line
        for row in range(0, width, lanes)
        for column in range(0, width, lanes)
        for line in _transposed(lanes, item, row, column)
    )
    return f"""
  %block = load i64, ptr %counters
  %a0 = mul i64 %block, {width}
  %aleft = sub i64 %size, %a0
  %aw = call i64 @llvm.smin.i64(i64 %aleft, i64 {width})
  %afull = icmp eq i64 %aw, {width}
  br label %along
along:
  %b0 = phi i64 [ 0, %start ], [ %b1, %whole ], [ %b1, %lines ]
  %more = icmp slt i64 %b0, %other
  br i1 %more, label %one, label %next
one:
  %b1 = add i64 %b0, {width}
  %bleft = sub i64 %other, %b0
  %bw = call i64 @llvm.smin.i64(i64 %bleft, i64 {width})
  %bfull = icmp eq i64 %bw, {width}
  %soff = mul i64 %b0, %sstep
  %sblock = getelementptr i8, ptr %from, i64 %soff
  %toff = mul i64 %b0, {item}
  %tblock = getelementptr i8, ptr %to, i64 %toff
  %full = and i1 %afull, %bfull
  br i1 %full, label %whole, label %lines
whole:
{squares}
  br label %along
lines:
  %a = phi i64 [ 0, %one ], [ %a1, %line ]
  %moreline = icmp slt i64 %a, %aw
  br i1 %moreline, label %line0, label %along
line0:
  %sa = mul i64 %a, {item}
  %sline = getelementptr i8, ptr %sblock, i64 %sa
  %ta = mul i64 %a, %tstep
  %tline = getelementptr i8, ptr %tblock, i64 %ta
  br label %element
element:
  %b = phi i64 [ 0, %line0 ], [ %bnext, %element ]
  %sb = mul i64 %b, %sstep
  %sat = getelementptr i8, ptr %sline, i64 %sb
  %value = load i{8 * item}, ptr %sat
  %tb = mul i64 %b, {item}
  %tat = getelementptr i8, ptr %tline, i64 %tb
  store i{8 * item} %value, ptr %tat
  %bnext = add i64 %b, 1
  %moreb = icmp slt i64 %bnext, %bw
  br i1 %moreb, label %element, label %line
line:
  %a1 = add i64 %a, 1
  br label %lines
"""


_ROWS = """
  %same = call ptr @memmove(ptr %to, ptr %from, i64 %size)
  br label %next
"""


# The place of the first item of a part, axis by axis.
_FIND = """
find:
  %k = phi i64 [ 0, %0 ], [ %k1, %found ]
  %left = phi i64 [ %first, %0 ], [ %quotient, %found ]
  %s = phi ptr [ %source, %0 ], [ %s1, %found ]
  %t = phi ptr [ %target, %0 ], [ %t1, %found ]
  %known = icmp sge i64 %k, %axes
  br i1 %known, label %begin, label %found
found:
  %row = mul i64 %k, 3
  %np = getelementptr i64, ptr %table, i64 %row
  %n = load i64, ptr %np
  %sp = getelementptr i64, ptr %np, i64 1
  %sd = load i64, ptr %sp
  %tp = getelementptr i64, ptr %np, i64 2
  %td = load i64, ptr %tp
  %i = srem i64 %left, %n
  %quotient = sdiv i64 %left, %n
  %counter = getelementptr i64, ptr %counters, i64 %k
  store i64 %i, ptr %counter
  %sfar = mul i64 %i, %sd
  %s1 = getelementptr i8, ptr %s, i64 %sfar
  %tfar = mul i64 %i, %td
  %t1 = getelementptr i8, ptr %t, i64 %tfar
  %k1 = add i64 %k, 1
  br label %find
"""

# One step along the first axis that has one left; those before it start again.
_STEP = """
next:
  %itemnext = add i64 %item, 1
  br label %carry
carry:
  %c = phi i64 [ 0, %next ], [ %c1, %back ]
  %sc = phi ptr [ %from, %next ], [ %sback, %back ]
  %tc = phi ptr [ %to, %next ], [ %tback, %back ]
  %over = icmp sge i64 %c, %axes
  br i1 %over, label %begin, label %try
try:
  %crow = mul i64 %c, 3
  %cnp = getelementptr i64, ptr %table, i64 %crow
  %cn = load i64, ptr %cnp
  %csp = getelementptr i64, ptr %cnp, i64 1
  %csd = load i64, ptr %csp
  %ctp = getelementptr i64, ptr %cnp, i64 2
  %ctd = load i64, ptr %ctp
  %ccounter = getelementptr i64, ptr %counters, i64 %c
  %ci = load i64, ptr %ccounter
  %ci1 = add i64 %ci, 1
  %has = icmp slt i64 %ci1, %cn
  br i1 %has, label %step, label %back
step:
  store i64 %ci1, ptr %ccounter
  %snext = getelementptr i8, ptr %sc, i64 %csd
  %tnext = getelementptr i8, ptr %tc, i64 %ctd
  br label %begin
back:
  store i64 0, ptr %ccounter
  %cneg = sub i64 0, %ci
  %csfar = mul i64 %cneg, %csd
  %sback = getelementptr i8, ptr %sc, i64 %csfar
  %ctfar = mul i64 %cneg, %ctd
  %tback = getelementptr i8, ptr %tc, i64 %ctfar
  %c1 = add i64 %c, 1
  br label %carry
"""


def _text(kind: str) -> str:
    code = _ROWS if kind == "rows" else _blocks(int(kind.removeprefix("blocks")))
    loads = "\n".join(
        f"  %w{k} = getelementptr i64, ptr %context, i64 {k}\n"
        f"  %{name} = load {'ptr' if k < 2 else 'i64'}, ptr %w{k}"
        for k, name in enumerate(_NAMES)
    )
    return f"""
declare void @gt_parallel(ptr, ptr, i64)
declare ptr @memmove(ptr, ptr, i64)
declare i64 @llvm.smin.i64(i64, i64)

define internal void @part(ptr %context, i64 %part) {{
  %counters = alloca i64, i64 {_MOST_AXES}
{loads}
  %first = mul i64 %part, %each
  %after = add i64 %first, %each
  %end = call i64 @llvm.smin.i64(i64 %after, i64 %items)
  %table = getelementptr i64, ptr %context, i64 {_HEAD}
  store i64 0, ptr %counters
  br label %find
{_FIND}
begin:
  %item = phi i64 [ %first, %find ], [ %itemnext, %carry ], [ %itemnext, %step ]
  %from = phi ptr [ %s, %find ], [ %sc, %carry ], [ %snext, %step ]
  %to = phi ptr [ %t, %find ], [ %tc, %carry ], [ %tnext, %step ]
  %moreitems = icmp slt i64 %item, %end
  br i1 %moreitems, label %start, label %done
start:
{code}
{_STEP}
done:
  ret void
}}

define void @gt_layout(ptr %context, i64 %parts) {{
  call void @gt_parallel(ptr @part, ptr %context, i64 %parts)
  ret void
}}
"""


@once
def _driver(kind: str) -> Any:
    memmove = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value or 0
    imports = {**pool.imports(), "memmove": memmove}
    library = Library(cache.compiled(_text(kind)), imports, ["gt_layout"])
    return library.function("gt_layout", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64))
