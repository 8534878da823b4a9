"""Checkpoints in lazy graphs: gradients are the same, and take less memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import config as settings
from gradtape.compiler.program import temporary_bytes
from gradtape.errors import ArgumentError, ContextError
from gradtape.graph.live_memory import peak_bytes, without_replays

Wrap = Callable[..., Any]
SIZE = 16
UNIT = SIZE * SIZE * 8
WEIGHTS = [np.random.default_rng(n).standard_normal((SIZE, SIZE)) / SIZE**0.5 for n in range(12)]
X = np.linspace(-1.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE)


def layers(h: Any, weights: Any, mark: Wrap = lambda h: h) -> Any:
    for w in weights:
        h = mark(gt.tanh(h @ w))
    return h


# ---- networks of twelve layers, in blocks of four -----------------------------------------------


def plain(h: Any) -> Any:
    return layers(h, WEIGHTS)


def every_tensor(h: Any) -> Any:
    return layers(h, WEIGHTS, gt.checkpoint)


def most_tensors(h: Any) -> Any:
    for n in range(0, 12, 4):
        h = layers(h, WEIGHTS[n : n + 3], gt.checkpoint)
        h = layers(h, WEIGHTS[n + 3 : n + 4])
    return h


def large_tensors(h: Any) -> Any:
    return layers(h, WEIGHTS, lambda h: gt.adaptive_checkpoint(h, UNIT))


def functions(h: Any) -> Any:
    for n in range(0, 12, 4):
        block = WEIGHTS[n : n + 4]
        h = gt.checkpoint(lambda h, block=block: layers(h, block))(h)
    return h


def nested_functions(h: Any) -> Any:
    for n in range(0, 12, 4):
        block = [gt.checkpoint(lambda h, w=w: gt.tanh(h @ w)) for w in WEIGHTS[n : n + 4]]

        def outer(h: Any, block: Any = block) -> Any:
            for layer in block:
                h = layer(h)
            return h

        h = gt.checkpoint(outer)(h)
    return h


def groups(h: Any) -> Any:
    group = gt.CheckpointGroup()
    for n in range(0, 12, 4):
        block = WEIGHTS[n : n + 4]

        def function(inputs: Any, block: Any = block) -> Any:
            first = layers(inputs[0], block[:2])
            return {"half": first, "all": (layers(first, block[2:]),)}

        results = group.checkpoint_fn([h], function)
        h = results["all"][0] + 0.0 * results["half"]
    return h


NETWORKS = (every_tensor, most_tensors, large_tensors, functions, nested_functions, groups)
each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda f: f.__name__)
each_shape = pytest.mark.parametrize("shape", [(SIZE, SIZE), (-1, SIZE), None], ids=str)


def derivative(network: Wrap, order: int, shape: Any = (SIZE, SIZE)) -> tuple[list[Any], Any]:
    """A derivative, evaluated op by op and then compiled; and its graph."""

    def program(ctx: Any) -> Any:
        x = ctx.placeholder("x", shape)
        y = gt.sum(network(x) ** 2)
        for _ in range(order):
            (found,) = gt.graph.grad([y], [x])
            y = gt.sum(found**2)
        values = [found.eval(ctx, {x: X}) for _ in range(2)]
        return values, graph_of(ctx)

    return gt.run(program)


def graph_of(ctx: Any) -> Any:
    """The graph of the only evaluation of a context."""
    (made,) = [*ctx._evaluations, *(one._evaluation for one in ctx._specializations)]
    runner, _ = made._light or made._complete
    assert runner.runs == 2
    return runner.graph


@each_network
@each_shape
def test_gradients_are_the_same(network: Wrap, shape: Any) -> None:
    expected = derivative(plain, 1)[0][0]
    for found in derivative(network, 1, shape)[0]:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)


@each_network
def test_second_derivatives_are_the_same(network: Wrap) -> None:
    expected = derivative(plain, 2)[0][0]
    for found in derivative(network, 2)[0]:
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)


@each_network
@each_shape
def test_gradients_take_less_memory(network: Wrap, shape: Any) -> None:
    kept, less = derivative(plain, 1)[1], derivative(network, 1, shape)[1]
    if settings.uses("products"):  # a program of several parts holds all that goes between them
        assert temporary_bytes(less) < 0.75 * temporary_bytes(kept)
    assert peak_bytes(less) < 0.75 * peak_bytes(kept)


@pytest.mark.parametrize(
    "network", [every_tensor, most_tensors, functions], ids=lambda f: f.__name__
)
def test_second_derivatives_take_less_memory(network: Wrap) -> None:
    kept, less = derivative(plain, 2)[1], derivative(network, 2)[1]
    if settings.uses("products"):
        assert temporary_bytes(less) < 0.9 * temporary_bytes(kept)
    assert peak_bytes(less) < 0.9 * peak_bytes(kept)


def test_a_long_row_of_marks_takes_logarithmic_memory() -> None:
    def peak(count: int) -> int:
        def row(h: Any) -> Any:
            for _ in range(count):
                h = gt.checkpoint(np.sin(h))
            return h

        return peak_bytes(derivative(row, 1)[1])

    assert peak(64) <= peak(8) + 4 * UNIT


def test_forward_passes_do_not_change() -> None:
    def program(ctx: Any) -> Any:
        x = ctx.placeholder("x", (SIZE, SIZE))
        marked, kept = every_tensor(x), plain(x)
        values = ctx.evaluator().push(marked).push(kept).feed(x, X).run()
        return values, [value.nbytes for value in values]

    (marked, kept), _ = gt.run(program)
    np.testing.assert_array_equal(marked, kept)


# ---- what is kept -------------------------------------------------------------------------------


def replayed(network: Wrap, shape: Any = (SIZE, SIZE)) -> bool:
    return without_replays(derivative(network, 1, shape)[1]) is not None


@each_shape
def test_small_tensors_are_kept(shape: Any) -> None:
    """Sizes that are not known are decided when they are fed."""

    def network(h: Any, least: int) -> Any:
        return gt.adaptive_checkpoint(np.exp(h), least) * h

    assert replayed(lambda h: network(h, UNIT), shape)
    assert not replayed(lambda h: network(h, UNIT + 1), shape)


@each_shape
def test_functions_keep_what_their_policy_chooses(shape: Any) -> None:
    def count(policy: Any) -> int:
        function = gt.checkpoint(
            lambda h: gt.tanh(gt.tanh(h @ WEIGHTS[0]) @ WEIGHTS[1]), policy=policy
        )
        graph = derivative(function, 1, shape)[1]
        return sum(node.op.name == "tanh" for node in graph.nodes)

    assert count(None) > count(gt.keep_ops("tanh")) == 2


def test_marks_reach_through_views() -> None:
    """The array that a marked view belongs to is not kept for others either."""

    def network(h: Any) -> Any:
        for w in WEIGHTS:
            h = gt.checkpoint(gt.reshape(gt.tanh(h @ w), (-1,))).reshape((SIZE, SIZE))
        return h

    found, graph = derivative(network, 1)
    np.testing.assert_allclose(found[1], derivative(plain, 1)[0][0], rtol=1e-11, atol=1e-15)
    assert peak_bytes(graph) < 0.75 * peak_bytes(derivative(plain, 1)[1])


def test_hooks_are_called_once() -> None:
    seen: list[Any] = []

    def program(ctx: Any) -> Any:
        x = ctx.placeholder("x", (3,))
        h = gt.checkpoint(lambda x: gt.exp(gt.graph.raw_hook(gt.sin(x), seen.append)) ** 2)(x)
        (g,) = gt.graph.grad([gt.sum(h)], [x])
        return ctx.evaluator().push(g).push(h).feed(x, np.zeros(3)).run()

    np.testing.assert_array_equal(gt.run(program), [[2.0] * 3, [1.0] * 3])
    assert len(seen) == 1


def test_random_numbers_are_drawn_once() -> None:
    def program(ctx: Any) -> Any:
        x = ctx.placeholder("x", (1000,))
        h = gt.checkpoint(lambda x: gt.nn.dropout(gt.exp(x), 0.5))(x)
        (g,) = gt.graph.grad([gt.sum(h)], [x])
        return ctx.evaluator().push(h).push(g).feed(x, np.ones(1000)).run()

    value, gradient = gt.run(program)
    np.testing.assert_allclose(gradient, value)


def test_results_of_ops_with_several() -> None:
    def network(h: Any) -> Any:
        w, v = gt.linalg.eigh(h + h.T)
        return gt.checkpoint(v) * w

    def unmarked(h: Any) -> Any:
        w, v = gt.linalg.eigh(h + h.T)
        return v * w

    x = X @ X.T + np.diag(np.arange(SIZE) * 3.0)

    def program(ctx: Any, function: Wrap) -> Any:
        given = ctx.placeholder("x", (SIZE, SIZE))
        (g,) = gt.graph.grad([gt.sum(function(given)[:, 0] ** 3)], [given])
        return [g.eval(ctx, {given: x}) for _ in range(2)]

    expected = gt.run(lambda ctx: program(ctx, unmarked))[0]
    for found in gt.run(lambda ctx: program(ctx, network)):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_jacobians_products_and_vmap() -> None:
    def program(ctx: Any, mark: Wrap) -> Any:
        x = ctx.placeholder("x", (4,))
        y = mark(gt.sin(mark(gt.exp(x)) * x)) ** 2
        batched = gt.vmap(lambda a: mark(gt.exp(a)) * a)(x)
        targets = [
            *gt.graph.jacobians(y, [x]),
            *gt.graph.hessian_vector_product([gt.sum(y)], [x], [np.arange(4.0)]),
            *gt.graph.grad([gt.sum(batched)], [x]),
        ]
        return [t.eval(ctx, {x: np.linspace(0.1, 0.5, 4)}) for t in targets]

    expected = gt.run(lambda ctx: program(ctx, lambda t: t))
    for found, value in zip(gt.run(lambda ctx: program(ctx, gt.checkpoint)), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12)


def test_gradients_inside_of_checkpointed_functions() -> None:
    def program(ctx: Any, wrap: Wrap) -> Any:
        x = ctx.placeholder("x", (4,))

        def slope(x: Any) -> Any:
            (g,) = gt.graph.grad([gt.sum(gt.tanh(gt.exp(x) * x))], [x])
            return g * g

        (g,) = gt.graph.grad([gt.sum(wrap(slope)(x))], [x])
        return [g.eval(ctx, {x: np.linspace(0.1, 0.5, 4)}) for _ in range(2)]

    expected = gt.run(lambda ctx: program(ctx, lambda f: f))
    np.testing.assert_allclose(
        gt.run(lambda ctx: program(ctx, gt.checkpoint)), expected, rtol=1e-12
    )


def test_gradients_inside_of_checkpointed_functions_keep_what_they_read() -> None:
    """Only gradients of the function compute again what it computed."""

    def slope(x: Any) -> Any:
        return gt.graph.grad([gt.sum(gt.tanh(gt.exp(x) * x))], [x])[0]

    def program(ctx: Any) -> Any:
        x = ctx.placeholder("x", (4,))
        g = gt.checkpoint(slope)(x)
        for _ in range(2):
            g.eval(ctx, {x: np.ones(4)})
        return graph_of(ctx)

    assert without_replays(gt.run(program)) is None


def test_programs_are_found_again_by_their_graphs() -> None:
    """Equal graphs with checkpoints share a compiled program of an environment."""
    env = gt.VariableEnvironment()
    env.name("w").set(WEIGHTS[0])

    def step(ctx: Any) -> Any:
        w = ctx.variable("w")
        h = gt.checkpoint(gt.tanh(gt.checkpoint(lambda h: gt.exp(h) @ w)(ctx.constant(X))))
        return gt.graph.grad([gt.sum(h**2)], [w])[0].eval(ctx)

    found = [env.run(step) for _ in range(3)]
    np.testing.assert_allclose(found[2], found[0], rtol=1e-12)
    assert len(env.programs) == 1


# ---- the profiler -------------------------------------------------------------------------------


@pytest.fixture
def profiler() -> Any:
    gt.CheckpointProfiler.start_tracking()
    yield gt.CheckpointProfiler
    gt.CheckpointProfiler.reset_statistics()


def test_lazy_savings_are_differences_of_peaks(profiler: Any) -> None:
    graph = derivative(every_tensor, 1)[1]
    kept = derivative(plain, 1)[1]
    expected = [size(kept) - size(graph) for size in (peak_bytes, temporary_bytes)]
    assert profiler.memory_saved() == max(expected) > 5 * UNIT
    assert profiler.checkpoint_count() == 12


@pytest.mark.parametrize(("network", "count"), [(plain, 0), (functions, 3), (groups, 3)])
def test_lazy_checkpoints_are_counted(profiler: Any, network: Wrap, count: int) -> None:
    derivative(network, 1)
    assert profiler.checkpoint_count() == count
    assert (profiler.memory_saved() > 0) == (count > 0)


FULL = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)


def sines(h: Any) -> list[Any]:
    found = [h]
    for _ in range(10):
        found.append(gt.sin(found[-1]))
    return found[1:]


@pytest.mark.parametrize("held", [0, 4])
def test_tapes_save_what_nobody_holds(profiler: Any, held: int) -> None:
    tape = gt.GradientTape(checkpoint=FULL)
    x = tape.watch(np.ones(1000))
    *rest, last = sines(x)
    holding = rest[:held]
    del rest
    tape.gradient(last, x)
    # No rule reads the last result.
    assert profiler.memory_saved() == 8000 * (9 - held)
    assert profiler.checkpoint_count() == 9 - held
    assert len(holding) == held


def test_tapes_that_keep_save_nothing(profiler: Any) -> None:
    for config in (None, gt.CheckpointConfig()):
        tape = gt.GradientTape(checkpoint=config)
        x = tape.watch(np.ones(1000))
        tape.gradient(sines(x)[-1], x)
    assert (profiler.memory_saved(), profiler.checkpoint_count()) == (0, 0)


def test_calls_of_functions_are_checkpoints(profiler: Any) -> None:
    function = gt.checkpoint(lambda x: sines(x)[-1])
    for _ in range(3):
        gt.grad(lambda x: gt.sum(function(function(x))))(np.ones(1000))
    # The most in one backward pass, and the calls of all of them.
    assert profiler.memory_saved() == 2 * 9 * 8000
    assert profiler.checkpoint_count() == 6


def test_gradients_by_nested_tapes_count_each_tape_once(profiler: Any) -> None:
    with gt.GradientTape(checkpoint=FULL) as outer:
        x = outer.watch(np.ones(1000))
        with gt.GradientTape(checkpoint=FULL) as inner:
            y = inner.watch(x)
            out = sines(y)[-1]
        slope = inner.gradient(out, y)
    before = profiler.checkpoint_count()
    outer.gradient(slope, x)
    assert profiler.checkpoint_count() > before >= 0


def test_nothing_is_measured_unless_it_is_started() -> None:
    gt.CheckpointProfiler.reset_statistics()
    derivative(every_tensor, 1)
    assert gt.CheckpointProfiler.memory_saved() == gt.CheckpointProfiler.checkpoint_count() == 0


# ---- groups and errors --------------------------------------------------------------------------


def test_groups_of_eager_tensors() -> None:
    group = gt.CheckpointGroup()

    def function(x: Any) -> Any:
        a, b = group.checkpoint_fn(
            [x, X], lambda inputs: (inputs[0] @ inputs[1], gt.exp(inputs[0]))
        )
        return gt.sum(a * b)

    np.testing.assert_array_equal(
        gt.grad(function)(X), gt.grad(lambda x: gt.sum((x @ X) * gt.exp(x)))(X)
    )


def test_groups_know_their_context() -> None:
    with pytest.raises(ArgumentError, match="CheckpointGroup: got an int, expected the context"):
        gt.CheckpointGroup(3)  # type: ignore[arg-type]

    def program(ctx: Any) -> None:
        group, t = gt.CheckpointGroup(ctx), ctx.constant(X)
        group.checkpoint_fn([t], lambda inputs: {"a": inputs[0] * 2.0})
        with pytest.raises(ArgumentError, match="expected a list and a function"):
            group.checkpoint_fn([t], t)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"checkpoint_fn: got .*, expected a lazy tensor"):
            group.checkpoint_fn([X], lambda inputs: inputs[0])
        gt.run(lambda other: other_context(group, other))

    def other_context(group: Any, ctx: Any) -> None:
        with pytest.raises(ContextError):
            group.checkpoint_fn([ctx.constant(X)], lambda inputs: inputs[0] * 2.0)

    gt.run(program)


@pytest.mark.parametrize("function", [gt.checkpoint, lambda t: gt.adaptive_checkpoint(t, 8)])
def test_other_tensors_are_refused(function: Wrap) -> None:
    message = r"checkpoint: got a .*ensor, expected a function, or a lazy tensor of a gt.run; use"
    with pytest.raises(ArgumentError, match=message):
        function(gt.ones(3))
    with pytest.raises(ArgumentError, match=message):
        gt.jit(lambda x: function(gt.exp(x)))(np.ones(3))
    with pytest.raises(ArgumentError, match=message):
        gt.run(lambda ctx: gt.grad(lambda x: gt.sum(function(gt.exp(x))))(ctx.constant(X)))


@pytest.mark.parametrize("least", [-1, "8", None, True, float("nan")])
def test_sizes_are_numbers(least: Any) -> None:
    with pytest.raises(ArgumentError, match=r"adaptive_checkpoint: got .*, expected a number of"):
        gt.run(lambda ctx: gt.adaptive_checkpoint(ctx.constant(X), least))


def test_a_lazy_tensor_takes_no_policy() -> None:
    with pytest.raises(ArgumentError, match="got a policy for a tensor"):
        gt.run(lambda ctx: gt.checkpoint(ctx.constant(X), policy=gt.keep_ops("exp")))  # type: ignore[call-overload]
