"""Programs with threads, forks and signals, run by `test_forks.py` as processes of their own.

python thread_jobs.py first 3       # four threads begin with the same kind of op, so many times
python thread_jobs.py forks 40      # so many children are forked while threads work
python thread_jobs.py signals 0.5   # a signal handler does the same as the code it interrupts
"""

from __future__ import annotations

import contextvars
import faulthandler
import itertools
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special  # noqa: F401 - some random programs load it, others not

import gradtape as gt
from random_ways import check, gradient_of, programs

LONG = 60.0  # seconds; what takes that long hangs
LINE = np.linspace(1.0, 2.0, 1 << 15)
SQUARE = LINE.reshape(128, 256)


def expect(got: Any, needed: Any) -> None:
    got = got.detach().numpy() if isinstance(got, gt.Tensor) else got
    np.testing.assert_allclose(got, needed, rtol=1e-12)


# ---- kinds of work; the number makes each another one ------------------------------------------


def elementwise(n: int) -> None:
    x = LINE + n % 3
    expect(np.exp(gt.tensor(x)) * 2.0, np.exp(x) * 2.0)


def reduction(n: int) -> None:
    x = np.resize(SQUARE, (128, 256 + 8 * (n % 8)))
    expect(gt.max(gt.tensor(x), 1), x.max(1))
    expect(gt.sum(gt.tensor(x)), x.sum())


def copies(n: int) -> None:
    x = SQUARE + n
    expect(np.copy(gt.tensor(x).T), x.T)
    expect(np.concatenate([gt.tensor(x), gt.tensor(x)]), np.concatenate([x, x]))


def matmul(n: int) -> None:
    x = np.full((64 + n % 3, 64), 0.5)
    expect(gt.tensor(x) @ gt.tensor(x.T), x @ x.T)
    expect(gt.jit(lambda x: (x @ x.T) * n)(x), (x @ x.T) * n)


known = gt.jit(lambda x, k: np.sin(x) * k)


def jit(n: int) -> None:
    x = np.ones(1 + n % 20)
    expect(known(x, float(n)), np.sin(x) * n)
    expect(gt.jit(lambda x: np.sin(x) * n)(x), np.sin(x) * n)


generator = gt.random.Generator(5)
taken: list[int] = []


def draws(_n: int) -> None:
    for _ in range(20):
        taken.append(int(generator.take(8)["offset"]))
    assert gt.rand(10).shape == (10,)
    once, again = (gt.rand(20_000, generator=gt.random.Generator(7)).numpy() for _ in range(2))
    assert (once == again).all()
    assert gt.random.Generator().state != gt.random.Generator().state


leaf = gt.tensor(np.ones(1 << 15), requires_grad=True)
passes = itertools.count()


def backward(n: int) -> None:
    with gt.GradientContext():
        gt.compute_gradients(gt.sum(leaf * 1.0))
        next(passes)
        y = gt.tensor(np.ones(4), requires_grad=True)
        gt.compute_gradients(gt.sum(known(y, float(n))))
        expect(y.grad, np.full(4, np.cos(1.0) * n))


def random_code(n: int) -> None:
    for program in programs(50_000 + n % 50, 1, floating=True):
        check(gradient_of, program)


KINDS: list[Callable[[int], None]] = [
    elementwise,
    reduction,
    copies,
    matmul,
    jit,
    draws,
    backward,
    random_code,
]


# ---- programs -----------------------------------------------------------------------------------


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    start, failed = threading.Barrier(count), list[BaseException]()

    def begin(n: int) -> None:
        start.wait()
        try:
            work(n)
        except BaseException as error:
            failed.append(error)
            traceback.print_exc()

    threads = [threading.Thread(target=begin, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def fails_in_child(work: Callable[[], None]) -> str | None:
    """What is wrong with a child process that does some work; None if nothing is."""
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(LONG - 5)
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"exit status {code}" if code else None
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "it hangs"


def first(times: float) -> list[str]:
    """In processes that have not used anything before, four threads begin with the same."""
    found = []
    for _ in range(int(times)):
        for kind in KINDS:
            wrong = fails_in_child(lambda kind=kind: in_threads(kind))  # type: ignore[misc]
            if wrong:
                found.append(f"{kind.__name__}: {wrong}")
    return found


def forks(children: float) -> list[str]:
    """Fork while threads do work of each kind; the children do all of it."""
    stop, found, number = threading.Event(), list[str](), itertools.count(1)

    def work(kind: Callable[[int], None]) -> None:
        while not stop.is_set():
            try:
                kind(next(number))
            except BaseException:
                found.append(f"{kind.__name__}: in the parent {traceback.format_exc()}")
                return

    def all_kinds() -> None:
        for kind in KINDS:
            kind(1_000 + child)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in KINDS]
    for thread in threads:
        thread.start()
    for child in range(int(children)):
        time.sleep(0.002 * (child % 17))
        wrong = fails_in_child(all_kinds)
        if wrong:
            found.append(f"child {child}: {wrong}")
    stop.set()
    for thread in threads:
        thread.join()
    return found


def signals(seconds: float) -> list[str]:
    """Let a signal handler do what it interrupts, for so many seconds each."""
    found, calls, depth = list[str](), itertools.count(), 0

    def handler(_number: int, _frame: Any) -> None:
        nonlocal depth
        depth += 1
        try:
            # Not in the context of what it interrupts, which may be a function that is traced.
            contextvars.Context().run(kind, 1_000 + next(calls))
        except BaseException:
            found.append(f"{kind.__name__}: in the handler {traceback.format_exc()}")
        finally:
            depth -= 1
            if depth == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 * (1 + next(calls) % 13))

    for kind in KINDS:
        kind(0)  # modules are loaded: a handler must not find them half loaded
    taken.clear()
    for kind in KINDS:
        signal.signal(signal.SIGALRM, handler)
        end, number = time.monotonic() + seconds, itertools.count()
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while time.monotonic() < end:
            kind(next(number))
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # first: a handler sets the timer again
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if len(taken) != len(set(taken)):
        found.append("draws: the same numbers twice")
    if leaf.grad is None or leaf.grad.numpy()[0] != next(passes):
        found.append("backward: a gradient was lost")
    return found


if __name__ == "__main__":
    # Newer Pythons warn of forks in a process with threads, which is what is tried here.
    warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
    faulthandler.enable()
    jobs = {"first": first, "forks": forks, "signals": signals}
    wrong = jobs[sys.argv[1]](float(sys.argv[2]))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
