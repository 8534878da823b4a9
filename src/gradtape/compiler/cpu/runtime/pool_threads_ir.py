"""The workers' side of the thread pool: starting, claiming, sleeping, waking."""

from __future__ import annotations

# Claims a chunk and runs it; false if none is left. %step is what a claim adds to the word: 65536
# takes the lowest chunk, -1 the highest. The job's fields are read before the claim: if they belong
# to a later job, the word has changed too and the claim fails.
_CLAIM = """
define internal i1 @take_one(i64 %step) {
entry:
  %first = load atomic i64, ptr @word acquire, align 8
  br label %try
try:
  %word = phi i64 [ %first, %entry ], [ %seen, %claim ]
  %left = call i64 @unclaimed(i64 %word)
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %claim, label %none
claim:
  %body = load atomic ptr, ptr @body monotonic, align 8
  %context = load atomic ptr, ptr @context monotonic, align 8
  %base = load atomic i64, ptr @base monotonic, align 8
  %after = add i64 %word, %step
  %swap = cmpxchg ptr @word, i64 %word, i64 %after acq_rel acquire, align 8
  %seen = extractvalue { i64, i1 } %swap, 0
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %try
run:
  %above = lshr i64 %word, 16
  %low = and i64 %above, 65535
  %high = and i64 %word, 65535
  %highest = sub i64 %high, 1
  %from_top = icmp slt i64 %step, 0
  %index = select i1 %from_top, i64 %highest, i64 %low
  %chunk = add i64 %base, %index
  call void %body(ptr %context, i64 %chunk)
  ret i1 true
none:
  ret i1 false
}

define internal i32 @take_all(i64 %step) {
entry:
  br label %again
again:
  %done = phi i32 [ 0, %entry ], [ %next, %again ]
  %ran = call i1 @take_one(i64 %step)
  %next = add i32 %done, 1
  br i1 %ran, label %again, label %end
end:
  ret i32 %done
}
"""

# `rouse` ends the sleep of a worker; whichever thread sets its slot from 1 to 0, even the worker
# itself, also removes it from the count of sleepers. `missing`: the number of sleeping workers that
# %left chunks could use, beyond those awake. `summon` wakes up to two of them.
_WAKE = """
define internal void @rouse(i64 %index) {
entry:
  %slot = getelementptr [16 x i32], ptr @slots, i64 %index
  %old = atomicrmw xchg ptr %slot, i32 0 seq_cst
  %slept = icmp eq i32 %old, 1
  %one = zext i1 %slept to i32
  %before = atomicrmw sub ptr @sleepers, i32 %one seq_cst
  %rested = icmp ne i32 %old, 0
  br i1 %rested, label %wake, label %end
wake:
  call void @wake_from(ptr %slot)
  br label %end
end:
  ret void
}

define internal i32 @missing(i64 %left) {
entry:
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp sgt i32 %sleepers, 0
  br i1 %any, label %count, label %none
count:
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %most = sub i32 %limit, 1
  %started = load atomic i32, ptr @started monotonic, align 4
  %fewer = icmp slt i32 %started, %most
  %alive = select i1 %fewer, i32 %started, i32 %most
  %chunks = trunc i64 %left to i32
  %enough = icmp slt i32 %chunks, %alive
  %wanted = select i1 %enough, i32 %chunks, i32 %alive
  %awake = sub i32 %alive, %sleepers
  %missing = sub i32 %wanted, %awake
  ret i32 %missing
none:
  ret i32 0
}

define internal void @summon(i64 %left) {
entry:
  %missing = call i32 @missing(i64 %left)
  %two = icmp sgt i32 %missing, 2
  %number = select i1 %two, i32 2, i32 %missing
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %last = sext i32 %limit to i64
  br label %check
check:
  %index = phi i64 [ 1, %entry ], [ %next, %seen ]
  %need = phi i32 [ %number, %entry ], [ %still, %seen ]
  %inside = icmp slt i64 %index, %last
  %needed = icmp sgt i32 %need, 0
  %go = and i1 %inside, %needed
  br i1 %go, label %look, label %end
look:
  %slot = getelementptr [16 x i32], ptr @slots, i64 %index
  %state = load atomic i32, ptr %slot seq_cst, align 4
  %asleep = icmp eq i32 %state, 1
  br i1 %asleep, label %wake, label %seen
wake:
  call void @rouse(i64 %index)
  br label %seen
seen:
  %woken = zext i1 %asleep to i32
  %still = sub i32 %need, %woken
  %next = add i64 %index, 1
  br label %check
end:
  ret void
}
"""

# A worker sleeps: kind 1 until there is work, kind 2 until more threads are wanted. It announces
# that first and looks again before sleeping, so that a job published in between is not missed.
_REST = """
define internal void @rest(i64 %index, i32 %kind) {
entry:
  %slot = getelementptr [16 x i32], ptr @slots, i64 %index
  %sleeper = icmp eq i32 %kind, 1
  %one = zext i1 %sleeper to i32
  %before = atomicrmw add ptr @sleepers, i32 %one seq_cst
  %awake = atomicrmw xchg ptr %slot, i32 %kind seq_cst
  %word = load atomic i64, ptr @word seq_cst, align 8
  %left = call i64 @unclaimed(i64 %word)
  %work = icmp sgt i64 %left, 0
  %limit = load atomic i32, ptr @limit seq_cst, align 4
  %bound = sext i32 %limit to i64
  %wanted = icmp slt i64 %index, %bound
  %unwanted = xor i1 %wanted, true
  %changed = or i1 %work, %unwanted
  %stay_up = select i1 %sleeper, i1 %changed, i1 %wanted
  br i1 %stay_up, label %undo, label %sleep
undo:
  call void @rouse(i64 %index)
  ret void
sleep:
  call void @sleep_on(ptr %slot, i32 %kind)
  %state = load atomic i32, ptr %slot seq_cst, align 4
  %still = icmp eq i32 %state, %kind
  br i1 %still, label %sleep, label %end
end:
  ret void
}
"""

# A worker's endless loop: look for work, spin, sleep. The last to finish a job wakes its caller if
# that sleeps; 1073741824 is bit 30.
_WORKER = """
define internal ptr @worker(ptr %argument) {
entry:
  %index = ptrtoint ptr %argument to i64
  br label %fresh
fresh:
  %woken = phi i1 [ false, %entry ], [ false, %park ], [ true, %sleep ], [ false, %work ],
    [ false, %report ], [ false, %tell ]
  %start = call i64 @now()
  %until = add i64 %start, $SPIN$
  br label %look
look:
  %turn = phi i32 [ 0, %fresh ], [ %turns, %spin ], [ %turns, %clock ]
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %bound = sext i32 %limit to i64
  %wanted = icmp slt i64 %index, %bound
  br i1 %wanted, label %check, label %park
park:
  call void @rest(i64 %index, i32 2)
  br label %fresh
check:
  %word = load atomic i64, ptr @word acquire, align 8
  %left = call i64 @unclaimed(i64 %word)
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %begin, label %spin
begin:
  br i1 %woken, label %help, label %work
help:
  call void @summon(i64 %left)
  br label %work
work:
  %done = call i32 @take_all(i64 -1)
  %any = icmp ne i32 %done, 0
  br i1 %any, label %report, label %fresh
report:
  %before = atomicrmw sub ptr @pending, i32 %done acq_rel
  %last = or i32 %done, 1073741824
  %awaited = icmp eq i32 %before, %last
  br i1 %awaited, label %tell, label %fresh
tell:
  call void @wake_from(ptr @pending)
  br label %fresh
spin:
  $PAUSE$
  %turns = add i32 %turn, 1
  %low = and i32 %turns, 63
  %time = icmp eq i32 %low, 0
  br i1 %time, label %clock, label %look
clock:
  %yielded = call i32 @sched_yield()
  %now = call i64 @now()
  %late = icmp sgt i64 %now, %until
  br i1 %late, label %sleep, label %look
sleep:
  call void @rest(i64 %index, i32 1)
  br label %fresh
}
"""

# Signals are Python's business: they are blocked while a worker is made, which inherits that. If
# the system gives no more threads, the job goes on with those it has, and no more are requested
# until the number of threads is set again.
_START = """
define internal void @start_workers(i32 %limit) {
entry:
  %thread = alloca i64
  %attributes = alloca [128 x i8], align 16
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  store atomic i32 %limit, ptr @tried monotonic, align 4
  %prepared = call i32 @pthread_attr_init(ptr %attributes)
  %alone = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $STACK$)
  %filled = call i32 @sigfillset(ptr %all)
  %blocked = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %next
next:
  %started = load atomic i32, ptr @started monotonic, align 4
  %index = add i32 %started, 1
  %missing = icmp slt i32 %index, %limit
  br i1 %missing, label %start, label %end
start:
  %number = sext i32 %index to i64
  %argument = inttoptr i64 %number to ptr
  %status = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %argument)
  %made = icmp eq i32 %status, 0
  br i1 %made, label %count, label %end
count:
  store atomic i32 %index, ptr @started seq_cst, align 4
  br label %next
end:
  %restored = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  ret void
}
"""

THREADS = "\n".join((_CLAIM, _WAKE, _REST, _WORKER, _START))
