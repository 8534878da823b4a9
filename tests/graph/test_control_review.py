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
