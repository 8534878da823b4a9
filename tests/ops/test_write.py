"""Assignments in place: the memory of a tensor is written to where nobody else sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.record import Assigning
from gradtape.errors import DTypeError, IndexingError, ShapeError
from gradtape.testing import check_grads

X = np.array([1.0, 2.0, 3.0, 4.0])


def address(tensor: Any) -> int:
    return tensor.value.ctypes.data


def test_a_loop_of_assignments_stays_in_one_array() -> None:
    x = gt.tensor(X, requires_grad=True)
    buffer = gt.zeros_like(x)
    where = address(buffer)
    for i in range(4):
        buffer[i] = x[i] * (i + 1)
        assert address(buffer) == where
        assert type(buffer.record) is Assigning
    gt.sum(buffer * buffer).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X * np.arange(1, 5) ** 2)


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "detach": lambda t: t.detach(),
    "numpy": lambda t: t.detach().numpy(),
    "view": lambda t: t[1:],
    "reshape": lambda t: t.reshape(2, 2),
    "record": lambda t: t * gt.tensor(X, requires_grad=True),
    "array": lambda t: np.asarray(t.detach()),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_others_hold_is_left_alone(name: str) -> None:
    buffer = gt.tensor(X) * 1.0
    before = address(buffer)
    other = HOLDERS[name](buffer)
    buffer[0] = 9.0
    assert address(buffer) != before
    assert buffer[0].item() == 9.0
    if name in ("detach", "numpy", "array"):
        np.testing.assert_array_equal(np.asarray(other), X)
    if name == "reshape":
        assert other[0, 0].item() == 9.0


def test_a_record_that_read_the_old_value_keeps_it() -> None:
    w = gt.tensor(X, requires_grad=True)
    buffer = gt.tensor(X) * 2.0
    loss = gt.sum(w * buffer)
    buffer[1] = 100.0
    loss.backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * X)


def test_cotangents_of_others_are_not_written_to() -> None:
    x = gt.tensor(X, requires_grad=True)
    buffer = x * 1.0
    buffer[2] = 0.0
    seed = np.ones(4)
    given = gt.Tensor(seed)
    buffer.backward(given)
    np.testing.assert_array_equal(seed, 1)
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 0, 1])
    buffer.backward(given)
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 0, 2])


def test_a_cotangent_that_goes_two_ways() -> None:
    def function(x: Any) -> Any:
        buffer = x * 1.0
        buffer[0] = x[1] * 5.0
        total = buffer + x  # the same cotangent to both
        return gt.sum(total * np.array([1.0, 10.0, 100.0, 1000.0]))

    np.testing.assert_array_equal(gt.grad(function)(X), [1, 25, 200, 2000])


def program(x: Any) -> Any:
    buffer = gt.zeros_like(x)
    buffer[0] = x[0]
    for i in range(1, 4):
        buffer[i] = buffer[i - 1] * x[i]
    kept = buffer * 1.0
    buffer[1:3] = x[2:4] * x[0]
    buffer[3] = 7.0
    return gt.sum(kept * x) + gt.sum(buffer * buffer)


def test_derivatives_to_second_order() -> None:
    check_grads(program, (X,), order=2)


def test_compiled_and_batched() -> None:
    np.testing.assert_allclose(gt.jit(gt.grad(program))(X), gt.grad(program)(X), rtol=1e-14)
    rows = np.stack([X, X + 1])
    expected = [gt.grad(program)(row) for row in rows]
    np.testing.assert_allclose(gt.vmap(gt.grad(program))(rows), expected, rtol=1e-14)


def test_nested_levels() -> None:
    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            buffer = gt.zeros_like(y)
            buffer[0] = x[0] * y[0]
            buffer[1] = y[1] ** 2
            return gt.sum(buffer * x[:4])

        return gt.sum(gt.grad(inner)(x) ** 2)

    check_grads(outer, (X,), order=1)


def test_no_grad_and_release() -> None:
    x = gt.tensor(X, requires_grad=True)
    buffer = gt.zeros(4)
    with gt.no_grad():
        buffer[1] = x[1]
    assert not buffer.requires_grad
    buffer[2] = x[2]
    gt.sum(buffer).backward(release=True)
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 1, 0])


@pytest.mark.parametrize(
    ("index", "value", "error"),
    [
        (4, 1.0, IndexingError),
        ((0, 0), 1.0, IndexingError),
        (slice(0, 2), np.ones(3), ShapeError),
        (0, 1j, DTypeError),
    ],
)
def test_what_does_not_fit_raises_and_writes_nothing(index: Any, value: Any, error: Any) -> None:
    buffer = gt.tensor(X) * 1.0
    with pytest.raises(error):
        buffer[index] = value
    np.testing.assert_array_equal(buffer.numpy(), X)


def test_integers_are_not_rounded_silently() -> None:
    buffer = gt.zeros(3, dtype=np.int64)
    with pytest.raises(DTypeError, match="setitem: got a value of dtype float64, expected int64"):
        buffer[0] = 1.5
