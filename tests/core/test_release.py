"""A result that can no longer be differentiated does not hold its history."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import release

N = 50


def losses(x, reduce=gt.sum):
    """Results, and weak references to records of their history."""
    kept, held = [], []
    for n in range(N):
        data = np.full(x.shape, 2.0 + n)
        y = gt.exp(x * data)
        held.append(weakref.ref(y.record))
        kept.append(reduce(y * y))
        del y
    return kept, held


def alive(held):
    """How many of the records hold anything."""
    return sum((record := reference()) is not None and record.out is not None for reference in held)


@pytest.fixture(autouse=True)
def _may_search():
    """The budget of time of searches is tested by itself."""
    release._searches.not_before = 0.0


@pytest.mark.parametrize("walked", [True, False], ids=["walked", "not walked"])
@pytest.mark.parametrize("reduce", [gt.sum, lambda y: y * 2.0, lambda y: gt.sum(y) * 3.0])
def test_clearing_a_tape_lets_go_of_kept_results(walked, reduce):
    x = gt.ones(4, requires_grad=True)
    kept, held = losses(x, reduce)
    assert alive(held) == N
    if walked:
        for loss in kept:
            loss.backward()
    gt.clear_tape()
    assert alive(held) == 0
    assert np.all(np.isfinite([np.max(loss.detach().numpy()) for loss in kept]))


@pytest.mark.parametrize("reduce", [gt.sum, lambda y: y * 2.0])
def test_leaving_a_context_lets_go_of_kept_results(reduce):
    x = gt.ones(4, requires_grad=True)
    with gt.GradientContext():
        kept, held = losses(x, reduce)
        assert alive(held) == N
    assert alive(held) == 0
    assert len(kept) == N


@pytest.mark.parametrize("persistent", [False, True], ids=["used up", "dropped"])
@pytest.mark.parametrize("reduce", [gt.sum, lambda y: y * 2.0])
def test_a_tape_that_cannot_be_asked_lets_go_of_kept_results(persistent, reduce):
    tape = gt.GradientTape(persistent=persistent)
    x = tape.watch(np.ones(4))
    kept, held = losses(x, reduce)
    tape.gradient(kept[0], x)
    if persistent:
        assert alive(held) == N
        del tape
    assert alive(held) == 0
    assert (kept[-1] * 2.0).shape == kept[-1].shape  # computes on


def test_old_results_are_found_among_old_objects():
    x = gt.ones(4, requires_grad=True)
    kept, held = losses(x, lambda y: y * 2.0)
    for _ in range(3):
        gc.collect()  # nothing is young any more
    gt.clear_tape()
    assert alive(held) == 0
    assert len(kept) == N


def test_searching_waits_and_is_made_up_for():
    x = gt.ones(4, requires_grad=True)
    release._searches.not_before = float("inf")
    kept, held = losses(x, lambda y: y * 2.0)
    gt.clear_tape()
    assert alive(held) == N
    release._searches.not_before = 0.0
    more, others = losses(x, lambda y: y * 2.0)
    gt.clear_tape()
    assert alive(held) == alive(others) == 0
    assert len(kept) == len(more) == N


def test_nothing_is_searched_for_if_nothing_is_held(monkeypatch):
    monkeypatch.setattr(release, "_search", lambda *_: pytest.fail("searched"))
    x = gt.ones(4, requires_grad=True)
    for _ in range(3):
        loss = gt.sum(gt.exp(x * x))
        loss.backward()
        gt.clear_tape()
        with gt.GradientTape() as tape:
            y = tape.watch(np.ones(4))
            z = gt.sum(gt.exp(y * y))
        tape.gradient(z, y)
        with gt.GradientContext():
            gt.sum(gt.exp(x * x)).backward()


def test_what_is_still_recorded_elsewhere_stays():
    """Ending an inner tape leaves the records of the outer one alone."""
    with gt.GradientTape() as outer:
        x = outer.watch(2.0)
        with gt.GradientTape() as inner:
            y = inner.watch(x)
            z = y**3
        slope = inner.gradient(z, y)
    assert outer.gradient(slope, x).item() == pytest.approx(12.0)


def test_many_roots_are_forgotten_as_they_die():
    x = gt.ones(4, requires_grad=True)
    for _ in range(1000):
        gt.sum(x * 2.0)
    assert len(gt.current_context().tape.segment.roots) < 200
