"""The parts of the benchmarks that decide whether a figure is right; nothing is held to a time."""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import gradtape as gt
from gradtape.tools.statistics import Spread

# The package sets the number of BLAS threads for its own process; not for that of the tests.
with patch.dict(os.environ):
    pytest.importorskip("benchmarks", reason="only in the repository, not in the distribution")
    from benchmarks import (
        before,
        compile_growth,
        compiled,
        compiled_c,
        compiled_gradtape,
        compiled_worker,
        graphs,
        loop_functions,
        loop_memory,
        report,
    )
    from benchmarks.agreement import assert_agree
    from benchmarks.backward_peak_worker import WAYS, case, layers_slopes
    from benchmarks.before_cases import PROGRAMS, STATEMENTS
    from benchmarks.compiled_cases import CASES, SMALL, Case
    from benchmarks.compiled_functions import KINDS
    from benchmarks.compiled_gradtape import numpy_program, reference
    from benchmarks.compiled_program import STEPS, Clock, Program, UnavailableError, check
    from benchmarks.harness import Settings
    from benchmarks.house import lines_of_code
    from benchmarks.loop_memory_worker import ITERATIONS, SIZE, drift, drift_slope
    from benchmarks.plain_loops import PlainLoops
    from benchmarks.result import NotRun, Row

LIGHT = [case for case in CASES.values() if "10⁷" not in case.name]


def row(ratio: float, bar: float | None, *, speedup: bool) -> Row:
    return Row(
        "name", "what", 1.0, "peer", 2.0, Spread(ratio, 0.0, 9.0), bar, speedup=speedup, threads=2
    )


@pytest.mark.parametrize(
    ("ratio", "bar", "speedup", "met"),
    [
        (0.5, 0.7, False, True),
        (0.8, 0.7, False, False),
        (2.5, 2.0, True, True),
        (1.5, 2.0, True, False),
        (1.5, None, True, None),
    ],
)
def test_a_speedup_has_to_reach_its_bar_and_a_cost_to_stay_below(ratio, bar, speedup, met):
    assert row(ratio, bar, speedup=speedup).met is met


def test_report_keeps_speedups_apart_and_says_what_was_not_run():
    rows = [row(0.5, 0.7, speedup=False), row(2.5, 2.0, speedup=True)]
    text = report.markdown(rows, [NotRun("softmax", "torch.compile", "no g++")], {}, {})
    eager, compiled_part = text.split("## Compiled")
    assert "≤ 0.7 | yes" in eager
    assert "≥" not in eager
    assert "| 2 | 1 s | peer | 2 s | **2.50** |" in compiled_part
    assert "≥ 2 | yes" in compiled_part
    assert "- softmax, torch.compile: no g++" in compiled_part


def test_agreement_is_relative_to_the_largest_entry_above_the_floor():
    assert_agree("small", [1e-6], [2e-6], rtol=1e-3)
    with pytest.raises(AssertionError, match=r"differs .* by 5\.0e-01"):
        assert_agree("small", [1e-6], [2e-6], rtol=1e-3, floor=0.0)
    with pytest.raises(AssertionError, match="differs"):
        assert_agree("not a number", [np.nan], [1.0], floor=0.0)


def test_cases_name_known_kinds_and_sides():
    sides = {side for case in CASES.values() for side in case.bars}
    assert sides == set(compiled.PEERS)
    assert {*sides, "gradtape"} == set(compiled_worker.SIDES)
    assert {case.kind for case in CASES.values()} == set(KINDS)


@pytest.mark.parametrize("case", LIGHT, ids=lambda case: case.name)
def test_numpy_agrees_with_the_reference(case: Case, thorough: bool):
    arrays = case.arrays
    if case.kind in ("softmax", "layer norm") and not thorough:
        # Thousands of rows, each by itself.
        rows = {name: a[:8] if a.ndim == 2 else a for name, a in case.arrays().items()}
        arrays = lambda: {name: a.copy() for name, a in rows.items()}  # noqa: E731
    if case.kind in ("cube roots", "anomalies") and not thorough:
        # Thousands of values, each in a loop of Python.
        arrays = lambda: {"values": case.arrays()["values"][:100]}  # noqa: E731
    results = numpy_program(case.kind, arrays()).results()
    check(case.name, results, reference(case.kind, arrays()), case.rtol)


def test_reference_of_softmax_is_its_closed_form():
    arrays = {name: a[:5].astype(float) for name, a in CASES["softmax"].arrays().items()}
    e = np.exp(arrays["x"])
    s = e / e.sum(axis=1, keepdims=True)
    dx = s * (arrays["g"] - np.sum(arrays["g"] * s, axis=1, keepdims=True))
    check("softmax", reference("softmax", arrays), [s, dx], 1e-13)


def test_reference_of_rosenbrock_is_that_of_scipy():
    from scipy.optimize import rosen, rosen_der

    arrays = CASES["Rosenbrock"].arrays()
    expected = [np.asarray(rosen(arrays["x"])), rosen_der(arrays["x"])]
    check("Rosenbrock", reference("rosenbrock", arrays), expected, 1e-13)


def test_reference_of_a_step_of_adam_follows_the_gradient():
    case = CASES["training step"]
    before, after = case.arrays(), reference(case.kind, case.arrays())
    w1, mean, square, step, loss = after[0], after[4], after[8], after[12], after[13]
    assert step == before["state"]["step"] + 3
    assert 0.0 < loss < 10.0
    assert np.all(square > 0.0)
    # Adam moves every parameter by at most about its rate per step, against the first moment.
    moved = w1 - before["params"][0]
    clear = np.abs(mean) > 2e-3
    assert clear.sum() > 100
    assert np.mean(np.sign(moved[clear]) == -np.sign(mean[clear])) > 0.95


def test_wrong_results_are_refused():
    case = CASES["Rosenbrock"]
    exact = reference(case.kind, case.arrays())
    wrong = [exact[0], exact[1] * (1.0 + 1e-9)]
    with pytest.raises(AssertionError, match="Rosenbrock, result 1: differs"):
        check(case.name, wrong, exact, case.rtol)
    with pytest.raises(AssertionError, match="1 arrays against 2"):
        check(case.name, exact[:1], exact, case.rtol)


def test_training_starts_anew_for_every_batch_and_is_waited_for():
    log: list[str] = []
    names = {
        "begin": lambda: log.append("start") or 0,
        "step": lambda n: log.append("step") or n + 1,
        "finish": lambda: log.append("wait"),
    }
    program = Program("n = step(n)", names, start="n = begin()", wait="finish()", result="n")
    program.timer().timeit(2)
    assert log == ["start", *2 * ([*STEPS * ["step"], "wait"])]
    assert program.results() == [3]


def test_a_turn_gives_the_time_of_one_call():
    ticks = iter(range(10**6))
    program = Program("n = n + 1", {}, start="n = 0", result="n")
    with patch("benchmarks.compiled_program.time.perf_counter", lambda: float(next(ticks))):
        # Every batch lasts one tick of this clock, and one loop of STEPS calls fills it.
        assert Clock(program).turn(2.0, 3) == 3 * [pytest.approx(1.0 / STEPS)]


def test_a_worker_prepares_times_and_reports_errors():
    with compiled.Worker(compiled.WORKER, "numpy", 1, {}) as worker:
        assert worker.ask({"do": "prepare", "case": "call"}) == {}
        assert min(worker.ask({"do": "turn", "seconds": 1e-4, "least": 1})["batches"]) > 0.0
        answer = worker.ask({"do": "prepare", "case": "no such case"})
        assert answer == {"failed": "KeyError: 'no such case'"}
        worker._process.send_signal(signal.SIGKILL)
        assert "the process ended with -9" in worker.ask({"do": "turn"})["failed"]


def test_a_side_that_is_not_installed_is_unavailable():
    with (
        patch.dict(compiled_worker.SIDES, absent=("no_such_library", "program")),
        pytest.raises(UnavailableError, match="no_such_library is not installed"),
    ):
        compiled_worker.Side("absent")


def test_ratios_are_formed_turn_by_turn():
    case = SMALL[0]
    tally = compiled.Tally(2)
    for ours, theirs in ((1.0, 30.0), (2.0, 40.0), (4.0, 100.0)):
        tally.add(case, "gradtape", {"batches": [0.5 * ours, ours, 90.0]})
        tally.add(case, "jax", {"batches": [theirs]})
    tally.add(case, "jax-sync", {"unavailable": "not here"})
    tally.add(case, "torch", {"failed": "AssertionError: wrong"})
    (speedup, missing) = tally.results([case])
    assert (speedup.ours, speedup.peer, speedup.ratio.median) == (2.0, 40.0, 25.0)
    assert (speedup.bar, speedup.met, speedup.threads) == (20.0, True, 2)
    assert missing == NotRun("small step, 2 threads", "jax.jit, synchronous dispatch", "not here")
    assert list(tally.failures()) == [("small step, 2 threads, torch", "AssertionError: wrong")]


def test_a_failure_is_raised_after_the_rows():
    case = SMALL[0]

    def measure(tally):
        for side, seconds in (("gradtape", 1.0), ("jax", 3.0), ("jax-sync", 2.0)):
            tally.add(case, side, {"seconds": seconds})
        tally.add(case, "torch", {"failed": "AssertionError: wrong"})

    results = compiled._results([case], Settings(processes={1: 2, 10**6: 1}), measure)
    found = []
    with pytest.raises(RuntimeError, match="small step, 1 thread, torch: AssertionError: wrong"):
        found.extend(results)
    assert [r.ratio.median for r in found if isinstance(r, Row)] == [3.0, 2.0]
    assert [r.side for r in found if isinstance(r, NotRun)] == ["1000000 threads"]


@pytest.mark.parametrize("family", compile_growth.FAMILIES, ids=lambda family: family.what)
def test_functions_of_a_family_grow_with_their_steps(family: compile_growth.Family):
    few, many = ((gt.jit(f).graph(*args)) for f, args in map(family.make, (4, 8)))
    leaves = len(many.inputs) - len(few.inputs)
    assert len(many.nodes) - len(few.nodes) >= 4 or leaves == 4


def test_growth_is_measured_per_step():
    family = compile_growth.Family("ops", 1, compile_growth.chain)
    found = compile_growth.growth(family, 2, gradient=True)
    assert found.what == "gradient, 10 ops"
    assert 0.0 < found.ratio.low <= found.ratio.median <= found.ratio.high
    assert found.bar == compile_growth.BAR


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_that_two_states_are_compared_by_run(statement):
    program = PROGRAMS[statement]()
    exec(program.call, dict(program.names))


def test_slower_is_what_nearly_all_turns_agree_on():
    ratios = [Spread(1.3, 1.1, 1.5), Spread(1.3, 0.8, 1.9), Spread(0.5, 0.4, 0.7), Spread(1, 1, 1)]
    mean, counts = before._summary(ratios)
    assert "4 programs" in mean
    assert counts.endswith("1; slower: 1")


def test_workers_run_with_a_gradtape_that_has_no_tools_of_today():
    # Earlier states of gradtape are measured by the workers of this checkout.
    program = "import sys, benchmarks.before_worker; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(before.__file__).parents[1],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "benchmarks.compiled_program" in loaded
    today = {f"gradtape.tools.{name}" for name in ("statistics", "timing", "peak_memory")}
    assert loaded & today == set()


# ---- loops and graphs ----

PLAIN = PlainLoops(np.stack)
newton_kinds = pytest.mark.parametrize("kind", ["cube roots", "anomalies"])


def newton_values(n: int) -> dict[str, np.ndarray]:
    return {"values": CASES["Newton, cube root"].arrays()["values"][:n]}


def test_reference_of_cube_roots_is_their_closed_form():
    values = newton_values(50)["values"]
    expected = [np.asarray(np.cbrt(values).sum()), np.cbrt(values) / (3.0 * values)]
    check("cube roots", reference("cube roots", {"values": values}), expected, 1e-12)


def test_reference_of_anomalies_solves_keplers_equation():
    means = CASES["Newton, Kepler"].arrays()["values"][:50]
    total, slopes = reference("anomalies", {"values": means})
    # dE/dM = 1/(1 − e·cos E), hence cos E, hence E between 0 and π.
    angles = np.arccos((1.0 - 1.0 / slopes) / loop_functions.ECCENTRICITY)
    found = angles - loop_functions.ECCENTRICITY * np.sin(angles)
    np.testing.assert_allclose(found, means, rtol=1e-7)
    np.testing.assert_allclose(total, angles.sum(), rtol=1e-8)


@newton_kinds
def test_c_agrees_with_the_reference(kind: str):
    arrays = newton_values(200)
    try:
        program = compiled_c.program(kind, arrays)
    except UnavailableError as error:
        pytest.skip(str(error))
    check(kind, program.results(), reference(kind, arrays), 1e-12)


@newton_kinds
def test_without_a_compiler_c_is_unavailable(kind: str, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UnavailableError, match="no-such-compiler was not found"):
        compiled_c.program(kind, newton_values(1))


def test_without_loops_our_side_is_unavailable():
    def missing(*args, **options):
        raise UnavailableError("this gradtape has no scan")

    arrays = CASES["Kalman scan"].arrays()
    library = compiled_gradtape.LIB._replace(scan=missing)
    with (
        patch.object(compiled_gradtape, "LIB", library),
        pytest.raises(UnavailableError, match="has no scan"),
    ):
        compiled_gradtape.program("kalman", arrays).results()


def test_the_double_pendulum_keeps_its_energy():
    start, params = (CASES["Runge–Kutta scan"].arrays()[name] for name in ("start", "params"))
    paths = []

    def scan(*args, **options):
        paths.append(PLAIN.scan(*args, **options)[1])
        return None, paths[0]

    loop_functions.pendulum_misfit(np, scan, start, params, 0.0)

    def energy(y):
        (a, b, u, v), (m1, m2, l1, l2) = y.T, params
        speeds = 2.0 * l1 * l2 * u * v * np.cos(a - b) + (l2 * v) ** 2
        moving = 0.5 * m1 * (l1 * u) ** 2 + 0.5 * m2 * ((l1 * u) ** 2 + speeds)
        height = -(m1 + m2) * l1 * np.cos(a) - m2 * l2 * np.cos(b)
        return moving + loop_functions.GRAVITY * height

    energies = energy(np.concatenate([start[None], paths[0]]))
    assert np.ptp(paths[0][:, 0]) > 1.0
    np.testing.assert_allclose(energies, energies[0], rtol=1e-6)


def test_loss_of_the_kalman_filter_is_that_of_the_joint_distribution():
    from scipy.stats import multivariate_normal

    arrays = CASES["Kalman scan"].arrays()
    A, C, steps = arrays["transition"], arrays["emission"], 5
    Q, R = np.diag(np.exp(arrays["log_q"])), np.diag(np.exp(arrays["log_r"]))
    covs = [A @ A.T + Q]
    for _ in range(steps - 1):
        covs.append(A @ covs[-1] @ A.T + Q)
    joint = np.zeros((2 * steps, 2 * steps))
    for i in range(steps):
        for j in range(i + 1):
            block = C @ np.linalg.matrix_power(A, i - j) @ covs[j] @ C.T + (i == j) * R
            joint[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = block
            joint[2 * j : 2 * j + 2, 2 * i : 2 * i + 2] = block.T
    observed = arrays["observed"][:steps]
    expected = -multivariate_normal(cov=joint).logpdf(observed.ravel())
    loss = reference("kalman", arrays | {"observed": observed})[0]
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_an_lstm_forgets_by_its_second_gate_and_shows_by_its_fourth():
    wx, wh, xs = np.ones((1, 4)), np.zeros((1, 4)), np.array([[[0.5]], [[0.0]]])
    bias = np.array([0.1, 0.2, 0.3, 0.4])
    out = loop_functions.lstm(np, lambda z: 1 / (1 + np.exp(-z)), PLAIN.scan, wx, wh, bias, xs)
    i, f, g, o = ([1 / (1 + np.exp(-(b + x))) for x in (0.5, 0.0)] for b in bias)
    g = [np.tanh(0.3 + x) for x in (0.5, 0.0)]
    cell = i[0] * g[0]
    np.testing.assert_allclose(out[0, 0, 0], o[0] * np.tanh(cell))
    np.testing.assert_allclose(out[1, 0, 0], o[1] * np.tanh(f[1] * cell + i[1] * g[1]))


def test_memory_is_that_at_the_peak():
    if not loop_memory.PEAK_RESET.exists():
        pytest.skip("only Linux can forget a peak")
    # 40 MB, gone before the call ends; Linux counts resident pages roughly. In a process of its
    # own, as the benchmark does it: here earlier tests may have left memory that is used again.
    program = (
        "import numpy as np; from benchmarks.loop_memory_worker import peak_of; "
        "print(peak_of(lambda: None), peak_of(lambda: np.ones(5_000_000).sum()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(loop_memory.__file__).parents[1],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    nothing, much = map(int, done.stdout.split())
    assert nothing < 4e6
    assert 38e6 < much < 60e6


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_the_layers_whose_memory_is_measured_have_the_slopes_they_are_checked_by(way):
    x, weights = case(5)
    expected = layers_slopes(x, [weight.detach().numpy() for weight in weights])
    for got, slope in zip(way(x, weights), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), slope, rtol=1e-12)


def test_the_loop_whose_memory_is_measured_has_the_slope_it_is_checked_by():
    x = np.linspace(0.0, 3.0, 5)
    found = gt.grad(lambda x: drift(PLAIN.while_loop, x, 30))(x)
    np.testing.assert_allclose(found, drift_slope(x, 30), rtol=1e-13)
    assert np.ptp(drift_slope(x, 30)) > 1e-3


def test_memory_is_held_against_the_states_that_are_kept():
    states = {"all": ITERATIONS, "sqrt": 200, "100": 200}
    assert states == loop_memory.KEPT
    found = loop_memory.row_of("sqrt", 200, [200 * 8 * SIZE, 400 * 8 * SIZE, 800 * 8 * SIZE])
    assert (found.ratio.median, found.met, found.unit) == (2.0, True, "bytes")
    assert '`save="sqrt"`' in found.what
    assert "`save=100`" in loop_memory.row_of("100", 200, [1]).what


def test_a_graph_has_a_node_for_each_step_of_the_chain():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few, many = (gt.jit(lambda x, n=n: graphs.chain(x, n)).graph(np.ones(3)) for n in (10, 60))
    assert len(many.nodes) - len(few.nodes) == 50
    value, slope = graphs.expected(np.linspace(-1.0, 1.0, 4), 1_000)
    assert np.isfinite(value)
    assert np.all(np.isfinite(slope))


@pytest.mark.skipif(not hasattr(gt, "run"), reason="no lazy graphs yet")
def test_the_time_of_a_graph_includes_a_check_of_its_results():
    assert graphs.seconds(50) > 0.0
    with (
        patch.object(graphs, "expected", lambda given, nodes: (0.0, given)),
        pytest.raises(AssertionError, match="graph of 50 nodes"),
    ):
        graphs.seconds(50)


# ---- how large the house is ----


def test_what_counts_as_code():
    text = '"""Doc."""\n\nimport os\nfrom a import (\n    b,\n)\n# why\nx = (\n    1\n)\n'
    function = 'def f():\n    """Doc.\n\n    More.\n    """\n    return 1\n'
    assert lines_of_code(text) == 3
    assert lines_of_code(text + function) == 5
