"""Gradients of every sample, and their norms: values in all ways of running, arguments, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from gradtape.gradients import per_sample_norms as norms_module

SAMPLES = 5


def draw(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape)


def complex_draw(*shape: int) -> Any:
    return draw(*shape) + 1j * draw(*shape[::-1]).reshape(shape)


def rnn(p: Any, xs: Any) -> Any:
    h = np.zeros_like(xs, shape=p["u"].shape[0])
    for x in xs:
        h = np.tanh(gt.nn.linear(x, p["w"]) + gt.nn.linear(h, p["u"], p["b"]))
    return np.sum(h * h)


def scanned(p: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(x @ p["w"] + h @ p["u"])
        return h, None

    return np.sum(gt.scan(step, np.zeros(6), xs)[0] ** 2)


def both_sides(p: Any, x: Any) -> Any:
    y = p["w"] @ x  # 7×7 · 7×2
    return np.sum(np.sin(y)) + np.sum(np.cos(x.T @ p["w"])) + np.sum(p["w"].T @ x[:, 0])


def branches(p: Any, x: Any) -> Any:
    # Asks for a value of a parameter, which a trace does not have.
    scale = 2.0 if p["w"][0, 0] > 0 else 3.0
    return np.sum(np.tanh(scale * (x @ p["w"])))


def conv(**options: Any) -> Any:
    return lambda p, x: np.sum(np.tanh(gt.nn.conv2d(x, p["w"], p["b"], **options)))


INDICES = np.random.default_rng(0).integers(0, 9, (SAMPLES, 6))
# Name: the loss of one sample, parameters, samples.
LOSSES: dict[str, tuple[Any, Any, Any]] = {
    "linear": (
        lambda p, x: np.sum(np.tanh(gt.nn.linear(x, p["w"], p["b"]))),
        {"w": draw(20, 30), "b": draw(20)},
        draw(SAMPLES, 30),
    ),
    "sequence": (
        lambda p, x: np.sum(np.tanh(gt.nn.linear(x, p["w"], p["b"]))),
        {"w": draw(20, 30), "b": draw(20)},
        draw(SAMPLES, 3, 30),
    ),
    "long sequence": (
        lambda p, x: np.sum(np.tanh(gt.nn.linear(x, p["w"]) @ p["v"])),
        {"w": draw(20, 30), "v": draw(20, 9)},
        draw(SAMPLES, 2, 11, 30),
    ),
    "two layers in a row": (
        lambda p, x: np.sum(((x @ p["w"]) @ p["v"]) ** 2),
        {"w": draw(30, 20), "v": draw(20, 40)},
        draw(SAMPLES, 2, 30),
    ),
    "one layer twice": (
        lambda p, x: np.sum(np.abs((x @ p["w"]) @ p["w"])),
        {"w": draw(30, 30)},
        draw(SAMPLES, 30),
    ),
    "one layer often": (
        lambda p, x: np.sum(np.abs(((x @ p["w"]) @ p["w"]) @ p["w"])),
        {"w": draw(7, 7)},
        draw(SAMPLES, 2, 7),
    ),
    "matrix @ vector": (
        lambda p, x: np.sum(np.tanh(p["w"] @ x)),
        {"w": draw(20, 30)},
        draw(SAMPLES, 30),
    ),
    "vector @ matrix": (
        lambda p, x: np.sum(np.tanh(x @ p["w"])),
        {"w": draw(30, 20)},
        draw(SAMPLES, 30),
    ),
    "matrix @ matrices": (
        lambda p, x: np.sum(np.tanh(p["w"] @ x)),
        {"w": draw(20, 30)},
        draw(SAMPLES, 2, 30, 2),
    ),
    "both sides": (both_sides, {"w": draw(7, 7)}, draw(SAMPLES, 7, 2)),
    "tied weights": (
        lambda p, x: np.sum(np.tanh(np.tanh(x @ p["w"]) @ p["w"].T)),
        {"w": draw(30, 20)},
        draw(SAMPLES, 30),
    ),
    "rnn": (rnn, {"w": draw(6, 4), "u": draw(6, 6), "b": draw(6)}, draw(SAMPLES, 3, 4)),
    "scan": (scanned, {"w": draw(4, 6), "u": draw(6, 6)}, draw(SAMPLES, 3, 4)),
    "embedding": (
        lambda p, x: np.sum(np.sin(gt.nn.embedding(x, p["t"]))),
        {"t": draw(9, 8)},
        INDICES,
    ),
    "embedding twice, with padding": (
        lambda p, x: np.sum(
            np.sin(gt.nn.embedding(x, p["t"], padding_idx=2))
            * gt.nn.embedding(x[::-1], p["t"], padding_idx=3)
        ),
        {"t": draw(9, 20)},
        INDICES,
    ),
    "tied embedding": (
        lambda p, x: gt.logsumexp(gt.nn.embedding(x, p["t"])[-1] @ p["t"].T),
        {"t": draw(9, 8)},
        INDICES,
    ),
    "convolution": (conv(padding=1), {"w": draw(5, 4, 3, 3), "b": draw(5)}, draw(SAMPLES, 4, 4, 3)),
    "two convolutions": (
        lambda p, x: conv(padding=1)(p, gt.nn.conv2d(x, p["w"], padding=1)),
        {"w": draw(4, 4, 3, 3), "b": draw(4)},
        draw(SAMPLES, 4, 3, 3),
    ),
    "transposed": (
        lambda p, x: np.sum(np.tanh(gt.nn.conv_transpose2d(x, p["w"], stride=2))),
        {"w": draw(4, 5, 3, 3)},
        draw(SAMPLES, 4, 2, 2),
    ),
    "layer norm": (
        lambda p, x: np.sum(gt.nn.layer_norm(x, (6,), p["s"], p["b"]) ** 3),
        {"s": draw(6), "b": draw(6)},
        draw(SAMPLES, 4, 6),
    ),
    "function of parameters": (
        lambda p, x: np.sum(np.tanh(x @ (p["g"] * p["v"] / np.sqrt(np.sum(p["v"] ** 2))))),
        {"g": draw(20), "v": draw(30, 20)},
        draw(SAMPLES, 30),
    ),
    "penalty": (
        lambda p, x: np.sum(np.tanh(x @ p["w"])) + np.sum(p["w"] ** 2),
        {"w": draw(30, 20)},
        draw(SAMPLES, 30),
    ),
    "einsum": (
        lambda p, x: np.sum(np.tanh(np.einsum("ti,ij->tj", x, p["w"]))),
        {"w": draw(30, 20)},
        draw(SAMPLES, 2, 30),
    ),
    "unused": (
        lambda p, x: np.sum(np.tanh(x @ p["w"])),
        {"w": draw(30, 20), "v": draw(50)},
        draw(SAMPLES, 30),
    ),
    "numbers": (
        lambda p, x: p["a"] * np.sum(x) + p["b"] ** 2,
        {"a": 2.0, "b": 3.0},
        draw(SAMPLES, 4),
    ),
    "complex": (
        lambda p, x: np.sum(np.abs(x @ p["w"])),
        {"w": draw(30, 20) + 1j * draw(30, 20)[::-1]},
        draw(SAMPLES, 30),
    ),
    "complex vectors": (
        lambda p, x: np.sum(np.abs(p["w"] @ x) ** 2),
        {"w": draw(20, 30)},
        complex_draw(SAMPLES, 30),
    ),
    "complex sequences": (
        lambda p, x: np.sum(np.abs(np.exp(1j * (x @ p["w"])))),
        {"w": draw(30, 20)},
        complex_draw(SAMPLES, 3, 30),
    ),
    "complex rows, real weights": (
        lambda p, x: np.sum(np.abs(gt.nn.linear(x, p["w"], p["b"]) @ p["v"])),
        {"w": draw(20, 30), "b": complex_draw(20), "v": draw(20, 60)},
        complex_draw(SAMPLES, 2, 30),
    ),
    "complex bias": (
        lambda p, x: np.sum(np.abs(gt.nn.linear(x, p["w"], p["b"]))),
        {"w": draw(20, 30), "b": complex_draw(20)},
        draw(SAMPLES, 30),
    ),
    "complex activations": (
        lambda p, x: np.sum(np.abs(p["w"] @ np.exp(1j * (p["v"] @ x)))),
        {"w": draw(20, 30), "v": draw(30, 4)},
        draw(SAMPLES, 4),
    ),
    "few weights, complex samples": (
        lambda p, x: np.sum(np.abs(p["w"] @ x) ** 2),
        {"w": draw(2, 3)},
        complex_draw(SAMPLES, 3),
    ),
    "long complex sequences": (
        lambda p, x: np.sum(np.abs(np.exp(1j * (p["w"] @ x)))),
        {"w": draw(7, 9)},
        complex_draw(SAMPLES, 9, 4),
    ),
    "branch on a value": (branches, {"w": draw(30, 20)}, draw(SAMPLES, 30)),
}
losses = pytest.mark.parametrize("name", LOSSES)


def one_by_one(loss: Any, params: Any, samples: Any) -> Any:
    """The gradients of samples, one after the other."""
    each = [gt.grad(loss)(params, sample) for sample in samples]
    return {name: np.stack([grads[name] for grads in each]) for name in params}


def norms_of(grads: Any) -> Any:
    flat = [np.abs(leaf).reshape(len(leaf), -1) ** 2 for leaf in grads.values()]
    return np.sqrt(sum(part.sum(1) for part in flat))


@losses
def test_gradients(name: str) -> None:
    loss, params, samples = LOSSES[name]
    found = gt.per_sample_gradients(loss)(params, samples)
    for key, expected in one_by_one(loss, params, samples).items():
        np.testing.assert_allclose(found[key], expected, rtol=1e-10, atol=1e-12)


@losses
@pytest.mark.parametrize("at_a_time", [1, 3000, 1 << 30])
def test_norms(name: str, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norms_module, "_AT_A_TIME", at_a_time)
    loss, params, samples = LOSSES[name]
    expected = one_by_one(loss, params, samples)
    found = gt.per_sample_norms(loss)(params, samples)
    np.testing.assert_allclose(found, norms_of(expected), rtol=1e-11)
    by_leaf = gt.per_sample_norms(loss, per_leaf=True)(params, samples)
    for key, grads in expected.items():
        np.testing.assert_allclose(by_leaf[key], norms_of({key: grads}), rtol=1e-10, atol=1e-12)


@losses
def test_norms_in_other_ways(name: str) -> None:
    loss, params, samples = LOSSES[name]
    expected = norms_of(one_by_one(loss, params, samples))
    if name != "branch on a value":
        compiled = gt.jit(gt.per_sample_norms(loss))
        np.testing.assert_allclose(compiled(params, samples), expected, rtol=1e-10)
    tensors = containers.map_leaves(gt.tensor, params)
    found = gt.per_sample_norms(loss)(tensors, samples)
    assert isinstance(found, gt.Tensor)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)
    if samples.dtype.kind == "f":
        half = np.array(samples, np.float32)
        single = {
            k: np.asarray(v, np.complex64 if np.iscomplexobj(v) else np.float32)
            for k, v in params.items()
        }
        if name != "scan":
            found = gt.per_sample_norms(loss)(single, half)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=2e-4)


@pytest.mark.parametrize("dtype", [np.float16, gt.bfloat16])
def test_norms_of_small_floats(dtype: Any) -> None:
    loss, params, samples = LOSSES["linear"]
    expected = norms_of(one_by_one(loss, params, samples))
    small = {name: x.astype(dtype) for name, x in params.items()}
    found = gt.per_sample_norms(loss)(small, samples.astype(dtype))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0.1)


def test_norms_have_derivatives() -> None:
    loss, params, samples = LOSSES["sequence"]

    def total(w: Any, ways: Any) -> Any:
        return np.sum(ways(loss)({**params, "w": w}, samples))

    def materialised(loss: Any) -> Any:
        def norms(p: Any, x: Any) -> Any:
            grads = gt.per_sample_gradients(loss)(p, x)
            return np.sqrt(
                sum(np.sum(np.reshape(g, (SAMPLES, -1)) ** 2, 1) for g in grads.values())
            )

        return norms

    found = gt.grad(total)(params["w"], gt.per_sample_norms)
    np.testing.assert_allclose(found, gt.grad(total)(params["w"], materialised), rtol=1e-9)


def test_gradients_that_cancel() -> None:
    # Two rows of a sample whose products are equal but for the sign, up to one part in a million.
    w = np.zeros((40, 40), np.float32)
    x = np.ones((1, 2, 40), np.float32)
    signs = np.array([[1.0], [-1.0 + 1e-6]], np.float32)
    found = gt.per_sample_norms(lambda w, x: np.sum(signs * (x @ w)))(w, x)
    exact = 40 * abs(1 + float(signs[1, 0]))
    np.testing.assert_allclose(found, [exact], rtol=1e-3)


def test_arguments_and_containers() -> None:
    @dataclass
    class Params:
        w: Any
        b: Any

    def loss(y: Any, p: Any, x: Any, *, scale: float) -> Any:
        return scale * np.sum((x @ p.w + p.b - y["y"]) ** 2)

    x, y, p = draw(4, SAMPLES), {"y": draw(SAMPLES, 3)}, Params(draw(4, 3), draw(3))
    options: dict[str, Any] = {"argnums": 1, "in_axes": (0, None, 1)}
    grads = gt.per_sample_gradients(loss, **options)(y, p, x, scale=2.0)
    assert isinstance(grads, Params)
    for n in range(SAMPLES):
        one = gt.grad(loss, 1)({"y": y["y"][n]}, p, x[:, n], scale=2.0)
        np.testing.assert_allclose(grads.w[n], one.w, rtol=1e-12)
    norms = gt.per_sample_norms(loss, **options)(y, p, x, scale=2.0)
    np.testing.assert_allclose(norms, norms_of(vars(grads)), rtol=1e-12)
    both = gt.per_sample_norms(loss, argnums=(1,), in_axes=(0, None, 1), per_leaf=True)
    assert isinstance(both(y, p, x, scale=2.0)[0], Params)


def test_aux() -> None:
    def loss(w: Any, x: Any) -> Any:
        return np.sum(w * x), {"double": 2 * x}

    grads, aux = gt.per_sample_gradients(loss, has_aux=True)(np.ones(2), draw(3, 2))
    np.testing.assert_array_equal(grads, draw(3, 2))
    np.testing.assert_array_equal(aux["double"], 2 * draw(3, 2))


ways = pytest.mark.parametrize("way", [gt.per_sample_gradients, gt.per_sample_norms])


@ways
def test_errors(way: Any) -> None:
    name = way.__name__
    w, x = np.ones(2), np.ones((3, 2))

    def loss(w: Any, x: Any, y: Any = 0.0) -> Any:
        return np.sum(w * x) - y

    for arguments, options, error, text in (
        ((w, x), {"in_axes": (None,)}, ArgumentError, f"{name}: got in_axes=.*2 arguments"),
        ((w, x), {"in_axes": 0}, ArgumentError, f"{name}: got in_axes=0"),
        ((w, x), {"in_axes": (0, 0)}, ArgumentError, "expected None for what is differentiated"),
        ((w,), {}, ArgumentError, f"{name}: got no argument with samples"),
        ((w, x, np.ones(4)), {}, ShapeError, "argument 1: 3, argument 2: 4"),
        ((w, x), {"argnums": 4}, ArgumentError, f"{name}: got argnums=4"),
        ((np.ones(2, int), x), {}, DTypeError, "argument 0 is int64"),
    ):
        with pytest.raises(error, match=text):
            way(loss, **options)(*arguments)
    with pytest.raises(ShapeError, match=rf"{name}: the loss returned shape \(2,\) for one sample"):
        way(lambda w, x: w * x)(w, x)
    with pytest.raises(ArgumentError, match=f"{name}: got an int"):
        way(3)


def test_losses_that_draw() -> None:
    def loss(w: Any, x: Any) -> Any:
        return np.sum(w * x * gt.rand(2))

    with pytest.raises(UnsupportedError, match="draws random numbers"):
        gt.per_sample_norms(loss)(np.ones(2), np.ones((3, 2)))


def test_no_samples() -> None:
    loss, params, samples = LOSSES["linear"]
    assert gt.per_sample_gradients(loss)(params, samples[:0])["w"].shape == (0, 20, 30)
    assert gt.per_sample_norms(loss)(params, samples[:0]).shape == (0,)


def test_norms_of_what_is_no_loss() -> None:
    """What they are of would be left to chance, as several results are added up."""
    w, xs = np.ones(2), np.ones((3, 2))
    for loss, error, text in (
        (lambda w, x: (w @ x, w @ x), ShapeError, "returned 2 values for one sample"),
        (lambda w, x: None, ShapeError, "returned 0 values"),
        (lambda w, x: "loss", DTypeError, "returned a str, expected a real"),
        (lambda w, x: 1j * (w @ x), DTypeError, r"complex128\[\], expected a real"),
        (lambda w, x: gt.astype(w @ x, int), DTypeError, r"int64\[\], expected a real"),
    ):
        with pytest.raises(error, match=f"per_sample_norms: .*{text}"):
            gt.per_sample_norms(loss)(w, xs)
