"""The programs whose memory is measured, with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as everyone names it
from torch.utils.checkpoint import checkpoint

from benchmarks.memory_cases import Case, Chain, Convolutions, Perceptron, Stack
from benchmarks.memory_program import Program

DATA = ("x", "labels")
"""Names of arrays that are not parameters."""


def block(case: Stack, x: Any, p: dict[str, Any]) -> Any:
    """Apply one transformer block with its parameters."""
    shape = (case.batch, case.length, case.heads, case.width // case.heads)
    h = F.layer_norm(x, (case.width,), p["norm1.scale"], p["norm1.shift"])
    parts = F.linear(h, p["qkv"]).chunk(3, dim=2)
    q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
    mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
    x = x + F.linear(mixed.reshape(x.shape), p["out"])
    h = F.layer_norm(x, (case.width,), p["norm2.scale"], p["norm2.shift"])
    return x + F.linear(F.gelu(F.linear(h, p["up"])), p["down"])


def stack(case: Stack, a: dict[str, Any], *, checkpointed: bool) -> Any:
    """Apply all blocks, each checkpointed if so asked; the loss is the mean of the squares."""
    x = a["x"]
    for layer in range(case.layers):
        prefix = f"{layer}."
        p = {name.removeprefix(prefix): v for name, v in a.items() if name.startswith(prefix)}
        x = (
            checkpoint(block, case, x, p, use_reentrant=False)
            if checkpointed
            else block(case, x, p)
        )
    return torch.mean(x * x)


def mlp(case: Perceptron, a: dict[str, Any]) -> Any:
    """Compute the loss of a batch."""
    x = a["x"]
    last = len(case.widths) - 2
    for layer in range(last + 1):
        x = F.linear(x, a[f"{layer}.weight"], a[f"{layer}.bias"])
        if layer < last:
            x = F.relu(x)
    return F.cross_entropy(x, a["labels"])


def conv(case: Convolutions, a: dict[str, Any]) -> Any:
    """Compute the loss of a batch of images."""
    x = a["x"]
    for layer in range(case.layers):
        x = F.conv2d(x, a[f"{layer}.weight"], a[f"{layer}.bias"], padding=1)
        x = F.max_pool2d(F.relu(x), 2)
    x = F.linear(x.reshape(case.batch, -1), a["linear.weight"], a["linear.bias"])
    return F.cross_entropy(x, a["labels"])


def use_threads(number: int) -> None:
    """Compute with this many threads."""
    torch.set_num_threads(number)


def program(case: Case, way: str, _budget: int | None) -> Program:
    """Make a program; the way is "plain" or "checkpoint"."""
    tensors = {name: torch.from_numpy(array) for name, array in case.arrays().items()}
    leaves = {n: t.requires_grad_() for n, t in tensors.items() if n not in DATA}

    def forward() -> Any:
        match case:
            case Stack():
                return stack(case, tensors, checkpointed=way == "checkpoint")
            case Perceptron():
                return mlp(case, tensors)
            case Convolutions():
                return conv(case, tensors)
            case Chain():
                raise NotImplementedError("the chain is compared with our own plain run")

    def backward(loss: Any) -> list[Any]:
        loss.backward()
        found = [leaf.grad.numpy() for leaf in leaves.values()]
        for leaf in leaves.values():
            leaf.grad = None
        return found

    return Program(forward, backward, _nothing, allocated)


def _nothing() -> None:
    """Do nothing: PyTorch frees with `free`."""


def allocated(call: Callable[[], object]) -> tuple[int, int]:
    """Add up what PyTorch's profiler sees allocated and freed during a call.

    Returns:
        By how many bytes the peak, and what is held at the end, exceed what was held before.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        result = call()
    del result
    events = profile.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    held = peak = 0
    for _, change in changes:
        held += change
        peak = max(peak, held)
    return peak, held
