"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.nn.layers.first_values import by_fan_in, layer_dtype, within
from gradtape.nn.module import Module
from gradtape.ops.checks import check_count
from gradtape.ops.nn.linear import bilinear, linear
from gradtape.typing import Array, ArrayLike


class Linear(Module):
    """x @ weight.T + bias, along the last axis.

    Args:
        in_features: The size of the last axis of what goes in.
        out_features: The size of the last axis of what comes out.
        bias: Whether there is a bias.
        dtype: The dtype of the parameters.

    Attributes:
        weight: Of shape (out_features, in_features).
        bias: Of shape (out_features,), or None.

    >>> layer = gt.nn.Linear(4, 2)
    >>> layer(np.ones((3, 4), np.float32)).shape
    (3, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = np.float32
    ) -> None:
        check_count("Linear", 0, in_features=in_features, out_features=out_features)
        kind = layer_dtype(dtype, "Linear")
        self.in_features, self.out_features = in_features, out_features
        self.weight = by_fan_in((out_features, in_features), in_features, kind)
        has_bias = by_fan_in((out_features,), in_features, kind) if bias else None
        self.register_parameter("bias", has_bias)

    def forward(self, x: ArrayLike) -> Array:
        """Apply the layer to the last axis of `x`."""
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Show the sizes."""
        without = "" if self.bias is not None else ", bias=False"
        return f"{self.in_features}, {self.out_features}{without}"


class Bilinear(Module):
    """Products x1ᵀ·W·x2 of pairs of vectors with several matrices, and a bias: `gt.nn.bilinear`.

    Args:
        in1_features: The size of the first vectors.
        in2_features: The size of the second ones.
        out_features: The number of matrices.
        bias: Whether there is a bias.
        dtype: The dtype of the parameters.

    Attributes:
        weight: Of shape (out_features, in1_features, in2_features).
        bias: Of shape (out_features,), or None.

    Raises:
        ArgumentError: A size is less than 1.
        DTypeError: The dtype is not a floating-point one.

    >>> layer = gt.nn.Bilinear(2, 3, 4)
    >>> layer(np.ones((5, 2), np.float32), np.ones((5, 3), np.float32)).shape
    (5, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        dtype: Any = np.float32,
    ) -> None:
        sizes = {"in1_features": in1_features, "in2_features": in2_features}
        check_count("Bilinear", 1, **sizes, out_features=out_features)
        kind = layer_dtype(dtype, "Bilinear")
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        self.weight = within(bound, (out_features, in1_features, in2_features), kind)
        self.register_parameter("bias", within(bound, (out_features,), kind) if bias else None)

    def forward(self, x1: ArrayLike, x2: ArrayLike) -> Array:
        """Apply the layer to the last axes of `x1` and `x2`."""
        return bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Show the sizes."""
        without = "" if self.bias is not None else ", bias=False"
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}{without}"
