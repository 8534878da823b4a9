"""The statistics of timings: intervals hold on simulated data, and what is odd is noticed."""

import math
import subprocess
import sys

import numpy as np
import pytest

from gradtape.tools import statistics


def with_outliers(rng, shape):
    """Skewed times around 1; one in ten is up to six times as long."""
    times = np.exp(0.05 * rng.standard_normal(shape))
    return times * np.where(rng.random(shape) < 0.1, 1.0 + 5.0 * rng.random(shape), 1.0)


def long_tailed(rng, shape):
    return 1.0 + 0.05 * rng.pareto(1.2, size=shape)


DISTRIBUTIONS = pytest.mark.parametrize("draw", [with_outliers, long_tailed])


# ---- intervals ----


@DISTRIBUTIONS
@pytest.mark.parametrize("n", [6, 25, 100])
def test_interval_of_the_median_holds_as_often_as_it_says(draw, n, rng):
    true = np.median(draw(rng, 1_000_000))
    found = [statistics.interval_of_median(sample) for sample in draw(rng, (1000, n)).tolist()]
    covered = np.mean([low <= true <= high for low, high, _ in found])
    assert found[0].confidence >= 0.95
    # Three standard errors of a share of 1,000.
    assert abs(covered - found[0].confidence) < 0.021


@DISTRIBUTIONS
@pytest.mark.parametrize(("n", "m"), [(12, 12), (20, 60), (100, 100)])
def test_interval_of_the_ratio_holds_as_often_as_it_says(draw, n, m, rng):
    ours, theirs = 1.5 * draw(rng, (1000, n)), draw(rng, (1000, m))
    found = map(statistics.interval_of_ratio, ours.tolist(), theirs.tolist())
    covered = np.mean([low <= 1.5 <= high for low, high, _ in found])
    assert 0.93 < covered < 0.99


def test_interval_of_pairs_is_narrow_where_the_machine_changes(rng):
    machine = np.exp(0.5 * rng.standard_normal(50))
    ours, theirs = (f * machine * np.exp(0.01 * rng.standard_normal(50)) for f in (1.2, 1.0))
    paired = statistics.interval_of_paired_ratio(ours.tolist(), theirs.tolist())
    apart = statistics.interval_of_ratio(ours.tolist(), theirs.tolist())
    assert 1.18 < paired.low < 1.2 < paired.high < 1.22
    assert apart.low < 1.0 < apart.high


def test_outliers_do_not_move_the_interval():
    sample = [1.0 + 0.01 * i for i in range(30)]
    moved = [*sample[:-3], 1e3, 1e4, 1e5]
    assert statistics.interval_of_median(sample) == statistics.interval_of_median(moved)


@pytest.mark.parametrize(("n", "confidence"), [(1, 0.0), (2, 0.5), (5, 0.9375), (6, 0.96875)])
def test_extremes_of_few_values_are_all_there_is(n, confidence):
    found = statistics.interval_of_median([float(i) for i in range(n)])
    assert found == pytest.approx((0.0, n - 1.0, confidence))


def test_interval_of_many_values_does_not_underflow():
    low, high, confidence = statistics.interval_of_median([float(i) for i in range(5001)])
    # Normal approximation: 2500 ± 1.96·√5001/2.
    assert (low, high) == pytest.approx((2500 - 69.3, 2500 + 69.3), abs=2.0)
    assert confidence == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize("sample", [[1.0] * 5, [0.0] * 20])
def test_no_ratio_of_too_few_values_or_of_nothing(sample):
    assert statistics.interval_of_ratio(sample, [1.0] * 20)[:2] == (0.0, math.inf)
    assert statistics.interval_of_paired_ratio(sample, [1.0] * len(sample))[:2] == (0.0, math.inf)


def test_a_higher_confidence_takes_more_pairs():
    assert statistics.interval_of_paired_ratio([1.0] * 6, [1.0] * 6, 0.95).high == 1.0
    assert statistics.interval_of_paired_ratio([1.0] * 6, [1.0] * 6, 0.99).high == math.inf


# ---- spread ----


def test_spread_is_that_of_percentiles():
    assert statistics.Spread.of(list(range(11))) == statistics.Spread(5.0, 1.0, 9.0)
    with pytest.raises(ValueError, match="zip"):
        statistics.Spread.of_ratio([1.0], [1.0, 2.0])


def test_measures_of_spread_are_numpys(rng):
    sample = rng.exponential(size=31).tolist()
    mean, deviation = statistics.mean_and_deviation(sample)
    assert (mean, deviation) == pytest.approx((np.mean(sample), np.std(sample, ddof=1)))
    assert statistics.median(sample) == sorted(sample)[15]
    assert statistics.mean_and_deviation([3.0]) == (3.0, 0.0)
    assert statistics.median_deviation([1.0, 2.0, 3.0, 4.0, 99.0]) == 1.0
    assert statistics.quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 4.0)
    assert statistics.geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert statistics.geometric_mean([]) == 1.0


def test_outliers_are_counted_but_not_the_tail(rng):
    assert statistics.count_outliers([1.0] * 10 + [1.005, 2.0]) == 1
    tail = 1.0 + 0.05 * rng.exponential(size=1000)
    assert statistics.count_outliers(tail.tolist()) < 20


# ---- samples that are not independent, or of two kinds ----


def test_drift_is_found_and_measured(rng):
    noise = np.exp(0.02 * rng.standard_normal(60))
    rising = noise * np.linspace(1.0, 1.3, 60)
    # The thirds are 0.2 apart, around 1.05 and 1.25.
    assert statistics.drift(rising.tolist()) == pytest.approx(0.19, abs=0.03)
    assert statistics.drift(rising[::-1].tolist()) == pytest.approx(-0.16, abs=0.03)
    assert statistics.drift(rising[:10].tolist()) == 0.0
    assert statistics.drift([1.0] * 60) == 0.0


def test_slow_periods_are_seen_as_serial_correlation(rng):
    noise = np.exp(0.02 * rng.standard_normal(80))
    waves = noise * np.repeat([1.0, 1.3, 1.0, 1.3, 1.0, 1.3, 1.0, 1.3], 10)
    assert statistics.serial_correlation(waves.tolist()) > 0.5
    assert statistics.serial_correlation(rng.permutation(waves).tolist()) == 0.0
    assert statistics.serial_correlation([1.0] * 60) == 0.0


def test_two_groups_are_found(rng):
    which = rng.random(50) < 0.3
    times = np.where(which, 1.5, 1.0) * np.exp(0.02 * rng.standard_normal(50))
    low, high, share = statistics.two_modes(times.tolist())
    assert (low, high) == pytest.approx((1.0, 1.5), rel=0.02)
    assert share == pytest.approx(which.mean())


@pytest.mark.parametrize("n", [20, 50, 200])
def test_one_group_is_seldom_taken_for_two_and_chance_for_drift(n, rng):
    draws = [rng.normal(1.0, 0.05, (200, n)), rng.uniform(1.0, 1.2, (200, n))]
    draws += [1.0 + 0.2 * rng.exponential(size=(200, n))]
    samples = np.concatenate(draws).tolist()
    for alarm in (statistics.two_modes, statistics.drift, statistics.serial_correlation):
        assert sum(bool(alarm(sample)) for sample in samples) <= 12, alarm.__name__


# ---- the module ----


def test_it_loads_no_more_of_gradtape_than_importing_gradtape_does():
    code = (
        "import sys, gradtape; before = set(sys.modules); import gradtape.tools.statistics; "
        "print(*(m for m in set(sys.modules) - before if m.startswith(('gradtape', 'scipy'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"gradtape.tools", "gradtape.tools.statistics"}
