"""Kept memory as LLVM IR: blocks that were given back wait for the next call, up to a bound.

Sizes go up by eighths of powers of two, from 64 kB on. For each there is a row of places in which
blocks wait, used like a stack. Before its data a block has a header: its bytes, the number of its
size, and the start and length of its mapping.

There is no lock. A block is put into its place, and taken out of it, by one atomic operation: any
thread may come at any time, a finaliser may run within another call, and a child finds the places
in order after a fork. At worst it has lost the one block that another thread just held. The rest of
the shared state only says where to look first, and how much memory waits in all.
"""

from __future__ import annotations

from gradtape.compiler.cpu.runtime.blocks_system_ir import ARENAS, HANDLER, SYSTEM

# Arenas up to this size are not sorted by size: each thread keeps one ready.
SMALL = 1 << 16
# Results of at least this many bytes come from blocks. Smaller ones are left to `malloc`.
FROM = 1 << 17

_FIRST, _LAST = 16, 37  # the logarithms of the smallest and of the largest size
_CLASSES = (_LAST - _FIRST) * 8 + 1
_ROW = 512  # places for blocks of a size; a power of two
TABLE_BYTES = _CLASSES * _ROW * 8
# Blocks from this size on begin at a huge page and ask for huge pages, as NumPy's do.
_HUGE_FROM, _HUGE_PAGE = 1 << 22, 1 << 21

EXPORTS = (
    *("gt_take", "gt_give", "gt_take_small", "gt_give_small"),
    *("gt_keep", "gt_kept", "gt_release", "gt_handler"),
)


def text(page: int, anonymous: int, huge: int | None) -> str:
    """The module.

    Args:
        page: Bytes of a page.
        anonymous: The flags of `mmap` for private memory without a file.
        huge: The advice for `madvise` to get huge pages; None not to ask for them.
    """
    settings = {
        "PAGE": page,
        "ANONYMOUS": anonymous,
        "HUGE_FROM": (1 << 63) - 1 if huge is None else _HUGE_FROM,
        "HUGE_PAGE": _HUGE_PAGE,
        "ADVICE": huge or 0,
        "SMALL": SMALL,
        "FROM": FROM,
        "LARGEST": 1 << _LAST,
        "SMALLEST": 1 << _FIRST,
        "FIRST": _FIRST,
        "CLASSES": _CLASSES,
        "ROW": _ROW,
    }
    module = "\n".join((_STATE, _SIZES, SYSTEM, _ROWS, _BLOCKS, ARENAS, HANDLER))
    for name, value in settings.items():
        module = module.replace(f"${name}$", str(value))
    return module


# `used` marks sizes that were requested since the hand last passed, as in the clock algorithm.
_STATE = """
@bound = internal global i64 0, align 8
@table = internal global ptr null, align 8
@hand = internal global i64 0, align 8
@kept = internal global i64 0, align 128
@counts = internal global [$CLASSES$ x i64] zeroinitializer, align 128
@used = internal global [$CLASSES$ x i8] zeroinitializer, align 128

declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)

define void @gt_keep(i64 %bound, ptr %table) {
  store ptr %table, ptr @table, align 8
  store atomic i64 %bound, ptr @bound seq_cst, align 8
  ret void
}

define i64 @gt_kept() {
  %kept = load atomic i64, ptr @kept monotonic, align 8
  ret i64 %kept
}
"""

# The number of a size, -1 for one that is not kept, and back.
_SIZES = """
define internal i64 @class_of(i64 %bytes) {
entry:
  %bound = load atomic i64, ptr @bound monotonic, align 8
  %most = call i64 @llvm.umin.i64(i64 %bound, i64 $LARGEST$)
  %beyond = icmp ugt i64 %bytes, %most
  br i1 %beyond, label %none, label %some
none:
  ret i64 -1
some:
  %small = icmp ule i64 %bytes, $SMALLEST$
  br i1 %small, label %first, label %find
first:
  ret i64 0
find:
  %less = sub i64 %bytes, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 true)
  %log = sub i64 63, %zeros
  %shift = sub i64 %log, 3
  %eighths = lshr i64 %less, %shift
  %powers = sub i64 %log, $FIRST$
  %before = mul i64 %powers, 8
  %sum = add i64 %before, %eighths
  %class = sub i64 %sum, 7
  ret i64 %class
}

define internal i64 @bytes_of(i64 %class) {
entry:
  %first = icmp eq i64 %class, 0
  br i1 %first, label %smallest, label %other
smallest:
  ret i64 $SMALLEST$
other:
  %before = sub i64 %class, 1
  %powers = lshr i64 %before, 3
  %above = and i64 %before, 7
  %eighths = add i64 %above, 9
  %log = add i64 %powers, $FIRST$
  %shift = sub i64 %log, 3
  %bytes = shl i64 %eighths, %shift
  ret i64 %bytes
}
"""

# Threads that come in between leave holes in a row, so all of it is searched.
_ROWS = """
define internal ptr @place(i64 %class, i64 %number) {
  %table = load ptr, ptr @table, align 8
  %row = getelementptr [$ROW$ x ptr], ptr %table, i64 %class
  %within = urem i64 %number, $ROW$
  %place = getelementptr ptr, ptr %row, i64 %within
  ret ptr %place
}

define internal ptr @pop(i64 %class) {
entry:
  %counter = getelementptr i64, ptr @counts, i64 %class
  %count = load atomic i64, ptr %counter monotonic, align 8
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %look, label %none
look:
  %step = phi i64 [ 1, %entry ], [ %next, %on ]
  %below = sub i64 %count, %step
  %place = call ptr @place(i64 %class, i64 %below)
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %hole = icmp eq ptr %seen, null
  br i1 %hole, label %on, label %try
try:
  %got = atomicrmw xchg ptr %place, ptr null acq_rel
  %late = icmp eq ptr %got, null
  br i1 %late, label %on, label %taken
taken:
  %counted = atomicrmw sub ptr %counter, i64 1 monotonic
  %bytes = call i64 @bytes_of(i64 %class)
  %before = atomicrmw sub ptr @kept, i64 %bytes monotonic
  ret ptr %got
on:
  %next = add i64 %step, 1
  %more = icmp ule i64 %next, $ROW$
  br i1 %more, label %look, label %none
none:
  ret ptr null
}

define internal i1 @push(ptr %data, i64 %class) {
entry:
  %counter = getelementptr i64, ptr @counts, i64 %class
  %count = load atomic i64, ptr %counter monotonic, align 8
  %room = icmp slt i64 %count, $ROW$
  br i1 %room, label %look, label %full
look:
  %step = phi i64 [ 0, %entry ], [ %next, %on ]
  %above = add i64 %count, %step
  %place = call ptr @place(i64 %class, i64 %above)
  %swap = cmpxchg ptr %place, ptr null, ptr %data acq_rel monotonic
  %put = extractvalue { ptr, i1 } %swap, 1
  br i1 %put, label %done, label %on
done:
  %counted = atomicrmw add ptr %counter, i64 1 monotonic
  ret i1 true
on:
  %next = add i64 %step, 1
  %more = icmp ult i64 %next, $ROW$
  br i1 %more, label %look, label %full
full:
  ret i1 false
}

; Unmaps blocks of one size until all that waits is within the bound; false if that is not enough.
define internal i1 @evict(i64 %class, i64 %bound) {
entry:
  br label %again
again:
  %kept = load atomic i64, ptr @kept monotonic, align 8
  %over = icmp ugt i64 %kept, %bound
  br i1 %over, label %one, label %enough
one:
  %data = call ptr @pop(i64 %class)
  %none = icmp eq ptr %data, null
  br i1 %none, label %empty, label %drop
drop:
  call void @unmap(ptr %data)
  br label %again
enough:
  ret i1 true
empty:
  ret i1 false
}

; Makes room for a block at the cost of the next size that has some, unless that was asked for
; since the last time: then it is spared, and there is no room.
define internal i1 @make_room(i64 %class, i64 %bound) {
entry:
  %hand = load atomic i64, ptr @hand monotonic, align 8
  br label %look
look:
  %step = phi i64 [ 1, %entry ], [ %next, %on ]
  %sum = add i64 %hand, %step
  %other = urem i64 %sum, $CLASSES$
  %same = icmp eq i64 %other, %class
  %counter = getelementptr i64, ptr @counts, i64 %other
  %count = load atomic i64, ptr %counter monotonic, align 8
  %empty = icmp sle i64 %count, 0
  %skip = or i1 %same, %empty
  br i1 %skip, label %on, label %found
found:
  store atomic i64 %other, ptr @hand monotonic, align 8
  %mark = getelementptr i8, ptr @used, i64 %other
  %used = load atomic i8, ptr %mark monotonic, align 1
  %asked = icmp ne i8 %used, 0
  br i1 %asked, label %spare, label %squeeze
spare:
  store atomic i8 0, ptr %mark monotonic, align 1
  ret i1 false
squeeze:
  %room = call i1 @evict(i64 %other, i64 %bound)
  ret i1 %room
on:
  %next = add i64 %step, 1
  %more = icmp ule i64 %next, $CLASSES$
  br i1 %more, label %look, label %none
none:
  ret i1 false
}
"""

_BLOCKS = """
define ptr @gt_take(i64 %bytes) {
entry:
  %class = call i64 @class_of(i64 %bytes)
  %passing = icmp slt i64 %class, 0
  br i1 %passing, label %exact, label %search
exact:
  %passed = call ptr @fresh(i64 %bytes, i64 -1)
  ret ptr %passed
search:
  %mark = getelementptr i8, ptr @used, i64 %class
  %used = load atomic i8, ptr %mark monotonic, align 1
  %marked = icmp ne i8 %used, 0
  br i1 %marked, label %look, label %note
note:
  store atomic i8 1, ptr %mark monotonic, align 1
  br label %look
look:
  %waiting = call ptr @pop(i64 %class)
  %missing = icmp eq ptr %waiting, null
  br i1 %missing, label %make, label %again
again:
  ret ptr %waiting
make:
  %whole = call i64 @bytes_of(i64 %class)
  %made = call ptr @fresh(i64 %whole, i64 %class)
  ret ptr %made
}

define void @gt_give(ptr %data) {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %end, label %look
look:
  %class = call i64 @header(ptr %data, i64 1)
  %ours = icmp sge i64 %class, 0
  br i1 %ours, label %keep, label %other
other:
  %passing = icmp eq i64 %class, -1
  br i1 %passing, label %drop, label %to_malloc
to_malloc:
  call void @free_malloced(ptr %data)
  ret void
keep:
  %bytes = call i64 @bytes_of(i64 %class)
  %bound = load atomic i64, ptr @bound monotonic, align 8
  %before = atomicrmw add ptr @kept, i64 %bytes monotonic
  %now = add i64 %before, %bytes
  %over = icmp ugt i64 %now, %bound
  br i1 %over, label %squeeze, label %put
squeeze:
  %room = call i1 @make_room(i64 %class, i64 %bound)
  br i1 %room, label %put, label %refuse
put:
  %done = call i1 @push(ptr %data, i64 %class)
  br i1 %done, label %end, label %refuse
refuse:
  %was = atomicrmw sub ptr @kept, i64 %bytes monotonic
  br label %drop
drop:
  call void @unmap(ptr %data)
  ret void
end:
  ret void
}

; Hands back to the system all that waits, but for small arenas.
define void @gt_release() {
entry:
  br label %class
class:
  %number = phi i64 [ 0, %entry ], [ %next, %on ]
  br label %block
block:
  %data = call ptr @pop(i64 %number)
  %none = icmp eq ptr %data, null
  br i1 %none, label %on, label %drop
drop:
  call void @unmap(ptr %data)
  br label %block
on:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, $CLASSES$
  br i1 %more, label %class, label %end
end:
  ret void
}
"""
