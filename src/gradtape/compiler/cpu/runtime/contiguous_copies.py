"""Copies memory on all threads."""

from __future__ import annotations

import ctypes
from typing import Any

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache, pool
from gradtape.locks import once

# Bytes that a thread claims at a time.
_PART = 1 << 16

# The context: target, source, bytes.
_SOURCE = NativeSource(
    """
def gt_parallel(run: ptr, argument: ptr, chunks: i64): ...
def memmove(target: ptr, source: ptr, bytes: i64) -> ptr: ...

def part(context: ptr, number: i64):
    first = number * PART
    bytes = smin(i64[context, 2] - first, PART)
    memmove(ptr[context] + first, ptr[context, 1] + first, bytes)

def gt_copy(context: ptr, parts: i64):
    gt_parallel(part, context, parts)
""",
    {"PART": _PART},
)


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
    library = Library(cache.compiled(_SOURCE), pool.imports(), ["gt_copy"])
    return library.function("gt_copy", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64))
