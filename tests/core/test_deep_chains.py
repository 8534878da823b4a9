"""Long and shared histories: nothing recurses, and work grows with the number of records only."""

import functools
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradtape as gt

DEEP = 4_000  # far over the interpreter's limit of recursion
# Bytes: C code that recurses DEEP times has 128 of them for each call. Python 3.13 itself frees
# chains of objects by thousands of nested calls, for which other versions have a list.
STACK = (8 << 20) if sys.version_info[:2] == (3, 13) else (512 << 10)


@pytest.fixture(autouse=True)
def _empty_default_tape():
    gt.clear_default_context_tape()


def on_a_small_stack(test):
    """Run a test in a thread whose stack is soon full, so that chains need not be longer."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        before = threading.stack_size(STACK)
        try:
            with ThreadPoolExecutor(1) as executor:
                executor.submit(test, *args, **kwargs).result()
        finally:
            threading.stack_size(before)

    return run


# ---- long chains --------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@on_a_small_stack
def test_a_long_chain_is_built_walked_and_freed(length):
    x = gt.ones(1, requires_grad=True)
    y = x * 0.0
    for _ in range(length):
        y = y + x
    assert len(gt.default_context().tape) == length + 1
    y.backward()
    assert x.grad.item() == length
    del y  # a stack that overflows here would kill the process


@pytest.mark.parametrize(
    "step",
    [
        lambda y, row: np.tanh(y),
        lambda y, row: y * row,
        lambda y, row: y.reshape(1, 2),
        lambda y, row: (gt.split(y, 2, axis=1)[0] + y) * 0.5,
        lambda y, row: gt.concatenate([y[:, 1:], y[:, :1]], axis=1),
        lambda y, row: y @ np.eye(2),
        lambda y, row: y[:],
        lambda y, row: y[:, ::-1],
        lambda y, row: gt.sum(y, axis=0, keepdims=True),
        lambda y, row: y.astype(np.float32) if y.dtype == np.float64 else y.astype(np.float64),
    ],
    ids=[
        "unary",
        "broadcast",
        "reshape",
        "split",
        "concatenate",
        "matmul",
        "view",
        "reversed",
        "sum",
        "cast",
    ],
)
@on_a_small_stack
def test_a_chain_of_any_kind_of_record(step):
    x = gt.ones((1, 2), requires_grad=True)
    row = gt.ones(2)
    y = x
    for _ in range(DEEP):
        y = step(y, row)
    gt.sum(y).backward()
    assert x.grad.shape == (1, 2)
    del y


@on_a_small_stack
def test_a_long_chain_of_assignments():
    x = gt.ones(2, requires_grad=True)
    y = x * 1.0
    for i in range(DEEP):
        y[i % 2] = y[1 - i % 2]
        y += 0.0
    gt.sum(y).backward()
    assert np.asarray(x.grad).tolist() in ([0, 2], [2, 0])


@pytest.mark.parametrize("option", ["create_graph", "release"])
@on_a_small_stack
def test_every_kind_of_walk_takes_a_long_chain(option):
    x = gt.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(DEEP):
        y = y * x
    y.backward(**{option: True})
    assert x.grad.item() == DEEP + 1
    if option == "create_graph":
        slope, x.grad = x.grad, None
        slope.backward()
        assert x.grad.item() == (DEEP + 1) * DEEP


@on_a_small_stack
def test_a_tape_takes_a_long_chain_both_ways():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(1.0)
    y = x
    for _ in range(DEEP):
        y = y * x
    assert tape.gradient(y, x).item() == DEEP + 1
    assert tape.forward_gradient(x, y).item() == DEEP + 1


@on_a_small_stack
def test_transforms_take_a_long_chain():
    def f(x):
        y = x
        for _ in range(DEEP):
            y = y * x
        return y

    assert gt.grad(f)(1.0) == DEEP + 1
    assert gt.jvp(f, (1.0,), (1.0,)) == (1.0, DEEP + 1)
    assert gt.grad(gt.grad(f))(1.0) == (DEEP + 1) * DEEP


# ---- sharing ------------------------------------------------------------------------------------


def calls(function) -> Counter[str]:
    """How often each Python and C function is called while `function` runs."""
    count: Counter[str] = Counter()

    def profile(frame, event, argument):
        if event == "call":
            count[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            count[argument.__qualname__] += 1

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


DIAMONDS = {
    "add": lambda y: y + y,
    "broadcast": lambda y: y[None] + y,
    "parts": lambda y: y[:1] + y[1:] + y,
    "split": lambda y: gt.stack(gt.split(y, 2)).reshape(2) + y,
}


@pytest.mark.parametrize("join", DIAMONDS.values(), ids=DIAMONDS.keys())
def test_a_graph_with_sharing_is_walked_once(join):
    def count(depth):
        x = gt.ones(2, requires_grad=True)
        y = x * 1.0
        for _ in range(depth):
            y = gt.reshape(join(y), -1)[-2:] * 0.5
        return calls(gt.sum(y).backward).total()

    few, many = count(10), count(40)
    assert many < 4.5 * few


def test_forward_mode_visits_shared_records_once():
    def count(depth):
        tape = gt.GradientTape()
        x = tape.watch(1.0)
        y = x
        for _ in range(depth):
            y = y + y
        return calls(lambda: tape.forward_gradient(x, y)).total()

    assert count(40) < 4.5 * count(10)


def test_second_derivatives_of_a_shared_graph_stay_polynomial():
    def f(x):
        for _ in range(30):
            x = x * x * 0.5 + x * 0.25
        return x

    assert calls(lambda: gt.grad(gt.grad(f))(0.5)).total() < 100_000


# ---- indexed cotangents stay indexed ------------------------------------------------------------


def sum_of_squares(x):
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] ** 2
    return s


def rows(x):
    s = 0.0
    for row in x.reshape(-1, 4):
        s = s + gt.sum(row * row)
    return s


def of_an_interior_array(x):
    return sum_of_squares(x * 1.0)


@pytest.mark.parametrize("function", [sum_of_squares, rows, of_an_interior_array])
def test_a_loop_over_elements_is_linear_backward(function, monkeypatch):
    def work(n):
        """Calls, and elements of all arrays of zeros that are made, in a backward pass."""
        x = gt.tensor(np.linspace(0, 1, n), requires_grad=True)
        loss = function(x)
        elements = 0
        zeros = np.zeros

        def counting(shape, *args, **kwargs):
            nonlocal elements
            out = zeros(shape, *args, **kwargs)
            elements += out.size
            return out

        with monkeypatch.context() as patch:
            patch.setattr(np, "zeros", counting)
            count = calls(loss.backward).total()
        np.testing.assert_allclose(np.asarray(x.grad), 2 * np.linspace(0, 1, n), rtol=1e-12)
        return count, elements

    (few, small), (many, large) = work(400), work(4_000)
    assert many < 10.5 * few
    assert large < 10.5 * small
    assert large <= 5 * 4_000
