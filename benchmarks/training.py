"""Training with modules: epochs of digit classifiers and steps of a transformer, against PyTorch.

Both sides begin from the same weights, and the parameters after an epoch are compared. Eager sides
are what users write: a model, its loss, `backward`, `step`. The compiled side of ours is one
function that takes and returns the model; that of PyTorch compiles model and loss, whose gradients
go to its fused optimizer, which was the faster of its ways.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import gradtape as gt
from benchmarks import THREADS
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, NotRun, Row, compare
from gradtape.data import load_digits

BATCH = 32
RATE = 1e-3
EAGER_BAR, COMPILED_BAR, TRANSFORMER_BAR = 0.8, 0.6, 0.9
VOCABULARY, LENGTH, WIDTH, HEADS, DEPTH = 64, 32, 64, 4, 2

Batches = Sequence[tuple[np.ndarray, np.ndarray]]
Epoch = Callable[[], Any]


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Time epochs of a perceptron and a convolution network, and steps of a transformer."""
    before = gt.get_num_threads()
    gt.set_num_threads(THREADS)
    try:
        for name, ours, theirs in (
            ("digits MLP of modules", Perceptron, _torch_perceptron),
            ("digits conv net", ConvNet, _torch_conv_net),
        ):
            yield from _model(name, ours, theirs, _digits(), settings, eager=True)
        yield from _model(
            "small transformer", Transformer, TorchTransformer, _text(), settings, eager=False
        )
    finally:
        gt.set_num_threads(before)


def _model(
    name: str,
    ours: Callable[[], gt.nn.Module],
    theirs: Callable[[], torch.nn.Module],
    batches: Batches,
    settings: Settings,
    *,
    eager: bool,
) -> Iterator[Row | NotRun]:
    torch.manual_seed(0)
    peer = theirs()
    state = {key: value.numpy().copy() for key, value in peer.state_dict().items()}

    def model() -> gt.nn.Module:
        made = ours()
        made.load_state_dict(state)
        return made

    def torch_model() -> torch.nn.Module:
        made = theirs()
        made.load_state_dict(peer.state_dict())
        return made

    what = f"{len(batches)} batches of {len(batches[0][0])}, float32, Adam"
    _check(name, _eager(model(), batches), _torch_eager(torch_model(), batches, fused=True))
    if eager:
        yield from compare(
            name,
            f"an epoch, eager; {what}",
            Contender(OURS, _eager(model(), batches)),
            [
                (Contender("PyTorch eager", _torch_eager(torch_model(), batches)), EAGER_BAR),
                (
                    Contender(
                        "PyTorch eager, fused Adam",
                        _torch_eager(torch_model(), batches, fused=True),
                    ),
                    None,
                ),
            ],
            settings,
        )
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        yield NotRun(name, "torch.compile", f"it needs a C++ compiler, {compiler} was not found")
        return
    torch.compiler.reset()
    compiled = _torch_eager(torch_model(), batches, fused=True, compiler=torch.compile)
    yield from compare(
        name,
        f"{'an epoch' if eager else 'steps'}, compiled; {what}",
        Contender(OURS, _compiled(model(), batches)),
        [(Contender("torch.compile", compiled), COMPILED_BAR if eager else TRANSFORMER_BAR)],
        settings,
    )


def _check(name: str, ours: Epoch, theirs: Epoch) -> None:
    """Raise unless the first losses of both sides agree."""
    assert_agree(name, ours(), theirs(), rtol=1e-3)


# ---- loops ---------------------------------------------------------------------------------------


def _loss(net: gt.nn.Module, x: Any, labels: Any) -> Any:
    return gt.nn.cross_entropy(net(x), labels)


def _eager(net: gt.nn.Module, batches: Batches) -> Epoch:
    optimizer = gt.optim.Adam(net.parameters(), lr=RATE)

    def epoch() -> float:
        total = 0.0
        for x, labels in batches:
            optimizer.zero_grad()
            loss = _loss(net, x, labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return epoch


def _compiled(net: gt.nn.Module, batches: Batches) -> Epoch:
    optimizer = gt.optim.Adam(lr=RATE)

    @gt.jit
    def step(net: Any, state: Any, x: Any, labels: Any) -> Any:
        value, grads = gt.value_and_grad(_loss)(net, x, labels)
        net, state = optimizer.apply(net, grads, state)
        return value, net, state

    held = [net, optimizer.init(net)]

    def epoch() -> float:
        total = 0.0
        with gt.no_grad():
            for x, labels in batches:
                value, *held[:] = step(*held, x, labels)
                total += float(value)
        return total

    return epoch


def _torch_eager(
    net: torch.nn.Module,
    batches: Batches,
    *,
    fused: bool | None = None,
    compiler: Callable[..., Any] = lambda function: function,
) -> Epoch:
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, fused=fused)
    given = [(torch.tensor(x), torch.tensor(labels)) for x, labels in batches]
    loss_of = compiler(lambda x, labels: functional.cross_entropy(net(x), labels))

    def epoch() -> float:
        total = 0.0
        for x, labels in given:
            optimizer.zero_grad()
            loss = loss_of(x, labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return epoch


# ---- data ----------------------------------------------------------------------------------------


def _digits() -> Batches:
    images, labels, *_ = load_digits()
    images = np.asarray(images, np.float32).reshape(len(images), 1, 8, 8)
    images, labels = images / images.max(), np.asarray(labels, np.int64)
    starts = range(0, len(images) - BATCH + 1, BATCH)
    return [(images[i : i + BATCH], labels[i : i + BATCH]) for i in starts]


def _text() -> Batches:
    """Sequences of a random walk; the next step is to be told."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.integers(-1, 2, (4, BATCH // 2, LENGTH + 1)), axis=-1) % VOCABULARY
    return [(walk[:, :-1], walk[:, 1:]) for walk in walks]


# ---- models --------------------------------------------------------------------------------------


class Perceptron(gt.nn.Sequential):
    """One hidden layer."""

    def __init__(self) -> None:
        nn = gt.nn
        super().__init__(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def _torch_perceptron() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def _conv_layers(nn: Any) -> list[Any]:
    return [
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)),
    ]


class ConvNet(gt.nn.Sequential):
    """Two convolutions with pooling, two linear layers."""

    def __init__(self) -> None:
        super().__init__(*_conv_layers(gt.nn))


def _torch_conv_net() -> torch.nn.Module:
    return torch.nn.Sequential(*_conv_layers(torch.nn))


def _transformer_parts(nn: Any) -> dict[str, Any]:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True)
    return {
        "symbols": nn.Embedding(VOCABULARY, WIDTH),
        "places": nn.Embedding(LENGTH, WIDTH),
        "layers": nn.TransformerEncoder(layer, DEPTH),
        "out": nn.Linear(WIDTH, VOCABULARY),
    }


class Transformer(gt.nn.Module):
    """A causal language model."""

    def __init__(self) -> None:
        for name, part in _transformer_parts(gt.nn).items():
            setattr(self, name, part)

    def forward(self, symbols: Any) -> Any:
        """Return logits, with the classes along axis 1."""
        x = self.symbols(symbols) + self.places(np.arange(LENGTH))
        mask = np.triu(np.ones((LENGTH, LENGTH), bool), 1)
        hidden = self.layers(x, mask=mask, is_causal=True)
        return gt.swapaxes(self.out(hidden), 1, 2)


class TorchTransformer(torch.nn.Module):
    """The same."""

    def __init__(self) -> None:
        super().__init__()
        for name, part in _transformer_parts(torch.nn).items():
            setattr(self, name, part)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH).bool().triu(1), persistent=False)

    def forward(self, symbols: Any) -> Any:
        """Return logits, with the classes along axis 1."""
        x = self.symbols(symbols) + self.places.weight
        return self.out(self.layers(x, mask=self.mask, is_causal=True)).swapaxes(1, 2)
