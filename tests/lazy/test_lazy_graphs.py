"""Lazy graphs of known shapes: building, differentiating, feeding, evaluating."""

import threading

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ContextError,
    ConversionError,
    DTypeError,
    LeakedTensorError,
    ShapeError,
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


# ---- values and derivatives ---------------------------------------------------------------------


def energy(x, a):
    return np.sum(np.tanh(a @ x) ** 2)


def test_value_and_derivatives_are_those_of_eager_code(ctx, rng):
    a, v = rng.normal(size=(3, 3)), rng.normal(size=3)
    x = ctx.placeholder("x", (3,))
    y = energy(x, a)
    (g,) = gt.graph.grad([y], [x])
    (hessian,) = gt.graph.jacobians(g, [x])
    (product,) = gt.graph.hessian_vector_product([y], [x], [np.ones(3)])
    for _ in range(3):  # interpreted, then compiled
        found = ctx.evaluator().extend([y, g, hessian, product]).feed(x, v).run()
        expected = gt.hessian(energy)(v, a)
        np.testing.assert_allclose(found[0], energy(v, a), rtol=1e-12)
        np.testing.assert_allclose(found[1], gt.grad(energy)(v, a), rtol=1e-12)
        np.testing.assert_allclose(found[2], expected, rtol=1e-12)
        np.testing.assert_allclose(found[3], expected @ np.ones(3), rtol=1e-12)


def test_seeds_weigh_the_elements(ctx):
    x = ctx.placeholder("x", (3,))
    weights = ctx.placeholder("w", (3,))
    (g,) = gt.graph.grad([x**2], [x], grad_ys=[weights])
    (by_weights,) = gt.graph.grad([g], [weights])
    feed = {x: [1.0, 2.0, 3.0], weights: [1.0, 0.0, -1.0]}
    np.testing.assert_array_equal(g.eval(ctx, feed), [2.0, 0.0, -6.0])
    np.testing.assert_array_equal(by_weights.eval(ctx, feed), [2.0, 4.0, 6.0])


def test_gradient_by_a_result_on_the_way(ctx):
    x = ctx.placeholder("x", ())
    middle = x * x
    y = middle * x
    by_x, by_middle = gt.graph.grad([y], [x, middle])
    assert ctx.evaluator().extend([by_x, by_middle]).feed(x, 2.0).run() == [12.0, 2.0]


def test_unconnected_sources_get_zeros(ctx):
    x, other = ctx.placeholder("x", (2,)), ctx.placeholder("other", (3,))
    (g,) = gt.graph.grad([np.sum(x)], [other])
    np.testing.assert_array_equal(g.eval(ctx), np.zeros(3))


def test_jacobian_of_nothing_has_the_shapes(ctx):
    x = ctx.constant(np.ones((2, 3)))
    (jacobian,) = gt.graph.jacobians(x[:, :0], [x])
    assert jacobian.eval(ctx).shape == (2, 0, 2, 3)


def test_zero_times_infinity_is_settled_as_in_eager_code(ctx):
    def undefined_branch(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    x = ctx.placeholder("x", (2,))
    (g,) = gt.graph.grad([undefined_branch(x)], [x])
    value = np.array([4.0, 0.0])
    for _ in range(3):
        np.testing.assert_array_equal(g.eval(ctx, {x: value}), gt.grad(undefined_branch)(value))


def test_transforms_of_functions_work_on_lazy_tensors(ctx):
    x = ctx.placeholder("x", (3,))
    by_grad = gt.grad(lambda x: np.sum(x**3))(x)
    by_jit = gt.jit(lambda x: np.sin(x) * 2.0)(x)
    by_vmap = gt.vmap(lambda x: x * x)(x)
    v = np.array([1.0, 2.0, 3.0])
    found = ctx.evaluator().extend([by_grad, by_jit, by_vmap]).feed(x, v).run()
    np.testing.assert_allclose(found, [3 * v**2, np.sin(v) * 2, v * v])


def test_stop_gradient(ctx):
    x = ctx.placeholder("x", ())
    (g,) = gt.graph.grad([gt.stop_gradient(x) * x], [x])
    assert g.eval(ctx, {x: 5.0}) == 5.0


def test_views_and_writes_to_results(ctx):
    x = ctx.placeholder("x", (3,))
    y = x * 2.0
    y[0] = 7.0
    y[1:] += 1.0
    feed = {x: [1.0, 2.0, 3.0]}
    np.testing.assert_array_equal(y.eval(ctx, feed), [7.0, 5.0, 7.0])
    assert y[1:][0].eval(ctx, feed) == 5.0
    np.testing.assert_array_equal(x.reshape(3, 1).T.eval(ctx, feed), [[1.0, 2.0, 3.0]])


def test_gradients_flow_to_tensors_outside():
    def loss(w):
        def program(ctx):
            x = ctx.placeholder("x", (2,))
            return np.sum(x * w).eval(ctx, {x: [1.0, 2.0]})

        return gt.run(program)

    np.testing.assert_array_equal(gt.grad(loss)(np.array([3.0, 4.0])), [1.0, 2.0])
    w = gt.tensor([3.0, 4.0], requires_grad=True)
    loss(w).backward()
    np.testing.assert_array_equal(w.grad, [1.0, 2.0])


def test_random_numbers_of_an_op_are_drawn_at_each_evaluation(ctx):
    p = ctx.placeholder("p", (64,))
    drawn = gt.bernoulli(p)
    first, second = (drawn.eval(ctx, {p: np.full(64, 0.5)}) for _ in range(2))
    assert not np.array_equal(first, second)


# ---- constants and variables --------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 5000])
def test_arrays_are_copied_when_they_enter(ctx, size):
    array = np.ones(size)
    x = ctx.placeholder("x", ())
    before = x * array
    array[:] = 5.0
    after = x * array
    found = ctx.evaluator().extend([before, after]).feed(x, 1.0).run()
    np.testing.assert_array_equal(found, [np.ones(size), np.full(size, 5.0)])


def test_large_arrays_are_copied_once(ctx):
    array = np.ones(5000)
    x = ctx.placeholder("x", ())
    total = sum(x * array for _ in range(10))
    assert total.eval(ctx, {x: 1.0})[0] == 10.0
    assert len(ctx._level.sources) == 2


def test_variables_are_read_at_each_evaluation():
    variables = Variables(w=np.array([1.0, 2.0]))

    def program(ctx):
        w = ctx.variable("w")
        assert ctx.variable("w") is w
        assert ctx.variable_id(w) == "w"
        doubled = w * 2.0
        first = doubled.eval(ctx)
        variables.arrays["w"] = np.array([5.0, 6.0])
        return first, doubled.eval(ctx)

    first, second = run(program, variables)
    np.testing.assert_array_equal([first, second], [[2.0, 4.0], [10.0, 12.0]])


def test_a_variable_that_changed_its_shape_is_refused():
    variables = Variables(w=np.ones(2))

    def program(ctx):
        doubled = ctx.variable("w") * 2.0
        variables.arrays["w"] = np.ones(3)
        with pytest.raises(ShapeError, match="variable 'w' is float64"):
            doubled.eval(ctx)

    run(program, variables)


# ---- feeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float64, np.float32(1.5)),
        (np.float32, np.float64(1.5)),
        (np.float64, 2),
        (np.float64, 1.5),
        (np.int64, np.int32(3)),
        (np.int32, np.int64(3)),
        (np.complex128, np.complex64(1j)),
        (np.float64, gt.tensor(1.5)),
        (np.dtype(">f8"), 1.5),
    ],
)
def test_feeds_of_the_same_kind_are_cast(ctx, dtype, value):
    x = ctx.placeholder("x", (), dtype=dtype)
    found = (x + x).eval(ctx, {x: value})
    assert found == 2 * np.asarray(value)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float64, np.int64(1)),
        (np.float64, [1, 2]),
        (np.int64, 1.5),
        (np.int64, np.uint8(1)),
        (np.float64, 1j),
        (np.float64, True),
        (np.float64, "text"),
        (np.int8, np.int64(300)),
    ],
)
def test_feeds_of_another_kind_are_refused(ctx, dtype, value):
    x = ctx.placeholder("x", np.shape(value), dtype=dtype)
    with pytest.raises(DTypeError, match="placeholder 'x'"):
        (x + x).eval(ctx, {x: value})


def test_a_feed_of_the_wrong_shape_names_the_placeholder(ctx):
    x = ctx.placeholder("x", (3,))
    with pytest.raises(ShapeError, match=r"'x' got shape \(4,\), expected \(3,\)"):
        (x + 1.0).eval(ctx, {x: np.ones(4)})


def test_only_what_is_needed_is_fed(ctx):
    x, y = ctx.placeholder("x", ()), ctx.placeholder("y", ())
    z = x * y
    assert (x + 1.0).eval(ctx, {x: 1.0}) == 2.0
    with pytest.raises(ArgumentError, match="placeholder 'y'"):
        z.eval(ctx, {x: 1.0})
    assert z.eval(ctx, gt.graph.Feeder().push(x, 2.0).push(y, 3.0)) == 6.0


def test_what_is_no_placeholder_cannot_be_fed(ctx):
    x = ctx.placeholder("x", ())
    y = x + 1.0
    with pytest.raises(ArgumentError, match="not a placeholder"):
        y.eval(ctx, {y: 1.0})
    with pytest.raises(ArgumentError, match="got a str"):
        gt.graph.Feeder().push("x", 1.0)
    with pytest.raises(ArgumentError, match="expected a dict"):
        y.eval(ctx, feed=[1.0])


def test_a_lazy_tensor_cannot_be_fed(ctx):
    x, y = ctx.placeholder("x", ()), ctx.placeholder("y", ())
    with pytest.raises(ConversionError, match="'x' got a lazy tensor"):
        (x + 1.0).eval(ctx, {x: y})


def test_an_error_that_numpy_wraps_is_unwrapped():
    def program(ctx):
        np.ones(3)[0] = ctx.placeholder("x", ())

    with pytest.raises(ConversionError, match="got a lazy tensor"):
        gt.run(program)


def test_results_share_no_memory(ctx):
    x = ctx.placeholder("x", (3,))
    value = np.ones(3)
    for _ in range(3):
        first, second, flipped = ctx.evaluator().extend([x, x, x[::-1]]).feed(x, value).run()
        first[:] = second[:] = flipped[:] = 9.0
        np.testing.assert_array_equal(value, np.ones(3))


# ---- errors -------------------------------------------------------------------------------------


def test_shapes_are_checked_when_the_graph_is_built(ctx):
    x, y = ctx.placeholder("x", (3,)), ctx.placeholder("y", (4,))
    with pytest.raises(ShapeError, match="add"):
        x + y


def test_two_placeholders_of_one_name(ctx):
    ctx.placeholder("x", ())
    with pytest.raises(ArgumentError, match="'x' twice"):
        ctx.placeholder("x", ())


@pytest.mark.parametrize("shape", ["abc", (1.5,), (-2,), object()])
def test_bad_shapes(ctx, shape):
    with pytest.raises(ArgumentError, match="placeholder: got shape"):
        ctx.placeholder("x", shape)


def test_values_are_not_there_before_they_are_evaluated(ctx):
    x = ctx.placeholder("x", ())
    for ask in (float, int, bool, np.asarray, lambda x: x.item()):
        with pytest.raises(ConversionError, match=r"t\.eval\(ctx\)"):
            ask(x)
    with pytest.raises(ConversionError, match=r"gt\.cond"):
        assert x > 0


def test_sources_are_not_written_to(ctx):
    x = ctx.placeholder("x", (3,))
    with pytest.raises(WriteError, match="placeholder"):
        x[0] = 1.0
    with pytest.raises(WriteError, match="placeholder"):
        x += 1.0
    with pytest.raises(WriteError, match="placeholder"):
        x[1:][0] = 1.0


def test_a_lazy_tensor_does_not_leave_its_context():
    kept = gt.run(lambda ctx: ctx.placeholder("x", ()) * 2.0)
    with pytest.raises(LeakedTensorError, match="already returned"):
        kept + 1.0
    with pytest.raises(LeakedTensorError, match=r"return t\.eval\(ctx\)"):
        float(kept)

    def other(ctx):
        with pytest.raises(LeakedTensorError):
            kept.eval(ctx)
        with pytest.raises(LeakedTensorError):
            gt.graph.grad([kept], [ctx.placeholder("x", ())])

    gt.run(other)


def test_contexts_do_not_mix(ctx):
    x = ctx.placeholder("x", ())

    def inner(other):
        y = other.placeholder("y", ())
        for mixed in (
            lambda: x * y,
            lambda: x.eval(other),
            lambda: (y * 1.0).eval(other, {x: 1.0}),
            lambda: gt.graph.grad([y], [x]),
            lambda: other.constant(x),
        ):
            with pytest.raises(ContextError, match="another context"):
                mixed()

    gt.run(inner)


def test_an_ended_context_is_refused():
    context = gt.run(lambda ctx: ctx)
    with pytest.raises(ContextError, match="already returned"):
        context.placeholder("x", ())
    with pytest.raises(ContextError, match="already returned"):
        context.evaluator().run()


def test_what_is_not_lazy(ctx):
    x = ctx.placeholder("x", ())
    with pytest.raises(ArgumentError, match="list of lazy tensors"):
        gt.graph.grad(x, [x])
    with pytest.raises(ArgumentError, match="not lazy"):
        gt.graph.grad([x], [gt.ones(3)])
    with pytest.raises(ArgumentError, match="expected a lazy tensor"):
        ctx.evaluator().push(gt.ones(3))
    with pytest.raises(ArgumentError, match="expected the context"):
        x.eval({x: 1.0})
    with pytest.raises(ContextError, match="VariableEnvironment"):
        ctx.variable("w")
    with pytest.raises(ArgumentError, match="not a variable"):
        ctx.variable_id(x)
    with pytest.raises(ArgumentError, match="expected a function"):
        gt.run(3)


def test_integers_have_no_gradient(ctx):
    n, x = ctx.placeholder("n", (), dtype=gt.int64), ctx.placeholder("x", ())
    with pytest.raises(DTypeError, match="int64"):
        gt.graph.grad([x], [n])
    with pytest.raises(ArgumentError, match="2 for the weights of 1"):
        gt.graph.grad([x], [x], grad_ys=[1.0, 2.0])


# ---- size and time ------------------------------------------------------------------------------


def test_deep_graphs_need_no_recursion(ctx):
    x = ctx.placeholder("x", ())
    y = x
    for _ in range(20_000):
        y = y + 1e-4
    (g,) = gt.graph.grad([y], [x])
    value, slope = ctx.evaluator().extend([y, g]).feed(x, 1.0).run()
    assert value == pytest.approx(3.0)
    assert slope == 1.0


def test_the_same_graph_is_compiled_the_second_time_for_the_same_variables():
    variables = Variables(w=np.array([1.0, 2.0]))

    def step(ctx):
        w = ctx.variable("w")
        (g,) = gt.graph.grad([np.sum(w**3)], [w])
        return g.eval(ctx)

    for n in range(3):
        np.testing.assert_array_equal(run(step, variables), [3.0, 12.0])
        (runner,) = variables.programs
        assert runner.runs == n + 1
        assert ("compiled" in vars(runner)) == (n > 0)


def test_caches_are_bounded():
    variables = Variables(w=np.array([1.0, 2.0]))

    def program(ctx):
        for n in range(100):
            assert (ctx.variable("w") * float(n)).eval(ctx)[0] == n
        assert len(ctx._evaluations) <= 64

    run(program, variables)
    assert len(variables.programs) <= 64


def test_functions_of_users_with_one_name_are_told_apart():
    variables = Variables(w=np.array(2.0))

    def made(factor):
        @gt.custom_vjp
        def scaled(x):
            return x * factor

        scaled.defvjp(lambda ct, out, x: (ct * factor,))
        return scaled

    def program(ctx, function):
        w = ctx.variable("w")
        (g,) = gt.graph.grad([function(w)], [w])
        return g.eval(ctx)

    for factor in (2.0, 3.0, 2.0, 3.0):
        found = run(lambda ctx: program(ctx, made(factor)), variables)  # noqa: B023
        assert found == factor


def test_contexts_of_two_threads_do_not_meet():
    failures = []

    def work(seed):
        def program(ctx):
            x = ctx.placeholder("x", (4,))
            y = x
            for _ in range(50):
                y = np.sin(y) + seed
            (g,) = gt.graph.grad([y], [x])
            for _ in range(5):
                value = np.random.default_rng(seed).normal(size=4)
                found = g.eval(ctx, {x: value})

                def eager(x):
                    for _ in range(50):
                        x = np.sin(x) + seed
                    return np.sum(x)

                if not np.allclose(found, gt.grad(eager)(value)):
                    failures.append(seed)

        gt.run(program)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_messages_call_lazy_tensors_tensors():
    def program(ctx):
        x, u = ctx.placeholder("x", (2,)), ctx.placeholder("u", (-1,))
        for y in (np.sum(x), np.sum(u), x.T):
            with pytest.raises(ArgumentError, match="got a Tensor for ys, expected a list"):
                gt.graph.grad(y, x)

    gt.run(program)


def test_a_call_of_eval_that_does_not_fit_names_eval():
    def program(ctx):
        x = ctx.placeholder("x", ())
        with pytest.raises(TypeError, match=r"^eval\(\) missing"):
            x.eval()
        with pytest.raises(gt.errors.UnsupportedError, match=r"^eval: got x="):
            x.eval(ctx, x=1.0)

    gt.run(program)


def test_backward_of_a_lazy_tensor_says_how_to_differentiate():
    def program(ctx):
        with pytest.raises(gt.errors.TapeError, match=r"use gt\.graph\.grad\(\[y\], \[x\]\)"):
            np.sum(ctx.placeholder("x", (2,))).backward()

    gt.run(program)
