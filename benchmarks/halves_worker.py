"""Measures the memory of one training step: `python -m benchmarks.halves_worker NET DTYPE`."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.loop_memory_worker import peak_of

DTYPES = ("float32", "bfloat16")
RATE = 0.01
CLASSES = 10


class Net(NamedTuple):
    """A network that is trained on random numbers.

    Attributes:
        what: What it is, for the table.
        shapes: The shapes of its weights.
        inputs: The shape of the inputs.
        layer: `layer(x, w)`, all but the last one.
    """

    what: str
    shapes: list[tuple[int, ...]]
    inputs: tuple[int, ...]
    layer: Callable[[Any, Any], Any]


def _dense(x: Any, w: Any) -> Any:
    return gt.nn.gelu(x @ w, approximate="tanh")


def _convolution(x: Any, w: Any) -> Any:
    return gt.nn.relu(gt.nn.conv2d(x, w, padding=1))


def _pooled(x: Any, w: Any) -> Any:
    return gt.nn.max_pool2d(_convolution(x, w), 2)


NETS = {
    "dense": Net("8 layers of 256, a batch of 16,384", [(256, 256)] * 8, (16_384, 256), _dense),
    "images": Net(
        "8 convolutions of 32 channels, 128 images of 32×32",
        [(32, 32, 3, 3)] * 8,
        (128, 32, 32, 32),
        _convolution,
    ),
    "pooled": Net(
        "4 convolutions of 32 channels, each pooled, 128 coloured images of 64×64",
        [(32, 3, 3, 3), *[(32, 32, 3, 3)] * 3],
        (128, 3, 64, 64),
        _pooled,
    ),
}


def loss(net: Net, weights: list[Any], x: Any, targets: Any, dtype: Any) -> Any:
    """Compute the loss with activations in a dtype; weights and the loss are in float32."""
    x = x.astype(dtype)
    for w in weights[:-1]:
        x = net.layer(x, w.astype(dtype))
    if x.ndim == 4:
        x = x.mean(axis=(2, 3))
    return gt.nn.cross_entropy((x @ weights[-1].astype(dtype)).astype(np.float32), targets)


def case(name: str, dtype: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Make a compiled step of gradient descent, and its arguments."""
    net, rng = NETS[name], np.random.default_rng(0)
    shapes = [*net.shapes, (net.shapes[-1][-1 if name == "dense" else 0], CLASSES)]
    weights = [
        (rng.standard_normal(s) / np.sqrt(np.prod(s) / s[0])).astype(np.float32) for s in shapes
    ]
    x = rng.standard_normal(net.inputs, np.float32)
    targets = rng.integers(0, CLASSES, len(x))

    def step(weights: list[Any], x: Any, targets: Any) -> Any:
        value, slopes = gt.value_and_grad(lambda ws: loss(net, ws, x, targets, dtype))(weights)
        return value, [w - RATE * slope for w, slope in zip(weights, slopes, strict=True)]

    return gt.jit(step), (weights, x, targets)


def main(name: str, dtype: str) -> None:
    """Compile a step, then measure one, and check its loss."""
    step, arguments = case(name, getattr(gt, dtype))
    results: list[Any] = [step(*arguments)]
    value = float(results.pop()[0])
    peak = peak_of(lambda: results.append(step(*arguments)))
    assert_agree(f"{name} in {dtype}", np.asarray(results[0][0]), np.asarray(value))
    print(json.dumps({"bytes": peak, "loss": value}))


if __name__ == "__main__":
    # Memory that is freed goes back to the system, so that the next peak counts all of it.
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        os.environ |= {"MALLOC_MMAP_THRESHOLD_": str(1 << 18), "GRADTAPE_KEEP_MB": "0"}
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.halves_worker", *sys.argv[1:]])
    main(*sys.argv[1:])
