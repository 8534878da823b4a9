"""Loops and branches in lazy graphs, with sizes that are known and unknown."""

import numpy as np
import pytest

import gradtape as gt

XS = np.arange(1.0, 6.0)


def scanned(a, xs):
    return np.sum(gt.scan(lambda c, x: (a * c + x, c), 0.0, xs)[1])


def counted(a, xs):
    return np.sum(gt.fori_loop(0, 3, lambda i, s: np.sin(s) * a + i, xs))


def repeated(a, xs):
    return gt.while_loop(lambda s: np.sum(s) < 100.0, lambda s: s * a, xs)[0]


def branched(a, xs):
    return gt.cond(np.sum(xs) > a, lambda v: np.sum(v) * a, lambda v: np.sum(v * v), xs)


def mapped(a, xs):
    return np.sum(gt.map(lambda x: gt.switch(1, [np.sin, np.cos], x) * a, xs))


def running(a, xs):
    return np.sum(gt.associative_scan(np.multiply, xs * 0.5)) * a


@pytest.mark.parametrize("shape", [(5,), (-1,), None], ids=str)
@pytest.mark.parametrize("function", [scanned, counted, repeated, branched, mapped, running])
def test_values_and_gradients(function, shape):
    def program(ctx):
        a, xs = ctx.placeholder("a", ()), ctx.placeholder("xs", shape)
        z = function(a, xs)
        grads = gt.graph.grad([z], [a, xs])
        evaluator = ctx.evaluator().push(z).extend(grads).feed(a, 2.5).feed(xs, XS)
        # Interpreted at first, and then compiled.
        return [evaluator.run() for _ in range(3)]

    value, grads = gt.value_and_grad(function, argnums=(0, 1))(2.5, XS)
    for found in gt.run(program):
        for got, want in zip(found, (value, *grads), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_shape_that_a_loop_changes_raises_when_it_is_built_or_fed():
    def program(ctx, shape):
        x = ctx.placeholder("x", shape)
        out = gt.fori_loop(0, 2, lambda i, s: np.concatenate([s, s]), x)
        return out.eval(ctx, feed={x: np.ones(2)})

    for shape in ((2,), (-1,)):
        with pytest.raises(gt.GradtapeError, match="the state becomes float64"):
            gt.run(lambda ctx, shape=shape: program(ctx, shape))
