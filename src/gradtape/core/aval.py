"""Abstract values: the shape and dtype of an array, without its elements."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

_WEAK = (int, float, complex)
_INT64 = np.dtype(np.int64)


class Aval:
    """Shape and dtype of a value; stands in for one whose elements are not needed.

    Sizes are integers, or symbolic sizes that compare and multiply like integers. Python's numbers
    are weak: they take the dtype of the other operands.
    """

    __slots__ = ("dtype", "shape", "weak")

    def __init__(self, shape: tuple[Any, ...], dtype: np.dtype[Any], *, weak: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak = weak

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aval) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class Abstract(Aval):
    """Stands in for the array of a traced tensor, whose elements are known only at run time.

    Attributes:
        base: The value its elements are a view of, like NumPy's `base`; None if it owns them.
        strides: Steps along the axes in bytes, as NumPy's.
    """

    __slots__ = ("base", "strides")

    def __init__(
        self,
        shape: tuple[Any, ...],
        dtype: np.dtype[Any],
        *,
        weak: bool = False,
        base: Abstract | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(shape, dtype, weak=weak)
        self.base = base
        self.strides = contiguous_strides(shape, dtype.itemsize) if strides is None else strides

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def filled(self, number: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A tensor of the same trace with a number everywhere."""
        raise NotImplementedError


@functools.lru_cache(maxsize=1024)
def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array."""
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(size, 1)
    return tuple(reversed(strides))


def aval_of(value: Any) -> Aval:
    """The abstract value of an array, tensor or Python number."""
    if isinstance(value, Aval):
        return value
    if hasattr(value, "dtype"):
        return Aval(value.shape, value.dtype)
    if type(value) is int:  # however large: it takes the dtype of the other operand
        return Aval((), _INT64, weak=True)
    return Aval((), np.asarray(value).dtype, weak=type(value) in _WEAK)


def nbytes(value: Any) -> int:
    """The bytes of the elements of anything with a shape and a dtype."""
    size: int = math.prod(value.shape)
    return size * int(value.dtype.itemsize)


def is_extended_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of ml_dtypes' floats (bfloat16, float8), whose kind is 'V'."""
    return dtype.kind == "V" and dtype.name.startswith(("bfloat", "float"))


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether one can compute with a dtype: real and complex numbers, and booleans."""
    return dtype.kind in "biufc" or is_extended_float(dtype)
