"""Results of `gt.PerformanceBenchmark`: the samples of one name, and what they say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gradtape.errors import ArgumentError
from gradtape.tools import statistics
from gradtape.tools.noise_advice import Timings, advice_on
from gradtape.tools.timing import duration


@dataclass(frozen=True)
class BenchmarkResult:
    """The timings of one name; made by `gt.PerformanceBenchmark`, or of samples that were kept.

    Attributes:
        name: What was measured.
        samples: Seconds per call, a tuple in the order in which they were measured, without the
            warm-up.
        calls_per_sample: How often the call was repeated in each sample.
        items_per_call: Items that a call works on, for the throughput.
        peak_memory_bytes: By how much resident memory rose at the peak; None if it was not
            measured, or the system does not tell.
        warming_up: Whether there are samples of the warm-up only; `samples` then has those.
        confidence: The probability of the interval.
        clock_step: The least time that the clock can tell, in seconds.
        measure_throughput: Whether there is a throughput.
        statistical_analysis: Whether there are an interval, outliers, drift and advice.
        taken_in: The run that took turns with others; two results of the same run form pairs.

    Raises:
        ArgumentError: There are no samples, or some are negative.

    >>> result = gt.BenchmarkResult("step", [0.011, 0.010, 0.012, 0.010, 0.011, 0.090])
    >>> result.median_time_ms, result.interval_ms, result.outliers
    (11.0, (10.0, 90.0), 1)
    """

    name: str
    samples: Sequence[float]
    calls_per_sample: int = field(default=1, kw_only=True)
    items_per_call: float = field(default=1.0, kw_only=True)
    peak_memory_bytes: int | None = field(default=None, kw_only=True)
    warming_up: bool = field(default=False, kw_only=True)
    confidence: float = field(default=0.95, kw_only=True)
    clock_step: float = field(default=0.0, kw_only=True)
    measure_throughput: bool = field(default=True, kw_only=True)
    statistical_analysis: bool = field(default=True, kw_only=True)
    taken_in: object = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        samples = tuple(map(float, self.samples))
        if not samples or not min(samples) >= 0.0:
            got = f"{min(samples)} among the samples" if samples else "no samples"
            raise ArgumentError(f"BenchmarkResult: got {got}, expected seconds, at least one")
        object.__setattr__(self, "samples", samples)

    # ---- always there ----

    @property
    def mean_time_ms(self) -> float:
        """The mean, in milliseconds: what many calls take together; outliers count in full."""
        return 1e3 * statistics.mean_and_deviation(self.samples)[0]

    @property
    def median_time_ms(self) -> float:
        """The median, in milliseconds: what a call takes; outliers do not change it."""
        return 1e3 * statistics.median(self.samples)

    @property
    def min_time_ms(self) -> float:
        """The fastest sample, in milliseconds."""
        return 1e3 * min(self.samples)

    @property
    def std_time_ms(self) -> float:
        """The standard deviation of the samples, in milliseconds."""
        return 1e3 * statistics.mean_and_deviation(self.samples)[1]

    @property
    def mad_time_ms(self) -> float:
        """The median of the distances from the median, in milliseconds."""
        return 1e3 * statistics.median_deviation(self.samples)

    @property
    def iqr_time_ms(self) -> float:
        """The distance of the quartiles, in milliseconds: the middle half of the samples."""
        low, high = statistics.quartiles(self.samples)
        return 1e3 * (high - low)

    # ---- if asked for ----

    @property
    def throughput_ops_per_sec(self) -> float | None:
        """Calls per second, all calls over all time; None without `measure_throughput`."""
        if not self.measure_throughput:
            return None
        mean = statistics.mean_and_deviation(self.samples)[0]
        return 1.0 / mean if mean > 0.0 else math.inf

    @property
    def throughput_items_per_sec(self) -> float | None:
        """Items per second; None without `measure_throughput`."""
        calls = self.throughput_ops_per_sec
        return None if calls is None else self.items_per_call * calls

    @property
    def interval_ms(self) -> tuple[float, float] | None:
        """Where the median lies with probability `confidence`, in milliseconds.

        The ends are two of the samples: order statistics, of which it is known without any
        assumption on the distribution how often they enclose the median. So outliers do not widen
        it, as they would widen an interval of the mean, and no random numbers are needed, as they
        are for a bootstrap. None if there are too few samples (6 are needed at 95 %), or without
        `statistical_analysis`.
        """
        found = statistics.interval_of_median(self.samples, self.confidence)
        if not self.statistical_analysis or found.confidence < self.confidence:
            return None
        return 1e3 * found.low, 1e3 * found.high

    @property
    def outliers(self) -> int | None:
        """Samples more than three times `iqr_time_ms` beyond the quartiles."""
        return statistics.count_outliers(self.samples) if self.statistical_analysis else None

    @property
    def drift(self) -> float | None:
        """The change from the first third of the samples to the last; 0.0 if it may be chance."""
        return statistics.drift(self.samples) if self.statistical_analysis else None

    @property
    def advice(self) -> tuple[str, ...]:
        """What makes the figures doubtful, and what to do about it; empty if nothing does."""
        return advice_on(timings_of(self)) if self.statistical_analysis else ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        kind = "warm-up sample" if self.warming_up else "sample"
        number = f"{len(self.samples)} {kind}{'s' if len(self.samples) > 1 else ''}"
        repeated = f" of {self.calls_per_sample:,} calls" if self.calls_per_sample > 1 else ""
        interval = ""
        if self.interval_ms is not None:
            low, high = (duration(ms / 1e3) for ms in self.interval_ms)
            interval = f", {self.confidence:.0%} sure between {low} and {high}"
        yield f"{self.name}: {_ms(self.median_time_ms)} (median of {number}{repeated}{interval})"
        outliers = "" if not self.outliers else f", {self.outliers} far out"
        yield (
            f"  mean {_ms(self.mean_time_ms)}, minimum {_ms(self.min_time_ms)}, standard deviation "
            f"{_ms(self.std_time_ms)}, MAD {_ms(self.mad_time_ms)}, IQR {_ms(self.iqr_time_ms)}"
            f"{outliers}"
        )
        if self.throughput_ops_per_sec is not None:
            items = ""
            if self.items_per_call != 1.0:
                items = f", {_number(self.throughput_items_per_sec)} items per second"
            yield f"  {_number(self.throughput_ops_per_sec)} calls per second{items}"
        if self.peak_memory_bytes is not None:
            yield f"  {self.peak_memory_bytes / 1e6:,.1f} MB above the start at the peak"
        for sentence in self.advice:
            yield f"  note: {sentence}"


def timings_of(result: BenchmarkResult) -> Timings:
    """What advice is given on."""
    return Timings(
        result.samples,
        result.calls_per_sample,
        result.clock_step,
        result.confidence,
        result.warming_up,
    )


def _ms(milliseconds: float) -> str:
    return duration(milliseconds / 1e3)


def _number(value: float | None) -> str:
    assert value is not None
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"
