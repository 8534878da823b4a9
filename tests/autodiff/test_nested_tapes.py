"""Several tapes at once: beside each other, inside each other, with transforms, in threads."""

import threading

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import TapeError

X = np.array([1.0, 2.0, 3.0])


def value(tensor: gt.Tensor) -> np.ndarray:
    assert isinstance(tensor, gt.Tensor)
    return np.asarray(tensor.detach())


# ---- beside each other --------------------------------------------------------------------------


def test_two_tapes_record_one_computation():
    one, two = gt.GradientTape(), gt.GradientTape()
    a, b = one.watch(2.0), two.watch(3.0)
    y = a * a * b
    assert two.gradient(y, b).item() == 4.0
    assert one.gradient(y, a).item() == 12.0


def test_two_tapes_may_watch_one_value():
    plain = gt.tensor(X)
    one, two = gt.GradientTape(), gt.GradientTape()
    a, b = one.watch(plain), two.watch(plain)
    assert value(one.gradient(gt.sum(a * a), a)).tolist() == [2, 4, 6]
    assert value(two.gradient(gt.sum(b * 3.0), b)).tolist() == [3, 3, 3]


def test_tapes_in_threads():
    results: dict[int, float] = {}

    def work(k: int) -> None:
        for _ in range(50):
            with gt.GradientTape() as tape:
                x = tape.watch(float(k))
                y = x * x * x
            results[k] = results.get(k, 0.0) + tape.gradient(y, x).item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: 50 * 3.0 * k * k for k in range(8)}


def test_a_tape_made_in_one_thread_can_be_asked_in_another():
    tape = gt.GradientTape()
    x = tape.watch(3.0)
    y = x * x
    answers = []
    thread = threading.Thread(target=lambda: answers.append(tape.gradient(y, x).item()))
    thread.start()
    thread.join()
    assert answers == [6.0]


def test_many_threads_may_ask_one_persistent_tape_at_once():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(X)
    y = x
    for _ in range(50):
        y = np.tanh(y) + x[::-1] * y
    expected = value(tape.gradient(y, x))
    start, wrong = threading.Barrier(6), []

    def work() -> None:
        start.wait()
        for _ in range(20):
            if not np.array_equal(value(tape.gradient(y, x)), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- inside each other --------------------------------------------------------------------------


def nth(function, order, at):
    """The derivatives of a scalar function up to an order, by nested tapes."""
    with gt.GradientTape() as tape:
        x = tape.watch(at)
        y = function(x) if order == 1 else nth(function, order - 1, x)[-1]
    lower = [] if order == 1 else nth(function, order - 1, at)
    return [*lower, tape.gradient(y, x)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x**3, [12, 12, 6, 0]),
        (lambda x: x * x * x, [12, 12, 6, 0]),
        (lambda x: x * 5.0 + 1.0, [5, 0, 0, 0]),
        (lambda x: -x, [-1, 0, 0, 0]),
        (lambda x: gt.sum(gt.stack([x, x * x])), [5, 2, 0, 0]),
        (np.exp, [np.exp(2.0)] * 4),
        (np.sin, [np.cos(2.0), -np.sin(2.0), -np.cos(2.0), np.sin(2.0)]),
    ],
    ids=["power", "product", "linear", "negative", "stack", "exp", "sin"],
)
def test_nested_tapes_to_the_fourth_order(function, expected):
    got = [float(g) for g in nth(function, 4, 2.0)]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_hessian_of_a_non_separable_function_row_by_row():
    def f(x):
        return x[0] ** 2 * x[1] + np.sin(x[1] * x[2])

    with gt.GradientTape(persistent=True) as outer:
        x = outer.watch(X)
        with gt.GradientTape() as inner:
            xi = inner.watch(x)
            y = f(xi)
        slope = inner.gradient(y, xi)
        parts = [slope[i] for i in range(3)]
    rows = np.stack([value(outer.gradient(part, x)) for part in parts])
    np.testing.assert_allclose(rows, gt.hessian(f)(X), rtol=1e-12)
    assert rows[0, 1] == 2.0
    assert rows[0, 2] == 0.0


def test_the_inner_answer_is_on_the_outer_tape_after_the_outer_block():
    with gt.GradientTape() as outer:
        x = outer.watch(2.0)
        with gt.GradientTape() as inner:
            xi = inner.watch(x)
            y = xi**3
        slope = inner.gradient(y, xi)
    assert float(slope) == 12.0
    assert float(outer.gradient(slope, x)) == 12.0


def test_the_outer_tape_differentiates_what_the_inner_one_recorded():
    with gt.GradientTape() as outer:
        x = outer.watch(2.0)
        with gt.GradientTape() as inner:
            y = inner.watch(x) ** 3
    assert outer.gradient(y, x).item() == 12.0


def test_an_unconnected_second_derivative_is_zero():
    with gt.GradientTape() as outer:
        x, other = outer.watch(X), outer.watch(5.0)
        with gt.GradientTape() as inner:
            xi = inner.watch(x)
            y = gt.sum(xi * other)
        slope = inner.gradient(y, xi)
    assert value(outer.gradient(slope, x)).tolist() == [0, 0, 0]


def test_forward_over_reverse_on_tapes():
    def f(x):
        return np.sum(np.tanh(x) * x[::-1])

    v = np.array([1.0, -1.0, 0.5])
    with gt.GradientTape() as outer:
        x = outer.watch(X)
        with gt.GradientTape() as inner:
            xi = inner.watch(x)
            y = f(xi)
        slope = inner.gradient(y, xi)
    product = outer.forward_gradient(x, slope, v)
    np.testing.assert_allclose(value(product), gt.hvp(f, (X,), (v,)), rtol=1e-12)


def test_reverse_over_forward_on_tapes():
    v = np.array([1.0, -1.0, 0.5])
    with gt.GradientTape() as outer:
        x = outer.watch(X)
        with gt.GradientTape() as inner:
            xi = inner.watch(x)
            y = np.sum(np.tanh(xi) * xi[::-1])
        pushed = inner.forward_gradient(xi, y, v)
    product = outer.gradient(pushed, x)
    hvp = gt.hvp(lambda x: np.sum(np.tanh(x) * x[::-1]), (X,), (v,))
    np.testing.assert_allclose(value(product), hvp, rtol=1e-12)


def test_watching_a_value_of_a_higher_level_raises():
    outer, inner = gt.GradientTape(), gt.GradientTape()
    outer.watch(1.0)
    x = inner.watch(2.0)
    with pytest.raises(TapeError, match="order of nesting"):
        outer.watch(x)


def test_a_tape_takes_its_level_at_the_first_watch():
    early, late = gt.GradientTape(), gt.GradientTape()
    x = late.watch(2.0)
    xi = early.watch(x)
    slope = early.gradient(xi**3, xi)
    assert late.gradient(slope, x).item() == 12.0


# ---- with transforms and contexts ---------------------------------------------------------------


def test_a_tape_inside_a_transform():
    def slope(x):
        with gt.GradientTape() as tape:
            xi = tape.watch(x)
            y = xi**3
        return tape.gradient(y, xi)

    assert gt.grad(slope)(2.0) == 12.0
    assert gt.jvp(slope, (2.0,), (1.0,)) == (12.0, 12.0)
    assert gt.grad(gt.grad(slope))(2.0) == 6.0
    np.testing.assert_array_equal(gt.vmap(slope)(X), 3 * X**2)


def test_forward_gradient_inside_a_transform():
    def slope(x):
        tape = gt.GradientTape()
        xi = tape.watch(x)
        return tape.forward_gradient(xi, np.sin(xi) * x)

    np.testing.assert_allclose(gt.grad(slope)(2.0), np.cos(2.0) - 2 * np.sin(2.0), rtol=1e-14)
    np.testing.assert_allclose(gt.vmap(slope)(X), np.cos(X) * X, rtol=1e-14)


def test_a_transform_inside_a_tape():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(X)
    slope = gt.grad(lambda v: gt.sum(v**3))(x)
    assert value(tape.gradient(slope, x)).tolist() == [6, 12, 18]
    _, pushed = gt.jvp(lambda v: v**3, (x,), (gt.ones(3),))
    assert value(tape.gradient(pushed, x)).tolist() == [6, 12, 18]
    batched = gt.vmap(lambda v: v**2)(x)
    assert value(tape.gradient(batched, x)).tolist() == [2, 4, 6]


def test_a_tape_inside_a_context_carries_its_answers_on():
    w = gt.tensor(X, requires_grad=True)
    tape = gt.GradientTape()
    x = tape.watch(w)
    slope = tape.gradient(gt.sum(x**3), x)
    assert slope.requires_grad
    gt.sum(slope).backward()
    np.testing.assert_array_equal(value(w.grad), 6 * X)
