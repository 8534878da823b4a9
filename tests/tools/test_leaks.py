"""`detect_leaks`: what counts as a leak, what does not, and how it says what holds it."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections import deque
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.tools.referrers import chains

SIZE = 100 * 100 * 8


class Model:
    """A weight, and a step that computes a loss from it."""

    def __init__(self) -> None:
        self.w = gt.tensor(np.ones((100, 100)), requires_grad=True)
        self.cache: Any = None

    def loss(self) -> Any:
        hidden = gt.tanh(self.w * 2.0 + 1.0)
        return gt.sum(hidden * hidden)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def profiler() -> Any:
    with gt.GradientMemoryProfiler() as made:
        yield made


def step(model: Model) -> Any:
    loss = model.loss()
    loss.backward()
    with gt.no_grad():
        model.w -= 0.1 * model.w.grad
    model.w.grad = None
    return loss


# ---- what is no leak ----


def test_clean_loop(model, profiler):
    for n in range(5):
        loss = step(model)
        profiler.record_checkpoint(f"step {n}")
    report = profiler.detect_leaks()
    assert report.num_suspicious == report.bytes == 0
    assert str(report) == "no leaks found"
    assert loss.requires_grad


def test_numbers_and_detached_losses_may_be_collected(model, profiler):
    kept: list[Any] = []
    for _ in range(5):
        loss = step(model)
        kept += [loss.item(), loss.detach(), loss.detach().numpy()]
    assert profiler.detect_leaks().num_suspicious == 0
    assert len(kept) == 15


def test_gradients_are_kept(model, profiler):
    for _ in range(5):
        model.loss().backward()  # accumulates
        profiler.record_checkpoint("step")
    assert profiler.detect_leaks().num_suspicious == 0


def test_layers_of_one_line_are_needed_by_the_last(profiler):
    h = gt.tensor(np.ones((100, 100)), requires_grad=True)
    hidden = []
    for n in range(6):
        h = gt.tanh(h)
        hidden.append(h)
        profiler.record_checkpoint(f"layer {n}")
    assert profiler.detect_leaks().num_suspicious == 0
    assert len(hidden) == 6


def test_losses_of_a_tape_that_has_answered_hold_no_history(profiler):
    losses = []
    for _ in range(4):
        with gt.GradientTape() as tape:
            x = tape.watch(np.ones((100, 100)))
            loss = gt.sum(gt.tanh(x))
        tape.gradient(loss, x)
        losses.append(loss)
    assert profiler.detect_leaks().num_suspicious == 0
    assert len(losses) == 4


def test_what_only_refers_to_itself_is_no_leak(model, profiler):
    for _ in range(4):
        cycle: list[Any] = [step(model)]
        cycle.append(cycle)
    assert profiler.detect_leaks().num_suspicious == 0


def test_tensors_from_before_are_not_judged(model):
    kept = [step(model) for _ in range(4)]
    with gt.GradientMemoryProfiler() as profiler:
        assert profiler.detect_leaks().num_suspicious == 0
    assert len(kept) == 4


# ---- leaks ----


def test_losses_in_a_list(model, profiler):
    losses = []
    for _ in range(5):
        losses.append(step(model))
    report = profiler.detect_leaks()
    # The last one is the current result.
    assert report.num_suspicious == 4
    assert {leak.op for leak in report.leaks} == {"sum"}
    assert {str(leak.aval) for leak in report.leaks} == {"float64[]"}
    # The result of tanh, which all records of a step share.
    assert {leak.bytes for leak in report.leaks} == {SIZE}
    assert report.bytes == 4 * SIZE
    chains = sorted(leak.chain for leak in report.leaks)
    place = "local `losses` of test_losses_in_a_list (test_leaks.py:"
    assert all(chain.startswith(place) for chain in chains)
    assert [chain.partition(" → ")[2] for chain in chains] == [f"list[{n}]" for n in range(4)]
    assert {leak.records for leak in report.leaks} == {5}
    assert all(leak.origin.startswith("multiply at test_leaks.py:") for leak in report.leaks)
    assert "4 suspicious, 0.32 MB" in str(report)
    assert "its history: 5 records back to multiply at" in str(report)


def test_evaluation_without_no_grad_is_found_by_the_checkpoints(model, profiler):
    losses = []
    for n in range(5):
        losses.append(model.loss())
        profiler.record_checkpoint(f"batch {n}")
    assert profiler.detect_leaks().num_suspicious == 4


def test_persistent_tapes_that_are_kept(model, profiler):
    model.cache = []
    for _ in range(4):
        tape = gt.GradientTape(persistent=True)
        x = tape.watch(np.ones((100, 100)))
        loss = gt.sum(gt.tanh(x))
        tape.gradient(loss, x)
        model.cache.append((tape, loss))
    report = profiler.detect_leaks()
    assert report.num_suspicious == 3
    assert {leak.chain.partition("[")[0] for leak in report.leaks} == {
        "local `model` of test_persistent_tapes_that_are_kept (test_leaks.py:"
        + report.leaks[0].chain.partition("test_leaks.py:")[2].partition(")")[0]
        + ") → Model.cache → list"
    }
    assert all(leak.chain.endswith("→ tuple[1]") for leak in report.leaks)


def test_weights_that_are_updated_with_their_history(profiler):
    leaf = gt.tensor(np.ones((100, 100)), requires_grad=True)
    w = leaf
    for _ in range(5):
        gt.sum(gt.tanh(w) * w).backward()
        w = w - 0.1 * leaf.grad
    (leak,) = profiler.detect_leaks().leaks
    assert leak.op == "subtract"
    assert "reaches back over 4 backward passes" in leak.why
    assert "gt.no_grad()" in leak.why
    assert leak.chain.startswith("local `w` of test_weights_that_are_updated")


def test_arrays_that_pile_up_at_checkpoints(model, profiler):
    kept = []
    for n in range(5):
        with gt.no_grad():
            kept.append(gt.tanh(model.w).numpy())
        profiler.record_checkpoint(f"batch {n}")
    report = profiler.detect_leaks()
    assert report.num_suspicious == 4
    assert report.bytes == 4 * SIZE
    assert {leak.records for leak in report.leaks} == {0}
    assert "held more at each of the last three checkpoints" in report.leaks[0].why
    expected = [f"list[{n}] → the array it is a view of" for n in range(4)]
    assert sorted(leak.chain.partition(" → ")[2] for leak in report.leaks) == expected


def test_collecting_stops_being_suspicious_when_it_stops(model, profiler):
    kept = []
    for n in range(8):
        with gt.no_grad():
            y = gt.tanh(model.w)
        if n < 3:
            kept.append(y)
        del y
        profiler.record_checkpoint("batch")
    assert profiler.detect_leaks().num_suspicious == 0
    assert len(kept) == 3


def test_only_the_largest_are_explained(profiler):
    w = gt.tensor(np.ones(10), requires_grad=True)
    kept = []
    for _ in range(50):
        loss = gt.sum(w * w)
        loss.backward()
        kept.append(loss)
    report = profiler.detect_leaks()
    assert report.num_suspicious == 49
    assert sum(bool(leak.chain) for leak in report.leaks) == 32
    assert "… and 17 more" in str(report)


# ---- chains ----


class Plain:
    """An object with a dict."""


class Slots:
    """An object without one."""

    __slots__ = ("content", "other")


def with_attribute(x: Any, made: Any) -> Any:
    made.content = x
    return made


def in_a_closure(x: Any) -> Any:
    return lambda: x


def in_itself(x: Any) -> Any:
    made: list[Any] = [x]
    made.append(made)
    return made


def put(holder: list[Any], make: Any) -> Any:
    """Put a tensor into a list in some way; returns a weak reference, so that no frame has it."""
    target = gt.tensor(np.ones(3))
    holder.append(make(target))
    return weakref.ref(target)


@pytest.mark.parametrize(
    ("make", "chain"),
    [
        (lambda x: x, ""),
        (lambda x: [1, x], "list[1]"),
        (lambda x: (x,), "tuple[0]"),
        (lambda x: {"a": [x]}, "dict['a'] → list[0]"),
        (lambda x: deque([0, x]), "deque[1]"),
        (lambda x: {(1, x.shape): x}, "dict[(1, (3,))]"),
        (lambda x: with_attribute(x, Plain()), "Plain.content"),
        (lambda x: with_attribute(x, Slots()), "Slots.content"),
        (in_a_closure, "`x` in the closure of in_a_closure.<locals>.<lambda>"),
        (lambda x: functools.partial(max, x), "an argument of functools.partial → tuple[0]"),
        (in_itself, "list[0]"),
        (lambda x: gt.reshape(x, (3, 1)), "the tensor it is a view of"),
    ],
)
def test_chain_from_a_local(make, chain):
    holder: list[Any] = []
    target = put(holder, make)
    (found,) = chains([target()])
    first, _, rest = found.partition(" → list[0]")
    assert first.startswith("local `holder` of test_chain_from_a_local (test_leaks.py:")
    assert rest.removeprefix(" → ") == chain


def test_chain_from_a_global(monkeypatch):
    holder: dict[str, Any] = {}
    target = gt.tensor(np.ones(3))
    holder["x"] = [target]
    reference = weakref.ref(target)
    del target
    module = types.ModuleType("of_a_user")
    module.history = holder  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "of_a_user", module)
    del holder
    (found,) = chains([reference()])
    assert found == "global `history` of of_a_user → dict['x'] → list[0]"


def test_local_variables_are_not_kept_alive_by_the_search():
    value = gt.tensor(np.ones(3))
    reference = weakref.ref(value)
    assert chains([value])[0].startswith("local `value` of test_local_variables")
    value = None
    assert reference() is None


def test_object_that_nothing_leads_to():
    assert chains([object()]) == [""]
