"""`solve_ivp` in every way of running: eager, compiled, batched, checkpointed, and on tapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

import gradtape as gt
from builds import NATIVE
from gradtape import containers

solve_ivp = gt.scipy.integrate.solve_ivp
TIMES = np.array([0.0, 0.4, 1.3, 2.0])
START = np.array([1.0, -0.5])
P = np.array([0.7, 1.2])


def spiral(t: Any, y: Any, p: Any) -> Any:
    return np.stack([y[1] - p[0] * y[0], -p[1] * np.sin(y[0]) + 0.2 * np.cos(t)])


def loss_by(method: str = "RK45", gradient: str = "discrete", **options: Any) -> Callable[..., Any]:
    """A number that depends on all of a solution; p[1] is used from outside."""

    def loss(y0: Any, p: Any) -> Any:
        def fun(t: Any, y: Any, first: Any) -> Any:
            return spiral(t, y, [first, p[1]])

        found = solve_ivp(
            fun, (0.0, 2.0), y0, method, TIMES, args=(p[0],), gradient=gradient, **options
        )
        return np.sum(found.y * np.cos(np.arange(8.0).reshape(2, 4)))

    return loss


def assert_close(got: Any, expected: Any, rtol: float = 1e-9) -> None:
    for one, other in zip(containers.flatten(got)[0], containers.flatten(expected)[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-10)


KINDS = [("RK23", "discrete"), ("RK45", "discrete"), ("DOP853", "discrete"), ("RK45", "adjoint")]
SLOW = [pytest.param(method, "discrete", marks=pytest.mark.slow) for method in ("RK23", "DOP853")]
BOTH = (0, 1)


@pytest.mark.parametrize(("method", "gradient"), [*SLOW, KINDS[1], KINDS[3], ("Radau", "discrete")])
def test_compiled(method: str, gradient: str) -> None:
    loss = loss_by(method, gradient)
    expected = gt.value_and_grad(loss, BOTH)(START, P)
    compiled, slope = gt.jit(loss), gt.jit(gt.grad(loss, BOTH))
    assert_close(compiled(START, P), expected[0])
    assert_close(slope(START, P), expected[1])
    # Other arguments take other steps.
    assert_close(slope(3 * START, P), gt.grad(loss, BOTH)(3 * START, P))
    assert_close(gt.grad(compiled, BOTH)(START, P), expected[1])
    tangents = np.array([0.3, 0.1]), np.array([-0.2, 0.4])
    pushed = gt.jvp(loss, (START, P), tangents)
    # The adjoint's tangents are not the transposes of its cotangents, but for the tolerances.
    along = sum(np.sum(g * t) for g, t in zip(expected[1], tangents, strict=True))
    assert_close(pushed[1], along, 1e-11 if gradient == "discrete" else 1e-2)
    if method != "Radau":
        assert_close(gt.jit(lambda *x: gt.jvp(loss, x, tangents))(START, P), pushed)
    for function in (compiled, slope):
        assert function.explain(START, P).eager == [] or not NATIVE


ADJOINT = pytest.param(*KINDS[3], marks=pytest.mark.slow)


@pytest.mark.parametrize(("method", "gradient"), [KINDS[1], ADJOINT])
def test_batched(method: str, gradient: str) -> None:
    both = gt.value_and_grad(loss_by(method, gradient), BOTH)
    starts = np.array([[1.0, -0.5], [0.1, 0.0], [8.0, 3.0]])
    each = [both(y0, P) for y0 in starts]
    expected = [
        np.stack(leaves) for leaves in zip(*(containers.flatten(x)[0] for x in each), strict=True)
    ]
    for way in (
        gt.vmap(both, in_axes=(0, None)),
        gt.jit(gt.vmap(both, in_axes=(0, None))),
        lambda ys, p: gt.map(lambda y0: both(y0, p), ys),
        gt.jit(lambda ys, p: gt.map(lambda y0: both(y0, p), ys)),
    ):
        assert_close(containers.flatten(way(starts, P))[0], expected)


def test_batched_radau() -> None:
    both = gt.value_and_grad(loss_by("Radau"), BOTH)
    starts = np.array([[1.0, -0.5], [0.1, 0.0]])
    each = [both(y0, P) for y0 in starts]
    expected = [
        np.stack(leaves) for leaves in zip(*(containers.flatten(x)[0] for x in each), strict=True)
    ]
    batch = gt.vmap(both, in_axes=(0, None))
    assert_close(containers.flatten(batch(starts, P))[0], expected)
    assert_close(containers.flatten(gt.jit(batch)(starts, P))[0], expected)


def test_batches_of_everything() -> None:
    def end(y0: Any, rate: Any, ends: Any, times: Any) -> Any:
        return solve_ivp(lambda t, y: -rate * y, ends, y0, t_eval=times, rtol=1e-8, atol=1e-10).y[0]

    y0 = np.array([[1.0], [2.0]])
    rate = np.array([0.5, 2.0])
    # One forwards, one backwards.
    ends = np.array([[0.0, 1.0], [1.0, -1.0]])
    times = np.array([[0.2, 1.0], [0.5, -1.0]])
    exact = y0 * np.exp(-rate[:, None] * (times - ends[:, :1]))
    for way in (gt.vmap(end), gt.jit(gt.vmap(end))):
        np.testing.assert_allclose(way(y0, rate, ends, times), exact, rtol=1e-6)
    every = (0, 1, 2, 3)
    one_by_one = [gt.jacrev(end, every)(*x) for x in zip(y0, rate, ends, times, strict=True)]
    batch = gt.vmap(gt.jacrev(end, every))(y0, rate, ends, times)
    for n, got in enumerate(batch):
        np.testing.assert_allclose(got, np.stack([x[n] for x in one_by_one]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
@pytest.mark.parametrize("save", ["sqrt", 3])
def test_states_that_are_kept_make_no_difference(method: str, save: Any) -> None:
    expected = gt.value_and_grad(loss_by(method), BOTH)(START, P)
    some = gt.value_and_grad(loss_by(method, save=save), BOTH)
    assert_close(some(START, P), expected, 1e-12)
    if method == "RK45":
        assert_close(gt.jit(some)(START, P), expected, 1e-10)


@pytest.mark.parametrize(("method", "gradient"), [*KINDS, ("Radau", "discrete")])
def test_tapes_contexts_and_checkpoints(method: str, gradient: str) -> None:
    loss = loss_by(method, gradient)
    expected = gt.grad(loss, BOTH)(START, P)
    y0, p = (gt.tensor(x, requires_grad=True) for x in (START, P))
    loss(y0, p).backward()
    assert_close((y0.grad, p.grad), expected, 1e-12)
    with gt.GradientContext():
        y0, p = (gt.tensor(x, requires_grad=True) for x in (START, P))
        gt.compute_gradients(loss(y0, p))
        assert_close((y0.grad, p.grad), expected, 1e-12)
    block = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Block, checkpoint_every_n=20)
    full = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
    for config in (None, block, full):
        with gt.GradientTape(checkpoint=config) as tape:
            y0, p = tape.watch(START), tape.watch(P)
            total = loss(y0, p)
        assert_close(tape.gradient(total, [y0, p]), expected, 1e-12)
    assert_close(gt.grad(gt.checkpoint(loss), BOTH)(START, P), expected, 1e-12)


def test_dense_output_and_all_steps_on_a_checkpointed_tape() -> None:
    def loss(y0: Any) -> Any:
        event = lambda t, y, p: y[0]  # noqa: E731
        found = solve_ivp(spiral, (0, 3), y0, args=(P,), events=event, dense_output=True)
        return np.sum(found.y**2) + np.sum(found.sol(TIMES)) + np.sum(found.t_events[0])

    expected = gt.grad(loss)(START)
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Block, checkpoint_every_n=15)
    with gt.GradientTape(checkpoint=config) as tape:
        y0 = tape.watch(START)
        total = loss(y0)
    assert_close(tape.gradient(total, y0), expected, 1e-12)
    assert_close(gt.grad(gt.checkpoint(loss))(START), expected, 1e-12)
    assert_close(gt.jacfwd(loss)(START), expected, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
def test_compiled_hessians(gradient: str) -> None:
    loss = loss_by("RK45", gradient, rtol=1e-6, atol=1e-8)
    hessian = gt.hessian(lambda p: loss(START, p))
    assert_close(gt.jit(hessian)(P), hessian(P))


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["discrete", "adjoint"])
def test_compiled_hessians_and_batches_of_radau(gradient: str) -> None:
    loss = loss_by("Radau", gradient, rtol=1e-6, atol=1e-8)
    hessian = gt.hessian(lambda p: loss(START, p))
    expected = hessian(P)
    assert_close(gt.jit(hessian)(P), expected)
    assert_close(gt.vmap(hessian)(P[None])[0], expected)
    slope = gt.grad(loss, BOTH)
    batch = gt.jit(gt.vmap(slope, in_axes=(0, None)))(START[None], P)
    assert_close([x[0] for x in batch], slope(START, P))


def test_inside_of_loops_and_branches() -> None:
    def end(y: Any, rate: Any) -> Any:
        return solve_ivp(lambda t, y: -rate * y, (0.0, 0.5), y, t_eval=[0.5], rtol=1e-8).y[:, 0]

    def path(rate: Any) -> Any:
        y, _ = gt.scan(lambda y, _: (end(y, rate), 0.0), np.ones(1), np.arange(4))
        return gt.cond(rate > 0, lambda: end(y, rate)[0], lambda: y[0])

    for way in (gt.grad(path), gt.jit(gt.grad(path)), gt.jacfwd(path)):
        np.testing.assert_allclose(way(0.3), -2.5 * np.exp(-0.75), rtol=1e-4)


# ---- random equations ---------------------------------------------------------------------------


@st.composite
def equations(draw: Any) -> tuple[int, int, bool, bool]:
    """The size, a seed, whether time runs backwards, and whether matrices are arguments."""
    return (
        draw(st.integers(1, 4)),
        draw(st.integers(0, 10**6)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def ways_of(loss: Callable[..., Any], count: int) -> dict[str, Callable[..., Any]]:
    """Ways to compute a number and its gradients."""
    every = tuple(range(count))
    both = gt.value_and_grad(loss, every)
    batch = gt.vmap(both)

    def by_tape(*x: Any) -> Any:
        with gt.GradientTape() as tape:
            leaves = [tape.watch(one) for one in x]
            total = loss(*leaves)
        return total.detach(), tuple(tape.gradient(total, leaves))

    return {
        "tape": by_tape,
        # Without tensors the value would be SciPy's, whose Radau takes other steps.
        "forward": lambda *x: (gt.jvp(loss, x, x)[0], gt.jacfwd(loss, every)(*x)),
        "compiled": gt.jit(both),
        "of compiled": gt.value_and_grad(gt.jit(loss), every),
        "batched": lambda *x: [
            y[0] for y in containers.flatten(batch(*(one[None] for one in x)))[0]
        ],
    }


@pytest.mark.parametrize(
    "method",
    ["RK45", *(pytest.param(m, marks=pytest.mark.slow) for m in ("RK23", "DOP853", "Radau"))],
)
def test_random_equations_in_every_way(method: str) -> None:
    # Each is compiled, which takes too long to look for a smaller one.
    @settings(max_examples=3, phases=[Phase.generate])
    @given(equations())
    def check(equation: tuple[int, int, bool, bool]) -> None:
        size, seed, is_backward, is_argument = equation
        rng = np.random.default_rng(seed)
        ends = np.array([0.0, 1.5])[:: -1 if is_backward else 1]
        times = np.linspace(*ends, 5)[1:4]
        weights = rng.normal(size=(size, 3))

        def fun(t: Any, y: Any, matrix: Any, inner: Any) -> Any:
            return matrix @ y + np.tanh(inner @ y + t)

        def loss(y0: Any, matrix: Any, inner: Any, ends: Any, times: Any) -> Any:
            given, right = (matrix, inner), fun
            if not is_argument:
                given, right = (), lambda t, y: fun(t, y, matrix, inner)
            return np.sum(weights * solve_ivp(right, ends, y0, method, times, args=given).y)

        point = rng.normal(size=size), *(rng.normal(size=(2, size, size)) / 2), ends, times
        expected = gt.value_and_grad(loss, (0, 1, 2, 3, 4))(*point)
        exact = solve_ivp(
            fun, ends, point[0], "DOP853", times, args=point[1:3], rtol=1e-10, atol=1e-12
        )
        assert abs(expected[0] - np.sum(weights * exact.y)) < 0.05
        for way, both in ways_of(loss, 5).items():
            got = containers.flatten(both(*point))[0]
            for one, other in zip(got, containers.flatten(expected)[0], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8, err_msg=way)

    check()


def test_buffers_like_y_take_tensors_of_parameters() -> None:
    def end(k: Any) -> Any:
        def f(t: Any, y: Any) -> Any:
            out = np.zeros_like(y)
            out[0] = -k * y[0]
            return out

        return solve_ivp(f, (0.0, 1.0), [1.0, 1.0], t_eval=[1.0], rtol=1e-8).y[0, 0]

    for way in (gt.grad(end), gt.jit(gt.grad(end))):
        np.testing.assert_allclose(way(2.0), -np.exp(-2.0), rtol=1e-5)


@pytest.mark.slow
def test_the_integral_of_a_solution() -> None:
    def area(k: Any) -> Any:
        options = {"dense_output": True, "rtol": 1e-4}
        sol = solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], **options).sol
        return gt.scipy.integrate.quad(lambda t: sol(t)[0], 0.0, 1.0)[0]

    exact = gt.grad(lambda k: (1 - np.exp(-k)) / k)(2.0)
    np.testing.assert_allclose(gt.grad(area)(2.0), exact, rtol=1e-3)
