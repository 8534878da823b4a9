"""Jobs for the thread pool, as generated code would have them."""

import ctypes

import numpy as np

from gradtape.compiler.cpu.llvm.link import Library, compile_module

# `counts` is an array with a counter for each chunk.
BODIES = """
declare void @gt_parallel(ptr, ptr, i64)
declare void @gt_parallel_long(ptr, ptr, i64)
declare i32 @usleep(i32)
declare i64 @pthread_self()

define internal void @count(ptr %counts, i64 %chunk) {
  %place = getelementptr i64, ptr %counts, i64 %chunk
  %old = atomicrmw add ptr %place, i64 1 monotonic
  ret void
}

define internal void @count_slowly(ptr %counts, i64 %chunk) {
  %slept = call i32 @usleep(i32 300)
  call void @count(ptr %counts, i64 %chunk)
  ret void
}

define internal void @count_ten(ptr %counts, i64 %chunk) {
  %first = mul i64 %chunk, 10
  %part = getelementptr i64, ptr %counts, i64 %first
  call void @gt_parallel(ptr @count, ptr %part, i64 10)
  ret void
}

define internal void @who(ptr %threads, i64 %chunk) {
  %slept = call i32 @usleep(i32 1000)
  %me = call i64 @pthread_self()
  %place = getelementptr i64, ptr %threads, i64 %chunk
  store i64 %me, ptr %place
  ret void
}

define void @plain(ptr %counts, i64 %chunks) {
  call void @gt_parallel(ptr @count, ptr %counts, i64 %chunks)
  ret void
}

define void @slow(ptr %counts, i64 %chunks) {
  call void @gt_parallel_long(ptr @count_slowly, ptr %counts, i64 %chunks)
  ret void
}

define void @nested(ptr %counts, i64 %chunks) {
  call void @gt_parallel_long(ptr @count_ten, ptr %counts, i64 %chunks)
  ret void
}

define void @threads(ptr %threads, i64 %chunks) {
  call void @gt_parallel_long(ptr @who, ptr %threads, i64 %chunks)
  ret void
}

define void @often(ptr %counts, i64 %chunks, i64 %times) {
entry:
  br label %loop
loop:
  %time = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @gt_parallel(ptr @count, ptr %counts, i64 %chunks)
  %next = add i64 %time, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
NAMES = ("plain", "slow", "nested", "threads", "often")


class Jobs:
    """The jobs above, on arrays of 64-bit integers."""

    def __init__(self, imports: dict[str, int]) -> None:
        self.library = Library(compile_module(BODIES), imports, NAMES)

    def run(self, name: str, counts: np.ndarray, chunks: int, *more: int) -> np.ndarray:
        types = [ctypes.c_void_p, *[ctypes.c_int64] * (1 + len(more))]
        function = ctypes.CFUNCTYPE(None, *types)(self.library.address(name))
        function(counts.ctypes.data, chunks, *more)
        return counts

    def counts(self, name: str, chunks: int, factor: int = 1) -> np.ndarray:
        return self.run(name, np.zeros(max(chunks * factor, 1), np.int64), chunks)


def all_ones(counts: np.ndarray) -> bool:
    return bool((counts == 1).all())
