"""Branches and loops: what they refuse, dtypes of Python numbers, lengths, what is read and run."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import gradtape as gt
from gradtape import config
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    IndexingError,
    ShapeError,
    UnsupportedError,
)

F32 = np.float32
XS = np.arange(1.0, 6.0)


def both(function):
    """The function itself, and compiled."""
    return [function, gt.jit(function)]


# ---- what is refused ----------------------------------------------------------------------------

GROWING = lambda s: np.concatenate([s, s])  # noqa: E731
REFUSED = [
    (lambda x: gt.while_loop(lambda s: np.sum(s) < 99, GROWING, x), ShapeError, "becomes float64"),
    (lambda x: gt.fori_loop(0, 3, lambda i, s: GROWING(s), x), ShapeError, "becomes float64"),
    (lambda x: gt.scan(lambda c, v: (GROWING(c), v), x, XS), ShapeError, "becomes float64"),
    (lambda x: gt.scan(lambda c, v: (c > v, v), x, XS), DTypeError, "becomes bool"),
    (lambda x: gt.scan(lambda c, v: ((c, c), v), x, XS), ShapeError, "the containers it began"),
    (lambda x: gt.scan(lambda c, v: c, x, XS), ShapeError, "expected a pair"),
    (lambda x: gt.scan(lambda c, v: (c, v), x), ArgumentError, "no arrays and no length"),
    (lambda x: gt.scan(lambda c, v: (c, v), x, (XS, XS[1:])), ShapeError, "different lengths"),
    (lambda x: gt.scan(lambda c, v: (c, v), x, XS, length=3), ShapeError, "length=3"),
    (lambda x: gt.scan(lambda c, v: (c, v), x, 3.0), ShapeError, "expected an array"),
    (lambda x: gt.scan(lambda c, v: (c, v), x, XS, save=0), ArgumentError, "save=0"),
    (lambda x: gt.scan(lambda c, v: (c, "y"), x, XS), DTypeError, "got a str"),
    (lambda x: gt.while_loop(lambda s: s > 0, lambda s: s, x), ShapeError, "one truth value"),
    (lambda x: gt.while_loop(lambda s: s[0], lambda s: s, x), DTypeError, "a truth value"),
    (lambda x: gt.switch(x[0], [np.sum], x), DTypeError, "expected an integer"),
    (lambda x: gt.switch(0, [], x), ArgumentError, "no branches"),
    (lambda x: gt.cond(x > 0, np.sum, np.sum, x), ShapeError, "expected one number"),
    (lambda x: gt.map(lambda v: v, 1.0), ShapeError, "expected an array"),
    (lambda x: gt.fori_loop(0.5, 3, lambda i, s: s, x), DTypeError, "lower=0.5"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_bad_input_is_refused_in_eager_code_and_compiled(number):
    function, error, message = REFUSED[number]
    for run in both(function):
        with pytest.raises(error, match=message):
            run(np.ones(2))


def test_branches_must_return_the_same_if_the_condition_is_not_known():
    for other, error in (
        (lambda x: (x, x), ShapeError),
        (lambda x: x[:1], ShapeError),
        (lambda x: x.astype(F32), DTypeError),
    ):
        function = lambda x, other=other: gt.cond(np.sum(x) > 0, lambda x: x, other, x)  # noqa: E731
        for run in (gt.jit(function), gt.vmap(function)):
            with pytest.raises(error, match="the branches return"):
                run(np.ones((2, 2)))


@pytest.mark.parametrize("index", [-1, 3])
def test_a_switch_index_out_of_range_raises(index):
    function = lambda i: gt.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0])  # noqa: E731
    message = rf"switch: got index {index}.*expected one from 0 to 2"
    for run in both(function):
        with pytest.raises(IndexingError, match=message):
            run(index)
    for run in both(gt.vmap(function)):
        with pytest.raises(IndexingError, match=message):
            run(np.array([0, 1, index]))


def test_a_python_branch_on_a_traced_value_names_the_replacement():
    def function(x):
        return x if x > 0 else -x

    with pytest.raises(ConversionError, match=r"test_control_rules.py:\d+, .*gt\.cond"):
        gt.jit(function)(1.0)


def test_random_draws_in_a_compiled_loop_are_refused():
    function = lambda x: gt.scan(lambda c, v: (c + gt.random.normal(), v), x, XS)[0]  # noqa: E731
    assert np.isfinite(float(function(0.0)))
    with pytest.raises(UnsupportedError, match="draw them outside"):
        gt.jit(function)(0.0)


def test_an_error_leaves_the_function_usable():
    function = gt.jit(lambda i, x: gt.switch(i, [lambda x: x, lambda x: x * x], x))
    with pytest.raises(IndexingError):
        function(5, 3.0)
    assert function(1, 3.0) == 9.0


# ---- numbers ------------------------------------------------------------------------------------


def test_python_numbers_take_the_dtype_of_the_body():
    xs = XS.astype(F32)
    for run in both(lambda xs: gt.scan(lambda c, x: (0.5 * c + x, c), 0.0, xs)):
        carry, ys = run(xs)
        assert carry.dtype == ys.dtype == F32
    for run in both(lambda x: gt.fori_loop(0, 4, lambda i, s: s + i * x, 0)):
        assert run(F32(1.5)).dtype == F32
    for run in both(
        lambda x: gt.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, 1))
    ):
        count, value = run(F32(2.0))
        assert type(count) is int
        assert value.dtype == F32
        assert value == 8.0


def test_numbers_are_stacked_in_loops_without_native_code():
    step = lambda a, c, x: (c + np.sum(np.sort(np.stack([x, a]))[1:]), None)  # noqa: E731
    for dtype in (np.float64, F32):
        for run in both(lambda a, xs: gt.scan(lambda c, x: step(a, c, x), 0.0, xs)[0]):
            assert run(2.5, XS.astype(dtype)) == 17.0


def test_an_index_is_a_weak_integer():
    for run in both(lambda x: gt.fori_loop(0, 4, lambda i, s: s + x * i, x)):
        assert run(np.ones(2, F32)).dtype == F32


# ---- lengths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("save", ["all", "sqrt", 3])
def test_lengths(length, reverse, save):
    xs = np.arange(1.0, length + 1.0)

    def function(a, xs):
        step = lambda c, x: (a * c + x, (c, np.stack([x, a])))  # noqa: E731
        carry, (ys, zs) = gt.scan(step, a, xs, reverse=reverse, save=save)
        return carry + np.sum(ys**2) + np.sum(zs), (ys, zs)

    value, (ys, zs) = function(0.7, xs)
    assert (ys.shape, zs.shape) == ((length,), (length, 2))
    got = gt.jit(function)(0.7, xs)
    np.testing.assert_allclose(got[0], value, rtol=1e-14)
    np.testing.assert_allclose(got[1][1], zs, rtol=1e-14)
    first = lambda a, xs: function(a, xs)[0]  # noqa: E731
    want = gt.grad(first, argnums=(0, 1))(0.7, xs)
    for g, w in zip(gt.jit(gt.grad(first, argnums=(0, 1)))(0.7, xs), want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14)


def test_a_loop_that_does_not_run_returns_what_it_began_with():
    for run in both(lambda x: gt.while_loop(lambda s: s < 0, lambda s: s - 1, x)):
        assert run(2.0) == 2.0
    for run in both(gt.grad(lambda x: gt.while_loop(lambda s: s < 0, lambda s: s * s, x))):
        assert run(2.0) == 1.0
    for run in both(lambda x: gt.fori_loop(5, 2, lambda i, s: s * 0, x)):
        assert run(2.0) == 2.0


# ---- what is read, and what runs ----------------------------------------------------------------


def test_arrays_from_outside_are_read_at_each_call():
    table = np.array([1.0, 2.0, 3.0])
    function = gt.jit(lambda x: gt.fori_loop(0, 3, lambda i, s: s + np.sum(s * 0 + table), x))
    assert function(0.0) == 18.0
    table[...] = 10.0
    assert function(0.0) == 90.0


def test_only_the_branch_that_is_taken_runs():
    table = np.array([1.0, 2.0])
    function = lambda i, x: gt.cond(  # noqa: E731
        i < 2, lambda x: gt.tensor(table)[i] * x, lambda x: x, x
    )
    # Reading beyond the end of the table would raise.
    assert float(gt.jit(function)(5, 3.0)) == 3.0
    assert float(gt.jit(function)(1, 3.0)) == 6.0


@pytest.mark.skipif(not config.uses("loops"), reason="there is no native code to measure")
def test_long_loops_compile_like_short_ones():
    lengths = (10, 10_000)
    sizes = []
    for length in lengths:
        function = gt.jit(
            gt.grad(lambda x, n=length: gt.fori_loop(0, n, lambda i, s: np.sin(s), x))
        )
        sizes.append(len(function.explain(0.5).ir))
    assert sizes[1] < 1.2 * sizes[0]


def test_map_keeps_the_order_of_elements_in_parallel():
    xs = np.arange(20_000.0)
    function = gt.jit(
        lambda xs: gt.map(lambda x: gt.fori_loop(0, 5, lambda i, s: s + x * i, x), xs)
    )
    np.testing.assert_array_equal(function(xs), 11 * xs)


@pytest.mark.parametrize("save", ["all", "sqrt", 1, 7])
def test_policies_of_long_loops_with_a_condition(save):
    def function(x):
        state = (x, x * 0.5, 0)
        step = lambda s: (np.sin(s[0]) + 0.1 * s[1], np.cos(s[1]) * s[0], s[2] + 1)  # noqa: E731
        a, b, _ = gt.while_loop(lambda s: s[2] < 1000, step, state, save=save)
        return a + b

    want = gt.grad(lambda x: function(x))(0.3)
    for wide in (False, True):
        if wide:  # too large for registers
            spread = lambda x: np.sum(function(x + np.zeros(300))) / 300  # noqa: E731
            got = gt.jit(gt.grad(spread))(0.3)
        else:
            got = gt.jit(gt.grad(function))(0.3)
        np.testing.assert_allclose(got, want, rtol=1e-9)


# ---- interrupts ---------------------------------------------------------------------------------

ENDLESS = {
    "registers": "gt.jit(lambda x: gt.while_loop(lambda s: s > 0, lambda s: s + 1e-9, x))(1.0)",
    "arrays": "gt.jit(lambda x: gt.while_loop(lambda s: s[0] > 0, np.sin, x))(np.ones(500))",
    "counted": "gt.jit(lambda x: gt.fori_loop(0, 10**12, lambda i, s: np.sin(s), x))(1.0)",
    "nested": "gt.jit(lambda x: gt.fori_loop(0, 10**6, lambda i, s: gt.fori_loop(0, 10**6, "
    "lambda k, s: np.sin(s) + k, s), x))(1.0)",
    "eager": "gt.while_loop(lambda s: s > 0, lambda s: s + 1e-9, 1.0)",
}


QUICK = ("registers", "arrays", "eager")
KINDS = [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in ENDLESS]


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_that_never_ends_can_be_interrupted(kind):
    program = textwrap.dedent(f"""
        import numpy as np, gradtape as gt
        gt.jit(lambda x: gt.while_loop(lambda s: s < 3, lambda s: s + 1, x))(1.0)
        try:
            print("ready", flush=True)
            {ENDLESS[kind]}
        except KeyboardInterrupt:
            f = gt.jit(lambda x: gt.while_loop(lambda s: s < 3, lambda s: s + 1, x))
            print("interrupted", f(1.0), flush=True)
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        # A signal that this process ignores, as in the background of a shell, its children ignore.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):  # it is compiled, and runs
            child.wait(timeout=1.0)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
        assert out.split() == ["interrupted", "3.0"]
    finally:
        child.kill()
        child.communicate()


def test_other_threads_run_while_a_loop_runs():
    counts = []
    done = threading.Event()

    def count():
        while not done.is_set():
            counts.append(None)
            time.sleep(0.001)

    function = gt.jit(lambda n: gt.while_loop(lambda s: s < n, lambda s: s + 1, 0))
    function(10)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = len(counts)
        start = time.perf_counter()
        function(400_000_000)
        spent = time.perf_counter() - start
    finally:
        done.set()
        thread.join()
    # It counts about a thousand times a second, if it is let.
    assert len(counts) - before > 20 * spent


def test_what_scan_goes_through_says_what_to_use_instead():
    def add(state, x):
        return state + x, state

    with pytest.raises(gt.errors.ShapeError, match=r"use np\.array of a list of numbers"):
        gt.scan(add, 0.0, [1.0, 2.0])
    with pytest.raises(gt.errors.DTypeError, match=r"static_argnums for it, or gt\.fori_loop"):
        gt.jit(lambda n: gt.scan(lambda s, _: (s, s), 0.0, None, length=n))(3)


@pytest.mark.parametrize("make", [np.array, gt.tensor], ids=["array", "tensor"])
def test_a_body_may_write_into_its_state(make):
    def step(s, x):
        s[1] = s[0] + x
        s[0] = x
        return s, (s, s[1:])

    init = make([5.0, 7.0, 9.0])
    for run in both(lambda s: gt.scan(step, s, XS[:2])):
        last, (whole, part) = run(init)
        np.testing.assert_array_equal(np.asarray(init), [5.0, 7.0, 9.0])
        np.testing.assert_array_equal(np.asarray(last), [2.0, 3.0, 9.0])
        np.testing.assert_array_equal(np.asarray(whole), [[1.0, 6.0, 9.0], [2.0, 3.0, 9.0]])
        np.testing.assert_array_equal(np.asarray(part), [[6.0, 9.0], [3.0, 9.0]])

    def shift(s):
        s[0] = s[0] + 3.0
        return s

    for run in both(lambda s: gt.while_loop(lambda s: s[0] < 10.0, shift, s)):
        assert float(np.asarray(run(init))[0]) == 11.0
        np.testing.assert_array_equal(np.asarray(init), [5.0, 7.0, 9.0])


def test_the_index_of_a_switch_is_checked_even_if_nothing_reads_the_result():
    function = gt.jit(lambda i, x: (gt.switch(i, [lambda: x, lambda: 0.0 * x]), 2.0 * x)[1])
    assert function(1, 3.0) == 6.0
    with pytest.raises(IndexingError, match="got index 7"):
        function(7, 3.0)
