"""Working memory of threads: one stretch for each thread, kept from call to call.

Data that kernels copy or collect on their way does not go on the stack: its size depends on the
data, and the threads that run compiled code have stacks of any size. Generated code calls `ptr
gt_scratch(i64 bytes)`, which gives the stretch of the calling thread, larger than before if it was
too small, or null if there is no memory. It is the kernel's until it returns or calls anything
that may run another kernel, and it is freed when the thread ends.
"""

from __future__ import annotations

import ctypes
import sys

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache
from gradtape.locks import once

# The first line of a stretch holds its size. The key's type is `unsigned int` on Linux, and
# `unsigned long` on the other systems that we know.
_FUNCTIONS = """
def pthread_key_create(key: ptr, destructor: ptr) -> i32: ...
def pthread_getspecific(key: KEY) -> ptr: ...
def pthread_setspecific(key: KEY, value: ptr) -> i32: ...
def aligned_alloc(unit: i64, bytes: i64) -> ptr: ...
def free(data: ptr): ...

def gt_scratch_begin() -> i32:
    return pthread_key_create(key, free)

def gt_scratch(bytes: i64) -> ptr:
    kept = pthread_getspecific(KEY[key])
    if kept and uge(i64[kept], bytes):
        return kept + 64
    made = aligned_alloc(64, bytes + 127 & -64)
    if not made:
        return null
    i64[made] = bytes
    if pthread_setspecific(KEY[key], made) != 0:
        free(made)
        return null
    free(kept)
    return made + 64
"""


def _source() -> NativeSource:
    kind = "i32" if sys.platform == "linux" else "i64"
    ir = f"@key = internal global {kind} 0\n"
    return NativeSource(_FUNCTIONS.replace("KEY", kind), ir=ir)


@once
def _library() -> Library:
    """The native code of this process."""
    library = Library(cache.compiled(_source()), {}, ["gt_scratch_begin", "gt_scratch"])
    begin = ctypes.CFUNCTYPE(ctypes.c_int)(library.address("gt_scratch_begin"))
    if begin() != 0:
        raise MemoryError("jit: no more thread-specific storage in this process")
    return library


def imports() -> dict[str, int]:
    """The symbol that generated code may refer to, for `Library(imports=…)`."""
    return {"gt_scratch": _library().address("gt_scratch")}
