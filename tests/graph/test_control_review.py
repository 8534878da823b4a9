"""Loops and branches at awkward points: compiled code does what eager code does."""

import numpy as np
import pytest

import gradtape as gt


class Seen:
    """Doubles numbers on the host, and notes which it was given."""

    def __init__(self):
        self.given = []

    def __call__(self, x):
        return gt.host_call(self._double, 0.0, x, vjp=lambda ct, _out, _x: (2 * ct,))

    def _double(self, x):
        self.given.append(float(x))
        return x * 2.0

    def taken(self):
        given, self.given = self.given, []
        return given


# ---- effects ------------------------------------------------------------------------------------


def unused_scan(seen, x):
    gt.fori_loop(0, 3, lambda _i, s: seen(s), x)


def unused_map(seen, x):
    gt.map(seen, x + np.arange(3.0))


def unused_while(seen, x):
    gt.while_loop(lambda s: s[1] < 3, lambda s: (seen(s[0]), s[1] + 1), (x, 0))


def unused_branch(seen, x):
    gt.cond(x > 0, lambda: seen(x), lambda: x)


def stateless_twice(seen, x):
    def body(i, state):
        seen(x * i)
        return state

    gt.fori_loop(0, 3, body, ())
    gt.fori_loop(0, 3, body, ())


def nested(seen, x):
    gt.scan(lambda s, _: (gt.fori_loop(0, 2, lambda _i, t: seen(t), s), None), x, length=2)


@pytest.mark.parametrize(
    "effect",
    [unused_scan, unused_map, unused_while, unused_branch, stateless_twice, nested],
    ids=lambda effect: effect.__name__,
)
def test_effects_in_loops_happen_though_nobody_reads_the_results(effect):
    seen = Seen()

    def program(x):
        effect(seen, x)
        return x * 2.0

    assert program(1.5) == 3.0
    want = seen.taken()
    assert want
    compiled = gt.jit(program)
    for _ in range(2):
        assert compiled(1.5) == 3.0
        assert seen.taken() == want


def test_a_gradient_does_not_repeat_the_effects_of_a_scan():
    seen = Seen()

    def program(x):
        return gt.fori_loop(0, 3, lambda _i, s: seen(s) * s, x)

    gradient = gt.grad(program)(1.5)
    want = seen.taken()
    assert gt.jit(gt.grad(program))(1.5) == gradient
    assert seen.taken() == want


def test_constants_and_products_are_moved_out_of_loops_with_effects():
    w = np.array([[1.0, 2.0], [3.0, 4.0]])

    def program(w, xs, first):
        def step(state, x):
            number = gt.switch(state[1] % 2, [lambda: 1.0, lambda: 2.0])
            moved = x @ np.exp(w)
            return (state[0] + moved * number, state[1] + 1), moved @ w

        return gt.scan(step, (np.zeros((1, 2)), first), xs)

    xs = np.arange(6.0).reshape(3, 1, 2)
    (total, count), ys = program(w, xs, 1)
    (got_total, got_count), got_ys = gt.jit(program)(w, xs, 1)
    np.testing.assert_allclose(got_total, total, rtol=1e-12)
    np.testing.assert_allclose(got_ys, ys, rtol=1e-12)
    assert got_count == count


# ---- branches -----------------------------------------------------------------------------------


def test_a_switch_in_a_loop_without_native_code():
    seen = Seen()

    def program(x):
        def body(i, s):
            return gt.switch((i + 1) % 3, [lambda: s * 2.0, lambda: seen(s), lambda: s + 1.0])

        return gt.fori_loop(0, 4, body, x)

    assert gt.jit(program)(1.5) == program(1.5)


# ---- bounds and counters ------------------------------------------------------------------------


def total(lower, upper):
    return gt.fori_loop(lower, upper, lambda i, s: s + i * 1.0, 0.0)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(np.int8(0), 300), (np.uint8(0), np.int64(300)), (0, np.int16(300)), (np.int8(-3), 300)],
)
def test_counting_does_not_overflow_in_the_dtype_of_a_bound(lower, upper):
    want = float(sum(range(int(lower), int(upper))))
    assert total(lower, upper) == want
    assert gt.jit(total)(lower, upper) == want
    assert gt.jit(lambda n: total(lower, n))(upper) == want
    assert gt.jit(lambda n: total(n, upper))(lower) == want


def test_a_loop_of_no_steps_in_eager_code_does_not_call_its_function():
    table = np.arange(3.0)

    def program(n, start):
        return gt.fori_loop(0, n, lambda i, s: s + table[i], start)

    assert [program(n, 1.0) for n in range(3)] == [1.0, 1.0, 2.0]
    with pytest.raises(gt.errors.DTypeError, match="expected arrays"):
        program(0, "text")


def powers(x, count):
    def step(state):
        return state[0] * x + state[1], state[1] + 1

    return gt.while_loop(lambda state: state[1] < count, step, (x, 0))[0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_batches_of_loops_with_a_counter_keep_their_dtype(dtype):
    x, counts = np.array([1.0, 2.0, 0.5], dtype), np.array([3, 4, 0])
    values = np.array([powers(a, n) for a, n in zip(x, counts, strict=True)])
    slopes = np.array([gt.grad(powers)(a, n) for a, n in zip(x, counts, strict=True)])
    for function, want in ((powers, values), (gt.grad(powers), slopes)):
        for batched in (
            gt.vmap(function),
            gt.jit(gt.vmap(function)),
            gt.vmap(gt.jit(function)),
        ):
            got = batched(x, counts)
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == np.float16 else 1e-6)


def test_elements_that_have_stopped_stay_as_they_are():
    def collatz(n):
        def step(state):
            n, steps = state
            return np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        # Taken with the counter of the others, the condition would hold again.
        return gt.while_loop(lambda s: (s[0] != 1) & (s[1] % 10 != 9), step, (n, 0))

    numbers = np.array([6, 1, 7, 27, 2])
    want = np.array([collatz(n) for n in numbers])
    for batched in (gt.vmap(collatz), gt.jit(gt.vmap(collatz)), gt.vmap(gt.jit(collatz))):
        np.testing.assert_array_equal(np.stack(batched(numbers), axis=1), want)


def test_loops_in_batched_loops_keep_their_dtypes():
    def program(x, count):
        def step(state):
            inner = gt.fori_loop(0, 2, lambda i, s: s * 0.5 + i, state[0] * state[1])
            return gt.cond(inner[0] > 1, lambda: inner - 1, lambda: inner), state[1] + 1

        return gt.while_loop(lambda state: state[1] < count, step, (x, 1))[0]

    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    counts = np.array([1, 3, 5])
    want = np.stack([program(a, n) for a, n in zip(x, counts, strict=True)])
    for batched in (gt.vmap(program), gt.jit(gt.vmap(program)), gt.vmap(gt.jit(program))):
        got = batched(x, counts)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5)


# ---- numbers from around a loop -----------------------------------------------------------------


def captured_by_branch(x, v):
    return gt.cond(x > 0, lambda: x * v, lambda: v)


def captured_by_fori(x, v):
    return gt.fori_loop(0, 3, lambda _i, s: s * x, v)


def captured_by_while(x, v):
    return gt.while_loop(lambda s: np.sum(s) < 9, lambda s: s * x, v)


def captured_by_map(x, v):
    return gt.map(lambda e: e * x, v)


def captured_twice(x, v):
    return gt.fori_loop(0, 2, lambda i, s: gt.cond(x > i, lambda: x * s, lambda: s + i), v)


def captured_in_stretches(x, v):
    return gt.fori_loop(0, 5, lambda _i, s: np.sin(s) * x, v, save="sqrt")


@pytest.mark.parametrize(
    "program",
    [
        captured_by_branch,
        captured_by_fori,
        captured_by_while,
        captured_by_map,
        captured_twice,
        captured_in_stretches,
    ],
    ids=lambda program: program.__name__,
)
@pytest.mark.parametrize("size", [3, 400])
def test_python_numbers_used_in_a_body_take_the_dtype_of_the_arrays(program, size):
    v = np.linspace(0.5, 1.5, size, dtype=np.float32)
    gradient = gt.grad(lambda v, x: np.sum(program(x, v)))
    for function, args in ((program, (2.0, v)), (gradient, (v, 2.0))):
        want, got = function(*args), gt.jit(function)(*args)
        assert got.dtype == want.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_python_integers_used_in_a_branch_do_not_wrap_around():
    def program(n):
        return gt.cond(n > 0, lambda: n * 8, lambda: n)

    got = gt.jit(program)(3)
    assert got == 24
    assert type(got) is int
    with pytest.raises(gt.errors.IntegerOverflowError, match="too large"):
        gt.jit(program)(2**62)


def test_a_loop_of_known_numbers_is_compiled_like_others():
    def program(x, steps):
        return x * gt.fori_loop(0, steps, lambda i, s: s * 0.5 + i, 0.0)

    # Run while it is traced, it would be nodes, or a number that the graph has as a constant.
    graph = gt.jit(program, static_argnums=1).graph(2.0, 1000)
    assert [node.op.name for node in graph.nodes] == ["scan", "multiply"]
    assert gt.jit(program, static_argnums=1)(2.0, 1000) == program(2.0, 1000)
    with pytest.raises(gt.errors.IntegerOverflowError, match="too large"):
        gt.jit(lambda x: x + gt.fori_loop(0, 3, lambda _i, s: s * 2, 2**62))(1.0)
