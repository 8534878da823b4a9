"""Positions in sequences: encodings that are added, and rotations of queries and keys."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.nn.layers.first_values import layer_dtype, leaf
from gradtape.nn.module import Module
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_count, check_positive
from gradtape.ops.gather import take
from gradtape.ops.join import concatenate, stack
from gradtape.ops.random import randn
from gradtape.ops.reduce import floats
from gradtape.ops.shape import expand_dims, reshape
from gradtape.ops.trigonometric import cos, sin
from gradtape.typing import Array, ArrayLike


def _angles(count: int, offset: Any, size: int, base: float, scale: float) -> Any:
    """Angles of places, of shape (count, size/2): scale·place·base^(−2j/size)."""
    places = offset + np.arange(count, dtype=np.float64)
    slowing = scale * base ** (-np.arange(0, size, 2) / size)
    return expand_dims(places, 1) * slowing


@functools.lru_cache(maxsize=32)
def _known_tables(count: int, offset: int, *settings: Any) -> tuple[Any, Any]:
    """Cosines and sines; layers of one network ask for the same ones at each step."""
    angles = _angles(count, offset, *settings)
    tables = np.cos(angles), np.sin(angles)
    for table in tables:
        table.setflags(write=False)
    return tables


def _tables(count: int, offset: Any, *settings: Any) -> tuple[Any, Any]:
    """Cosines and sines of the angles of places."""
    if isinstance(offset, Tensor | np.ndarray):
        angles = _angles(count, offset, *settings)
        return cos(angles), sin(angles)
    return _known_tables(count, int(offset), *settings)


def _check_even(name: str, size: int) -> None:
    check_count(name, 1, size=size)
    if size % 2:
        raise ArgumentError(f"{name}: got size={size}, expected an even number")


class _Added(Module):
    """A table with a row for each place, which is added."""

    size: int
    batch_first: bool

    def _rows(self, count: int, offset: Any, dtype: Any) -> Any:
        raise NotImplementedError

    def forward(self, x: ArrayLike, offset: Any = 0) -> Array:
        """Add the rows of places.

        Args:
            x: Of shape (places, batch, size), with the first two the other way round for
                `batch_first`; or (places, size), without a batch.
            offset: The number of the first place.

        Raises:
            ShapeError: The shape does not fit.
        """
        x = floats(as_array(x))
        if len(x.shape) not in (2, 3) or x.shape[-1] != self.size:
            axes = "batch, places" if self.batch_first else "places, batch"
            raise ShapeError(
                f"{type(self).__name__}: got x of shape {x.shape}, expected ({axes}, {self.size}), "
                f"or (places, {self.size})"
            )
        first = len(x.shape) == 2 or not self.batch_first
        rows = self._rows(x.shape[0 if first else 1], offset, x.dtype)
        return x + (expand_dims(rows, 1) if first and len(x.shape) == 3 else rows)


class SinusoidalPositionalEncoding(_Added):
    """Adds sines and cosines of the place, of frequencies that fall from 1 to 1/base.

    Args:
        size: The size of the last axis, an even number.
        base: How many times as slow as the first angle the last ones are.
        batch_first: Whether arrays are of shape (batch, places, size), not (places, batch, size).

    Raises:
        ArgumentError: The size is odd.

    >>> gt.nn.SinusoidalPositionalEncoding(4)(np.zeros((2, 4))).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]])
    """

    def __init__(self, size: int, base: float = 10000.0, batch_first: bool = False) -> None:
        _check_even(type(self).__name__, size)
        check_positive(type(self).__name__, base=base)
        self.size, self.base, self.batch_first = size, float(base), bool(batch_first)

    def _rows(self, count: int, offset: Any, dtype: Any) -> Any:
        of_cos, of_sin = _tables(count, offset, self.size, self.base, 1.0)
        table = reshape(stack([of_sin, of_cos], axis=2), (count, self.size))
        return astype(table, dtype, copy=False)

    def extra_repr(self) -> str:
        """Show the size."""
        return f"{self.size}, base={self.base}"


class LearnedPositionalEncoding(_Added):
    """Adds a vector to each place, which is a parameter.

    Args:
        max_length: How many places there are.
        size: The size of the last axis.
        batch_first: Whether arrays are of shape (batch, places, size), not (places, batch, size).
        dtype: The dtype of the parameter.

    Attributes:
        weight: Of shape (max_length, size), normal with a standard deviation of 0.02 at first.

    >>> gt.nn.LearnedPositionalEncoding(100, 8)(np.ones((5, 3, 8), np.float32)).shape
    (5, 3, 8)
    """

    def __init__(
        self, max_length: int, size: int, batch_first: bool = False, *, dtype: Any = np.float32
    ) -> None:
        name = "LearnedPositionalEncoding"
        check_count(name, 1, max_length=max_length, size=size)
        self.max_length, self.size, self.batch_first = max_length, size, bool(batch_first)
        self.weight = leaf(randn((max_length, size), dtype=layer_dtype(dtype, name)) * 0.02)

    def _rows(self, count: int, offset: Any, dtype: Any) -> Any:
        if isinstance(offset, Tensor | np.ndarray):
            # Places that are only known when a compiled function runs are checked by `take`.
            return take(self.weight, offset + np.arange(count), 0)
        if not 0 <= offset <= self.max_length - count:
            raise ShapeError(
                f"LearnedPositionalEncoding: got {count} places from {offset} on, expected at most "
                f"max_length={self.max_length} in all"
            )
        return self.weight[offset : offset + count]

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"{self.max_length}, {self.size}"


class RotaryEmbedding(Module):
    """Turns pairs of elements by angles that grow with the place (RoPE, Su et al. 2021).

    Products of queries with keys then depend on how far apart they are. `MultiheadAttention` and
    the layers of transformers take it as `rotary=`. It has no parameters.

    Args:
        size: How many elements of the last axis are turned, the first ones: an even number, at most
            the size of a head.
        base: How many times as slow as the first angle the last ones are.
        scale: What places are multiplied by: less than 1 for sequences longer than in training.
        interleaved: Whether elements next to each other are pairs, as in the article; if not, the
            first half is paired with the second, as most models have it.

    Raises:
        ArgumentError: The size is odd.

    >>> rotary = gt.nn.RotaryEmbedding(4)
    >>> q = np.ones((1, 2, 5, 4))
    >>> rotary(q).shape
    (1, 2, 5, 4)
    >>> near = [rotary(q, offset)[0, 0, 3] @ rotary(q, offset)[0, 0, 1] for offset in (0, 100)]
    >>> bool(np.isclose(*near))
    True
    """

    def __init__(
        self, size: int, base: float = 10000.0, scale: float = 1.0, interleaved: bool = False
    ) -> None:
        _check_even("RotaryEmbedding", size)
        check_positive("RotaryEmbedding", base=base, scale=scale)
        self.size, self.base, self.scale = size, float(base), float(scale)
        self.interleaved = bool(interleaved)

    def forward(self, x: ArrayLike, offset: Any = 0) -> Array:
        """Turn the elements of the last axis.

        Args:
            x: Of shape (…, places, size of a head).
            offset: The number of the first place, when a sequence is continued.

        Raises:
            ShapeError: The last axis is shorter than `size`, or there are no places.
        """
        x = floats(as_array(x))
        if len(x.shape) < 2 or x.shape[-1] < self.size:
            raise ShapeError(
                f"RotaryEmbedding: got x of shape {x.shape}, expected (…, places, {self.size}), or "
                "more along the last axis"
            )
        tables = _tables(x.shape[-2], offset, self.size, self.base, self.scale)
        of_cos, of_sin = (astype(table, x.dtype, copy=False) for table in tables)
        half = self.size // 2
        if self.interleaved:
            first, second = x[..., 0 : self.size : 2], x[..., 1 : self.size : 2]
        else:
            first, second = x[..., :half], x[..., half : self.size]
        turned = [first * of_cos - second * of_sin, second * of_cos + first * of_sin]
        if self.interleaved:
            turned = [reshape(stack(turned, axis=-1), (*x.shape[:-1], self.size))]
        rest = [x[..., self.size :]] if x.shape[-1] > self.size else []
        return concatenate([*turned, *rest], axis=-1)

    def extra_repr(self) -> str:
        """Show the settings."""
        return f"{self.size}, base={self.base}, scale={self.scale}, interleaved={self.interleaved}"


RoPE = RotaryEmbedding
