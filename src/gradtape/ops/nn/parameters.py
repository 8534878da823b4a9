"""Parameters of layers: weights and biases, which may be missing."""

from __future__ import annotations

from typing import Any

from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array
from gradtape.typing import ArrayLike


def parameters(name: str, shape: tuple[int, ...], **given: ArrayLike | None) -> list[Any]:
    """Parameters of a layer as arrays, checked for their shape; None stays None."""
    arrays: list[Any] = []
    for what, value in given.items():
        array = None if value is None else as_array(value)
        if array is not None and array.shape != shape:
            raise ShapeError(f"{name}: got {what} of shape {array.shape}, expected {shape}")
        arrays.append(array)
    return arrays
