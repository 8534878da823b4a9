"""Distances: names, signatures and aliases of SciPy, awkward points, checks of values."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance

import gradtape as gt
from gradtape.errors import ArgumentError, ConversionError, NotDifferentiableError
from gradtape.scipy.spatial import distance

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.1, 1.0, (9, 3)), RNG.uniform(0.1, 1.0, (4, 3))
ALIASES = scipy.spatial.distance._METRIC_ALIAS
BOOLEAN = [
    *("dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"),
    *("kulczynski1", "sokalmichener"),
]


@pytest.mark.parametrize("name", scipy.spatial.distance.__all__)
def test_names_and_signatures_are_those_of_scipy(name: str) -> None:
    ours, theirs = getattr(distance, name), getattr(scipy.spatial.distance, name)
    assert inspect.signature(ours) == inspect.signature(theirs)


def test_arrays_get_what_scipy_gives() -> None:
    for name in ("euclidean", "cosine", "jensenshannon"):
        got = getattr(distance, name)(X[0], X[1])
        expected = getattr(scipy.spatial.distance, name)(X[0], X[1])
        assert type(got) is type(expected)
        assert got == expected
    assert distance.yule is scipy.spatial.distance.yule
    out = np.empty((9, 4))
    assert distance.cdist(X, Y, "hamming", out=out) is out


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_every_alias_of_a_metric(alias: str) -> None:
    canonical = ALIASES[alias].canonical_name
    for name in (alias, alias.upper(), f"test_{canonical}"):
        if canonical in BOOLEAN:
            with pytest.raises(NotDifferentiableError, match="has no derivative"):
                distance.cdist(gt.tensor(X), Y, name)
            continue
        pairs = (
            (distance.cdist(gt.tensor(X), Y, name), scipy.spatial.distance.cdist(X, Y, name)),
            (distance.pdist(gt.tensor(X), name), scipy.spatial.distance.pdist(X, name)),
        )
        for got, expected in pairs:
            assert isinstance(got, gt.Tensor)
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-11, atol=1e-15)


def test_functions_as_metrics() -> None:
    def largest(u: Any, v: Any, scale: float = 1.0) -> Any:
        return scale * np.max(np.abs(u - v))

    expected = scipy.spatial.distance.cdist(X, Y, largest, scale=2.0)
    got = distance.cdist(gt.tensor(X), Y, largest, scale=2.0)
    np.testing.assert_allclose(got.numpy(), expected)
    gt.testing.check_grads(lambda x: distance.pdist(x, largest), (X[:3],))
    assert distance.pdist(gt.tensor(X[:1]), largest).shape == (0,)

    def cosine(u: Any, v: Any) -> Any:  # the name of one of SciPy's, but another function
        return u[0] * v[1]

    np.testing.assert_allclose(distance.cdist(gt.tensor(X), Y, cosine).numpy(), X[:, :1] * Y[:, 1])
    for function in (scipy.spatial.distance.cosine, distance.cosine):
        got = distance.cdist(gt.tensor(X), Y, function).numpy()
        np.testing.assert_allclose(got, scipy.spatial.distance.cdist(X, Y, "cosine"), atol=1e-15)


def test_second_derivatives_of_distances_of_points_to_themselves() -> None:
    """A matrix of distances of one set has zeros on its diagonal, whatever the points."""

    def energy(x: Any) -> Any:
        return np.sum(distance.cdist(x, x) ** 3 + distance.cdist(x, x))

    x = X[:3]
    gt.testing.check_grads(energy, (x,), order=2)
    hessian = gt.hessian(energy)(x)
    np.testing.assert_allclose(gt.jit(gt.hessian(energy))(x), hessian, rtol=1e-9, atol=1e-12)
    for name in ("euclidean", "cosine", "cityblock", "canberra", "jensenshannon"):
        slopes = gt.hessian(getattr(distance, name))(x[0], x[0])
        assert np.isfinite(slopes).all(), name


def test_parallel_vectors_keep_their_second_derivatives() -> None:
    """Rounding takes 1 − cos out of its interval there, and SciPy cuts it off."""
    u, v = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])
    unit = u / np.linalg.norm(u)
    expected = (np.eye(3) - np.outer(unit, unit)) / (u @ u)
    for scale in (1.0, 0.1, 3.0, -1.0):
        got = gt.hessian(distance.cosine)(u, scale * v)
        np.testing.assert_allclose(got, np.sign(scale) * expected, atol=1e-12)


def test_zero_vectors_have_no_angle() -> None:
    with np.errstate(invalid="ignore"):
        assert np.isnan(distance.cosine(gt.tensor(np.zeros(3)), X[0]).item())
        assert np.isnan(gt.grad(distance.cosine)(np.zeros(3), X[0])).all()
        assert np.isnan(distance.cdist(gt.tensor(np.zeros((1, 3))), Y, "cosine").numpy()).all()
        rows = distance.cdist(gt.tensor(np.zeros((1, 3))), Y, "jensenshannon").numpy()
    assert (rows == np.inf).all()  # as in SciPy


def test_a_probability_of_0_has_an_infinite_slope_that_stays_with_it() -> None:
    p, q = np.array([0.0, 0.5, 0.5]), np.array([0.5, 0.5, 0.0])
    got, step = gt.grad(distance.jensenshannon)(p, q), 1e-7
    expected = [
        (distance.jensenshannon(p + e, q) - distance.jensenshannon(p - e, q)) / (2 * step)
        for e in step * np.eye(3)[1:]
    ]
    assert got[0] == -np.inf
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)


def test_large_sets_of_points_far_from_0() -> None:
    x = RNG.normal(size=(70, 20)) + 1e3
    expected = scipy.spatial.distance.cdist(x, x)
    got = distance.cdist(gt.tensor(x), x)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-11)
    vector = distance.squareform(got)  # symmetric up to rounding is enough
    np.testing.assert_allclose(vector.numpy(), scipy.spatial.distance.pdist(x), rtol=1e-11)


def test_integers_and_single_precision() -> None:
    whole = RNG.integers(1, 50, (6, 3))
    for name in ("cdist", "pdist"):
        points = (whole, whole[:2]) if name == "cdist" else (whole,)
        got = getattr(distance, name)(*map(gt.tensor, points), "canberra")
        assert got.dtype == np.float64
        expected = getattr(scipy.spatial.distance, name)(*points, "canberra")
        np.testing.assert_allclose(got.numpy(), expected)
    for metric in ("euclidean", "mahalanobis", "seuclidean", "correlation"):
        got = distance.cdist(gt.tensor(X, dtype=np.float32), Y.astype(np.float32), metric)
        assert got.dtype == np.float32
        expected = scipy.spatial.distance.cdist(X, Y, metric)
        np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=1e-6)


def test_the_sets_that_are_farthest_apart() -> None:
    for u, v in ((X, Y), (Y, X)):
        got = distance.directed_hausdorff(gt.tensor(u), v)
        expected = scipy.spatial.distance.directed_hausdorff(u, v)
        np.testing.assert_allclose(got[0].item(), expected[0])
        assert got[1:] == expected[1:]
    far, i, j = gt.jit(distance.directed_hausdorff)(X, Y)
    np.testing.assert_allclose(far, np.linalg.norm(X[i] - Y[j]))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda t: distance.euclidean(t[0], Y[0], w=-Y[0]), ArgumentError, "expected none below"),
        (lambda t: distance.seuclidean(t[0], Y[0], -Y[0]), ArgumentError, "got V with -"),
        (lambda t: distance.cdist(t, Y, w=-Y[0]), ArgumentError, "got w with -"),
        (
            lambda t: distance.squareform(t[:2, :2] + t[:2, :2].T),
            ArgumentError,
            "diagonal is not 0",
        ),
        (
            lambda t: distance.squareform(np.triu(t[:3], 1)),
            ArgumentError,
            "not symmetric, expected a symmetric one; pass checks=False",
        ),
        (lambda t: distance.hamming(t[0], Y[0]), ConversionError, "distance.hamming asks for"),
        (
            lambda t: distance.cdist(X, Y, lambda u, v: np.sum(t)),
            ConversionError,
            "is recorded by grad",
        ),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        gt.grad(lambda t: np.sum(call(t)))(X)
