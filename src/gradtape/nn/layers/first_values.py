"""First values of the parameters of layers, as PyTorch chooses them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.aval import is_extended_float
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, UnsupportedError
from gradtape.ops.arguments import as_dtype
from gradtape.ops.random import randn, uniform


def layer_dtype(dtype: Any, layer: str) -> np.dtype[Any]:
    """The dtype of a layer's parameters.

    Raises:
        DTypeError: It is not a floating-point one.
    """
    found = as_dtype(dtype, layer)
    if found.kind != "f" and not is_extended_float(found):
        raise DTypeError(f"{layer}: got dtype {found}, expected a floating-point one")
    return found


def within(bound: float, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A parameter drawn uniformly from −bound to bound."""
    return leaf(uniform(-bound, bound, shape, dtype=dtype))


def by_fan_in(shape: tuple[int, ...], fan_in: int, dtype: Any) -> Tensor:
    """A parameter drawn uniformly from ±1/√fan_in, for weights and biases alike."""
    return within(1 / math.sqrt(fan_in) if fan_in > 0 else 0.0, shape, dtype)


def standard_normal(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A parameter drawn from the standard normal distribution."""
    return leaf(randn(shape, dtype=dtype))


def filled(number: float, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A parameter with the same number everywhere."""
    return leaf(Tensor(np.full(shape, number, dtype)))


def leaf(drawn: Tensor) -> Tensor:
    """A tensor that was just made, as a parameter."""
    return Tensor(known_numbers("a layer", drawn)).set_requires_grad()


def known_numbers(name: str, drawn: Any) -> Any:
    """The numbers of what was just drawn or made, as an array.

    Raises:
        UnsupportedError: They are only known when a compiled function runs.
    """
    value = drawn.detach().value if isinstance(drawn, Tensor) else drawn
    if not isinstance(value, np.ndarray):
        raise UnsupportedError(
            f"{name}: got a random draw in a function that is compiled, for the first values of "
            "parameters; make layers outside and give them to the function"
        )
    return value
