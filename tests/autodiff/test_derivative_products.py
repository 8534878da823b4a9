"""Gauss–Newton and Fisher products, compared with the matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError

INPUTS = np.random.default_rng(0).normal(size=(6, 3))
LABELS = np.random.default_rng(1).normal(size=(6, 2))
W = np.random.default_rng(2).normal(size=(3, 2))
V = np.random.default_rng(3).normal(size=(3, 2))


def model(w: Any) -> Any:
    return np.tanh(INPUTS @ w)


def loss(y: Any) -> Any:
    return np.sum(np.log(np.cosh(y - LABELS))) + np.sum(y[0]) ** 2


def dense(function: Any = model, of: Any = loss, w: Any = W) -> Any:
    """Jᵀ·H·J as a matrix."""
    out = function(w)
    jacobian = gt.jacobian(function)(w).reshape(out.size, w.size)
    return jacobian.T @ gt.hessian(of)(out).reshape(out.size, out.size) @ jacobian


# ---- Gauss–Newton -------------------------------------------------------------------------------


def test_gauss_newton() -> None:
    expected = (dense() @ V.ravel()).reshape(V.shape)
    np.testing.assert_allclose(gt.gnvp(model, loss, (W,), (V,)), expected, rtol=1e-12)
    compiled = gt.jit(lambda w, v: gt.gnvp(model, loss, (w,), (v,)))
    np.testing.assert_allclose(compiled(W, V), expected, rtol=1e-12)
    batch = gt.vmap(lambda v: gt.gnvp(model, loss, (W,), (v,)))(np.stack([V, 2 * V]))
    np.testing.assert_allclose(batch, [expected, 2 * expected], rtol=1e-12)
    small = gt.gnvp(lambda w: w**2, np.sum, (W.astype(np.float32),), (V.astype(np.float32),))
    assert small.dtype == np.float32
    assert isinstance(gt.gnvp(model, loss, (gt.tensor(W),), (V,)), gt.Tensor)


def test_gauss_newton_of_a_linear_model_is_the_hessian_product() -> None:
    def linear(w: Any) -> Any:
        return INPUTS @ w

    product = gt.hvp(lambda w: loss(linear(w)), (W,), (V,))
    np.testing.assert_allclose(gt.gnvp(linear, loss, (W,), (V,)), product, rtol=1e-12)


def test_gauss_newton_is_symmetric() -> None:
    other = np.random.default_rng(4).normal(size=W.shape)
    one = np.sum(other * gt.gnvp(model, loss, (W,), (V,)))
    two = np.sum(V * gt.gnvp(model, loss, (W,), (other,)))
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_gauss_newton_of_containers() -> None:
    """The model takes and returns containers; a product in the form of each argument."""

    def parts(p: Any, b: Any) -> Any:
        y = np.tanh(INPUTS @ p["w"] + b)
        return {"y": y, "norm": (np.sum(y**2),)}

    def total(out: Any) -> Any:
        return loss(out["y"]) + np.exp(0.1 * out["norm"][0])

    b, db = np.array([0.1, -0.2]), np.array([1.0, 2.0])

    def flat(x: Any) -> Any:
        out = parts({"w": x[:6].reshape(3, 2)}, x[6:])
        return np.concatenate([out["y"].reshape(-1), out["norm"][0].reshape(1)])

    def of_flat(y: Any) -> Any:
        return total({"y": y[:-1].reshape(6, 2), "norm": (y[-1],)})

    matrix = dense(flat, of_flat, np.concatenate([W.ravel(), b]))
    expected = matrix @ np.concatenate([V.ravel(), db])
    got, got_b = gt.gnvp(parts, total, ({"w": W}, b), ({"w": V}, db))
    np.testing.assert_allclose(got["w"].ravel(), expected[:6], rtol=1e-11)
    np.testing.assert_allclose(got_b, expected[6:], rtol=1e-11)


def test_derivative_of_a_gauss_newton_product() -> None:
    def squared(w: Any) -> Any:
        return np.sum(V * gt.gnvp(model, loss, (w,), (V,)))

    step = 1e-6
    change = (squared(W + step * V) - squared(W - step * V)) / (2 * step)
    np.testing.assert_allclose(np.sum(gt.grad(squared)(W) * V), change, rtol=1e-7)


# ---- Fisher -------------------------------------------------------------------------------------


def log_likelihoods(w: Any) -> Any:
    return -np.sum((model(w) - LABELS) ** 2, axis=1)


def test_fisher() -> None:
    jacobian = gt.jacobian(log_likelihoods)(W).reshape(6, -1)
    expected = (jacobian.T @ jacobian @ V.ravel() / 6).reshape(V.shape)
    np.testing.assert_allclose(gt.fvp(log_likelihoods, (W,), (V,)), expected, rtol=1e-12)
    compiled = gt.jit(lambda w, v: gt.fvp(log_likelihoods, (w,), (v,)))
    np.testing.assert_allclose(compiled(W, V), expected, rtol=1e-12)
    outer = np.mean([np.outer(row, row) for row in jacobian], axis=0)
    np.testing.assert_allclose(expected.ravel(), outer @ V.ravel(), rtol=1e-12)


def test_fisher_of_containers() -> None:
    def function(p: Any, b: Any) -> Any:
        return log_likelihoods(p["w"]) * b

    got, got_b = gt.fvp(function, ({"w": W}, 2.0), ({"w": V}, 0.5))
    of_w = 2 * gt.jacobian(log_likelihoods)(W).reshape(6, -1)
    of_b = log_likelihoods(W)
    change = of_w @ V.ravel() + of_b * 0.5
    np.testing.assert_allclose(got["w"].ravel(), of_w.T @ change / 6, rtol=1e-12)
    np.testing.assert_allclose(got_b, of_b @ change / 6, rtol=1e-12)


# ---- errors -------------------------------------------------------------------------------------


def test_bad_input() -> None:
    with pytest.raises(ArgumentError, match="gnvp: got primals as an ndarray, expected a tuple"):
        gt.gnvp(model, loss, W, (V,))
    with pytest.raises(ArgumentError, match="fvp: got tangents as an ndarray, expected a tuple"):
        gt.fvp(log_likelihoods, (W,), V)
    with pytest.raises(ShapeError, match="gnvp: got 1 primals and 2 tangents"):
        gt.gnvp(model, loss, (W,), (V, V))
    with pytest.raises(ShapeError, match="fvp: got 2 primals and 1 tangents"):
        gt.fvp(log_likelihoods, (W, W), (V,))
    with pytest.raises(ShapeError, match=r"has shape \(2, 3\), expected \(3, 2\)"):
        gt.gnvp(model, loss, (W,), (V.T,))
    with pytest.raises(ShapeError, match=r"returned shape \(6, 2\), expected a scalar"):
        gt.gnvp(model, np.tanh, (W,), (V,))
    with pytest.raises(DTypeError, match="int64"):
        gt.gnvp(model, loss, (np.ones((3, 2), int),), (V,))
    with pytest.raises(ArgumentError, match="gnvp: got a float, expected a function"):
        gt.gnvp(model, 1.0, (W,), (V,))  # type: ignore[arg-type]
    with pytest.raises(
        ShapeError, match=r"fvp: the function returned float64\[6, 2\], expected one"
    ):
        gt.fvp(model, (W,), (V,))
    with pytest.raises(ShapeError, match=r"fvp: the function returned float64.*, float64"):
        gt.fvp(lambda w: (w[0], w[1]), (W,), (V,))
    with pytest.raises(DTypeError, match="fvp: the function returned complex128"):
        gt.fvp(lambda w: w[0] * 1j, (W,), (V,))
