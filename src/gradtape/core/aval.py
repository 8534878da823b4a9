"""Abstract values: what is known of an array without its elements."""

from __future__ import annotations

from typing import Any

import numpy as np


class Aval:
    """Shape and dtype of a value; stands in for one whose elements are not needed.

    Sizes are integers, or symbolic sizes that compare and multiply like integers.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aval) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def aval_of(value: Any) -> Aval:
    """The abstract value of an array, tensor or Python number."""
    if isinstance(value, Aval):
        return value
    if hasattr(value, "dtype"):
        return Aval(value.shape, value.dtype)
    return Aval((), np.asarray(value).dtype)
