"""Kept memory in native code: blocks that were given back wait for the next call, up to a bound.

Sizes go up by eighths of powers of two, from 64 kB on. For each there is a row of places in which
blocks wait, used like a stack. Before its data a block has a header: its bytes, the row it belongs
to, the start and length of its mapping, and how many bytes were asked for.

There is no lock. A block is put into its place, and taken out of it, by one atomic operation: any
thread may come at any time, a finaliser may run within another call, and a child finds the places
in order after a fork. At worst it has lost the one block that another thread just held. The rest of
the shared state only says where to look first, and how much memory waits in all.

Counters say how many bytes are in use, for whoever measures memory (`allocations`). They count only
while somebody does: otherwise a call reads one word more.
"""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.native_source import NativeSource

# Arenas up to this size are not sorted by size: each thread keeps one ready.
SMALL = 1 << 16
# Results of at least this many bytes come from blocks. Smaller ones are left to `malloc`.
FROM = 1 << 17

# When a new block is mapped, others may wait as long as all together stay below the most that was
# ever in use, an eighth of it, and this many bytes.
_SLACK = 1 << 24

_FIRST, _LAST = 16, 37  # the logarithms of the smallest and of the largest size
_ROWS = (_LAST - _FIRST) * 8 + 1
_PLACES = 512  # places for blocks of a size; a power of two
TABLE_BYTES = _ROWS * _PLACES * 8
# Blocks from this size on begin at a huge page and ask for huge pages, as NumPy's do.
_HUGE_FROM, _HUGE_PAGE = 1 << 22, 1 << 21

# How many measure at the moment, the bytes in use, the most there were, and all that were taken.
COUNTERS = ("meters", "in_use", "peak", "taken")

EXPORTS = (
    *("gt_take", "gt_give", "gt_take_small", "gt_give_small"),
    *("gt_keep", "gt_kept", "gt_release", "gt_handler"),
    *("gt_counters", "gt_count", "gt_restart_peak"),
)


def source(page: int, anonymous: int, huge: int | None) -> NativeSource:
    """The functions for this system.

    Args:
        page: Bytes of a page.
        anonymous: The flags of `mmap` for private memory without a file.
        huge: The advice for `madvise` to get huge pages; None not to ask for them.
    """
    constants = {
        "PAGE": page,
        "ANONYMOUS": anonymous,
        "HUGE_FROM": (1 << 63) - 1 if huge is None else _HUGE_FROM,
        "HUGE_PAGE": _HUGE_PAGE,
        "ADVICE": huge or 0,
        "SMALL": SMALL,
        "FROM": FROM,
        "LARGEST": 1 << _LAST,
        "SLACK": _SLACK,
        "SMALLEST": 1 << _FIRST,
        "ABSURD": 1 << 50,
        "FIRST": _FIRST,
        "ROWS": _ROWS,
        "PLACES": _PLACES,
        # The words of a header, counted from the data, and values of ROW for blocks without a row.
        "BYTES": -8,
        "ROW": -7,
        "START": -6,
        "LENGTH": -5,
        "ASKED": -4,
        "NOT_KEPT": -1,
        "MALLOCED": -2,
    }
    constants |= {f"COUNTER.{name}": number for number, name in enumerate(COUNTERS)}
    functions = (_COUNTERS, _SIZES, _SYSTEM, _PLACES_OF_ROWS, _BLOCKS, _ARENAS, _HANDLER)
    return NativeSource("\n".join(functions), constants, _STATE)


# `used` marks rows that were requested since the hand last passed, as in the clock algorithm.
# `homes` are the places of small arenas. The handler is what NumPy expects (NEP 49): a name, a
# version, the first argument of every function, and functions like those of C.
_PADDING = r"\00" * (127 - len("gradtape"))
_STATE = f"""
@bound = internal global i64 0, align 8
@counters = internal global [{len(COUNTERS)} x i64] zeroinitializer, align 128
@table = internal global ptr null, align 8
@hand = internal global i64 0, align 8
@kept = internal global i64 0, align 128
@live = internal global i64 0, align 128
@most_live = internal global i64 0, align 8
@counts = internal global [{_ROWS} x i64] zeroinitializer, align 128
@used = internal global [{_ROWS} x i8] zeroinitializer, align 128
@homes = internal global [64 x [16 x ptr]] zeroinitializer, align 128
@handler = internal global {{ [127 x i8], i8, ptr, ptr, ptr, ptr, ptr }} {{
  [127 x i8] c"gradtape{_PADDING}", i8 1,
  ptr null, ptr @new, ptr @new_zeros, ptr @renew, ptr @drop
}}, align 64
"""

# Of memory that somebody holds: blocks that wait are not in use. The counters start anywhere, as
# what was taken before they were on is not in them; only differences mean something.
_COUNTERS = """
def gt_counters() -> ptr:
    return counters

def gt_count(bytes: i64):
    count(bytes)

@inline
def count(bytes: i64):
    if monotonic.i64[counters, COUNTER.meters] != 0:
        add_up(bytes)

def add_up(bytes: i64):
    now = monotonic.add(counters + 8 * COUNTER.in_use, bytes) + bytes
    if bytes > 0:
        monotonic.add(counters + 8 * COUNTER.taken, bytes)
        monotonic.max(counters + 8 * COUNTER.peak, now)

# Begins a new peak at what is in use now; returns the last one.
def gt_restart_peak() -> i64:
    return monotonic.xchg(counters + 8 * COUNTER.peak, monotonic.i64[counters, COUNTER.in_use])
"""

_SIZES = """
def gt_keep(most: i64, places: ptr):
    ptr[table] = places
    seq_cst.i64[bound] = most

def gt_kept() -> i64:
    return monotonic.i64[kept]

# The row for blocks of this many bytes; -1 if they are not kept.
def row_of(bytes: i64) -> i64:
    if ugt(bytes, umin(monotonic.i64[bound], LARGEST)):
        return NOT_KEPT
    if bytes <= SMALLEST:
        return 0
    log = 63 - ctlz(bytes - 1, True)
    return (log - FIRST) * 8 + (bytes - 1 >> log - 3) - 7

def bytes_of(row: i64) -> i64:
    if row == 0:
        return SMALLEST
    before = row - 1
    return (before & 7) + 9 << (before >> 3) + FIRST - 3
"""

# A mapping is a page with the header at its end, then the data, up to the next page. The data of
# large ones begin at a huge page: the excess mapped before and after for that is given back.
#
# Blocks come from `mmap` and not from `malloc`, since glibc takes the size of a freed block as the
# limit up to which it keeps everyone's memory (decision 0016). When all 65530 mappings that Linux
# allows are used up, `malloc` may still have memory.
_SYSTEM = """
def mmap(at: ptr, length: i64, access: i32, flags: i32, file: i32, offset: i64) -> ptr: ...
def munmap(start: ptr, length: i64) -> i32: ...
def madvise(start: ptr, length: i64, advice: i32) -> i32: ...
def malloc(bytes: i64) -> ptr: ...
def aligned_alloc(unit: i64, bytes: i64) -> ptr: ...
def free(data: ptr): ...

def set_header(data: ptr, bytes: i64, row: i64, start: i64, length: i64):
    i64[data, BYTES] = bytes
    i64[data, ROW] = row
    i64[data, START] = start
    i64[data, LENGTH] = length

def map(length: i64) -> i64:
    start = i64(mmap(null, length, 3, ANONYMOUS, -1, 0))
    if start != -1:
        return start
    # What waits may be what is missing.
    gt_release()
    return i64(mmap(null, length, 3, ANONYMOUS, -1, 0))

def hand_back(start: i64, length: i64):
    if length != 0:
        munmap(ptr(start), length)

def fresh(bytes: i64, row: i64) -> ptr:
    if ugt(bytes, ABSURD):
        return null
    unit = HUGE_PAGE if bytes >= HUGE_FROM else PAGE
    pages = bytes + PAGE - 1 & -PAGE
    spare = unit - PAGE
    mapped = map(PAGE + pages + spare)
    if mapped == -1:
        return from_malloc(bytes)
    begin = mapped + PAGE + unit - 1 & 0 - unit
    start = begin - PAGE
    hand_back(mapped, start - mapped)
    hand_back(begin + pages, mapped + spare - start)
    data = ptr(begin)
    set_header(data, bytes, row, start, PAGE + pages)
    if bytes >= HUGE_FROM:
        madvise(data, pages, ADVICE)
    return data

def unmap(data: ptr):
    hand_back(i64[data, START], i64[data, LENGTH])

def from_malloc(bytes: i64) -> ptr:
    made = malloc(bytes + 128)
    if not made:
        return null
    data = ptr(i64(made) + 127 & -64)
    set_header(data, bytes, MALLOCED, i64(made), bytes + 128)
    return data
"""

# Threads that come in between leave holes in a row, so all of it is searched.
_PLACES_OF_ROWS = """
def place(row: i64, number: i64) -> ptr:
    return ptr[table] + 8 * (row * PLACES + (number & PLACES - 1))

def pop(row: i64) -> ptr:
    count = monotonic.i64[counts, row]
    if count > 0:
        for step in range(1, PLACES + 1):
            at = place(row, count - step)
            if monotonic.ptr[at]:
                data = acq_rel.xchg(at, null)
                if data:
                    monotonic.sub(counts + 8 * row, 1)
                    monotonic.sub(kept, bytes_of(row))
                    return data
    return null

def push(data: ptr, row: i64) -> i1:
    count = monotonic.i64[counts, row]
    if count < PLACES:
        for step in range(PLACES):
            if acq_rel.swap(place(row, count + step), null, data):
                monotonic.add(counts + 8 * row, 1)
                return True
    return False

# Unmaps blocks of one row until all that waits is within the bound; false if that is not enough.
def evict(row: i64, most: i64) -> i1:
    while ugt(monotonic.i64[kept], most):
        data = pop(row)
        if not data:
            return False
        unmap(data)
    return True

# Makes room for a block at the cost of the next row that has some, unless that was asked for since
# the last time: then it is spared, and there is no room.
def make_room(row: i64, most: i64) -> i1:
    start = monotonic.i64[hand]
    for step in range(1, ROWS + 1):
        other = (start + step) % ROWS
        if other != row and monotonic.i64[counts, other] > 0:
            monotonic.i64[hand] = other
            if monotonic.i8[used, other] == 0:
                return evict(other, most)
            monotonic.i8[used, other] = 0
            return False
    return False
"""

_BLOCKS = """
def gt_take(bytes: i64) -> ptr:
    return in_use(take(bytes), bytes)

# Notes how much was asked for: it is what is counted, also when the block is given back.
def in_use(data: ptr, bytes: i64) -> ptr:
    if data:
        i64[data, ASKED] = bytes
        count(bytes)
    return data

def take(bytes: i64) -> ptr:
    row = row_of(bytes)
    if row < 0:
        return fresh(bytes, NOT_KEPT)
    if monotonic.i8[used, row] == 0:
        monotonic.i8[used, row] = 1
    bytes = bytes_of(row)
    now = monotonic.add(live, bytes) + bytes
    if now > monotonic.i64[most_live]:
        monotonic.max(most_live, now)
    waiting = pop(row)
    if waiting:
        return waiting
    most = monotonic.i64[most_live]
    room = most + (most >> 3) + SLACK - now
    # The first round may spare rows that were asked for lately.
    for step in range(2 * ROWS):
        if ule(monotonic.i64[kept], room):
            break
        make_room(row, room)
    return fresh(bytes, row)

def gt_give(data: ptr):
    if not data:
        return
    count(0 - i64[data, ASKED])
    row = i64[data, ROW]
    if row == MALLOCED:
        free(ptr(i64[data, START]))
        return
    if row != NOT_KEPT:
        bytes = bytes_of(row)
        monotonic.sub(live, bytes)
        most = monotonic.i64[bound]
        now = monotonic.add(kept, bytes) + bytes
        if (ule(now, most) or make_room(row, most)) and push(data, row):
            return
        monotonic.sub(kept, bytes)
    unmap(data)

# Hands back to the system all that waits, but for small arenas.
def gt_release():
    for row in range(ROWS):
        while True:
            data = pop(row)
            if not data:
                break
            unmap(data)
"""

# Small arenas all have one size, and one place each, apart from the others in memory. A thread,
# identified by its stack, looks at four places of its own; a call costs two atomic operations.
_ARENAS = """
def home(here: ptr, step: i64) -> ptr:
    number = (i64(here) >> 20) * -7046029254386353131 >> 58
    return homes + 128 * (number + step & 63)

def gt_take_small() -> ptr:
    here = stack(1)
    for step in range(4):
        at = home(here, step)
        if monotonic.ptr[at]:
            data = acq_rel.xchg(at, null)
            if data:
                count(SMALL)
                return data
    made = aligned_alloc(64, SMALL)
    if made:
        count(SMALL)
    return made

def gt_give_small(data: ptr):
    here = stack(1)
    count(0 - SMALL)
    for step in range(4):
        if acq_rel.swap(home(here, step), null, data):
            return
    free(data)
"""

# NumPy's memory handler. An array is freed by the handler it was made with.
_HANDLER = """
def memcpy(to: ptr, source: ptr, bytes: i64) -> ptr: ...
def memset(data: ptr, byte: i32, bytes: i64) -> ptr: ...

def gt_handler() -> ptr:
    return handler

def new(context: ptr, bytes: i64) -> ptr:
    if uge(bytes, FROM):
        return gt_take(bytes)
    return in_use(from_malloc(bytes), bytes)

def new_zeros(context: ptr, count: i64, size: i64) -> ptr:
    if size != 0 and ugt(count, ABSURD // size):
        return null
    data = new(null, count * size)
    # What is never kept comes from the system, as zeros.
    if data and i64[data, ROW] != NOT_KEPT:
        memset(data, 0, count * size)
    return data

def renew(context: ptr, data: ptr, bytes: i64) -> ptr:
    if not data:
        return new(null, bytes)
    room = i64[data, BYTES]
    if ule(bytes, room) and uge(bytes, room >> 1):
        count(bytes - i64[data, ASKED])
        i64[data, ASKED] = bytes
        return data
    moved = new(null, bytes)
    if moved:
        memcpy(moved, data, umin(room, bytes))
        gt_give(data)
    return moved

def drop(context: ptr, data: ptr, bytes: i64):
    gt_give(data)
"""
