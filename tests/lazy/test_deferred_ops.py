"""Every function of the library on placeholders of any shape gives what eager code gives."""

import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gradtape as gt
from every_case import FURTHER, call_of, each, pulled
from gradtape import containers
from gradtape.core.deferrable import deferrable
from gradtape.errors import ConversionError, UnknownSizeError, UnsupportedError
from gradtape.lazy.context import Context
from opcall import assert_same, is_floating
from opcases.case import OpCase

# What asks for values raises in every traced function.
NEEDS_VALUES = (ConversionError, UnsupportedError)


def is_tried(case: OpCase) -> bool:
    # What is deferred stands for an array: it has not the methods of a sparse matrix.
    return getattr(case.function, "__module__", "") != "opcases.sparse"


class Lazy:
    """A case with placeholders in place of its arrays.

    Attributes:
        feed: What to feed.
        results: The lazy results.
    """

    def __init__(self, case: OpCase, *, sized: bool) -> None:
        self.ctx = Context()
        leaves, structure = containers.flatten((tuple(case.args), case.params))
        self.feed = {}
        for n, leaf in enumerate(leaves):
            if isinstance(leaf, np.ndarray):
                shape = leaf.shape if sized else None
                leaves[n] = self.ctx.placeholder(f"x{n}", shape, dtype=leaf.dtype)
                self.feed[leaves[n]] = leaf
        args, params = containers.unflatten(structure, leaves)
        self.results = containers.flatten(case.function(*args, **params))[0]

    def evaluated(self) -> list:
        found = []
        for result in self.results:
            lazy = isinstance(result, gt.Tensor) and result.record is not None
            found.append(result.eval(self.ctx, self.feed) if lazy else result)
        return containers.flatten(found)[0]


def asked_by_the_sample(error: UnknownSizeError) -> bool:
    """Whether it is the sample itself that asks for a size, as `x.shape` does, and no function."""
    frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    asking = [path for path in frames if path.parent.name not in ("lazy", "core")]
    return asking[-1].parent.name == "opcases"


def evaluated(case: OpCase, *, sized: bool = False) -> list | None:
    """The values of the results; None if a function asks for values."""
    try:
        return Lazy(case, sized=sized).evaluated()
    except UnknownSizeError as error:
        if not asked_by_the_sample(error):
            raise
        return evaluated(as_one_call(case))
    except NEEDS_VALUES:
        if not sized:
            assert evaluated(case, sized=True) is None
    return None


def as_one_call(case: OpCase) -> OpCase:
    """A case whose sample, which asks for sizes, is put off as a whole."""
    return replace(case, function=deferrable(case.function))


@each(is_tried)
def test_value(case: OpCase) -> None:
    call = call_of(case)
    expected = [np.asarray(out) for out in call(*call.arrays)]
    found = evaluated(case)
    if found is not None:
        assert_same(found, expected, ulps=case.rtol)


@each(lambda case: is_tried(case) and case.differentiable and case.id not in FURTHER)
def test_gradient(case: OpCase) -> None:
    function, floats = call_of(case).differentiable()
    if not floats or evaluated(case) is None:
        return
    try:
        lazy = Lazy(case, sized=False)
    except UnknownSizeError:
        lazy = Lazy(as_one_call(case), sized=False)
    outputs = call_of(case)(*call_of(case).arrays)
    results = lazy.results
    if len(outputs) != len(results):  # several results of a function, deferred as one lazy tensor
        if len(case.function(*case.args, **case.params)) != len(outputs):
            return  # containers in containers
        (whole,) = results
        results = [whole[n] for n in range(len(outputs))]
    ys = [y for y, out in zip(results, outputs, strict=True) if is_floating(out)]
    # Placeholders are made in order, and those of keyword arguments come last.
    every = list(lazy.feed.items())[: len(call_of(case).arrays)]
    xs = [x for x, array in every if is_floating(array)]
    grads = gt.graph.grad(ys, xs, grad_ys=ys)
    found = lazy.ctx.evaluator().extend(grads).set_feeder(lazy.feed).run()
    assert_same(found, pulled(function, floats), ulps=64 * case.rtol)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (np.linalg.eigh, 2),
        (np.linalg.svd, 3),
        (np.linalg.slogdet, 2),
        (gt.linalg.eigh, 2),
        (gt.linalg.svd, 3),
        (np.modf, 2),
    ],
)
def test_several_results_can_be_unpacked(function, count) -> None:
    ctx = Context()
    x = ctx.placeholder("x", (-1, -1))
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    first, *rest = function(x)
    assert len(rest) == count - 1
    for part, expected in zip([first, *rest], function(matrix), strict=True):
        np.testing.assert_allclose(part.eval(ctx, {x: matrix}), expected)


@pytest.mark.parametrize("function", [np.linalg.cholesky, np.linalg.inv, np.linalg.eigvalsh])
def test_linear_algebra(function) -> None:
    ctx = Context()
    x = ctx.placeholder("x", None)
    (g,) = gt.graph.grad([np.sum(function(x) ** 2)], [x])
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    expected = gt.grad(lambda x: np.sum(function(x) ** 2))(matrix)
    np.testing.assert_allclose(g.eval(ctx, {x: matrix}), expected)
