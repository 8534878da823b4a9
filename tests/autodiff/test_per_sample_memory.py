"""Per-sample gradients of common layers: values, and no more memory than they need themselves."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.gradients import per_sample_norms

BATCH = 32
nn = gt.nn


def draw(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def attention(p: Any, x: Any) -> Any:
    q, k, v = (np.swapaxes((x @ p[name]).reshape(len(x), 4, -1), 0, 1) for name in "qkv")
    heads = nn.scaled_dot_product_attention(q, k, v)
    return np.sum((np.swapaxes(heads, 0, 1).reshape(x.shape) @ p["o"]) ** 2)


def perceptron(p: Any, x: Any) -> Any:
    return np.sum(nn.linear(np.tanh(nn.linear(x, p["w"], p["b"])), p["v"], p["c"]) ** 2)


def conv(**options: Any) -> Any:
    return lambda p, x: np.sum(gt.relu(nn.conv2d(x, p["w"], p["b"], **options)) ** 2)


# Name: the loss of one sample, parameters, samples.
LAYERS: dict[str, tuple[Any, Any, Any]] = {
    "perceptron": (
        perceptron,
        {"w": draw(128, 256), "b": draw(128), "v": draw(10, 128), "c": draw(10)},
        draw(BATCH, 256),
    ),
    "matrix @ vector": (
        lambda p, x: np.sum(np.tanh(p["w"] @ x)),
        {"w": draw(128, 256)},
        draw(BATCH, 256),
    ),
    "sequence": (
        lambda p, x: np.sum(np.tanh(nn.linear(x, p["w"], p["b"]))),
        {"w": draw(256, 256), "b": draw(256)},
        draw(BATCH, 8, 256),
    ),
    "convolution": (
        conv(padding=1),
        {"w": draw(64, 64, 3, 3), "b": draw(64)},
        draw(BATCH, 64, 12, 12),
    ),
    "strided": (
        conv(stride=2),
        {"w": draw(64, 32, 3, 3), "b": draw(64)},
        draw(BATCH, 32, 17, 17),
    ),
    "few channels": (
        conv(padding=3),
        {"w": draw(32, 3, 7, 7), "b": draw(32)},
        draw(BATCH, 3, 40, 40),
    ),
    "groups": (
        conv(padding=1, groups=4),
        {"w": draw(64, 16, 3, 3), "b": draw(64)},
        draw(BATCH, 64, 8, 8),
    ),
    "transposed": (
        lambda p, x: np.sum(nn.conv_transpose2d(x, p["w"], p["b"], stride=2) ** 2),
        {"w": draw(64, 32, 3, 3), "b": draw(32)},
        draw(BATCH, 64, 8, 8),
    ),
    "embedding": (
        lambda p, x: np.sum(np.tanh(nn.embedding(x, p["t"]))),
        {"t": draw(1000, 64)},
        np.random.default_rng(0).integers(0, 1000, (BATCH, 64)),
    ),
    "layer norm": (
        lambda p, x: np.sum(nn.layer_norm(x, x.shape[-1:], p["s"], p["b"]) ** 3),
        {"s": draw(256), "b": draw(256)},
        draw(BATCH, 64, 256),
    ),
    "rms norm": (
        lambda p, x: np.sum(nn.rms_norm(x, x.shape[-1:], p["s"]) ** 3),
        {"s": draw(256)},
        draw(BATCH, 64, 256),
    ),
    "group norm": (
        lambda p, x: np.sum(nn.group_norm(x[None], 4, p["s"], p["b"]) ** 3),
        {"s": draw(32), "b": draw(32)},
        draw(BATCH, 32, 16, 16),
    ),
    "attention": (attention, {name: draw(128, 128) for name in "qkvo"}, draw(BATCH, 32, 128)),
}
layers = pytest.mark.parametrize("name", LAYERS)


def peak(function: Any, *args: Any) -> int:
    """The memory that a call takes; one before it loads and compiles what it needs."""
    function(*args)
    gc.collect()
    profiler = gt.GradientMemoryProfiler()
    profiler.start_profiling(ops=False)
    out = function(*args)
    profiler.stop_profiling()
    del out
    return profiler.peak_bytes()


def nbytes(container: Any) -> int:
    return sum(leaf.nbytes for leaf in containers.flatten(container)[0])


@layers
def test_peak(name: str) -> None:
    loss, params, samples = LAYERS[name]
    each = gt.vmap(loss, in_axes=(None, 0))
    of_sum = peak(gt.grad(lambda p, x: np.sum(each(p, x))), params, samples)
    needed = nbytes(params) * len(samples) + of_sum
    assert peak(gt.vmap(gt.grad(loss), in_axes=(None, 0)), params, samples) < 1.4 * needed


@layers
def test_peak_of_norms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_time = 1 << 18
    monkeypatch.setattr(per_sample_norms, "_AT_A_TIME", at_a_time)
    loss, params, samples = LAYERS[name]
    each = gt.vmap(loss, in_axes=(None, 0))
    of_sum = peak(gt.grad(lambda p, x: np.sum(each(p, x))), params, samples)
    norms = gt.per_sample_norms(loss)
    # Cotangents of all layers are there at a time; parts of gradients are squared in float64.
    assert peak(norms, params, samples) < 1.5 * of_sum + 6 * at_a_time
    materialised = gt.vmap(gt.grad(loss), in_axes=(None, 0))(params, samples)
    flat = [leaf.reshape(BATCH, -1).astype(float) for leaf in materialised.values()]
    expected = np.sqrt(sum(np.sum(leaf**2, 1) for leaf in flat))
    np.testing.assert_allclose(norms(params, samples), expected, rtol=1e-5)


@layers
@pytest.mark.parametrize("compiled", [False, True])
def test_values(name: str, compiled: bool) -> None:
    loss, params, samples = LAYERS[name]
    function = gt.vmap(gt.grad(loss), in_axes=(None, 0))
    found = (gt.jit(function) if compiled else function)(params, samples[:3])
    for n in range(3):
        expected = gt.grad(loss)(params, samples[n])
        for key, value in expected.items():
            scale = np.abs(value).max()
            np.testing.assert_allclose(found[key][n], value, rtol=1e-3, atol=2e-5 * scale)
