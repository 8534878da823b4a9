"""The thread pool as LLVM IR: one job at a time, whose chunks are claimed one by one.

The state of a job is one 64-bit word, `generation << 32 | low << 16 | high`: chunks low to high - 1
are not claimed yet. The caller claims from below and workers from above, by a compare-and-swap, so
that every chunk is run exactly once, a claim of an old job cannot succeed (its generation is gone),
and consecutive jobs over the same arrays find a thread at the same end of them. The caller claims
until nothing is left, and then waits only for chunks that are already running: a worker that
sleeps, or was never started, delays no one.

Idle workers spin for a while, then sleep on a word of their own (a futex). A thread that finds more
chunks than awake workers wakes two, and these wake others: a call pays for two wake-ups at most.

Only one job runs at a time. A caller that finds the pool busy (another thread's job, or a call from
inside a chunk) runs its chunks itself, one after the other.
"""

from __future__ import annotations

import platform
import sys

from gradtape.compiler.cpu.runtime.pool_threads_ir import THREADS

# The number of the futex call on the systems that we know; `long` has 64 bits on all of them.
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}

# The instruction that tells the CPU that a loop is waiting.
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

MAX_THREADS = 1024
STACK_BYTES = 4 * 2**20  # the stack of a worker, whatever the system's default
SPIN_NANOSECONDS = 50_000
WAKE_NANOSECONDS = 20_000  # about the time after which waking a worker has paid off
EXPORTS = ("gt_parallel", "gt_parallel_long", "gt_pool_threads", "gt_pool_reset")


def text(*, threads: bool = True) -> str:
    """The module for this system; without futexes, one that runs every job serially.

    Args:
        threads: False for the serial one in any case.
    """
    machine = platform.machine()
    if not threads or sys.platform != "linux" or sys.maxsize < 2**32 or machine not in _FUTEX:
        return _SERIAL + _NO_THREADS
    declaration, pause = _PAUSE.get(machine, ("", ""))
    settings = {
        "FUTEX": _FUTEX[machine],
        "DECLARE_PAUSE": declaration,
        "PAUSE": pause,
        "THREADS": MAX_THREADS,
        "SPIN": SPIN_NANOSECONDS,
        "PRICE": WAKE_NANOSECONDS,
        "STACK": STACK_BYTES,
    }
    module = "\n".join((_STATE, _SERIAL, THREADS, _WEIGH, _JOB, _ENTRY))
    for name, value in settings.items():
        module = module.replace(f"${name}$", str(value))
    return module


_SERIAL = """
define internal void @serial(ptr %body, ptr %context, i64 %chunks) {
entry:
  %any = icmp sgt i64 %chunks, 0
  br i1 %any, label %loop, label %end
loop:
  %chunk = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %body(ptr %context, i64 %chunk)
  %next = add i64 %chunk, 1
  %more = icmp slt i64 %next, %chunks
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""

_NO_THREADS = """
define void @gt_parallel(ptr %body, ptr %context, i64 %chunks) {
  call void @serial(ptr %body, ptr %context, i64 %chunks)
  ret void
}
define void @gt_parallel_long(ptr %body, ptr %context, i64 %chunks) {
  call void @serial(ptr %body, ptr %context, i64 %chunks)
  ret void
}
define void @gt_pool_threads(i64 %threads) {
  ret void
}
define void @gt_pool_reset() {
  ret void
}
"""

# Variables written for every job have cache lines of their own, apart from those only read.
# A slot is the word a worker sleeps on: 0 awake, 1 asleep until there is work, 2 asleep because
# fewer threads are wanted. `pending` counts the chunks not finished; its bit 30 says that the
# caller sleeps on it.
_STATE = """
@word = internal global i64 0, align 128
@body = internal global ptr null, align 8
@context = internal global ptr null, align 8
@base = internal global i64 0, align 8
@pending = internal global i32 0, align 128
@busy = internal global i32 0, align 128
@debt = internal global i64 0, align 8
@last_job = internal global i64 0, align 8
@sleepers = internal global i32 0, align 128
@limit = internal global i32 1, align 128
@started = internal global i32 0, align 4
@tried = internal global i32 0, align 4
@slots = internal global [$THREADS$ x [16 x i32]] zeroinitializer, align 128

declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
$DECLARE_PAUSE$

define internal i64 @now() {
  %time = alloca { i64, i64 }
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %nanoseconds = load i64, ptr %rest
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %nanoseconds
  ret i64 %sum
}

define internal void @sleep_on(ptr %word, i32 %value) {
  %status = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr %word, i64 128, i32 %value, ptr null)
  ret void
}

define internal void @wake_from(ptr %word) {
  %status = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr %word, i64 129, i64 1)
  ret void
}

define internal i64 @unclaimed(i64 %word) {
  %high = and i64 %word, 65535
  %above = lshr i64 %word, 16
  %low = and i64 %above, 65535
  %left = sub i64 %high, %low
  ret i64 %left
}
"""

# The caller's part while workers that it could use are asleep. Waking one costs the caller some
# microseconds, which a short job does not win back; but many short jobs, one after the other,
# would. So the time that a second thread would have saved is added up, as a debt, over jobs that
# follow each other closely; the workers are woken when the debt plus the expected saving of this
# job reach the price.
_WEIGH = """
define internal i32 @take_and_weigh() {
entry:
  %start = call i64 @now()
  %last = load i64, ptr @last_job, align 8
  %gap = sub i64 %start, %last
  %apart = icmp sgt i64 %gap, $SPIN$
  %known = load i64, ptr @debt, align 8
  %debt = select i1 %apart, i64 0, i64 %known
  br label %again
again:
  %done = phi i64 [ 0, %entry ], [ %next, %weigh ]
  %spent = phi i64 [ 0, %entry ], [ %elapsed, %weigh ]
  %ran = call i1 @take_one(i64 65536)
  br i1 %ran, label %weigh, label %end
weigh:
  %next = add i64 %done, 1
  %now = call i64 @now()
  %elapsed = sub i64 %now, %start
  %word = load atomic i64, ptr @word monotonic, align 8
  %left = call i64 @unclaimed(i64 %word)
  %product = mul i64 %elapsed, %left
  %ahead = sdiv i64 %product, %next
  %saving = sdiv i64 %ahead, 2
  %stake = add i64 %debt, %saving
  %worth = icmp sgt i64 %stake, $PRICE$
  br i1 %worth, label %wake, label %again
wake:
  store i64 0, ptr @debt, align 8
  call void @summon(i64 %left)
  %more = call i32 @take_all(i64 65536)
  %before = trunc i64 %next to i32
  %sum = add i32 %before, %more
  ret i32 %sum
end:
  %missed = sdiv i64 %spent, 2
  %owed = add i64 %debt, %missed
  store i64 %owed, ptr @debt, align 8
  %finish = add i64 %start, %spent
  store i64 %finish, ptr @last_job, align 8
  %all = trunc i64 %done to i32
  ret i32 %all
}
"""

# One job of at most 65535 chunks, by the owner of `busy`. Waiting, the caller first spins, then
# offers its core (the worker it waits for may be queued behind it), then sleeps.
_JOB = """
define internal void @await_others() {
entry:
  %start = call i64 @now()
  %until = add i64 %start, $SPIN$
  br label %look
look:
  %turn = phi i32 [ 0, %entry ], [ %turns, %spin ], [ %turns, %yield ]
  %pending = load atomic i32, ptr @pending acquire, align 4
  %over = icmp eq i32 %pending, 0
  br i1 %over, label %end, label %spin
spin:
  $PAUSE$
  %turns = add i32 %turn, 1
  %low = and i32 %turns, 127
  %time = icmp eq i32 %low, 0
  br i1 %time, label %yield, label %look
yield:
  %yielded = call i32 @sched_yield()
  %now = call i64 @now()
  %late = icmp sgt i64 %now, %until
  br i1 %late, label %sleep, label %look
sleep:
  %seen = load atomic i32, ptr @pending acquire, align 4
  %count = and i32 %seen, 1073741823
  %none = icmp eq i32 %count, 0
  br i1 %none, label %end, label %announce
announce:
  %flagged = or i32 %seen, 1073741824
  %swap = cmpxchg ptr @pending, i32 %seen, i32 %flagged acq_rel acquire, align 4
  %agreed = extractvalue { i32, i1 } %swap, 1
  br i1 %agreed, label %block, label %sleep
block:
  call void @sleep_on(ptr @pending, i32 %flagged)
  br label %sleep
end:
  ret void
}

define internal void @run_job(ptr %body, ptr %context, i64 %base, i64 %chunks, i1 %long) {
entry:
  store atomic ptr %body, ptr @body monotonic, align 8
  store atomic ptr %context, ptr @context monotonic, align 8
  store atomic i64 %base, ptr @base monotonic, align 8
  %count = trunc i64 %chunks to i32
  store atomic i32 %count, ptr @pending monotonic, align 4
  %old = load atomic i64, ptr @word monotonic, align 8
  %generation = and i64 %old, -4294967296
  %next = add i64 %generation, 4294967296
  %word = or i64 %next, %chunks
  %before = atomicrmw xchg ptr @word, i64 %word seq_cst
  %others = sub i64 %chunks, 1
  %missing = call i32 @missing(i64 %others)
  %cold = icmp sgt i32 %missing, 0
  br i1 %cold, label %wake, label %hot
wake:
  br i1 %long, label %at_once, label %maybe
at_once:
  call void @summon(i64 %others)
  br label %hot
hot:
  %directly = call i32 @take_all(i64 65536)
  br label %claimed
maybe:
  %carefully = call i32 @take_and_weigh()
  br label %claimed
claimed:
  %mine = phi i32 [ %directly, %hot ], [ %carefully, %maybe ]
  %all = icmp eq i32 %mine, %count
  br i1 %all, label %end, label %report
report:
  %pending = atomicrmw sub ptr @pending, i32 %mine acq_rel
  %over = icmp eq i32 %pending, %mine
  br i1 %over, label %end, label %wait
wait:
  call void @await_others()
  br label %end
end:
  ret void
}
"""

_ENTRY = """
define internal void @parallel(ptr %body, ptr %context, i64 %chunks, i1 %long) {
entry:
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %threads = icmp sgt i32 %limit, 1
  %several = icmp sgt i64 %chunks, 1
  %worth = and i1 %threads, %several
  br i1 %worth, label %ask, label %alone
ask:
  %taken = load atomic i32, ptr @busy monotonic, align 4
  %free = icmp eq i32 %taken, 0
  br i1 %free, label %lock, label %alone
lock:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %owned = extractvalue { i32, i1 } %swap, 1
  br i1 %owned, label %prepare, label %alone
alone:
  call void @serial(ptr %body, ptr %context, i64 %chunks)
  ret void
prepare:
  %tried = load atomic i32, ptr @tried monotonic, align 4
  %fewer = icmp slt i32 %tried, %limit
  br i1 %fewer, label %start, label %job
start:
  call void @start_workers(i32 %limit)
  br label %job
job:
  %base = phi i64 [ 0, %prepare ], [ 0, %start ], [ %next, %job ]
  %rest = sub i64 %chunks, %base
  %large = icmp sgt i64 %rest, 65535
  %count = select i1 %large, i64 65535, i64 %rest
  call void @run_job(ptr %body, ptr %context, i64 %base, i64 %count, i1 %long)
  %next = add i64 %base, %count
  %more = icmp slt i64 %next, %chunks
  br i1 %more, label %job, label %unlock
unlock:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

define void @gt_parallel(ptr %body, ptr %context, i64 %chunks) {
  call void @parallel(ptr %body, ptr %context, i64 %chunks, i1 false)
  ret void
}

define void @gt_parallel_long(ptr %body, ptr %context, i64 %chunks) {
  call void @parallel(ptr %body, ptr %context, i64 %chunks, i1 true)
  ret void
}

define void @gt_pool_threads(i64 %threads) {
entry:
  %limit = trunc i64 %threads to i32
  store atomic i32 %limit, ptr @limit seq_cst, align 4
  store atomic i32 0, ptr @tried monotonic, align 4
  br label %loop
loop:
  %index = phi i64 [ 1, %entry ], [ %next, %loop ]
  call void @rouse(i64 %index)
  %next = add i64 %index, 1
  %more = icmp slt i64 %next, $THREADS$
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @gt_pool_reset() {
entry:
  %old = load atomic i64, ptr @word monotonic, align 8
  %generation = and i64 %old, -4294967296
  %next = add i64 %generation, 4294967296
  store atomic i64 %next, ptr @word monotonic, align 8
  store atomic i32 0, ptr @pending monotonic, align 4
  store atomic i32 0, ptr @sleepers monotonic, align 4
  store atomic i32 0, ptr @started monotonic, align 4
  store atomic i32 0, ptr @tried monotonic, align 4
  store atomic i32 0, ptr @busy monotonic, align 4
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %after, %loop ]
  %slot = getelementptr [16 x i32], ptr @slots, i64 %index
  store atomic i32 0, ptr %slot monotonic, align 4
  %after = add i64 %index, 1
  %more = icmp slt i64 %after, $THREADS$
  br i1 %more, label %loop, label %done
done:
  fence seq_cst
  ret void
}
"""
