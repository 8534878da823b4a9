"""The programs whose memory is measured: their sizes, and the arrays that both sides start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Chain:
    """`h = sin(h)`, or `h = tanh(1.001·h + 0.0001)`, again and again, in float64.

    A plain run holds one array per layer either way. The second kind has three ops to compute
    again, and its forward pass takes most of the time. Its factor is such that gradients neither
    vanish nor explode.
    """

    layers: int = 1_000
    elements: int = 1_000_000
    three_ops: bool = False

    def arrays(self) -> Arrays:
        """Make the argument."""
        return {"x": np.linspace(-1.0, 1.0, self.elements)}

    def __str__(self) -> str:
        layer = "tanh(1.001*h + 0.0001)" if self.three_ops else "sin(h)"
        return f"{self.layers:,} layers `h = {layer}`, {8e-6 * self.elements:g} MB each"


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks of a transformer: attention and a perceptron, each after a layer norm, in float32."""

    layers: int = 12
    batch: int = 4
    length: int = 256
    width: int = 512
    heads: int = 8
    widening: int = 4

    def arrays(self) -> Arrays:
        """Make the input and the parameters of every block."""
        rng = np.random.default_rng(0)
        wide = self.widening * self.width
        shapes = {
            "qkv": (3 * self.width, self.width),
            "out": (self.width, self.width),
            "up": (wide, self.width),
            "down": (self.width, wide),
        }
        found = {"x": _normal(rng, (self.batch, self.length, self.width))}
        for layer in range(self.layers):
            for norm in ("norm1", "norm2"):
                found[f"{layer}.{norm}.scale"] = np.ones(self.width, np.float32)
                found[f"{layer}.{norm}.shift"] = np.zeros(self.width, np.float32)
            for name, shape in shapes.items():
                found[f"{layer}.{name}"] = _normal(rng, shape) * np.float32(0.5 / shape[1] ** 0.5)
        return found

    def __str__(self) -> str:
        return (
            f"{self.layers} transformer blocks, {self.batch} × {self.length} × {self.width}, "
            f"{self.heads} heads, float32"
        )


@dataclass(frozen=True, slots=True)
class Perceptron:
    """Linear layers with rectifiers in between, in float32."""

    batch: int = 1_024
    widths: tuple[int, ...] = (784, 2_048, 2_048, 2_048, 10)

    def arrays(self) -> Arrays:
        """Make inputs, labels and parameters."""
        rng = np.random.default_rng(0)
        found = {"x": _normal(rng, (self.batch, self.widths[0])), "labels": self.labels(rng)}
        for layer, (before, after) in enumerate(zip(self.widths, self.widths[1:], strict=False)):
            found[f"{layer}.weight"] = _normal(rng, (after, before)) * np.float32(before**-0.5)
            found[f"{layer}.bias"] = np.zeros(after, np.float32)
        return found

    def labels(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the classes that are right."""
        return rng.integers(0, self.widths[-1], self.batch)

    def __str__(self) -> str:
        return f"MLP {'-'.join(map(str, self.widths))}, batch {self.batch:,}, float32"


@dataclass(frozen=True, slots=True)
class Convolutions:
    """Convolution, rectifier and pooling, several times, then a linear layer, in float32."""

    batch: int = 64
    size: int = 64
    channels: tuple[int, ...] = (3, 32, 64, 128, 128)
    classes: int = 10

    def arrays(self) -> Arrays:
        """Make images, labels and parameters."""
        rng = np.random.default_rng(0)
        found = {
            "x": _normal(rng, (self.batch, self.channels[0], self.size, self.size)),
            "labels": rng.integers(0, self.classes, self.batch),
        }
        pairs = zip(self.channels, self.channels[1:], strict=False)
        for layer, (before, after) in enumerate(pairs):
            scale = np.float32((9 * before) ** -0.5)
            found[f"{layer}.weight"] = _normal(rng, (after, before, 3, 3)) * scale
            found[f"{layer}.bias"] = np.zeros(after, np.float32)
        left = self.channels[-1] * (self.size >> self.layers) ** 2
        found["linear.weight"] = _normal(rng, (self.classes, left)) * np.float32(left**-0.5)
        found["linear.bias"] = np.zeros(self.classes, np.float32)
        return found

    @property
    def layers(self) -> int:
        """The number of convolutions."""
        return len(self.channels) - 1

    def __str__(self) -> str:
        return (
            f"conv net, {self.layers} × (3×3 convolution, ReLU, max pool), "
            f"{self.batch} images of {self.channels[0]}×{self.size}×{self.size}, float32"
        )


Case = Chain | Stack | Perceptron | Convolutions


@dataclass(frozen=True, slots=True)
class Cases:
    """All programs in one size."""

    chain: Chain = field(default_factory=Chain)
    long_chain: Chain = field(default_factory=lambda: Chain(three_ops=True))
    stack: Stack = field(default_factory=Stack)
    mlp: Perceptron = field(default_factory=Perceptron)
    conv: Convolutions = field(default_factory=Convolutions)

    @classmethod
    def of(cls, *, quick: bool) -> Cases:
        """Return the programs of the table, or small ones that show whether everything runs."""
        if not quick:
            return cls()
        return cls(
            Chain(layers=100, elements=125_000),
            Chain(layers=100, elements=125_000, three_ops=True),
            Stack(layers=4, batch=2, length=128, width=128),
            Perceptron(batch=256, widths=(784, 512, 512, 10)),
            Convolutions(batch=8, size=32),
        )


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape, np.float32)
