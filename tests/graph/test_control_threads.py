"""Compiled loops in threads: of Python, and of the pool that divides `map` among cores."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import gradtape as gt
from control_programs import PROGRAMS, X

THREADS = 4
CALLS = 25


def roots(xs):
    """Newton's method for each element."""
    step = lambda s, x: 0.5 * (s + x / s)  # noqa: E731
    return gt.map(
        lambda x: gt.while_loop(lambda s: np.abs(s * s - x) > 1e-9, lambda s: step(s, x), x), xs
    )


def growing(x):
    """A loop that keeps more states the longer it takes, on arrays."""
    go_on, step = lambda s: np.sum(s) < 900.0, lambda s: s * 1.01 + 0.01 * np.sin(s)
    return np.sum(gt.while_loop(go_on, step, x))


def in_threads(jobs):
    """The results of calls that run at the same time."""
    results, barrier = [None] * len(jobs), threading.Barrier(len(jobs))

    def run(number):
        barrier.wait()
        results[number] = jobs[number]()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (roots, lambda n: np.linspace(1.0, 2.0 + n, 2000)),
        (gt.grad(lambda xs: np.sum(roots(xs))), lambda n: np.linspace(1.0, 2.0 + n, 2000)),
        (gt.grad(growing), lambda n: np.linspace(0.1, 0.5 + n, 300)),
        *((gt.grad(program), lambda n: X * (1.0 + 0.1 * n)) for program in PROGRAMS[::3]),
    ],
)
def test_threads_that_call_one_loop_do_not_disturb_each_other(function, argument):
    compiled = gt.jit(function)
    arguments = [argument(n) for n in range(THREADS)]
    want = [compiled(x) for x in arguments]

    def calls(x):
        return lambda: [compiled(x) for _ in range(CALLS)]

    for results, expected in zip(in_threads([calls(x) for x in arguments]), want, strict=True):
        assert len(results) == CALLS
        for result in results:
            np.testing.assert_array_equal(result, expected)


def test_threads_that_compile_a_loop_at_the_same_time_get_the_same():
    compiled = gt.jit(gt.grad(growing))
    x = np.linspace(0.1, 0.5, 300)
    for result in in_threads([lambda: compiled(x)] * THREADS):
        np.testing.assert_allclose(result, gt.grad(growing)(x), rtol=1e-12)


def test_loops_give_the_same_bits_for_any_number_of_threads():
    xs = np.linspace(1.0, 9.0, 5000)
    compiled = gt.jit(gt.value_and_grad(lambda xs: np.sum(roots(xs) ** 3)))
    assert "gt_parallel_endless" in compiled.explain(xs).ir  # or there is nothing to divide
    before = gt.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            gt.set_num_threads(count)
            results.append(compiled(xs))
    finally:
        gt.set_num_threads(before)
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


PROGRAM = textwrap.dedent("""
    import numpy as np, gradtape as gt
    gt.set_num_threads(2)
    count = gt.jit(lambda xs: gt.map(
        lambda x: gt.while_loop(lambda s: s < 3000, lambda s: s + x, x), xs))
    xs = np.ones(20000)
    count(xs)
    xs[NUMBER] = 0.0  # this one never gets there
    try:
        print("ready", flush=True)
        count(xs)
    except KeyboardInterrupt:
        xs[:] = 1.0
        print("interrupted", np.sum(count(xs)), flush=True)
""")


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("number", [0, -1], ids=["caller", "worker"])
def test_an_endless_loop_in_a_part_of_a_map_can_be_interrupted(number):
    # The caller takes parts from the front, workers from the end. A signal that this process
    # ignores would be ignored by the child, too.
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("NUMBER", str(number))],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):  # it runs
            child.wait(timeout=1.0)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
        assert out.split() == ["interrupted", "60000000.0"]
    finally:
        child.kill()
