"""Branches and loops: what random programs have found."""

import numpy as np
import pytest

import gradtape as gt

F32 = np.float32
MATRICES = np.random.default_rng(0).normal(size=(3, 4, 4))
VECTORS = np.random.default_rng(1).normal(size=(3, 4))


def test_a_counter_stays_a_weak_integer_in_functions_inside_the_loop():
    def nested(x):
        def body(i, s):
            return gt.fori_loop(0, 2, lambda j, t: np.sin(t) + 0.1 * i, s)

        return gt.fori_loop(0, 3, body, x)

    def branch(x):
        def body(i, s):
            return gt.cond(s > 0.2, lambda s: s * i, lambda s: s + i, s)

        return gt.fori_loop(0, 3, body, x)

    for function in (nested, branch):
        want = function(F32(0.3))
        got = gt.jit(function)(F32(0.3))
        assert got.dtype == want.dtype == F32
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("save", ["all", "sqrt"])
def test_a_python_counter_keeps_the_dtype_of_a_batch_that_stops_at_different_times(save):
    def function(x, end):
        body = lambda s: (s[0] * np.cos(s[0] * s[1]), s[1] + 1)  # noqa: E731
        return gt.while_loop(lambda s: s[1] < end, body, (x, 0), save=save)[0]

    xs, ends = np.array([0.5, 0.7, 0.3], F32), np.array([2, 3, 1])
    for make in (lambda f: f, gt.grad):
        want = np.stack([make(function)(x, end) for x, end in zip(xs, ends, strict=True)])
        for run in (gt.vmap(make(function)), gt.jit(gt.vmap(make(function)))):
            got = run(xs, ends)
            assert got.dtype == F32
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_counted_loop_of_a_batch_with_different_ends_keeps_its_dtype():
    function = lambda x, end: gt.fori_loop(0, end, lambda i, s: s + x * i, x)  # noqa: E731
    xs, ends = np.array([0.5, 0.7, 0.3], F32), np.array([2, 3, 0])
    for run in (gt.vmap(function), gt.jit(gt.vmap(function))):
        got = run(xs, ends)
        assert got.dtype == F32
        np.testing.assert_allclose(got, [1.0, 2.8, 0.3], rtol=1e-6)


def solutions(matrix, vector, save):
    """Solutions at each step of a loop, of matrices that change."""

    def step(m, _):
        return m * 0.5, np.linalg.solve(0.2 * m + 6.0 * np.eye(4), vector)

    return gt.scan(step, matrix, None, length=2, save=save)[1]


@pytest.mark.parametrize("save", ["all", "sqrt"])
def test_batches_of_loops_that_solve_equations(save):
    def loss(matrix, vector):
        return np.sum(solutions(matrix, vector, save) ** 2)

    def loss_by_first_vector(matrix):
        return loss(matrix, VECTORS[0])

    both = list(zip(MATRICES, VECTORS, strict=True))
    value = [loss(*one) for one in both]
    gradient = [gt.grad(loss)(*one) for one in both]
    for run, want in ((loss, value), (gt.grad(loss), gradient)):
        np.testing.assert_allclose(gt.vmap(run)(MATRICES, VECTORS), want, rtol=1e-10)
        np.testing.assert_allclose(gt.jit(gt.vmap(run))(MATRICES, VECTORS), want, rtol=1e-10)
    got = gt.jit(gt.vmap(gt.grad(loss_by_first_vector)))(MATRICES)
    want = [gt.grad(loss_by_first_vector)(matrix) for matrix in MATRICES]
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_a_checked_branch_stays_in_the_loop_when_constants_leave_it():
    def function(x, first):
        def step(state, _):
            value, number = state
            outside = np.exp(x)  # the same at every step
            value = gt.switch(number % 3, [lambda: outside, lambda: -outside, lambda: value])
            return (value * 0.5, (number * 3 + 1) % 7), None

        return gt.scan(step, (x, first), None, length=3)[0][0]

    x = np.array([0.5, -1.0])
    for first in (0, 1, 2):
        want = function(x, np.int64(first))
        np.testing.assert_allclose(gt.jit(function)(x, np.int64(first)), want, rtol=1e-14)


def test_values_that_are_watched_in_a_loop_can_leave_it_as_a_batch():
    def loss(matrix, vector):
        def step(m, _):
            return m, vector * np.linalg.solve(0.2 * m + 6.0 * np.eye(4), vector)

        return np.sum(gt.scan(step, matrix, None, length=2, save="sqrt")[1])

    want = gt.grad(loss)(MATRICES[0], VECTORS[0])
    got = gt.jit(gt.grad(loss))(MATRICES[0], VECTORS[0])
    np.testing.assert_allclose(got, want, rtol=1e-10)


def test_a_counter_that_is_kept_for_the_backward_pass_stays_a_weak_integer():
    def function(x):
        step = lambda s, _: ((x * np.cos(x * s[1]), s[1] + 1), None)  # noqa: E731
        return gt.scan(step, (x, 0), None, length=5)[0][0]

    want = gt.grad(function)(F32(0.5))
    got = gt.jit(gt.grad(function), debug=True)(F32(0.5))  # runs the op itself, too
    assert got.dtype == want.dtype == F32
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda number, s: s + np.reshape(number, (1,)),
        lambda number, s: s + np.transpose(number),
        lambda number, s: s + np.mean(number),
        lambda number, s: s + np.var(number),
        lambda number, s: s + np.median(number),
        lambda number, s: s + gt.logsumexp(number),
        lambda number, s: s + np.einsum(",->", number, number),
        lambda number, s: s + np.einsum(",i->i", number, s),
    ],
    ids=["reshape", "transpose", "mean", "var", "median", "logsumexp", "numbers", "mixed"],
)
@pytest.mark.parametrize("factor", [1, 2.0])
def test_ops_of_the_counter_alone_run_step_by_step(function, factor):
    def loop(s, save="all"):
        return gt.fori_loop(0, 3, lambda i, s: function(i * factor, s) * 1.0, s, save=save)

    s = np.array([1.0, 2.0, 3.0])
    want = loop(s)
    np.testing.assert_allclose(gt.jit(loop)(s), want)
    np.testing.assert_allclose(loop(s, "sqrt"), want)
    np.testing.assert_allclose(gt.graph.make_graph(loop)(s)(s)[0], want)
    slope = gt.grad(lambda s: np.sum(loop(s)))(s)
    np.testing.assert_allclose(gt.grad(lambda s: np.sum(loop(s, "sqrt")))(s), slope)


@pytest.mark.parametrize("save", ["all", "sqrt"])
def test_numbers_of_the_counter_are_written_into_the_state(save):
    def body(i, s):
        s = np.sort(s)
        s[i] = i * 2.0
        return s

    np.testing.assert_array_equal(gt.fori_loop(0, 3, body, np.zeros(3), save=save), [0.0, 0.0, 4.0])
    loop = gt.jit(lambda s: gt.fori_loop(0, 3, body, s, save=save))
    np.testing.assert_array_equal(loop(np.zeros(3)), [0.0, 0.0, 4.0])


def test_a_loop_of_which_only_the_check_of_an_index_is_left():
    def function(x, k):
        def step(total, y):
            chosen = gt.switch(k // 2 % 3, [np.sin, np.cos, np.tan], y)
            return total + chosen, chosen

        gt.scan(step, 0.0, x)
        return 2.0 * x

    x = np.arange(4.0)
    np.testing.assert_array_equal(gt.jit(function)(x, np.int64(3)), 2.0 * x)
