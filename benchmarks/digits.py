"""One epoch of training a small classifier on handwritten digits, eager, both sides alike."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare
from gradtape.data import load_digits

LAYERS = (64, 64, 10)
BATCH = 32
RATES = {"SGD": 0.1, "Adam": 1e-3}

Arrays = list[np.ndarray]
Batches = list[tuple[Any, Any]]
Epoch = Callable[[], list[Any]]
"""Trains from the initial weights over all batches and returns the parameters."""


def run(settings: Settings) -> Iterator[Row]:
    """Time an epoch with each optimizer, parameters made anew from the same weights."""
    images, labels = _training_data()
    starts = range(0, len(images), BATCH)
    pairs = [(images[i : i + BATCH], labels[i : i + BATCH]) for i in starts]
    ours_batches = [(gt.tensor(x), t) for x, t in pairs]
    torch_batches = [(torch.tensor(x), torch.tensor(t)) for x, t in pairs]
    for optimizer in RATES:
        ours = _ours(optimizer, _initial(), ours_batches)
        pytorch = _pytorch(optimizer, _initial(), torch_batches)
        for a, b in zip(ours(), pytorch(), strict=True):
            assert_agree(f"digits, {optimizer}", a.detach(), b.detach(), rtol=1e-4)
        yield from compare(
            f"digits MLP, {optimizer}",
            f"{'-'.join(map(str, LAYERS))} perceptron, float32, batches of {BATCH}, {optimizer}, "
            f"one epoch of {len(pairs)} steps",
            Contender(OURS, ours),
            [(Contender("PyTorch eager", pytorch), 1.0)],
            settings,
        )


def _training_data() -> tuple[np.ndarray, np.ndarray]:
    images, labels, *_ = load_digits()
    images = np.asarray(images, np.float32).reshape(len(images), -1)
    return images / images.max(), np.asarray(labels, np.int64)


def _initial() -> Arrays:
    rng = np.random.default_rng(0)
    arrays = []
    for fan_in, fan_out in pairwise(LAYERS):
        weight = rng.normal(scale=(2 / fan_in) ** 0.5, size=(fan_in, fan_out))
        arrays += [weight.astype(np.float32), np.zeros(fan_out, np.float32)]
    return arrays


def _ours(optimizer: str, initial: Arrays, batches: Batches) -> Epoch:
    rows = np.arange(BATCH)

    def epoch() -> list[Any]:
        params = w1, b1, w2, b2 = [gt.tensor(a, requires_grad=True) for a in initial]
        step = getattr(gt.optim, optimizer)(lr=RATES[optimizer])
        for x, labels in batches:
            logits = gt.relu(x @ w1 + b1) @ w2 + b2
            picked = logits[rows[: len(labels)], labels]
            loss = gt.mean(gt.logsumexp(logits, axis=1) - picked)
            loss.backward()
            step.step(params)
            step.zero_grad(params)
        return params

    return epoch


def _pytorch(optimizer: str, initial: Arrays, batches: Batches) -> Epoch:
    stored = [torch.tensor(a.T.copy()) for a in initial]  # as its `linear` wants the weights

    def epoch() -> list[Any]:
        params = w1, b1, w2, b2 = [a.clone().requires_grad_() for a in stored]
        step = getattr(torch.optim, optimizer)(params, lr=RATES[optimizer])
        for x, labels in batches:
            hidden = functional.relu(functional.linear(x, w1, b1))
            loss = functional.cross_entropy(functional.linear(hidden, w2, b2), labels)
            loss.backward()
            step.step()
            step.zero_grad()
        return [w1.T, b1, w2.T, b2]

    return epoch
