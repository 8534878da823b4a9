"""Means, variances and entropies of distributions: against SciPy, and against mpmath far out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats
from mpmath import mpf

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.testing import check_grads
from stats_references import log_beta

inf, nan = np.inf, np.nan
SHAPES = np.array([0.3, 0.9, 1.0, 1.7, 2.0, 3.5, 4.0, 29.0, 31.0, 200.0])
OTHERS = SHAPES[::-1] + 0.25
SHARES = np.array([0.01, 0.3, 0.5, 0.99])

# name: shape parameters
CONTINUOUS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("norm", "uniform", "expon", "cauchy", "laplace", "logistic"), ()),
    **dict.fromkeys(("gumbel_r", "gumbel_l", "halfnorm", "rayleigh", "halfcauchy"), ()),
    "fisk": (SHAPES,),
    "genpareto": (np.array([-3.0, -1.0, -0.2, 0.0, 1e-9, 0.3, 0.7, 2.0]),),
    **dict.fromkeys(("gamma", "chi2", "invgamma", "weibull_min", "t", "pareto"), (SHAPES,)),
    "lognorm": (np.array([0.1, 1.0, 2.5]),),
    **dict.fromkeys(("beta", "f"), (SHAPES, OTHERS)),
}
COUNTS: dict[str, tuple[Any, ...]] = {
    "bernoulli": (SHARES,),
    "binom": (np.array([0, 3, 10, 10]), SHARES),
    "poisson": (SHAPES,),
    "geom": (SHARES,),
    "nbinom": (SHAPES[:4], SHARES),
}
METHODS = ("mean", "var", "std", "entropy")
# SciPy sums these up.
NO_ENTROPY = ("binom", "poisson", "nbinom")

SHAPES_OF = CONTINUOUS | COUNTS
each = pytest.mark.parametrize(("name", "shapes"), SHAPES_OF.items(), ids=SHAPES_OF)


def methods_of(name: str) -> tuple[str, ...]:
    return METHODS[:-1] if name in NO_ENTROPY else METHODS


@each
def test_against_scipy(name: str, shapes: tuple[Any, ...]) -> None:
    methods = methods_of(name)
    ours = {method: getattr(getattr(our_scipy.stats, name), method) for method in methods}
    # One program has all of them: compiling takes longer than anything else here.
    compiled = gt.jit(lambda *args: {method: f(*args) for method, f in ours.items()})
    count = len(shapes[0]) if shapes else 3
    places = [np.linspace(-1.0, 2.0, count)]
    if name in CONTINUOUS:
        places.append(np.linspace(0.5, 3.0, count))
    args = (*shapes, *places)
    bar = 1e-11 if name == "weibull_min" else 2e-13  # SciPy's variance cancels
    in_native_code = compiled(*args)
    for method, function in ours.items():
        with np.errstate(all="ignore"):
            expected = getattr(getattr(scipy.stats, name), method)(*args)
        for way, got in (
            ("eager", function(*args)),
            ("compiled", in_native_code[method]),
            ("batched", gt.vmap(function)(*args)),
        ):
            note = f"{method}, {way}"
            np.testing.assert_allclose(got, expected, rtol=bar, atol=1e-14, err_msg=note)
        assert function(*(shape[0] for shape in shapes)).shape == (), method
        assert function(*(shape.astype(np.float32) for shape in args)).dtype == np.float32, method


@each
def test_slopes(name: str, shapes: tuple[Any, ...], thorough: bool) -> None:
    """By all parameters, in both modes; what is infinite or NaN all around has a slope of 0."""
    for method in methods_of(name):
        try:
            check_slopes(name, method, shapes, {} if thorough else {"entries": 0})
        except Exception as error:
            error.add_note(f"of {name}.{method}")
            raise


def check_slopes(name: str, method: str, shapes: tuple[Any, ...], options: dict[str, Any]) -> None:
    function = getattr(getattr(our_scipy.stats, name), method)
    fixed = 1 if name == "binom" else 0
    places = (0.5, 1.5) if name in CONTINUOUS else (0.5,)
    # Not next to a parameter from which on a moment exists.
    picked = [float(shape[-2] if len(shape) > 5 else shape[1]) for shape in shapes]
    args = (*picked, *places)

    def alone(*varied: Any) -> Any:
        return function(*args[:fixed], *varied)

    if np.isfinite(function(*args)):
        check_grads(alone, [*map(np.array, args[fixed:])], **options)
    low = tuple(float(shape[0]) for shape in shapes)
    if name in CONTINUOUS and not np.isfinite(function(*low, *places)):
        slopes = gt.grad(function, tuple(range(len(low))))(*low, *places) if low else ()
        assert all(slope == 0 for slope in slopes)


def gamma_entropy(a: Any) -> Any:
    return a + mpmath.loggamma(a) + (1 - a) * mpmath.digamma(a)


def beta_entropy(a: Any, b: Any) -> Any:
    rest = (a + b - 2) * mpmath.digamma(a + b)
    return log_beta(a, b) - (a - 1) * mpmath.digamma(a) - (b - 1) * mpmath.digamma(b) + rest


def t_entropy(df: Any) -> Any:
    n, m = (df + 1) / 2, df / 2
    slope = mpmath.digamma(n) - mpmath.digamma(m)
    return n * slope + mpmath.log(df) / 2 + log_beta(m, mpf(1) / 2)


def weibull_var(c: Any) -> Any:
    return mpmath.gamma(1 + 2 / c) - mpmath.gamma(1 + 1 / c) ** 2


# The formulas of textbooks, whose terms cancel.
EXACT: list[tuple[str, str, Callable[..., Any], tuple[float, ...]]] = [
    *(("gamma", "entropy", gamma_entropy, (a,)) for a in (1e-8, 29.5, 30.5, 1e4, 1e10)),
    ("invgamma", "entropy", lambda a: gamma_entropy(a) - 2 * mpmath.digamma(a), (1e9,)),
    *(
        ("beta", "entropy", beta_entropy, places)
        for places in ((1e-5, 2.0), (1e8, 1e6), (0.5, 1e9), (25.0, 25.0))
    ),
    *(("t", "entropy", t_entropy, (df,)) for df in (0.1, 58.0, 62.0, 1e5)),
    *(("weibull_min", "var", weibull_var, (c,)) for c in (0.05, 99.0, 101.0, 1e6, 1e12)),
]


@pytest.mark.parametrize(("name", "method", "exact", "place"), EXACT)
def test_terms_that_cancel(
    name: str, method: str, exact: Callable[..., Any], place: tuple[float, ...]
) -> None:
    function = getattr(getattr(our_scipy.stats, name), method)
    every = tuple(range(len(place)))
    with mpmath.workdps(60):
        value = exact(*map(mpf, place))
        slopes = [mpmath.diff(exact, place, tuple(int(i == j) for j in every)) for i in every]
    # The worst is c = 99: a quotient of gamma functions is 1 + 1.6e-4 there.
    np.testing.assert_allclose(function(*place), float(value), rtol=2e-11, atol=1e-13)
    found = gt.grad(function, every)(*place)
    size = max(abs(float(slope)) for slope in slopes)
    np.testing.assert_allclose(found, [*map(float, slopes)], rtol=2e-10, atol=1e-13 * size)


def test_parameters_that_make_no_distribution() -> None:
    for name in ("gamma", "beta", "t", "pareto"):
        distribution = getattr(our_scipy.stats, name)
        count = len(distribution.shapes)
        for method in METHODS:
            for args in ((-1.0,) * count, (2.0,) * count + (0.0, 0.0), (2.0,) * count + (nan, 1.0)):
                with np.errstate(all="ignore"):
                    assert np.isnan(getattr(distribution, method)(*args))
    assert our_scipy.stats.t.var(inf) == 1
    assert our_scipy.stats.t.entropy(inf) == our_scipy.stats.norm.entropy()


def test_what_has_no_formula_says_so() -> None:
    with pytest.raises(UnsupportedError, match="poisson: has no entropy in gradtape; it has cdf"):
        our_scipy.stats.poisson.entropy(2.0)
    with pytest.raises(UnsupportedError, match="truncnorm: has no var in gradtape"):
        our_scipy.stats.truncnorm.std(-1.0, 2.0)
    with pytest.raises(ArgumentError, match="gamma: mean got 0 parameters"):
        our_scipy.stats.gamma.mean()


def test_medians_and_intervals() -> None:
    shapes, places = np.array([0.7, 3.0]), {"loc": 1.0, "scale": np.array([2.0, 0.5])}
    ours, theirs = our_scipy.stats.gamma, scipy.stats.gamma
    np.testing.assert_allclose(ours.median(shapes, **places), theirs.median(shapes, **places))
    np.testing.assert_allclose(
        ours.interval(0.9, shapes, **places), theirs.interval(0.9, shapes, **places)
    )
    slope = gt.grad(lambda a: our_scipy.stats.gamma.interval(0.9, a)[1])(2.0)
    np.testing.assert_allclose(slope, gt.grad(our_scipy.stats.gamma.isf, 1)(0.05, 2.0), rtol=1e-13)


def test_moments_by_their_order() -> None:
    ours, theirs = our_scipy.stats.gamma, scipy.stats.gamma
    for order in (1, 2):
        expected = theirs.moment(order, 3.0, 1.0, 2.0)
        np.testing.assert_allclose(ours.moment(order, 3.0, 1.0, 2.0), expected, rtol=1e-14)
    for moments in ("m", "v", "mv", "vm"):
        expected = theirs.stats(3.0, 1.0, 2.0, moments=moments)
        np.testing.assert_allclose(ours.stats(3.0, 1.0, 2.0, moments=moments), expected)
    with pytest.raises(UnsupportedError, match="gamma: moment got order 3, expected 1 or 2"):
        ours.moment(3, 2.0)
    with pytest.raises(UnsupportedError, match="gamma: stats got moments='mvs'"):
        ours.stats(2.0, moments="mvs")


def test_supports() -> None:
    for name, shapes in (("norm", ()), ("pareto", (2.0,)), ("truncnorm", (-1.0, 2.0))):
        ours, theirs = getattr(our_scipy.stats, name), getattr(scipy.stats, name)
        assert ours.support(*shapes, 1.0, 2.0) == theirs.support(*shapes, 1.0, 2.0)
        assert np.all(np.isnan(ours.support(*shapes, 1.0, -2.0)))
    slopes = gt.grad(lambda *args: our_scipy.stats.truncnorm.support(*args)[0], (0, 1, 2, 3))
    assert slopes(-1.0, 2.0, 0.5, 3.0) == (3.0, 0.0, 1.0, -1.0)
    assert gt.grad(lambda loc: our_scipy.stats.expon.support(loc)[1])(1.0) == 0
    assert our_scipy.stats.binom.support(5, 0.5, 1) == (1, 6)


def test_minus_the_logarithm_of_the_likelihood() -> None:
    x = np.array([0.5, 1.0, 4.0])
    for theta in ((2.0, 0.1, 0.7), (2.0, 0.6, 0.7), (-1.0, 0.1, 0.7), (2.0, 0.1, -0.7)):
        expected = scipy.stats.gamma.nnlf(theta, x)
        with np.errstate(invalid="ignore"):
            found = our_scipy.stats.gamma.nnlf(theta, x)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    check_grads(lambda theta: our_scipy.stats.gamma.nnlf(theta, x), [np.array([2.0, 0.1, 0.7])])


def test_moments_of_vectors() -> None:
    alpha, cov = np.array([0.7, 2.0, 40.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    for method in ("mean", "var", "entropy"):
        ours = getattr(our_scipy.stats.dirichlet, method)
        expected = getattr(scipy.stats.dirichlet, method)(alpha)
        np.testing.assert_allclose(ours(alpha), expected, rtol=1e-12)
        check_grads(ours, [alpha])
        assert np.all(np.isnan(ours(-alpha)))
    normal = our_scipy.stats.multivariate_normal
    for given in ({"cov": cov}, {"mean": np.zeros(3)}, {"mean": np.zeros(3), "cov": 2.0}, {}):
        expected = scipy.stats.multivariate_normal(**given).entropy()
        np.testing.assert_allclose(normal.entropy(**given), expected, rtol=1e-14)
        np.testing.assert_allclose(normal(**given).entropy(), expected, rtol=1e-14)
    slope = gt.grad(lambda c: normal.entropy(cov=c))(cov)
    np.testing.assert_allclose(slope, 0.5 * np.linalg.inv(cov), rtol=1e-13)
