"""`x.mul_into(y, out)` and the like: into memory that exists, without harm to what shares it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError, UnsupportedError, WriteError
from gradtape.ops.into import INTO

X, Y = np.array([[1.0, 2.0], [0.5, 4.0]]), np.array([[3.0, 0.25], [2.0, 1.0]])
each = pytest.mark.parametrize("name", INTO)


def operands(name: str) -> list[Any]:
    return [X, Y][: INTO[name].nin]


@each
def test_the_memory_is_written_to(name: str) -> None:
    args = operands(name)
    out = gt.zeros((2, 2))
    address = out.value.ctypes.data
    given = getattr(gt.tensor(args[0]), name)(*map(gt.tensor, args[1:]), out)
    assert given is out
    assert out.value.ctypes.data == address
    np.testing.assert_array_equal(out.numpy(), INTO[name](*args))


@each
def test_gradients_flow_through(name: str) -> None:
    leaves = [gt.tensor(x, requires_grad=True) for x in operands(name)]
    out = gt.zeros((2, 2))
    getattr(leaves[0], name)(*leaves[1:], out)
    gt.sum(out * X).backward()
    function = INTO[name]
    expected = gt.grad(lambda *xs: gt.sum(function(*xs) * X), tuple(range(len(leaves))))
    for leaf, grad in zip(leaves, expected(*operands(name)), strict=True):
        np.testing.assert_allclose(leaf.grad.numpy(), grad, rtol=1e-14)


def test_what_a_record_holds_is_not_written_to() -> None:
    w = gt.tensor(X, requires_grad=True)
    buffer = gt.tensor(Y)
    loss = gt.sum(w * buffer)
    gt.tensor(X).mul_into(10.0, buffer)
    np.testing.assert_array_equal(buffer.numpy(), 10 * X)
    loss.backward()
    np.testing.assert_array_equal(w.grad.numpy(), Y)


def test_arrays_handed_out_are_not_written_to() -> None:
    buffer = gt.zeros(3)
    before = buffer.numpy()
    gt.ones(3).add_into(1.0, buffer)
    np.testing.assert_array_equal(before, 0)
    np.testing.assert_array_equal(buffer.numpy(), 2)


def test_views_see_what_was_written() -> None:
    base = gt.zeros((3, 2))
    row = base[1]
    gt.ones(2).add_into(1.0, row)
    np.testing.assert_array_equal(base.numpy(), [[0, 0], [2, 2], [0, 0]])
    gt.ones((3, 2)).mul_into(5.0, base)
    np.testing.assert_array_equal(row.numpy(), [5, 5])


def test_the_result_may_be_an_operand() -> None:
    x = gt.tensor(X)
    x.mul_into(x, x)
    np.testing.assert_array_equal(x.numpy(), X * X)
    x.matmul_into(gt.tensor(Y), x)
    np.testing.assert_allclose(x.numpy(), (X * X) @ Y)


def test_broadcasting_and_numbers() -> None:
    out = gt.zeros((2, 2))
    gt.tensor(X[0]).add_into(gt.tensor(Y), out)
    np.testing.assert_array_equal(out.numpy(), X[0] + Y)
    gt.tensor(X).pow_into(2, out)
    np.testing.assert_array_equal(out.numpy(), X**2)


def test_into_an_array() -> None:
    out = np.zeros((2, 2))
    gt.tensor(X).mul_into(Y, out)
    np.testing.assert_array_equal(out, X * Y)
    with pytest.raises(UnsupportedError, match="cannot hold the history"):
        gt.tensor(X, requires_grad=True).mul_into(Y, out)


def test_bad_outputs_are_refused_and_left_alone() -> None:
    x = gt.tensor(X)
    out = gt.zeros(3)
    with pytest.raises(ShapeError, match=r"mul_into: got out of shape \(3,\), expected \(2, 2\)"):
        x.mul_into(Y, out)
    np.testing.assert_array_equal(out.numpy(), 0)
    with pytest.raises(DTypeError, match="div_into: got out of dtype int64"):
        x.div_into(Y, gt.zeros((2, 2), dtype=np.int64))
    with pytest.raises(TypeError, match=r"got list to write into.*x\.mul_into\(y, out\)"):
        x.mul_into(Y, [0.0])
    with pytest.raises(TypeError, match=r"got 1 arguments, expected x\.mul_into\(y, out\)"):
        x.mul_into(Y)
    with pytest.raises(WriteError, match="exp_into: got a leaf"):
        x.exp_into(gt.zeros((2, 2), requires_grad=True))
