"""Measures the memory of one loop: `python -m benchmarks.loop_memory_worker SAVE`."""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from gradtape.tools.peak_memory import PeakMeter

ITERATIONS = 10_000
SIZE = 1_000
RATE = 1e-4


def drift(while_loop: Callable[..., Any], x: Any, iterations: Any) -> Any:
    """Move numbers uphill along a sine, and add them up."""

    def going(state: Any) -> Any:
        return state[1] < iterations

    def body(state: Any) -> Any:
        x, count = state
        return x + RATE * np.sin(x), count + 1

    return np.sum(while_loop(going, body, (x, 0))[0])


def drift_slope(x: np.ndarray, iterations: int) -> np.ndarray:
    """Compute the gradient of `drift` forward: the numbers do not depend on each other."""
    slope = np.ones_like(x)
    for _ in range(iterations):
        slope, x = slope * (1.0 + RATE * np.cos(x)), x + RATE * np.sin(x)
    return slope


def peak_of(call: Callable[[], object]) -> int:
    """Return by how many bytes a call raises resident memory at its peak."""
    meter = PeakMeter()
    begun = meter.begin()
    call()
    peak = meter.end(begun)
    if peak is None:
        raise LookupError("this system does not tell the peak of a process")
    return peak


def main(save: str) -> None:
    """Compile the gradient by a short call, then measure a long one and check its result."""
    kept: Any = int(save) if save.isdigit() else save

    def loop(*args: Any) -> Any:
        return gt.while_loop(*args, save=kept)

    gradient = gt.jit(gt.grad(lambda x, iterations: drift(loop, x, iterations)))
    x = np.random.default_rng(0).uniform(0.0, 3.0, SIZE)
    gradient(x, np.int64(2))
    results: list[Any] = []
    peak = peak_of(lambda: results.append(gradient(x, np.int64(ITERATIONS))))
    assert_agree(f"save={save}", results[0], drift_slope(x, ITERATIONS))
    print(json.dumps({"bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
