"""scikit-learn as it is shipped, on tensors: value and derivatives, or an error that helps.

scikit-learn takes arrays of other libraries inside of `config_context(array_api_dispatch=True)`,
and only if SCIPY_ARRAY_API was set when SciPy was imported: one test runs the others in a process
where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy._lib._array_api import SCIPY_ARRAY_API

import gradtape as gt
from gradtape.errors import ConversionError

sklearn = pytest.importorskip(
    "sklearn", minversion="1.9", reason="scikit-learn is not installed: pip install '.[sklearn]'"
)
from sklearn import (  # noqa: E402
    decomposition,
    discriminant_analysis,
    linear_model,
    metrics,
    mixture,
    naive_bayes,
    preprocessing,
)
from sklearn.metrics import pairwise  # noqa: E402

from test_scipy_functions import PAGE, differences, refusal, run_examples, run_tests, table  # noqa: E402

with_setting = pytest.mark.skipif(not SCIPY_ARRAY_API, reason="SCIPY_ARRAY_API is not set")
without_setting = pytest.mark.skipif(bool(SCIPY_ARRAY_API), reason="SCIPY_ARRAY_API is set")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")

_RNG = np.random.default_rng(3)
X = _RNG.uniform(0.2, 0.9, (5, 3))
Y = _RNG.uniform(0.2, 0.9, (5, 3))
TARGET = _RNG.uniform(0.2, 0.9, 5)
CLASSES = np.array([0, 1, 0, 1, 1])


def like(x: Any, values: Any) -> Any:
    """Values as an array of the library of `x`; scikit-learn does not mix two libraries."""
    return x.__array_namespace__().asarray(values)


def error(name: str) -> Callable[[Any], Any]:
    """An error of regression, per column: as one number it would become a Python float."""
    return lambda x: getattr(metrics, name)(like(x, Y), x, multioutput="raw_values")


def between(name: str) -> Callable[[Any], Any]:
    return lambda x: getattr(pairwise, name)(x, like(x, Y))


def fitted(estimator: Any, attribute: str, target: Any = None) -> Callable[[Any], Any]:
    """What an estimator learns from the tensor."""

    def fit(x: Any) -> Any:
        arguments = () if target is None else (like(x, target),)
        return getattr(sklearn.clone(estimator).fit(x, *arguments), attribute)

    return fit


def transformed(estimator: Any) -> Callable[[Any], Any]:
    return lambda x: sklearn.clone(estimator).fit_transform(x)


# name below sklearn: what is called, differentiable in the tensor it is given
RUNS: dict[str, Callable[[Any], Any]] = {
    **{
        f"metrics.{name}": error(name)
        for name in [
            "mean_squared_error",
            "root_mean_squared_error",
            "mean_absolute_error",
            "r2_score",
            "explained_variance_score",
            "median_absolute_error",
            "mean_squared_log_error",
            "root_mean_squared_log_error",
            "mean_absolute_percentage_error",
            "mean_pinball_loss",
            "d2_absolute_error_score",
            "d2_pinball_score",
        ]
    },
    **{
        f"metrics.pairwise.{name}": between(name)
        for name in [
            "cosine_similarity",
            "cosine_distances",
            "euclidean_distances",
            "manhattan_distances",
            "linear_kernel",
            "polynomial_kernel",
            "rbf_kernel",
            "sigmoid_kernel",
            "laplacian_kernel",
            "chi2_kernel",
            "additive_chi2_kernel",
            "paired_cosine_distances",
            "paired_euclidean_distances",
            "paired_manhattan_distances",
            "pairwise_distances",
        ]
    },
    "preprocessing.StandardScaler": transformed(preprocessing.StandardScaler()),
    "preprocessing.MinMaxScaler": transformed(preprocessing.MinMaxScaler()),
    "preprocessing.MaxAbsScaler": transformed(preprocessing.MaxAbsScaler()),
    "preprocessing.Normalizer": transformed(preprocessing.Normalizer()),
    "preprocessing.PolynomialFeatures": transformed(preprocessing.PolynomialFeatures()),
    "preprocessing.minmax_scale": lambda x: preprocessing.minmax_scale(x),
    "preprocessing.maxabs_scale": lambda x: preprocessing.maxabs_scale(x),
    "preprocessing.normalize": lambda x: preprocessing.normalize(x),
    "linear_model.Ridge": fitted(linear_model.Ridge(solver="svd"), "coef_", TARGET),
    "linear_model.RidgeCV": fitted(linear_model.RidgeCV(), "coef_", TARGET),
    "decomposition.PCA": fitted(decomposition.PCA(2, svd_solver="full"), "explained_variance_"),
    "discriminant_analysis.LinearDiscriminantAnalysis": fitted(
        discriminant_analysis.LinearDiscriminantAnalysis(), "coef_", CLASSES
    ),
    "naive_bayes.GaussianNB": fitted(naive_bayes.GaussianNB(), "var_", CLASSES),
    "mixture.GaussianMixture": fitted(
        mixture.GaussianMixture(1, init_params="random", random_state=0), "covariances_"
    ),
}

# Vectors of singular values that are 0 have no tangents; what is made of them has a gradient.
REVERSE_ONLY = {"discriminant_analysis.LinearDiscriminantAnalysis"}

# What scikit-learn turns into arrays or Python's numbers, dispatching or not.
RAISES: dict[str, Callable[[Any], Any]] = {
    "metrics.max_error": lambda x: metrics.max_error(like(x, TARGET), x[:, 0]),
    "metrics.log_loss": lambda x: metrics.log_loss(like(x, CLASSES), x[:, 0]),
    "metrics.brier_score_loss": lambda x: metrics.brier_score_loss(like(x, CLASSES), x[:, 0]),
    "metrics.mean_poisson_deviance": lambda x: metrics.mean_poisson_deviance(
        like(x, TARGET), x[:, 0]
    ),
    "preprocessing.RobustScaler": transformed(preprocessing.RobustScaler()),
    "preprocessing.PowerTransformer": transformed(preprocessing.PowerTransformer()),
    "preprocessing.scale": lambda x: preprocessing.scale(x),
    "linear_model.LinearRegression": fitted(linear_model.LinearRegression(), "coef_", TARGET),
}


@with_setting
@pytest.mark.parametrize("name", RUNS)
def test_it_runs_and_differentiates(name: str) -> None:
    function = RUNS[name]
    value, numeric = function(X), differences(function, X)
    numeric = numeric.reshape(*value.shape, *X.shape)
    with sklearn.config_context(array_api_dispatch=True):
        np.testing.assert_allclose(function(gt.tensor(X)).numpy(), value, rtol=1e-10, atol=1e-12)
        reverse = gt.jacrev(function)(X)
        forward = reverse if name in REVERSE_ONLY else gt.jacfwd(function)(X)
    assert np.abs(numeric).max() > 1e-6
    scale = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(reverse, numeric, rtol=1e-5, atol=1e-6 * scale)
    np.testing.assert_allclose(forward, reverse, rtol=1e-8, atol=1e-10 * scale)


@with_setting
@pytest.mark.parametrize("name", RAISES)
def test_it_raises_and_says_so(name: str) -> None:
    with sklearn.config_context(array_api_dispatch=True):
        message = refusal(RAISES[name], X)
    assert f"sklearn.{name}" in message
    assert "array_api_dispatch" not in message
    assert "multioutput" not in message


@with_setting
def test_a_metric_that_gives_a_number_says_how_to_get_a_tensor() -> None:
    with sklearn.config_context(array_api_dispatch=True):
        message = refusal(lambda x: metrics.mean_squared_error(like(x, Y), x), X)
    assert "sklearn.metrics.mean_squared_error asks for" in message
    assert "pass multioutput='raw_values'" in message


@with_setting
def test_a_standard_scaler_that_was_fitted_before() -> None:
    with sklearn.config_context(array_api_dispatch=True):
        scaler = preprocessing.StandardScaler().fit(gt.tensor(Y))
        transform = gt.grad(lambda x: np.sum(scaler.transform(x)))(X)
    np.testing.assert_allclose(transform, np.broadcast_to(1 / Y.std(axis=0), X.shape))


@pytest.mark.parametrize("name", RUNS)
def test_without_dispatch_the_error_says_what_to_set(name: str) -> None:
    message = refusal(RUNS[name], X)
    assert f"sklearn.{name}" in message
    assert "set SCIPY_ARRAY_API=1 before SciPy is imported" in message
    assert "sklearn.config_context(array_api_dispatch=True)" in message


@without_setting
def test_without_the_setting_scikit_learn_says_so() -> None:
    with pytest.raises(RuntimeError, match="SCIPY_ARRAY_API"):
        sklearn.set_config(array_api_dispatch=True)


def test_values_without_history_are_computed_as_ever() -> None:
    np.testing.assert_allclose(
        metrics.mean_squared_error(Y, gt.tensor(X)), metrics.mean_squared_error(Y, X)
    )
    with pytest.raises(ConversionError):
        metrics.mean_squared_error(Y, gt.tensor(X, requires_grad=True))


def test_the_page_tells_what_the_tests_found() -> None:
    rows = table(PAGE.read_text(encoding="utf-8"), "sklearn")
    found = dict.fromkeys(RUNS, "runs") | dict.fromkeys(RAISES, "raises")
    assert {name: row[0] for name, row in rows.items()} == {
        f"sklearn.{name}": outcome for name, outcome in found.items()
    }


@with_setting
def test_examples_of_the_page() -> None:
    run_examples("sklearn")


@without_setting
def test_with_the_setting() -> None:
    run_tests(__file__, True)
