"""Statistics of timings, as pure functions of samples.

Timings are skewed, have outliers far above the rest, and drift with the machine. So the centre is
the median, spreads are those of ranks, and intervals need no assumption about the distribution.
Ratios are compared on a logarithmic scale, where twice as fast and twice as slow are equally far.

`gt.PerformanceBenchmark` and `benchmarks/` both use it. Only the standard library and NumPy are
imported, for the sake of processes that measure other libraries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

Sample = Sequence[float]

LEAST_FOR_INTERVAL = 6
"""The fewest values of which the extremes enclose the median with a probability of 95 %."""


def median(sample: Sample) -> float:
    """The middle value; the mean of the two in the middle if their number is even.

    >>> from gradtape.tools.statistics import median
    >>> median([1.0, 9.0, 2.0])
    2.0
    """
    return float(np.median(np.asarray(sample, float)))


def geometric_mean(ratios: Sample) -> float:
    """The mean of ratios: that of 2 and 1/2 is 1; 1 if there are none."""
    return math.exp(math.fsum(map(math.log, ratios)) / max(1, len(ratios)))


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, 10th and 90th percentile of a sample.

    >>> from gradtape.tools.statistics import Spread
    >>> Spread.of_ratio([2.0, 4.0, 6.0], [1.0, 1.0, 2.0])
    Spread(median=3.0, low=2.2, high=3.8)
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, sample: Sample) -> Spread:
        """Summarise a sample."""
        low, middle, high = np.percentile(np.asarray(sample, float), (10, 50, 90))
        return cls(float(middle), float(low), float(high))

    @classmethod
    def of_ratio(cls, ours: Sample, theirs: Sample) -> Spread:
        """Summarise the ratios of two samples taken in turns."""
        return cls.of(paired_ratios(ours, theirs))


def paired_ratios(ours: Sample, theirs: Sample) -> list[float]:
    """The ratio of each pair: what slows both of them down cancels."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


# ---- spread and outliers -------------------------------------------------------------------------


def mean_and_deviation(sample: Sample) -> tuple[float, float]:
    """The mean, and the standard deviation (by n − 1; 0 for a single value)."""
    mean = math.fsum(sample) / len(sample)
    squares = math.fsum((x - mean) ** 2 for x in sample)
    return mean, math.sqrt(squares / max(1, len(sample) - 1))


def median_deviation(sample: Sample) -> float:
    """The median of the distances from the median: outliers do not change it."""
    values = np.asarray(sample, float)
    return float(np.median(np.abs(values - np.median(values))))


def quartiles(sample: Sample) -> tuple[float, float]:
    """The values that a quarter of the sample is below, and above."""
    low, high = np.percentile(np.asarray(sample, float), (25, 75))
    return float(low), float(high)


def count_outliers(sample: Sample) -> int:
    """How many values are far out: more than three interquartile ranges beyond the quartiles.

    The usual fence of 1.5 is made for symmetric samples; of timings, which have a long tail by
    nature, it would count one in ten. Values within 1 % of the quartiles are never far out, however
    alike the others are.
    """
    low, high = quartiles(sample)
    fence = max(3.0 * (high - low), 0.01 * high)
    return sum(not low - fence <= x <= high + fence for x in sample)


# ---- intervals -----------------------------------------------------------------------------------


class Interval(NamedTuple):
    """Where a quantity lies, with at least that probability."""

    low: float
    high: float
    confidence: float


def interval_of_median(sample: Sample, confidence: float = 0.95) -> Interval:
    """Where the true median lies: an interval between two order statistics.

    The number of values below the true median is binomial with p = 1/2, whatever the distribution.
    So the k-th smallest and the k-th largest value enclose it with a probability that is known
    exactly: no outlier can widen the interval, nothing is assumed about the tail, and, unlike with
    a bootstrap, no random numbers are drawn and few values are enough.

    Args:
        sample: Independent values.
        confidence: The least probability.

    Returns:
        The narrowest such interval, with its probability: a little more than was asked for, as k
        is an integer. With fewer than 6 values (at 95 %) even the extremes have less than that;
        they are returned, and the probability says so.

    >>> from gradtape.tools.statistics import interval_of_median
    >>> interval_of_median([5.0, 1.0, 4.0, 2.0, 3.0, 90.0, 6.0, 7.0])
    Interval(low=1.0, high=90.0, confidence=0.9921875)
    >>> interval_of_median([5.0, 1.0, 4.0, 2.0, 3.0, 90.0, 6.0, 7.0, 8.0])
    Interval(low=2.0, high=8.0, confidence=0.9609375)
    """
    ordered = sorted(sample)
    rank, outside = _rank_with_tail((1.0 - confidence) / 2.0, len(ordered))
    return Interval(ordered[rank], ordered[-1 - rank], 1.0 - 2.0 * outside)


def _rank_with_tail(tail: float, n: int) -> tuple[int, float]:
    """The highest rank (from 0) that a binomial count stays at or below with at most `tail`.

    Returns:
        The rank, at least 0, and that probability.
    """
    # Logarithms: 0.5**n is 0 from n = 1075 on.
    total, rank = math.exp(-n * math.log(2.0)), 0
    while rank + 1 < (n + 1) // 2:
        more = total + math.exp(_log_choose(n, rank + 1) - n * math.log(2.0))
        if more > tail:
            break
        total, rank = more, rank + 1
    return rank, total


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def interval_of_ratio(ours: Sample, theirs: Sample, confidence: float = 0.95) -> Interval:
    """Where the ratio of two medians lies, of samples that were taken one after the other.

    After Price and Bonett ("Distribution-free confidence intervals for difference and ratio of
    medians", 2002): the distance between two order statistics near the median tells how well each
    logarithm of a median is known, whatever the distribution, and the variances add up.

    Args:
        ours: Independent positive values.
        theirs: The same of the other side.
        confidence: The probability, met approximately.

    Returns:
        The interval of median(ours) / median(theirs); from 0 to infinity, with confidence 1, if a
        side has fewer than 6 values, or values of 0.
    """
    if not (_can_form_ratios(ours) and _can_form_ratios(theirs)):
        return Interval(0.0, math.inf, 1.0)
    ratio = median(ours) / median(theirs)
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    error = z * math.hypot(_error_of_log_median(ours), _error_of_log_median(theirs))
    return Interval(ratio * math.exp(-error), ratio * math.exp(error), confidence)


def interval_of_paired_ratio(ours: Sample, theirs: Sample, confidence: float = 0.95) -> Interval:
    """Where the median ratio lies, of samples that were taken in turns.

    Args:
        ours: Positive values.
        theirs: As many of the other side, each taken right before or after one of ours.
        confidence: The least probability.

    Returns:
        `interval_of_median` of the ratios; from 0 to infinity, with confidence 1, if there are too
        few pairs for that, or values of 0.
    """
    if not (_can_form_ratios(ours) and _can_form_ratios(theirs)):
        return Interval(0.0, math.inf, 1.0)
    found = interval_of_median(paired_ratios(ours, theirs), confidence)
    return found if found.confidence >= confidence else Interval(0.0, math.inf, 1.0)


def _can_form_ratios(sample: Sample) -> bool:
    return len(sample) >= LEAST_FOR_INTERVAL and min(sample) > 0.0


def _error_of_log_median(sample: Sample) -> float:
    """The standard error of the logarithm of the median, from two order statistics around it."""
    ordered, n = sorted(sample), len(sample)
    rank = max(1, round((n + 1) / 2 - math.sqrt(n)))
    outside = sum(math.exp(_log_choose(n, k) - n * math.log(2.0)) for k in range(rank))
    distance = math.log(ordered[n - rank]) - math.log(ordered[rank - 1])
    return distance / (2.0 * NormalDist().inv_cdf(1.0 - outside))


# ---- samples that are not what intervals assume --------------------------------------------------

# Beyond this many standard errors: by chance in one of 2,000 samples.
_CLEAR = 3.5
LEAST_FOR_TESTS = 12
"""With fewer values than this, drift cannot be told from chance."""


def drift(sample: Sample) -> float:
    """By how much the values rose while they were taken: the last third relative to the first.

    Args:
        sample: The values, in the order in which they were taken.

    Returns:
        0.1 if the median of the last third is 10 % above that of the first; 0 if ranks do not
        clearly go up or down with time (Spearman's correlation), or there are fewer than 12 values.
    """
    n = len(sample)
    if n < LEAST_FOR_TESTS:
        return 0.0
    correlation = np.corrcoef(_ranks(sample), np.arange(n))[0, 1] if np.ptp(sample) else 0.0
    if abs(correlation) * math.sqrt(n - 1) < _CLEAR:
        return 0.0
    third = n // 3
    first, last = median(sample[:third]), median(sample[-third:])
    return last / first - 1.0 if first > 0.0 else 0.0


def serial_correlation(sample: Sample) -> float:
    """How much each value is like the one before it, from 0 to 1; 0 where that may be chance.

    Intervals assume independent values. If neighbours are alike, there are fewer independent ones,
    and the intervals are too narrow. This is the rank version of von Neumann's ratio (Bartels,
    1982).
    """
    n = len(sample)
    if n < LEAST_FOR_TESTS or not np.ptp(sample):
        return 0.0
    ranks = _ranks(sample)
    ratio = np.sum(np.diff(ranks) ** 2) / np.sum((ranks - ranks.mean()) ** 2)
    correlation = float(1.0 - ratio / 2.0)
    return correlation if correlation * math.sqrt(n) > _CLEAR else 0.0


def _ranks(sample: Sample) -> np.ndarray[Any, Any]:
    """The rank of each value; equal values share the mean of theirs."""
    _, which, counts = np.unique(np.asarray(sample, float), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2.0)[which])


class Modes(NamedTuple):
    """Two groups of values: the median of each, and the share of the upper one."""

    low: float
    high: float
    share_high: float


# A group with fewer values than this share counts as outliers.
_LEAST_SHARE = 0.15
# Groups that differ by less do not matter.
_LEAST_STEP = 0.02
_LEAST_FOR_MODES = 20


def two_modes(sample: Sample) -> Modes | None:
    """The two groups that a sample consists of; None if it does not, or has fewer than 20 values.

    The sample is cut where the groups have the least variance, on a logarithmic scale. They count
    as two if they are much further apart than they are wide.
    """
    n = len(sample)
    if n < _LEAST_FOR_MODES or min(sample) <= 0.0:
        return None
    logs = np.log(np.sort(np.asarray(sample, float)))
    below = _variances_of_starts(logs)
    above = _variances_of_starts(logs[::-1])[::-1]
    least = math.ceil(_LEAST_SHARE * n)
    cuts = np.arange(least, n - least + 1)
    best = int(np.argmin(cuts * below[cuts - 1] + (n - cuts) * above[cuts]))
    cut = int(cuts[best])
    width = math.sqrt((below[cut - 1] + above[cut]) / 2.0)
    low, high = float(np.median(logs[:cut])), float(np.median(logs[cut:]))
    if high - low < max(_LEAST_STEP, _least_distance(n) * width):
        return None
    return Modes(math.exp(low), math.exp(high), 1.0 - cut / n)


def _least_distance(n: int) -> float:
    """How many times their width two groups are apart (Ashman's D), to count as two.

    Halves of a uniform distribution, which has no gap, are 3.5 apart, and more in small samples.
    """
    return 5.0 + 40.0 / n


def _variances_of_starts(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The variance of the first value, of the first two, and so on."""
    centred, counts = values - values.mean(), np.arange(1, len(values) + 1)
    means = np.cumsum(centred) / counts
    return np.maximum(np.cumsum(centred**2) / counts - means**2, 0.0)
