"""`gaussian_kde`: SciPy's class for arrays, with methods that take tensors, and ours of tensors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.stats

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.testing import check_grads

stats = gt.scipy.stats
DATA = np.array([[0.3, -0.4, 1.5, 0.9, 2.2], [1.0, 0.2, -0.5, 0.7, 1.9]])
POINTS = np.array([[0.1, 1.2, -3.0], [0.5, 0.9, 2.0]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 0.0, 1.5])


def test_arrays_give_what_scipy_gives() -> None:
    ours, theirs = stats.gaussian_kde(DATA, 0.7), scipy.stats.gaussian_kde(DATA, 0.7)
    assert isinstance(ours, scipy.stats.gaussian_kde)
    assert isinstance(ours, stats.gaussian_kde)
    for method in ("evaluate", "__call__", "pdf", "logpdf"):
        np.testing.assert_array_equal(
            getattr(ours, method)(POINTS), getattr(theirs, method)(POINTS)
        )
    np.testing.assert_array_equal(ours.resample(3, seed=1), theirs.resample(3, seed=1))
    assert ours.integrate_box([-1, -1], [1, 1]) > 0
    # With a number for a bandwidth, SciPy's cannot be pickled.
    again = pickle.loads(pickle.dumps(stats.gaussian_kde(DATA)))
    assert type(again) is type(ours)
    np.testing.assert_array_equal(again(POINTS), scipy.stats.gaussian_kde(DATA)(POINTS))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("bandwidth", [None, "scott", "silverman", 0.7, lambda kde: 0.3 * kde.d])
def test_tensors_in_any_place(bandwidth: Any, weights: Any) -> None:
    theirs = scipy.stats.gaussian_kde(DATA, bandwidth, weights)
    plain = stats.gaussian_kde(DATA, bandwidth, weights)
    of_tensors = stats.gaussian_kde(gt.tensor(DATA), bandwidth, weights)
    for estimate, points in ((plain, gt.tensor(POINTS)), (of_tensors, POINTS)):
        for method in ("evaluate", "__call__", "pdf", "logpdf"):
            found = getattr(estimate, method)(points)
            assert isinstance(found, gt.Tensor)
            expected = getattr(theirs, method)(POINTS)
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    for attribute in ("factor", "covariance", "inv_cov", "weights", "neff", "d", "n"):
        expected = getattr(theirs, attribute)
        np.testing.assert_allclose(getattr(of_tensors, attribute), expected, rtol=1e-12)


def test_derivatives_in_everything() -> None:
    def density(data: Any, points: Any, bandwidth: Any, weights: Any) -> Any:
        return our_scipy.stats.gaussian_kde(data, bandwidth, weights)(points)

    check_grads(density, [DATA, POINTS, np.array(0.8), WEIGHTS + 0.1])
    # A weight of 0 has a slope.
    slope = gt.grad(lambda w: density(DATA, POINTS, 0.8, w)[1])(WEIGHTS)
    step = np.array([0.0, 0.0, 0.0, 1e-6, 0.0])
    ends = (density(DATA, POINTS, 0.8, WEIGHTS + s * step)[1] for s in (1, 0))
    np.testing.assert_allclose(slope[3], (next(ends) - next(ends)) / 1e-6, rtol=1e-4)
    assert slope[3] != 0
    compiled = gt.jit(gt.grad(lambda x: gt.sum(density(DATA, x, 0.8, WEIGHTS))))
    expected = gt.grad(lambda x: gt.sum(density(DATA, x, 0.8, WEIGHTS)))(POINTS)
    np.testing.assert_allclose(compiled(POINTS), expected, rtol=1e-12)
    batch = np.stack([POINTS, 2 * POINTS])
    batched = gt.vmap(lambda x: stats.gaussian_kde(DATA, 0.8).logpdf(x))(batch)
    one_by_one = [scipy.stats.gaussian_kde(DATA, 0.8).logpdf(x) for x in batch]
    np.testing.assert_allclose(batched, one_by_one, rtol=1e-12)


def test_far_points_have_slopes() -> None:
    """The density underflows there, and its logarithm does not."""
    slope = gt.grad(lambda x: stats.gaussian_kde(DATA[0], 0.1).logpdf(x)[0])(np.array([60.0]))
    spread = scipy.stats.gaussian_kde(DATA[0], 0.1).covariance[0, 0]
    np.testing.assert_allclose(slope, [-(60.0 - 2.2) / spread], rtol=1e-12)


def test_probabilities_between_bounds() -> None:
    theirs = scipy.stats.gaussian_kde(DATA[0])
    estimate = stats.gaussian_kde(DATA[0])
    found = estimate.integrate_box_1d(gt.tensor(0.0), 1.0)
    np.testing.assert_allclose(found.numpy(), theirs.integrate_box_1d(0.0, 1.0), rtol=1e-13)
    slope = gt.grad(lambda end: estimate.integrate_box_1d(0.0, end))(1.0)
    np.testing.assert_allclose(slope, theirs(1.0)[0], rtol=1e-13)


def test_what_is_refused() -> None:
    estimate, points = stats.gaussian_kde(DATA), gt.tensor(POINTS)
    of_tensors = stats.gaussian_kde(gt.tensor(DATA))
    for call in (
        lambda: estimate.integrate_gaussian(points[:, 0], np.eye(2)),
        lambda: estimate.integrate_kde(of_tensors),
        lambda: estimate.resample(gt.tensor(3.0)),
        lambda: of_tensors.resample(3),
    ):
        with pytest.raises(UnsupportedError, match=r"without gradient$"):
            call()
    with pytest.raises(ShapeError, match="got points of dimension 3, expected 2"):
        estimate(gt.zeros((3, 4)))
    with pytest.raises(ShapeError, match="integrate_box_1d: got 2 dimensions"):
        of_tensors.integrate_box_1d(0.0, 1.0)
    with pytest.raises(ShapeError, match="expected at most two axes"):
        stats.gaussian_kde(gt.zeros((2, 2, 2)))
    with pytest.raises(ArgumentError, match="got bw_method='wide', expected 'scott'"):
        of_tensors.set_bandwidth("wide")
