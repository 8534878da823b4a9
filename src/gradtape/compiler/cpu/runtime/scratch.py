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
from gradtape.compiler.cpu.runtime import cache
from gradtape.locks import once

# The first line of a stretch holds its size. The key's type is `unsigned int` on Linux, and
# `unsigned long` on the other systems that we know.
_TEXT = """
@key = internal global $KEY$ 0

declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific($KEY$)
declare i32 @pthread_setspecific($KEY$, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

define i32 @gt_scratch_begin() {
  %status = call i32 @pthread_key_create(ptr @key, ptr @free)
  ret i32 %status
}

define ptr @gt_scratch(i64 %bytes) {
entry:
  %key = load $KEY$, ptr @key
  %kept = call ptr @pthread_getspecific($KEY$ %key)
  %none = icmp eq ptr %kept, null
  br i1 %none, label %make, label %look
look:
  %size = load i64, ptr %kept
  %enough = icmp uge i64 %size, %bytes
  br i1 %enough, label %done, label %make
make:
  %more = add i64 %bytes, 127
  %whole = and i64 %more, -64
  %new = call ptr @aligned_alloc(i64 64, i64 %whole)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %nothing, label %keep
keep:
  store i64 %bytes, ptr %new
  %status = call i32 @pthread_setspecific($KEY$ %key, ptr %new)
  %kept_it = icmp eq i32 %status, 0
  br i1 %kept_it, label %change, label %give_up
change:
  call void @free(ptr %kept)
  br label %done
done:
  %mine = phi ptr [ %kept, %look ], [ %new, %change ]
  %start = getelementptr i8, ptr %mine, i64 64
  ret ptr %start
give_up:
  call void @free(ptr %new)
  br label %nothing
nothing:
  ret ptr null
}
"""


@once
def _library() -> Library:
    """The native code of this process."""
    key = "i32" if sys.platform == "linux" else "i64"
    code = cache.compiled(_TEXT.replace("$KEY$", key))
    library = Library(code, {}, ["gt_scratch_begin", "gt_scratch"])
    begin = ctypes.CFUNCTYPE(ctypes.c_int)(library.address("gt_scratch_begin"))
    if begin() != 0:
        raise MemoryError("jit: no more thread-specific storage in this process")
    return library


def imports() -> dict[str, int]:
    """The symbol that generated code may refer to, for `Library(imports=…)`."""
    return {"gt_scratch": _library().address("gt_scratch")}
