"""Tails of discrete distributions against mpmath, and probabilities that are powers of 0."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import gradtape as gt
import our_scipy
from stats_references import differences, lower_beta, lower_gamma, upper_gamma
from test_stats_tails import derivative, part, wrong

# name, parameters: the count, and those differentiated after fixed ones; both tails in mpmath
COUNTS: list[tuple[str, tuple[float, ...], Any, Any]] = [
    ("bernoulli", (0.0, 1e-12), lambda p: 1 - p, lambda p: p),
    *(
        (
            "binom",
            (k, 1000.0, p),
            lambda p, k=k: lower_beta(1000 - k, k + 1, 1 - p),
            lambda p, k=k: lower_beta(k + 1, 1000 - k, p),
        )
        for k, p in ((3.0, 0.9), (990.0, 0.01), (30.0, 0.03))
    ),
    *(
        (
            "poisson",
            (k, mu),
            lambda mu, k=k: upper_gamma(k + 1, mu),
            lambda mu, k=k: lower_gamma(k + 1, mu),
        )
        for k, mu in ((1000.0, 1.0), (3.0, 2000.0), (2.0, 0.5))
    ),
    *(
        (
            "geom",
            (k, p),
            lambda p, k=k: -mpmath.expm1(k * mpmath.log1p(-p)),
            lambda p, k=k: (1 - p) ** k,
        )
        for k, p in ((5.0, 1e-30), (1e5, 0.5), (3.0, 0.3))
    ),
    *(
        (
            "nbinom",
            (k, n, p),
            lambda n, p, k=k: lower_beta(n, k + 1, p),
            lambda n, p, k=k: lower_beta(k + 1, n, 1 - p),
        )
        for k, n, p in ((2.0, 300.5, 0.01), (4000.0, 2.5, 0.7), (3.0, 2.5, 0.4))
    ),
]


@pytest.mark.parametrize(
    ("name", "place", "cdf", "sf"), COUNTS, ids=[f"{case[0]}-{case[1]}" for case in COUNTS]
)
def test_tails_of_counts(name: str, place: tuple[float, ...], cdf: Any, sf: Any) -> None:
    fixed = 2 if name == "binom" else 1
    with mpmath.workdps(200):
        parameters = [mpf(float(value)) for value in place[fixed:]]
        small = cdf if cdf(*parameters) < 0.5 else sf
        tail = differences(small, parameters)
        p, rest = tail.value, 1 - tail.value
        one = tail.through(mpmath.log(p), 1 / p, -1 / p**2)
        other = tail.through(mpmath.log1p(-p), -1 / rest, -1 / rest**2)
    pair = (one, other) if small is cdf else (other, one)
    for which, jet in zip(("logcdf", "logsf"), pair, strict=True):
        method = getattr(getattr(our_scipy.stats, name), which)

        def ours(*args: Any, method: Any = method) -> Any:
            return method(np.array([place[0]]), *place[1:fixed], *args)

        args = [np.array([value]) for value in place[fixed:]]
        for by in [(), *((i,) for i in range(len(args)))]:
            got = derivative(ours, by)(*args)
            assert not wrong(got[0], part(jet, by), 1e-11), (which, by, got, part(jet, by))
        second = derivative(ours, (0, len(args) - 1))(*args)
        assert not wrong(second[0], jet.second[0][-1], 1e-8), (which, second, jet.second)


def test_impossible_counts_become_possible() -> None:
    """Probabilities that are powers of 0 have slopes, though their logarithms are infinite."""
    found = {
        "bernoulli": (
            gt.grad(our_scipy.stats.bernoulli.pmf, 1),
            [((1, 0.0), 1.0), ((0, 1.0), -1.0)],
        ),
        "binom": (
            gt.grad(our_scipy.stats.binom.pmf, 2),
            [((0, 4, 0.0), -4.0), ((1, 4, 0.0), 4.0), ((9, 9, 1.0), 9.0), ((2, 900, 0.0), 0.0)],
        ),
        "poisson": (gt.grad(our_scipy.stats.poisson.pmf, 1), [((0, 0.0), -1.0), ((1, 0.0), 1.0)]),
        "geom": (gt.grad(our_scipy.stats.geom.pmf, 1), [((1, 1.0), 1.0), ((2, 1.0), -1.0)]),
        "nbinom": (
            gt.grad(our_scipy.stats.nbinom.pmf, 2),
            [((1, 2.0, 1.0), -2.0), ((5, 2.0, 1.0), 0.0)],
        ),
    }
    for name, (slope, places) in found.items():
        for place, expected in places:
            np.testing.assert_allclose(slope(*place), expected, rtol=1e-12, err_msg=name)
    curvature = gt.grad(gt.grad(our_scipy.stats.binom.pmf, 2), 2)
    np.testing.assert_allclose(curvature(2, 900, 0.0), 900 * 899, rtol=1e-12)


def test_shares_of_zero() -> None:
    slope = gt.grad(our_scipy.stats.dirichlet.pdf, (0, 1))
    by_x, by_alpha = slope(np.array([0.0, 0.4, 0.6]), np.array([2.0, 1.0, 3.0]))
    np.testing.assert_allclose(by_x, [60 * 0.36, 0.0, 0.0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(by_alpha, np.zeros(3))
    by_p = gt.grad(our_scipy.stats.multinomial.pmf, 2)(
        np.array([1, 0, 1]), 2, np.array([0.0, 0.4, 0.6])
    )
    np.testing.assert_allclose(by_p, [1.2, 0.0, 0.0], rtol=1e-12)


def test_outside_of_the_support_the_gradient_is_zero() -> None:
    """An observation out there leaves the gradient as the others make it."""
    for method in (
        our_scipy.stats.bernoulli.logpmf,
        lambda k, p: our_scipy.stats.binom.logpmf(k, 1, p),
    ):
        slope = gt.grad(lambda p, method=method: gt.sum(method(np.array([-1.0, 0.5, 2.0, 1.0]), p)))
        assert slope(0.25) == 4.0


def test_a_share_that_makes_a_count_impossible_has_an_infinite_slope() -> None:
    slope = gt.grad(our_scipy.stats.bernoulli.logpmf, 1)
    assert [slope(0, 1.0), slope(1, 0.0)] == [-np.inf, np.inf]
    # The logarithms by the log-odds have the slopes that the shares have lost.
    for e in (-800.0, -37.0, 37.0, 800.0):
        by_odds = gt.grad(lambda e: gt.log_sigmoid(-e))(e)
        np.testing.assert_allclose(by_odds, -1.0 if e > 0 else -np.exp(e), rtol=1e-12)
