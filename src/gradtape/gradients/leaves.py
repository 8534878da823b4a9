"""Gradients in nested containers: their leaves, checked, and norms that do not overflow."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape import containers
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

    def place(self, number: int) -> containers.Place:
        """The name of a leaf in errors: `grads['w']`."""
        return containers.Place(self._what, self._container, number)

    def rebuilt(self, leaves: Sequence[Any]) -> Any:
        """Other leaves in the same containers and dtypes; tensors if there were tensors."""
        tensors = has_tensors(self._given)
        made = [
            deliver(like_argument(astype(leaf, value.dtype), given), tensors=tensors)
            for leaf, value, given in zip(leaves, self.values, self._given, strict=True)
        ]
        return containers.unflatten(self.structure, made)

    def beside(self, params: Any) -> list[Any]:
        """The parameters for which there are gradients.

        Raises:
            ArgumentError: The containers differ, or there is None for a parameter.
            DTypeError: A leaf is neither an array nor a number, or not of floats.
            ShapeError: A parameter has another shape than its gradient.
        """
        pairs, _ = self.paired(params, "parameter", "the parameters")
        found = [param for gradient, param in pairs if gradient is not None]
        for n, (value, param) in enumerate(zip(self.values, found, strict=True)):
            if param is None:
                raise ArgumentError(
                    f"{self._name}: {self.place(n)} has no parameter: None, expected an array of "
                    f"shape {value.shape}; give None for the gradient, too"
                )
        return found

    def paired(
        self, other: Any, what: str, all_of_them: str
    ) -> tuple[list[tuple[Any, Any]], containers.Structure]:
        """Pairs of a gradient and a leaf of other containers, and the structure of both together.

        Where only one of them has an array, the other is None in the pair.

        Args:
            other: The other containers.
            what: One of its leaves in errors: "parameter".
            all_of_them: All of them in errors: "the parameters".

        Raises:
            ArgumentError: The containers differ.
            DTypeError: A leaf is neither an array nor a number, or not of floats.
            ShapeError: A leaf has another shape than its gradient.
        """
        try:
            both = containers.merged(self._container, other, self._what)
        except ValueError as error:
            raise ArgumentError(
                f"{self._name}: got different containers: {error}, as in {all_of_them}"
            ) from None
        _, values, structure = as_primals(other, self._name, all_of_them)
        places = containers.aligned(
            containers.unflatten(self.structure, list(range(len(self.values)))), both
        )
        leaves = containers.aligned(containers.unflatten(structure, values), both)
        for n, leaf in zip(places, leaves, strict=True):
            if n is not None and leaf is not None and self.values[n].shape != leaf.shape:
                raise ShapeError(
                    f"{self._name}: {self.place(n)} has shape {self.values[n].shape}, expected "
                    f"{leaf.shape}, the shape of its {what}"
                )
        gradients = [None if n is None else self.values[n] for n in places]
        return list(zip(gradients, leaves, strict=True)), containers.flatten(both)[1]


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
quiet = np.errstate(invalid="ignore", over="ignore", divide="ignore", under="ignore")


@quiet
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


@quiet
def scaled_norms(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The same over some axes, which stay with size 1."""
    largest = max_of(abs_of(stop_gradient(x)), axes, keepdims=True, initial=0)
    return largest, vector_norm(x / _unit(largest), axis=axes, keepdims=True)


@quiet
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
