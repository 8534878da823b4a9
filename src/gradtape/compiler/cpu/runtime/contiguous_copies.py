"""Copies memory on all threads."""

from __future__ import annotations

import ctypes
from typing import Any

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.locks import once

# Bytes that a thread claims at a time.
_PART = 1 << 16

# The context: target, source, bytes.
_TEXT = f"""
declare void @gt_parallel(ptr, ptr, i64)
declare ptr @memmove(ptr, ptr, i64)
declare i64 @llvm.smin.i64(i64, i64)

define internal void @part(ptr %context, i64 %part) {{
  %target = load ptr, ptr %context
  %p1 = getelementptr i64, ptr %context, i64 1
  %source = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %context, i64 2
  %bytes = load i64, ptr %p2
  %first = mul i64 %part, {_PART}
  %left = sub i64 %bytes, %first
  %size = call i64 @llvm.smin.i64(i64 %left, i64 {_PART})
  %to = getelementptr i8, ptr %target, i64 %first
  %from = getelementptr i8, ptr %source, i64 %first
  %same = call ptr @memmove(ptr %to, ptr %from, i64 %size)
  ret void
}}

define void @gt_copy(ptr %context, i64 %parts) {{
  call void @gt_parallel(ptr @part, ptr %context, i64 %parts)
  ret void
}}
"""


def copy(target: Any, source: Any) -> None:
    """Copy the elements of an array into another one.

    Args:
        target: A contiguous, writeable array that does not overlap the source.
        source: A contiguous array of the same size and dtype.
    """
    context = (ctypes.c_int64 * 3)(target.ctypes.data, source.ctypes.data, source.nbytes)
    _driver()(ctypes.addressof(context), -(-source.nbytes // _PART))


@once
def _driver() -> Any:
    memmove = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value or 0
    imports = {**pool.imports(), "memmove": memmove}
    library = Library(cache.compiled(_TEXT), imports, ["gt_copy"])
    return library.function("gt_copy", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64))
