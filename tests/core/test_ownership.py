"""Writes in place reach nobody else, whatever the interpreter counts."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import ownership
from gradtape.ops.write import write_item


@pytest.fixture(autouse=True)
def _state():
    """Writes in place are for threads that have used gradtape before."""
    gt.current_context()


def test_a_tensor_is_alone_with_its_array():
    tensor = gt.zeros(3)
    assert ownership.is_alone(tensor)


@pytest.mark.parametrize(
    "hold",
    [
        lambda tensor: tensor.value,
        lambda tensor: tensor.numpy(),
        lambda tensor: tensor.detach(),
        lambda tensor: tensor[1:],
        lambda tensor: tensor.reshape(3, 1),
        lambda tensor: [tensor.value],
        lambda tensor: {"key": tensor.value[::2]},
        lambda tensor: gt.tensor(1.0, requires_grad=True) * tensor,
    ],
    ids=["variable", "numpy", "detach", "slice", "reshape", "list", "view in a dict", "record"],
)
def test_whoever_holds_the_array_is_seen(hold):
    tensor = gt.zeros(3)
    held = hold(tensor)
    assert not ownership.is_alone(tensor)
    assert not write_item(tensor, 1.0, 0)
    del held
    assert ownership.is_alone(tensor)
    assert write_item(tensor, 1.0, 0)


def test_where_references_do_not_show_nothing_is_written_in_place(monkeypatch):
    monkeypatch.setattr(ownership, "_ALONE", None)
    tensor = gt.zeros(3)
    assert not write_item(tensor, 1.0, 0)
    before = tensor.value
    tensor[0] = 1.0
    gt.ones(3).add_into(1.0, tensor)
    np.testing.assert_array_equal(before, 0.0)
    np.testing.assert_array_equal(tensor.value, 2.0)


@pytest.mark.parametrize("counts", [True, False], ids=["counted", "not counted"])
def test_cotangents_of_assignments_are_not_shared(counts, monkeypatch):
    """What the walk hands out as a result is not written into on its way further down."""
    if not counts:
        monkeypatch.setattr(ownership, "_ALONE", None)
    with gt.GradientTape() as tape:
        x = tape.watch(np.arange(1.0, 5.0))
        y = x * 1.0
        before = y + 0.0
        y[1] = 7.0
        after = y + 0.0
        y[2] = x[0] * 3.0
        z = gt.sum(y * y) + gt.sum(after * y)
    gx, gbefore, gafter = tape.gradient(z, [x, before, after])
    values = np.array([1.0, 7.0, 3.0, 4.0])
    np.testing.assert_allclose(gafter.numpy(), values)
    np.testing.assert_allclose(gbefore.numpy(), 0.0)
    # z = y·y + a·y with a = (x0, 7, x2, x3), y = (x0, 7, 3·x0, x3)
    np.testing.assert_allclose(gx.numpy(), [4.0 + 18.0 + 3.0 * 3.0, 0.0, 3.0, 16.0])


def test_the_users_cotangent_is_not_written_into():
    seed = np.ones(3)
    x = gt.zeros(3, requires_grad=True)
    y = x * 1.0
    y[0] = 5.0
    y.backward(seed)
    np.testing.assert_array_equal(seed, 1.0)
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 1.0, 1.0])


@pytest.mark.parametrize("size", [10, 100_000], ids=["small", "large"])
@pytest.mark.parametrize(
    "join",
    [
        lambda x: np.stack([x, x]),
        lambda x: np.concatenate([x, x]),
        lambda x: np.reshape(x, (2, -1)),
    ],
    ids=["stack", "concatenate", "reshape"],
)
def test_gradients_of_large_arrays_are_arrays_of_their_own(join, size):
    """Rules of large arrays run on tensors, and may end with a view of one."""
    x = np.ones(size)
    (one,), (product,) = (
        gt.vjp(join, x)[1](np.ones(join(x).shape)),
        gt.vjp(lambda w: join(np.ones((size, 2)) @ w), np.ones(2))[1](np.ones(join(x).shape)),
    )
    assert type(one) is type(product) is np.ndarray
    assert one.flags.writeable
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(join(x)))(x), one)
    assert type(gt.grad(lambda x: np.sum(join(x)))(x)) is np.ndarray
