"""The programs whose memory is measured, with gradtape."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import gradtape as gt
from benchmarks.memory_cases import Arrays, Case, Chain, Convolutions, Perceptron, Stack
from benchmarks.memory_program import Program
from gradtape.compiler.cpu.runtime import blocks

DATA = ("x", "labels")
"""Names of arrays that are not parameters."""


def chain(case: Chain, x: Any) -> Any:
    """Compute the sum of the last layer."""
    for _ in range(case.layers):
        x = gt.tanh(x * 1.001 + 0.0001) if case.three_ops else gt.sin(x)
    return gt.sum(x)


def block(case: Stack, x: Any, p: Callable[[str], Any]) -> Any:
    """Apply one transformer block; `p` finds its parameters."""
    shape = (case.batch, case.length, case.heads, case.width // case.heads)
    h = gt.nn.layer_norm(x, case.width, p("norm1.scale"), p("norm1.shift"))
    q, k, v = (
        gt.transpose(gt.reshape(part, shape), (0, 2, 1, 3))
        for part in gt.split(gt.nn.linear(h, p("qkv")), 3, axis=2)
    )
    mixed = gt.transpose(gt.nn.scaled_dot_product_attention(q, k, v), (0, 2, 1, 3))
    x = x + gt.nn.linear(gt.reshape(mixed, x.shape), p("out"))
    h = gt.nn.layer_norm(x, case.width, p("norm2.scale"), p("norm2.shift"))
    return x + gt.nn.linear(gt.gelu(gt.nn.linear(h, p("up"))), p("down"))


def stack(case: Stack, a: dict[str, Any]) -> Any:
    """Apply all blocks; the loss is the mean of the squares."""
    x = a["x"]
    for layer in range(case.layers):
        x = block(case, x, lambda name, layer=layer: a[f"{layer}.{name}"])  # type: ignore[misc]
    return gt.mean(x * x)


def mlp(case: Perceptron, a: dict[str, Any]) -> Any:
    """Compute the loss of a batch."""
    x = a["x"]
    last = len(case.widths) - 2
    for layer in range(last + 1):
        x = gt.nn.linear(x, a[f"{layer}.weight"], a[f"{layer}.bias"])
        if layer < last:
            x = gt.relu(x)
    return gt.nn.cross_entropy(x, a["labels"])


def conv(case: Convolutions, a: dict[str, Any]) -> Any:
    """Compute the loss of a batch of images."""
    x = a["x"]
    for layer in range(case.layers):
        x = gt.nn.conv2d(x, a[f"{layer}.weight"], a[f"{layer}.bias"], padding=1)
        x = gt.nn.max_pool2d(gt.relu(x), 2)
    x = gt.nn.linear(gt.reshape(x, (case.batch, -1)), a["linear.weight"], a["linear.bias"])
    return gt.nn.cross_entropy(x, a["labels"])


def use_threads(number: int) -> None:
    """Compute with this many threads."""
    gt.set_num_threads(number)


def program(case: Case, way: str, budget: int | None) -> Program:
    """Make a program.

    Args:
        case: What it computes.
        way: "tape" for a `GradientTape`, "release" for `backward(release=True)`.
        budget: The bytes that a tape may keep, None for a plain one.
    """
    arrays = case.arrays()
    if way == "release":
        return _released(case, arrays)
    return _taped(case, arrays, budget)


def _loss(case: Case, a: dict[str, Any]) -> Any:
    match case:
        case Chain():
            return chain(case, a["x"])
        case Stack():
            return stack(case, a)
        case Perceptron():
            return mlp(case, a)
        case Convolutions():
            return conv(case, a)


def _taped(case: Case, arrays: Arrays, budget: int | None) -> Program:
    names = [n for n in arrays if n not in DATA or isinstance(case, Chain)]

    def tape() -> Any:
        if budget is None:
            return gt.GradientTape()
        config = gt.CheckpointConfig(
            strategy=gt.CheckpointStrategy.Auto, memory_budget_mb=budget / MEGABYTE
        )
        return gt.GradientTape(checkpoint=config)

    def forward() -> Any:
        with tape() as used:
            a = arrays | {name: used.watch(arrays[name]) for name in names}
            return used, _loss(case, a), [a[name] for name in names]

    def backward(made: Any) -> list[Any]:
        used, loss, sources = made
        return _arrays_of(used.gradient(loss, sources))

    return Program(forward, backward, tidy, allocated)


def _released(case: Case, arrays: Arrays) -> Program:
    leaves = {n: gt.tensor(a, requires_grad=True) for n, a in arrays.items() if n not in DATA}

    def backward(loss: Any) -> list[Any]:
        loss.backward(release=True)
        found = _arrays_of([leaf.grad for leaf in leaves.values()])
        for leaf in leaves.values():
            leaf.grad = None
        return found

    return Program(lambda: _loss(case, arrays | leaves), backward, tidy, allocated)


def _arrays_of(tensors: Iterable[Any]) -> list[Any]:
    return [tensor.numpy() for tensor in tensors]


MEGABYTE = 10**6
"""Bytes of a megabyte of `memory_budget_mb`."""


def tidy() -> None:
    """Give back what waits for the next call."""
    blocks.release()


def allocated(call: Callable[[], object]) -> tuple[int, int]:
    """Trace what Python and NumPy allocate, in kept blocks as well, during a call.

    Returns:
        By how many bytes the peak, and what is held at the end, exceed what was held before.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        after, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        tracemalloc.stop()
    return peak - before, after - before
