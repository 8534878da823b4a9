"""Summaries of observations where they are extreme, equal, few, or of narrow dtypes."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats
from mpmath import mpf

import gradtape as gt
import our_scipy
from gradtape.errors import UnsupportedError

stats = gt.scipy.stats
X = np.array([0.3, 1.7, 0.9, 2.2, 4.1])

SUMMARIES = (
    *("moment", "skew", "kurtosis", "gmean", "hmean", "sem", "variation", "iqr", "tmean", "tvar"),
    *("median_abs_deviation", "tstd", "zscore", "gzscore", "entropy"),
)


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_dtype_is_that_of_the_observations(name: str) -> None:
    function = getattr(stats, name)
    expected = function(X)
    for dtype in (np.float32, np.float16):
        found = function(gt.tensor(X.astype(dtype)))
        assert found.dtype == dtype
        coarse = 30 * np.finfo(dtype).eps
        np.testing.assert_allclose(found.numpy(), expected, rtol=coarse, atol=coarse)
    whole = np.array([1, 5, 2, 8])
    np.testing.assert_allclose(function(gt.tensor(whole)).numpy(), function(whole), rtol=1e-12)


@pytest.mark.parametrize("name", SUMMARIES)
def test_nan_spreads_as_in_scipy(name: str) -> None:
    x = np.array([[0.3, 1.7, np.nan], [0.5, 0.9, 2.0], [0.7, 0.1, 1.0]])
    with np.errstate(all="ignore"):
        expected = getattr(stats, name)(x, axis=0)
        found = getattr(stats, name)(gt.tensor(x), axis=0)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", SUMMARIES)
def test_other_policies_for_nan_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"scipy\.stats\.{name}: got nan_policy="):
        getattr(stats, name)(gt.tensor(X), nan_policy="omit")
    getattr(stats, name)(gt.tensor(X), nan_policy="propagate")


def test_compiled_and_batched() -> None:
    rows = np.stack([X, 2 * X[::-1], X + 1.0])
    for name in SUMMARIES:
        function = getattr(stats, name)
        one_by_one = np.stack([function(row) for row in rows])
        np.testing.assert_allclose(gt.vmap(function)(rows), one_by_one, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(gt.jit(function)(X), one_by_one[0], rtol=1e-12, atol=1e-14)


def test_equal_observations() -> None:
    """As in SciPy, NaN without a spread; slopes there are 0, not NaN."""
    equal = np.full(4, 0.1)
    for name in ("skew", "kurtosis", "zscore"):
        found, slope = gt.value_and_grad(lambda x, name=name: gt.sum(getattr(stats, name)(x)))(
            equal
        )
        assert np.isnan(found)
        np.testing.assert_array_equal(slope, np.zeros(4))
    found = stats.pearsonr(gt.tensor(equal), X[:4])
    assert np.isnan(found.statistic.numpy())
    assert np.isnan(found.pvalue.numpy())


def test_few_observations() -> None:
    for values in (X[:1], X[:2], X[:3]):
        for name in ("skew", "kurtosis"):
            with np.errstate(all="ignore"):
                found = getattr(stats, name)(gt.tensor(values), bias=False).numpy()
                np.testing.assert_allclose(
                    found, getattr(our_scipy.stats, name)(values, bias=False), rtol=1e-12
                )
                if values.size > 1:
                    expected = getattr(scipy.stats, name)(values, bias=False)
                    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = stats.pearsonr(gt.tensor(X[:2]), np.array([3.0, 1.0]))
    assert (float(found.statistic.numpy()), float(found.pvalue.numpy())) == (-1.0, 1.0)


def test_perfect_correlations() -> None:
    for factor in (2.0, -2.0):
        statistic, pvalue = stats.pearsonr(gt.tensor(X), factor * X)
        assert abs(statistic.numpy()) == 1
        np.testing.assert_allclose(pvalue.numpy(), 0, atol=1e-20)
        slope = gt.grad(lambda x, y=factor * X: stats.pearsonr(x, y).statistic)(X)
        np.testing.assert_allclose(slope, np.zeros(5), atol=1e-15)


def test_a_share_of_zero() -> None:
    """Its slope is infinite, and that of the others finite."""
    slope = gt.grad(stats.entropy)(np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(slope, [np.inf, 0.0, 0.0], atol=1e-15)
    slope = gt.grad(stats.entropy, 1)(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(slope, [1.0, -1.0], rtol=1e-14)


@pytest.mark.parametrize("lmbda", [-400.0, -30.0, -1e-6, 0.0, 1e-6, 0.7, 30.0, 400.0])
def test_powers_that_overflow(lmbda: float) -> None:
    """The likelihood of Box and Cox, and its derivatives, against mpmath."""

    def exact(power: Any) -> Any:
        logs = [mpmath.log(mpf(float(x))) for x in X]
        powers = [mpmath.expm1(power * y) / power if power else y for y in logs]
        mean = sum(powers) / 5
        spread = sum((p - mean) ** 2 for p in powers) / 5
        return (power - 1) * sum(logs) - mpf(5) / 2 * mpmath.log(spread)

    ours = our_scipy.stats.boxcox_llf
    with mpmath.workdps(400):
        expected = [float(mpmath.diff(exact, mpf(lmbda), n, h=mpf(10) ** -60)) for n in range(3)]
    np.testing.assert_allclose(ours(lmbda, X), expected[0], rtol=1e-12)
    np.testing.assert_allclose(gt.grad(ours)(lmbda, X), expected[1], rtol=1e-10)
    np.testing.assert_allclose(gt.grad(gt.grad(ours))(lmbda, X), expected[2], rtol=1e-7)


def test_ties_of_sorted_observations() -> None:
    """Where observations meet, slopes are those to one side."""
    u, v = np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 2.0])
    found, (by_u, by_v) = gt.value_and_grad(stats.wasserstein_distance, (0, 1))(u, v)
    np.testing.assert_allclose(found, scipy.stats.wasserstein_distance(u, v), rtol=1e-14)
    assert np.all(np.isin(np.abs(np.round(3 * np.concatenate([by_u, by_v]), 12)), [0.0, 1.0]))
    # Moved together, they keep their distance.
    np.testing.assert_allclose(np.sum(by_u) + np.sum(by_v), 0, atol=1e-15)
    assert np.all(np.isfinite(gt.grad(stats.wasserstein_distance)(X, X[::-1].copy())))
