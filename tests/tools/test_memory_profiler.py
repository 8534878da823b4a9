"""`GradientMemoryProfiler`: exact totals, attribution to ops and lines, unchanged results."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.cpu.runtime import allocations, blocks
from gradtape.core.state import STATE, WATCHING
from gradtape.errors import ArgumentError, TapeError
from gradtape.tools import memory_journal

MB = 1 << 20
N = MB // 8  # a megabyte of float64
HERE = os.path.abspath(__file__)

exact = pytest.mark.skipif(
    not isinstance(allocations._source(), allocations._Native),
    reason="tracemalloc counts on this interpreter, and counts more than arrays",
)


@pytest.fixture(autouse=True)
def _loaded() -> None:
    x = gt.tensor(np.ones(N), requires_grad=True)
    gt.sum(gt.tanh(x) * x).backward()
    gc.collect()


def chain(depth: int = 8) -> Any:
    """The gradient of some layers of a megabyte each."""
    tape = gt.GradientTape()
    h = x = tape.watch(np.linspace(-1.0, 1.0, N))
    for _ in range(depth):
        h = gt.tanh(h * 1.01 + 0.01)
    return np.asarray(tape.gradient(gt.sum(h), x))


def uses(table: Any, name: str, phase: str = "forward") -> Any:
    (found,) = [use for use in table if (use.op or use.line) == name and use.phase == phase]
    return found


# ---- totals ----


@exact
def test_op_on_a_megabyte_raises_what_is_in_use_by_exactly_that():
    x = gt.tensor(np.ones(N), requires_grad=True)
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.tanh(x)
        assert profiler.current_bytes() == MB
        z = y * x
        assert profiler.current_bytes() == 2 * MB
        del z
        assert profiler.current_bytes() == MB
        del y
        assert profiler.current_bytes() == 0
        assert profiler.peak_bytes() == 2 * MB
        assert profiler.allocated_bytes() == 2 * MB


@exact
def test_each_start_counts_from_its_own_zero():
    peaks = []
    profilers = []
    for depth in (8, 2, 8):
        profilers.append(gt.GradientMemoryProfiler())
        profilers[-1].start_profiling()
        chain(depth)
        peaks.append(profilers[-1].peak_bytes())
    assert peaks[0] == pytest.approx(peaks[2], abs=100)
    assert peaks[0] - peaks[1] == pytest.approx(6 * MB, abs=100)
    # The first has gone on all the time: the results above are gone.
    assert profilers[0].peak_bytes() == pytest.approx(peaks[0], abs=100)
    for profiler in reversed(profilers):
        profiler.stop_profiling()


@exact
def test_figures_stay_after_the_stop():
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.tanh(np.ones(N))
    figures = profiler.current_bytes(), profiler.peak_bytes()
    z = gt.tanh(np.ones(40 * N))
    assert (profiler.current_bytes(), profiler.peak_bytes()) == figures
    del y, z
    profiler.stop_profiling()
    assert profiler.current_bytes() == figures[0]


@exact
def test_start_begins_anew():
    profiler = gt.GradientMemoryProfiler()
    profiler.start_profiling()
    profiler.record_checkpoint("a")
    y = gt.tanh(np.ones(N))
    profiler.start_profiling()
    assert profiler.current_bytes() == profiler.peak_bytes() == 0
    assert profiler.checkpoints() == profiler.by_op() == []
    profiler.stop_profiling()
    assert y.shape == (N,)


def test_profiler_that_is_dropped_stops():
    source: Any = allocations._source()
    profiler = gt.GradientMemoryProfiler()
    profiler.start_profiling()
    y = gt.ones(3) + 1.0
    assert WATCHING
    assert allocations._counters._meters
    del profiler
    gc.collect()
    y = y + 1.0
    assert not WATCHING
    assert STATE.get().plain
    assert allocations._counters._meters == ()
    assert source is allocations._source()


def test_stop_from_another_thread():
    profiler = gt.GradientMemoryProfiler()
    profiler.start_profiling()
    thread = threading.Thread(target=profiler.stop_profiling)
    thread.start()
    thread.join()
    assert gt.ones(3).sum() == 3
    assert STATE.get().plain


def test_profilers_may_end_in_any_order():
    one, other = gt.GradientMemoryProfiler(), gt.GradientMemoryProfiler()
    one.start_profiling()
    other.start_profiling()
    gt.exp(gt.ones(3))
    one.stop_profiling()
    gt.sin(gt.ones(3))
    other.stop_profiling()
    assert {use.op for use in one.by_op()} == {"exp"}
    assert {use.op for use in other.by_op()} == {"exp", "sin"}
    assert STATE.get().plain


@exact
def test_other_threads_count_in_the_totals():
    made: list[Any] = []
    with gt.GradientMemoryProfiler() as profiler:
        thread = threading.Thread(target=lambda: made.append(gt.tanh(np.ones(N))))
        thread.start()
        thread.join()
        assert profiler.current_bytes() == MB
    assert profiler.by_op() == []


@exact
@pytest.mark.skipif(blocks.for_array(MB) is None, reason="nothing is kept")
def test_what_waits_is_apart():
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.tanh(np.ones(N))
        before = profiler.waiting_bytes()
        del y
        assert profiler.waiting_bytes() == before + MB
        assert profiler.current_bytes() == 0


# ---- nothing is changed ----


def compiled_step() -> Any:
    compiled = gt.jit(lambda w: gt.sum(gt.tanh(w) * np.sort(w)))
    w = gt.tensor(np.linspace(0.0, 1.0, N), requires_grad=True)
    compiled(w).backward()
    return w.grad.numpy()


def mlp_step() -> Any:
    shapes = ((200, 300), (300, 300), (300, 10))
    ws = [gt.tensor(np.cos(np.arange(a * b)).reshape(a, b), requires_grad=True) for a, b in shapes]
    h = gt.tensor(np.sin(np.arange(256 * 200)).reshape(256, 200))
    for w in ws[:-1]:
        h = h + gt.gelu(h @ w) if h.shape == (256, 300) else gt.gelu(h @ w)
    gt.sum(gt.log_softmax(h @ ws[-1])[:, 0]).backward()
    return np.concatenate([w.grad.numpy().ravel() for w in ws])


def hessian() -> Any:
    return gt.hessian(lambda x: gt.sum(gt.tanh(x) * x * x))(np.linspace(0.0, 1.0, 20))


@pytest.mark.parametrize("work", [chain, compiled_step, mlp_step, hessian])
def test_results_have_the_same_bits(work):
    expected = work()
    with gt.GradientMemoryProfiler():
        assert work().tobytes() == expected.tobytes()


# Scalars are made in another order, and both cotangents of a matrix product exist at a time.
@exact
@pytest.mark.parametrize(
    ("work", "most"), [(chain, 100), (compiled_step, 100), (mlp_step, 256 * 300 * 8)]
)
def test_measuring_ops_hardly_changes_the_peak(work, most):
    work()
    peaks = []
    for ops in (False, True):
        profiler = gt.GradientMemoryProfiler()
        profiler.start_profiling(ops=ops)
        work()
        profiler.stop_profiling()
        peaks.append(profiler.peak_bytes())
    assert peaks[1] == pytest.approx(peaks[0], abs=most)


def test_totals_alone_need_no_mode():
    profiler = gt.GradientMemoryProfiler()
    profiler.start_profiling(ops=False)
    assert STATE.get().plain
    profiler.stop_profiling()


# ---- checkpoints ----


@exact
def test_difference_of_checkpoints():
    profiler = gt.GradientMemoryProfiler()
    profiler.start_profiling()
    profiler.record_checkpoint("before")
    y = gt.tanh(np.ones(N))
    profiler.record_checkpoint("after")
    assert profiler.get_memory_delta("before", "after") == MB
    assert profiler.get_memory_delta("after", "before") == -MB
    del y
    profiler.record_checkpoint("after")
    assert profiler.get_memory_delta("before", "after") == 0
    profiler.stop_profiling()
    assert [checkpoint.name for checkpoint in profiler.checkpoints()] == [
        "before",
        "after",
        "after",
    ]
    assert [checkpoint.bytes for checkpoint in profiler.checkpoints()] == [0, MB, 0]


def test_unknown_checkpoint_names_the_known_ones():
    with gt.GradientMemoryProfiler() as profiler:
        with pytest.raises(ArgumentError, match="none was recorded"):
            profiler.get_memory_delta("a", "b")
        profiler.record_checkpoint("start")
        profiler.record_checkpoint("end")
        with pytest.raises(ArgumentError, match=r"got 'stop', expected .*: 'start', 'end'"):
            profiler.get_memory_delta("start", "stop")


def test_bad_calls_say_what_to_do(tmp_path):
    profiler = gt.GradientMemoryProfiler()
    for ask in (profiler.peak_bytes, profiler.current_bytes, profiler.by_op, profiler.detect_leaks):
        with pytest.raises(TapeError, match=r"start_profiling\(\) first"):
            ask()
    with pytest.raises(TapeError, match="first"):
        profiler.record_checkpoint("a")
    assert str(profiler) == repr(profiler) == "<GradientMemoryProfiler, not started>"
    profiler.start_profiling(ops=False)
    for ask in (profiler.by_op, profiler.by_line, profiler.timeline, profiler.detect_leaks):
        with pytest.raises(TapeError, match="ops=False"):
            ask()
    with pytest.raises(TapeError, match="ops=False"):
        profiler.export_html(tmp_path / "page.html")
    with pytest.raises(ArgumentError, match="got an int, expected a name"):
        profiler.record_checkpoint(3)  # type: ignore[arg-type]
    assert "peak" in profiler.report()
    profiler.stop_profiling()
    profiler.stop_profiling()


# ---- by op and by line ----


@exact
def test_figures_of_ops():
    x = gt.tensor(np.ones(N), requires_grad=True)
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.tanh(x)
        z = gt.tanh(y)
        gt.sum(z).backward()
    tanh = uses(profiler.by_op(), "tanh")
    assert (tanh.calls, tanh.allocated, tanh.held) == (2, 2 * MB, 2 * MB)
    assert tanh.at_peak == 2 * MB
    backward = uses(profiler.by_op(), "tanh", "backward")
    assert (backward.calls, backward.held) == (2, MB)
    # A rule may make a small array to be told whether 0 met infinity.
    assert backward.allocated == pytest.approx(2 * MB, abs=100)
    total = sum(use.at_peak for use in profiler.by_op())
    assert total == pytest.approx(profiler.peak_bytes(), abs=100)
    del y, z
    assert uses(profiler.by_op(), "tanh").held == 0


@exact
def test_temporaries_count_for_the_op_that_took_them():
    x = gt.tensor(np.linspace(0.0, 1.0, N))
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.host_call(lambda a: np.sum(a * 2.0), np.float64(0.0), x)
    assert profiler.peak_bytes() >= MB
    assert sum(use.at_peak for use in profiler.by_op()) == profiler.peak_bytes()
    assert sum(use.held for use in profiler.by_op()) < MB
    assert y.shape == ()


@exact
def test_lines_are_those_of_the_user_also_for_rules():
    x = gt.tensor(np.ones(N), requires_grad=True)
    first = sys._getframe().f_lineno
    with gt.GradientMemoryProfiler() as profiler:
        y = np.tanh(x)
        z = y * y + y
        gt.sum(z).backward()
    lines = {(use.line, use.phase): use for use in profiler.by_line()}
    assert lines[f"{HERE}:{first + 2}", "forward"].allocated == MB
    assert lines[f"{HERE}:{first + 2}", "backward"].calls == 1
    assert lines[f"{HERE}:{first + 3}", "forward"].calls == 2
    assert lines[f"{HERE}:{first + 3}", "forward"].held == MB
    assert lines[f"{HERE}:{first + 3}", "backward"].calls == 2
    assert lines[f"{HERE}:{first + 4}", "backward"].calls == 1


@exact
def test_compiled_function_is_one_op_with_its_arena():
    def layer(x: Any) -> Any:
        return gt.sum(np.sort(gt.tanh(x)) * x)

    compiled = gt.jit(layer)
    x = np.linspace(0.0, 1.0, N)
    compiled(x)
    with gt.GradientMemoryProfiler() as profiler:
        compiled(x)
    (use,) = profiler.by_op()
    assert (use.op, use.calls, use.held) == ("layer", 1, 0)
    assert use.allocated >= MB
    assert use.at_peak == profiler.peak_bytes() >= MB


@exact
def test_views_hold_nothing_of_their_own():
    x = gt.tensor(np.ones(N))
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.tanh(x)
        views = [y.reshape(2, -1), y[1:], x.reshape(2, -1), x[3:]]
    held = {use.op: use.held for use in profiler.by_op() if use.held}
    assert held == {"tanh": MB}
    assert len(views) == 4


def test_rules_of_unknown_records_count_for_the_backward_pass():
    x = gt.tensor(np.ones(5), requires_grad=True)
    y = gt.sum(gt.exp(x))
    with gt.GradientMemoryProfiler() as profiler:
        y.backward()
    assert {(use.op, use.phase) for use in profiler.by_op()} == {
        ("sum", "backward"),
        ("exp", "backward"),
    }


def test_ops_in_a_recorded_backward_pass_are_of_the_backward_pass():
    x = gt.tensor(np.ones(5), requires_grad=True)
    with gt.GradientMemoryProfiler() as profiler:
        gt.sum(gt.tanh(x)).backward(create_graph=True)
    phases = {(use.op, use.phase) for use in profiler.by_op()}
    assert ("tanh", "forward") in phases
    assert ("tanh", "backward") in phases
    assert ("multiply", "backward") in phases
    assert ("multiply", "forward") not in phases


@exact
def test_what_is_computed_again_is_of_the_backward_pass():
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Block, checkpoint_every_n=4)

    def work() -> None:
        tape = gt.GradientTape(checkpoint=config)
        h = x = tape.watch(np.linspace(-1.0, 1.0, N))
        for _ in range(16):
            h = gt.tanh(h)
        tape.gradient(gt.sum(h), x)

    work()
    peaks = []
    for ops in (False, True):
        profiler = gt.GradientMemoryProfiler()
        profiler.start_profiling(ops=ops)
        work()
        peaks.append(profiler.peak_bytes())
        profiler.stop_profiling()
    assert peaks[1] == pytest.approx(peaks[0], abs=100)
    assert peaks[0] < 12 * MB
    again = uses(profiler.by_op(), "tanh", "backward").calls - 16
    assert 8 <= again <= 16
    total = sum(use.at_peak for use in profiler.by_op())
    assert peaks[1] - total < MB + 100  # the values that the tape watched


def test_error_in_an_op_is_measured_too():
    x = gt.tensor(np.ones(5))
    with gt.GradientMemoryProfiler() as profiler:
        with pytest.raises(gt.GradtapeError):
            x + gt.ones(3)
        x + 1.0
    assert uses(profiler.by_op(), "add").calls == 2
    assert STATE.get().plain


def test_report_has_totals_checkpoints_ops_and_lines():
    x = gt.tensor(np.ones(N), requires_grad=True)
    with gt.GradientMemoryProfiler() as profiler:
        profiler.record_checkpoint("begin")
        y = gt.tanh(x)
        gt.sum(y).backward()
    text = str(profiler)
    for part in (
        "peak ",
        "in use",
        "waiting",
        "begin",
        "tanh, backward",
        "test_memory_profiler.py:",
    ):
        assert part in text
    assert "stopped" in repr(profiler)
    assert len(profiler.report(rows=1).splitlines()) < len(text.splitlines())


# ---- the timeline ----


@exact
def test_timeline_has_a_sample_after_each_op():
    x = gt.tensor(np.ones(N), requires_grad=True)
    with gt.GradientMemoryProfiler() as profiler:
        y = gt.tanh(x)
        z = gt.sum(y)
        z.backward()
    found = [(sample.op, sample.phase) for sample in profiler.timeline()]
    assert found == [
        ("tanh", "forward"), ("sum", "forward"), ("sum", "backward"), ("tanh", "backward"),
    ]  # fmt: skip
    assert profiler.timeline()[0].bytes == MB
    times = [sample.time for sample in profiler.timeline()]
    assert times == sorted(times)
    assert all(sample.line.startswith(HERE) for sample in profiler.timeline())


def test_long_timelines_keep_the_highest_of_neighbours(monkeypatch):
    monkeypatch.setattr(memory_journal, "_MOST_SAMPLES", 50)
    x = gt.tensor(np.ones(1000))
    with gt.GradientMemoryProfiler() as profiler:
        for n in range(200):
            y = gt.tile(x, 30) if n == 77 else gt.exp(x)
            del y
    samples = profiler.timeline()
    assert len(samples) <= 50
    assert "tile" in {sample.op for sample in samples}
    assert sum(use.calls for use in profiler.by_op()) == 200


def test_it_keeps_no_array_alive():
    x = gt.tensor(np.ones(1000), requires_grad=True)
    with gt.GradientMemoryProfiler() as profiler:
        for _ in range(20):
            gt.sum(gt.exp(x)).backward()
            x.grad = None
        gc.collect()
        journal: Any = profiler._journal
        assert len(journal.arrays) == 0
        assert len(journal.records) == 0


PLAIN = """
import numpy as np, gradtape as gt
x = gt.tensor(np.ones(1 << 17), requires_grad=True)
gt.sum(gt.tanh(x)).backward()
with gt.GradientMemoryProfiler() as profiler:
    y = gt.tanh(x)
    gt.sum(y).backward()
assert 2 << 20 <= profiler.peak_bytes() < 5 << 20, profiler.peak_bytes()
assert {use.op for use in profiler.by_op()} >= {"tanh", "sum"}
assert profiler.detect_leaks().num_suspicious == 0
"""


@pytest.mark.parametrize("settings", [{"GRADTAPE_WITHOUT": "all"}, {"GRADTAPE_KEEP_MB": "0"}])
def test_with_pieces_switched_off(settings):
    environment = {**os.environ, **settings}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
