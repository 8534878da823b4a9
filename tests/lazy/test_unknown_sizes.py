"""Placeholders of unknown size: what is deferred, specialised, cached and refused."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ContextError,
    ConversionError,
    LeakedTensorError,
    ShapeError,
    UnknownSizeError,
    WriteError,
)
from gradtape.lazy.context import Context
from gradtape.lazy.run import run


@pytest.fixture
def ctx():
    context = Context()
    yield context
    context.close()


class Variables:
    """Variables as an environment offers them to a context."""

    def __init__(self, **arrays):
        self.arrays = arrays
        self.programs = gt.core.recent.Recent()

    def id_of(self, name):
        return name

    def array(self, variable):
        return self.arrays[variable]


def loss_of(x, y, w):
    return gt.mean(gt.nn.sparse_softmax_cross_entropy(gt.nn.relu(x @ w + 1.0), y))


@pytest.mark.parametrize("shape", [(-1, 3), None])
def test_a_classifier_of_any_number_of_samples(ctx, rng, shape):
    x = ctx.placeholder("x", shape)
    y = ctx.placeholder("y", None if shape is None else (-1,), dtype=gt.int64)
    w = ctx.placeholder("w", (3, 4))
    loss = loss_of(x, y, w)
    by_w, by_x = gt.graph.grad([loss], [w, x])
    (product,) = gt.graph.hessian_vector_product([loss], [w], [np.ones((3, 4))])
    weights = rng.normal(size=(3, 4))
    for size in (5, 5, 5, 7):
        data, labels = rng.normal(size=(size, 3)), rng.integers(0, 4, size)
        feeder = gt.graph.Feeder().push(x, data).push(y, labels).push(w, weights)
        found = ctx.evaluator().extend([loss, by_w, by_x, product]).set_feeder(feeder).run()
        expected = gt.grad(loss_of, argnums=(2, 0))(data, labels, weights)
        np.testing.assert_allclose(found[0], loss_of(data, labels, weights))
        np.testing.assert_allclose(found[1], expected[0], atol=1e-14)
        np.testing.assert_allclose(found[2], expected[1], atol=1e-14)
        hessian = gt.hessian(lambda w: loss_of(data, labels, w))(weights)  # noqa: B023
        np.testing.assert_allclose(found[3], hessian.sum((2, 3)), atol=1e-13)


def test_jacobians_and_higher_derivatives(ctx):
    x = ctx.placeholder("x", (-1,))
    y = np.sin(x) * np.sum(x)
    (jacobian,) = gt.graph.jacobians(y, [x])
    (g,) = gt.graph.grad([np.sum(x**4)], [x])
    (second,) = gt.graph.grad([np.sum(g)], [x])
    (third,) = gt.graph.grad([second], [x])
    value = np.array([0.3, 0.7])
    found = ctx.evaluator().extend([jacobian, second, third]).feed(x, value).run()
    np.testing.assert_allclose(found[0], gt.jacobian(lambda x: np.sin(x) * np.sum(x))(value))
    np.testing.assert_allclose(found[1:], [12 * value**2, 24 * value])


def test_plain_numpy_code_with_views_and_lists(ctx, rng):
    def function(x):
        centered = x - np.mean(x, axis=0, keepdims=True)
        stacked = np.concatenate([centered[:1], centered.T.reshape(-1, 3), x[::-1]], axis=0)
        return np.where(stacked > 0, stacked, 0.1 * stacked).sum(axis=1), np.linalg.norm(x)

    x = ctx.placeholder("x", None)
    value = rng.normal(size=(3, 3))
    found = ctx.evaluator().extend(function(x)).feed(x, value).run()
    for got, expected in zip(found, function(value), strict=True):
        np.testing.assert_allclose(got, expected)


def test_transforms_and_compiled_functions_are_deferred_as_a_whole(ctx):
    x, scale = ctx.placeholder("x", (-1,)), ctx.placeholder("scale", ())
    by_grad = gt.grad(lambda x: np.sum(x**3) * scale)(x)
    by_jit = gt.jit(lambda x: np.sin(x) * 2.0)(x)
    by_vmap = gt.vmap(lambda v: v * scale)(x)
    in_closure = gt.grad(lambda s: np.sum(np.cos(x) * s))(scale)
    value = np.array([1.0, 2.0, 3.0])
    targets = [by_grad, by_jit, by_vmap, in_closure]
    found = ctx.evaluator().extend(targets).feed(x, value).feed(scale, 2.0).run()
    np.testing.assert_allclose(found[0], 6 * value**2)
    np.testing.assert_allclose(found[1], 2 * np.sin(value))
    np.testing.assert_allclose(found[2], 2 * value)
    np.testing.assert_allclose(found[3], np.cos(value).sum())


def test_functions_with_rules_of_their_own_are_deferred(ctx):
    @gt.custom_vjp
    def counted(x):
        return x * x.shape[0]

    @counted.defvjp
    def rule(ct, out, x):
        return (ct * 7.0,)

    x = ctx.placeholder("x", (-1,))
    y = counted(x)
    (g,) = gt.graph.grad([y], [x])
    found = ctx.evaluator().extend([y, g]).feed(x, [1.0, 2.0]).run()
    np.testing.assert_array_equal(found, [[2.0, 4.0], [7.0, 7.0]])


def test_rewriting_modes_see_deferred_functions(ctx):
    class Doubling:
        kind, key = "rewriting", "doubling"

        def run(self, op, args, params, proceed):
            out = proceed(op, args, params)
            return out * 2.0 if op.name == "sum" else out

    for shape in ((3,), (-1,)):
        x = ctx.placeholder(f"x{shape}", shape)
        with gt.using_mode(Doubling()):
            y = np.sum(x)
        assert y.eval(ctx, {x: np.ones(3)}) == 6.0
        assert np.sum(x).eval(ctx, {x: np.ones(3)}) == 3.0


def test_no_grad_and_stop_gradient_are_kept(ctx):
    x = ctx.placeholder("x", (-1,))
    with gt.no_grad():
        fixed = np.sum(x)
        squared = x * x
    y = fixed * np.sum(x) + np.sum(squared * x) + np.sum(gt.stop_gradient(x) * x)
    (g,) = gt.graph.grad([y], [x])
    value = np.array([1.0, 2.0])
    np.testing.assert_allclose(g.eval(ctx, {x: value}), 3.0 + value**2 + value)


def test_arrays_are_copied_when_they_enter(ctx):
    array = np.ones(2)
    x = ctx.placeholder("x", None)
    y, z = x * array, np.concatenate([x, array])
    array[:] = 7.0
    np.testing.assert_array_equal(y.eval(ctx, {x: [1.0, 2.0]}), [1.0, 2.0])
    np.testing.assert_array_equal(z.eval(ctx, {x: [1.0, 2.0]}), [1.0, 2.0, 1.0, 1.0])


def test_gradients_flow_to_tensors_outside():
    def loss(w):
        def program(ctx):
            x = ctx.placeholder("x", (-1,))
            return np.mean(x * w).eval(ctx, {x: [1.0, 2.0]})

        return gt.run(program)

    np.testing.assert_array_equal(gt.grad(loss)(np.array([3.0, 4.0])), [0.5, 1.0])


def test_random_numbers_are_drawn_at_each_evaluation(ctx):
    x = ctx.placeholder("x", (-1,))
    y = gt.nn.dropout(x, 0.5)
    first, second = (y.eval(ctx, {x: np.ones(64)}) for _ in range(2))
    assert not np.array_equal(first, second)
    assert set(np.unique(first)) == {0.0, 2.0}


def test_only_what_is_needed_is_fed(ctx):
    x, other = ctx.placeholder("x", (-1,)), ctx.placeholder("other", None)
    y = np.mean(x)
    (by_other,) = gt.graph.grad([np.sum(x * 3.0)], [x])
    np.mean(other)
    assert y.eval(ctx, {x: [1.0, 3.0]}) == 2.0
    with pytest.raises(ArgumentError, match="placeholder 'x'"):
        y.eval(ctx)
    with pytest.raises(ArgumentError, match="placeholder 'x'"):
        by_other.eval(ctx)  # its shape is that of x


# ---- what is known, and when --------------------------------------------------------------------


def test_asking_for_a_size_names_the_placeholder(ctx):
    x = ctx.placeholder("data", (-1, 3))
    for ask in (
        lambda: x.shape,
        lambda: x.ndim,
        lambda: x.dtype,
        lambda: x.size,
        lambda: len(x),
        lambda: list(x),
        lambda: (x + 1.0).shape,
        lambda: np.mean(x).shape,
    ):
        with pytest.raises(UnknownSizeError, match="'data'"):
            ask()


def test_known_sizes_are_checked_when_fed(ctx):
    x = ctx.placeholder("x", (-1, 3))
    with pytest.raises(ShapeError, match=r"'x' got shape \(2, 4\), expected \(-1, 3\)"):
        np.sum(x).eval(ctx, {x: np.ones((2, 4))})
    with pytest.raises(ShapeError, match=r"expected \(-1, 3\)"):
        np.sum(x).eval(ctx, {x: np.ones(3)})


def test_errors_at_feed_time_say_what_was_fed(ctx):
    x = ctx.placeholder("x", (-1,))
    y = x + np.ones(3)
    with pytest.raises(ShapeError, match=r"'x' of shape \(4,\) fed") as caught:
        y.eval(ctx, {x: np.ones(4)})
    assert "test_unknown_sizes.py" in str(caught.value)
    np.testing.assert_array_equal(y.eval(ctx, {x: np.ones(3)}), np.full(3, 2.0))


def test_values_are_not_there_before_they_are_evaluated(ctx):
    x = ctx.placeholder("x", (-1,))
    for ask in (float, bool, np.asarray, lambda x: x.item(), lambda x: np.sum(x).tolist()):
        with pytest.raises(ConversionError, match=r"t\.eval\(ctx\)"):
            ask(x)


def test_printing_needs_no_size(ctx):
    x = ctx.placeholder("x", (-1,))
    assert repr(x + 1.0) == "tensor(of a size that depends on placeholder 'x', recorded by gt.run)"


def test_results_have_the_names_of_their_annotation(ctx):
    x = ctx.placeholder("x", (-1, 2))
    parts = np.linalg.svd(x)
    np.testing.assert_allclose(parts.S.eval(ctx, {x: np.diag([3.0, 2.0])}), [3.0, 2.0])
    with pytest.raises(AttributeError, match="no attribute 'Q'"):
        _ = parts.Q
    value, gradient = gt.value_and_grad(lambda x: np.sum(x**2))(x)
    found = ctx.evaluator().extend([value, gradient]).feed(x, np.eye(2)).run()
    assert found[0] == 2.0
    np.testing.assert_array_equal(found[1], 2 * np.eye(2))


def test_several_results_at_once_have_no_gradient(ctx):
    x = ctx.placeholder("x", (-1, 2))
    (g,) = gt.graph.grad([np.linalg.svd(x)], [x])
    with pytest.raises(ArgumentError, match="take one by index"):
        g.eval(ctx, {x: np.eye(2)})


def test_options_that_change_the_number_of_results_are_noticed(ctx):
    x = ctx.placeholder("x", (-1, 2))
    first, *_ = gt.linalg.eigh(x, eigvals_only=True)
    with pytest.raises(UnknownSizeError, match="something else than the 2 results"):
        first.eval(ctx, {x: np.eye(2)})


def test_contexts_do_not_mix(ctx):
    x = ctx.placeholder("x", (-1,))

    def inner(other):
        y = other.placeholder("y", (-1,))
        for mixed in (lambda: x * y, lambda: np.concatenate([x, y]), lambda: x.eval(other)):
            with pytest.raises(ContextError, match="another context"):
                mixed()
        return np.mean(y)

    kept = gt.run(inner)
    for use in (lambda: kept + 1.0, lambda: np.mean(kept), lambda: kept.reshape(-1)):
        with pytest.raises(LeakedTensorError):
            use()


# ---- writing ------------------------------------------------------------------------------------


def test_results_can_be_written_to(ctx):
    x = ctx.placeholder("x", (-1,))
    y = x * 2.0
    same = y
    y += 1.0
    y[0] = x[1]
    assert same is y
    np.testing.assert_array_equal(y.eval(ctx, {x: [1.0, 2.0]}), [2.0, 5.0])


def test_buffers_and_sums_can_be_written_to(ctx):
    x = ctx.placeholder("x", (-1,))
    buffer = np.zeros_like(x)
    buffer[1] = x[0] * 3.0
    loss = np.mean(x)
    loss += np.sum(buffer)
    assert loss.eval(ctx, {x: [1.0, 3.0]}) == 5.0


def test_writes_that_views_would_have_to_see_are_refused(ctx):
    x = ctx.placeholder("x", (-1,))
    y = x * 2.0
    view = y[1:]
    for write in (
        lambda: y.__setitem__(0, 1.0),
        lambda: view.__setitem__(0, 1.0),
        lambda: view.__iadd__(1.0),
        lambda: x.__iadd__(1.0),
        lambda: np.copyto(y, x),
        lambda: np.add(x, x, out=y),
        lambda: y.sort(),
        lambda: y.fill(0.0),
    ):
        with pytest.raises(WriteError):
            write()
    np.testing.assert_array_equal(y.eval(ctx, {x: [1.0, 2.0]}), [2.0, 4.0])


# ---- caches, size, time -------------------------------------------------------------------------


def test_a_graph_is_specialised_once_for_each_shape(ctx):
    calls = []

    @gt.jit
    def function(x):
        calls.append(x.shape)
        return np.mean(x)

    x = ctx.placeholder("x", (-1,))
    y = function(x)
    for size in (2, 3, 2, 3, 2):
        assert y.eval(ctx, {x: np.ones(size)}) == 1.0
    assert calls == [(2,), (3,)]


def test_specialised_graphs_are_bounded(ctx):
    x = ctx.placeholder("x", (-1,))
    y = np.mean(x)
    for size in range(1, 100):
        assert y.eval(ctx, {x: np.ones(size)}) == 1.0
    assert len(ctx._specializations) <= 64


def test_the_same_graph_is_compiled_the_second_time_for_the_same_variables():
    variables = Variables(w=np.array([1.0, 2.0]))

    def step(ctx):
        x, w = ctx.placeholder("x", (-1, 2)), ctx.variable("w")
        (g,) = gt.graph.grad([np.mean((x @ w) ** 2)], [w])
        return g.eval(ctx, {x: np.eye(2)})

    for n in range(3):
        np.testing.assert_allclose(run(step, variables), [1.0, 2.0])
        (runner,) = variables.programs
        assert runner.runs == n + 1


def test_deep_graphs_need_no_recursion(ctx):
    x = ctx.placeholder("x", (-1,))
    y = x
    for _ in range(10_000):
        y = y + 1e-4
    (g,) = gt.graph.grad([np.sum(y)], [x])
    value, slope = ctx.evaluator().extend([y, g]).feed(x, [1.0, 2.0]).run()
    np.testing.assert_allclose(value, [2.0, 3.0])
    np.testing.assert_array_equal(slope, [1.0, 1.0])
