"""`gt.PerformanceBenchmark`, with a clock that goes forward only when it is told to."""

import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError
from gradtape.tools import peak_memory, timing

QUIET = [1.00, 1.01, 1.02, 0.99, 1.00, 1.01, 0.98, 1.02, 1.00, 1.01, 0.99, 1.00]


class FakeClock:
    """Stands still until `work` is called."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock():
    return FakeClock()


def benchmark_with(clock, **options):
    return gt.PerformanceBenchmark(gt.BenchmarkConfig(**options), clock=clock)


# ---- run ----


def test_run_warms_up_and_repeats_short_calls(clock):
    calls = []
    benchmark = benchmark_with(clock, num_warmup=3, num_iterations=5, sample_seconds=1.0)
    result = benchmark.run("call", lambda x: (calls.append(x), clock.work(0.125)), 7.0, items=64)
    assert result.samples == (0.125,) * 5
    assert result.calls_per_sample == 8
    # 3 to warm up, 1 and then 8 to find out how many fill a second, 5 samples of 8.
    assert len(calls) == 3 + 1 + 8 + 5 * 8
    assert set(calls) == {7.0}
    assert (result.mean_time_ms, result.throughput_ops_per_sec) == (125.0, 8.0)
    assert result.throughput_items_per_sec == 512.0
    assert benchmark.result("call") is result


def test_run_calls_slow_functions_once_per_sample(clock):
    times = iter([9.0, 2.0, 1.0, 2.0, 3.0])
    benchmark = benchmark_with(clock, num_warmup=1, num_iterations=3)
    result = benchmark.run("slow", lambda: clock.work(next(times)))
    assert result.samples == (1.0, 2.0, 3.0)
    assert (result.calls_per_sample, result.median_time_ms, result.min_time_ms) == (1, 2e3, 1e3)


def test_an_interruption_does_not_decide_how_often_a_call_is_repeated(clock):
    interruptions = iter([0.05])
    loop = timing.loop_of(lambda: clock.work(1e-4 + next(interruptions, 0.0)), (), clock)
    assert timing.calls_that_fill(loop, 1e-3) == 10


def test_a_clock_that_stands_still_ends_the_loop(clock, monkeypatch):
    monkeypatch.setattr(timing, "_MOST_CALLS", 1000)
    result = benchmark_with(clock, num_iterations=2).run("nothing", int)
    assert result.samples == (0.0, 0.0)
    assert result.throughput_ops_per_sec == math.inf
    assert "the clock tells no less" in str(result)


def test_functions_take_turns(clock):
    log = []
    benchmark = benchmark_with(clock, num_warmup=0, num_iterations=3, sample_seconds=1.0)
    functions = {
        "a": lambda: (log.append("a"), clock.work(1.0)),
        "b": lambda: (log.append("b"), clock.work(2.0)),
    }
    results = benchmark.run_interleaved(functions)
    assert "".join(log) == "ab" + "abbaab"
    assert {name: result.samples for name, result in results.items()} == {
        "a": (1.0, 1.0, 1.0),
        "b": (2.0, 2.0, 2.0),
    }
    assert benchmark.results == results
    assert benchmark.compare("a", "b").paired


def test_an_error_of_the_function_is_raised_as_it_is(clock):
    benchmark = benchmark_with(clock)
    with pytest.raises(ZeroDivisionError):
        benchmark.run("fails", lambda: 1 / 0)
    assert benchmark.results == {}


# ---- start and end ----


def test_pairs_are_collected_without_the_warm_up(clock):
    benchmark = benchmark_with(clock, num_warmup=2)
    for seconds, items in ((9.0, 1), (8.0, 1), (1.0, 10), (3.0, 30)):
        benchmark.start_benchmark("step")
        clock.work(seconds)
        result = benchmark.end_benchmark("step", items=items)
    assert result.samples == (1.0, 3.0)
    assert (result.mean_time_ms, result.throughput_ops_per_sec) == (2000.0, 0.5)
    assert result.throughput_items_per_sec == 10.0
    assert not result.warming_up


def test_a_single_pair_has_a_result_that_says_it_is_of_the_warm_up(clock):
    benchmark = benchmark_with(clock)
    benchmark.start_benchmark("backward")
    clock.work(0.25)
    result = benchmark.end_benchmark("backward")
    assert result.mean_time_ms == 250.0
    assert result.warming_up
    assert result.advice == ("these are warm-up samples: measure more often than num_warmup times",)
    assert str(result).startswith("backward: 250 ms (median of 1 warm-up sample)")


def test_names_overlap(clock):
    benchmark = benchmark_with(clock, num_warmup=0)
    benchmark.start_benchmark("outer")
    clock.work(1.0)
    with benchmark.measure("inner", items=5):
        clock.work(2.0)
    outer = benchmark.end_benchmark("outer")
    inner = benchmark.result("inner")
    assert (outer.mean_time_ms, inner.mean_time_ms, inner.items_per_call) == (3000.0, 2000.0, 5.0)


def test_a_block_that_raises_does_not_count(clock):
    benchmark = benchmark_with(clock, num_warmup=0, measure_memory=True)
    for fails in (True, False):
        try:
            with benchmark.measure("block"):
                clock.work(1.0)
                if fails:
                    raise KeyError
        except KeyError:
            pass
    assert len(benchmark.result("block").samples) == 1


def test_a_run_replaces_pairs(clock):
    benchmark = benchmark_with(clock, num_warmup=0, num_iterations=2)
    with benchmark.measure("a"):
        clock.work(5.0)
    assert benchmark.run("a", lambda: clock.work(1.0)).samples == (1.0, 1.0)
    with benchmark.measure("a"):
        clock.work(7.0)
    assert benchmark.result("a").samples == (7.0,)


# ---- what is refused ----


def test_ending_without_a_start(clock):
    benchmark = benchmark_with(clock)
    benchmark.start_benchmark("other")
    with pytest.raises(
        ArgumentError, match=r"'a', which was not started \(under way: 'other'\); call start_bench"
    ):
        benchmark.end_benchmark("a")


def test_starting_twice(clock):
    benchmark = benchmark_with(clock)
    benchmark.start_benchmark("a")
    with pytest.raises(ArgumentError, match=r"'a', which was started already; call end_benchmark"):
        benchmark.start_benchmark("a")


def test_bad_items_leave_the_name_started(clock):
    benchmark = benchmark_with(clock)
    benchmark.start_benchmark("a")
    with pytest.raises(ArgumentError, match="got items=-1, expected a positive number"):
        benchmark.end_benchmark("a", items=-1)
    assert benchmark.end_benchmark("a").samples == (0.0,)


def test_unknown_names(clock):
    benchmark = benchmark_with(clock, num_warmup=0)
    with pytest.raises(ArgumentError, match="got 'a', expected a name that was measured: none yet"):
        benchmark.result("a")
    with benchmark.measure("b"):
        clock.work(1.0)
    with pytest.raises(ArgumentError, match="that was measured: 'b'"):
        benchmark.compare("b", "a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_iterations": 0}, "num_iterations=0, expected an integer, 1 or more"),
        ({"num_iterations": -3}, "num_iterations=-3"),
        ({"num_iterations": 2.5}, r"num_iterations=2\.5"),
        ({"num_iterations": True}, "num_iterations=True"),
        ({"num_warmup": -1}, "num_warmup=-1, expected an integer, 0 or more"),
        ({"num_warmup": "3"}, "num_warmup='3'"),
        ({"confidence": 95}, "confidence=95, expected a number between 0 and 1"),
        ({"confidence": math.nan}, "confidence=nan"),
        ({"sample_seconds": 0.0}, r"sample_seconds=0\.0, expected seconds, more than 0"),
    ],
)
def test_bad_configurations(options, message):
    with pytest.raises(ArgumentError, match=f"BenchmarkConfig: got {message}"):
        gt.BenchmarkConfig(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.run("a", 3), "run: got an int for 'a', expected a function to call"),
        (lambda b: b.run(len, "a"), "run: got a builtin.*expected a name, a string"),
        (lambda b: b.run("a", len, [], items=0), "run: got items=0, expected a positive number"),
        (lambda b: b.run("a", len, [], items="3"), "run: got items='3'"),
        (lambda b: b.start_benchmark(1), "start_benchmark: got an int, expected a name"),
        (lambda b: b.measure("a", items=-1), "measure: got items=-1"),
        (lambda b: b.run_interleaved({}), "run_interleaved: got {}, expected functions by name"),
        (lambda b: b.run_interleaved({"a": 1}), "run_interleaved: got an int for 'a'"),
        (lambda b: b.compare(1.0, 2.0), "compare: got a float, expected a name that was measured"),
        (lambda b: gt.PerformanceBenchmark(10), "got an int, expected a gt.BenchmarkConfig"),
        (lambda b: gt.BenchmarkResult("a", []), "got no samples, expected seconds"),
        (lambda b: gt.BenchmarkResult("a", [1.0, -2.0]), r"got -2\.0 among the samples"),
    ],
)
def test_bad_calls(call, message, clock):
    with pytest.raises(ArgumentError, match=message):
        call(benchmark_with(clock))


# ---- results ----


def test_what_is_turned_off_is_not_there(clock):
    benchmark = benchmark_with(
        clock, num_iterations=8, measure_throughput=False, statistical_analysis=False
    )
    result = benchmark.run("a", lambda: clock.work(1.0))
    assert (result.throughput_ops_per_sec, result.throughput_items_per_sec) == (None, None)
    assert (result.interval_ms, result.outliers, result.drift) == (None, None, None)
    assert result.advice == ()
    assert result.peak_memory_bytes is None
    assert str(result).splitlines() == [
        "a: 1 s (median of 8 samples)",
        "  mean 1 s, minimum 1 s, standard deviation 0 ns, MAD 0 ns, IQR 0 ns",
    ]


def test_text_of_a_result():
    result = gt.BenchmarkResult(
        "step",
        [1e-3 * x for x in [*QUIET, 5.0]],
        calls_per_sample=20,
        items_per_call=64.0,
        peak_memory_bytes=12_345_678,
    )
    assert str(result).splitlines() == [
        "step: 1 ms (median of 13 samples of 20 calls, 95% sure between 990 µs and 1.02 ms)",
        "  mean 1.31 ms, minimum 980 µs, standard deviation 1.11 ms, MAD 10 µs, IQR 10 µs, "
        "1 far out",
        "  763 calls per second, 48,855 items per second",
        "  12.3 MB above the start at the peak",
    ]


def test_results_can_be_kept():
    result = gt.BenchmarkResult("step", QUIET)
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(AttributeError):
        result.name = "other"


# ---- advice ----


def advice(samples, **options):
    return gt.BenchmarkResult("a", list(samples), **options).advice


def test_no_advice_on_quiet_samples():
    assert advice(QUIET) == ()


def test_advice_on_two_groups(rng):
    times = np.where(rng.random(60) < 0.3, 1.6e-3, 1e-3) * rng.normal(1.0, 0.01, 60)
    (found,) = [sentence for sentence in advice(times) if "two groups" in sentence]
    assert re.search(r"two groups of times, (1|1\.0\d|9\d\d) [mµ]s and 1\.(59|6|61) ms", found)
    assert "pin the process" in found


def test_advice_on_drift(rng):
    found = advice(np.linspace(1.2, 1.0, 40) * rng.normal(1.0, 0.01, 40))
    assert found[0].startswith("times fell by 1")
    assert "num_warmup" in found[0]
    assert "run_interleaved" in found[0]


def test_advice_on_slow_periods(rng):
    found = advice(np.repeat([1.0, 1.1, 1.0, 1.1, 1.0, 1.1], 10) * rng.normal(1.0, 0.01, 60))
    assert found[0].startswith("each sample is like the one before it")


def test_advice_on_spread(rng):
    wide, scattered = advice(1.0 + rng.exponential(size=20))
    assert "the median is known to ±" in wide
    assert "raise num_iterations to about" in wide
    assert "of the samples are more than" in scattered
    assert "pin threads" in scattered


def test_advice_on_few_samples():
    assert advice([1.0, 1.1]) == (
        "2 samples are too few for an interval of 95%: raise num_iterations to 6 or more",
    )
    assert "1 sample is too few" in advice([1.0])[0]
    assert "raise num_iterations to 8 or more" in advice([1.0], confidence=0.99)[0]


def test_advice_on_the_clock():
    (found,) = advice([2e-6, 3e-6] * 10, clock_step=1e-6)
    assert found.startswith("a sample takes 2.5 µs, and the clock tells no less than 1 µs apart")
    assert advice([2e-6] * 20, clock_step=1e-6, calls_per_sample=1000) == ()


def test_step_of_a_clock():
    readings = iter(np.repeat(np.arange(1000) * 0.25, 3))
    assert timing.step_of(lambda: float(next(readings))) == 0.25
    assert timing.step_of(lambda: 3.0) == 0.0


# ---- comparisons ----


def compared(first, second, **options):
    results = [gt.BenchmarkResult(name, list(x)) for name, x in (("new", first), ("old", second))]
    return gt.PerformanceBenchmark().compare(*results, **options)


def test_faster_and_slower():
    faster = compared(QUIET, np.multiply(1.3, QUIET))
    assert (faster.verdict, faster.paired) == ("faster", False)
    assert faster.low < faster.ratio < faster.high
    assert faster.ratio == pytest.approx(1.3)
    assert str(faster) == "new is 1.30 times as fast as old, between 1.28 and 1.32 (95% sure)"
    slower = compared(np.multiply(1.3, QUIET), QUIET)
    assert slower.verdict == "slower"
    assert str(slower) == "old is 1.30 times as fast as new, between 1.28 and 1.32 (95% sure)"


def test_alike():
    same = compared(np.repeat(QUIET, 10), np.repeat(QUIET, 10) * 1.001)
    assert same.verdict == "alike"
    assert str(same).startswith("new and old take the same time to within 1% (95% sure)")


def test_cannot_tell(rng):
    found = compared(rng.normal(1.0, 0.03, 10), rng.normal(1.0, 0.03, 10))
    assert found.verdict == "cannot tell"
    assert str(found).startswith("cannot tell new from old: new is between 0.9")
    assert found.advice[-1].startswith("to tell smaller differences, raise num_iterations")


def test_cannot_tell_from_few_samples():
    found = compared([1.0] * 3, [2.0] * 3)
    assert found.verdict == "cannot tell"
    assert str(found).startswith("cannot tell new from old: there are too few samples")
    assert "3 samples are too few" in found.advice[0]


def test_a_difference_smaller_than_the_drift_is_none(rng):
    rising = np.linspace(1.0, 1.3, 60) * rng.normal(1.0, 0.005, 60)
    later = 1.3 * rng.normal(1.0, 0.005, 60)
    found = compared(rising, later)
    assert found.low > 1.0
    assert found.verdict == "cannot tell"
    assert ", but times changed by 19% within a run" in str(found)
    assert "run_interleaved" in found.advice[0]


def test_pairs_cancel_what_slows_both_down(rng):
    machine = np.linspace(1.0, 2.0, 40)
    first, second = (f * machine * rng.normal(1.0, 0.01, 40) for f in (1.0, 1.1))
    assert compared(first, second).verdict == "cannot tell"
    found = compared(first, second, paired=True)
    assert (found.verdict, found.advice) == ("faster", ())
    assert found.low < 1.1 < found.high
    assert "(95% sure, by pairs)" in str(found)


def test_pairs_need_as_many_of_both():
    with pytest.raises(ArgumentError, match="got 12 samples of 'new' and 2 of 'old', expected pai"):
        compared(QUIET, [1.0, 2.0], paired=True)


def test_the_same_name_is_told_apart():
    before, after = (gt.BenchmarkResult("step", np.multiply(f, QUIET)) for f in (2.0, 1.0))
    found = gt.PerformanceBenchmark().compare(after, before)
    assert str(found).startswith("step (first) is 2.00 times as fast as step (second)")


def test_samples_of_nothing_are_not_compared():
    found = compared([0.0] * 20, [1.0] * 20)
    assert found.verdict == "cannot tell"
    assert math.isnan(found.ratio)
    assert compared([0.0] * 20, [1.0] * 20, paired=True).verdict == "cannot tell"


# ---- memory ----


class FakeSystem:
    """`/proc` of a process whose memory is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.status, self.reset = folder / "status", folder / "clear_refs"
        self.resident = self.peak = 0
        self.use(1000)

    def use(self, kilobytes: int) -> None:
        if self.reset.exists():
            self.reset.unlink()
            self.peak = self.resident
        self.resident, self.peak = kilobytes, max(self.peak, kilobytes)
        text = f"Name:\tpython\nVmHWM:\t{self.peak} kB\nVmRSS:\t{self.resident} kB\n"
        self.status.write_text(text)


@pytest.fixture
def system(tmp_path, monkeypatch):
    fake = FakeSystem(tmp_path)
    monkeypatch.setattr(peak_memory, "STATUS", fake.status)
    monkeypatch.setattr(peak_memory, "PEAK_RESET", fake.reset)
    return fake


def test_memory_is_that_at_the_peak(clock, system):
    benchmark = benchmark_with(clock, num_warmup=0, measure_memory=True)
    for peak in (1500, 1300):
        with benchmark.measure("a"):
            system.use(peak)
            system.use(1000)
    assert benchmark.result("a").peak_memory_bytes == 500 * 1024


def test_memory_of_names_that_overlap(clock, system):
    benchmark = benchmark_with(clock, num_warmup=0, measure_memory=True)
    with benchmark.measure("outer"):
        system.use(3000)
        system.use(2000)
        with benchmark.measure("inner"):
            system.use(2100)
        system.use(1000)
    assert benchmark.result("inner").peak_memory_bytes == 100 * 1024
    assert benchmark.result("outer").peak_memory_bytes == 2000 * 1024


def test_memory_of_a_run(clock, system):
    benchmark = benchmark_with(clock, num_iterations=1, measure_memory=True)

    def call():
        clock.work(1.0)
        system.use(1800)
        system.use(1000)

    assert benchmark.run("call", call).peak_memory_bytes == 800 * 1024


def test_no_memory_where_the_system_does_not_tell(clock, system):
    benchmark = benchmark_with(clock, num_warmup=0, num_iterations=1, measure_memory=True)
    for text in ("", "VmRSS:\t12 kB\n", "VmRSS:\tmany\nVmHWM:\tmany\n"):
        system.status.write_text(text)
        result = benchmark.run("call", lambda: clock.work(1.0))
        assert result.peak_memory_bytes is None
        assert "MB" not in str(result)
    system.status.unlink()
    assert benchmark.run("call", lambda: clock.work(1.0)).peak_memory_bytes is None
