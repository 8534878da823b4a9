"""What traced functions use besides their arguments: arrays and tensors from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.aval import aval_of
from gradtape.errors import ConversionError, LeakedTensorError, WriteError
from gradtape.graph.trace import trace
from graphcall import assert_same_bits, check_traced, run_trace, traced

X = np.random.default_rng(7).normal(size=(3, 4))


def test_captured_arrays_are_inputs_by_reference() -> None:
    outside = np.ones(4)
    result = traced(lambda x: x * outside + outside, X)
    assert len(result.captures) == 1
    assert result.captures[0].current() is outside
    assert_same_bits(run_trace(result, X), X * 1 + 1)
    outside[...] = 2
    assert_same_bits(run_trace(result, X), X * 2 + 2)


def test_captured_tensors_are_read_anew() -> None:
    weights = gt.tensor([1.0, 2.0, 3.0, 4.0])
    part, turned = weights[1:], weights.reshape(2, 2).T
    result = traced(lambda x: (x * weights + weights, x[:, 1:] * part, turned, weights), X)
    assert len(result.captures) == 3
    weights[1] = 50.0
    weights *= 2
    now = np.array([2.0, 100.0, 6.0, 8.0])
    expected = (X * now + now, X[:, 1:] * now[1:], now.reshape(2, 2).T, now)
    assert_same_bits(run_trace(result, X), expected)


def test_captured_leaves_carry_gradients() -> None:
    weights = gt.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    result = traced(lambda x: np.sum(x * weights), X)
    run_trace(result, X).backward()
    assert_same_bits(weights.grad.numpy(), X.sum(0))


def test_tensors_made_inside_are_told_apart() -> None:
    # Each of them dies before the next is made, which then often has its address.
    def function(x: Any) -> Any:
        total = x * 0
        for k in range(10):
            total = total + gt.full(4, float(k)) * x
        return total

    check_traced(function, X)


def test_buffers_made_inside_can_be_written() -> None:
    def function(x: Any) -> Any:
        buffer = gt.zeros(4)
        buffer[1] = x[0, 0]
        buffer += x[1]
        return buffer, buffer * 2

    check_traced(function, X)


def test_buffers_in_a_cycle_of_references_are_not_taken_for_outer_ones() -> None:
    class Model:
        def __init__(self) -> None:
            self.me, self.buffer = self, gt.zeros(4)

    def function(x: Any) -> Any:
        model = Model()
        model.buffer[1] = x[0, 0]
        return model.buffer * 1

    check_traced(function, X)


def test_writing_to_outer_tensors_raises_and_is_undone() -> None:
    first, second, third = gt.zeros(4), gt.ones(4), gt.tensor([[1.0, 2.0], [3.0, 4.0]])
    part, flat = second[1:], third.reshape(-1)
    leaf = gt.zeros(4, requires_grad=True)

    def function(x: Any) -> Any:
        nonlocal first
        first += x[0]
        part[0] = x[0, 0]
        flat[1] = x[0, 0]
        with gt.no_grad():
            leaf[0] = x[0, 0]
        return x

    with pytest.raises(WriteError, match="writes to a tensor from outside"):
        traced(function, X)
    assert_same_bits(first.numpy(), np.zeros(4))
    assert_same_bits((second.numpy(), part.numpy()), (np.ones(4), np.ones(3)))
    assert_same_bits((third.numpy(), flat.numpy()[1]), (np.array([[1.0, 2], [3, 4]]), 2.0))
    assert leaf.requires_grad
    assert leaf.is_leaf
    assert_same_bits(leaf.detach().numpy(), np.zeros(4))


def test_writes_are_undone_if_the_function_fails() -> None:
    outside = gt.zeros(4)

    def function(x: Any) -> Any:
        outside[0] = x[0, 0]
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        traced(function, X)
    assert_same_bits(outside.numpy(), np.zeros(4))
    with pytest.raises(ConversionError):
        traced(lambda x: (outside.__setitem__(0, x[0, 0]), float(x[0, 0])), X)
    assert_same_bits(outside.numpy(), np.zeros(4))


@pytest.mark.parametrize("size", [4, 5000])
def test_writing_into_an_array_that_was_used_raises(size: int) -> None:
    def function(x: Any) -> Any:
        unit, total = np.zeros(size), 0.0
        for k in range(3):
            unit[:] = 0
            unit[k] = 1
            total = total + np.sum(x * unit) * k
        return total

    with pytest.raises(WriteError, match="writes into an array"):
        traced(function, np.ones(size))


def test_captures_know_whether_their_transform_has_ended() -> None:
    kept = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return np.sum(x * x)

    gt.grad(keep)(X)
    result = traced(lambda x: x * kept[0], X)
    assert [capture.ended for capture in result.captures] == [True]
    leaf = gt.ones(4, requires_grad=True)
    assert [c.ended for c in traced(lambda x: x * leaf, X).captures] == [False]


def test_leaked_symbols_raise() -> None:
    kept = []

    def keep(x: Any) -> Any:
        kept.append(x * 2)
        return x

    traced(keep, X)
    for use in (lambda: kept[0] + 1, lambda: np.asarray(kept[0]), lambda: kept[0].sum().item()):
        with pytest.raises(LeakedTensorError):
            use()
    assert [c.ended for c in traced(lambda x: x + kept[0], X).captures] == [True]


def test_tracing_inside_a_transform_captures_its_tensors() -> None:
    def function(w: Any) -> Any:
        result = trace(lambda x: np.sum(x * w * w), [aval_of(X)])
        return run_trace(result, X)

    assert_same_bits(gt.grad(function)(X), gt.grad(lambda w: np.sum(X * w * w))(X))


def test_truths_that_decide_a_rule_in_a_loop() -> None:
    """The graph of the loop's gradient depends on them, and is traced apart."""
    truths, x = np.array([False, True, True]), np.arange(1.0, 4.0)

    @gt.custom_vjp
    def total(x: Any) -> Any:
        return np.sum(x)

    @total.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        return (ct * np.sum(x[truths]) * x,)

    def looped(x: Any) -> Any:
        return gt.scan(lambda c, _: (c + total(x), None), 0.0, None, length=2)[0]

    compiled = gt.jit(gt.grad(looped))
    for new in ([False, True, True], [True, True, True], [True, False, False]):
        truths[:] = new
        np.testing.assert_allclose(compiled(x), 2.0 * np.sum(x[truths]) * x)
