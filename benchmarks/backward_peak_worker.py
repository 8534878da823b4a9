"""Measures the memory of one gradient: `python -m benchmarks.backward_peak_worker WAY`."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.loop_memory_worker import peak_of

LAYERS = 50
SIZE = 1 << 20
"""Of 8 MiB, since memory that is used again is handed out in such portions."""


def layers(x: Any, weights: Sequence[Any]) -> Any:
    """Multiply by weights and take the sine, in every layer; then add all elements up."""
    for weight in weights:
        x = np.sin(x * weight)
    return np.sum(x)


def layers_slopes(x: np.ndarray, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Compute the gradients of `layers` by the weights."""
    given = [x]
    for weight in weights:
        given.append(np.sin(given[-1] * weight))
    slope, slopes = np.ones_like(x), []
    for x, weight in zip(given[-2::-1], weights[::-1], strict=True):
        slope = slope * np.cos(x * weight)
        slopes.append(slope * x)
        slope = slope * weight
    return slopes[::-1]


def by_value_and_grad(x: np.ndarray, weights: list[gt.Tensor]) -> Sequence[Any]:
    return gt.value_and_grad(layers, 1)(x, [weight.detach().numpy() for weight in weights])[1]


def by_tape(x: np.ndarray, weights: list[gt.Tensor]) -> Sequence[Any]:
    with gt.GradientTape() as tape:
        sources = [tape.watch(weight.detach()) for weight in weights]
        target = layers(x, sources)
    return tape.gradient(target, sources)


def by_release(x: np.ndarray, weights: list[gt.Tensor]) -> Sequence[Any]:
    layers(x, weights).backward(release=True)
    return [weight.grad for weight in weights]


Way = Callable[[np.ndarray, list[gt.Tensor]], Sequence[Any]]
WAYS: dict[str, Way] = {
    "value_and_grad": by_value_and_grad,
    "GradientTape": by_tape,
    "backward(release=True)": by_release,
}


def case(size: int) -> tuple[np.ndarray, list[gt.Tensor]]:
    """Make an input and the weights of all layers."""
    rng = np.random.default_rng(0)
    weights = [gt.tensor(rng.uniform(0.5, 1.5, size), requires_grad=True) for _ in range(LAYERS)]
    return rng.uniform(0.1, 1.0, size), weights


def main(way: str) -> None:
    """Compile what is needed by a small call, then measure a large one and check its result."""
    WAYS[way](*case(SIZE // 16))
    x, weights = case(SIZE)
    results: list[Any] = []
    peak = peak_of(lambda: results.extend(WAYS[way](x, weights)))
    expected = layers_slopes(x, [weight.detach().numpy() for weight in weights])
    for n, (got, slope) in enumerate(zip(results, expected, strict=True)):
        assert_agree(f"{way}, weight {n}", np.asarray(got), slope)
    print(json.dumps({"bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
