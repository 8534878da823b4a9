"""Reading a tape: its records, their operands, and the lines they come from."""

from __future__ import annotations

import gc
import inspect
import pydoc
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.autodiff.tape_records import Source
from gradtape.core.aval import Aval
from gradtape.errors import ArgumentError, TapeError

F64 = np.dtype(np.float64)


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_records_in_order_with_operands_and_lines() -> None:
    tape = gt.GradientTape(lines=True)
    x, y = tape.watch(np.ones((2, 3))), tape.watch(2.0)
    z = np.exp(x) * y
    line = here() - 1
    unused = x + 1.0
    total = gt.sum(z, axis=1)
    rows = tape.records(total)
    assert [row.op for row in rows] == ["watch", "watch", "exp", "multiply", "sum"]
    assert [row.number for row in rows] == [0, 1, 2, 3, 4]
    exp, multiply, summed = rows[2:]
    assert exp.operands == (Source(0),)
    assert multiply.operands == (Source(2), Source(1))
    assert multiply.results == (Aval((2, 3), F64),)
    assert summed.results == (Aval((2,), F64),)
    assert summed.params == {"axis": (1,), "keepdims": False}
    assert exp.line == multiply.line == f"{__file__}:{line}"
    assert "unused" not in str(rows)
    assert str(unused.record.op.name) == "add"


def test_the_listing() -> None:
    tape = gt.GradientTape()
    w = tape.watch(np.ones((3, 4)))
    h = np.tanh(w @ np.ones(4)) + np.arange(3.0)
    top, bottom = np.split(h, [1])
    lines = str(tape.records([gt.sum(bottom) * 2.0, top])).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["#0", "watch"],
        ["#1", "matmul"],
        ["#2", "tanh"],
        ["#3", "add"],
        ["#4", "split"],
        ["#5", "sum"],
        ["#6", "multiply"],
    ]
    assert "float64[3, 4]" in lines[0]
    assert "#0, float64[4]" in lines[1]
    assert "float64[1], float64[2]" in lines[4]
    assert "#4[1]" in lines[5]
    assert "#5, 2.0" in lines[6]


def test_iterating_a_tape_goes_through_all_that_is_alive() -> None:
    tape = gt.GradientTape()
    assert list(tape) == []
    w = tape.watch(np.ones(3))
    unused = tape.watch(2.0)
    loss = 0.5 * np.sum(w**2) + 1e-3 * (w @ w)
    part = np.exp(w)[1:]  # depends on no number, and none depends on it
    assert [row.op for row in tape] == [
        *("watch", "watch", "power", "sum", "multiply", "matmul", "multiply", "add"),
        *("exp", "getitem"),
    ]
    assert len(tape) == len(list(tape)) - 2  # the watched tensors are no records
    assert [row.number for row in tape] == list(range(10))
    del loss, part, unused
    assert [row.op for row in tape] == ["watch"]
    del w
    assert list(tape) == []


def test_iterating_a_tape_lists_scalars_and_several_results() -> None:
    tape = gt.GradientTape()
    x = tape.watch(3.0)
    y = x * x
    assert [row.op for row in tape] == ["watch", "multiply"]
    first, second = np.split(tape.watch(np.ones(4)), 2)
    del first
    gc.collect()  # objects of the oldest generation are listed, too
    other = gt.GradientTape().watch(1.0) * 2.0
    assert [row.op for row in tape.records()] == ["watch", "watch", "multiply", "split"]
    assert (y.item(), second.shape, other.item()) == (9.0, (2,), 2.0)


def test_what_the_collector_does_not_list_is_never_left_out_silently() -> None:
    # In a process of its own: gc.freeze concerns all objects.
    code = """
import gc, numpy as np, gradtape as gt
from gradtape.errors import ArgumentError, TapeError
tape = gt.GradientTape()
x = tape.watch(3.0)
y = x * x
gc.freeze()
try:
    tape.records()
except TapeError as error:
    print("raised:", error)
print([row.op for row in tape.records(y)])
gc.unfreeze()
print([row.op for row in tape])
gc.freeze()
tape = gt.GradientTape()
x = tape.watch(3.0)
y = x * x
print([row.op for row in tape])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = found.stdout.splitlines()
    assert lines[0].startswith("raised: records: gc.freeze may hide records of this tape; give")
    assert lines[1:] == ["['watch', 'multiply']"] * 3


def test_all_kinds_of_records(rng: Any) -> None:
    """Shapes are right on all paths: fast ones, large arrays, writes, parts, nested levels."""
    tape = gt.GradientTape()
    x = tape.watch(rng.normal(size=(4, 4)))
    y = x * 1.0
    y[0] = x[1] * 2.0
    large = np.broadcast_to(y[0, 0], (300, 300)) + 1.0
    out = np.linalg.solve(y + 4 * np.eye(4), x) @ np.ones(4) + np.sum(large) * 1.0
    shapes = {(row.op, row.results[0].shape) for row in tape.records(out)}
    assert {("solve", (4, 4)), ("matmul", (4,)), ("broadcast_to", (300, 300))} <= shapes
    outer = gt.GradientTape()
    v = outer.watch(np.ones(3))
    inner = gt.GradientTape()
    w = inner.watch(v)
    slope = inner.gradient(np.sum(w**3), w)
    assert outer.records(slope)[-1].results == (Aval((3,), F64),)


def test_records_of_a_checkpointing_tape() -> None:
    tape = gt.GradientTape(
        checkpoint=gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full), lines=True
    )
    x = tape.watch(np.ones(3))
    y = np.exp(x) * 2.0
    assert [row.results for row in tape.records(y)] == [(Aval((3,), F64),)] * 3
    assert all(row.line for row in tape.records(y)[1:])


def test_what_was_freed_or_is_not_on_the_tape() -> None:
    tape = gt.GradientTape()
    x = tape.watch(np.ones(3))
    y = gt.sum(x * x)
    tape.gradient(y, x)
    with pytest.raises(TapeError, match="records: this tape was used already"):
        tape.records(y)
    with pytest.raises(TapeError, match="records: the target is not on this tape"):
        gt.GradientTape().records(np.ones(3))


def test_constructors_compose_and_keep_all_options() -> None:
    checkpoint = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
    scheduler = gt.SchedulerConfig(strategy=gt.SchedulingStrategy.Reverse)
    made = (
        gt.GradientTape.with_checkpoint_config(checkpoint).with_scheduler_config(scheduler),
        gt.GradientTape.with_scheduler_config(scheduler).with_checkpoint_config(checkpoint),
        gt.GradientTape(checkpoint=checkpoint, scheduler=scheduler),
    )
    for tape in made:
        x = tape.watch(np.array([1.0, 2.0]))
        found = tape.jacobian(np.sin(x) * x, x)
        assert tape.schedule.mode == "reverse"
        assert tape.checkpoint_report is not None
        np.testing.assert_allclose(
            np.diag(np.asarray(found)), np.sin([1.0, 2.0]) + [1, 2] * np.cos([1.0, 2.0])
        )
    options = gt.GradientTape(persistent=True, lines=True, enabled=False)
    kept = options.with_scheduler_config(scheduler)
    assert (kept.persistent, kept.enabled) == (True, False)
    tape = gt.GradientTape()
    _ = tape.watch(1.0)
    for change, config in (("scheduler", scheduler), ("checkpoint", checkpoint)):
        message = f"with_{change}_config: got a tape that watches .*; configure it first"
        with pytest.raises(TapeError, match=message):
            getattr(tape, f"with_{change}_config")(config)


@pytest.mark.parametrize("option", ["checkpoint", "scheduler"])
def test_constructors_are_documented_methods(option: str) -> None:
    name = f"with_{option}_config"
    config = {"checkpoint": gt.CheckpointConfig, "scheduler": gt.SchedulerConfig}[option]()
    for holder in (gt.GradientTape, gt.GradientTape()):
        method = getattr(holder, name)
        assert method.__name__ == name
        assert method.__doc__.startswith(f"Make a tape {'that' if option == 'checkpoint' else ''}")
        assert list(inspect.signature(method).parameters) == ["config"]
        with pytest.raises(TypeError, match=rf"^GradientTape.{name}\(\) missing 1 required"):
            method()
        with pytest.raises(TypeError, match=rf"^GradientTape.{name}\(\) got an unexpected keyword"):
            method(config, persistent=True)
        with pytest.raises(ArgumentError, match=f"^{name}: got a str for config, expected a gt"):
            method("fast")
    shown = pydoc.render_doc(gt.GradientTape, renderer=pydoc.plaintext)
    # Python 3.14 shows annotations without quotes, and may name their modules.
    kind = type(config).__name__
    assert re.search(rf" \|  {name}\(config: '?[\w.]*{kind}'?\) -> '?[\w.]*GradientTape'?", shown)
    assert "Make a tape" in shown[shown.index(f"{name}(") :]
    assert f"{name} = " not in shown

    class Own(gt.GradientTape):
        pass

    assert type(getattr(Own, name)(config)) is type(getattr(Own(), name)(config)) is Own
