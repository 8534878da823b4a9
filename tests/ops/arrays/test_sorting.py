"""What the samples of sorting and statistics cannot say: NumPy's functions, dtypes, values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, IndexingError, ShapeError
from gradtape.testing import check_grads

X = np.array([[2.0, -1.0, 0.5], [1.0, 3.0, -2.0]])


def test_half_precision_is_sorted_with_gradients() -> None:
    x = gt.tensor(X.astype(np.float16), requires_grad=True)
    gt.sum(gt.sort(x, 1) * np.arange(3.0, dtype=np.float16)).backward()
    assert x.grad.dtype == np.float16
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 0, 1], [1, 2, 0]])


def test_complex_numbers_are_sorted_with_gradients() -> None:
    check_grads(lambda x: gt.sort(x) * np.arange(3.0), (np.array([1 + 2j, 2 - 1j, -0.5 + 0j]),))
    gradient = gt.grad(lambda x: np.sum(gt.real(gt.sort(x)) * np.arange(3.0)))(
        np.array([1 + 2j, 1 - 1j, -0.5 + 0j])
    )
    np.testing.assert_array_equal(gradient, [2.0, 1.0, 0.0])
    check_grads(lambda x: gt.sort_complex(x) * np.arange(3.0), (X,))


def _rows_with_ties() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(140, 1000))
    few = x.copy()
    few[:, 500:600] = few[:, 100:200]
    holes = np.where(rng.random(x.shape) < 0.1, np.nan, few)
    zeros = np.where(x > 0.5, 0.0, np.where(x < -1, -0.0, x))
    short = few.astype(np.float32)[:20]
    return {"none": x, "few": few, "many": x.round(1), "nan": holes, "zeros": zeros, "f4": short}


@pytest.mark.parametrize("name", _rows_with_ties())
def test_order_of_many_elements_is_stable(name: str) -> None:
    x = _rows_with_ties()[name]
    for array, axis in ((x, -1), (x, 0), (x.ravel(), 0)):
        expected = np.argsort(array, axis, kind="stable")
        np.testing.assert_array_equal(gt.argsort(array, axis), expected)
        turned = np.argsort(np.flip(array, axis), axis, kind="stable")
        expected = array.shape[axis] - 1 - np.flip(turned, axis)
        np.testing.assert_array_equal(gt.argsort(array, axis, descending=True), expected)
        for k in (1, 7):
            found = gt.topk(array, k, axis).indices
            np.testing.assert_array_equal(found, np.take(expected, range(k), axis))
            found = gt.topk(array, k, axis, largest=False).indices
            expected_smallest = np.take(np.argsort(array, axis, kind="stable"), range(k), axis)
            np.testing.assert_array_equal(found, expected_smallest)


def test_equal_elements_stay_in_order() -> None:
    x, weights = np.array([1.0, 0.0, 1.0, 0.0]), np.arange(4.0)
    gradient = gt.grad(lambda x: np.sum(np.sort(x) * weights))(x)
    np.testing.assert_array_equal(gradient, [2, 0, 3, 1])
    gradient = gt.grad(lambda x: np.sum(gt.sort(x, descending=True) * weights))(x)
    np.testing.assert_array_equal(gradient, [0, 2, 1, 3])


def test_sorting_large_arrays_with_and_without_ties() -> None:
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=(3, 700)), rng.integers(0, 50, (3, 700)).astype(float)):
        for axis in (0, 1):
            np.testing.assert_array_equal(gt.argsort(x, axis), np.argsort(x, axis, kind="stable"))
            values = gt.sort(gt.tensor(x), axis).numpy()
            np.testing.assert_array_equal(values, np.sort(x, axis))


@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_the_start_of_the_stable_order(k: int, largest: bool) -> None:
    rng = np.random.default_rng(k)
    for high in (5, 10**6):
        x = rng.integers(0, high, (4, 200)).astype(float)
        x[1, :3] = np.nan
        _, indices = gt.topk(x, k, largest=largest)
        order = gt.argsort(x, descending=largest)
        np.testing.assert_array_equal(indices, order[:, :k])


def test_topk_takes_pytorchs_name_of_the_axis() -> None:
    np.testing.assert_array_equal(gt.topk(X, 1, dim=0).values, [[2.0, 3.0, 0.5]])


def test_results_can_be_used_as_indices() -> None:
    def sorted_by(x: Any) -> Any:
        order = np.argsort(x)
        return x[order] * np.arange(3.0)

    for function in (sorted_by, gt.jit(sorted_by)):
        gradient = gt.grad(lambda x, f=function: np.sum(f(x)))(X[0])
        np.testing.assert_array_equal(gradient, [2.0, 0.0, 1.0])


def test_order_has_no_gradient() -> None:
    x = gt.tensor(X, requires_grad=True)
    for result in (np.argsort(x), np.argpartition(x, 1), np.searchsorted(X[0], x)):
        assert not result.requires_grad


# ---- searching ----------------------------------------------------------------------------------


def test_bins_in_no_order_are_refused() -> None:
    with pytest.raises(ArgumentError, match="digitize: got bins in no order"):
        gt.digitize(X, np.array([0.0, 2.0, 1.0]))


def test_searching_in_batches() -> None:
    grids, sought = np.sort(X), np.linspace(-3, 3, 8).reshape(2, 4)
    for side in ("left", "right"):
        got = gt.vmap(lambda a, v, side=side: gt.searchsorted(a, v, side))(grids, sought)
        expected = [np.searchsorted(a, v, side) for a, v in zip(grids, sought, strict=True)]
        np.testing.assert_array_equal(got, expected)
        nested = gt.vmap(gt.vmap(lambda a, v, side=side: gt.searchsorted(a, v, side), (None, 0)))
        np.testing.assert_array_equal(nested(grids, sought), expected)


# ---- statistics ---------------------------------------------------------------------------------


def test_shares_out_of_range_give_nan_where_they_are_not_known() -> None:
    shares = np.array([0.5, 1.5])
    for method in ("linear", "lower"):
        got = gt.jit(lambda q, method=method: gt.quantile(X[0], q, method=method))(shares)
        np.testing.assert_array_equal(got, [0.5, np.nan])
        with pytest.raises(ArgumentError, match="quantile: got q outside of the range"):
            gt.quantile(X[0], gt.tensor(shares), method=method)


def test_weights_that_add_up_to_zero_are_refused() -> None:
    with pytest.raises(ArgumentError, match="average: got weights that add up to 0"):
        gt.average(X, 1, np.array([1.0, -1.0, 0.0]))


def test_the_same_weights_of_a_tensor_are_refused_but_in_compiled_code() -> None:
    weights = np.array([1.0, -1.0, 0.0])
    for average in (gt.average, gt.vmap(gt.average, (None, None, 0))):
        with pytest.raises(ArgumentError, match="average: got weights that add up to 0"):
            gt.grad(lambda w, average=average: gt.sum(average(X, 1, w)))(
                weights if average is gt.average else weights[None]
            )
    assert not np.isfinite(gt.jit(lambda w: gt.average(X, 1, w))(weights)).any()


def test_quantile_weights_are_piecewise_constant() -> None:
    def weighted(x: Any, weights: Any) -> Any:
        return gt.quantile(x, [0.2, 0.7], method="inverted_cdf", weights=weights)

    x, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 0.5])
    by_x, by_weights = gt.jacobian(weighted, (0, 1))(x, weights)
    np.testing.assert_array_equal(by_x, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(by_weights, np.zeros((2, 3)))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd", "nanmax", "nanmedian"])
def test_nothing_but_nan(name: str) -> None:
    x = np.array([[np.nan, np.nan], [1.0, 3.0]])
    function = getattr(gt, name)
    assert np.isnan(function(x, 1)).tolist() == [True, False]
    gradient = gt.grad(lambda x: np.sum(function(x, 1)))(x)
    np.testing.assert_array_equal(gradient[0], [0.0, 0.0])
    assert np.isfinite(gradient[1]).all()


def test_too_few_observations() -> None:
    with pytest.warns(RuntimeWarning, match=r"divide by zero|invalid value"):
        assert not np.isfinite(gt.cov(np.array([[1.0], [2.0]]))).any()


# ---- counting -----------------------------------------------------------------------------------


def test_bad_counts() -> None:
    with pytest.raises(ShapeError, match="bincount: got x of shape"):
        gt.bincount(np.ones((2, 2), int))
    with pytest.raises(IndexingError, match="expected integers"):
        gt.bincount(np.array([0.5]))
    with pytest.raises(IndexingError, match="expected integers"):
        gt.bincount(np.array([-1]))
    with pytest.raises(ArgumentError, match="got bins='best'"):
        gt.histogram(X, "best")


def test_counts() -> None:
    x = np.array([3, 1, 1])
    np.testing.assert_array_equal(np.bincount(gt.tensor(x)).numpy(), [0, 2, 0, 1])
    np.testing.assert_array_equal(gt.bincount(x, minlength=6), np.bincount(x, minlength=6))
    np.testing.assert_array_equal(gt.bincount([]), np.bincount([]))
    counts, edges = np.histogram(gt.tensor(X), "auto")
    for got, expected in zip((counts, edges), np.histogram(X, "auto"), strict=True):
        np.testing.assert_array_equal(got.numpy(), expected)


def test_counts_are_untracked() -> None:
    x = gt.tensor(X, requires_grad=True)
    counts, edges = np.histogram(x, 3)
    assert not counts.requires_grad
    assert edges.requires_grad  # from the least to the largest element
    assert not np.histogram(x, 3, range=(-1, 1), density=True)[0].requires_grad


def test_histograms_in_batches() -> None:
    counts, edges = gt.vmap(lambda x: gt.histogram(x, 2))(X)
    for row, count, edge in zip(X, counts, edges, strict=True):
        np.testing.assert_array_equal(count, np.histogram(row, 2)[0])
        np.testing.assert_array_equal(edge, np.histogram(row, 2)[1])


# ---- bfloat16 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tensor", [False, True], ids=["array", "tensor"])
def test_bfloat16_has_nan_last(tensor: bool) -> None:
    array = np.array([3.0, 1.0, np.nan, 2.0]).astype(gt.bfloat16)
    x = gt.tensor(array) if tensor else array
    expected = {
        gt.sort: [1.0, 2.0, 3.0, np.nan],
        gt.argsort: [1, 3, 0, 2],
        gt.unique: [1.0, 2.0, 3.0, np.nan],
        gt.nanmedian: 2.0,
        gt.nanmax: 3.0,
        (lambda x: gt.partition(x, [0, 1, 2])): [1.0, 2.0, 3.0, np.nan],
        (lambda x: gt.topk(x, 2).values): [np.nan, 3.0],
        (lambda x: gt.nanquantile(x, 0.5)): 2.0,
        (lambda x: gt.quantile(x[:2], 0.5)): 2.0,
    }
    for function, values in expected.items():
        got = function(x)
        assert got.dtype == (np.intp if function is gt.argsort else gt.bfloat16)
        got = got.numpy() if tensor else np.asarray(got)
        np.testing.assert_array_equal(got.astype(np.float64), values)


def test_orders_of_one_number() -> None:
    number = np.array(3.0)
    for function, args in ((np.argsort, ()), (np.argpartition, (0,))):
        for axis in (-1, 0, None):
            got: Any = function(gt.tensor(number), *args, axis=axis)
            expected = function(number, *args, axis=axis)
            np.testing.assert_array_equal(got.numpy(), expected, strict=True)
        with pytest.raises(ValueError, match="axis"):
            function(gt.tensor(number), *args, axis=1)
    with pytest.raises(ValueError, match="axis"):
        np.sort(gt.tensor(number))
