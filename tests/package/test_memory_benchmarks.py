"""The parts of the memory benchmarks that decide whether a figure is right."""

import math
import os
from unittest.mock import patch

import numpy as np
import pytest

import gradtape as gt

# The package sets the number of BLAS threads for its own process; not for that of the tests.
with patch.dict(os.environ):
    pytest.importorskip("benchmarks", reason="only in the repository, not in the distribution")
    from benchmarks import before_steps, memory_flat, memory_gradtape, memory_schedules
    from benchmarks.memory_cases import Cases, Chain, Convolutions, Perceptron, Stack
    from benchmarks.memory_loops import Loop
    from benchmarks.memory_request import Seconds
    from benchmarks.memory_rows import bytes_row, time_rows
    from benchmarks.memory_worker import digest

TINY = [
    Stack(layers=2, batch=2, length=8, width=8, heads=2),
    Perceptron(batch=4, widths=(5, 6, 6, 3)),
    Convolutions(batch=2, size=8, channels=(3, 4, 5), classes=3),
]


@pytest.mark.parametrize("case", TINY, ids=lambda case: type(case).__name__)
def test_a_tape_and_a_released_context_compute_the_same_gradients(case):
    taped, released = (memory_gradtape.program(case, w, None).step() for w in ("tape", "release"))
    assert len(taped) > 4
    for one, other in zip(taped, released, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.abs(one).sum() > 0


@pytest.mark.parametrize("three_ops", [False, True])
def test_a_plain_chain_holds_one_array_per_layer(three_ops):
    case = Chain(layers=10, elements=50_000, three_ops=three_ops)
    program = memory_gradtape.program(case, "tape", None)
    (gradient,) = program.step()
    x, slope = case.arrays()["x"], np.ones(case.elements)
    for _ in range(case.layers):
        slope *= 1.0 if three_ops else np.cos(x)
        x = np.tanh(1.001 * x + 0.0001) if three_ops else np.sin(x)
        slope *= 1.001 * (1 - x * x) if three_ops else 1.0
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)
    _, held = program.allocated(program.forward)
    assert 9 * 8 * 50_000 <= held < 11 * 8 * 50_000


def test_the_cases_of_the_table_have_the_sizes_it_says():
    chain = Cases.of(quick=False).chain
    assert (chain.layers, 8 * chain.elements) == (1_000, 8_000_000)
    assert Cases.of(quick=False).stack.layers == 12
    quick = Cases.of(quick=True).chain
    assert (quick.layers, 8 * quick.elements) == (100, 1_000_000)


def test_allocated_is_the_peak_and_what_is_held_at_the_end():
    def call():
        np.ones(50_000)
        return np.ones(10_000)

    peak, held = memory_gradtape.allocated(call)
    assert 400_000 <= peak < 410_000
    assert 80_000 <= held < 90_000


def test_a_digest_is_that_of_all_bits():
    arrays = [np.zeros(3), np.ones((2, 2))]
    other = [np.zeros(3), np.ones((2, 2))]
    assert digest(arrays) == digest(other)
    other[0][1] = -0.0
    assert digest(arrays) != digest(other)
    assert digest([np.ones((2, 3)).T]) == digest([np.ones((3, 2))])


def test_rows_are_held_to_their_bars():
    assert bytes_row("name", "what", 90, "peer", 100, 1.0).met
    assert not bytes_row("name", "what", 110, "peer", 100, 1.0).met
    ours = Seconds(all=[3.0, 9.0, 5.0], own=[2.0, 4.0, 3.0])
    theirs = Seconds(all=[2.0, 30.0, 4.0], own=[1.0, 2.0, 2.0])
    own, fastest = time_rows("name", "what", ours, "peer", theirs, 1.6)
    assert (own.ours, own.peer, own.ratio.median, own.met) == (3.0, 2.0, 2.0, False)
    assert (fastest.ours, fastest.peer, fastest.ratio.median, fastest.met) == (3.0, 2.0, 1.5, True)


def test_a_loop_may_grow_by_what_it_keeps_and_less_than_an_object_per_iteration():
    def run(_go_on):
        pass

    assert memory_flat.allowed(Loop(run), "allocated", 9_000) == 9_000 * memory_flat.LEAST
    kept = memory_flat.allowed(Loop(run, kept=500), "allocated", 9_000)
    assert kept == 9_000 * (memory_flat.LEAST + 500)
    assert memory_flat.allowed(Loop(run), "resident", 10) == memory_flat.NOISE["resident"]


def test_the_fewest_runs_are_those_of_the_theory():
    def formula(steps, slots):  # Griewank and Walther: r·l − β(s+1, r−1), with one step more
        length, checkpoints, r = steps + 1, slots + 1, 0
        while math.comb(checkpoints + r, r) < length:
            r += 1
        return r * length - math.comb(checkpoints + r, r - 1) - steps if r else 0

    for steps in range(1, 40):
        for slots in range(1, 8):
            assert memory_schedules.fewest_runs(steps, slots) == formula(steps, slots)
    assert memory_schedules.fewest_runs(10, 0) == 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1


def test_revolve_needs_the_fewest_runs():
    for steps, slots in ((10, 3), (50, 4), (100, 10)):
        found = memory_schedules.runs_of_revolve(steps, slots)
        assert found == memory_schedules.fewest_runs(steps, slots)


def test_runs_of_a_tape_are_counted():
    strategy = gt.CheckpointStrategy.Block
    for every in (1, 5, 12):
        config = gt.CheckpointConfig(strategy=strategy, checkpoint_every_n=every)
        assert memory_schedules.runs_of_a_tape(config, 60) == 60 - 60 // every
    assert memory_schedules.runs_of_a_tape(None, 60) == 0
    with pytest.raises(AssertionError, match="theory says 5"):
        memory_schedules.row_of("what", 6, "peer", 5)


@pytest.mark.parametrize("case", ["chain of 10 numbers", "MLP 64-100-10"])
def test_all_ways_to_record_a_step_give_the_same_gradients(case):
    first, *others = (
        [np.asarray(part) for part in way(*before_steps.CASES[case]())()]
        for way in before_steps.WAYS.values()
    )
    assert len(others) == 5
    for other in others:
        for one, same in zip(first, other, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-12)
