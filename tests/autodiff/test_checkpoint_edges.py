"""Checkpointing where records die, are released or refused, and where tapes nest."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.recomputable import Recomputable
from gradtape.errors import BudgetError, TapeError

S = gt.CheckpointStrategy
FULL = gt.CheckpointConfig(strategy=S.Full)
BLOCK = gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=2)


def auto(megabytes: float) -> gt.CheckpointConfig:
    return gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=megabytes)


# ---- budgets ------------------------------------------------------------------------------------


def test_a_view_of_what_the_host_computed() -> None:
    """Results of the host are always kept, so that a budget does not number them."""
    tape = gt.GradientTape(checkpoint=auto(1))
    x = tape.watch(np.arange(6.0))
    y = gt.host_call(np.sin, np.zeros(6), x, vjp=lambda ct, out, x: (ct * np.cos(x),))
    out = gt.sum(gt.exp(gt.reshape(y, (2, 3))))
    expected = np.exp(np.sin(np.arange(6.0))) * np.cos(np.arange(6.0))
    np.testing.assert_allclose(tape.gradient(out, x), expected)


def test_losses_of_many_released_steps_may_be_kept() -> None:
    x = gt.ones(3, requires_grad=True)
    with gt.GradientContext(checkpoint=auto(1)):
        losses = []
        for _ in range(300):
            loss = gt.sum(gt.sin(gt.cos(gt.exp(x * 0.1))) * x)
            gt.compute_gradients(loss, release=True)
            losses.append(loss)
    assert x.grad is not None
    with gt.GradientContext():
        x.grad = None
        gt.compute_gradients(gt.sum(gt.sin(gt.cos(gt.exp(x * 0.1))) * x))
    assert len({loss.item() for loss in losses}) == 1


def test_results_of_records_that_died_do_not_take_room() -> None:
    """A context goes on from step to step, and their records die without being freed."""
    x = gt.ones(100, requires_grad=True)
    kept = []
    with gt.GradientContext(checkpoint=auto(0.04)) as context:
        for _ in range(5):
            h = x
            for _ in range(30):
                h = gt.sin(h)
            report = context.tape.checkpoint_report
            kept.append(report.kept)
            del h
    assert kept == [30] * 5


def test_every_step_counts_what_it_kept() -> None:
    x = gt.ones(1000, requires_grad=True)
    with gt.GradientContext(checkpoint=auto(0.1)) as context:
        reports = []
        for _ in range(60):  # records are numbered anew meanwhile
            h = x
            for _ in range(40):
                h = gt.sin(h)
            gt.compute_gradients(gt.sum(h), release=True)
            del h
            reports.append(context.tape.checkpoint_report)
    first = reports[0]
    assert 0 < first.kept < first.records == 41
    assert 0 < first.kept_bytes < 100_000
    for number, report in enumerate(reports, 1):
        assert report.kept == number * first.kept
        assert report.kept_bytes == number * first.kept_bytes


def test_records_that_dropped_their_results_do_not_count_as_kept() -> None:
    """The records that are alive are numbered anew once many have died."""
    with gt.GradientContext(checkpoint=auto(0.04)) as context:
        x = gt.ones(100, requires_grad=True)
        chain = x
        for _ in range(100):
            chain = gt.sin(chain)
        for _ in range(1500):
            gt.cos(x)
        report = context.tape.checkpoint_report
        held, node = 0, chain.record
        while isinstance(node, Recomputable):
            held += node.is_there(None)
            (node,) = node.parents
    assert report.kept == held > 0


def test_a_refused_result_is_refused_again_with_the_same_words() -> None:
    tape = gt.GradientTape(checkpoint=auto(1))
    x = tape.watch(np.ones(200_000))
    messages = []
    for _ in range(2):
        with pytest.raises(BudgetError) as error:
            gt.sin(x)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "sin needs at least 3.2 MB" in messages[0]


def test_a_function_that_changes_its_mind_is_found_out_when_it_is_dropped_later() -> None:
    calls = 0

    @gt.custom_vjp
    def moody(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return np.sin(x) + calls

    moody.defvjp(lambda ct, out, x: (ct * np.cos(x),))
    tape = gt.GradientTape(checkpoint=auto(0.02))
    x = tape.watch(np.linspace(0.0, 1.0, 100))
    h = x
    for _ in range(60):
        h = moody(h)
    with pytest.raises(TapeError, match="moody: gave another result when it was computed again"):
        tape.gradient(gt.sum(h), x)


def test_a_trace_that_nobody_differentiates_is_not_kept() -> None:
    seen: list[weakref.ref[Any]] = []

    def inner(x: Any) -> Any:
        y = gt.sin(gt.exp(x))
        seen.append(weakref.ref(y.record))
        return y

    checkpointed = gt.checkpoint(inner, policy=auto(10))

    @gt.jit
    def function(x: Any) -> Any:
        tape = gt.GradientTape()
        checkpointed(tape.watch(x))
        return gt.sum(x)

    function(np.ones(4))
    gc.collect()
    assert seen
    assert all(record() is None for record in seen)


# ---- nested tapes -------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [FULL, BLOCK, auto(0.001)], ids=["full", "block", "auto"])
def test_outer_tapes_differentiate_by_what_an_inner_one_dropped(
    config: gt.CheckpointConfig,
) -> None:
    """What is computed again is the value that the outer tape knows, not another one."""

    def second(checkpoint: gt.CheckpointConfig | None) -> list[Any]:
        outer, inner = gt.GradientTape(persistent=True), gt.GradientTape(checkpoint=checkpoint)
        x = outer.watch(np.linspace(0.1, 0.9, 8))
        y = inner.watch(x)
        h = gt.sin(y)
        low, high = gt.split(gt.exp(h), 2)
        out = gt.sum(h**3) + gt.sum(low**2 * high)
        slope = gt.sum(inner.gradient(out, y))
        return [np.asarray(outer.gradient(slope, each)) for each in (x, h, low)]

    for found, expected in zip(second(config), second(None), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_three_tapes_inside_of_each_other() -> None:
    def third(checkpoint: gt.CheckpointConfig | None) -> Any:
        first, second = gt.GradientTape(persistent=True), gt.GradientTape(persistent=True)
        inner = gt.GradientTape(checkpoint=checkpoint)
        x = first.watch(np.linspace(0.1, 0.9, 5))
        y = second.watch(x)
        z = inner.watch(y)
        h = gt.sin(z)
        slope = gt.sum(inner.gradient(gt.sum(h**4), z))
        curve = gt.sum(second.gradient(slope, h))
        return np.asarray(first.gradient(curve, h))

    np.testing.assert_allclose(third(FULL), third(None), rtol=1e-13)
    assert np.all(third(None) != 0.0)
