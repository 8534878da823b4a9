"""What a compiled function does to its arguments, and with numbers, as NumPy users write it."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ConversionError, LinAlgError, WriteError

X = np.array([1.0, 2.0, 3.0])


def test_numbers_that_go_round_a_loop_stay_weak() -> None:
    traces = []

    @gt.jit
    def step(w: Any, count: Any, rate: Any) -> Any:
        traces.append(1)
        return w - rate * w / count, count + 1, rate * 0.99

    w, count, rate = np.ones(2, np.float32), 1, 0.1
    for _ in range(4):
        w, count, rate = step(w, count, rate)
    assert (w.dtype, type(count), type(rate)) == (np.float32, int, float)
    assert (count, len(traces)) == (5, 1)


def test_a_write_to_an_argument_that_goes_nowhere_is_refused() -> None:
    def step(w: Any, x: Any) -> Any:
        loss, gradient = gt.value_and_grad(lambda w: np.sum((w * x) ** 2))(w)
        w -= 0.1 * gradient
        return loss

    with pytest.raises(WriteError, match="writes to an argument and does not use"):
        gt.jit(step)(X, X)


def test_a_write_to_an_argument_that_is_used_is_a_new_value() -> None:
    def shifted(x: Any) -> Any:
        x += 1.0
        x[0] = 7.0
        return np.sum(x), x

    total, x = gt.jit(shifted)(X)
    assert total == 14.0
    np.testing.assert_array_equal(x, [7.0, 3.0, 4.0])
    np.testing.assert_array_equal(X, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("change", [lambda p: p.update(w=p["w"] * 2.0), lambda p: p.pop("w")])
def test_what_is_put_into_a_container_argument_is_refused(change: Any) -> None:
    def function(p: Any) -> Any:
        w = p["w"]
        change(p)
        return w

    with pytest.raises(WriteError, match="container"):
        gt.jit(function)({"w": X})


def test_the_line_of_an_error_is_the_user_s_and_not_numpy_s() -> None:
    def function(x: Any) -> Any:
        return np.full(3, x, float)

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(ConversionError, match=rf"test_jit_writes\.py:{line}"):
        gt.jit(function)(np.float64(2.0))


def test_a_table_from_outside_is_indexed_as_the_error_says() -> None:
    table, places = np.eye(3), np.array([0, 2])
    with pytest.raises(ConversionError, match=r"gt\.tensor\(table\)\[i\]") as caught:
        gt.jit(lambda i: table[i])(places)
    assert traceback.format_exception(caught.value)
    compiled = gt.jit(lambda i: gt.tensor(table)[i])
    np.testing.assert_array_equal(compiled(places), table[places])


def test_captured_arrays_in_another_order_are_passed_as_they_are() -> None:
    data, target = np.arange(12.0).reshape(4, 3), np.ones(4)

    def loss(w: Any) -> Any:
        return np.sum((data @ w - target) ** 2)

    compiled = gt.jit(gt.grad(loss))
    np.testing.assert_allclose(compiled(X), gt.grad(loss)(X))
    hidden = compiled.explain(X).hidden
    assert {aval.shape for aval in hidden} == {(4, 3), (4,)}
    data *= 2.0  # the memory is shared: a write is seen
    np.testing.assert_allclose(compiled(X), gt.grad(loss)(X))


def test_an_op_that_fails_when_it_runs_names_the_line() -> None:
    def function(x: Any) -> Any:
        return np.linalg.cholesky(x) + 1.0

    line = function.__code__.co_firstlineno + 1
    compiled = gt.jit(function)
    np.testing.assert_allclose(compiled(np.eye(2)), np.eye(2) + 1.0)
    with pytest.raises(LinAlgError, match=rf"cholesky: .*test_jit_writes\.py:{line}"):
        compiled(-np.eye(2))
