"""`gt.linearize`: the derivative at a point as a linear map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError

W = np.random.default_rng(0).normal(size=(3, 4))
P = {"w": W, "x": np.linspace(-1.0, 1.0, 4)}
T = {"w": np.cos(W), "x": np.arange(4.0)}


def function(p: Any) -> Any:
    h = np.tanh(p["w"] @ p["x"])
    return {"h": h, "constant": np.ones(2), "first": p["x"][0], "values": np.linalg.svd(p["w"])[1]}


def test_it_is_jvp_with_the_function_run_once() -> None:
    calls = []

    def counted(p: Any) -> Any:
        calls.append(1)
        return function(p)

    out, push = gt.linearize(counted, P)
    for tangent in (T, gt.tree.map(lambda t: 2.0 * t, T)):
        value, expected = gt.jvp(function, (P,), (tangent,))
        for name, own in push(tangent).items():
            np.testing.assert_allclose(own, expected[name], rtol=1e-12, atol=1e-14)
            np.testing.assert_array_equal(out[name], value[name])
            assert type(own) is type(expected[name])
    assert calls == [1]


def test_it_is_the_transpose_of_vjp(rng: Any) -> None:
    def flat(x: Any, y: Any) -> Any:
        return np.cumsum(x) * np.outer(y, x)[0], np.linalg.solve(np.eye(3) + np.outer(y, y), x)

    x, y = rng.normal(size=3), rng.normal(size=3)
    dx, dy, u, v = rng.normal(size=(4, 3))
    _, push = gt.linearize(flat, x, y)
    _, pull = gt.vjp(flat, x, y)
    pushed, pulled = push(dx, dy), pull((u, v))
    assert np.isclose(u @ pushed[0] + v @ pushed[1], dx @ pulled[0] + dy @ pulled[1], rtol=1e-12)


def test_under_transforms() -> None:
    def energy(x: Any, t: Any) -> Any:
        return gt.linearize(lambda x: np.sum(np.sin(x) ** 2), x)[1](t)

    x, t = np.array([0.3, 0.7]), np.array([1.0, -2.0])
    expected = np.sum(np.sin(2 * x) * t)
    np.testing.assert_allclose(energy(x, t), expected)
    np.testing.assert_allclose(gt.jit(energy)(x, t), expected)
    np.testing.assert_allclose(gt.grad(energy)(x, t), 2 * np.cos(2 * x) * t)
    np.testing.assert_allclose(
        gt.jvp(lambda x: energy(x, t), (x,), (t,))[1], np.sum(2 * np.cos(2 * x) * t * t)
    )
    np.testing.assert_allclose(gt.vmap(energy)(x[None], t[None]), [expected])
    _, push = gt.linearize(np.sin, x)
    np.testing.assert_allclose(gt.vmap(push)(np.eye(2)), np.diag(np.cos(x)))
    tensors, push = gt.linearize(np.sin, gt.tensor(x))
    assert isinstance(tensors, gt.Tensor)
    assert isinstance(push(t), gt.Tensor)


def test_aux_and_values_that_are_not_finite() -> None:
    out, push, aux = gt.linearize(lambda x: (x**2, "note"), 3.0, has_aux=True)
    assert (out, push(1.0), aux) == (9.0, 6.0, "note")
    with np.errstate(divide="ignore"):
        _, push = gt.linearize(lambda x: np.where(x > 0, np.log(x), 0.0), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(push(np.ones(2)), [0.0, 0.5])


def test_bad_input() -> None:
    _, push = gt.linearize(function, P)
    with pytest.raises(ShapeError, match=r"linearize: tangent 0 is .*, expected {'w'"):
        push(np.ones(3))
    with pytest.raises(ShapeError, match=r"tangent\[0\]\['x'\] has shape \(3,\), expected \(4,\)"):
        push({"w": W, "x": np.ones(3)})
    with pytest.raises(DTypeError, match="linearize: argument 0 is int64"):
        gt.linearize(lambda x: x * 1.0, np.arange(3))


def test_tangents_in_other_containers_are_described() -> None:
    push = gt.linearize(lambda x, p: x * p["a"], 1.0, {"a": np.ones(2)})[1]
    message = (
        r"^linearize: tangent 1 is {'b': \*}, expected {'a': \*}, the containers of argument 1"
    )
    with pytest.raises(ShapeError, match=message):
        push(1.0, {"b": np.ones(2)})
    with pytest.raises(
        ShapeError, match=r"got 1 tangent\(s\) for 2 argument\(s\), expected one per"
    ):
        push(1.0)
    with pytest.raises(ShapeError, match=r"tangent 0 is \[\*, \*\], expected \*, the containers"):
        push([1.0, 2.0], {"a": np.ones(2)})
