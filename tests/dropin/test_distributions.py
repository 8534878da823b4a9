"""Distributions of `gradtape.scipy.stats`: SciPy's own without tensors, ours with them."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import gradtape as gt
from gradtape.errors import UnsupportedError
from gradtape.ops.stats.base import Distribution

stats = gt.scipy.stats

# Shape parameters, and points inside of the support.
SAMPLES: dict[str, tuple[tuple[float, ...], Any]] = {
    **dict.fromkeys(("norm", "cauchy", "laplace", "logistic"), ((), [-0.7, 0.4, 1.9])),
    **dict.fromkeys(("gumbel_r", "gumbel_l", "t"), ((), [-0.7, 0.4, 1.9])),
    **dict.fromkeys(("expon", "halfnorm", "rayleigh", "halfcauchy"), ((), [0.2, 0.9, 2.5])),
    **dict.fromkeys(("fisk", "genpareto", "invgauss"), ((0.4,), [0.2, 0.9, 2.5])),
    **dict.fromkeys(("skewnorm", "genextreme"), ((0.4,), [-0.7, 0.4, 1.9])),
    **dict.fromkeys(("gamma", "chi2", "invgamma", "weibull_min"), ((2.5,), [0.2, 0.9, 2.5])),
    "t": ((3.5,), [-0.7, 0.4, 1.9]),
    "lognorm": ((0.8,), [0.2, 0.9, 2.5]),
    "pareto": ((4.5,), [1.2, 1.9, 3.5]),
    "f": ((3.0, 6.5), [0.2, 0.9, 2.5]),
    "uniform": ((), [0.2, 0.5, 0.9]),
    "beta": ((2.5, 0.7), [0.2, 0.5, 0.9]),
    "truncnorm": ((-1.0, 2.0), [-0.7, 0.4, 1.9]),
    "vonmises": ((2.0,), [-0.7, 0.4, 1.9]),
    "bernoulli": ((0.3,), [0, 1, 1]),
    "binom": ((5, 0.3), [0, 2, 4]),
    "poisson": ((2.5,), [0, 2, 4]),
    "geom": ((0.3,), [1, 2, 4]),
    "nbinom": ((2.5, 0.3), [0, 2, 4]),
}
_OF_NUMBERS = (scipy.stats.rv_continuous, scipy.stats.rv_discrete)
OURS = sorted(name for name, value in vars(stats).items() if isinstance(value, _OF_NUMBERS))
OF_POINTS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "logcdf", "logsf")
OF_SHARES = ("ppf", "isf")
OF_PARAMETERS = ("mean", "var", "std", "median", "entropy", "support")
SHARES = [0.1, 0.45, 0.8]


def identical(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)


def calls(name: str) -> dict[str, tuple[Any, ...]]:
    """Arguments of each method that takes numbers."""
    shapes, points = SAMPLES[name]
    place = (*shapes, 0.5, 1.3) if hasattr(stats, name) and is_continuous(name) else (*shapes, 1)
    x = np.array(points) * (1.3 if is_continuous(name) else 1) + (0.5 if is_continuous(name) else 1)
    args: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(OF_POINTS, (x, *place)),
        **{method: (np.array(SHARES), *place) for method in OF_SHARES},
        **dict.fromkeys((*OF_PARAMETERS, "stats"), place),
        "moment": (2, *place),
        "interval": (0.9, *place),
    }
    if is_continuous(name):
        args["nnlf"] = (place, x)
    return {method: args for method, args in args.items() if hasattr(getattr(stats, name), method)}


def is_continuous(name: str) -> bool:
    return isinstance(getattr(stats, name), scipy.stats.rv_continuous)


def tracked(args: Any) -> Any:
    """Arguments as tensors, without derivatives of whole numbers."""
    if isinstance(args, tuple):
        return tuple(map(tracked, args))
    return gt.tensor(args, requires_grad=np.asarray(args).dtype == float)


def test_all_are_sampled() -> None:
    assert set(OURS) == set(SAMPLES)


# ---- without tensors ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_arrays_give_what_scipy_gives(name: str) -> None:
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    assert isinstance(ours, type(theirs))
    assert dir(theirs) == [each for each in dir(ours) if each != "on_tensors"]
    for attribute in ("name", "shapes", "numargs", "a", "b", "badvalue"):
        assert str(getattr(ours, attribute)) == str(getattr(theirs, attribute))
    # SciPy integrates for each of these anew; they are among what `stats` gives.
    slow = ("var", "std", "moment") if name == "vonmises" else ()
    for method, args in calls(name).items():
        if method not in slow:
            identical(getattr(ours, method)(*args), getattr(theirs, method)(*args))
    place = calls(name)["mean"]
    frozen, expected = ours(*place), theirs(*place)
    assert type(frozen) is type(expected)
    assert frozen.args == expected.args
    identical(frozen.mean(), expected.mean())
    for one, other in ((ours, theirs), (frozen, expected)):
        given = place if one is ours else ()
        identical(
            one.rvs(*given, size=3, random_state=7), other.rvs(*given, size=3, random_state=7)
        )


def test_expectations_are_scipys() -> None:
    for name, place in (("norm", (1.0, 2.0)), ("beta", (2.0, 3.0)), ("poisson", (2.0,))):
        ours, theirs = getattr(stats, name)(*place), getattr(scipy.stats, name)(*place)
        assert ours.expect(lambda x: x**2) == theirs.expect(lambda x: x**2)
        assert ours.expect(np.cos, lb=0, ub=2) == theirs.expect(np.cos, lb=0, ub=2)
    with pytest.raises(gt.GradtapeError):
        gt.grad(lambda t: stats.norm.expect(lambda x: t * x))(2.0)
    with pytest.raises(UnsupportedError, match=r"scipy\.stats\.norm\.expect: got a tensor"):
        gt.grad(lambda t: stats.norm(t, 2.0).expect(np.cos))(2.0)


@pytest.mark.parametrize("name", OURS)
def test_signatures_are_scipys(name: str) -> None:
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for method in dir(theirs):
        if not method.startswith("_") and inspect.isroutine(getattr(theirs, method)):
            of_theirs = inspect.signature(getattr(theirs, method))
            assert inspect.signature(getattr(ours, method)) == of_theirs
    assert theirs.__doc__ in ours.__doc__


def test_fits_are_scipys() -> None:
    """SciPy's search by the type of the object must not find ours again and again."""
    x = np.array([0.3, 0.8, 1.7, 2.1, 0.5])
    for name in ("norm", "expon", "gamma", "pareto", "uniform", "laplace"):
        ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
        assert ours.fit(x) == theirs.fit(x)
    assert stats.norm.fit(x, method="MM") == scipy.stats.norm.fit(x, method="MM")
    assert stats.norm.fit(x, floc=0.0) == scipy.stats.norm.fit(x, floc=0.0)
    assert scipy.stats.goodness_of_fit(stats.norm, x, n_mc_samples=9, rng=1).statistic > 0


def test_random_states_are_their_own() -> None:
    ours, theirs = stats.norm(1.0, 2.0), scipy.stats.norm(1.0, 2.0)
    ours.random_state = theirs.random_state = 5
    identical(ours.rvs(3), theirs.rvs(3))
    np.random.seed(4)  # noqa: NPY002 - what SciPy draws from
    drawn = stats.norm.rvs(size=2)
    np.random.seed(4)  # noqa: NPY002
    identical(drawn, scipy.stats.norm.rvs(size=2))


def test_they_can_be_copied_and_pickled() -> None:
    vectors = stats.multivariate_normal(np.zeros(2), 2.0, seed=3)
    for one in (stats.norm, stats.poisson(2.0), stats.gamma(2.0, scale=3.0), vectors):
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert type(other) is type(one)
            first = other.rvs(size=2, random_state=1) if other is not stats.norm else None
            identical(first, one.rvs(size=2, random_state=1))
    again = pickle.loads(pickle.dumps(stats.norm(1.0, 2.0)))
    assert gt.grad(again.logpdf)(2.0) == -0.25
    slope = gt.grad(pickle.loads(pickle.dumps(vectors)).logpdf)(np.ones(2))
    np.testing.assert_allclose(slope, [-0.5, -0.5])
    assert pickle.loads(pickle.dumps(stats.skewnorm)).logpdf(1.0, 2.0) is not None


# ---- with tensors -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_tensors_give_what_scipy_gives_and_derivatives(name: str) -> None:
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for method, args in calls(name).items():
        tensors = tracked(args) if method != "moment" else (args[0], *tracked(args[1:]))
        if not has_formula(ours, method):
            with pytest.raises(UnsupportedError, match="without gradient"):
                getattr(ours, method)(*tensors)
            continue
        found = getattr(ours, method)(*tensors)
        expected = getattr(theirs, method)(*args)
        for one, value in zip(leaves(found), leaves(expected), strict=True):
            assert isinstance(one, gt.Tensor)
            np.testing.assert_allclose(one.detach().numpy(), value, rtol=1e-9)
            assert one.requires_grad or (method == "support" and not is_continuous(name))


def has_formula(ours: Any, method: str) -> bool:
    """Whether gradtape computes a method."""
    own: Distribution = ours.on_tensors
    needed = {"std": "var", "moment": "mean", "stats": "mean", "median": "ppf", "interval": "ppf"}
    always = ("support", "nnlf", "pdf", "pmf")
    return hasattr(own, method) and (
        method in always or needed.get(method, method) in own._formulas
    )


def leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", OURS)
def test_frozen_ones_take_tensors_in_any_place(name: str) -> None:
    density = "logpdf" if is_continuous(name) else "logpmf"
    distribution = getattr(stats, name)
    x, *place = calls(name)[density]
    expected = getattr(getattr(scipy.stats, name), density)(x, *place)
    plain, of_tensors = distribution(*place), distribution(*tracked(tuple(place)))
    for found in (
        getattr(plain, density)(gt.tensor(x)),
        getattr(of_tensors, density)(x),
        getattr(of_tensors, density)(gt.tensor(x)),
    ):
        assert isinstance(found, gt.Tensor)
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9)
    identical(getattr(plain, density)(x), expected)
    assert isinstance(of_tensors, type(plain))
    ends = distribution.on_tensors.bounds(*place[: len(distribution.on_tensors.shapes)])
    assert [float(gt.asarray(end).detach()) for end in (of_tensors.a, of_tensors.b)] == [*ends]


def both_ways(function: Callable[..., Any], *args: Any) -> None:
    """A derivative under all transforms, against differences."""
    step = 1e-6
    for i, x in enumerate(args):
        moved = [(*args[:i], x + s * step, *args[i + 1 :]) for s in (1, -1)]
        expected = (function(*moved[0]) - function(*moved[1])) / (2 * step)
        derivatives = (
            gt.grad(function, i),
            gt.jacfwd(function, i),
            gt.jit(gt.grad(function, i)),
            lambda *args, i=i: gt.vmap(gt.grad(function, i))(*(np.array([x]) for x in args))[0],
        )
        for derivative in derivatives:
            np.testing.assert_allclose(derivative(*args), expected, rtol=1e-7)


def test_derivatives_under_transforms() -> None:
    both_ways(lambda x, loc, scale: stats.norm(loc, scale=scale).logpdf(x), 0.3, 0.5, 1.5)
    both_ways(lambda x, a, loc, scale: stats.gamma.logsf(x, a, loc, scale), 2.3, 1.7, 0.5, 1.5)
    both_ways(lambda a, scale: stats.gamma(a, scale=scale).interval(0.9)[1], 1.7, 1.5)
    both_ways(lambda mu: stats.poisson(mu).logpmf(3), 2.5)
    both_ways(lambda a, b: stats.beta.stats(a, b)[1], 1.7, 1.5)
    assert gt.hessian(lambda s: stats.norm.logpdf(1.0, scale=s))(2.0) == 1 / 4 - 3 / 16


def test_arguments_by_name() -> None:
    t = gt.tensor(0.3)
    assert stats.norm.logpdf(x=t, scale=2.0) == scipy.stats.norm.logpdf(0.3, scale=2.0)
    assert stats.norm.ppf(q=t) == scipy.stats.norm.ppf(0.3)
    assert stats.poisson.logpmf(k=1, mu=t) == scipy.stats.poisson.logpmf(1, 0.3)
    found = stats.norm.interval(confidence=0.5, loc=t)
    np.testing.assert_allclose(found, scipy.stats.norm.interval(0.5, 0.3))
    assert stats.gamma.moment(order=1, a=t) == 0.3


@pytest.mark.parametrize("name", OURS)
def test_what_takes_only_arrays_refuses_tensors(name: str) -> None:
    t = gt.ones(2)
    distribution = getattr(stats, name)
    for method, function in inspect.getmembers(type(distribution), inspect.isfunction):
        if method.startswith("_") or method == "freeze" or hasattr(distribution.on_tensors, method):
            continue
        message = rf"^scipy\.stats\.{name}\.{method}: got a tensor"
        with pytest.raises(UnsupportedError, match=message):
            function(distribution, t)


# ---- those without derivatives ------------------------------------------------------------------


def test_distributions_without_derivatives_refuse_tensors() -> None:
    nct, wishart = stats.nct, stats.wishart
    assert stats.nct is nct
    identical(nct.logpdf(0.3, 2.0, 0.5), scipy.stats.nct.logpdf(0.3, 2.0, 0.5))
    identical(nct(2.0, 0.5).ppf(0.3), scipy.stats.nct(2.0, 0.5).ppf(0.3))
    identical(wishart(3, np.eye(2)).mean(), scipy.stats.wishart(3, np.eye(2)).mean())
    t = gt.ones(())
    for call in (
        lambda: nct.logpdf(t, 2.0, 0.5),
        lambda: nct(t, 0.5),
        lambda: nct(2.0, 0.5).logpdf(t),
        lambda: gt.grad(nct.logpdf)(0.3, 2.0, 0.5),
        lambda: gt.jit(nct.mean)(2.0, 0.5),
        lambda: wishart.logpdf(gt.eye(2), 3, np.eye(2)),
        lambda: wishart(3, gt.eye(2)),
        lambda: wishart(3, np.eye(2)).logpdf(gt.eye(2)),
    ):
        with pytest.raises(UnsupportedError, match=r"^scipy\.stats\.\S+: got a tensor, expected"):
            call()


def test_the_new_interface_is_scipys_and_right_or_an_error() -> None:
    assert stats.Normal is scipy.stats.Normal
    assert stats.make_distribution is scipy.stats.make_distribution
    for call in (
        lambda t: stats.Normal(mu=t, sigma=1.0).logpdf(0.3),
        lambda t: stats.Normal(mu=0.0, sigma=t).mean(),
        lambda t: stats.Normal(mu=0.0, sigma=1.0).logpdf(t),
        lambda t: stats.Normal(mu=0.0, sigma=1.0).cdf(np.zeros(2), t)[0],
    ):
        try:
            slope = gt.grad(call)(0.5)
        except (gt.GradtapeError, TypeError, ValueError):
            continue
        step = 1e-6
        expected = (call(0.5 + step) - call(0.5 - step)) / (2 * step)
        np.testing.assert_allclose(slope, expected, rtol=1e-7)


# ---- of vectors ---------------------------------------------------------------------------------

COV = np.array([[2.0, 0.3], [0.3, 1.0]])
VECTORS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "multivariate_normal": (np.array([[0.3, -0.2], [1.5, 2.0]]), (np.array([0.1, 0.2]), COV)),
    "dirichlet": (np.array([0.2, 0.3, 0.5]), (np.array([1.5, 2.0, 0.7]),)),
    "multinomial": (np.array([1, 2, 0]), (3, np.array([0.2, 0.3, 0.5]))),
}


def seeded(function: Callable[..., Any]) -> dict[str, Any]:
    """The option that makes a method give the same numbers each time."""
    known = inspect.signature(function).parameters
    return {name: np.random.default_rng(1) for name in ("rng", "random_state") if name in known}


@pytest.mark.parametrize("name", VECTORS)
def test_distributions_of_vectors(name: str) -> None:
    ours, theirs, (x, place) = getattr(stats, name), getattr(scipy.stats, name), VECTORS[name]
    tensors = tuple(p if isinstance(p, int) else gt.tensor(p, requires_grad=True) for p in place)
    assert inspect.signature(ours) == inspect.signature(theirs)
    frozen, expected_frozen = ours(*place), theirs(*place)
    assert isinstance(frozen, type(expected_frozen))
    of_tensors = ours(*tensors)
    for method in dir(type(theirs)):
        function = getattr(theirs, method)
        if (
            method.startswith("_")
            or not inspect.ismethod(function)
            or method in ("fit", "marginal")
        ):
            continue
        assert inspect.signature(getattr(ours, method)) == inspect.signature(function)
        given = (x,) if method in ("cdf", "logcdf", "pdf", "logpdf", "pmf", "logpmf") else ()
        expected = function(*given, *place, **seeded(function))
        identical(getattr(ours, method)(*given, *place, **seeded(function)), expected)
        if not hasattr(ours.on_tensors, method):
            with pytest.raises(UnsupportedError, match=rf"scipy\.stats\.{name}\.{method}: got"):
                getattr(ours, method)(*given, *tensors)
            continue
        found = getattr(ours, method)(*given, *tensors)
        assert found.requires_grad
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(getattr(of_tensors, method)(*given).detach().numpy(), expected)
        if given and name != "multinomial":
            identical(getattr(frozen, method)(x), getattr(expected_frozen, method)(x))
            found = getattr(frozen, method)(gt.tensor(x, requires_grad=True))
            assert found.requires_grad
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def test_frozen_normal_vectors() -> None:
    frozen = stats.multivariate_normal(np.array([0.1, 0.2]), COV)
    identical(frozen.mean, np.array([0.1, 0.2]))
    identical(frozen.cov, COV)
    with pytest.raises(UnsupportedError, match=r"multivariate_normal\.cdf: got a tensor"):
        frozen.cdf(gt.zeros(2))
    of_tensors = stats.multivariate_normal(gt.zeros(2), 2.0)
    np.testing.assert_array_equal(of_tensors.cov, 2 * np.eye(2))
    np.testing.assert_array_equal(of_tensors.mean, np.zeros(2))
    with pytest.raises(AttributeError, match="with tensors for parameters has no attribute 'rvs'"):
        of_tensors.rvs()
    covariance = scipy.stats.Covariance.from_diagonal([1.0, 2.0])
    found = stats.multivariate_normal.logpdf(gt.ones(2), np.zeros(2), covariance)
    expected = scipy.stats.multivariate_normal.logpdf(np.ones(2), np.zeros(2), covariance)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-14)


def test_singular_covariances(rng: np.random.Generator) -> None:
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    spread = np.diag([2.0, 0.5, 0.0])
    x, mean = basis[:, :2] @ rng.normal(size=2), basis[:, :2] @ rng.normal(size=2)

    def density(x: Any, mean: Any, inner: Any, of: Any = stats) -> Any:
        """With a covariance that stays of rank 2."""
        cov = basis[:, :2] @ inner @ basis[:, :2].T
        return of.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)

    inner = np.array([[2.0, 0.3], [0.3, 0.5]])
    place, frame = basis[:, :2].T @ x, basis[:, :2].T @ mean
    flat = scipy.stats.multivariate_normal.logpdf(place, frame, inner)
    tensor = density(gt.tensor(x), mean, inner)
    np.testing.assert_allclose(tensor.numpy(), flat, rtol=1e-12)
    np.testing.assert_allclose(density(x, mean, inner, scipy.stats), flat, rtol=1e-12)
    for by in (0, 1):
        slope = gt.grad(density, by)(x, mean, inner)
        expected = basis[:, :2] @ gt.grad(stats.multivariate_normal.logpdf, by)(place, frame, inner)
        np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12)
    slope = gt.grad(density, 2)(x, mean, inner)
    expected = gt.grad(stats.multivariate_normal.logpdf, 2)(place, frame, inner)
    np.testing.assert_allclose(slope, expected, rtol=1e-10)
    np.testing.assert_allclose(gt.jit(gt.grad(density, 2))(x, mean, inner), expected, rtol=1e-10)
    normal = stats.multivariate_normal
    off = x + basis[:, 2]
    cov = basis @ spread @ basis.T
    assert normal.logpdf(gt.tensor(off), mean, cov, allow_singular=True) == -np.inf
    assert normal(mean, cov, allow_singular=True).logpdf(gt.tensor(off)) == -np.inf
    with pytest.raises(gt.linalg.LinAlgError):
        normal.logpdf(gt.tensor(x), mean, -COV[0, 0] * np.eye(3), allow_singular=True)
    # Of full rank nothing changes, equal eigenvalues included.
    for cov in (COV, np.eye(2)):
        hessians = [
            gt.hessian(lambda c, s=s: normal.logpdf(np.ones(2), np.zeros(2), 0.5 * (c + c.T), s))(
                cov
            )
            for s in (False, True)
        ]
        np.testing.assert_allclose(*hessians, rtol=1e-9, atol=1e-12)
