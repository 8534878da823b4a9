"""Which of two benchmarks is faster, by how much, and whether that can be told at all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gradtape.errors import ArgumentError
from gradtape.tools import statistics
from gradtape.tools.benchmark_result import BenchmarkResult, timings_of
from gradtape.tools.noise_advice import advice_on

# The same function, measured twice in one process, may clearly differ, but hardly by so much.
_ALIKE = 1.01


@dataclass(frozen=True)
class BenchmarkComparison:
    """Two results side by side; made by `PerformanceBenchmark.compare`.

    Attributes:
        first: The name of the first result.
        second: The name of the second.
        ratio: How many times as fast the first is: the median time of the second over that of the
            first; of pairs, the median of the ratios.
        low: Where the ratio begins, with probability `confidence`.
        high: Where it ends.
        confidence: That probability.
        paired: Whether ratios were formed pair by pair, so that drift cancels.
        drift: The largest relative change within one of the results; 0.0 for pairs.
        advice: What makes the figures doubtful, and what to do about it.
    """

    first: str
    second: str
    ratio: float
    low: float
    high: float
    confidence: float
    paired: bool
    drift: float
    advice: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """What can be said of the first: "faster", "slower", "alike" or "cannot tell".

        They are alike if the interval is within 1 % of 1. It cannot be told which is faster if the
        interval contains 1, or if the machine changed by more than the two differ while they were
        measured one after the other.
        """
        if self.low > 1.0 / _ALIKE and self.high < _ALIKE:
            return "alike"
        if self.low <= 1.0 <= self.high or self._hidden_by_drift():
            return "cannot tell"
        return "faster" if self.ratio > 1.0 else "slower"

    def _hidden_by_drift(self) -> bool:
        return math.log1p(self.drift) > abs(math.log(self.ratio))

    def __str__(self) -> str:
        return "\n".join([self._sentence(), *(f"  note: {sentence}" for sentence in self.advice)])

    def _sentence(self) -> str:
        first, second = self.first, self.second
        if first == second:
            first, second = f"{first} (first)", f"{second} (second)"
        how = f"({self.confidence:.0%} sure{', by pairs' if self.paired else ''})"
        if self.verdict == "alike":
            return f"{first} and {second} take the same time to within 1% {how}"
        if self.verdict == "faster":
            ratio, low, high = map(_times, (self.ratio, self.low, self.high))
            return f"{first} is {ratio} times as fast as {second}, between {low} and {high} {how}"
        if self.verdict == "slower":
            ratio, low, high = map(_times, (1 / self.ratio, 1 / self.high, 1 / self.low))
            return f"{second} is {ratio} times as fast as {first}, between {low} and {high} {how}"
        if math.isinf(self.high):
            return f"cannot tell {first} from {second}: there are too few samples"
        low, high = _times(self.low), _times(self.high)
        between = f"{first} is between {low} and {high} times as fast {how}"
        if self._hidden_by_drift():
            between += f", but times changed by {self.drift:.0%} within a run"
        return f"cannot tell {first} from {second}: {between}"


def _times(ratio: float) -> str:
    """A ratio with as many digits as it takes to see that it is not 1."""
    return f"{ratio:.3f}" if 0.95 < ratio < 1.05 else f"{ratio:.2f}"


def compare(
    first: BenchmarkResult, second: BenchmarkResult, *, paired: bool | None = None
) -> BenchmarkComparison:
    """Compare two results; see `PerformanceBenchmark.compare`."""
    if paired is None:
        paired = first.taken_in is not None and first.taken_in is second.taken_in
    if paired and len(first.samples) != len(second.samples):
        raise ArgumentError(
            f"compare: got {len(first.samples)} samples of {first.name!r} and "
            f"{len(second.samples)} of {second.name!r}, expected pairs: as many of both; measure "
            "them by run_interleaved, or leave paired=True away"
        )
    confidence = min(first.confidence, second.confidence)
    # Times of the second over those of the first: large is good for the first.
    times = second.samples, first.samples
    if paired:
        interval = statistics.interval_of_paired_ratio(*times, confidence)
        positive = min(map(min, times)) > 0.0
        ratio = statistics.median(statistics.paired_ratios(*times)) if positive else math.nan
    else:
        interval = statistics.interval_of_ratio(*times, confidence)
        above, below = map(statistics.median, times)
        ratio = above / below if below > 0.0 else math.nan
    drift = 0.0 if paired else max(abs(statistics.drift(sample)) for sample in times)
    told = (first.name, second.name, ratio, interval.low, interval.high, confidence, paired, drift)
    advice = tuple(_advice(first, second, paired))
    found = BenchmarkComparison(*told, advice)
    if found.verdict == "cannot tell" and not advice:
        return BenchmarkComparison(*told, (_MORE,))
    return found


_MORE = "to tell smaller differences, raise num_iterations: four times as many halve the interval"


def _advice(first: BenchmarkResult, second: BenchmarkResult, paired: bool) -> Iterator[str]:
    """The advice on both sides."""
    for label, result in (("first", first), ("second", second)):
        name = f"{result.name} ({label})" if first.name == second.name else result.name
        for sentence in advice_on(timings_of(result), in_pairs=paired):
            yield f"{name}: {sentence}"
