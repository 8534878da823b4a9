"""Hooks, control dependencies and assertions in lazy graphs, of known and unknown sizes."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, FailedAssertionError
from gradtape.lazy.context import Context

# The shape of a placeholder for vectors of three elements.
SHAPES = pytest.mark.parametrize("shape", [(3,), (-1,), None], ids=["known", "axis", "any"])
VALUE = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def ctx():
    context = Context()
    yield context
    context.close()


@SHAPES
def test_hooks_see_each_evaluation_and_change_nothing(ctx, shape):
    seen = []
    x = ctx.placeholder("x", shape)
    y = np.sum((x * 2.0).raw_hook(lambda value: seen.append(value.copy())) ** 2)
    (g,) = gt.graph.grad([y], [x])
    for _ in range(3):  # interpreted, then compiled
        seen.clear()
        total, slope = ctx.evaluator().extend([y, g]).feed(x, VALUE).run()
        assert total == 56.0
        np.testing.assert_array_equal(slope, 8.0 * VALUE)
        np.testing.assert_array_equal(seen, [2.0 * VALUE])


@SHAPES
def test_hooks_that_no_target_needs_do_not_run(ctx, shape):
    seen = []
    x = ctx.placeholder("x", shape)
    x.raw_hook(seen.append)
    assert np.sum(x).eval(ctx, {x: VALUE}) == 6.0
    assert seen == []


def test_what_a_hook_gets_is_read_only(ctx):
    x = ctx.placeholder("x", (3,))

    def write(value):
        value[0] = 7.0

    with pytest.raises(ValueError, match="read-only"):
        x.raw_hook(write).eval(ctx, {x: VALUE})


@SHAPES
def test_errors_of_a_hook_stay_as_they_are(ctx, shape):
    x = ctx.placeholder("x", shape)

    def fail(value):
        raise KeyError("mine")

    y = x.raw_hook(fail) + 1.0
    for _ in range(3):
        with pytest.raises(KeyError, match="mine"):
            y.eval(ctx, {x: VALUE})


def test_show_prints_values_and_shapes(ctx, capsys):
    x = ctx.placeholder("x", (-1,))
    y = x.show().show("x is").show_shape().show_shape("of shape")
    assert capsys.readouterr().out == ""
    y.eval(ctx, {x: VALUE})
    assert capsys.readouterr().out == "[1. 2. 3.]\nx is [1. 2. 3.]\n(3,)\nof shape (3,)\n"


def test_hooks_run_at_once_on_eager_tensors(capsys):
    x = gt.tensor(VALUE, requires_grad=True)
    gt.sum(x.show()).backward()
    assert capsys.readouterr().out == "[1. 2. 3.]\n"
    np.testing.assert_array_equal(x.grad, np.ones(3))


@SHAPES
def test_assertions_are_evaluated_with_what_depends_on_them(ctx, shape):
    x = ctx.placeholder("x", shape)
    positive = gt.graph.assert_that(x > 0.0, "x must be positive")
    y = gt.graph.control_dependencies(np.log(x), [positive])
    (g,) = gt.graph.grad([y], [x])
    for _ in range(3):
        np.testing.assert_allclose(y.eval(ctx, {x: VALUE}), np.log(VALUE))
        np.testing.assert_allclose(g.eval(ctx, {x: VALUE}), 1 / VALUE)
        with pytest.raises(FailedAssertionError, match="x must be positive"):
            y.eval(ctx, {x: -VALUE})
    # The target itself does not depend on it.
    np.testing.assert_array_equal(np.sqrt(x).eval(ctx, {x: VALUE}), np.sqrt(VALUE))


@SHAPES
def test_dependencies_run_in_order(ctx, shape):
    seen = []
    x = ctx.placeholder("x", shape)
    first = x.raw_hook(lambda _: seen.append("first"))
    y = gt.graph.control_dependencies(x * 2.0, [first]).raw_hook(lambda _: seen.append("second"))
    for _ in range(3):
        seen.clear()
        y.eval(ctx, {x: VALUE})
        assert seen == ["first", "second"]


def test_hooks_under_transforms(ctx):
    seen = []
    x = ctx.placeholder("x", (2, 3))

    def function(row):
        checked = gt.graph.assert_that(row > 0.0, "positive")
        row = gt.graph.control_dependencies(row.raw_hook(lambda v: seen.append(v.shape)), [checked])
        return np.sum(row**2)

    y = gt.vmap(gt.grad(function))(x)
    value = np.array([VALUE, VALUE])
    np.testing.assert_array_equal(y.eval(ctx, {x: value}), 2 * value)
    assert seen == [(2, 3)]


def test_bad_arguments(ctx):
    x = ctx.placeholder("x", (-1,))
    with pytest.raises(ArgumentError, match="expected a function"):
        x.raw_hook(3)
    with pytest.raises(ArgumentError, match="expected a list"):
        gt.graph.control_dependencies(x, x)
    with pytest.raises(ArgumentError, match="expected a condition"):
        gt.graph.assert_that("text", x)
