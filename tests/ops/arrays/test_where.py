"""Reductions with where= and initial=: NumPy's functions on tensors, and gradtape's own."""

import functools

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError
from test_ufuncs import MASK, M, checking, same  # noqa: F401 - `check` is a fixture


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x, where=MASK),
        lambda x: np.sum(x, 0, initial=2.0),
        lambda x: np.sum(x, 0, None, None, True, 3.0, MASK),
        lambda x: np.prod(x, axis=0, where=MASK, keepdims=True),
        lambda x: np.max(x, 1, where=MASK, initial=0.0),
        lambda x: np.amin(x, initial=0.2),
        lambda x: np.mean(x, where=MASK),
        lambda x: np.mean(x, 1, keepdims=True, where=MASK),
        lambda x: np.var(x, axis=1, where=MASK, ddof=1),
        lambda x: np.std(x, where=MASK[0]),
    ],
)
def test_functions_take_where_and_initial(function, check):
    check(function)


NOT_ALL = np.array([False, True, True])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sum", {"where": NOT_ALL}),
        ("sum", {"axis": 1, "where": MASK, "initial": 2.0, "keepdims": True}),
        ("sum", {"axis": (0, 1), "initial": np.float64(2.0)}),
        ("sum", {"where": False}),
        ("prod", {"axis": 0, "where": MASK}),
        ("prod", {"initial": 3.0}),
        ("max", {"axis": 1, "where": MASK, "initial": -1.0}),
        ("max", {"initial": 2.5}),
        ("amin", {"axis": 0, "where": MASK, "initial": 9.0}),
        ("min", {"axis": 1, "initial": 1.0, "keepdims": True}),
        ("mean", {"axis": 1, "where": MASK}),
        ("mean", {"where": NOT_ALL, "keepdims": True}),
        ("var", {"axis": 1, "where": MASK}),
        ("var", {"where": MASK, "ddof": 1}),
        ("std", {"where": NOT_ALL, "correction": 1}),
    ],
)
def test_our_functions_take_where_and_initial(name, options, check):
    function, reference = getattr(gt, name), getattr(np, name)
    expected = reference(M, **options)
    np.testing.assert_allclose(function(M, **options), expected, rtol=1e-13)
    assert isinstance(function(M, **options), np.ndarray | np.generic)
    same(function(gt.tensor(M), **options), expected)
    small = M.astype(np.float32)
    assert function(small, **options).dtype == reference(small, **options).dtype
    check(lambda x: function(x, **options))


def test_what_a_reduction_starts_from_and_its_condition_can_be_batched_traced_and_differentiated():
    starts = np.array([0.5, 1.0, 4.0])
    got = gt.vmap(lambda s: gt.sum(gt.tensor(M), initial=s))(starts)
    np.testing.assert_allclose(got, M.sum() + starts)
    assert gt.grad(lambda s: gt.prod(M, initial=s))(2.0) == pytest.approx(M.prod())
    masks = np.stack([MASK, ~MASK])
    for function in (gt.sum, gt.mean, gt.std):

        def masked(mask, function=function):
            return function(M, where=mask)

        np.testing.assert_allclose(gt.vmap(masked)(masks), [masked(mask) for mask in masks])
        np.testing.assert_allclose(gt.jit(masked)(MASK), masked(MASK))


def test_the_rest_of_where():
    assert gt.sum(np.array([100, 100], np.int8), dtype=np.int8, where=[True, True]) == -56
    assert gt.sum(np.array([1, 2]), initial=0.5) == 3  # as NumPy has it
    assert gt.max(np.zeros((0,)), initial=2.0) == 2.0
    with pytest.raises(ShapeError, match="max: got where=, expected initial="):
        gt.max(M, where=MASK)
    with pytest.raises(DTypeError, match="sum: got where= of int64"):
        gt.sum(M, where=MASK.astype(int))
    with pytest.warns(RuntimeWarning):
        assert np.isnan(gt.var(M, where=MASK, ddof=9)) == np.isnan(np.var(M, where=MASK, ddof=9))
    np.testing.assert_array_equal(gt.grad(lambda x: gt.std(x, where=NOT_ALL))(np.ones(3)), 0)
    assert gt.tensor(M).sum(where=MASK).item() == M.sum(where=MASK)


def test_truths_with_where():
    for function in (np.all, np.any):
        same(function(gt.tensor(M > 1), where=MASK), function(M > 1, where=MASK))
        ours = functools.partial(getattr(gt, function.__name__), where=NOT_ALL)
        for x in (M > 1, M - 1.5, np.zeros((2, 3))):
            expected = function(x, 1, where=NOT_ALL)
            for mode in (lambda f: f, gt.jit):
                np.testing.assert_array_equal(mode(functools.partial(ours, axis=1))(x), expected)
            np.testing.assert_array_equal(gt.vmap(ours)(x), expected)
