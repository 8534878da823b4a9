"""The modes of a tape: what they see, where they end, and how several of them go together."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.level import WITH_MODES
from gradtape.core.state import current
from gradtape.errors import ArgumentError, TapeError

X = np.linspace(0.1, 1.0, 5)


class Scaled:
    """Multiplies what `tanh` gives, and lists the ops it sees."""

    kind, family = "rewriting", "scaled"

    def __init__(self, factor: float, rules: bool) -> None:
        self.factor, self.rules = factor, rules
        self.key = ("scaled", factor)
        self.seen: list[str] = []

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        self.seen.append(op.name)
        out = proceed(op, args, params)
        return out * self.factor if op.name == "tanh" else out


class Config:
    """A config whose mode is `Scaled`."""

    configures = "amp"

    def __init__(self, factor: float = 3.0, *, rules: bool = False) -> None:
        self.factor, self.rules = factor, rules
        self.modes: list[Scaled] = []

    def tape_mode(self) -> Scaled:
        self.modes.append(Scaled(self.factor, self.rules))
        return self.modes[-1]

    @property
    def seen(self) -> list[str]:
        return self.modes[-1].seen


def energy(x: Any) -> Any:
    return gt.sum(gt.tanh(x) * x)


def slope(x: Any, factor: float = 3.0) -> Any:
    return factor * (gt.tanh(x) + x / np.cosh(x) ** 2)


def test_every_op_on_a_tape_is_seen_once_without_a_block() -> None:
    tape = gt.GradientTape(amp=(config := Config()))
    x = tape.watch(X)
    parts = np.exp(2.0 - x)[1:] @ np.ones(4)
    total = parts + gt.cumsum(np.stack([x, x]).T.reshape(2, 5), axis=0)[1, 0]
    total += 1.0
    assert config.seen == [
        *("subtract", "exp", "getitem", "matmul", "stack", "transpose", "reshape", "cumsum"),
        *("getitem", "add", "add"),
    ]
    gt.exp(gt.ones(3)) + np.ones(3)
    assert len(config.seen) == 11
    np.testing.assert_allclose(total.item(), np.exp(2 - X)[1:].sum() + X[0] + X[2] + 1)


def test_what_a_mode_computes_is_recorded() -> None:
    tape = gt.GradientTape(amp=Config(), persistent=True)
    x = tape.watch(X)
    loss = energy(x)
    np.testing.assert_allclose(tape.gradient(loss, x), slope(X), rtol=1e-14)
    tangent = tape.forward_gradient(x, gt.tanh(x), tangent=np.ones(5))
    np.testing.assert_allclose(tangent, 3 / np.cosh(X) ** 2, rtol=1e-14)
    jacobian = tape.jacobian(gt.tanh(x), x)
    np.testing.assert_allclose(jacobian, np.diag(3 / np.cosh(X) ** 2), rtol=1e-14)


@pytest.mark.parametrize("rules", [False, True])
def test_rules_are_seen_if_a_mode_asks_for_them(rules: bool) -> None:
    tape = gt.GradientTape(amp=(config := Config(rules=rules)))
    x = tape.watch(X)
    loss = energy(x)
    before = len(config.seen)
    tape.gradient(loss, x)
    assert ("spread" in config.seen[before:]) == rules
    if not rules:
        assert len(config.seen) == before


WAYS: dict[str, Callable[..., Any]] = {
    "grad": gt.grad(energy),
    "vjp": lambda x: gt.vjp(energy, x)[1](1.0)[0],
    "jvp": gt.vmap(lambda v, x: gt.jvp(energy, (x,), (v,))[1], in_axes=(0, None)),
    "jit": gt.jit(gt.grad(energy)),
    "grad of jit": gt.grad(gt.jit(energy)),
    "jacrev": gt.jacrev(energy),
    "vmap": lambda x: gt.vmap(gt.grad(lambda v: gt.tanh(v) * v))(x),
}


@pytest.mark.parametrize("name", WAYS)
def test_transforms_of_tensors_of_a_tape_have_its_modes(name: str) -> None:
    args = (np.eye(5),) if name == "jvp" else ()
    expected = WAYS[name](*args, X)  # and nothing of it is compiled for the tape
    np.testing.assert_allclose(expected, slope(X, 1.0), rtol=1e-13)
    tape = gt.GradientTape(amp=(config := Config()))
    x = tape.watch(X)
    np.testing.assert_allclose(WAYS[name](*args, x).detach(), slope(X), rtol=1e-13)
    assert config.seen.count("tanh") == 1
    assert "cosh" not in config.seen
    assert not {"subtract", "spread"} & set(config.seen)
    np.testing.assert_array_equal(WAYS[name](*args, X), expected)


def test_derivatives_of_derivatives() -> None:
    expected = gt.grad(lambda x: gt.sum(gt.grad(energy)(x) ** 2))(X) * 9
    outer = gt.GradientTape(amp=Config())
    x = outer.watch(X)
    inner = gt.GradientTape()
    y = inner.watch(x)
    first = inner.gradient(energy(y), y)
    np.testing.assert_allclose(outer.gradient(gt.sum(first**2), x), expected, rtol=1e-12)


def test_loops_and_branches_that_are_traced() -> None:
    tape = gt.GradientTape(amp=Config())
    x = tape.watch(X)
    looped = gt.fori_loop(0, 2, lambda _i, v: gt.tanh(v), x, save="sqrt")
    np.testing.assert_allclose(looped.detach(), 3 * gt.tanh(3 * gt.tanh(X)), rtol=1e-14)
    chosen = gt.vmap(lambda v: gt.cond(v > 0.5, gt.tanh, np.sin, v))(x)
    expected = np.where(X > 0.5, 3 * gt.tanh(X), np.sin(X))
    np.testing.assert_allclose(chosen.detach(), expected, rtol=1e-14)


def test_a_traced_function_refuses_tensors_from_outside_that_have_modes() -> None:
    tape = gt.GradientTape(amp=Config())
    x = tape.watch(X)
    for function in (lambda y: gt.tanh(x) * y, lambda y: gt.grad(energy)(x) * y):
        with pytest.raises(TapeError, match="pass the tensor as an argument, or call"):
            gt.jit(function)(X)
    with tape:
        x = tape.watch(X)
        inside = gt.jit(lambda y: gt.tanh(x) * y)(X)
    np.testing.assert_allclose(inside.detach(), 3 * gt.tanh(X) * X, rtol=1e-14)


def test_blocks_see_everything_and_end() -> None:
    config = Config()
    tape = gt.GradientTape(amp=config)
    with tape:
        assert [getattr(mode, "factor", None) for mode in current().modes] == [3.0]
        np.testing.assert_array_equal((gt.tensor(X) * 1.0).tanh(), 3 * gt.tanh(X))
        x = tape.watch(X)
        y = gt.tanh(x)
    assert config.seen == ["multiply", "tanh", "tanh"]
    assert current().modes == ()
    np.testing.assert_array_equal(gt.tanh(gt.tensor(X)), gt.tanh(X))
    assert not gt.tanh(y).requires_grad
    assert config.seen == ["multiply", "tanh", "tanh"]  # recording has ended
    with contextlib.ExitStack() as stack:
        stack.enter_context(tape)
        assert len(current().modes) == 1
    assert current().modes == ()
    with pytest.raises(ZeroDivisionError), gt.GradientTape(amp=config):
        raise ZeroDivisionError
    assert current().modes == ()


def test_an_abandoned_block_ends() -> None:
    tape = gt.GradientTape(amp=Config())
    exit_of = tape.__exit__
    tape.__enter__()
    assert len(current().modes) == 1
    del exit_of  # as the frame of an interrupted `with` statement lets it go
    assert current().modes == ()


def test_nothing_is_seen_inside_no_grad_or_after_stop() -> None:
    tape = gt.GradientTape(amp=(config := Config()))
    x = tape.watch(X)
    with gt.no_grad():
        gt.tanh(x)
    assert config.seen == []
    tape.stop()
    gt.tanh(x)
    assert config.seen == []


def test_blocks_decide_over_tapes_and_inner_tapes_over_outer_ones() -> None:
    outer, inner = gt.GradientTape(amp=Config(3.0)), gt.GradientTape(amp=Config(5.0))
    x = outer.watch(X)
    y = inner.watch(x)
    np.testing.assert_allclose(gt.tanh(y).detach(), 5 * gt.tanh(X))
    np.testing.assert_allclose(gt.tanh(x).detach(), 3 * gt.tanh(X))
    with gt.using_mode(Scaled(7.0, rules=False)):
        np.testing.assert_allclose(gt.tanh(y).detach(), 7 * gt.tanh(X))
        with gt.using_mode(Scaled(2.0, rules=False)):
            np.testing.assert_allclose(gt.tanh(y).detach(), 2 * gt.tanh(X))


def test_other_configs_go_with_it() -> None:
    tape = gt.GradientTape(
        amp=Config(),
        checkpoint=gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full),
        scheduler=gt.SchedulerConfig(strategy=gt.SchedulingStrategy.Forward),
        persistent=True,
        lines=True,
    )
    x = tape.watch(X)
    loss = gt.sum(gt.tanh(gt.tanh(x)[::-1] * x))
    expected = gt.grad(lambda x: gt.sum(3 * gt.tanh((3 * gt.tanh(x))[::-1] * x)))(X)
    np.testing.assert_allclose(tape.gradient(loss, x), expected, rtol=1e-13)
    np.testing.assert_allclose(tape.jacobian(loss, x), expected, rtol=1e-13)
    assert tape.checkpoint_report is not None
    assert tape.checkpoint_report.recomputed > 0
    assert [record.op for record in tape.records(loss)].count("tanh") == 2


def test_writes_stay_on_the_tape() -> None:
    tape = gt.GradientTape(amp=(config := Config()))
    x = tape.watch(X)
    buffer = gt.zeros(5)
    buffer[1:] = x[1:]
    view = buffer[2:]
    view *= 2.0
    assert config.seen.count("multiply") == 1
    gradient = tape.gradient(gt.sum(gt.tanh(buffer)), x)
    scale = np.array([0.0, 1.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(gradient, 3 * scale / np.cosh(scale * X) ** 2, rtol=1e-13)


def test_a_used_tape_starts_with_a_new_mode() -> None:
    config = Config()
    tape = gt.GradientTape(amp=config)
    for runs in (1, 2):
        with tape:
            x = tape.watch(X)
            loss = energy(x)
        tape.gradient(loss, x)
        assert len(config.modes) == runs


def test_segments_with_modes_are_forgotten() -> None:
    before = len(WITH_MODES)
    gc.disable()  # neither tapes nor segments are in a cycle
    for _ in range(3):
        tape = gt.GradientTape(amp=Config())
        with tape:
            tape.gradient(energy(x := tape.watch(X)), x)
    del tape, x
    gc.enable()
    assert len(WITH_MODES) <= before


def test_wrong_configs() -> None:
    config = Config()
    with pytest.raises(ArgumentError, match=r"expected a gt.DeterministicConfig"):
        gt.GradientTape(deterministic=config)
    with pytest.raises(ArgumentError, match=r"got an int for config, expected a gt.AmpConfig"):
        gt.GradientTape.with_amp_config(3)
    tape = gt.GradientTape(persistent=True).with_amp_config(config)
    assert tape.persistent
    np.testing.assert_allclose(gt.tanh(tape.watch(X)).detach(), 3 * gt.tanh(X))
