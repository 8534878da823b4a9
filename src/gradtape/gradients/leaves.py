"""Gradients in nested containers: their leaves, checked, and norms that do not overflow."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import tree
from gradtape.autodiff.arguments import as_primals, deliver, has_tensors, like_argument
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.graph.known_values import is_unknown
from gradtape.ops.arithmetic import abs as abs_of
from gradtape.ops.cast import astype, stop_gradient
from gradtape.ops.comparison import isfinite
from gradtape.ops.join import stack
from gradtape.ops.norm import norm, vector_norm
from gradtape.ops.reduce import max as max_of
from gradtape.ops.select import maximum, where


class Gradients:
    """The leaves of nested containers of gradients; None among them is not a leaf.

    Attributes:
        values: The leaves: arrays, tensors and NumPy's numbers.

    Raises:
        DTypeError: A leaf is neither an array nor a number, or not of floats.
    """

    def __init__(self, name: str, grads: Any, what: str = "grads") -> None:
        self._name, self._container, self._what = name, grads, what
        self._given, self.values, self.structure = as_primals(grads, name, what)

    def place(self, number: int) -> tree.Place:
        """The name of a leaf in errors: `grads['w']`."""
        return tree.Place(self._what, self._container, number)

    def rebuilt(self, leaves: Sequence[Any]) -> Any:
        """Other leaves in the same containers and dtypes; tensors if there were tensors."""
        tensors = has_tensors(self._given)
        made = [
            deliver(like_argument(astype(leaf, value.dtype), given), tensors=tensors)
            for leaf, value, given in zip(leaves, self.values, self._given, strict=True)
        ]
        return tree.unflatten(self.structure, made)

    def beside(self, other: Any, what: str) -> list[Any]:
        """The leaves of containers like these, such as parameters; `what` is one of them.

        Raises:
            ArgumentError: The containers differ.
            DTypeError: A leaf is neither an array nor a number, or not of floats.
            ShapeError: A leaf has another shape than its gradient.
        """
        # A gradient may be None where the other has an array.
        try:
            aligned = tree.aligned(self._container, other)
        except ValueError as error:
            raise ArgumentError(
                f"{self._name}: {error}; {what} and gradients have different containers"
            ) from None
        _, values, _ = as_primals(other, self._name, f"{what}s")
        leaves = [x for x, grad in zip(values, aligned, strict=True) if grad is not None]
        for n, (leaf, value) in enumerate(zip(leaves, self.values, strict=True)):
            if leaf.shape != value.shape:
                raise ShapeError(
                    f"{self._name}: {self.place(n)} has shape {value.shape}, expected "
                    f"{leaf.shape}, the shape of its {what}"
                )
        return leaves


# ---- numbers ------------------------------------------------------------------------------------


def wide(x: Any) -> Any:
    """An array in float32 if it is of a smaller float, else as it is."""
    return astype(x, np.float32) if x.dtype.itemsize <= 2 else x


def real_dtype(x: Any) -> np.dtype[Any]:
    """The dtype of the absolute value."""
    return x.dtype if x.dtype.kind != "c" else np.finfo(x.dtype).dtype


def number_of(value: Any) -> float | None:
    """The value of a number; None while it is not known, in a compiled function or a batch."""
    if not isinstance(value, Tensor):
        return float(value)
    return None if is_unknown(value) else float(value.item())


# What is not finite is said by the largest magnitude, not by warnings.
_quiet = np.errstate(invalid="ignore", over="ignore", divide="ignore", under="ignore")


@_quiet
def scaled_norm(values: Sequence[Any]) -> tuple[Any, Any]:
    """The largest magnitude among arrays, and the norm of all of them in units of it.

    Their product is the norm; neither overflows, and squares of small numbers do not vanish.
    """
    arrays = [wide(x) for x in values if math.prod(x.shape)]
    if not arrays:
        return np.float32(0), np.float32(0)
    # The norm does not depend on its unit, so neither does its derivative.
    largest = functools.reduce(maximum, [max_of(abs_of(stop_gradient(x))) for x in arrays])
    parts = [norm(x / _unit(astype(largest, real_dtype(x)))) for x in arrays]
    dtype = np.result_type(*[part.dtype for part in parts])
    return largest, norm(stack([astype(part, dtype) for part in parts]))


@_quiet
def scaled_norms(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The same over some axes, which stay with size 1."""
    largest = max_of(abs_of(stop_gradient(x)), axes, keepdims=True, initial=0)
    return largest, vector_norm(x / _unit(largest), axis=axes, keepdims=True)


@_quiet
def norm_of(largest: Any, rest: Any) -> Any:
    """The norm given as a product; if the first factor is not finite, it is the norm."""
    found = where(isfinite(largest), largest * rest, largest)
    return found[()] if isinstance(found, np.ndarray) else found


def scaling_to(limit: Any, largest: Any, rest: Any) -> tuple[Any, Any]:
    """What to divide by, and then to multiply with, to bring a norm that is larger to a limit.

    Both are 1 if it is not larger. Their quotient may be too small for the dtype.
    """
    too_large = (norm_of(largest, rest) > limit) & isfinite(largest)
    return where(too_large, largest, 1), where(too_large, limit / where(too_large, rest, 1), 1)


def rescaled(x: Any, scaling: tuple[Any, Any]) -> Any:
    """An array divided by one number and multiplied with another, in at least float32."""
    full = wide(x)
    divisor, factor = [astype(number, real_dtype(full)) for number in scaling]
    return full / divisor * factor


def _unit(largest: Any) -> Any:
    return where(largest > 0, largest, 1)
