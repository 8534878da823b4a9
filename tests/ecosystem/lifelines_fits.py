"""Models of lifelines, fitted to its data: both runs have to find the same numbers."""

import warnings

import autograd.numpy as np
import autograd.scipy.stats as stats
import lifelines
import numpy
import pytest
from autograd.scipy.special import expit
from lifelines import datasets
from lifelines.fitters import (
    ParametricRegressionFitter,
    ParametricUnivariateFitter,
)
from lifelines.fitters.mixture_cure_fitter import MixtureCureFitter

UNIVARIATE = [
    "WeibullFitter",
    "ExponentialFitter",
    "LogNormalFitter",
    "LogLogisticFitter",
    "GeneralizedGammaFitter",
]
AFT = ["WeibullAFTFitter", "LogNormalAFTFitter", "LogLogisticAFTFitter"]


@pytest.fixture(scope="module")
def rossi():
    return datasets.load_rossi()


@pytest.fixture(autouse=True)
def _as_it_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def note(model, found):
    """Note what a fitted model says: parameters, their covariance, the likelihood."""
    parameters = getattr(model, "params_", None)
    if parameters is None:
        parameters = model._fitted_parameters_
    found("parameters", parameters)
    found("likelihood", model.log_likelihood_)
    found("covariance", model.variance_matrix_)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_univariate(name, found):
    df = datasets.load_waltons()
    model = getattr(lifelines, name)().fit(df["T"], df["E"])
    note(model, found)
    found("hazard", model.hazard_at_times(numpy.linspace(5.0, 60.0, 8)))
    found("bounds", model.confidence_interval_survival_function_)


@pytest.mark.parametrize("name", UNIVARIATE)
def test_univariate_with_entry_times_and_left_censoring(name, found):
    df = datasets.load_multicenter_aids_cohort_study()
    late = getattr(lifelines, name)().fit(df["T"], df["D"], entry=df["W"])
    note(late, lambda key, values: found(f"entry {key}", values))
    left = getattr(lifelines, name)().fit_left_censoring(df["T"], df["D"])
    note(left, lambda key, values: found(f"left {key}", values))


@pytest.mark.parametrize("name", ["WeibullFitter", "LogNormalFitter", "LogLogisticFitter"])
def test_univariate_with_intervals(name, found):
    df = datasets.load_diabetes()
    model = getattr(lifelines, name)().fit_interval_censoring(df["left"] + 0.1, df["right"] + 0.2)
    note(model, found)


def test_piecewise_and_spline(found):
    df = datasets.load_waltons()
    pieces = lifelines.PiecewiseExponentialFitter([20, 40]).fit(df["T"], df["E"])
    note(pieces, lambda key, values: found(f"pieces {key}", values))
    spline = lifelines.SplineFitter([10, 40, 70]).fit(df["T"], df["E"])
    note(spline, lambda key, values: found(f"spline {key}", values))


@pytest.mark.parametrize("name", AFT)
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_aft(name, penalty, rossi, found):
    model = getattr(lifelines, name)(penalizer=penalty).fit(rossi, "week", "arrest")
    note(model, found)
    found("medians", model.predict_median(rossi.head()))


@pytest.mark.parametrize("name", AFT)
def test_aft_with_ancillary_formula(name, rossi, found):
    model = getattr(lifelines, name)()
    model.fit(rossi, "week", "arrest", formula="age * fin + prio", ancillary="race")
    note(model, found)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("breslow", {}),
        ("spline", {"n_baseline_knots": 3}),
        ("piecewise", {"breakpoints": [20, 35]}),
    ],
)
def test_cox(method, options, rossi, found):
    model = lifelines.CoxPHFitter(baseline_estimation_method=method, **options)
    model.fit(rossi, "week", "arrest")
    note(model, found)
    found("survival", model.predict_survival_function(rossi.head()))


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_cox_with_a_smoothed_lasso(ratio, rossi, found):
    model = lifelines.CoxPHFitter(penalizer=0.05, l1_ratio=ratio).fit(rossi, "week", "arrest")
    found("parameters", model.params_)
    found("likelihood", model.log_likelihood_)


def test_crc_spline_and_piecewise_regression(rossi, found):
    spline = lifelines.CRCSplineFitter(3).fit(
        rossi,
        "week",
        "arrest",
        regressors={"beta_": "age + fin", "gamma0_": "1", "gamma1_": "1", "gamma2_": "1"},
    )
    found("spline", spline.log_likelihood_)
    pieces = lifelines.PiecewiseExponentialRegressionFitter([25, 40]).fit(rossi, "week", "arrest")
    note(pieces, found)


class Gompertz(ParametricUnivariateFitter):
    """A model that a user writes: its cumulative hazard."""

    _fitted_parameter_names = ("nu_", "b_")

    def _cumulative_hazard(self, params, times):
        nu, b = params
        return nu * (np.expm1(times / b))


class InverseGaussian(ParametricUnivariateFitter):
    """Another, in terms of normal distributions."""

    _fitted_parameter_names = ("lambda_", "mu_")
    _compare_to_values = numpy.array([1.0, 1.0])

    def _cumulative_density_function(self, params, times):
        lambda_, mu_ = params
        root = np.sqrt(lambda_ / times)
        return stats.norm.cdf(root * (times / mu_ - 1.0)) + np.exp(
            2.0 * lambda_ / mu_
        ) * stats.norm.cdf(-root * (times / mu_ + 1.0))

    def _cumulative_hazard(self, params, times):
        safe = np.clip(1.0 - self._cumulative_density_function(params, times), 1e-10, 1.0)
        return -np.log(safe)


class ThreeParameterWeibull(ParametricUnivariateFitter):
    """One with a location, which has bounds."""

    _fitted_parameter_names = ("lambda_", "rho_", "theta_")
    _bounds = ((0, None), (0, None), (0, 5.9))

    def _cumulative_hazard(self, params, times):
        lambda_, rho_, theta_ = params
        return ((times - theta_) / lambda_) ** rho_


@pytest.mark.parametrize("model", [Gompertz, InverseGaussian, ThreeParameterWeibull])
def test_custom_univariate(model, found):
    df = datasets.load_waltons()
    note(model().fit(df["T"], df["E"]), found)


class ExponentialAFT(ParametricRegressionFitter):
    """A regression that a user writes."""

    _fitted_parameter_names = ("lambda_",)

    def _cumulative_hazard(self, params, T, Xs):
        return T / np.exp(np.dot(Xs["lambda_"], params["lambda_"]))


class Cure(ParametricRegressionFitter):
    """Some are never arrested: a share that depends on covariates."""

    _fitted_parameter_names = ("lambda_", "beta_", "rho_")

    def _cumulative_hazard(self, params, T, Xs):
        c = expit(np.dot(Xs["beta_"], params["beta_"]))
        lambda_ = np.exp(np.dot(Xs["lambda_"], params["lambda_"]))
        rho_ = np.exp(np.dot(Xs["rho_"], params["rho_"]))
        survival = np.exp(-((T / lambda_) ** rho_))
        return -np.log((1 - c) + c * survival)


def test_custom_regression(rossi, found):
    columns = {"lambda_": "age + fin + prio"}
    note(ExponentialAFT().fit(rossi, "week", "arrest", regressors=columns), found)


def test_cure_regression(rossi, found):
    model = Cure(penalizer=0.01)
    columns = {"lambda_": "age + fin", "beta_": "fin + prio", "rho_": "1"}
    model.fit(rossi, "week", "arrest", regressors=columns, timeline=numpy.arange(250.0))
    found("likelihood", model.log_likelihood_)
    found("survival", model.predict_survival_function(rossi.head(3)))


def test_mixture_cure(found):
    df = datasets.load_waltons()
    note(MixtureCureFitter(base_fitter=lifelines.WeibullFitter()).fit(df["T"], df["E"]), found)
