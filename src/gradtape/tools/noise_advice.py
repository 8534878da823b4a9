"""Advice on timings that cannot be trusted: what is wrong with them, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradtape.tools import statistics
from gradtape.tools.timing import duration

# Relative to the median: what a benchmark should be able to tell.
_WIDE_INTERVAL = 0.05
_LARGE_DEVIATION = 0.1
_DRIFT = 0.03
_CLOCK = 0.02
_STRONG_CORRELATION = 0.3
# More iterations are no remedy from here on.
_MOST_TIMES_MORE = 100


class Timings(NamedTuple):
    """The samples that advice is given on, in the order in which they were taken.

    Attributes:
        samples: Seconds per call.
        calls: Calls per sample.
        clock_step: The least time that the clock can tell, in seconds.
        confidence: That of the interval of the median.
        warming_up: Whether all samples belong to the warm-up.
    """

    samples: Sequence[float]
    calls: int = 1
    clock_step: float = 0.0
    confidence: float = 0.95
    warming_up: bool = False


def advice_on(timings: Timings, *, in_pairs: bool = False) -> tuple[str, ...]:
    """What is wrong with timings and what to do, a sentence each, the gravest first.

    Args:
        timings: What was measured.
        in_pairs: Whether only its ratios to other timings matter, in which what slows both down
            cancels.
    """
    if timings.warming_up:
        return ("these are warm-up samples: measure more often than num_warmup times",)
    if coarse := _of_clock(timings):
        return (coarse,)  # what is seen below the step of the clock says nothing
    if in_pairs:
        return ()
    return (*_of_order(timings.samples), *_of_groups(timings.samples), *_of_spread(timings))


def _of_clock(timings: Timings) -> str | None:
    sample = statistics.median(timings.samples) * timings.calls
    if sample > 0.0 and timings.clock_step <= _CLOCK * sample:
        return None
    return (
        f"a sample takes {duration(sample)}, and the clock tells no less than "
        f"{duration(timings.clock_step)} apart: let run() repeat the call, raise sample_seconds, "
        "or put more work between start and end"
    )


def _of_order(samples: Sequence[float]) -> Iterator[str]:
    """Advice on samples that depend on when they were taken."""
    drift = statistics.drift(samples)
    if abs(drift) > _DRIFT:
        went = "rose" if drift > 0 else "fell"
        yield (
            f"times {went} by {abs(drift):.0%} while they were measured: raise num_warmup, let the "
            "processor reach a steady temperature, and compare by run_interleaved()"
        )
        return
    correlation = statistics.serial_correlation(samples)
    if correlation > _STRONG_CORRELATION and _deviation(samples) > _CLOCK:
        yield (
            f"each sample is like the one before it (correlation {correlation:.2f}), so the "
            "interval is too narrow: something slows the machine down for a while now and then; "
            "quiet it, and compare by run_interleaved()"
        )


def _of_groups(samples: Sequence[float]) -> Iterator[str]:
    if modes := statistics.two_modes(samples):
        yield (
            f"there are two groups of times, {duration(modes.low)} and {duration(modes.high)} "
            f"({modes.share_high:.0%} of the samples): pin the process to its cores (taskset) and "
            "its threads (gt.set_num_threads), fix the processor's frequency, or find out what the "
            "function does every few calls"
        )


def _of_spread(timings: Timings) -> Iterator[str]:
    samples = timings.samples
    middle, n = statistics.median(samples), len(samples)
    interval = statistics.interval_of_median(samples, timings.confidence)
    if interval.confidence < timings.confidence:
        least = math.ceil(1 - math.log2(1 - timings.confidence))
        yield (
            f"{n} sample{'s are' if n != 1 else ' is'} too few for an interval of "
            f"{timings.confidence:.0%}: raise num_iterations to {least} or more"
        )
        return
    width = (interval.high - interval.low) / (2 * middle)
    if width > _WIDE_INTERVAL:
        needed = n * (width / _WIDE_INTERVAL) ** 2
        remedy = f"raise num_iterations to about {_rounded_up(needed)}, or quiet the machine"
        if needed > _MOST_TIMES_MORE * n:
            remedy = "quiet the machine"
        yield f"the median is known to ±{width:.0%} only: {remedy}"
    deviation = _deviation(samples)
    if deviation > _LARGE_DEVIATION:
        yield (
            f"half of the samples are more than {deviation:.0%} off the median: stop other "
            "programs, pin threads (gt.set_num_threads, taskset), or raise sample_seconds"
        )


def _deviation(samples: Sequence[float]) -> float:
    return statistics.median_deviation(samples) / statistics.median(samples)


def _rounded_up(number: float) -> int:
    """To one digit, upwards: 40 for 31.5."""
    unit = 10.0 ** int(math.log10(number))
    return round(math.ceil(number / unit) * unit)
