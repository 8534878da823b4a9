"""gt.tree.ravel: containers as one vector, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError

PARAMS = {"w": np.arange(6.0).reshape(2, 3), "b": [np.float32([7.0, 8.0]), None], "c": 9.0}


def test_there_and_back() -> None:
    vector, unravel = gt.tree.ravel(PARAMS)
    np.testing.assert_array_equal(vector, [7.0, 8.0, 9.0, 0, 1, 2, 3, 4, 5.0], strict=True)
    back = unravel(vector)
    assert gt.tree.structure(back) == gt.tree.structure(PARAMS)
    assert gt.tree.all(gt.tree.map(np.array_equal, back, PARAMS))
    assert back["b"][0].dtype == np.float32
    assert type(back["c"]) is np.float64
    for leaf in (back["w"], back["b"][0]):
        assert not np.shares_memory(leaf, vector)
        assert leaf.flags.writeable


def test_other_leaves() -> None:
    empty, unravel = gt.tree.ravel({"a": None, "b": []})
    assert empty.shape == (0,)
    assert unravel(empty) == {"a": None, "b": []}
    single, unravel = gt.tree.ravel(np.ones((2, 2)))
    assert single.shape == (4,)
    assert unravel(single).shape == (2, 2)
    counts, unravel = gt.tree.ravel([np.int8(1), np.arange(2)])
    assert counts.dtype == np.int64
    assert unravel(counts)[0].dtype == np.int8
    z, unravel = gt.tree.ravel([1j, np.ones(2, np.complex64)])
    assert z.dtype == np.complex128
    assert unravel(z)[1].dtype == np.complex64
    halves, _ = gt.tree.ravel([gt.asarray([1.0], dtype=gt.bfloat16), np.float32([2.0])])
    assert halves.dtype == np.float32


def test_tensors_keep_their_history() -> None:
    w = gt.tensor([[1.0, 2.0]], requires_grad=True)
    vector, unravel = gt.tree.ravel({"w": w, "b": 3.0})
    part = unravel(vector * vector)["w"]
    part.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [[2.0, 4.0]])
    part = unravel(vector)["w"]
    part[...] = 0.0
    np.testing.assert_array_equal(vector.detach().numpy(), [3.0, 1.0, 2.0])


def test_newtons_method_on_containers() -> None:
    start = {"x": 3.0, "y": np.array([1.0, -2.0])}
    vector, unravel = gt.tree.ravel(start)

    def loss(vector: Any) -> Any:
        p = unravel(vector)
        return (p["x"] - 1.0) ** 2 + np.sum((p["y"] - p["x"]) ** 2)

    step = gt.jit(lambda v: v - np.linalg.solve(gt.hessian(loss)(v), gt.grad(loss)(v)))
    found = unravel(step(vector))
    np.testing.assert_allclose(found["x"], 1.0)
    np.testing.assert_allclose(found["y"], [1.0, 1.0])
    gt.testing.check_grads(loss, (vector,))
    gt.testing.check_grads(lambda p: gt.tree.ravel(p)[0] ** 2, (start,))
    batch = gt.vmap(loss)(np.stack([vector, vector]))
    np.testing.assert_allclose(batch, [loss(vector)] * 2)


def test_modules() -> None:
    net = gt.nn.Linear(2, 3)
    vector, unravel = gt.tree.ravel(net)
    assert vector.shape == (9,)
    other = unravel(np.zeros(9))
    np.testing.assert_array_equal(np.asarray(other(np.ones((1, 2)))), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gt.tree.ravel({"w": 1.0, "step": 3}), DTypeError, r"tree\['step'\] is int64"),
        (lambda: gt.tree.ravel([1.0, 1j]), DTypeError, "one kind of numbers"),
        (lambda: gt.tree.ravel({"w": "x"}), DTypeError, r"tree\['w'\] is a str"),
        (lambda: gt.tree.ravel(PARAMS)[1](np.ones(8)), ShapeError, r"expected \(9,\)"),
        (lambda: gt.tree.ravel(PARAMS)[1](np.ones(9) * 1j), DTypeError, "vector of complex128"),
    ],
)
def test_bad_calls(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
