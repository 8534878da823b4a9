"""Values beside those of NumPy and SciPy where they are easily spoilt: large matrices, tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import gradtape as gt
import our_scipy
from builds import SCIPY

RNG = np.random.default_rng(3)

# ---- decompositions -----------------------------------------------------------------------------


def test_close_values_of_large_float32_matrices_stay_apart() -> None:
    x = RNG.normal(size=(900, 300)).astype(np.float32)
    expected = np.linalg.svd(x, compute_uv=False)
    np.testing.assert_allclose(gt.linalg.svdvals(x), expected, rtol=1e-5)
    np.testing.assert_allclose(gt.linalg.eigvalsh(x.T @ x), np.linalg.eigvalsh(x.T @ x), rtol=1e-4)
    u, s, vh = gt.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose((u * s) @ vh, x, atol=1e-4)
    assert np.isfinite(gt.grad(lambda x: gt.linalg.svdvals(x)[100])(x)).all()


@pytest.mark.parametrize("size", [40, 200])
def test_equal_values_of_large_matrices_are_found(size: int) -> None:
    q = np.linalg.qr(RNG.normal(size=(size, size)))[0]
    x = (q * np.repeat(np.arange(1.0, size // 2 + 1), 2)) @ q.T
    w = gt.linalg.eigvalsh(x)
    np.testing.assert_array_equal(w[::2], w[1::2])
    s = gt.linalg.svdvals(x)
    np.testing.assert_array_equal(s[::2], s[1::2])


def test_singular_values_near_zero_are_not_mixed() -> None:
    x = np.diag([1.0, 1e-15, 1e-17, 1e-19])
    np.testing.assert_allclose(gt.linalg.svdvals(x), np.linalg.svdvals(x))
    assert gt.linalg.cond(x) == pytest.approx(1e19)
    assert gt.linalg.matrix_rank(x, tol=1e-16) == 2
    np.testing.assert_array_equal(gt.grad(lambda x: gt.min(gt.linalg.svdvals(x)))(x), 0.0)


def test_an_exponential_that_is_too_large_is_infinite() -> None:
    with np.errstate(all="ignore"):
        assert np.diagonal(gt.linalg.expm(np.diag([1000.0, 0.0]))).tolist() == [math.inf, 1.0]


@pytest.mark.parametrize("ord", [1, 2, math.inf])
@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0, 0)])
def test_norms_of_empty_matrices(ord: Any, shape: tuple[int, int]) -> None:
    assert gt.linalg.norm(np.zeros(shape), ord) == 0.0  # as NumPy's, which used to refuse them


# ---- distributions ------------------------------------------------------------------------------

# Methods at points where a formula, taken literally, has no value or loses its digits.
EDGES: list[tuple[str, str, list[float], tuple[float, ...]]] = [
    ("cauchy", "logpdf", [-1e200, -99.0, 0.5, 101.0, 1e200], ()),
    ("cauchy", "ppf", [0.0, 1e-300, 1e-20, 0.2, 0.5, 0.6, 0.8, 1 - 1e-12, 1.0], ()),
    ("cauchy", "isf", [0.0, 1e-300, 0.3, 1 - 1e-12, 1.0], ()),
    ("halfnorm", "logsf", [0.0, 1.0, 5.0], ()),
    ("invgamma", "logpdf", [-0.0, 0.0, 1.0, math.inf], (2.0,)),
    ("invgamma", "cdf", [-0.0, 0.0, 1.0, math.inf], (2.0,)),
    ("laplace", "sf", [-1.0, 0.0, 1.0], ()),
    ("lognorm", "logpdf", [-0.0, 0.0, 1.0, math.inf], (0.5,)),
    ("rayleigh", "logpdf", [1.0, math.inf], ()),
    ("t", "ppf", [0.0, 0.3, 1.0], (5.0,)),
    ("t", "isf", [0.0, 0.3, 1.0], (5.0,)),
    ("t", "logpdf", [-1.0, 0.0, 3.0], (math.inf,)),
    ("f", "cdf", [0.0, 1.0, math.inf], (2.0, 5.0)),
    ("truncnorm", "cdf", [-math.inf, -1e200, 0.0, 2.0, 3.0], (-math.inf, 2.0)),
    ("truncnorm", "sf", [2.0, 4.0, 1e200, math.inf], (3.0, math.inf)),
    ("truncnorm", "logcdf", [-math.inf, -1000.0, -40.0, 0.0, 1.9, 2.0], (-math.inf, 2.0)),
    ("truncnorm", "logsf", [3.0, 3.1, 39.0, 1000.0, math.inf], (3.0, math.inf)),
    ("geom", "logsf", [0.0, 1.0, 1e6], (0.2,)),
    ("geom", "logsf", [1.0, 1000.0], (1e-12,)),
    ("nbinom", "logcdf", [0.0, 3.0, 50.0], (3.0, 0.999)),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "method", "points", "shapes"), EDGES, ids=lambda value: str(value)[:20]
)
def test_distributions_at_edges(name: str, method: str, points: Any, shapes: Any) -> None:
    if name == "t" and method in ("ppf", "isf") and SCIPY < (1, 17):
        pytest.skip("SciPy's stdtrit had no value at the ends")
    x = np.array(points)
    expected = getattr(getattr(scipy.stats, name), method)(x, *shapes)
    function = getattr(getattr(our_scipy.stats, name), method)
    np.testing.assert_allclose(function(x, *shapes), expected, rtol=1e-10)
    compiled = gt.jit(lambda x: function(x, *shapes))(x)
    np.testing.assert_allclose(compiled, expected, rtol=1e-10)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_infinite_ends_leave_gradients_alone(sign: float) -> None:
    """As of intervals open to one side, and of a normal distribution cut on one side only."""

    def mass(scale: Any) -> Any:
        ends = our_scipy.stats.norm.cdf(np.array([sign, sign * math.inf]), 0.5, scale)
        return ends[1] - ends[0]

    step = 1e-6
    slope = (mass(2.0 + step) - mass(2.0 - step)) / (2 * step)
    assert gt.grad(mass)(2.0) == pytest.approx(slope, rel=1e-6)
    bounds = (-math.inf, 1.0) if sign < 0 else (1.0, math.inf)
    open_end = 1 if sign < 0 else 2
    logpdf = gt.grad(our_scipy.stats.truncnorm.logpdf, open_end)
    assert logpdf(sign * -2.0 + 1.0, *bounds) == 0.0
    assert logpdf(sign * 2.0 + 1.0, *bounds) == 0.0


def test_the_distribution_function_of_laplace_is_smooth() -> None:
    assert gt.grad(our_scipy.stats.laplace.cdf)(0.0) == 0.5
    assert gt.grad(our_scipy.stats.laplace.sf)(0.0) == -0.5
    assert gt.grad(our_scipy.stats.laplace.logcdf)(0.0) == 1.0


def test_numbers_along_one_axis_are_one_dimensional() -> None:
    x = np.array([1.0, 2.0, 3.0])
    expected = scipy.stats.multivariate_normal.logpdf(x)
    np.testing.assert_allclose(our_scipy.stats.multivariate_normal.logpdf(x), expected)


def test_dirichlet_needs_positive_parameters() -> None:
    assert np.isnan(our_scipy.stats.dirichlet.logpdf(np.array([0.2, 0.8]), np.array([-1.0, 2.0])))
