"""Modes that see the backward pass record by record, done as it is done without modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

LARGE = np.linspace(-1.0, 1.0, 1 << 16)


class Rules:
    """Lists the ops whose rules were applied, and the ops that were run."""

    kind = "observing"

    def __init__(self) -> None:
        self.pulled: list[str] = []
        self.ran: list[str] = []
        self.given: list[int] = []

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        self.ran.append(op.name)
        return proceed(op, args, params)

    def pull(self, record: Any, proceed: Callable[[], list[Any]]) -> list[Any]:
        self.pulled.append(record.op.name)
        given = proceed()
        self.given.append(len(given))
        return given


class Names:
    """Lists all ops, also those in rules."""

    kind = "observing"

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
        self.ran.append(op.name)
        return proceed(op, args, params)


def energy(x: Any) -> Any:
    y = gt.tanh(x) * x
    return gt.sum(y * y)


def gradient(x: Any, function: Callable[[Any], Any] = energy) -> Any:
    leaf = gt.tensor(x, requires_grad=True)
    function(leaf).backward()
    return leaf.grad.numpy()


def test_rules_are_one_step_each():
    rules = Rules()
    with gt.using_mode(rules):
        gradient(LARGE[:5])
    assert rules.ran == ["tanh", "multiply", "multiply", "sum"]
    assert rules.pulled == ["sum", "multiply", "multiply", "tanh"]
    assert rules.given == [1, 2, 2, 1]


@pytest.mark.parametrize("x", [LARGE[:5], LARGE])
def test_results_have_the_same_bits(x):
    expected = gradient(x)
    with gt.using_mode(Rules()):
        assert gradient(x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("outer", [True, False])
def test_beside_a_mode_that_sees_ops(outer):
    rules, names = Rules(), Names()
    modes = (rules, names) if outer else (names, rules)
    with gt.using_mode(modes[0]), gt.using_mode(modes[1]):
        gradient(LARGE[:5])
    assert rules.pulled == ["sum", "multiply", "multiply", "tanh"]
    assert len(names.ran) > 8


def test_recorded_backward_pass():
    rules = Rules()
    x = gt.tensor(LARGE[:5], requires_grad=True)
    with gt.using_mode(rules):
        energy(x).backward(create_graph=True)
    assert rules.pulled == ["sum", "multiply", "multiply", "tanh"]
    assert len(rules.ran) > 4
    assert x.grad.requires_grad


def test_ops_with_several_outputs_and_compiled_functions():
    rules = Rules()
    compiled = gt.jit(lambda x: (x * 2.0, gt.sum(x * x)))
    expected = gradient(LARGE, lambda x: gt.sum(compiled(x)[0] * compiled(x)[1]))
    with gt.using_mode(rules):
        found = gradient(LARGE, lambda x: gt.sum(compiled(x)[0] * compiled(x)[1]))
    assert found.tobytes() == expected.tobytes()
    assert len(rules.ran) == 4


def test_error_in_a_rule_passes_through():
    @gt.custom_vjp
    def bad(x: Any) -> Any:
        return x * 2.0

    @bad.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        raise ZeroDivisionError("of the user")

    with gt.using_mode(Rules()), pytest.raises(ZeroDivisionError, match="of the user"):
        gradient(LARGE[:5], lambda x: gt.sum(bad(x)))
    assert gradient(LARGE[:5]).shape == (5,)
