"""Arguments of distributions: dtypes, infinities, NaN, and what makes no distribution."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import gradtape as gt
import our_scipy
from gradtape.errors import DTypeError, ShapeError
from test_stats_tails import PLACES

inf, nan = np.inf, np.nan
DENSITIES = ("logpdf", "pdf")
TAILS = ("cdf", "sf", "logcdf", "logsf")
QUANTILES = ("ppf", "isf")
WITHOUT_TAILS = ("vonmises", "skewnorm", "invgauss")
# Any number is a shape parameter of these.
OF_ANY_SHAPE = ("truncnorm", "vonmises", "genpareto", "genextreme", "skewnorm")
NARROW = (np.float32, np.float16, ml_dtypes.bfloat16)


def methods_of(name: str) -> tuple[str, ...]:
    return DENSITIES if name in WITHOUT_TAILS else (*DENSITIES, *TAILS, *QUANTILES)


def shapes_of(name: str) -> tuple[float, ...]:
    return (-1.0, 2.0) if name == "truncnorm" else tuple(2.5 for _ in PLACES[name][1][0])


# ---- dtypes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=() if (i + k) % len(NARROW) == 0 else pytest.mark.slow)
        for i, name in enumerate(PLACES)
        for k, dtype in enumerate(NARROW)
    ],
)
def test_the_dtype_is_that_of_arrays(name: str, dtype: Any, thorough: bool) -> None:
    """Python's numbers do not widen it, also as arguments of a compiled function."""
    shapes = shapes_of(name)
    x = np.array([0.25, 0.5, 0.75])
    inside = 1 + x if name == "pareto" else x
    # Each method of each distribution is compiled for one dtype, and another one for its neighbour.
    turn = [*PLACES].index(name) + NARROW.index(dtype)
    for i, method in enumerate(methods_of(name)):
        with_compiled = thorough or (
            (turn + i) % len(NARROW) == 0 and (name != "truncnorm" or method in ("logpdf", "isf"))
        )
        function = getattr(getattr(our_scipy.stats, name), method)
        exact = x if method in QUANTILES else inside
        narrow, expected = exact.astype(dtype), function(exact, *shapes)
        arrays = [np.asarray(shape, dtype) for shape in shapes]
        coarse = 16 * float(ml_dtypes.finfo(dtype).eps)
        for found in (
            function(narrow, *shapes),
            function(narrow, *arrays, dtype(0.0), dtype(1.0)),
            function(gt.tensor(narrow), *shapes).numpy(),
            *([gt.jit(function)(narrow, *shapes)] if with_compiled else []),
        ):
            assert found.dtype == dtype, method
            np.testing.assert_allclose(found.astype(float), expected, rtol=coarse, atol=coarse)
        assert function(0.5, *shapes).dtype == np.float64
        assert function(narrow, *shapes, np.zeros(3)).dtype == np.float64


@pytest.mark.parametrize("name", ["bernoulli", "binom", "poisson", "geom", "nbinom"])
def test_the_dtype_of_probabilities_of_counts(name: str) -> None:
    shapes = (3.0, 0.5)[-len(getattr(our_scipy.stats, name).shapes) :]
    narrow = [np.float32(shape) for shape in shapes]
    for method in ("logpmf", "pmf", *TAILS):
        function = getattr(getattr(our_scipy.stats, name), method)
        assert function(1, *narrow).dtype == np.float32
        assert function(np.ones(2, np.float32), *shapes).dtype == np.float32
        np.testing.assert_allclose(function(1, *narrow), function(1, *shapes), rtol=1e-6)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(DTypeError, match="norm: got complex128, expected real numbers"):
        our_scipy.stats.norm.logpdf(np.array([1j]))
    with pytest.raises(DTypeError, match="gamma: got complex128"):
        our_scipy.stats.gamma.ppf(0.5, 2.0, scale=1j)
    with pytest.raises(DTypeError, match="poisson: got complex64"):
        our_scipy.stats.poisson.pmf(1, np.complex64(2.0))
    with pytest.raises(DTypeError, match="multivariate_normal: got complex128"):
        our_scipy.stats.multivariate_normal.logpdf(np.zeros(2) * 1j)


# ---- infinities and NaN -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLACES)
def test_nan_comes_through(name: str) -> None:
    """Whichever argument is NaN, also beside an infinite one; as SciPy has it."""
    shapes = shapes_of(name)
    places = [(nan, 0.0, 1.0), (0.5, nan, 1.0), (0.5, 0.0, nan)]
    at_infinity = [(inf, nan, 1.0), (-inf, 0.0, nan), (inf, inf, 1.0), (inf, 0.0, inf)]
    for method in methods_of(name):
        function = getattr(getattr(our_scipy.stats, name), method)
        for x, loc, scale in places if method in QUANTILES else (*places, *at_infinity):
            with np.errstate(invalid="ignore"):
                assert np.isnan(function(x, *shapes, loc, scale)), (method, x, loc, scale)
                assert np.isnan(function(np.float64(x), *shapes, loc, scale))
        for i in range(len(shapes)):
            varied = [nan if i == j else shape for j, shape in enumerate(shapes)]
            with np.errstate(invalid="ignore"):
                assert np.isnan(function(0.5, *varied)), (method, varied)


@pytest.mark.parametrize("name", PLACES)
def test_numbers_that_make_no_distribution(name: str) -> None:
    """Python's own ones, too, by which cannot be divided: NaN, as SciPy has it."""
    shapes = shapes_of(name)
    for method in (*methods_of(name), "mean", "var", "std", "entropy"):
        function = getattr(getattr(our_scipy.stats, name), method)
        first = () if method in ("mean", "var", "std", "entropy") else (0.5,)
        own = getattr(our_scipy.stats, name)._formulas
        if not first and (method if method != "std" else "var") not in own:
            continue
        with np.errstate(all="ignore"):
            for scale in (0.0, 0, -1.0):
                assert np.isnan(function(*first, *shapes, 0.0, scale)), (method, scale)
            if shapes and name not in OF_ANY_SHAPE:
                for shape in (0.0, 0, -1.0):
                    assert np.isnan(function(*first, *(shape for _ in shapes))), (method, shape)


def test_a_place_that_underflows_is_outside() -> None:
    """Below the support by so little that z is −0.0."""
    for name in ("expon", "uniform", "rayleigh", "halfnorm", "gamma", "beta", "f"):
        shapes = shapes_of(name)
        for method, expected in (("logpdf", -inf), ("pdf", 0.0), ("cdf", 0.0), ("logcdf", -inf)):
            function = getattr(getattr(our_scipy.stats, name), method)
            assert function(-1e-300, *shapes, 0.0, 1e300) == expected, (name, method)
            assert gt.grad(function)(-1e-300, *shapes, 0.0, 1e300) == 0


def test_student_far_out() -> None:
    """Of one degree of freedom it is Cauchy's, also where squares overflow."""
    for z in (-1e300, 1e160, 1e99, 1e101):
        for by in (0, 3):
            ours, exact = our_scipy.stats.t.logpdf, our_scipy.stats.cauchy.logpdf
            np.testing.assert_allclose(ours(z, 1.0), exact(z), rtol=1e-14)
            slope = gt.grad(ours, by)(z, 1.0, 0.0, 1.0)
            expected = gt.grad(exact, max(by - 1, 0))(z, 0.0, 1.0)
            np.testing.assert_allclose(slope, expected, rtol=1e-13)
    np.testing.assert_allclose(
        gt.grad(our_scipy.stats.t.logpdf, 1)(1e200, 3.0), -np.log(1e200), rtol=0.01
    )


def test_weibull_far_out() -> None:
    """Where zᶜ overflows, tails and the density are flat, in forward mode, too."""
    args, moved = tuple(map(np.array, (30.0, 8000.5, 0.0, 2.0))), (np.ones(()),) * 4
    for method in ("pdf", "cdf", "sf", "logcdf"):
        function = getattr(our_scipy.stats.weibull_min, method)
        with np.errstate(over="ignore", invalid="ignore"):
            assert gt.jvp(function, args, moved)[1] == 0
            assert gt.grad(function, (0, 1, 2, 3))(*args) == (0, 0, 0, 0)


# ---- counts -------------------------------------------------------------------------------------


def test_a_share_of_zero_of_many_trials() -> None:
    """The number of ways overflows, and the probability is 0 all the same."""
    assert our_scipy.stats.binom.pmf(1000, 1e6, 0.0) == 0
    assert our_scipy.stats.nbinom.pmf(1000, 1e4, 1.0) == 0
    assert gt.grad(our_scipy.stats.binom.pmf, 2)(1000, 1e6, 0.0) == 0
    many = (np.array([5000, 5000]), 10000, np.array([0.0, 1.0]))
    assert our_scipy.stats.multinomial.pmf(*many) == 0
    np.testing.assert_array_equal(gt.grad(our_scipy.stats.multinomial.pmf, 2)(*many), [0.0, 0.0])


def test_numbers_of_trials_are_whole() -> None:
    for n in (2.5, -1.0, inf, nan):
        for method in ("pmf", "logpmf", "cdf", "logsf"):
            with np.errstate(invalid="ignore"):
                assert np.isnan(getattr(our_scipy.stats.binom, method)(1, n, 0.5))


def test_shares_and_means_that_make_no_distribution() -> None:
    for name, shapes in (("geom", (0.0,)), ("nbinom", (0.0, 0.0)), ("poisson", (-1.0,))):
        for method in ("pmf", "logpmf", *TAILS, "mean", "var", "std"):
            first = () if method in ("mean", "var", "std") else (1,)
            with np.errstate(all="ignore"):
                assert np.isnan(getattr(getattr(our_scipy.stats, name), method)(*first, *shapes))


# ---- quantiles of what has not always had them --------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"), [(-1.0, 2.0), (0.5, inf), (-inf, -3.0), (30.0, 32.0), (-inf, inf), (1.0, 1.0001)]
)
def test_quantiles_of_truncnorm(a: float, b: float) -> None:
    q = np.array([0.0, 1e-12, 0.2, 0.5, 0.9, 1.0])
    ours = our_scipy.stats.truncnorm
    for quantile, share in (("ppf", "cdf"), ("isf", "sf")):
        z = getattr(ours, quantile)(q, a, b)
        # As far as z can be told from its neighbours
        finite = z[np.isfinite(z)]
        grain = 1e-15 * np.max(abs(finite) * ours.pdf(finite, a, b))
        np.testing.assert_allclose(getattr(ours, share)(z, a, b), q, rtol=1e-9, atol=grain)
        np.testing.assert_allclose(
            getattr(ours, quantile)(np.array([0.0, 1.0]), a, b),
            [a, b] if quantile == "ppf" else [b, a],
            rtol=1e-15,
        )
        # z(q) is the inverse: ∂z/∂q = ±1/pdf(z), and ∂z/∂a = ∓(∂ share/∂a)/pdf(z)
        inner = q[2:5]
        sign = 1 if quantile == "ppf" else -1
        by_q, by_a, by_b = gt.grad(
            lambda *args, f=quantile: gt.sum(getattr(ours, f)(*args)), (0, 1, 2)
        )(inner, np.full(3, a), np.full(3, b))
        density = ours.pdf(z[2:5], a, b)
        np.testing.assert_allclose(by_q, sign / density, rtol=1e-10)
        tails = gt.grad(lambda *args: gt.sum(ours.cdf(*args)), (1, 2))(
            z[2:5], np.full(3, a), np.full(3, b)
        )
        for found, tail in zip((by_a, by_b), tails, strict=True):
            np.testing.assert_allclose(found, -tail / density, rtol=1e-9, atol=1e-12)


def test_upper_quantiles_of_f() -> None:
    q, shapes = np.array([1e-30, 1e-12, 0.3, 0.9]), (4.0, 7.0)
    z = our_scipy.stats.f.isf(q, *shapes)
    np.testing.assert_allclose(our_scipy.stats.f.sf(z, *shapes), q, rtol=1e-12)
    np.testing.assert_allclose(z[2:], scipy.stats.f.isf(q[2:], *shapes), rtol=1e-12)
    slope = gt.grad(lambda q: gt.sum(our_scipy.stats.f.isf(q, *shapes)))(q)
    np.testing.assert_allclose(slope, -1 / our_scipy.stats.f.pdf(z, *shapes), rtol=1e-10)


# ---- of vectors ---------------------------------------------------------------------------------


def test_vectors_that_are_infinite_or_nan() -> None:
    x = np.array([[inf, 1.0], [nan, 1.0], [0.5, 1.0]])
    normal = our_scipy.stats.multivariate_normal
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    expected = scipy.stats.multivariate_normal.logpdf(x, np.zeros(2), cov)
    np.testing.assert_allclose(normal.logpdf(x, np.zeros(2), cov), expected)
    assert math.isnan(our_scipy.stats.dirichlet.logpdf(np.array([nan, 0.5]), np.ones(2)))
    assert math.isnan(our_scipy.stats.multinomial.pmf(np.array([nan, 1]), 1, np.array([0.5, 0.5])))


def test_parameters_of_vectors() -> None:
    shares, counts = np.array([0.5, 0.5]), np.array([1, 1])
    for p in ([0.9, -0.1], [1.1, 0.0], [nan, 0.5]):
        assert np.isnan(our_scipy.stats.multinomial.pmf(counts, 2, np.array(p)))
    for n in (-1, 1.5):
        with np.errstate(invalid="ignore"):
            assert np.isnan(our_scipy.stats.multinomial.logpmf(counts, n, shares))
    by_name = our_scipy.stats.multinomial.logpmf(counts, n=2, p=shares)
    assert by_name == our_scipy.stats.multinomial(2, shares).logpmf(counts) == np.log(0.5)
    frozen = our_scipy.stats.dirichlet(alpha=np.array([1.0, 2.0]))
    assert frozen.logpdf(shares) == our_scipy.stats.dirichlet.logpdf(shares, np.array([1.0, 2.0]))
    for function in (
        lambda: our_scipy.stats.dirichlet.logpdf(0.5, np.ones(2)),
        lambda: our_scipy.stats.dirichlet.logpdf(shares, np.ones((2, 2))),
        lambda: our_scipy.stats.dirichlet.mean(1.0),
        lambda: our_scipy.stats.multinomial.pmf(counts, 2, np.ones(3) / 3),
        lambda: our_scipy.stats.multivariate_normal.logpdf(
            np.zeros((3, 2)), cov=np.ones((3, 2, 2))
        ),
        lambda: our_scipy.stats.multivariate_normal.logpdf(
            np.zeros(2), np.zeros((1, 2)), np.eye(2)
        ),
    ):
        with pytest.raises(ShapeError, match=r"got (x|alpha) of shape"):
            function()


def test_the_dtype_of_vectors() -> None:
    single = np.array([[0.25, 0.75]], np.float32)
    assert our_scipy.stats.multivariate_normal.logpdf(single).dtype == np.float32
    assert our_scipy.stats.multivariate_normal.logpdf(single, np.zeros(2)).dtype == np.float64
    assert (
        our_scipy.stats.multivariate_normal.entropy(cov=np.eye(2, dtype=np.float32)).dtype
        == np.float32
    )
    assert our_scipy.stats.dirichlet.pdf(single[0], single[0]).dtype == np.float32
    assert our_scipy.stats.multinomial.pmf(single * 4, 4, single).dtype == np.float32


def test_a_frozen_distribution_of_vectors_has_its_name_and_parameters():
    frozen = our_scipy.stats.multivariate_normal(np.zeros(2), 2.0)
    assert frozen.name == "multivariate_normal"
    assert frozen.dim == 2
    np.testing.assert_array_equal(frozen.mean, np.zeros(2))
    np.testing.assert_array_equal(frozen.cov, 2 * np.eye(2))
    assert not hasattr(frozen, "no_such_thing")


@pytest.mark.parametrize("name", ["genpareto", "genextreme"])
@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("c", [-1.1, -0.1, 0.0, 0.3])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_quantiles_at_the_ends_of_supports(name: str, quantile: str, c: float) -> None:
    theirs = getattr(getattr(scipy.stats, name), quantile)
    ours = getattr(getattr(our_scipy.stats, name), quantile)
    q = np.array([0.0, 0.3, 1.0])
    expected = theirs(q, c)
    np.testing.assert_allclose(np.asarray(ours(gt.tensor(q), c)), expected, rtol=1e-12)
    if c != 0.0:
        slopes = np.asarray(gt.jacobian(lambda c: ours(q, c))(c))
        step = 1e-6
        finite = np.isfinite(expected)
        q = q[finite]
        differences = (theirs(q, c + step) - theirs(q, c - step)) / (2 * step)
        np.testing.assert_allclose(slopes[finite], differences, rtol=1e-6)
