"""Measuring how fast a call is: `PerformanceBenchmark`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, a_type
from gradtape.tools.benchmark_comparison import BenchmarkComparison, compare
from gradtape.tools.benchmark_result import BenchmarkResult
from gradtape.tools.peak_memory import PeakMeter
from gradtape.tools.timing import (
    Clock,
    calls_that_fill,
    loop_of,
    sampled,
    sampled_in_turns,
    step_of,
)


@dataclass(frozen=True)
class BenchmarkConfig:
    """How to measure, and what.

    Attributes:
        num_warmup: Calls that do not count, before all others.
        num_iterations: Samples that `run` takes.
        measure_throughput: Whether results have calls and items per second.
        measure_memory: Whether results have the rise of resident memory at its peak, where the
            system tells (Linux does). The process then forgets the peak it had before.
        statistical_analysis: Whether results have an interval, outliers, drift and advice.
        confidence: The probability that intervals hold.
        sample_seconds: `run` repeats the call in each sample until it takes about that long.

    Raises:
        ArgumentError: A number is out of range.

    >>> gt.BenchmarkConfig(num_iterations=0)
    Traceback (most recent call last):
        ...
    gradtape.errors.ArgumentError: BenchmarkConfig: got num_iterations=0, expected an integer, 1
    or more
    """

    num_warmup: int = 10
    num_iterations: int = 100
    measure_throughput: bool = True
    measure_memory: bool = False
    statistical_analysis: bool = True
    confidence: float = field(default=0.95, kw_only=True)
    sample_seconds: float = field(default=1e-3, kw_only=True)

    def __post_init__(self) -> None:
        for name, least in (("num_warmup", 0), ("num_iterations", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                self._refuse(name, f"an integer, {least} or more")
        if not (isinstance(self.confidence, float) and 0.0 < self.confidence < 1.0):
            self._refuse("confidence", "a number between 0 and 1, such as 0.95")
        if not (isinstance(self.sample_seconds, int | float) and 0 < self.sample_seconds < np.inf):
            self._refuse("sample_seconds", "seconds, more than 0")

    def _refuse(self, name: str, expected: str) -> None:
        value = getattr(self, name)
        raise ArgumentError(f"BenchmarkConfig: got {name}={value!r}, expected {expected}")


@dataclass(slots=True)
class _Pairs:
    """What the pairs of start and end of a name gave, the first ones of the warm-up."""

    seconds: list[float] = field(default_factory=list)
    items: list[float] = field(default_factory=list)
    peaks: list[int | None] = field(default_factory=list)


class PerformanceBenchmark:
    """Measures the time of calls, by itself (`run`) or from `start_benchmark` to `end_benchmark`.

    The median is the figure to look at: the mean of timings depends on a few outliers. Its interval
    holds whatever the distribution (see `BenchmarkResult.interval_ms`). Figures are those of a
    process: another one, with its memory elsewhere, may well differ by some per cent.

    Args:
        config: How to measure; `BenchmarkConfig()` if None.
        clock: Returns seconds. `time.process_time` leaves out what other processes took, and counts
            the time of all threads.

    >>> benchmark = gt.PerformanceBenchmark(gt.BenchmarkConfig(num_warmup=2, num_iterations=20))
    >>> result = benchmark.run("gradient", gt.grad(lambda x: np.sum(x * x)), np.ones(1000))
    >>> print(result)
    gradient: ... (median of 20 samples..., 95% sure between ... and ...)
    ...
    """

    def __init__(
        self, config: BenchmarkConfig | None = None, *, clock: Clock = time.perf_counter
    ) -> None:
        if not isinstance(config, BenchmarkConfig | None):
            raise ArgumentError(
                f"PerformanceBenchmark: got {a_type(config)}, expected a gt.BenchmarkConfig or None"
            )
        self._config = config or BenchmarkConfig()
        self._clock = clock
        self._clock_step = step_of(clock)
        self._meter = PeakMeter()
        self._started: dict[str, tuple[Any, float]] = {}
        self._pairs: dict[str, _Pairs] = {}
        self._results: dict[str, BenchmarkResult] = {}

    @property
    def config(self) -> BenchmarkConfig:
        """How it measures."""
        return self._config

    @property
    def results(self) -> dict[str, BenchmarkResult]:
        """The latest result of each name."""
        return dict(self._results)

    def result(self, name: str) -> BenchmarkResult:
        """The latest result of a name.

        Raises:
            ArgumentError: Nothing of that name was measured.
        """
        if name not in self._results:
            known = ", ".join(map(repr, self._results)) or "none yet"
            raise ArgumentError(f"result: got {name!r}, expected a name that was measured: {known}")
        return self._results[name]

    # ---- functions that are called for you ----

    def run(
        self, name: str, function: Callable[..., object], /, *args: Any, items: float = 1
    ) -> BenchmarkResult:
        """Measure a function: `num_warmup` calls, then `num_iterations` samples.

        A call that is shorter than `sample_seconds` is repeated within each sample; finding out how
        often is part of the warm-up. An earlier result of the same name is replaced.

        Args:
            name: What the result is called.
            function: The function; use `functools.partial` for keyword arguments.
            *args: Its arguments, the same for all calls.
            items: Items that a call works on, for the throughput: the size of a batch.

        Raises:
            ArgumentError: `function` is not callable, or `items` is not a positive number.

        >>> config = gt.BenchmarkConfig(num_iterations=5, sample_seconds=1e-5)
        >>> gt.PerformanceBenchmark(config).run("add", np.add, 1.0, 2.0).mean_time_ms > 0.0
        True
        """
        self._check("run", name, items, function)
        peak = self._warm_up(function, args)
        loop = loop_of(function, args, self._clock)
        calls = calls_that_fill(loop, self._config.sample_seconds)
        samples = sampled(loop, calls, self._config.num_iterations)
        self._pairs.pop(name, None)
        return self._keep(name, samples, calls=calls, items=items, peak=peak)

    def run_interleaved(
        self, functions: Mapping[str, Callable[[], object]], /, *, items: float = 1
    ) -> dict[str, BenchmarkResult]:
        """Measure several functions in turns, a sample of each at a time, to compare them.

        What slows the machine down for a while hits all of them, so it cancels when `compare` forms
        ratios pair by pair.

        Args:
            functions: Functions without arguments, by name.
            items: Items that a call works on.

        Returns:
            The results by name.

        Raises:
            ArgumentError: There is no function, one is not callable, or `items` is not positive.

        >>> config = gt.BenchmarkConfig(num_iterations=10, sample_seconds=1e-5)
        >>> benchmark, x = gt.PerformanceBenchmark(config), np.ones(100)
        >>> found = benchmark.run_interleaved({"sum": lambda: x.sum(), "sort": lambda: np.sort(x)})
        >>> benchmark.compare("sum", "sort").paired
        True
        """
        if not isinstance(functions, Mapping) or not functions:
            raise ArgumentError(
                f"run_interleaved: got {functions!r}, expected functions by name: "
                '{"before": f, "after": g}'
            )
        for name, function in functions.items():
            self._check("run_interleaved", name, items, function)
        peaks = {name: self._warm_up(function, ()) for name, function in functions.items()}
        loops = {name: loop_of(f, (), self._clock) for name, f in functions.items()}
        length = self._config.sample_seconds
        calls = {name: calls_that_fill(loop, length) for name, loop in loops.items()}
        samples = sampled_in_turns(loops, calls, self._config.num_iterations)
        run = object()
        for name, seconds in samples.items():
            self._pairs.pop(name, None)
            self._keep(
                name, seconds, calls=calls[name], items=items, peak=peaks[name], taken_in=run
            )
        return {name: self._results[name] for name in functions}

    def _warm_up(self, function: Callable[..., object], args: tuple[Any, ...]) -> int | None:
        """Call a function before it is timed; the rise of memory in one more call, if asked for."""
        for _ in range(self._config.num_warmup):
            function(*args)
        if not self._config.measure_memory:
            return None
        begun = self._meter.begin()
        try:
            function(*args)
        finally:
            peak = self._meter.end(begun)
        return peak

    # ---- code of yours, between start and end ----

    def start_benchmark(self, name: str) -> None:
        """Start the clock for a sample; several names may be under way at once.

        Raises:
            ArgumentError: The name was started and has not ended.

        >>> benchmark = gt.PerformanceBenchmark(gt.BenchmarkConfig(num_warmup=0))
        >>> benchmark.start_benchmark("sum")
        >>> total = np.ones(1000).sum()
        >>> benchmark.end_benchmark("sum").mean_time_ms > 0.0
        True
        """
        self._check("start_benchmark", name, 1)
        if name in self._started:
            raise ArgumentError(
                f"start_benchmark: got {name!r}, which was started already; call "
                f"end_benchmark({name!r}) first, or use another name"
            )
        begun = self._meter.begin() if self._config.measure_memory else None
        self._started[name] = begun, self._clock()

    def end_benchmark(self, name: str, *, items: float = 1) -> BenchmarkResult:
        """Stop the clock and return the result over all samples of the name so far.

        The first `num_warmup` samples of a name do not count. Until there are more, the result is
        over those, and its `warming_up` is True.

        Args:
            name: The name that was started.
            items: Items that were worked on, for the throughput.

        Raises:
            ArgumentError: The name was not started, or `items` is not a positive number.
        """
        end = self._clock()
        if name not in self._started:
            under_way = ", ".join(map(repr, self._started)) or "none"
            raise ArgumentError(
                f"end_benchmark: got {name!r}, which was not started (under way: {under_way}); "
                f"call start_benchmark({name!r}) first"
            )
        self._check("end_benchmark", name, items)
        begun, start = self._started.pop(name)
        pairs = self._pairs.setdefault(name, _Pairs())
        pairs.seconds.append(end - start)
        pairs.items.append(float(items))
        pairs.peaks.append(self._meter.end(begun))
        warming_up = len(pairs.seconds) <= self._config.num_warmup
        first = 0 if warming_up else self._config.num_warmup
        counted, peaks = pairs.items[first:], [p for p in pairs.peaks[first:] if p is not None]
        return self._keep(
            name,
            pairs.seconds[first:],
            items=sum(counted) / len(counted),
            peak=max(peaks, default=None),
            warming_up=warming_up,
        )

    def measure(self, name: str, *, items: float = 1) -> _Measured:
        """`start_benchmark` and `end_benchmark` as a block; one that raises does not count.

        Args:
            name: What is measured.
            items: Items that are worked on, for the throughput.

        >>> benchmark = gt.PerformanceBenchmark(gt.BenchmarkConfig(num_warmup=1))
        >>> for _ in range(10):
        ...     with benchmark.measure("sum"):
        ...         total = np.ones(1000).sum()
        >>> len(benchmark.result("sum").samples)
        9
        """
        self._check("measure", name, items)
        return _Measured(self, name, items)

    def _abandon(self, name: str) -> None:
        """Forget that a name was started."""
        begun, _ = self._started.pop(name, (None, 0.0))
        self._meter.end(begun)

    # ---- what came out ----

    def compare(
        self,
        first: str | BenchmarkResult,
        second: str | BenchmarkResult,
        *,
        paired: bool | None = None,
    ) -> BenchmarkComparison:
        """Say which of two is faster, by how much, and whether that can be told.

        Samples of `run_interleaved` are compared pair by pair, by an interval of the median ratio
        between two order statistics. Others are compared by the ratio of their medians, with an
        interval after Price and Bonett. Neither assumes anything about the distribution.

        Args:
            first: A name that was measured, or a result, also of another benchmark.
            second: The other one.
            paired: Whether sample i of both met the same machine; None if that is so for results
                of the same `run_interleaved`.

        Raises:
            ArgumentError: Nothing of that name was measured, or there are not as many samples of
                one as of the other and they should be paired.

        >>> before = gt.BenchmarkResult("before", [1.30, 1.32, 1.33, 1.31, 1.32, 1.34, 1.31, 1.33])
        >>> after = gt.BenchmarkResult("after", [1.00, 1.01, 1.00, 0.99, 1.01, 1.02, 1.00, 0.99])
        >>> print(gt.PerformanceBenchmark().compare(after, before))
        after is 1.32 times as fast as before, between 1.30 and 1.34 (95% sure)
        """
        one, other = (self.result(x) if isinstance(x, str) else x for x in (first, second))
        for given in (one, other):
            if not isinstance(given, BenchmarkResult):
                raise ArgumentError(
                    f"compare: got {a_type(given)}, expected a name that was measured, or a result"
                )
        return compare(one, other, paired=paired)

    def __str__(self) -> str:
        return "\n".join(map(str, self._results.values())) or "nothing was measured yet"

    def _keep(
        self,
        name: str,
        samples: list[float],
        *,
        items: float,
        peak: int | None,
        calls: int = 1,
        warming_up: bool = False,
        taken_in: object = None,
    ) -> BenchmarkResult:
        """Make the result of a name, in place of the one before."""
        self._results[name] = BenchmarkResult(
            name,
            tuple(samples),
            calls_per_sample=calls,
            items_per_call=float(items),
            peak_memory_bytes=peak,
            warming_up=warming_up,
            confidence=self._config.confidence,
            clock_step=self._clock_step,
            measure_throughput=self._config.measure_throughput,
            statistical_analysis=self._config.statistical_analysis,
            taken_in=taken_in,
        )
        return self._results[name]

    def _check(self, caller: str, name: object, items: object, function: object = len) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"{caller}: got {a_type(name)}, expected a name, a string")
        if not isinstance(items, int | float | np.number) or not 0 < items < np.inf:
            raise ArgumentError(f"{caller}: got items={items!r}, expected a positive number")
        if not callable(function):
            raise ArgumentError(
                f"{caller}: got {a_type(function)} for {name!r}, expected a function to call; "
                f'its arguments follow it: run("name", f, x)'
            )


class _Measured:
    """The block of `PerformanceBenchmark.measure`."""

    def __init__(self, benchmark: PerformanceBenchmark, name: str, items: float) -> None:
        self._benchmark, self._name, self._items = benchmark, name, items

    def __enter__(self) -> None:
        self._benchmark.start_benchmark(self._name)

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self._benchmark.end_benchmark(self._name, items=self._items)
        else:
            self._benchmark._abandon(self._name)
