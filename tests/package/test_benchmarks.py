"""The parts of the benchmarks that decide whether a figure is right; nothing is held to a time."""

import os
import signal
from unittest.mock import patch

import numpy as np
import pytest

import gradtape as gt

# The package sets the number of BLAS threads for its own process; not for that of the tests.
with patch.dict(os.environ):
    pytest.importorskip("benchmarks", reason="only in the repository, not in the distribution")
    from benchmarks import before, compile_growth, compiled, compiled_worker, report
    from benchmarks.before_cases import PROGRAMS, STATEMENTS
    from benchmarks.compiled_cases import CASES, SMALL, Case
    from benchmarks.compiled_functions import KINDS
    from benchmarks.compiled_gradtape import numpy_program, reference
    from benchmarks.compiled_program import STEPS, Clock, Program, UnavailableError, check
    from benchmarks.harness import Settings, Spread, assert_agree
    from benchmarks.house import lines_of_code
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
    w1, square, step, total, loss = after[0], after[4], after[8], after[9], after[13]
    assert step == before["state"]["step"] + 3
    assert 0.0 < loss < 10.0
    assert np.all(square > 0.0)
    # Adam moves every parameter by at most about its rate per step, against the first moment.
    moved = w1 - before["params"][0]
    clear = np.abs(total) > 2e-2
    assert clear.sum() > 100
    assert np.mean(np.sign(moved[clear]) == -np.sign(total[clear])) > 0.95


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
        assert Clock(program).turn(2.0, 3) == pytest.approx(1.0 / STEPS)


def test_a_worker_prepares_times_and_reports_errors():
    with compiled.Worker(compiled.WORKER, "numpy", 1, {}) as worker:
        assert worker.ask({"do": "prepare", "case": "call"}) == {}
        assert worker.ask({"do": "turn", "seconds": 1e-4, "least": 1})["seconds"] > 0.0
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
        tally.add(case, "gradtape", {"seconds": ours})
        tally.add(case, "jax", {"seconds": theirs})
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


# ---- how large the house is ----


def test_what_counts_as_code():
    text = '"""Doc."""\n\nimport os\nfrom a import (\n    b,\n)\n# why\nx = (\n    1\n)\n'
    function = 'def f():\n    """Doc.\n\n    More.\n    """\n    return 1\n'
    assert lines_of_code(text) == 3
    assert lines_of_code(text + function) == 5
