"""Checkpointing where records die, are released or refused."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.recomputable import Recomputable
from gradtape.errors import BudgetError

S = gt.CheckpointStrategy


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
