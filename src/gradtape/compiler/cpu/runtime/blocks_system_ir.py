"""The edges of kept memory (`blocks_ir`) as LLVM IR: the system, arenas of threads, NumPy."""

from __future__ import annotations

# A mapping is a page with the header at its end, then the data, up to the next page. The data of
# large ones begin at a huge page: the excess mapped before and after for that is given back.
#
# Blocks come from `mmap` and not from `malloc`, since glibc takes the size of a freed block as the
# limit up to which it keeps everyone's memory (decision 0016). When all 65530 mappings that Linux
# allows are used up, `malloc` may still have memory.
#
# The words of a header: bytes, number of the size (-1: not kept, -2: from `malloc`), start, length.
SYSTEM = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i64 @header(ptr %data, i64 %word) {
  %before = getelementptr i64, ptr %data, i64 -8
  %place = getelementptr i64, ptr %before, i64 %word
  %value = load i64, ptr %place, align 8
  ret i64 %value
}

define internal void @set_header(ptr %data, i64 %bytes, i64 %class, i64 %start, i64 %length) {
  %p0 = getelementptr i64, ptr %data, i64 -8
  store i64 %bytes, ptr %p0, align 8
  %p1 = getelementptr i64, ptr %data, i64 -7
  store i64 %class, ptr %p1, align 8
  %p2 = getelementptr i64, ptr %data, i64 -6
  store i64 %start, ptr %p2, align 8
  %p3 = getelementptr i64, ptr %data, i64 -5
  store i64 %length, ptr %p3, align 8
  ret void
}

define internal i64 @map(i64 %length) {
entry:
  %first = call ptr @mmap(ptr null, i64 %length, i32 3, i32 $ANONYMOUS$, i32 -1, i64 0)
  %number = ptrtoint ptr %first to i64
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %again, label %done
again:
  ; What waits may be what is missing.
  call void @gt_release()
  %second = call ptr @mmap(ptr null, i64 %length, i32 3, i32 $ANONYMOUS$, i32 -1, i64 0)
  %other = ptrtoint ptr %second to i64
  ret i64 %other
done:
  ret i64 %number
}

define internal void @hand_back(i64 %start, i64 %length) {
entry:
  %any = icmp ne i64 %length, 0
  br i1 %any, label %some, label %end
some:
  %address = inttoptr i64 %start to ptr
  %status = call i32 @munmap(ptr %address, i64 %length)
  br label %end
end:
  ret void
}

define internal ptr @fresh(i64 %bytes, i64 %class) {
entry:
  %absurd = icmp ugt i64 %bytes, 1125899906842624
  br i1 %absurd, label %none, label %go
none:
  ret ptr null
go:
  %huge = icmp uge i64 %bytes, $HUGE_FROM$
  %unit = select i1 %huge, i64 $HUGE_PAGE$, i64 $PAGE$
  %more = add i64 %bytes, $PAGE$
  %past = sub i64 %more, 1
  %pages = and i64 %past, -$PAGE$
  %length = add i64 %pages, $PAGE$
  %spare = sub i64 %unit, $PAGE$
  %all = add i64 %length, %spare
  %mapped = call i64 @map(i64 %all)
  %failed = icmp eq i64 %mapped, -1
  br i1 %failed, label %otherwise, label %align
otherwise:
  %other = call ptr @from_malloc(i64 %bytes)
  ret ptr %other
align:
  %least = add i64 %mapped, $PAGE$
  %up = add i64 %least, %unit
  %up1 = sub i64 %up, 1
  %mask = sub i64 0, %unit
  %begin = and i64 %up1, %mask
  %start = sub i64 %begin, $PAGE$
  %before = sub i64 %start, %mapped
  call void @hand_back(i64 %mapped, i64 %before)
  %end = add i64 %begin, %pages
  %behind = sub i64 %spare, %before
  call void @hand_back(i64 %end, i64 %behind)
  %data = inttoptr i64 %begin to ptr
  call void @set_header(ptr %data, i64 %bytes, i64 %class, i64 %start, i64 %length)
  br i1 %huge, label %advise, label %done
advise:
  %advised = call i32 @madvise(ptr %data, i64 %pages, i32 $ADVICE$)
  br label %done
done:
  ret ptr %data
}

define internal void @unmap(ptr %data) {
  %start = call i64 @header(ptr %data, i64 2)
  %length = call i64 @header(ptr %data, i64 3)
  call void @hand_back(i64 %start, i64 %length)
  ret void
}

define internal ptr @from_malloc(i64 %bytes) {
entry:
  %length = add i64 %bytes, 128
  %made = call ptr @malloc(i64 %length)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %some
none:
  ret ptr null
some:
  %start = ptrtoint ptr %made to i64
  %past = add i64 %start, 127
  %begin = and i64 %past, -64
  %data = inttoptr i64 %begin to ptr
  call void @set_header(ptr %data, i64 %bytes, i64 -2, i64 %start, i64 %length)
  ret ptr %data
}

define internal void @free_malloced(ptr %data) {
  %start = call i64 @header(ptr %data, i64 2)
  %address = inttoptr i64 %start to ptr
  call void @free(ptr %address)
  ret void
}
"""

# Small arenas all have one size, and one place each, apart from the others in memory. A thread,
# identified by its stack, looks at four places of its own; a call costs two atomic operations.
ARENAS = """
@homes = internal global [64 x [16 x ptr]] zeroinitializer, align 128

declare ptr @aligned_alloc(i64, i64)

define internal ptr @home(ptr %stack, i64 %step) {
  %number = ptrtoint ptr %stack to i64
  %which = lshr i64 %number, 20
  %mixed = mul i64 %which, -7046029254386353131
  %high = lshr i64 %mixed, 58
  %sum = add i64 %high, %step
  %place = and i64 %sum, 63
  %home = getelementptr [16 x ptr], ptr @homes, i64 %place
  ret ptr %home
}

define ptr @gt_take_small() {
entry:
  %stack = alloca i8
  br label %look
look:
  %step = phi i64 [ 0, %entry ], [ %next, %on ]
  %home = call ptr @home(ptr %stack, i64 %step)
  %seen = load atomic ptr, ptr %home monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %on, label %try
try:
  %got = atomicrmw xchg ptr %home, ptr null acq_rel
  %late = icmp eq ptr %got, null
  br i1 %late, label %on, label %done
done:
  ret ptr %got
on:
  %next = add i64 %step, 1
  %more = icmp ult i64 %next, 4
  br i1 %more, label %look, label %make
make:
  %made = call ptr @aligned_alloc(i64 64, i64 $SMALL$)
  ret ptr %made
}

define void @gt_give_small(ptr %data) {
entry:
  %stack = alloca i8
  br label %look
look:
  %step = phi i64 [ 0, %entry ], [ %next, %on ]
  %home = call ptr @home(ptr %stack, i64 %step)
  %swap = cmpxchg ptr %home, ptr null, ptr %data acq_rel monotonic
  %put = extractvalue { ptr, i1 } %swap, 1
  br i1 %put, label %done, label %on
on:
  %next = add i64 %step, 1
  %more = icmp ult i64 %next, 4
  br i1 %more, label %look, label %drop
drop:
  call void @free(ptr %data)
  br label %done
done:
  ret void
}
"""

# NumPy's memory handler (NEP 49): a name, a version, the first argument of every function, and
# functions like those of C. An array is freed by the handler it was made with.
HANDLER = """
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)

define internal ptr @new(ptr %context, i64 %bytes) {
entry:
  %large = icmp uge i64 %bytes, $FROM$
  br i1 %large, label %block, label %small
block:
  %taken = call ptr @gt_take(i64 %bytes)
  ret ptr %taken
small:
  %made = call ptr @from_malloc(i64 %bytes)
  ret ptr %made
}

define internal ptr @new_zeros(ptr %context, i64 %count, i64 %size) {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue { i64, i1 } %product, 0
  %absurd = extractvalue { i64, i1 } %product, 1
  br i1 %absurd, label %none, label %make
none:
  ret ptr null
make:
  %made = call ptr @new(ptr null, i64 %bytes)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %look
look:
  ; What is never kept comes from the system, as zeros.
  %class = call i64 @header(ptr %made, i64 1)
  %clean = icmp eq i64 %class, -1
  br i1 %clean, label %done, label %clear
clear:
  %same = call ptr @memset(ptr %made, i32 0, i64 %bytes)
  br label %done
done:
  ret ptr %made
}

define internal ptr @renew(ptr %context, ptr %data, i64 %bytes) {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %first, label %look
first:
  %only = call ptr @new(ptr null, i64 %bytes)
  ret ptr %only
look:
  %room = call i64 @header(ptr %data, i64 0)
  %half = lshr i64 %room, 1
  %fits = icmp ule i64 %bytes, %room
  %much = icmp uge i64 %bytes, %half
  %stays = and i1 %fits, %much
  br i1 %stays, label %same, label %move
same:
  ret ptr %data
move:
  %made = call ptr @new(ptr null, i64 %bytes)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %copy
none:
  ret ptr null
copy:
  %count = call i64 @llvm.umin.i64(i64 %room, i64 %bytes)
  %copied = call ptr @memcpy(ptr %made, ptr %data, i64 %count)
  call void @gt_give(ptr %data)
  ret ptr %made
}

define internal void @drop(ptr %context, ptr %data, i64 %bytes) {
  call void @gt_give(ptr %data)
  ret void
}

@handler = internal global { [127 x i8], i8, ptr, ptr, ptr, ptr, ptr } {
  [127 x i8] c"gradtape$PADDING$", i8 1,
  ptr null, ptr @new, ptr @new_zeros, ptr @renew, ptr @drop
}, align 64

define ptr @gt_handler() {
  ret ptr @handler
}
""".replace("$PADDING$", r"\00" * (127 - len("gradtape")))
