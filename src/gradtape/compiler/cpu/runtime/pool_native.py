"""The thread pool in native code: one job at a time, whose chunks are claimed one by one.

The state of a job is one 64-bit word, `generation << 32 | low << 16 | high`: chunks low to high - 1
are not claimed yet. The caller claims from below and workers from above, by a compare-and-swap, so
that every chunk is run exactly once, a claim of an old job cannot succeed (its generation is gone),
and consecutive jobs over the same arrays find a thread at the same end of them. The caller claims
until nothing is left, and then waits only for chunks that are already running: a worker that
sleeps, or was never started, delays no one.

Idle workers spin for a while, then sleep on a word of their own (a futex). A thread that finds more
chunks than awake workers wakes two, and these wake others: a call pays for two wake-ups at most.

A job whose chunks may never end (`gt_parallel_endless`) has a function that looks for signals. The
chunks call it now and then, and so does the caller while it waits for the others: signal handlers
run in its thread only.

Only one job runs at a time. A caller that finds the pool busy (another thread's job, or a call from
inside a chunk) runs its chunks itself, one after the other.
"""

from __future__ import annotations

import platform
import sys

from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime.entry_tables import INTERRUPTED_STATUS

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
LOOK_NANOSECONDS = 50_000_000  # between two looks for signals
WAKE_NANOSECONDS = 20_000  # about the time after which waking a worker has paid off
EXPORTS = (
    "gt_parallel", "gt_parallel_long", "gt_parallel_endless", "gt_pool_threads", "gt_pool_reset",
)  # fmt: skip


def source(*, threads: bool = True) -> NativeSource:
    """The functions for this system; without futexes, those that run every job serially.

    Args:
        threads: False for the serial ones in any case.
    """
    machine = platform.machine()
    if not threads or sys.platform != "linux" or sys.maxsize < 2**32 or machine not in _FUTEX:
        return NativeSource(_SERIAL + _NO_THREADS)
    declaration, pause = _PAUSE.get(machine, ("", ""))
    constants = {
        "FUTEX": _FUTEX[machine],
        "THREADS": MAX_THREADS,
        "SPIN": SPIN_NANOSECONDS,
        "PRICE": WAKE_NANOSECONDS,
        "STACK": STACK_BYTES,
        "LOOK": LOOK_NANOSECONDS,
        "INTERRUPTED": INTERRUPTED_STATUS,
        # What a claim adds to the word: it takes the lowest chunk, or the highest.
        "LOWEST": 1 << 16,
        "HIGHEST": -1,
        # The bit of `pending` that says that the caller sleeps on it.
        "SLEEPS": 1 << 30,
    }
    functions = (_SERIAL, _SYSTEM, _CLAIM, _WAKE, _WORKER, _WEIGH, _JOB, _PARALLEL)
    ir = f"{declaration}\ndefine internal void @pause() {{ {pause} ret void }}\n{_STATE}"
    return NativeSource("\n".join(functions), constants, ir)


# Variables written for every job have cache lines of their own, apart from those only read.
# A slot is the word a worker sleeps on: 0 awake, 1 asleep until there is work, 2 asleep because
# fewer threads are wanted. `pending` counts the chunks not finished.
_STATE = f"""
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
@slots = internal global [{MAX_THREADS} x [16 x i32]] zeroinitializer, align 128
"""

_SERIAL = """
def serial(run: ptr, argument: ptr, chunks: i64):
    for chunk in range(chunks):
        call(void, run, argument, chunk)
"""

_NO_THREADS = """
def gt_parallel(run: ptr, argument: ptr, chunks: i64):
    serial(run, argument, chunks)

def gt_parallel_long(run: ptr, argument: ptr, chunks: i64):
    serial(run, argument, chunks)

def gt_parallel_endless(run: ptr, argument: ptr, chunks: i64, poll: ptr, status: ptr):
    serial(run, argument, chunks)

def gt_pool_threads(threads: i64):
    return

def gt_pool_reset():
    return
"""

_SYSTEM = """
def syscall(number: i64, *more) -> i64: ...
def clock_gettime(clock: i32, time: ptr) -> i32: ...
def sched_yield() -> i32: ...
def sigfillset(signals: ptr) -> i32: ...
def pthread_sigmask(how: i32, signals: ptr, old: ptr) -> i32: ...
def pthread_create(thread: ptr, attributes: ptr, start: ptr, argument: ptr) -> i32: ...
def pthread_attr_init(attributes: ptr) -> i32: ...
def pthread_attr_setdetachstate(attributes: ptr, state: i32) -> i32: ...
def pthread_attr_setstacksize(attributes: ptr, bytes: i64) -> i32: ...
def pthread_attr_destroy(attributes: ptr) -> i32: ...
def pause(): ...

def now() -> i64:
    time = stack(16)
    clock_gettime(1, time)
    return i64[time] * 1000000000 + i64[time, 1]

def sleep_on(place: ptr, value: i32):
    syscall(FUTEX, place, 128, value, null)

def sleep_briefly(place: ptr, value: i32):
    time = stack(16)
    i64[time] = 0
    i64[time, 1] = LOOK
    syscall(FUTEX, place, 128, value, time)

def wake_from(place: ptr):
    syscall(FUTEX, place, 129, 1)
"""

_CLAIM = """
def unclaimed(job: i64) -> i64:
    return (job & 65535) - (job >> 16 & 65535)

# Claims a chunk and runs it; false if none is left. The job's fields are read before the claim: if
# they belong to a later job, the word has changed too and the claim fails.
def take_one(step: i64) -> i1:
    while True:
        job = acquire.i64[word]
        if unclaimed(job) <= 0:
            return False
        run = monotonic.ptr[body]
        argument = monotonic.ptr[context]
        first = monotonic.i64[base]
        if acq_rel.swap(word, job, job + step):
            index = (job & 65535) - 1 if step < 0 else job >> 16 & 65535
            call(void, run, argument, first + index)
            return True

def take_all(step: i64) -> i32:
    done = i32(0)
    while take_one(step):
        done += 1
    return done
"""

_WAKE = """
# Ends the sleep of a worker; whichever thread sets its slot from 1 to 0, even the worker itself,
# also removes it from the count of sleepers.
def rouse(index: i64):
    slot = slots + 64 * index
    state = seq_cst.xchg(slot, i32(0))
    seq_cst.sub(sleepers, i32(state == 1))
    if state != 0:
        wake_from(slot)

# The number of sleeping workers that the chunks left could use, beyond those awake.
def missing(left: i64) -> i32:
    asleep = seq_cst.i32[sleepers]
    if asleep <= 0:
        return 0
    alive = smin(monotonic.i32[started], monotonic.i32[limit] - 1)
    return smin(i32(left), alive) - (alive - asleep)

# Wakes up to two of them.
def summon(left: i64):
    need = smin(missing(left), 2)
    for index in range(1, i64(monotonic.i32[limit])):
        if need <= 0:
            return
        if seq_cst.i32[slots + 64 * index] == 1:
            rouse(index)
            need -= 1
"""

_WORKER = """
# A worker sleeps: kind 1 until there is work, kind 2 until more threads are wanted. It announces
# that first and looks again before sleeping, so that a job published in between is not missed.
def rest(index: i64, kind: i32):
    slot = slots + 64 * index
    seq_cst.add(sleepers, i32(kind == 1))
    seq_cst.xchg(slot, kind)
    left = unclaimed(seq_cst.i64[word])
    wanted = index < i64(seq_cst.i32[limit])
    if kind == 1 and (left > 0 or not wanted) or kind == 2 and wanted:
        rouse(index)
        return
    sleep_on(slot, kind)
    while seq_cst.i32[slot] == kind:
        sleep_on(slot, kind)

# Runs chunks; the last to finish a job wakes its caller if that sleeps.
def work():
    done = take_all(HIGHEST)
    if done != 0 and acq_rel.sub(pending, done) == done | SLEEPS:
        wake_from(pending)

# Spins until there is work. Returns the chunks left, 0 if it took too long, -1 if the worker is not
# wanted any more.
def awaited_chunks(index: i64) -> i64:
    until = now() + SPIN
    turns = 0
    while index < i64(monotonic.i32[limit]):
        left = unclaimed(acquire.i64[word])
        if left > 0:
            return left
        pause()
        turns += 1
        if turns & 63 == 0:
            sched_yield()
            if now() > until:
                return 0
    return -1

# A worker's endless loop: look for work, spin, sleep. One that was woken wakes others.
def worker(argument: ptr) -> ptr:
    index = i64(argument)
    woken = False
    while True:
        left = awaited_chunks(index)
        if left > 0:
            if woken:
                summon(left)
            work()
        else:
            rest(index, i32(1) if left == 0 else i32(2))
        woken = left == 0

# Signals are Python's business: they are blocked while a worker is made, which inherits that. If
# the system gives no more threads, the job goes on with those it has, and no more are requested
# until the number of threads is set again.
def start_workers(most: i32):
    thread = stack(8)
    attributes = stack(128)
    signals = stack(128)
    old = stack(128)
    monotonic.i32[tried] = most
    pthread_attr_init(attributes)
    pthread_attr_setdetachstate(attributes, 1)
    pthread_attr_setstacksize(attributes, STACK)
    sigfillset(signals)
    pthread_sigmask(2, signals, old)
    while True:
        index = monotonic.i32[started] + 1
        if index >= most:
            break
        if pthread_create(thread, attributes, worker, ptr(i64(index))) != 0:
            break
        seq_cst.i32[started] = index
    pthread_sigmask(2, old, null)
    pthread_attr_destroy(attributes)
"""

# The caller's part while workers that it could use are asleep. Waking one costs the caller some
# microseconds, which a short job does not win back; but many short jobs, one after the other,
# would. So the time that a second thread would have saved is added up, as a debt, over jobs that
# follow each other closely; the workers are woken when the debt plus the expected saving of this
# job reach the price.
_WEIGH = """
def take_and_weigh() -> i32:
    start = now()
    owed = 0 if start - i64[last_job] > SPIN else i64[debt]
    done = 0
    spent = 0
    while take_one(LOWEST):
        done += 1
        spent = now() - start
        left = unclaimed(monotonic.i64[word])
        if owed + spent * left // done // 2 > PRICE:
            i64[debt] = 0
            summon(left)
            return i32(done) + take_all(LOWEST)
    i64[debt] = owed + spent // 2
    i64[last_job] = start + spent
    return i32(done)
"""

_JOB = """
def sleep_until_over(endless: i1, poll: ptr, status: ptr):
    while True:
        seen = acquire.i32[pending]
        if seen == 0 or seen == SLEEPS:
            return
        flagged = seen | SLEEPS
        if acq_rel.swap(pending, seen, flagged):
            if endless:
                sleep_briefly(pending, flagged)
                if call(i32, poll, status) != 0:
                    monotonic.i64[status] = INTERRUPTED
            else:
                sleep_on(pending, flagged)

# Waiting, the caller first spins, then offers its core (the worker it waits for may be queued
# behind it), then sleeps.
def await_others(endless: i1, poll: ptr, status: ptr):
    until = now() + SPIN
    turns = 0
    while acquire.i32[pending] != 0:
        pause()
        turns += 1
        if turns & 127 == 0:
            sched_yield()
            if now() > until:
                sleep_until_over(endless, poll, status)
                return

def next_generation() -> i64:
    return (monotonic.i64[word] >> 32) + 1 << 32

# One job of at most 65535 chunks, by the owner of `busy`.
def run_job(run: ptr, argument: ptr, first: i64, chunks: i64, long: i1, endless: i1, poll: ptr,
            status: ptr):
    monotonic.ptr[body] = run
    monotonic.ptr[context] = argument
    monotonic.i64[base] = first
    count = i32(chunks)
    monotonic.i32[pending] = count
    seq_cst.xchg(word, next_generation() | chunks)
    cold = missing(chunks - 1) > 0
    if cold and not long:
        mine = take_and_weigh()
    else:
        if cold:
            summon(chunks - 1)
        mine = take_all(LOWEST)
    if mine != count and acq_rel.sub(pending, mine) != mine:
        await_others(endless, poll, status)
"""

_PARALLEL = """
def parallel(run: ptr, argument: ptr, chunks: i64, long: i1, endless: i1, poll: ptr, status: ptr):
    threads = monotonic.i32[limit]
    if (threads <= 1 or chunks <= 1 or monotonic.i32[busy] != 0
            or not acquire.swap(busy, i32(0), i32(1))):
        serial(run, argument, chunks)
    else:
        if monotonic.i32[tried] < threads:
            start_workers(threads)
        done = 0
        while done < chunks:
            count = smin(chunks - done, 65535)
            run_job(run, argument, done, count, long, endless, poll, status)
            done += count
        release.i32[busy] = 0

def gt_parallel(run: ptr, argument: ptr, chunks: i64):
    parallel(run, argument, chunks, False, False, null, null)

def gt_parallel_long(run: ptr, argument: ptr, chunks: i64):
    parallel(run, argument, chunks, True, False, null, null)

def gt_parallel_endless(run: ptr, argument: ptr, chunks: i64, poll: ptr, status: ptr):
    parallel(run, argument, chunks, False, True, poll, status)

def gt_pool_threads(threads: i64):
    seq_cst.i32[limit] = i32(threads)
    monotonic.i32[tried] = 0
    for index in range(1, THREADS):
        rouse(index)

def gt_pool_reset():
    monotonic.i64[word] = next_generation()
    monotonic.i32[pending] = 0
    monotonic.i32[sleepers] = 0
    monotonic.i32[started] = 0
    monotonic.i32[tried] = 0
    for index in range(THREADS):
        monotonic.i32[slots + 64 * index] = 0
    seq_cst.i32[busy] = 0
"""
