"""The thread pool: every chunk once, whatever else goes on in the process."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gradtape.compiler.cpu.llvm.link import Library, compile_module
from gradtape.compiler.cpu.runtime import pool, pool_native
from gradtape.compiler.cpu.runtime.pool import get_num_threads, set_num_threads
from gradtape.errors import ArgumentError
from pool_jobs import Jobs, all_ones


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    return Jobs(pool.imports())


@pytest.fixture(autouse=True)
def _same_number_of_threads() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


# ---- every chunk once ----


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 64, 1000, 65535, 65536, 200_000])
def test_every_chunk_runs_once(jobs, threads, chunks):
    set_num_threads(threads)
    assert all_ones(jobs.counts("plain", chunks))


@pytest.mark.parametrize("chunks", [0, -1])
def test_no_chunks(jobs, chunks):
    set_num_threads(2)
    assert jobs.run("plain", np.zeros(1, np.int64), chunks)[0] == 0


@pytest.mark.parametrize("threads", [2, 4])
def test_slow_chunks(jobs, threads):
    # Long enough for the caller to sleep while it waits for the last one.
    set_num_threads(threads)
    for chunks in (2, 3, 5, 30):
        assert all_ones(jobs.counts("slow", chunks))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_thousands_of_tiny_jobs(jobs, threads):
    set_num_threads(threads)
    for chunks in (1, 2, 3, 16):
        counts = jobs.run("often", np.zeros(chunks, np.int64), chunks, 5000)
        assert (counts == 5000).all()


def test_jobs_with_pauses_find_the_workers_asleep(jobs):
    set_num_threads(4)
    for pause in (0.0, 0.0001, 0.002):
        for _ in range(20):
            assert all_ones(jobs.counts("plain", 9))
            assert all_ones(jobs.counts("slow", 4))
            time.sleep(pause)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_calls_from_inside_a_chunk(jobs, threads):
    set_num_threads(threads)
    for chunks in (1, 2, 50):
        assert all_ones(jobs.counts("nested", chunks, factor=10))


# ---- how many threads ----


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_no_more_threads_than_wanted(jobs, threads):
    set_num_threads(8)
    jobs.counts("slow", 20)  # more workers than will be wanted
    set_num_threads(threads)
    seen = set(jobs.counts("threads", 24).tolist())
    assert 1 <= len(seen) <= threads
    assert 0 not in seen


def test_several_threads_take_part(jobs):
    # Chunks sleep, so even a busy machine gets round to every worker; it need not be at once.
    set_num_threads(3)
    most = max(len(set(jobs.counts("threads", 30).tolist())) for _ in range(10))
    assert most == 3


def test_workers_take_no_signals(jobs):
    set_num_threads(2)
    before = threading.active_count()
    jobs.counts("slow", 4)
    assert threading.active_count() == before  # Python knows nothing of them
    known = {thread.native_id for thread in threading.enumerate()}
    blocked = []
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) not in known:
            status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
            blocked.append(int(status["SigBlk"], 16))
    wanted = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD))
    assert any(mask & wanted == wanted for mask in blocked)


def test_default_is_the_cpus_of_this_process():
    code = (
        "from gradtape.compiler.cpu.runtime.pool import get_num_threads; import os;"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


@pytest.mark.parametrize("threads", [0, -1, 1025, 1.5, "2", None, True])
def test_bad_numbers_of_threads(threads):
    before = get_num_threads()
    with pytest.raises(ArgumentError, match=r"set_num_threads: .*, expected an integer from 1 to"):
        set_num_threads(threads)
    assert get_num_threads() == before


def test_numpy_integers_are_numbers_of_threads():
    set_num_threads(np.int32(3))
    assert get_num_threads() == 3


# ---- several callers ----


def in_threads(functions: list[Callable[[], None]]) -> None:
    """Run all at once; the first exception is raised here."""
    errors: list[BaseException] = []

    def run(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_many_python_threads_call_at_once(jobs):
    set_num_threads(3)

    def call() -> None:
        for chunks in range(1, 60):
            assert all_ones(jobs.counts("plain", chunks))
        assert all_ones(jobs.counts("slow", 7))
        assert all_ones(jobs.counts("nested", 7, factor=10))
        assert (jobs.run("often", np.zeros(5, np.int64), 5, 2000) == 2000).all()

    in_threads([call] * 8)


def test_number_of_threads_changes_while_others_run(jobs):
    done = threading.Event()

    def call() -> None:
        try:
            for _ in range(40):
                assert all_ones(jobs.counts("slow", 6))
                assert (jobs.run("often", np.zeros(7, np.int64), 7, 300) == 300).all()
        finally:
            done.set()

    def change() -> None:
        number = 0
        while not done.is_set():
            number += 1
            set_num_threads(1 + number * 7 % 6)

    in_threads([call, change])
    set_num_threads(2)
    assert all_ones(jobs.counts("slow", 6))


# ---- fork ----

# Newer Pythons warn of what is tested here.
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(check: Callable[[], bool]) -> None:
    """Fork, and fail unless the check holds in the child, within some seconds."""
    child = os.fork()
    if child == 0:
        # Nothing of pytest may run here: leave without cleaning up.
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def works(jobs: Jobs) -> bool:
    return (
        all_ones(jobs.counts("slow", 12))
        and all_ones(jobs.counts("plain", 1000))
        and len(set(jobs.counts("threads", 12).tolist())) <= get_num_threads()
    )


@forks
def test_child_after_fork(jobs):
    set_num_threads(3)
    assert works(jobs)
    in_child(lambda: works(jobs))
    in_child(lambda: works(jobs))
    assert works(jobs)


@forks
def test_child_starts_its_own_workers(jobs):
    set_num_threads(3)
    assert works(jobs)
    in_child(lambda: any(len(set(jobs.counts("threads", 30))) > 1 for _ in range(20)))


@forks
def test_grandchild(jobs):
    set_num_threads(2)
    assert works(jobs)

    def check() -> bool:
        in_child(lambda: works(jobs))
        return works(jobs)

    in_child(check)


@forks
def test_fork_while_a_job_runs_elsewhere(jobs):
    set_num_threads(3)
    done = threading.Event()

    def call() -> None:
        while not done.is_set():
            assert all_ones(jobs.counts("slow", 6))
            assert (jobs.run("often", np.zeros(3, np.int64), 3, 500) == 500).all()

    def fork() -> None:
        try:
            for _ in range(15):
                in_child(lambda: works(jobs))
        finally:
            done.set()

    in_threads([call, fork])
    assert works(jobs)


def _work_in_process(chunks: int) -> bool:
    return all_ones(Jobs(pool.imports()).counts("slow", chunks))


@forks
def test_multiprocessing_by_fork(jobs):
    set_num_threads(2)
    assert works(jobs)
    with multiprocessing.get_context("fork").Pool(2) as processes:
        assert processes.map_async(_work_in_process, [3, 5, 9]).get(60) == [True] * 3


# ---- the end of the process, and its limits ----

PROGRAM = """
import ctypes, sys, threading
sys.path.insert(0, {tests!r})
from pool_jobs import Jobs, all_ones
from gradtape.compiler.cpu.runtime import pool
{body}
print("done", flush=True)
"""

ENDINGS = {
    "live pool": """
pool.set_num_threads(4)
jobs = Jobs(pool.imports())
assert all_ones(jobs.counts("slow", 8))
""",
    "job running in a daemon thread": """
pool.set_num_threads(4)
jobs = Jobs(pool.imports())
threading.Thread(target=lambda: jobs.counts("slow", 10**6), daemon=True).start()
assert all_ones(jobs.counts("plain", 100))
""",
    "no more threads to be had": """
import resource
jobs = Jobs(pool.imports())
pool.set_num_threads(1000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 20 * 2**20, resource.RLIM_INFINITY))
assert all_ones(jobs.counts("slow", 50))
assert all_ones(jobs.counts("plain", 50))
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_process_ends_cleanly(ending):
    program = PROGRAM.format(tests=str(Path(__file__).parent), body=ENDINGS[ending])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_without_futexes_jobs_run_serially(monkeypatch):
    monkeypatch.setattr(pool_native, "_FUTEX", {})
    serial = Library(compile_module(str(pool_native.source())), {}, pool_native.EXPORTS)
    names = ("gt_parallel", "gt_parallel_long")
    jobs = Jobs({name: serial.address(name) for name in names})
    jobs.serial = serial  # must outlive the jobs that call it
    for name in ("plain", "slow"):
        assert all_ones(jobs.counts(name, 11))
    assert len(set(jobs.counts("threads", 8).tolist())) == 1
    for name in ("gt_pool_reset", "gt_pool_threads"):
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(serial.address(name))(4)
